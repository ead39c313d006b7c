"""How many tokens to draft: fixed, adaptive, or by the length of the match.

A policy is a value without memory: `after` gives the next length from the last one and what became of it, so the loop
and the simulator follow the same rules.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


class Policy(Protocol):
    """`first` is the draft length of the first round, `most` the largest that will be used."""

    @property
    def name(self) -> str: ...

    @property
    def first(self) -> int: ...

    @property
    def most(self) -> int: ...

    def wants(self, length: int, match: int) -> int:
        """How much of a draft of `length` to use when it rests on a match of `match` tokens."""
        ...

    def after(self, length: int, drafted: int, accepted: int) -> int:
        """The next length, after a round that was to draft `length`, drafted `drafted` and kept `accepted`."""
        ...


@dataclass(frozen=True, slots=True)
class Fixed:
    """Always `k`; 0 is the loop without speculation."""

    k: int

    @property
    def name(self) -> str:
        return f"K={self.k}"

    @property
    def first(self) -> int:
        return self.k

    @property
    def most(self) -> int:
        return self.k

    def wants(self, length: int, match: int) -> int:
        return length

    def after(self, length: int, drafted: int, accepted: int) -> int:
        return self.k


@dataclass(frozen=True, slots=True)
class Adaptive:
    """Start at 1; +2 after a fully accepted round, -1 after any rejection, within 1..`most`; no draft changes nothing.

    A draft that was cut by the budget or the cache counts like any other.
    """

    most: int

    @property
    def name(self) -> str:
        return f"adaptive:{self.most}"

    @property
    def first(self) -> int:
        return 1

    def wants(self, length: int, match: int) -> int:
        return length

    def after(self, length: int, drafted: int, accepted: int) -> int:
        if drafted == 0:
            return length
        return min(length + 2, self.most) if accepted == drafted else max(length - 1, 1)


@dataclass(frozen=True, slots=True)
class ByMatch:
    """`most` tokens where the match is at least `least` tokens long, else none."""

    most: int
    least: int

    @property
    def name(self) -> str:
        return f"match:{self.most}:{self.least}"

    @property
    def first(self) -> int:
        return self.most

    def wants(self, length: int, match: int) -> int:
        return length if match >= self.least else 0

    def after(self, length: int, drafted: int, accepted: int) -> int:
        return self.most


LIMIT = 64
"""A longer draft than this is a typing error."""


def parse(text: str) -> Policy:
    """`2`, `adaptive:7` or `match:7:3`; ValueError says what was expected.

    `adaptive` and `match::3` leave Kmax to the staircase: their `most` is 0 until `settled`.
    """
    kind, *rest = text.strip().split(":")
    try:
        if kind == "adaptive" and len(rest) <= 1:
            return Adaptive(_length(rest[0]) if rest and rest[0] else 0)
        if kind == "match" and len(rest) == 2:
            return ByMatch(_length(rest[0]) if rest[0] else 0, _length(rest[1]))
        if not rest:
            return Fixed(_length(kind))
    except ValueError:
        pass
    raise ValueError(f"{text!r}: 2, adaptive, adaptive:7 or match:7:3 was expected, lengths from 1 to {LIMIT}")


def settled(policy: Policy, most: int | None) -> Policy | None:
    """`policy` with `most` from the staircase where it was left open; None when there is none to take."""
    if policy.most:
        return policy
    if most is None:
        return None
    return ByMatch(most, policy.least) if isinstance(policy, ByMatch) else Adaptive(most)


def _length(text: str) -> int:
    value = int(text)
    if not 1 <= value <= LIMIT:
        raise ValueError(text)
    return value
