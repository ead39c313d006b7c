"""Which of two position conventions a graph follows where its shapes allow both: seen by the row that a step writes."""

from __future__ import annotations

from collections.abc import Callable

from probes.backend import Session
from probes.gates.bench import changed_rows
from probes.ports import Positions
from probes.roles import role_of
from probes.signature import Port, fixed_axis, position_axis

_AT = 3


def settle(open_as: Callable[[Positions | None], Session]) -> Session:
    """The session under the convention by which a step at position 3 writes row 3.

    A position input `[1, ?]` beside a query `[1, ?]` may want the whole range or one position a row. The first is the
    guess; it stands unless the second, and only the second, writes the right row. Without a cache, nothing shows.
    """
    guessed = open_as(None)
    if guessed.positions is not Positions.RANGE or guessed.widths is not None or _writes_its_row(guessed):
        return guessed
    other = open_as(Positions.ROWS)
    return other if _writes_its_row(other) else open_as(None)


def _axis(port: Port) -> int | None:
    """The dimension that counts positions: the dynamic one, else where a cache of fixed shape has its capacity."""
    growing = position_axis(port)
    return fixed_axis(port) if growing is None and role_of(port)[0].is_kv else growing


def _writes_its_row(session: Session) -> bool:
    try:
        session.reset()
        session.forward([session.vocab // 2 + index for index in range(_AT)] if session.vocab > 6 else [0] * _AT, 0)
        before = session.states()
        session.forward([1], _AT)
        after = session.states()
    except (RuntimeError, ValueError):
        return False
    finally:
        session.reset()
    axes = {port.name: _axis(port) for port in session.signature.states}
    return any(
        axis is not None and changed_rows(before[name], after[name], axis) == [_AT] for name, axis in axes.items()
    )
