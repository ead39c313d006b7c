"""The opened graph as the gates use it: prompts, steps, prefixes, and the bookkeeping of widths and capacity."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from probes.ports import most_rows
from probes.roles import role_of
from probes.signature import fixed_axis, position_axis
from probes.tolerance import Tolerance, tolerance

if TYPE_CHECKING:
    from probes.backend import Array, Rows, Session

Snapshot = dict[str, "Array"]


@dataclass(frozen=True, slots=True)
class BenchOptions:
    """`width` is the largest S that will be used; `prefix` the tokens before the compared rows; `window` the largest
    sliding window that the program shows (0: none seen); `soak` the forwards of the gate `soak`."""

    width: int = 16
    prefix: int = 40
    seed: int = 0
    window: int = 0
    soak: int = 0


class Bench:
    """A session with a deterministic prompt. `tick` is called once a forward, for progress."""

    def __init__(self, session: Session, options: BenchOptions, tick: Callable[[], None] = lambda: None) -> None:
        self.session = session
        self.options = options
        self.tolerance: Tolerance = tolerance(session.precision)
        self._tick = tick
        self.widths = tuple(range(1, self._room() + 1)) if session.widths is None else session.widths
        self.prefix = self._prefix()

    def _room(self) -> int:
        """The widest query: a quarter of a short cache at most, so that prefix, junk and right tokens fit as well."""
        declared = most_rows(self.session.signature)
        widest = self.options.width if declared is None else min(self.options.width, declared)
        if self.session.capacity is None:
            return widest
        return max(1, min(widest, self.session.capacity // 4))

    def _prefix(self) -> int:
        """Longer than any window that was seen, and short enough to leave room for junk and right tokens."""
        wanted = max(self.options.prefix, self.options.window + 8 if self.options.window else 0)
        if self.session.capacity is None:
            return wanted
        return max(1, min(wanted, self.session.capacity - 2 * self.widest))

    @property
    def widest(self) -> int:
        return max(self.widths)

    @property
    def single(self) -> bool:
        """Whether the graph takes one position only, so that nothing can be verified together."""
        return self.widths == (1,)

    @property
    def only_one(self) -> str:
        """Why there is no wider query than S=1."""
        return "no S above 1 was asked for" if self.session.widths is None else "the graph takes S=1 only"

    def tokens(self, count: int, salt: int = 0) -> list[int]:
        """`count` tokens, always the same for one salt; different salts differ at every place."""
        import numpy as np

        draw = np.random.default_rng((self.options.seed, 1)).integers(0, self.session.vocab, count)
        return [int(token) for token in (draw + salt * (self.session.vocab // 3 + 1)) % self.session.vocab]

    def forward(self, tokens: Sequence[int], position: int) -> Rows:
        self._tick()
        return self.session.forward(tokens, position)

    def feed(self, tokens: Sequence[int], position: int) -> Rows:
        """Run `tokens` in the widest pieces that the graph takes; the rows of all (or of the last, if it gives one).

        A graph of one fixed width gets its last piece padded; the padding lies behind every row that is kept.
        """
        import numpy as np

        kept = []
        start = 0
        while start < len(tokens):
            left = len(tokens) - start
            width = max((one for one in self.widths if one <= left), default=min(self.widths))
            piece = list(tokens[start : start + width])
            rows = self.forward(piece + [piece[-1]] * (width - len(piece)), position + start)
            kept.append(rows if len(rows) != width else rows[: len(piece)])
            start += len(piece)
        return np.concatenate(kept) if len(kept) > 1 else kept[0]

    def steps(self, tokens: Sequence[int], position: int) -> Rows:
        """Run `tokens` one by one; the last row of each step."""
        import numpy as np

        return np.stack([self.feed([token], position + index)[-1] for index, token in enumerate(tokens)])

    def prefill(self, tokens: Sequence[int]) -> Snapshot:
        """Fresh states, `tokens` from position 0; the states as they are then."""
        self.session.reset()
        self.feed(tokens, 0)
        return self.session.states()

    def back(self, snapshot: Snapshot) -> None:
        self.session.reset(snapshot)

    def indexed(self) -> dict[str, int]:
        """The declared position axis of every state that has one."""
        axes = {port.name: position_axis(port) for port in self.session.signature.states}
        return {name: axis for name, axis in axes.items() if axis is not None}

    def axes(self, start: Snapshot, position: int) -> dict[str, int]:
        """`indexed`, and the axis of a cache of fixed shape where a step at `position` is seen to write that row.

        A graph of one fixed width pads the step, and the padding is written behind the row.
        """
        found = self.indexed()
        self.back(start)
        self.steps(self.tokens(1, 1), position)
        after = self.session.states()
        for port in self.session.signature.states:
            axis = fixed_axis(port)
            if port.name in found or axis is None or not role_of(port)[0].is_kv:
                continue
            written = changed_rows(start[port.name], after[port.name], axis)
            if written and written[0] == position and written[-1] < position + min(self.widths):
                found[port.name] = axis
        return found


def changed_rows(before: Array, after: Array, axis: int) -> list[int]:
    """The indices of `axis` whose slice differs between two copies of a state."""
    import numpy as np

    differs = before != after
    other = tuple(index for index in range(differs.ndim) if index != axis)
    return [int(row) for row in np.nonzero(differs.any(axis=other))[0]]
