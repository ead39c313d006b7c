"""What every value has, and how what is computed takes it over from where it came."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from auditor.places import Site

Copied = TypeVar("Copied")
NO_FLAGS: frozenset[str] = frozenset()
MAX_PLACES = 6

serial = itertools.count().__next__
"""Numbers mutable values and journal frames in the order of their making (see `Heap.touch`)."""


@dataclass(slots=True, eq=False)
class Value:
    """Base of all values.

    It has no equality of its own: the mutable kinds would inherit it, and any two of one place would be equal.
    """

    places: tuple[Site, ...] = field(default=(), kw_only=True)
    flags: frozenset[str] = field(default=NO_FLAGS, kw_only=True)


Test = tuple[str, Value, Any]
"""A question about a value: (`==` or `!=`, the value, a constant) or (`not`, the value, None)."""


def merge_places(*groups: Iterable[Site]) -> tuple[Site, ...]:
    """The first few distinct places, in order."""
    out: tuple[Site, ...] = ()
    for g in groups:
        if not g or g is out:
            continue
        if not out:
            out = g if type(g) is tuple else tuple(g)
            continue
        for p in g:
            if p not in out:
                out = (*out, p)
        if len(out) >= MAX_PLACES:
            return out[:MAX_PLACES]
    return out


def merge_flags(values: Iterable[Value]) -> frozenset[str]:
    out = NO_FLAGS
    for v in values:
        if v.flags:
            out = out | v.flags
    return out


def origins(values: Iterable[Value]) -> tuple[tuple[Site, ...], frozenset[str]]:
    """The places (see `merge_places`) and the flags of what is computed from these values."""
    places: tuple[Site, ...] = ()
    flags = NO_FLAGS
    for v in values:
        if v.places and v.places is not places:
            places = merge_places(places, v.places) if places else v.places
        if v.flags:
            flags = flags | v.flags
    return places, flags


def altered(value: Copied, **fields: Any) -> Copied:
    """`dataclasses.replace` for the classes of values, which have slots, and without a slow call of `__init__`."""
    kind = type(value)
    slots = _slots.get(kind)
    if slots is None:
        slots = _slots[kind] = tuple(f.name for f in dataclasses.fields(value))  # type: ignore[arg-type]
    made = object.__new__(kind)
    for name in slots:
        setattr(made, name, fields[name] if name in fields else getattr(value, name))
    return made


_slots: dict[type, tuple[str, ...]] = {}
