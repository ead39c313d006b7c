"""Which part of a state a view is, axis by axis: so that two writes to one layer of a cache are known as such.

cache[layer, :, :, start:end]            # by one key
cache[layer][:, :, start:end]            # of a view
cache.select(0, layer).narrow(2, start, rows)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from auditor import dims
from auditor.dims import Dim
from auditor.torch.shapes import slice_length
from auditor.values import Const, Num, Region, Seq, Storage, Tensor, Unknown, Value, altered, as_dim, is_none


def region(t: Tensor) -> Region | None:
    """The part of its storage that a tensor is; None where it was not followed; weights are no state."""
    base = t.base
    if t.region is not None or base is None or base.role == "parameter" or base.shape is None or t.shape != base.shape:
        return t.region
    return whole(base)


def whole(storage: Storage) -> Region | None:
    """All of a storage, as far as its shape is known."""
    if storage.shape is None:
        return None
    return Region(tuple((0, length) for length in storage.shape), tuple(range(len(storage.shape))))


def taken(t: Tensor, axis: int, begin: Dim | None, length: Dim | None = None) -> Region | None:
    """So many places of an axis, from one on; one alone takes the axis away."""
    held = region(t)
    if held is None or begin is None or not 0 <= axis < len(held.axes):
        return None
    cut = _cut(held, axis, begin, 1 if length is None else length)
    return _without(cut, axis) if length is None and cut is not None else cut


def member(t: Tensor, number: Dim | None) -> Tensor:
    """The storage of this number, of those that one stands for."""
    held = region(t) if number is not None else None
    return altered(t, region=replace(held, member=number)) if held is not None else t


def loose(t: Tensor) -> Region | None:
    """The same part in another form: which of its axes is which is not followed."""
    held = region(t)
    return replace(held, axes=()) if held is not None else None


def ordered(t: Tensor, order: Sequence[int]) -> Region | None:
    """The axes in another order."""
    held = region(t)
    if held is None or len(order) != len(held.axes):
        return None
    return replace(held, axes=tuple(held.axes[n] for n in order))


def widened(t: Tensor, axis: int) -> Region | None:
    """An axis of length 1 is put in."""
    held = region(t)
    if held is None:
        return None
    return replace(held, axes=(*held.axes[:axis], None, *held.axes[axis:]))


def dropped(t: Tensor, axis: int) -> Region | None:
    """An axis of length 1 is taken away."""
    held = region(t)
    return _without(held, axis) if held is not None and axis < len(held.axes) else None


def keyed(t: Tensor, key: Value | None) -> Region | None:
    """The part of the storage that `t[key]` is, or that is written by this key."""
    held = region(t)
    if held is None or t.shape is None or key is None:
        return held
    keys = list(key.items) if isinstance(key, Seq) and key.kind == "tuple" else [key]
    used = sum(1 for k in keys if not is_none(k) and not _is_ellipsis(k))
    axis = 0  # of what is left of the view, while axes are taken away and put in
    for k in keys:
        if held is None or used > len(t.shape):
            return None
        if _is_ellipsis(k):
            axis += len(t.shape) - used
        elif is_none(k):
            held = replace(held, axes=(*held.axes[:axis], None, *held.axes[axis:]))
            axis += 1
        elif isinstance(k, Seq) and k.kind == "slice":
            held = _sliced(held, axis, k)
            axis += 1
        elif isinstance(k, Tensor):
            held = _at_numbers(held, axis, k)
        else:
            place = as_dim(k) if isinstance(k, (Const, Num, Unknown)) else None
            cut = _cut(held, axis, place, 1) if place is not None else None
            held = _without(cut, axis) if cut is not None else None
    return held


def _is_ellipsis(k: Value) -> bool:
    return isinstance(k, Const) and k.value is ...


def _sliced(held: Region, axis: int, bounds: Seq) -> Region | None:
    if all(map(is_none, bounds.items)):
        return held
    start, stop, step = (None if is_none(b) else as_dim(b) for b in bounds.items)
    if step not in (None, 1) or any(
        v is None and not is_none(b) for v, b in zip((start, stop), bounds.items[:2], strict=True)
    ):
        return None
    if start in (None, 0) and stop is None:
        return held
    at = held.axes[axis] if axis < len(held.axes) else None
    if at is None:
        return held if axis < len(held.axes) else None
    return _cut(held, axis, start or 0, slice_length(held.extents[at][1], start, stop))


def _cut(held: Region, axis: int, begin: Dim, length: Dim) -> Region | None:
    if axis >= len(held.axes):
        return None
    at = held.axes[axis]
    if at is None:
        return held
    first, whole = held.extents[at]
    if begin != 0 and dims.less(begin, 0):
        begin = dims.add(whole, begin)
    extents = (*held.extents[:at], (dims.add(first, begin) if first else begin, length), *held.extents[at + 1 :])
    return Region(extents, held.axes, held.numbered, held.member)


def _without(held: Region, axis: int) -> Region:
    return Region(held.extents, (*held.axes[:axis], *held.axes[axis + 1 :]), held.numbered, held.member)


def _at_numbers(held: Region, axis: int, index: Tensor) -> Region | None:
    """Rows by their numbers: which of them is not known, but that they are those of the call."""
    rows = dims.product(index.shape or ())
    at = held.axes[axis] if axis < len(held.axes) else None
    if at is None or index.dtype == "bool" or not dims.is_query(rows):
        return None
    return replace(_without(held, axis), numbered=(*held.numbered, at))
