"""Attributes that are set."""

from __future__ import annotations

from functools import partial

from auditor.calls.graph_edits import edited
from auditor.interpreter import Interpreter
from auditor.objects.inheritance import class_lookup
from auditor.places import Site, here
from auditor.values import (
    Args,
    Bound,
    Class,
    Const,
    External,
    Function,
    Instance,
    Module,
    Native,
    NativeClass,
    Tensor,
    Union,
    Unknown,
    Value,
)

_FUNCTION_INTERNALS = frozenset(
    {"__code__", "__defaults__", "__kwdefaults__", "__globals__", "__closure__", "__wrapped__"}
)
"""Attributes of a function that decide what a call of it does."""


def rewire(it: Interpreter, function: Function, name: str, site: Site | None) -> None:
    """From now on nobody knows what a call of the function gives."""
    reason = f"`{name}` of `{function.name}` is changed"
    it.rewired[id(function)] = (function, Unknown(reason, function.name, "unread", places=here(site)))


def set_attribute(it: Interpreter, obj: Value, name: str, value: Value, site: Site | None) -> None:
    """`obj.name = value`."""
    match obj:
        case Union():
            for o in obj.options:
                it.fork([partial(set_attribute, it, o, name, value, site), lambda: None])
        case Instance() if name == "__class__":
            it.heap.touch(obj)
            obj.taint = Unknown("the class of the object is replaced", places=here(site))
        case NativeClass():
            it.poison = Unknown(f"`{obj.name}.{name}` is replaced", places=here(site))
        case Instance():
            _set_of_instance(it, obj, name, value, site)
        case Class():
            if name == "__bases__":
                it.poison = Unknown(f"the bases of `{obj.name}` are replaced", places=here(site))
            it.heap.touch(obj.env)
            obj.env.names[name] = value
        case Module():
            it.loader.keeper.patch(obj, name)
            it.heap.touch(obj.env)
            obj.env.names[name] = value
        case Unknown():
            edited(it, obj, site)
            it.heap.touch(obj)
            obj.assigned[f".{name}"] = value
        case Function():
            _set_of_function(it, obj, name, value, site)
        case Bound(function=Function() as f):
            set_attribute(it, f, name, value, site)
        case Tensor() if name == "data":
            if it.events is not None and site is not None:
                it.events.written(obj, site, None, value)
            elif isinstance(value, Tensor) and value.shape is not None:
                obj.shape = value.shape
        case Native() if name in _FUNCTION_INTERNALS:
            it.poison = it.poison or Unknown(f"`{name}` of `{obj.name}` is set", places=here(site))
        case External():
            it.loader.patch_external(it, f"{obj.dotted}.{name}", value)


def _set_of_instance(it: Interpreter, obj: Instance, name: str, value: Value, site: Site | None) -> None:
    """A property, a descriptor and a `__setattr__` of the class come before the object's own attributes."""
    found, _ = class_lookup(obj.cls, name)
    if isinstance(found, Function) and found.kind == "property" and found.setter is not None:
        it.call(found.setter, Args([obj, value]), site)
        return
    if isinstance(found, Instance) and class_lookup(found.cls, "__set__")[0] is not None:
        it.call(it.get(found, "__set__", site), Args([obj, value]), site)
        return
    setter, _ = class_lookup(obj.cls, "__setattr__")
    if isinstance(setter, (Native, Function)):
        it.call(setter, Args([obj, Const(name), value]), site)
        return
    it.heap.touch(obj)
    obj.attrs[name] = value


def _set_of_function(it: Interpreter, obj: Function, name: str, value: Value, site: Site | None) -> None:
    if name in _FUNCTION_INTERNALS:
        rewire(it, obj, name, site)
    if not it.loader.keeper.depth:
        it.attributed.setdefault(id(obj), (obj, dict(obj.attributes)))
    obj.attributes[name] = value
