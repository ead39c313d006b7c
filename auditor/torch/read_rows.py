"""Which rows of a cache that this call has written are read: they have to end with those of the query.

keys = cache[:, :, end - window : end]     # the first row of the query has fewer before it than by itself
keys = cache[:, :, :end:2]                 # every other row
keys = keys - keys[:, :, -1:]              # the last one goes into all of them
keys = cat([cache[:, :, :end], k], 2)      # those of the query stand there twice
keys = cache.view(1, h, -1, 4, d).mean(3)  # the last block has rows behind the first of the query
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from auditor import dims
from auditor.dims import Dim, Poly
from auditor.interpreter import Interpreter
from auditor.places import Site
from auditor.torch import progressions, regions
from auditor.torch.positions import is_cache
from auditor.torch.shapes import Shape
from auditor.torch.written_rows import Span
from auditor.values import Const, Tensor, Value, as_dim, is_none
from auditor.values.tags import Blocks


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


def is_one(it: Interpreter, t: Tensor, axis: int, place: Value | None) -> bool:
    """Whether one row of a cache is taken that is another one in each call: the last, or the first of the query."""
    if t.shape is None or (isinstance(place, Const) and (is_none(place) or as_dim(place) in range(2**31))):
        return False
    rooms = it.events.rooms(t) if it.events is not None and place is not None else ()
    return place is not None and (has_rows(it, t, axis) or t.shape[axis] in rooms)


def take_in(it: Interpreter, values: Sequence[Value], shape: Sequence[Dim]) -> bool:
    """Whether one row that was cut out of the query goes into all rows of a cache."""
    tensors = [v for v in values if isinstance(v, Tensor) and v.shape is not None]
    for cut in tensors:
        if not cut.cuts or cut.dtype.startswith(("int", "uint", "bool")):
            continue
        short = [n for n in range(1, len(shape) + 1) if n > len(cut.shape or ()) or (cut.shape or ())[-n] == 1]
        held = [t for t in tensors if t is not cut and is_cache(t)]
        if any(has_rows(it, t, len(t.shape or ()) - n) for t in held for n in short if n <= len(t.shape or ())):
            return True
    return False


def in_blocks(it: Interpreter, made: Tensor, t: Tensor) -> Tensor:
    """Mark `made`, which is `t` in another shape, when the rows of a cache lie along several of its axes."""
    source, target = t.shape, made.shape
    if it.events is None or not it.events.writes or source is None or target is None or len(source) < 3:
        return made
    gone = [n for n, d in enumerate(source[:-1]) if d != 1 and d not in target]
    split = [n for n in gone if all(dims.exact_div(d, source[n]) is None for d in target)]
    rooms = it.events.rooms(t) if split and is_cache(t) else ()
    for axis in split if rooms else ():
        if has_rows(it, t, axis) or (source[axis] in rooms and source.count(source[axis]) == 1):
            made.tags = made.tags | {Blocks.of(_parts_of(source, axis, target))}
    return made


def _parts_of(source: Shape, axis: int, target: Shape) -> Shape:
    """The axes that one was split into: those between what stands before it and behind it."""
    before, behind = dims.product(source[:axis]), dims.product(source[axis + 1 :])
    first = max((n for n in range(len(target)) if dims.product(target[:n]) == before), default=0)
    ends = [n for n in range(first, len(target)) if dims.product(target[n:]) == behind]
    return target[first : ends[0] if ends else len(target) - 1]


def over_blocks(t: Tensor, axes: Collection[int]) -> bool:
    """Whether one of the axes has rows of a cache that were put into blocks: a number for a block has several in it."""
    lengths = {d for tag in t.tags if type(tag) is Blocks for d in tag.lengths}
    return bool(lengths) and any((t.shape or ())[n] in lengths for n in axes if n < len(t.shape or ()))


def overlap(it: Interpreter, parts: Sequence[Tensor], axis: int, site: Site) -> bool:
    """Whether rows of a cache are joined with those of the query, some of which it has already.

    Where the cache is written later, the events tell.
    """
    head = parts[0]
    held = regions.region(head)
    at = held.axes[axis] if held is not None and axis < len(held.axes) else None
    if held is None or at is None or len(parts) < 2 or not _are_new(parts[1], axis):
        return False
    end, spans = dims.add(*held.extents[at]), list(_spans(it, head))
    if not spans and it.events is not None and head.base is not None:
        it.events.joined.append((head.base, end, site))
    return any(span.begins_before(end) for span in spans)


def _are_new(t: Tensor, axis: int) -> bool:
    return t.base is None and t.shape is not None and axis < len(t.shape) and dims.is_query(t.shape[axis])


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
