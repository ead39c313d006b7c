"""coremltools: `convert`, and what makes one model of another."""

from __future__ import annotations

from collections.abc import Mapping as AbcMapping
from dataclasses import replace

from auditor.expressions.text import format_value
from auditor.frameworks import mil
from auditor.frameworks.coremltools_model import MODEL, SPEC, save
from auditor.frameworks.coremltools_types import TYPES, input_types, type_names, undecided_state
from auditor.frameworks.exports import Staged, declared_inputs, family_of
from auditor.frameworks.forward_inputs import called, forward_of
from auditor.frameworks.onnx_programs import onnx_declaration
from auditor.frameworks.tables import tables
from auditor.frameworks.torch_export import Program
from auditor.frameworks.torch_jit import traced_with
from auditor.graph_facts.compute import compute
from auditor.graph_facts.declaration import Declaration, Declared, names_given
from auditor.graph_facts.worlds import merged
from auditor.interpreter import Interpreter
from auditor.places import Site
from auditor.sinks import Export
from auditor.values import (
    NONE,
    Args,
    ExternalObject,
    Instance,
    Mapping,
    Native,
    Union,
    Unknown,
    Value,
    is_given,
    merge_flags,
)
from rules.facts import Fact


def _convert(it: Interpreter, args: Args, site: Site | None) -> Value:
    model = args.get(0, "model") or NONE
    assert site is not None
    if isinstance(model, Instance) and model.cls in (MODEL, SPEC) and isinstance(model.payload, Staged):
        # an intermediate program, or that of a converted model, converted further: the same graph
        return Instance(MODEL, payload=model.payload, places=model.places or (site,))
    options = model.options if isinstance(model, Union) else (model,)
    declarations = [declare(it, option, args, site) for option in options]
    facts = merged([compute(it, d) for d in declarations], site, it.chosen_by)
    modules = [d.module for d in declarations]
    if is_given(args.kw.get("classifier_config")):
        facts = replace(facts, logits=Fact.unknown("the graph is made a classifier, which gives a label", site.place()))
    export = Export(site, tuple(it.stack), "main", facts, family_of(modules), it.conditions)
    export.inputs, export.outputs = names_given(declarations)
    export.home = it.choices.home(modules)
    export.under = merge_flags(modules)
    written = args.kw.get("package_dir")
    if is_given(written):
        export.bundle = format_value(written, "", None)
    it.export(export)
    return Instance(MODEL, payload=Staged([export]), places=(site,))


def declare(it: Interpreter, model: Value, args: Args, site: Site) -> Declaration:
    """The `convert` call as a declaration."""
    from_onnx = onnx_declaration(it, model, site)
    if from_onnx is not None:
        return from_onnx
    program = model.payload if isinstance(model, Instance) and isinstance(model.payload, Program) else None
    changed = model.taint if isinstance(model, Instance) and program is not None else None
    module = changed or program.module if program is not None else model
    traced = traced_with(it, module, site) if program is None else None
    inputs, made, more = _inputs(it, module, program, traced, args, site)
    outputs, states = args.kw.get("outputs"), args.kw.get("states")
    state_names: tuple[str, ...] | Unknown | None = None if program is not None else made
    if is_given(states):
        state_names = undecided_state(it, states, site) or type_names(it, states, site)
    elif args.more is not None:
        state_names = args.more
    output_names = type_names(it, outputs, site) if outputs is not None else None
    return Declaration(
        module,
        tuple(inputs),
        tuple(i.name for i in inputs) if more is None else None,
        output_names if isinstance(output_names, tuple) else None,
        state_names,
        states,
        more,
        site,
        core_ml=True,
        traced=traced,
        output_source=outputs,
    )


def _inputs(
    it: Interpreter,
    module: Value,
    program: Program | None,
    traced: AbcMapping[str, Value] | None,
    args: Args,
    site: Site,
) -> tuple[list[Declared], tuple[str, ...], Unknown | None]:
    """(the inputs, the names of the states that the program itself has, why there may be more of both)."""
    given = args.kw.get("inputs")
    inputs = declared_inputs(program) if program is not None else []
    if isinstance(module, Mapping):
        return inputs, (), Unknown("several models in one call, which coremltools does not document", places=(site,))
    made: tuple[str, ...] = ()
    more = args.more if "inputs" not in args.kw and program is None else None
    own = module if program is None and isinstance(module, Instance) and module.cls is mil.PROGRAM else None
    if own is not None:
        inputs, made, more = mil.specified(it, own, site)
    if is_given(given):  # flexible shapes come from here; the states of a program are its own
        inputs, unknown = input_types(it, module, given, site)
        more = more or unknown
    elif program is None and own is None:
        if traced:
            forward = forward_of(it, module, site)
            inputs = [Declared(called(forward, name), value, {}, value, name) for name, value in traced.items()]
        else:
            more = more or _no_inputs(module, site)
    return inputs, made, more


def _no_inputs(module: Value, site: Site) -> Unknown:
    """Why the inputs of a conversion that declares none are not known."""
    if isinstance(module, ExternalObject):
        what = f"the inputs are those of what `{module.dotted}` gives, which is not followed"
        return Unknown(what, places=module.places or (site,))
    cause = module.reason if isinstance(module, Unknown) else "no inputs are declared, and no trace gives them"
    return Unknown(cause, places=module.places or (site,))


def _materialized(it: Interpreter, args: Args, site: Site | None) -> Value:
    """`materialize_dynamic_shape_mlmodel(model, shapes, destination)`: what is shipped has these shapes only."""
    model, path = args.get(0, "dynamic_shape_mlmodel"), args.get(2, "destination_path")
    if isinstance(model, Instance) and isinstance(model.payload, Staged) and site is not None:
        text = format_value(path, "", None) if path is not None else ""
        for export in model.payload.exports:
            if export.bundle in ("", text):
                reason = "the model is materialized for fixed shapes"
                export.facts = replace(export.facts, query=Fact.unknown(reason, site.place()))
    return NONE


def _same_model(it: Interpreter, args: Args, site: Site | None) -> Value:
    return args.get(0, "mlmodel", "model") or NONE


NATIVES: dict[str, Value] = {
    "coremltools.convert": Native("coremltools.convert", _convert),
    "coremltools.converters.convert": Native("coremltools.convert", _convert),
    "coremltools.models.MLModel": MODEL,
    "coremltools.models.model.MLModel": MODEL,
    "coremltools.MLModel": MODEL,
    "coremltools.utils.materialize_dynamic_shape_mlmodel": Native("materialize", _materialized),
    "coremltools.models.utils.materialize_dynamic_shape_mlmodel": Native("materialize", _materialized),
    "coremltools.utils.save_spec": Native("coremltools.utils.save_spec", save),
    **{c.name: c for c in TYPES},
    **{name: Native(name, _same_model) for name in tables().keeps_model},
}
