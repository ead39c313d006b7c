"""Buffers and modules that a long loop sets under counted names (`k_cache_0`, ...): one stands for all of them."""

from __future__ import annotations

from fnmatch import fnmatchcase

from auditor.dims import Dim
from auditor.interpreter import Interpreter
from auditor.joins import present
from auditor.places import Site
from auditor.sameness import same
from auditor.torch import regions
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


def find(obj: Instance, name: str, number: Dim | None = None) -> Value | None:
    """The only attribute whose name can be `name`, either of which may have unknown parts; None where there is none.

    `number` stands for the unknown part of the name.
    """
    if not name.strip("*"):
        return None
    found = [(n, v) for n, v in obj.attrs.items() if n == name or ("*" in n and _meet(n, name)) or _meet(name, n)]
    if len(found) != 1:
        return None
    family, value = found[0][0], present(found[0][1])
    if not isinstance(value, Tensor) or "*" not in family:
        return value
    return regions.member(value, number if "*" in name else _numbered(family, name))


def _numbered(family: str, name: str) -> int | None:
    """The number of a member by its name."""
    before, _, behind = family.partition("*")
    number = name[len(before) : len(name) - len(behind)]
    return int(number) if number.isdecimal() else None


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
