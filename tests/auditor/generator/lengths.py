"""A length of a tensor, and what shapes do with each other.

A length is an `int` that remembers how it was made; `int()` of one forgets it, as `torch.jit.trace` does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

Lengths = dict[str, int]
"""What the flexible axes of the inputs are, by the name of the axis."""


class Refused(Exception):
    """The program does not run at these lengths."""


class Length(int):
    """An axis as a number: `told` gives it for other lengths. `wraps` when a remainder went into it."""

    told: Callable[[Lengths], int]
    wraps: bool

    def __new__(cls, value: int, told: Callable[[Lengths], int], wraps: bool = False) -> Length:
        made = super().__new__(cls, value)
        made.told, made.wraps = told, wraps
        return made

    def item(self) -> int:
        return int(self)

    def _with(self, other: Any, how: Callable[[int, int], int], wraps: bool = False) -> Any:
        if not isinstance(other, int):
            return NotImplemented
        theirs = at(other)
        mine = self.told
        wraps = wraps or self.wraps or getattr(other, "wraps", False)
        return Length(how(int(self), int(other)), lambda e: how(mine(e), theirs(e)), wraps)

    def __add__(self, other: Any) -> Any:
        return self._with(other, lambda a, b: a + b)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        return self._with(other, lambda a, b: a - b)

    def __rsub__(self, other: Any) -> Any:
        return self._with(other, lambda a, b: b - a)

    def __mul__(self, other: Any) -> Any:
        return self._with(other, lambda a, b: a * b)

    __rmul__ = __mul__

    def __floordiv__(self, other: Any) -> Any:
        return self._with(other, lambda a, b: a // b)

    def __mod__(self, other: Any) -> Any:
        return self._with(other, lambda a, b: a % b, wraps=True)

    def __neg__(self) -> Any:
        return self * -1


def at(value: int) -> Callable[[Lengths], int]:
    return value.told if isinstance(value, Length) else lambda e: int(value)


def fits(target: Sequence[int], value: Sequence[int]) -> None:
    if broadcast(target, value) != tuple(target):
        raise Refused("a value that does not fit where it is written")


def broadcast(a: Sequence[int], b: Sequence[int]) -> tuple[int, ...]:
    rank = max(len(a), len(b))
    pairs = zip((1,) * (rank - len(a)) + tuple(a), (1,) * (rank - len(b)) + tuple(b), strict=True)
    out = []
    for x, y in pairs:
        if x != y and 1 not in (x, y):
            raise Refused("shapes that do not broadcast")
        out.append(max(x, y) if 1 in (x, y) else x)
    return tuple(out)
