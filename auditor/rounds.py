"""What a round of a loop of unknown length has made: such objects are there once for each round.

    self.layers = nn.ModuleList([Layer(config) for i in range(n)])      # a layer, and its parts, for each round
    for layer in self.layers:
        layer.proj = Packed(layer.proj)                                 # once for each layer, and not again and again

An element of such a list stands for all of them. A later loop over the list changes another element in every round, so
that what it does to the parts that were made together with the element does not add up. That holds as long as the loop
is the only way to an element: one that is kept beside the list (`first = layers[0]`, `before = layer`) is *shared*.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Collection, Iterable, Iterator
from typing import Any

from auditor.values import (
    Bound,
    Const,
    Env,
    External,
    ExternalObject,
    Instance,
    Mapping,
    Native,
    NativeClass,
    Num,
    Pattern,
    Seq,
    Star,
    Tensor,
    Union,
    Unknown,
    Value,
    serial,
)

Span = tuple[int, int]
_DEPTH = 4
_WITHOUT_PARTS = frozenset({Const, Tensor, Num, Pattern, External, ExternalObject, Native, NativeClass, type(None)})


def elements(items: Iterable[Value]) -> Iterator[Value]:
    """What a round is about: the values among its items that can have parts and conditions of their own."""
    for item in items:
        match item:
            case Seq(items=inner) | Star(items=inner):
                yield from elements(inner)
            case Unknown(kind="int" | "float" | "bool" | "str"):
                pass
            case Instance() | Union() | Unknown():
                yield item


class Parts:
    """The elements that one round works on, and everything that was made together with them."""

    __slots__ = ("spans", "unknown")

    def __init__(self) -> None:
        self.spans: set[Span] = set()
        self.unknown: list[Unknown] = []

    def __bool__(self) -> bool:
        return bool(self.spans or self.unknown)

    def holds(self, value: Any) -> bool:
        """Whether an object is one of the elements or a part of one."""
        if isinstance(value, Instance):
            born = value.born
            for start, end in self.spans:  # noqa: SIM110  (a generator takes twice as long)
                if start < born < end:
                    return True
            return False
        one: Unknown | None = value if self.unknown and isinstance(value, Unknown) else None
        while one is not None:
            if any(one is u for u in self.unknown):
                return True
            one = one.of
        return False

    def in_value(self, value: Any, depth: int = _DEPTH) -> bool:
        """Whether an element or a part of one can be reached through a value."""
        kind = type(value)  # `isinstance` and `match` are too slow for the many values that this is asked of
        if not depth or kind in _WITHOUT_PARTS:
            return False
        depth -= 1
        inner: Iterable[Any] = ()
        if kind is Instance:
            if self.holds(value) or self.in_value(value.payload, depth):
                return True
            inner = value.attrs.values()
        elif kind is Seq or kind is Star:
            inner = value.items
        elif kind is Union:
            inner = value.options
        elif kind is Mapping:
            inner = value.values()
        elif kind is Bound:
            inner = (value.receiver,)
        elif isinstance(value, Unknown):
            return self.holds(value)
        for part in inner:  # noqa: SIM110
            if self.in_value(part, depth):
                return True
        return False

    def in_content(self, obj: Any, content: Any, names: Collection[str] | None = None) -> bool:
        """Whether an object whose content is this keeps an element (see `Heap`); of a scope, under one of `names`."""
        if self.holds(obj):
            return False
        match obj:
            case Env():
                return any(self.in_value(v, 2) for n, v in content.items() if names is None or n in names)
            case Instance():
                return any(self.in_value(v, 2) for v in content[0].values())
            case Seq():
                return any(self.in_value(v, 2) for v in content[0])
            case Mapping():
                return any(self.in_value(v, 2) for _, v in content[0].values())
        return False


class Rounds:
    """The rounds of loops of unknown length so far, as spans of serial numbers (see `values.serial`).

    Those that are `open` go on, the innermost last, each with how many branches had been taken when it began.
    """

    __slots__ = ("ends", "open", "shared", "starts")

    def __init__(self) -> None:
        self.starts: list[int] = []
        self.ends: list[int] = []
        self.open: list[tuple[int, int]] = []
        self.shared = Parts()

    def begin(self, taken: int) -> int:
        """A round begins, where so many branches have been taken; its number."""
        self.starts.append(serial())
        self.ends.append(0)
        self.open.append((len(self.starts) - 1, taken))
        return len(self.starts) - 1

    def end(self, number: int) -> None:
        self.ends[number] = serial()
        self.open.pop()

    def add(self, parts: Parts, items: Iterable[Value]) -> None:
        """These are elements, too."""
        for one in elements(items):
            for option in one.options if isinstance(one, Union) else (one,):
                if isinstance(option, Instance) and (span := self._innermost(option.born)) is not None:
                    parts.spans.add(span)
                elif isinstance(option, Unknown):
                    parts.unknown.append(option)

    def _innermost(self, born: int) -> Span | None:
        n = bisect(self.starts, born) - 1
        while n >= 0 and not self.starts[n] < born < self.ends[n]:
            n -= 1
        return (self.starts[n], self.ends[n]) if n >= 0 else None

    def share(self, parts: Parts) -> None:
        """These elements are kept somewhere beside their list."""
        self.shared.spans |= parts.spans
        self.shared.unknown += parts.unknown

    def is_shared(self, parts: Parts) -> bool:
        return bool(self.shared.spans & parts.spans) or any(map(self.shared.holds, parts.unknown))
