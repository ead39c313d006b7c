"""Methods of Python's own types: one file a type; `attribute` finds the one that is asked for."""

from __future__ import annotations

import collections

from auditor import operators
from auditor.interpreter import Handler, Interpreter, RaiseSignal
from auditor.methods import mappings, sequences
from auditor.methods.items import ITEMS
from auditor.methods.mappings import from_keys
from auditor.methods.scalars import scalar_attribute
from auditor.methods.text import text_method
from auditor.places import Site, here
from auditor.values import NONE, Args, Bound, Const, Mapping, Native, Num, Pattern, Seq, Unknown, Value, is_none

UNBOUND: dict[str, dict[str, Handler]] = {
    "dict": {n: f for n, f in mappings.METHODS.items() if n != "fromkeys"},
    "list": sequences.METHODS,
    "set": sequences.METHODS,
}
"""What `dict.update` and the like are: the object comes first."""
__all__ = ["ITEMS", "UNBOUND", "attribute", "from_keys"]


_TYPES: dict[str, tuple[type, ...]] = {
    **{t.__name__: (t,) for t in (list, tuple, set, frozenset, collections.deque)},
    "dict": (dict, collections.OrderedDict, collections.Counter),
}


def _kind_of(obj: Seq | Mapping) -> str:
    """The name of the type of a container."""
    return obj.kind if isinstance(obj, Seq) else "dict"


def _has_method(obj: Seq | Mapping, name: str) -> bool:
    return not name.startswith("__") and any(hasattr(t, name) for t in _TYPES.get(_kind_of(obj), ()))


def _unfollowed(name: str) -> Handler:
    """A method that no table has: nobody knows what the container holds after it."""

    def method(it: Interpreter, args: Args, site: Site | None) -> Value:
        obj = args.pos[0]
        assert isinstance(obj, (Seq, Mapping))
        cause = Unknown(f"`{name}` of a {_kind_of(obj)} is not followed", f"{name}()", places=here(site))
        it.heap.touch(obj)
        if isinstance(obj, Mapping):
            obj.restore(({}, cause))
        elif obj.kind not in ("tuple", "frozenset"):
            obj.restore(([], cause))
        return cause

    return method


def attribute(it: Interpreter, obj: Value, name: str, site: Site | None) -> Value:
    """Attribute `name` of a value of a built-in type."""
    if is_none(obj):
        if name in ("__class__", "__doc__"):
            return NONE
        raise RaiseSignal("AttributeError")
    if isinstance(obj, (Seq, Mapping)):
        return _of_container(obj, name)
    if isinstance(obj, Pattern) or (isinstance(obj, Const) and isinstance(obj.value, str)):
        if hasattr(str, name):
            return Bound(Native(f"str.{name}", text_method(name)), obj)
    elif isinstance(obj, Const):
        return scalar_attribute(obj, name)
    elif isinstance(obj, Num):
        if name in ("real", "numerator"):
            return obj
        if name in ("item", "tolist") and it.events is not None:
            return Native(name, lambda it, args, s: it.events.bakes(obj, s, f"{name}()") or obj)
    if name == "__class__":
        return Native("str", lambda it, a, s: NONE)
    if isinstance(obj, (Num, Pattern)):
        return operators.unknown_from("an attribute of a value that is not known", "", obj, name=name)
    raise RaiseSignal("AttributeError")


def _of_container(obj: Seq | Mapping, name: str) -> Value:
    table = sequences.METHODS if isinstance(obj, Seq) else mappings.METHODS
    if name in table:
        return Bound(Native(name, table[name]), obj)
    if _has_method(obj, name):
        return Bound(Native(name, _unfollowed(name)), obj)
    if name == "__class__":
        return Native(_kind_of(obj), lambda it, a, s: NONE)
    if isinstance(obj, Seq) and obj.kind == "slice" and name in ("start", "stop", "step"):
        return obj.items[("start", "stop", "step").index(name)]
    raise RaiseSignal("AttributeError")
