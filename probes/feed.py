"""Inputs of a decode step, checked against the declaration before a runtime sees them.

A wrong state type or a token past the vocabulary ends some runtimes with a signal, and an overflowing cache is accepted
in silence; so nothing is left to them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from probes.backend import NotExecutable
from probes.ports import Ports, Positions, guess_positions
from probes.signature import DYNAMIC, Port, Signature, position_axis

if TYPE_CHECKING:
    from probes.backend import Array


@dataclass(frozen=True, slots=True)
class Feed:
    """How the inputs of one graph are made."""

    tokens: Port
    position: Port | None
    convention: Positions
    vocab: int
    counter: Port | None = None
    mask: Port | None = None

    def inputs(self, tokens: Sequence[int], position: int) -> dict[str, Array]:
        """Arrays for `tokens` at `position`; ValueError for a token outside the vocabulary."""
        import numpy as np

        if not all(0 <= token < self.vocab for token in tokens):
            raise ValueError(f"a token lies outside 0..{self.vocab - 1}")
        shape = (*(1 for _ in self.tokens.shape[:-1]), len(tokens))
        fed: dict[str, Array] = {self.tokens.name: np.asarray(tokens, self.tokens.dtype).reshape(shape)}
        if self.position is not None:
            values = {
                Positions.RANGE: range(position + len(tokens)),
                Positions.ROWS: range(position, position + len(tokens)),
                Positions.START: (position,),
            }[self.convention]
            rank = max(len(self.position.shape) - 1, 0)
            array = np.fromiter(values, self.position.dtype)
            fed[self.position.name] = array.reshape((1,) * rank + (-1,)) if self.position.shape else array.reshape(())
        if self.mask is not None:
            fed[self.mask.name] = causal(self.mask, len(tokens), position)
        return fed


def causal(mask: Port, rows: int, position: int) -> Array:
    """A causal mask for `rows` at `position`: floats are added to scores (0 or -inf), integers mean *seen* (1 or 0).

    Its columns are the declared ones, else those of the cached positions up to the last row, `position + rows`. Without
    a row dimension it is that of the last row.
    """
    import numpy as np

    by_rows = len(mask.shape) > 2
    columns = mask.shape[-1]
    if columns == DYNAMIC:
        partners = [shape[-1] for shape in mask.shapes if not by_rows or shape[-2] == rows]
        columns = partners[0] if partners else position + rows
    last = np.arange(position, position + rows) if by_rows else np.array([position + rows - 1])
    hidden = np.arange(columns)[None, :] > last[:, None]
    values = np.where(hidden, -np.inf, 0.0) if mask.is_float else ~hidden
    lead = (1,) * (len(mask.shape) - 2)
    return values.astype(mask.dtype).reshape((*lead, len(last), columns) if by_rows else (1, columns))


def feed(signature: Signature, found: Ports, convention: Positions | None, vocab: int | None) -> Feed:
    """The feed of a graph, or `NotExecutable` with what stands in the way."""
    if found.tokens is None:
        if found.embeds is not None:
            raise NotExecutable(
                f"the query is an embedding ({found.embeds}): inspected, not executable without its table"
            )
        raise NotExecutable("no input looks like token ids")
    if len(found.tokens.shape) not in (1, 2):
        raise NotExecutable(f"token ids of rank {len(found.tokens.shape)} ({found.tokens}) are not known here")
    if found.others:
        raise NotExecutable(f"nobody here knows what to feed to {', '.join(str(port) for port in found.others)}")
    if not found.logits:
        raise NotExecutable("no logits come out")
    size = found.logits[0].shape[-1] if len(found.logits) == 1 else sum(port.shape[-1] for port in found.logits)
    if size == DYNAMIC and vocab is None:
        raise NotExecutable("the vocabulary size is dynamic, and no metadata names it")
    limit = min(value for value in (vocab, size if size != DYNAMIC else None) if value)
    chosen = convention or guess_positions(found)
    if (chosen is Positions.NONE) is not (found.position is None):
        held = str(found.position) if found.position else "no position input"
        raise NotExecutable(f"positions given as {chosen!s} do not fit {held}")
    counter = next((port for port in signature.states if port.is_integer and position_axis(port) is None), None)
    return Feed(found.tokens, found.position, chosen, limit, counter, found.mask)


def widths(found: Ports) -> tuple[int, ...] | None:
    """The query widths that the graph takes; None for any."""
    width = found.query_width
    if found.enumerated:
        return found.enumerated
    return None if width in (None, DYNAMIC) else (int(width or 0),)


def state_shape(port: Port, capacity: int) -> tuple[int, ...]:
    """The shape to allocate: `capacity` rows in the position axis, 1 in any other dynamic dimension."""
    axis = position_axis(port)
    return tuple(capacity if index == axis else 1 if dim == DYNAMIC else dim for index, dim in enumerate(port.shape))
