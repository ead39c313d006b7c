"""The converters of a framework each, from before `coremltools.convert`."""

from __future__ import annotations

from pathlib import Path

import pytest

from rules.facts import Kind
from rules.verdict import Verdict, judge
from tests.auditor.support import graph_of, line_of, scan_text

HEAD = "import coremltools\nimport coremltools as ct\nimport onnx_coreml\nimport tfcoreml\nfrom mine import model\n\n"


def script(call: str) -> str:
    return f"{HEAD}made = {call}\nmade.short_description = 'a model'\nmade.save('out/net.mlmodel')\n"


@pytest.mark.parametrize(
    "call",
    [
        "coremltools.converters.keras.convert(model, input_names='image', image_input_names='image')",
        "ct.converters.onnx.convert(model, image_input_names=['image'])",
        "onnx_coreml.convert(model, image_input_names=['image'], minimum_ios_deployment_target='13')",
        "tfcoreml.convert(tf_model_path='net.pb', image_input_names='input:0', output_feature_names=['y'])",
        "coremltools.converters.caffe.convert(('net.caffemodel', 'net.prototxt'))",
        "coremltools.converters.sklearn.convert(model, 'x', 'y')",
        "coremltools.converters.xgboost.convert(model)",
        "ct.converters.libsvm.convert(model)",
    ],
)
def test_what_is_no_decoder_whatever_it_computes(tmp_path: Path, call: str) -> None:
    graph = graph_of(scan_text(tmp_path, {"export.py": script(call)}))
    assert graph.bundle == "out/net.mlmodel"
    assert graph.facts.kind.value is Kind.OTHER
    assert judge(graph.facts).says() == "out by not-a-decoder"


@pytest.mark.parametrize(
    ("call", "framework"),
    [
        ("coremltools.converters.keras.convert(model, input_names=['tokens'])", "Keras"),
        ("coremltools.converters.keras.convert(model, image_input_names=None)", "Keras"),
        ("onnx_coreml.convert(model)", "ONNX"),
        ("tfcoreml.convert(tf_model_path='net.pb', output_feature_names=['y'])", "TensorFlow"),
    ],
)
def test_networks_that_nobody_follows(tmp_path: Path, call: str, framework: str) -> None:
    """The call is cited, and not the import without a source."""
    text = script(call)
    graph = graph_of(scan_text(tmp_path, {"export.py": text}))
    judgement = judge(graph.facts)
    assert judgement.verdict is Verdict.UNRESOLVED
    (first, *_) = judgement.reasons
    assert f"the model comes from {framework}" in first.message
    assert [p.line for p in first.evidence] == [line_of(text, "made = ")]


def test_where_it_is_written(tmp_path: Path) -> None:
    text = HEAD + "tfcoreml.convert('net.pb', mlmodel_path='net.mlmodel', image_input_names=['x'])\n"
    assert graph_of(scan_text(tmp_path, {"export.py": text})).bundle == "net.mlmodel"
