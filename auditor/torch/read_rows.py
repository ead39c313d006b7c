"""Which rows of a cache that this call has written are read: they have to end with those of the query.

keys = cache[:, :, end - window : end]     # the first row of the query has fewer before it than by itself
keys = cache[:, :, :end:2]                 # every other row
"""

from __future__ import annotations

from collections.abc import Iterator

from auditor import dims
from auditor.dims import Dim, Poly
from auditor.interpreter import Interpreter
from auditor.torch import progressions
from auditor.torch.written_rows import Span
from auditor.values import Tensor


def has_rows(it: Interpreter, t: Tensor, axis: int) -> bool:
    """Whether rows of a cache that has been written lie along an axis."""
    length = t.shape[axis] if t.shape is not None else 0
    flexible = dims.is_flexible(length) and not dims.is_query(length)
    return flexible and next(_spans(it, t), None) is not None


def are_elsewhere(it: Interpreter, t: Tensor, axis: int, start: Dim, step: int = 1) -> bool:
    """Whether what is read from `start` on has other rows than a call over one row would read before the query's."""
    if t.shape is None or (step == 1 and not isinstance(start, Poly)):
        return False
    whole = t.shape[axis]
    if dims.less(start, 0):
        start = dims.add(whole, start)
    for span in _spans(it, t):
        if _lies_along(t, axis, span) and (step != 1 or any(_depends(span, s) for s in dims.options(start))):
            return True
    return False


def are_further_on(it: Interpreter, t: Tensor, axis: int, index: Tensor) -> bool:
    """Whether numbers that go up one by one, but not from 0 on, take rows of a cache: see `are_elsewhere`."""
    at = progressions.numbers(index)
    if at is None or at.step != 1 or at.begin == 0 or t.shape is None:
        return False
    end = dims.add(at.begin, dims.product(index.shape or ()))
    behind = [dims.sub(end, span.end) for span in _spans(it, t) if _lies_along(t, axis, span)]
    return any(isinstance(d, int) and d > 0 for d in behind) or are_elsewhere(it, t, axis, at.begin)


def _depends(span: Span, start: Dim) -> bool:
    """Whether the number of rows before those of the query depends on how many these are."""
    before = dims.sub(span.begin, start)
    return isinstance(start, Poly) and dims.depends_on_query(before) and not dims.is_query(before)


def _lies_along(t: Tensor, axis: int, span: Span) -> bool:
    """Whether an axis has as many places as were written by now, or those of a cache whose length may differ."""
    length = t.shape[axis] if t.shape is not None else 0
    return length == span.end or (dims.is_flexible(length) and not dims.is_query(length))


def _spans(it: Interpreter, t: Tensor) -> Iterator[Span]:
    for write in it.events.writes_to(t) if it.events is not None else ():
        if write.span is not None:
            yield write.span
