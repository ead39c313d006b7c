"""Sequences and mappings, of a known length or not."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from auditor.dims import Dim, add
from auditor.values.base import Value, serial
from auditor.values.unknown import Unknown


@dataclass(slots=True)
class Star(Value):
    """Zero or more repetitions of `items` inside a sequence: what a loop of unknown length appends.

    `count` is how many items they make up together, when that is known as a polynomial. `replaced`: in this round of a
    loop (index, value, the items before it), the one under the index is the value, and some others may be by now.
    """

    items: tuple[Value, ...]
    count: Dim | None = None
    replaced: tuple[Value, Value, tuple[Value, ...]] | None = field(default=None, repr=False)


def each_once(items: Iterable[Value]) -> list[Value]:
    """Items of a sequence, those that are repeated once."""
    return [one for i in items for one in (i.items if isinstance(i, Star) else (i,))]


@dataclass(slots=True, eq=False)
class Seq(Value):
    """A list, tuple, set, frozenset or deque. `rest` is set when more items may follow that nobody knows."""

    kind: str
    items: list[Value]
    rest: Unknown | None = None
    born: int = field(default_factory=serial, kw_only=True, repr=False)

    def snapshot(self) -> tuple[list[Value], Unknown | None]:
        return list(self.items), self.rest

    def restore(self, content: tuple[list[Value], Unknown | None]) -> None:
        self.items, self.rest = list(content[0]), content[1]

    @property
    def exact(self) -> bool:
        """Whether every item is known to be there, exactly once."""
        if self.rest is not None:
            return False
        for i in self.items:  # noqa: SIM110  (a generator takes twice as long)
            if type(i) is Star:
                return False
        return True

    @property
    def count(self) -> Dim | None:
        """How many items there are; None when that is not known."""
        if self.rest is not None:
            return None
        total: Dim = 0
        for i in self.items:
            more = i.count if isinstance(i, Star) else 1
            if more is None:
                return None
            total = add(total, more)
        return total


Key = tuple[str, Any]


@dataclass(slots=True, eq=False)
class Mapping(Value):
    """A dict: `entries` maps a hashable key to (key value, value). `rest` is set when there may be more entries.

    `missing` is called for an entry that is not there: the factory of a `defaultdict`, the zero of a `Counter`.
    """

    entries: dict[Key, tuple[Value, Value]] = field(default_factory=dict)
    rest: Unknown | None = None
    missing: Value | None = None
    born: int = field(default_factory=serial, kw_only=True, repr=False)

    def snapshot(self) -> tuple[dict[Key, tuple[Value, Value]], Unknown | None]:
        return dict(self.entries), self.rest

    def restore(self, content: tuple[dict[Key, tuple[Value, Value]], Unknown | None]) -> None:
        self.entries, self.rest = dict(content[0]), content[1]

    def values(self) -> list[Value]:
        return [value for _, value in self.entries.values()]

    def get(self, name: str) -> Value | None:
        found = self.entries.get(("str", name))
        return found[1] if found else None
