"""Which rows of a state an item assignment writes: those where the query stands, or the same ones in every call.

cache[:, :, :rows] = k                       # the first rows, in every call
cache[:, :, length - rows : length] = k      # the last ones
cache[:, :, torch.arange(rows)] = k
cache[:, :, end - 1 : end] = k               # one row, of a query of one token
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from auditor import dims
from auditor.dims import Dim
from auditor.torch import progressions, row_places
from auditor.torch.keys import is_length
from auditor.values import Const, Num, Seq, Tensor, Unknown, Value, as_dim, is_none

Slices = list[tuple[Seq, Dim, Dim]]
"""The slices of a key, each with the length of its axis and of what is written along it."""


def in_the_same_place(key: Value | None, slices: Slices) -> bool:
    """Whether the rows that are written begin, or end, at the same row in every call."""
    for part, whole, rows in slices:
        if dims.is_query(rows) and (_from_a_number(part) or _at_its_end(part, whole)):
            return True
    return _counts_rows(key)


@dataclass(frozen=True, slots=True)
class Span:
    """As many rows of a state as the query has: the first of them, and the first one behind them."""

    begin: Dim
    end: Dim

    def ends_at(self, length: Dim) -> bool:
        """Whether as many rows as a length says end with these."""
        rows = dims.sub(self.end, self.begin)
        return any(dims.add(begin, rows) == length for begin in dims.options(self.begin))

    def begins_before(self, end: Dim) -> bool:
        """Whether some of these rows stand before the end of others."""
        behind = dims.sub(end, self.begin)
        return behind > 0 if isinstance(behind, int) else dims.is_query(behind)

    def missing_of(self, length: Dim) -> str:
        """What is wrong with what attention sees of a state up to a length: none of these rows, or some of them."""
        short, since = dims.sub(self.end, length), dims.sub(length, self.begin)
        if since == 0:
            return "attention sees the rows of a cache up to those of the query, and none of these"
        if isinstance(since, int) and since > 0:
            return f"attention sees {_rows(since)} of those that the query has written, however many these are"
        if isinstance(short, int) and short < 0 and _is_of_inputs(length):
            return f"attention sees {_rows(-short)} of a cache behind those that the query has written"
        if isinstance(short, int) and short > 0:
            return f"attention sees {_rows(short)} less of a cache than there are with those that the query has written"
        return ""


def _is_of_inputs(length: Dim) -> bool:
    """Whether a length is that of an axis of an input, or of several: rows that are added to it a mask may hide."""
    return isinstance(length, dims.Poly) and length.flexible and all(atoms for atoms, _ in length.terms)


def window(length: Dim, held: Sequence[Dim]) -> str:
    """What is wrong where attention sees a part of a state, `length` rows of one with this shape.

    A fixed number of rows ends with those of the query, or where it began: either way rows of the query see others than
    they would one by one. A mask that hides what is out of a window is no part: the state is seen as a whole.
    """
    if not isinstance(length, int) or length in held:
        return ""
    return f"attention sees {_rows(length)} of a cache, however many it holds"


def in_other_order(key: Value | None) -> bool:
    """Whether numbers that do not go up one by one say where rows of the query are written."""
    found = [(progressions.numbers(p), p) for p in _parts(key) if isinstance(p, Tensor) and p.pick is not None]
    return any(at is not None and at.step != 1 and progressions.is_known(p) for at, p in found)


def span(key: Value | None, slices: Slices) -> Span | None:
    """Where as many rows as the query has are written."""
    for part in _parts(key):
        at = progressions.numbers(part)
        rows = dims.product((part.shape if isinstance(part, Tensor) else None) or ())
        if at is not None and at.step == 1 and dims.is_query(rows):
            return Span(at.begin, dims.add(at.begin, rows))
    for part, _, rows in slices:
        begin = as_dim(part.items[0]) if dims.is_query(rows) else None
        if begin is not None:
            return Span(begin, dims.add(begin, rows))
    return None


def _rows(number: int) -> str:
    return f"{number} row{'' if number == 1 else 's'}"


def too_few(slices: Slices) -> str:
    """What is wrong where a number of rows that is the same in every call takes as many as the query has."""
    for part, _, rows in slices:
        if dims.is_query(rows):
            start, stop = (as_dim(b) for b in part.items[:2])
            length = dims.sub(stop, start) if start is not None and stop is not None else None
            if length is not None and length == dims.neg(rows):
                return f"no rows of a state take the `{rows}` rows of the query: a slice ends before it begins"
            if isinstance(length, int) and length >= 0:
                return f"{_rows(length)} of a state take the `{rows}` rows of the query"
    return ""


def ends_before(slices: Slices) -> bool:
    """Whether rows are left at the end of an axis, by a number or by as many as the query has: `[:, :, : -rows]`."""
    for part, whole, _ in slices:
        stop = as_dim(part.items[1])
        if isinstance(stop, int):
            if stop < 0 or (isinstance(whole, int) and stop < whole):
                return True
        elif stop is not None and dims.depends_on_query(stop) and stop != whole:
            return True
    return False


def capacity(target: Tensor, value: Value | None) -> Dim | None:
    """How long the axis of a state is along which it takes the rows of the query."""
    if not isinstance(value, Tensor) or value.shape is None or target.shape is None:
        return None
    pairs = zip(reversed(target.shape), reversed(value.shape), strict=False)
    return next((whole for whole, rows in pairs if dims.is_query(rows) and not dims.is_query(whole)), None)


def aligned(target: Tensor, key: Value | None, value: Value | None) -> Slices:
    """The slices of a key, where all of its parts are slices and numbers."""
    if target.shape is None or not isinstance(value, Tensor) or value.shape is None:
        return []
    kept: list[tuple[Seq | None, Dim]] = []
    parts = _parts(key)
    for part, whole in zip(parts, target.shape, strict=False):
        if isinstance(part, Seq) and part.kind == "slice":
            kept.append((part, whole))
        elif not isinstance(part, (Const, Num, Unknown)) or (isinstance(part, Const) and type(part.value) is not int):
            return []
    kept += [(None, whole) for whole in target.shape[len(parts) :]]
    pairs = zip(reversed(kept), reversed(value.shape), strict=False)
    return [(part, whole, length) for (part, whole), length in pairs if part is not None]


def clears(target: Tensor, key: Value | None, value: Value | None) -> bool:
    """Whether rows that earlier calls have written get what is the same in every call: `cache[:, :, :start] = 0`.

    From where the query stands on, nothing is lost: `cache[:, :, start:] = 0`.
    """
    if target.base is None or target.base.shape is None or target.shape is None or not _is_constant(value):
        return False
    parts = [p for p in _parts(key) if not (isinstance(p, Const) and (type(p.value) is int or p.value is ...))]
    if not all(isinstance(p, Seq) and p.kind == "slice" for p in parts):
        return False
    starts = [as_dim(p.items[0]) for p in parts if isinstance(p, Seq) and not is_none(p.items[0])]
    if any(s is None or not isinstance(s, int) for s in starts):
        return False
    tail = target.base.shape[len(target.base.shape) - len(target.shape) :]
    return len(tail) == len(target.shape) and all(map(_is_front, target.shape, tail))


def _is_constant(value: Value | None) -> bool:
    if isinstance(value, Tensor):
        return (
            not value.tags
            and not value.cuts
            and value.shape is not None
            and not any(map(dims.depends_on_query, value.shape))
        )
    return isinstance(value, Const)


def _is_front(length: Dim, whole: Dim) -> bool:
    """Whether so much of an axis is its beginning, or all of it: not the rows of this call, or what is behind them."""
    if length == whole or isinstance(length, int):
        return True
    return not dims.is_query(length) and not dims.counts_from(length, whole)


def _from_a_number(part: Seq) -> bool:
    """`[4:end]`."""
    start, stop = part.items[:2]
    fixed = is_none(start) or (isinstance(start, Const) and type(start.value) is int and start.value >= 0)
    return fixed and not is_none(stop)


def _at_its_end(part: Seq, whole: Dim) -> bool:
    """`[length - rows : length]`."""
    start, stop = as_dim(part.items[0]), as_dim(part.items[1])
    reaches = is_length(part.items[0]) and stop in (None, whole)
    return reaches and start is not None and dims.is_query(dims.sub(whole, start))


def _counts_rows(key: Value | None) -> bool:
    return any(isinstance(p, Tensor) and row_places.from_a_fixed_row(p) for p in _parts(key))


def _parts(key: Value | None) -> list[Value]:
    return key.items if isinstance(key, Seq) and key.kind == "tuple" else [key] if key is not None else []
