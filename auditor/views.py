"""Dictionaries that are another name for an object's attributes: `vars(args)`, `args.__dict__`, `module._modules`."""

from __future__ import annotations

from collections.abc import Mapping as AbcMapping

from auditor.interpreter import Interpreter
from auditor.places import Site
from auditor.values import NONE, Args, Const, Instance, Mapping, NativeClass, Unknown, Value, text_of


def attribute_view(obj: Value, attributes: AbcMapping[str, Value], rest: Unknown | None = None) -> Instance:
    """A dict of attributes of an object or a module; what is written to it is set there."""
    entries = {("str", n): (Const(n), v) for n, v in attributes.items()}
    return Instance(VIEW, {"(object)": obj}, Mapping(entries, rest))  # type: ignore[arg-type]


def _set(it: Interpreter, args: Args, site: Site | None) -> Value:
    from auditor.expressions import put

    view, key, value = args.pos[0], args.pos[1], args.pos[2]
    assert isinstance(view, Instance)
    assert isinstance(view.payload, Mapping)
    obj, name = view.attrs["(object)"], text_of(key)
    it.heap.touch(view.payload)
    put(view.payload, key, value, site)
    if name is not None and "*" not in name:
        it.set(obj, name, value, site)
    elif not isinstance(obj, Instance):
        it.poison = Unknown("a name of a module was set that is not known", places=(site,) if site else ())
    else:
        it.heap.touch(obj)
        obj.taint = obj.taint or Unknown(
            "an attribute was set under a name that is not known", places=(site,) if site else ()
        )
    return NONE


def _update(it: Interpreter, args: Args, site: Site | None) -> Value:
    for other in args.pos[1:]:
        if isinstance(other, Mapping):
            for key, value in other.entries.values():
                _set(it, Args([args.pos[0], key, value]), site)
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
