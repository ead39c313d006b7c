"""The model's own choice for every position of a query, taken from the runtime's arrays where they lie.

`[1, S, vocabulary]` is neither converted nor copied: at 150 thousand tokens that alone would cost a share of a forward.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    from probes.backend import Array, Session


@runtime_checkable
class Raw(Protocol):
    """A session that gives logits as the runtime left them: the parts of the vocabulary, [..., rows, part] each."""

    def raw(self, tokens: Sequence[int], position: int) -> Sequence[Array]: ...


@dataclass(frozen=True, slots=True)
class Chosen:
    """One token for each row, and the seconds that the argmax took."""

    tokens: list[int]
    seconds: float


def choose(session: Session, tokens: Sequence[int], position: int, last_only: bool = False) -> Chosen:
    """Run `tokens` at `position`; the argmax of every row, or of the last one.

    ValueError when fewer rows than positions come out and all are needed: such a graph cannot verify a draft.
    """
    parts = session.raw(tokens, position) if isinstance(session, Raw) else [session.forward(tokens, position)]
    started = time.perf_counter()
    views = [part.reshape(-1, part.shape[-1]) for part in parts]
    rows = len(views[0])
    if not last_only and rows != len(tokens):
        raise ValueError(f"{rows} rows came out for S={len(tokens)}: the graph cannot verify drafts")
    wanted = range(rows - 1, rows) if last_only else range(rows)
    chosen = [_best(views, row) for row in wanted]
    return Chosen(chosen, time.perf_counter() - started)


def _best(parts: Sequence[Array], row: int) -> int:
    """The argmax over the parts of the vocabulary; the first of equals, as in one array."""
    if len(parts) == 1:
        return int(parts[0][row].argmax())
    start, best, found = 0, None, 0
    for part in parts:
        index = int(part[row].argmax())
        if best is None or part[row][index] > best:
            best, found = part[row][index], start + index
        start += part.shape[-1]
    return found
