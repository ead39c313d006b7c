"""A model in memory: a cache of tokens, and a rule that gives the next token from those before it.

Its defects are those of graphs: `mask="late"` sees one row past its own, `recurrent` keeps what it saw, `ring` forgets.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from probes.backend import CapacityError
from probes.ports import Positions
from probes.signature import Signature

Rule = Callable[[Sequence[int]], int]


def counting(seed: int, vocab: int = 12, order: int = 2) -> Rule:
    """A random text rule by the last `order` tokens: it runs into cycles, so drafts are accepted now and then."""
    return lambda tokens: random.Random(f"{seed} {tuple(tokens[-order:])}").randrange(vocab)


def chaotic(seed: int, vocab: int = 6) -> Rule:
    """By all tokens: never the same again, so most drafts are rejected, and any stale or missing token shows."""
    return lambda tokens: random.Random(f"{seed} {tuple(tokens)}").randrange(vocab)


class MemoryModel:
    """A session. `calls` are (S, position) of every forward."""

    def __init__(
        self,
        rule: Rule,
        vocab: int = 12,
        capacity: int | None = 256,
        widths: tuple[int, ...] | None = None,
        mask: str = "causal",
        recurrent: bool = False,
        ring: int = 0,
        rows: str = "all",
    ) -> None:
        self.signature = Signature("main", (), (), ())
        self.capacity = capacity
        self.widths = widths
        self.vocab = vocab
        self.positions = Positions.RANGE
        self.precision = "float32"
        self.seconds = 0.0
        self.calls: list[tuple[int, int]] = []
        self._rule, self._mask, self._recurrent, self._ring, self._rows = rule, mask, recurrent, ring, rows
        self.reset()

    def reset(self, states: Mapping[str, Any] | None = None) -> None:
        self._cache: dict[int, int] = {}
        self._seen: list[int] = []

    def states(self) -> dict[str, Any]:
        return {}

    def overflow(self, allowed: bool) -> None:
        pass

    def forward(self, tokens: Sequence[int], position: int) -> Any:
        assert all(0 <= token < self.vocab for token in tokens)
        assert self.widths is None or len(tokens) in self.widths
        if self.capacity is not None and position + len(tokens) > self.capacity:
            raise CapacityError("full")
        self.calls.append((len(tokens), position))
        logits = np.zeros((len(tokens), self.vocab), np.float32)
        for index, token in enumerate(tokens):
            self._cache[self._slot(position + index)] = token
        for index, token in enumerate(tokens):
            self._seen.append(token)
            logits[index, self._rule(self._visible(position + index, position + len(tokens)))] = 1
        self.seconds = 1e-3
        return logits[-1:] if self._rows == "last" else logits

    def _slot(self, position: int) -> int:
        return position % self._ring if self._ring else position

    def _visible(self, row: int, end: int) -> list[int]:
        if self._recurrent:
            return self._seen
        last = min(row + 1, end - 1) if self._mask == "late" else row
        first = max(0, last + 1 - self._ring) if self._ring else 0
        return [self._cache.get(self._slot(position), 0) for position in range(first, last + 1)]
