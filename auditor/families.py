"""Buffers and modules that a long loop sets under counted names (`k_cache_0`, ...): one stands for all of them."""

from __future__ import annotations

from fnmatch import fnmatchcase

from auditor.interpreter import Interpreter
from auditor.joins import present
from auditor.places import Site
from auditor.sameness import same
from auditor.values import Instance, Tensor, Unknown, Value


def register(it: Interpreter, obj: Instance, name: str, value: Value, site: Site | None) -> None:
    """Keep `value` under a name with unknown parts; what differs from the buffers of an earlier loop is unknown.

    A loop of unknown length runs its body several times, so that the same call registers the same buffer again.
    """
    old = present(obj.attrs[name]) if name in obj.attrs else None
    if isinstance(old, Tensor) and isinstance(value, Tensor):
        if old.shape == value.shape and old.places == value.places:
            return
        value = Tensor(None, reason=Unknown(f"buffers of several shapes have the name `{name}`", places=old.places))
    elif old is not None and same(old, value):
        return
    it.heap.touch(obj)
    obj.attrs[name] = value


def find(obj: Instance, name: str) -> Value | None:
    """The only attribute whose name can be `name`, either of which may have unknown parts; None where there is none."""
    if not name.strip("*"):
        return None
    found = [v for n, v in obj.attrs.items() if n == name or ("*" in n and _meet(n, name)) or _meet(name, n)]
    return present(found[0]) if len(found) == 1 else None


def takes(obj: Instance, name: str, value: Value) -> bool:
    """Whether `value` can be kept under a name with unknown parts: no other attribute can be meant by it.

    What the same line has put there before is the same family.
    """
    if not name.strip("*"):
        return False
    own = present(obj.attrs[name]) if name in obj.attrs else None
    if own is not None and (not isinstance(own, Instance) or own.places != value.places):
        return False
    return not any(n != name and (_meet(name, n) or _meet(n, name)) for n in obj.attrs)


def _meet(pattern: str, name: str) -> bool:
    return "*" in pattern and fnmatchcase(name, pattern.replace("[", "[[]").replace("?", "[?]"))
