"""Writes a value so that a reader has to follow it, and collects the lines and options that this takes."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

Value = Any
"""A bool, an int, a str, None, a list of str, or `OPEN`."""


class Open:
    """A flag that the environment decides: what a scan must not claim to know."""

    def __repr__(self) -> str:
        return "(os.environ.get('OPEN') is not None)"


OPEN = Open()


class Writer:
    """Collects the module-level lines and the flags of one script, and writes values in roundabout ways.

    `inside` says that the expression is used where `args` is at hand.
    """

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.top: list[str] = []
        self.flags: list[str] = []
        self.used: list[str] = []
        self._names = 0

    def name(self, stem: str) -> str:
        self._names += 1
        return f"{stem}_{self._names}"

    def constant(self) -> str:
        return self.name("K").upper()

    def lines(self, text: str) -> None:
        self.top += text.splitlines()

    def other(self, value: Value) -> Value:
        """A different value of the same type."""
        match value:
            case Open():
                return self.rng.random() < 0.5
            case bool():
                return not value
            case int():
                return value + self.rng.choice((1, 3, 7))
            case str():
                return f"{value}_x"
            case list():
                return [*value, "other"]
        return 3

    def write(self, value: Value, depth: int, inside: bool) -> str:
        """An expression of the value."""
        if depth <= 0 or self.rng.random() < 0.15:
            return repr(value)
        kinds = (object, type(value)) if value is not OPEN else (object,)
        ways = [w for kind in kinds for w in WAYS.get((kind, False), ())]
        if inside and value is not OPEN and not isinstance(value, list):
            ways += WAYS[object, True]
        chosen = self.rng.choice(ways)
        self.used.append(chosen.__name__)
        return chosen(self, value, depth - 1, inside)

    def truth(self, depth: int, inside: bool) -> tuple[str, bool]:
        known = self.rng.random() < 0.5
        return self.write(known, depth, inside), known


Way = Callable[[Writer, Any, int, bool], str]
"""Writes a value, to be followed `depth` levels deep, as an expression; `inside` says that `args` is at hand."""

WAYS: dict[tuple[type, bool], list[Way]] = {}
"""Ways by the type of the value (`object` for any) and by whether they need the command line."""


def way(kind: type, needs_args: bool = False) -> Callable[[Way], Way]:
    """Register a way to write values of a type."""

    def add(function: Way) -> Way:
        WAYS.setdefault((kind, needs_args), []).append(function)
        return function

    return add
