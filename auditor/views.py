"""Dictionaries that are another name for an object's attributes: `vars(args)`, `args.__dict__`, `module._modules`."""

from __future__ import annotations

from collections.abc import Mapping as AbcMapping

from auditor.containers.entries import put
from auditor.interpreter import Interpreter
from auditor.joins import union
from auditor.objects.inheritance import OBJECT, mro
from auditor.places import Site, here
from auditor.torch.nn.module import is_module
from auditor.values import (
    NONE,
    Args,
    Class,
    Const,
    Function,
    Instance,
    Mapping,
    NativeClass,
    Num,
    Pattern,
    Seq,
    Star,
    Union,
    Unknown,
    Value,
    text_of,
)


def attribute_view(obj: Value, attributes: AbcMapping[str, Value], rest: Unknown | None = None) -> Instance:
    """A dict of attributes of an object or a module; what is written to it is set there."""
    entries = {("str", n): (Const(n), v) for n, v in attributes.items()}
    return Instance(VIEW, {"(object)": obj}, Mapping(entries, rest))  # type: ignore[arg-type]


_MAGIC = frozenset({"__call__", "__getattr__", "__getattribute__", "__setattr__"})


def is_record(obj: Instance, value: Value) -> bool:
    """Whether an object without methods receives plain data: whatever the name, its attributes are plain data then."""
    for cls in mro(obj.cls):
        own = cls.env.names if isinstance(cls, Class) else {}
        methods = [n for n, v in own.items() if isinstance(v, Function) and (not n.startswith("__") or n in _MAGIC)]
        if methods or not (isinstance(cls, Class) or cls is OBJECT):
            return False
    return _is_data(value, obj.cls)


def spoil_attributes(it: Interpreter, obj: Instance, cause: Unknown) -> None:
    """An attribute of `obj` was set, and nobody knows which: it has more, and those that it had may be others now."""
    it.heap.touch(obj)
    if obj.taint is None or obj.taint.kind == "data":
        obj.taint = cause
    if not is_module(obj):  # a module's `forward` is not followed any more
        obj.attrs = {n: union([v, cause.child(f".{n}")]) for n, v in obj.attrs.items()}


def _is_data(value: Value, record: Value) -> bool:
    match value:
        case Const() | Num() | Pattern():
            return True
        case Unknown(kind=kind):
            return kind in ("data", "int", "float", "str", "bool", "list", "dict")
        case Union(options=parts) | Star(items=parts):
            return all(_is_data(p, record) for p in parts)
        case Seq(items=items, rest=rest):
            return all(_is_data(p, record) for p in (*items, *((rest,) if rest else ())))
        case Instance(cls=cls, attrs=attrs, taint=taint) if cls is record:
            return all(_is_data(p, record) for p in (*attrs.values(), *((taint,) if taint else ())))
    return False


def _set(it: Interpreter, args: Args, site: Site | None) -> Value:
    view, key, value = args.pos[0], args.pos[1], args.pos[2]
    assert isinstance(view, Instance)
    assert isinstance(view.payload, Mapping)
    obj, name = view.attrs["(object)"], text_of(key)
    it.heap.touch(view.payload)
    put(view.payload, key, value)
    if name is not None and "*" not in name:
        it.set(obj, name, value, site)
    else:
        _set_unnamed(it, obj, value, site)
    return NONE


def _set_unnamed(it: Interpreter, obj: Value, value: Value, site: Site | None) -> None:
    if isinstance(obj, Instance):
        kind = "data" if is_record(obj, value) else ""
        reason = "an attribute was set under a name that is not known"
        spoil_attributes(it, obj, Unknown(reason, kind=kind, places=here(site)))
    else:
        it.poison = Unknown("a name of a module was set that is not known", places=here(site))


def _update(it: Interpreter, args: Args, site: Site | None) -> Value:
    view = args.pos[0]
    assert isinstance(view, Instance)
    for other in args.pos[1:]:
        rest: Value | None = other
        if isinstance(other, Instance) and isinstance(other.payload, Mapping):
            source = other.attrs.get("(object)")
            rest = source.taint if isinstance(source, Instance) else other.payload.rest
            other = other.payload
        elif isinstance(other, Mapping):
            rest = other.rest
        if isinstance(other, Mapping):
            for key, value in list(other.entries.values()):
                _set(it, Args([view, key, value]), site)
        if rest is not None:
            given = rest.child("[]") if isinstance(rest, Unknown) else rest
            _set_unnamed(it, view.attrs["(object)"], given, site)
    for name, value in args.kw.items():
        _set(it, Args([args.pos[0], Const(name), value]), site)
    return NONE


def _method(name: str):  # type: ignore[no-untyped-def]
    def run(it: Interpreter, args: Args, site: Site | None) -> Value:
        view = args.pos[0]
        assert isinstance(view, Instance)
        assert isinstance(view.payload, Mapping)
        return it.call(it.get(view.payload, name, site), Args(args.pos[1:], args.kw), site)

    return run


VIEW = NativeClass(
    "dict",
    {
        "__setitem__": _set,
        "update": _update,
        **{n: _method(n) for n in ("get", "items", "keys", "values", "pop", "copy")},
    },
)
