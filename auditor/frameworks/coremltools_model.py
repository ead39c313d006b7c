"""coremltools: a converted model, which is saved, opened again and edited by its protobuf."""

from __future__ import annotations

from dataclasses import replace

from auditor.calls.effects import HANDED
from auditor.expressions.text import format_value
from auditor.frameworks.exports import Staged
from auditor.interpreter import Interpreter
from auditor.objects.inheritance import OBJECT
from auditor.places import Site, here
from auditor.values import NONE, Args, Const, Instance, NativeClass, Seq, Star, Unknown, Value, text_of
from rules.facts import Fact

_EDITS = {"add", "append", "extend", "insert", "pop", "remove", "CopyFrom", "MergeFrom", "ClearField"}
_EDITS |= {"set_outputs", "remove_ops", "replace_uses_of_var_after_op", "add_function", "set_inputs"}
_PROGRAM = {"_mil_program", "functions"}
"""What a converted model gives of its program, which is edited like its protobuf."""
_LABELS = ("name", "metadata", "author", "license", "userDefined", "shortDescription", "specificationVersion")


def save(it: Interpreter, args: Args, site: Site | None) -> Value:
    """`model.save(path)`, or `save_spec(spec, path)`."""
    model, path = args.pos[0], args.get(1, "save_path", "path")
    if isinstance(model, Instance) and isinstance(model.payload, Staged) and path is not None:
        for export in model.payload.exports:
            to = format_value(path, "", None)
            export.bundle, export.copies = export.bundle or to, export.copies | {to}
            export.flags = export.flags | path.flags
    return NONE


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
    {"__new__": _reopened, "save": save, "get_spec": _spec, "__getattr__": _getattr},
    (OBJECT,),
)
