"""coremltools: `convert` with its input, shape and state types, and the models that it makes."""

from __future__ import annotations

from dataclasses import replace

from auditor import dims
from auditor.answers import common
from auditor.calls.effects import HANDED
from auditor.containers.iteration import iterate
from auditor.dims import Dim
from auditor.expressions.text import format_value
from auditor.frameworks import mil
from auditor.frameworks.exports import Staged, declared_inputs, family_of
from auditor.frameworks.records import record
from auditor.frameworks.tables import tables
from auditor.frameworks.torch_export import Program, called, forward_of, parameter_names
from auditor.frameworks.torch_jit import traced_with
from auditor.graph_facts.compute import compute
from auditor.graph_facts.declaration import Declaration, Declared, Dimension, names_given
from auditor.graph_facts.worlds import merged
from auditor.interpreter import Interpreter
from auditor.objects.inheritance import OBJECT
from auditor.places import Site, here
from auditor.roles import role_by_name
from auditor.sinks import Export
from auditor.torch.tensors import size
from auditor.values import (
    NONE,
    Args,
    Const,
    ExternalObject,
    Instance,
    Mapping,
    Native,
    NativeClass,
    Seq,
    Star,
    Tensor,
    Union,
    Unknown,
    Value,
    is_given,
    is_none,
    merge_flags,
    text_of,
)
from rules.facts import Fact

RANGE = record("coremltools.RangeDim", "lower_bound", "upper_bound", "default", "symbol")
SHAPE = record("coremltools.Shape", "shape", "default")
ENUMERATED = record("coremltools.EnumeratedShapes", "shapes", "default")
TENSOR_TYPE = record("coremltools.TensorType", "name", "shape", "dtype", "default_value", wraps={"shape": SHAPE})
IMAGE_TYPE = record("coremltools.ImageType", "name", "shape", "scale", "bias")
STATE_TYPE = record("coremltools.StateType", "wrapped_type", "name")


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
    program = model.payload if isinstance(model, Instance) and isinstance(model.payload, Program) else None
    changed = model.taint if isinstance(model, Instance) and program is not None else None
    module = changed or program.module if program is not None else model
    more = args.more if "inputs" not in args.kw and program is None else None
    given = args.kw.get("inputs")
    inputs: list[Declared] = declared_inputs(program) if program is not None else []
    made: tuple[str, ...] = ()
    traced = traced_with(it, module, site) if program is None else None
    if isinstance(module, Mapping):
        more = Unknown("several models in one call, which coremltools does not document", places=(site,))
    elif program is None and isinstance(module, Instance) and module.cls is mil.PROGRAM:
        inputs, made, more = mil.specified(it, module, site)
        if is_given(given):  # flexible shapes come from here; the states are those of the program
            inputs, unknown = _inputs(it, module, given, site)
            more = more or unknown
    elif is_given(given):
        inputs, unknown = _inputs(it, module, given, site)
        more = more or unknown
    elif program is None and traced:
        forward = forward_of(it, module, site)
        inputs = [Declared(called(forward, name), value, {}, value, name) for name, value in traced.items()]
    elif program is None:
        more = more or _no_inputs(module, site)
    outputs = args.kw.get("outputs")
    states = args.kw.get("states")
    state_names: tuple[str, ...] | Unknown | None = None if program is not None else made
    if is_given(states):
        state_names = _uncertain(it, states, site) or _names(it, states, site)
    elif args.more is not None:
        state_names = args.more
    output_names = _names(it, outputs, site) if outputs is not None else None
    names = tuple(i.name for i in inputs) if more is None else None
    return Declaration(
        module,
        tuple(inputs),
        names,
        output_names if isinstance(output_names, tuple) else None,
        state_names,
        states,
        more,
        site,
        core_ml=True,
        traced=traced,
        output_source=outputs,
    )


def _no_inputs(module: Value, site: Site) -> Unknown:
    """Why the inputs of a conversion that declares none are not known."""
    if isinstance(module, ExternalObject):
        what = f"the inputs are those of what `{module.dotted}` gives, which is not followed"
        return Unknown(what, places=module.places or (site,))
    cause = module.reason if isinstance(module, Unknown) else "no inputs are declared, and no trace gives them"
    return Unknown(cause, places=module.places or (site,))


def _names(it: Interpreter, value: Value, site: Site) -> tuple[str, ...] | Unknown | None:
    """The names of a list of types; an unnamed state has the name of its position."""
    if is_none(value):
        return None
    source = iterate(it, value, site)
    if source.rest is not None:
        return source.rest
    out: list[str] = []
    for n, item in enumerate(source.items):
        for one in getattr(item, "items", (item,)) if type(item).__name__ == "Star" else (item,):
            name = text_of(one.attrs.get("name", NONE)) if isinstance(one, Instance) else None
            inner = one.attrs.get("wrapped_type") if isinstance(one, Instance) else None
            if name is None and isinstance(inner, Instance):
                name = text_of(inner.attrs.get("name", NONE))
            if name is None and not isinstance(one, Instance):
                return Unknown("a type that is not known", places=one.places or value.places)
            out.append(name or f"#{n}")
    return tuple(out)


def _uncertain(it: Interpreter, states: Value, site: Site) -> Unknown | None:
    """Set when a state that is no cache is declared on one of two ways only, and nobody knows which one is taken.

    A state that a loop declares once for each of many layers has their number in its name.
    """
    for item in iterate(it, states, site).items:
        for one in item.items if isinstance(item, Star) else ():
            name = text_of(one.attrs.get("name", NONE)) if isinstance(one, Instance) else None
            if name is not None and "*" not in name and not role_by_name(name).is_kv:
                return Unknown(f"whether `{name}` is declared", places=one.places or states.places or (site,))
    return None


def _inputs(it: Interpreter, module: Value, given: Value, site: Site) -> tuple[list[Declared], Unknown | None]:
    parameters = parameter_names(forward_of(it, module, site))
    source = iterate(it, given, site)
    more = source.rest
    out: list[Declared] = []
    each = [(isinstance(i, Star), one) for i in source.items for one in (i.items if isinstance(i, Star) else (i,))]
    for n, (repeated, one) in enumerate(each):
        parameter = parameters[n] if n < len(parameters) else f"arg{n}"
        out.append(_input(it, one, parameter, site))
        name = one.attrs.get("name") if repeated and isinstance(one, Instance) else None
        if (
            isinstance(name, Unknown) and name.kind == "data"
        ):  # any number of inputs, whatever they are called: caches, too
            more = more or name
    return out, more


def _input(it: Interpreter, item: Value, parameter: str, site: Site) -> Declared:
    if isinstance(item, Union):
        options = [_input(it, o, parameter, site) for o in item.options]
        same = all(o.axes == options[0].axes and _alike(o.value, options[0].value) for o in options)
        return options[0] if same else Declared(options[0].name, options[0].value, None, item, parameter)
    if not isinstance(item, Instance):
        return Declared(parameter, item, None, item if isinstance(item, Unknown) else None, parameter)
    name = text_of(item.attrs.get("name", NONE)) or parameter
    shape = item.attrs.get("shape")
    value, axes = _shape(it, shape, item, site)
    return Declared(name, value, axes, shape if shape is not None else item, parameter)


def _alike(a: Value, b: Value) -> bool:
    return isinstance(a, Tensor) and isinstance(b, Tensor) and a.shape == b.shape


def _varies(bounds: Instance) -> bool | None:
    """Whether a range has more than one length; None when one of its bounds does not say.

    A bound out of a checkpoint is larger than 1.
    """
    low = _numbers(bounds.attrs.get("lower_bound", Const(1)))
    high = _numbers(bounds.attrs.get("upper_bound", Const(-1)))
    return common(
        a != b if isinstance(a, int) and isinstance(b, int) else a is not None and b is not None
        for a in low
        for b in high
    )


def _numbers(bound: Value) -> list[Dim | None]:
    """The numbers that a bound may be; None for one that nobody knows before the script runs."""
    if isinstance(bound, Union):
        return [n for o in bound.options for n in _numbers(o)]
    if isinstance(bound, Unknown) and bound.kind != "data":
        return [None]
    d = size(bound)
    return [-1] if d is None else list(dims.alternatives(d))


def _shape(
    it: Interpreter, shape: Value | None, item: Instance, site: Site
) -> tuple[Value, dict[int, Dimension] | None]:
    """(example tensor, flexible axes) of an input type."""
    if isinstance(shape, Instance) and shape.cls is SHAPE:
        shape = shape.attrs.get("shape")
    if isinstance(shape, Instance) and shape.cls is ENUMERATED:
        return _enumerated(it, shape, site)
    if isinstance(shape, Union) and all(_shape(it, o, item, site)[1] == {} for o in shape.options):
        reason = Unknown("a shape that is one of several", places=shape.places or item.places)
        return Tensor(None, _dtype(item), reason=reason, flags=shape.flags), {}
    if shape is None:
        return Tensor(None, reason=Unknown("an input without a shape", places=item.places)), None
    source = iterate(it, shape, site)
    if not source.exact:
        reason = source.rest or Unknown("a shape of unknown rank", places=shape.places)
        return Tensor(None, reason=reason), None
    dims_: list[Dim] = []
    axes: dict[int, Dimension] = {}
    for n, d in enumerate(source.items):
        if isinstance(d, Instance) and d.cls is RANGE:
            varies = _varies(d)
            if varies is None:
                reason = Unknown("whether a range has one length or more is not known", places=d.places or shape.places)
                return Tensor(None, reason=reason, flags=d.flags), None
            if not varies:
                low = size(d.attrs.get("lower_bound", NONE))
                dims_.append(1 if low is None else low)
                continue
            axes[n] = Dimension(True, label=f"range{d.born}", source=d)
            default = size(d.attrs.get("default", NONE))
            dims_.append(default if isinstance(default, int) and default > 0 else 1)
            continue
        one = size(d)
        if one is None:
            return Tensor(None, reason=Unknown("a dimension that is not known", places=d.places or shape.places)), None
        dims_.append(one)
    return Tensor(
        tuple(dims_), _dtype(item), places=shape.places or item.places, flags=merge_flags([shape, *source.items])
    ), axes


def _dtype(item: Instance) -> str:
    given = item.attrs.get("dtype")
    name = getattr(given, "dotted", "") or getattr(given, "name", "") or ""
    return str(name).rsplit(".", 1)[-1]


def _enumerated(it: Interpreter, shape: Instance, site: Site) -> tuple[Value, dict[int, Dimension] | None]:
    shapes = [iterate(it, s, site) for s in iterate(it, shape.attrs.get("shapes", NONE), site).items]
    rows = [[size(d) for d in s.items] for s in shapes if s.exact]
    if not rows or len(rows) != len(shapes) or any(len(r) != len(rows[0]) or None in r for r in rows):
        return Tensor(None, reason=Unknown("enumerated shapes that are not known", places=shape.places)), None
    axes: dict[int, Dimension] = {}
    for n in range(len(rows[0])):
        widths = {r[n] for r in rows}
        if len(widths) > 1 and all(isinstance(w, int) for w in widths):
            axes[n] = Dimension(False, widths=tuple(sorted(w for w in widths if isinstance(w, int))), source=shape)
    return Tensor(tuple(d for d in rows[0] if d is not None), places=shape.places), axes


def _save(it: Interpreter, args: Args, site: Site | None) -> Value:
    model, path = args.pos[0], args.get(1, "save_path", "path")
    if isinstance(model, Instance) and isinstance(model.payload, Staged) and path is not None:
        for export in model.payload.exports:
            saved = format_value(path, "", None)
            export.bundle, export.copies = export.bundle or saved, export.copies | {saved}
            export.flags = export.flags | path.flags
    return NONE


_EDITS = {"add", "append", "extend", "insert", "pop", "remove", "CopyFrom", "MergeFrom", "ClearField"}
_EDITS |= {"set_outputs", "remove_ops", "replace_uses_of_var_after_op", "add_function", "set_inputs"}
_PROGRAM = {"_mil_program", "functions"}
"""What a converted model gives of its program, which is edited like its protobuf."""
_LABELS = ("name", "metadata", "author", "license", "userDefined", "shortDescription", "specificationVersion")


def _spec(it: Interpreter, args: Args, site: Site | None) -> Value:
    model = args.pos[0]
    return Instance(SPEC, {"path": Const("")}, model.payload) if isinstance(model, Instance) else NONE


def _spec_part(it: Interpreter, args: Args, site: Site | None) -> Value:
    spec, key = args.pos[0], args.pos[1]
    assert isinstance(spec, Instance)
    path = f"{text_of(spec.attrs.get('path', NONE)) or ''}.{text_of(key) or '[]'}"
    return Instance(SPEC, {"path": Const(path)}, spec.payload)


def _spec_items(it: Interpreter, args: Args, site: Site | None) -> Value:
    """The items of a repeated field: any number of parts of the same protobuf."""
    return Seq("list", [Star((_spec_part(it, Args([args.pos[0], Const("[]")]), site),))])


def _spec_written(it: Interpreter, args: Args, site: Site | None) -> Value:
    """The protobuf of a converted model is edited: its inputs are no longer what was declared, unless by a label."""
    spec = args.pos[0]
    assert isinstance(spec, Instance)
    path = f"{text_of(spec.attrs.get('path', NONE)) or ''}.{text_of(args.pos[1]) if len(args.pos) > 2 else ''}"
    if isinstance(spec.payload, Staged) and site is not None and not any(label in path for label in _LABELS):
        for export in spec.payload.exports:
            reason = f"the model is edited after its conversion (`{path.strip('.')}`)"
            export.facts = replace(export.facts, query=Fact.unknown(reason, site.place()))
    return NONE


def _spec_called(it: Interpreter, args: Args, site: Site | None) -> Value:
    spec = args.pos[0]
    assert isinstance(spec, Instance)
    path = text_of(spec.attrs.get("path", NONE)) or ""
    if path.rsplit(".", 1)[-1] in _EDITS:
        _spec_written(it, Args([spec]), site)
    return Instance(SPEC, {"path": Const(path)}, spec.payload)


def _spec_built(it: Interpreter, args: Args, site: Site | None) -> Value:
    """`with program.functions["main"] as block:`: operations are put into it."""
    _spec_written(it, Args(args.pos[:1]), site)
    return args.pos[0]


def _spec_handed(it: Interpreter, args: Args, site: Site | None) -> Value:
    """The protobuf goes into code that nobody can read, which may set other shapes."""
    spec, cause = args.pos
    if isinstance(spec, Instance) and isinstance(spec.payload, Staged) and isinstance(cause, Unknown):
        reason = f"the model's protobuf is handed to code that nobody can read: {cause.reason}"
        for export in spec.payload.exports:
            export.facts = replace(export.facts, query=Fact.unknown(reason, *(s.place() for s in cause.places)))
    return NONE


SPEC = NativeClass(
    "coremltools.proto.Model",
    {
        "__getattr__": _spec_part,
        "__getitem__": _spec_part,
        "__iter__": _spec_items,
        "__setattr__": _spec_written,
        "__setitem__": _spec_written,
        "__delitem__": _spec_written,
        "__enter__": _spec_built,
        "__call__": _spec_called,
        HANDED: _spec_handed,
    },
    (OBJECT,),
)


def _reopened(it: Interpreter, args: Args, site: Site | None) -> Value:
    """`MLModel(spec)`: the model whose protobuf it is."""
    spec = args.get(1, "model")
    if isinstance(spec, Instance) and spec.cls is SPEC:
        return Instance(MODEL, payload=spec.payload, places=here(site))
    return Unknown("a converted model is opened", "MLModel()", places=here(site))


def _getattr(it: Interpreter, args: Args, site: Site | None) -> Value:
    name = text_of(args.pos[1]) or ""
    if name == "_spec" or name in _PROGRAM:
        return _spec(it, args, site)
    return Unknown(f"`{name}` of a converted model", f"MLModel.{name}", places=here(site))


MODEL = NativeClass(
    "coremltools.models.MLModel",
    {"__new__": _reopened, "save": _save, "get_spec": _spec, "__getattr__": _getattr},
    (OBJECT,),
)


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
    "coremltools.utils.save_spec": Native("coremltools.utils.save_spec", _save),
    **{c.name: c for c in (RANGE, SHAPE, ENUMERATED, TENSOR_TYPE, IMAGE_TYPE, STATE_TYPE)},
    **{name: Native(name, _same_model) for name in tables().keeps_model},
}
