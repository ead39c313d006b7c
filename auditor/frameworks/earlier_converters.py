"""The converters that Core ML had before `coremltools.convert`, one for each framework, and those of their time.

    coremltools.converters.keras.convert(model, input_names="tokens", output_names="probabilities")
    tfcoreml.convert(tf_model_path="net.pb", mlmodel_path="net.mlmodel", image_input_names="input:0")

What a network of Keras, ONNX or TensorFlow computes is not followed. That an image goes in, the call itself says; and
there are no tokens in what is made of trees, of support vectors and of Caffe's networks.
"""

from __future__ import annotations

from auditor.expressions.text import format_value
from auditor.frameworks.coremltools_model import MODEL
from auditor.frameworks.exports import Staged
from auditor.frameworks.onnx_programs import onnx_declaration
from auditor.graph_facts.compute import compute
from auditor.interpreter import Interpreter
from auditor.places import Site
from auditor.sinks import Export
from auditor.values import NONE, Args, Instance, Native, Value, is_given
from rules.facts import Fact, GraphFacts, Kind, Kv, Place

_NETWORKS = {
    "coremltools.converters.keras.convert": "Keras",
    "coremltools.converters.onnx.convert": "ONNX",
    "onnx_coreml.convert": "ONNX",
    "onnx_coreml.converter.convert": "ONNX",
    "tfcoreml.convert": "TensorFlow",
}
_WITHOUT_TOKENS = {
    "coremltools.converters.caffe.convert": "Caffe",
    "coremltools.converters.sklearn.convert": "scikit-learn",
    "coremltools.converters.xgboost.convert": "XGBoost",
    "coremltools.converters.libsvm.convert": "LIBSVM",
}


def _converter(framework: str, tokens: bool) -> Native:
    def convert(it: Interpreter, args: Args, site: Site | None) -> Value:
        assert site is not None
        image = args.kw.get("image_input_names")
        declaration = onnx_declaration(it, args.get(0, "model", "onnx_model") or NONE, site)
        if not tokens:
            facts = _no_decoder(site.place(f"a converter of {framework}'s models"))
        elif is_given(image):
            facts = _no_decoder(site.place("an image goes in"))
        elif declaration is not None:
            facts = compute(it, declaration)
        else:
            reason = f"the model comes from {framework}, and what it computes is not followed"
            facts = GraphFacts.unknown(reason, site.place())
        export = Export(site, tuple(it.stack), "main", facts, "", it.conditions)
        written = args.kw.get("mlmodel_path")
        if is_given(written):
            export.bundle = format_value(written, "", None)
        it.export(export)
        return Instance(MODEL, payload=Staged([export]), places=(site,))

    return Native("convert", convert)


def _no_decoder(place: Place) -> GraphFacts:
    unknown = GraphFacts.unknown("not looked at: the graph has no state and no cache", place)
    return GraphFacts(Fact(Kind.OTHER, (place,)), Fact((), (place,)), unknown.query, unknown.logits, Fact(Kv.NONE))


NATIVES: dict[str, Value] = {
    **{name: _converter(framework, tokens=True) for name, framework in _NETWORKS.items()},
    **{name: _converter(framework, tokens=False) for name, framework in _WITHOUT_TOKENS.items()},
}
