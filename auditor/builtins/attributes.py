"""Built-in functions on the attributes of an object."""

from __future__ import annotations

from collections.abc import Callable

from auditor import families, operators
from auditor.calls.effects import taint
from auditor.interpreter import Interpreter, RaiseSignal
from auditor.joins import join_all, union
from auditor.objects.inheritance import class_lookup
from auditor.places import Site, here
from auditor.torch.modules import is_module
from auditor.values import (
    FALSE,
    NONE,
    TRUE,
    Args,
    Bound,
    Class,
    Const,
    External,
    ExternalObject,
    Instance,
    Pattern,
    Union,
    Unknown,
    Value,
    text_of,
)
from auditor.values.absence import maybe_absent
from auditor.views import attribute_view, is_record, spoil_attributes


def _hasattr(it: Interpreter, args: Args, site: Site | None) -> Value:
    name = text_of(args.pos[1])
    if name is None or "*" in name:
        return operators.unknown_from("hasattr() with a name that is not known", "bool", args.pos[1])
    obj = args.pos[0]
    if isinstance(obj, Union):
        return union(_hasattr(it, Args([o, args.pos[1]]), site) for o in obj.options)
    if isinstance(obj, (Unknown, ExternalObject, External)) or (
        isinstance(obj, Bound) and isinstance(obj.function, External)
    ):
        if isinstance(obj, Unknown) and f".{name}" in obj.assigned:
            return TRUE
        return operators.unknown_from(f"whether a value that is not known has `{name}`", "bool", obj)
    if isinstance(obj, Instance) and (own := obj.attrs.get(name)) is not None and maybe_absent(own):
        return operators.unknown_from(f"whether `{name}` was set", "bool", own)
    if isinstance(obj, Instance) and name not in obj.attrs and (member := families.find(obj, name)) is not None:
        return operators.unknown_from(f"whether a loop has set `{name}`", "bool", member)
    try:
        found = it.get(obj, name, site)
    except RaiseSignal:
        return FALSE
    if isinstance(found, Unknown) and isinstance(obj, Instance) and not isinstance(obj.attrs.get(name), Const):
        known, sure = class_lookup(obj.cls, name)
        if known is None and (not sure or (obj.taint is not None and name not in obj.attrs)):
            return operators.unknown_from(f"whether an object that was not read has `{name}`", "bool", found)
    return TRUE


def _getattr(it: Interpreter, args: Args, site: Site | None) -> Value:
    obj, key = args.pos[0], args.pos[1]
    default = args.get(2, "default")
    name = text_of(key)
    if isinstance(key, Union):
        return union(_getattr(it, Args([obj, k, *args.pos[2:]]), site) for k in key.options)
    if name is not None and "*" in name and isinstance(obj, Instance):
        found = families.find(obj, name, key.number if isinstance(key, Pattern) else None)
        if found is not None:
            return found
    if name is None or "*" in name:
        return operators.unknown_from("getattr() with a name that is not known", "", key)
    if isinstance(obj, Union):
        return union(_getattr(it, Args([o, key, *args.pos[2:]]), site) for o in obj.options)
    try:
        found = it.get(obj, name, site)
    except RaiseSignal:
        if default is None:
            raise
        return default
    if default is None:
        return found
    there = _hasattr(it, Args([obj, key]), site)
    if operators.truth(there) is not None:
        return found if operators.truth(there) else default
    if isinstance(found, Unknown) and isinstance(default, Const):
        return _maybe_default(found, default)
    return join_all([found, default])


def _maybe_default(found: Unknown, default: Const) -> Value:
    """An attribute of an object from a checkpoint, or the default: one unknown for numbers, either for the rest.

    A number stays one unknown: which one it is changes no shape's structure, and a union would double every shape.
    """
    if isinstance(default.value, bool) or default.value is None or isinstance(default.value, str):
        return union([found, default])
    return found


def _setattr(it: Interpreter, args: Args, site: Site | None) -> Value:
    name = text_of(args.pos[1])
    obj = args.pos[0]
    if name is None or "*" in name:
        modules = name is not None and is_module(obj) and is_module(args.pos[2])
        if modules and isinstance(obj, Instance) and name is not None and families.takes(obj, name, args.pos[2]):
            families.register(it, obj, name, args.pos[2], site)
            return NONE
        kind = "data" if isinstance(obj, Instance) and is_record(obj, args.pos[2]) else ""
        cause = Unknown("an attribute was set under a name that is not known", kind=kind, places=here(site))
        taint(it, Args([obj]), cause)
        if isinstance(obj, Instance):
            spoil_attributes(it, obj, cause)
        return NONE
    it.set(obj, name, args.pos[2], site)
    return NONE


def _delattr(it: Interpreter, args: Args, site: Site | None) -> Value:
    obj, name = args.pos[0], text_of(args.pos[1])
    if isinstance(obj, Instance) and name:
        it.heap.touch(obj)
        obj.attrs.pop(name, None)
    elif isinstance(obj, Class) and name:
        it.heap.touch(obj.env)
        obj.env.names.pop(name, None)
    return NONE


def _vars(it: Interpreter, args: Args, site: Site | None) -> Value:
    obj = args.pos[0] if args.pos else None
    if isinstance(obj, Instance):
        return attribute_view(obj, obj.attrs, obj.taint)
    return Unknown("vars() of a value that is not known", "vars()", "dict", places=here(site))


FUNCTIONS: dict[str, Callable[..., Value]] = {
    "hasattr": _hasattr,
    "getattr": _getattr,
    "setattr": _setattr,
    "delattr": _delattr,
    "vars": _vars,
    "dir": lambda it, args, site: Unknown("dir() of a value", "dir()", "list"),
    "locals": lambda it, args, site: Unknown("locals() outside a function"),
    "globals": lambda it, args, site: Unknown("globals() outside a function"),
}
