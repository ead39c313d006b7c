"""`tensor[...]`: integers, slices, `None`, `...`, masks and index tensors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from auditor import dims
from auditor.dims import Dim
from auditor.interpreter import Interpreter
from auditor.places import Site
from auditor.torch import (
    mask_sides,
    positions,
    progressions,
    read_rows,
    regions,
    row_layouts,
    rows,
    shared_positions,
    vectors,
)
from auditor.torch.keys import at_begin, in_one_place, is_length, wraps_at
from auditor.torch.masks import first_rows
from auditor.torch.shapes import Shape, broadcast, slice_length
from auditor.torch.tensors import result, size, unknown_tensor
from auditor.values import Const, Num, Seq, Tensor, Union, Unknown, Value, altered, as_dim, is_none
from auditor.values.tags import BEHIND, GROWN, LATER, MOVED, ONE_PLACE, ROWWISE, TRIANGLE, WRAPS


@dataclass(frozen=True, slots=True)
class _Part:
    """What one part of a key leaves of the axes that it takes, of which `at` is the first.

    `left` are the axes that it gives by itself, `index` is the shape of an index tensor, which all such tensors of a
    key give together. `number` is where it takes one row of several, unless that is fixed. `cut`: it leaves one row of
    the query, or a fixed number; `elsewhere`: rows of the query may not stand where they stood; `turned`: they do not.
    """

    at: int
    axes: int = 1
    left: Shape = ()
    index: Shape | None = None
    key: Value | None = None
    row: Value | None = None
    slice: Seq | None = None
    number: Value | None = None
    cut: bool = False
    elsewhere: bool = False
    turned: bool = False


def index_tensor(it: Interpreter, tensor: Tensor, key: Value, site: Site) -> Value:
    """The tensor that `tensor[key]` is. A slice or integer that leaves one row of several is recorded as a cut."""
    if tensor.shape is None:
        return altered(tensor, places=tensor.places or (site,), region=None)
    keys = list(key.items) if isinstance(key, Seq) and key.kind == "tuple" else [key]
    if any(isinstance(k, Union) for k in keys):
        n = next(i for i, k in enumerate(keys) if isinstance(k, Union))
        return it.each(keys[n], lambda o: index_tensor(it, tensor, Seq("tuple", [*keys[:n], o, *keys[n + 1 :]]), site))
    used = sum(1 for k in keys if not is_none(k) and not _is_ellipsis(k))
    if any(isinstance(k, Tensor) and k.dtype == "bool" for k in keys):
        return unknown_tensor("a boolean mask selects rows", site, tensor)
    if used > len(tensor.shape):
        return unknown_tensor("more indices than dimensions", site, tensor)
    parts = _parts(it, tensor, tensor.shape, keys, len(tensor.shape) - used, site)
    if isinstance(parts, Tensor):
        return parts
    made = result(_joined(parts, tensor.shape), tensor, *(k for k in keys if isinstance(k, Tensor)), site=site)
    made = _at_positions(made, tensor, parts)
    if tensor.numbers and len(keys) == 1:
        made = vectors.taken(made, tensor, keys[0])
    made.base = tensor.base
    if made.base is not None and made.base.role != "parameter" and not any(p.index is not None for p in parts):
        made.region = regions.keyed(tensor, key)
    if made.base is None and all(p.index is None for p in parts):
        made.of = tensor
    if tensor.pick is not None and all(map(_is_new_axis_or_all, keys)):
        made.pick = tensor.pick.seen
    elif tensor.pick is not None:
        made = mask_sides.cut(made, tensor)
        for p in parts:
            if p.cut and p.key is None:
                first = p.row if p.row is not None else p.slice.items[0] if p.slice is not None else None
                made = mask_sides.one_row(made, tensor, first is not None and as_dim(first) == -1, site)
    made = _marked(it, made, tensor, keys, parts, site)
    if any(p.cut for p in parts) and site not in made.cuts:
        made.cuts = (*made.cuts, site)
    return _placed(made, tensor, key, parts)


def _marked(
    it: Interpreter, made: Tensor, tensor: Tensor, keys: Sequence[Value], parts: Sequence[_Part], site: Site
) -> Tensor:
    """`made`, with what is to be said of its rows: whose they are, and of a cache, which of them."""
    made = rows.other(it, made, any(p.elsewhere for p in parts), site)
    if any(p.turned for p in parts):
        made = rows.turned(made, tensor, site)
    if TRIANGLE in tensor.tags:
        made = _of_triangle(made, tensor, parts)
    if BEHIND in tensor.tags:
        made = row_layouts.cut_behind(made, keys, site)
    if made.base is not None and _later_rows(tensor.shape or (), parts):
        made.tags = made.tags | {LATER}
    if _beside_written(it, tensor, parts) or _in_other_order(tensor, parts) or _is_elsewhere(it, tensor, parts):
        made.tags = made.tags | {MOVED}
    if it.events is not None and tensor.base is not None:
        for part in parts:
            if part.slice is not None:
                it.events.reads(tensor, part.slice.items[0], part.left[0], site)
    if GROWN in made.tags and any(isinstance(k, Seq) for k in keys):
        made.tags = made.tags | {MOVED}
    return made


def _parts(
    it: Interpreter, tensor: Tensor, shape: Shape, keys: Sequence[Value], skipped: int, site: Site
) -> list[_Part] | Tensor:
    """The parts of a key; where one is not known, a tensor that says why."""
    parts: list[_Part] = []
    axis = 0
    for k in keys:
        part = _part(tensor, shape, axis, k, skipped, site)
        if isinstance(part, Tensor):
            return part
        if part.slice is not None and _has_tensor(part.slice):
            shared_positions.places(it.events, part.slice)
        parts.append(part)
        axis += part.axes
    return parts


def _part(tensor: Tensor, shape: Shape, axis: int, key: Value, skipped: int, site: Site) -> _Part | Tensor:
    """One part of a key at an axis; `...` skips so many. Where that is not known, a tensor that says why."""
    if _is_ellipsis(key):
        return _Part(axis, skipped, shape[axis : axis + skipped])
    if is_none(key):
        return _Part(axis, 0, (1,))
    length = shape[axis]
    of_query = dims.depends_on_query(length)
    if isinstance(key, Seq) and key.kind == "slice":
        return _slice(axis, length, key) or unknown_tensor("a slice whose bounds are not known", site, tensor)
    if isinstance(key, (Tensor, Seq)):
        index = _index_shape(key)
        if index is None:
            return unknown_tensor("an index tensor of unknown shape", site, tensor, key)
        cut = of_query and not any(map(dims.depends_on_query, index))
        moved = of_query and not progressions.is_each(key, length)
        return _Part(axis, index=index, key=key, cut=cut, elsewhere=moved, turned=moved and progressions.is_known(key))
    if isinstance(key, (Const, Num)) or (isinstance(key, Unknown) and key.kind in ("int", "data")):
        fixed = type(length) is int and isinstance(key, Const)
        return _Part(axis, row=key, number=None if fixed else key, cut=of_query)
    return unknown_tensor("an index that is not known", site, tensor, key)


def _slice(axis: int, length: Dim, bounds: Seq) -> _Part | None:
    kept = _sliced(length, bounds)
    if kept is None:
        return None
    start, _, step = bounds.items
    of_query = dims.depends_on_query(length)
    alone = kept == 1 and (type(length) is not int or not isinstance(start, Const))
    stepped = not (isinstance(step, Const) and step.value in (None, 1))
    return _Part(
        axis,
        left=(kept,),
        slice=bounds,
        number=start if alone else None,
        cut=of_query and not dims.depends_on_query(kept),
        elsewhere=of_query and stepped,
    )


def _joined(parts: Sequence[_Part], shape: Shape) -> Shape:
    """The axes that a key leaves: those of index tensors stand where the first of these does."""
    out: list[Dim] = []
    first: int | None = None
    for p in parts:
        if p.index is not None and first is None:
            first = len(out)
        out += p.left
    out += shape[sum(p.axes for p in parts) :]
    if first is not None:
        out[first:first] = broadcast([p.index for p in parts if p.index is not None])
    return tuple(out)


def _at_positions(made: Tensor, tensor: Tensor, parts: Sequence[_Part]) -> Tensor:
    """`made`, marked by the positions at which it was taken out of `tensor`."""
    if tensor.pick is not None:
        made = _of_progression(made, tensor, parts)
    numbers = [p.number for p in parts if p.number is not None]
    if any(p.index is not None for p in parts) and not made.tags.isdisjoint(ROWWISE):
        made = positions.looked_up(made)
    elif numbers:
        made = positions.taken(made, tensor, *numbers)
    for p in parts:
        if p.slice is not None and _has_tensor(p.slice):
            made = positions.spanned(made, tensor, p.slice)
    return made


def _of_progression(made: Tensor, tensor: Tensor, parts: Sequence[_Part]) -> Tensor:
    """`made`, with the numbers that the parts of a key leave of a progression."""
    assert tensor.shape is not None
    if progressions.numbers(tensor) is None:
        return made
    at = next((n for n, d in enumerate(tensor.shape) if d != 1), 0)
    part = next((p for p in parts if p.axes and p.at <= at < p.at + p.axes), None)
    if part is not None and part.key is not None:
        return progressions.picked(made, tensor, part.key)
    if part is not None and part.row is not None:
        return progressions.cut(made, tensor, at, size(part.row), 0)
    bounds = part.slice.items if part is not None and part.slice is not None else []
    if not bounds:
        return progressions.cut(made, tensor, at, 0)
    step = as_dim(bounds[2]) if not is_none(bounds[2]) else 1
    start = 0 if is_none(bounds[0]) else size(bounds[0])
    return progressions.cut(made, tensor, at, start, step) if isinstance(step, int) else made


def _of_triangle(made: Tensor, tensor: Tensor, parts: Sequence[_Part]) -> Tensor:
    for p in parts:
        if p.slice is not None:
            start = p.slice.items[0]
            made = first_rows(made, tensor, p.at, 0 if is_none(start) else size(start))
    return made


def _placed(made: Tensor, tensor: Tensor, key: Value, parts: Sequence[_Part]) -> Tensor:
    """`made`, marked by where in a storage it lies, for what is written to it or turned by it."""
    if made.base is not None and wraps_at(key):
        made.tags = made.tags | {WRAPS}
    if made.base is not None and in_one_place(key):
        made.tags = made.tags | {ONE_PLACE}
        made = positions.first_of_all(made, tensor, at_begin(key))
    return _of_table(made, tensor, parts) if progressions.is_table(tensor) else made


def _of_table(made: Tensor, tensor: Tensor, parts: Sequence[_Part]) -> Tensor:
    """`made`, cut out of a table; where two axes are cut, rows are those of a mask."""
    cuts = [(p.at, p.slice.items) for p in parts if p.slice is not None and any(map(is_length, p.slice.items))]
    if len(cuts) != 1 or any(p.index is not None for p in parts):
        return made
    ((at, (start, _, step)),) = cuts
    return progressions.cut(made, tensor, at, 0 if is_none(start) else as_dim(start)) if is_none(step) else made


def _later_rows(shape: Shape, parts: Sequence[_Part]) -> bool:
    """Whether an axis is taken from a later row than the first on up to its end; the last has channels, as a rule."""
    for part in parts:
        if part.slice is None or is_none(part.slice.items[0]):
            continue
        start, stop = (as_dim(b) for b in part.slice.items[:2])
        ends = is_none(part.slice.items[1]) or stop == shape[part.at]
        if ends and (start != 0 and part.at < len(shape) - 1 if isinstance(start, int) else start is not None):
            return True
    return False


def _beside_written(it: Interpreter, tensor: Tensor, parts: Sequence[_Part]) -> bool:
    """Whether rows of a state are taken from a later one than the first, and as far behind those that were written."""
    for write in it.events.writes if it.events is not None and tensor.base is not None else ():
        if write.storage is not tensor.base or write.span is None:
            continue
        for part in parts:
            start, stop = (as_dim(b) for b in part.slice.items[:2]) if part.slice is not None else (None, None)
            behind = dims.sub(stop, write.span.end) if stop is not None else None
            if isinstance(start, int) and start > 0 and isinstance(behind, int) and behind > 0:
                return True
    return False


def _in_other_order(tensor: Tensor, parts: Sequence[_Part]) -> bool:
    keys = [p.key for p in parts if p.key is not None]
    return bool(keys) and any(progressions.moves_rows(tensor, p.at, p.key, keys) for p in parts)


def _is_elsewhere(it: Interpreter, tensor: Tensor, parts: Sequence[_Part]) -> bool:
    """Whether a slice has other rows of a cache that was written than those before the query."""
    if it.events is None or not it.events.writes:
        return False
    for p in parts:
        if p.number is not None and read_rows.is_one(it, tensor, p.at, p.number):
            return True
        if p.slice is not None:
            start, step = (as_dim(p.slice.items[n]) for n in (0, 2))
            if read_rows.are_elsewhere(it, tensor, p.at, start or 0, step if isinstance(step, int) else 1):
                return True
        elif isinstance(p.key, Tensor) and read_rows.are_further_on(it, tensor, p.at, p.key):
            return True
    return False


def _has_tensor(bounds: Seq) -> bool:
    return Tensor in map(type, bounds.items)


def _is_new_axis_or_all(p: Value) -> bool:
    whole = isinstance(p, Seq) and p.kind == "slice" and all(map(is_none, p.items))
    return whole or is_none(p) or _is_ellipsis(p)


def _is_ellipsis(p: Value) -> bool:
    return isinstance(p, Const) and p.value is ...


def _index_shape(p: Value) -> Shape | None:
    if isinstance(p, Tensor):
        return p.shape
    if isinstance(p, Seq) and p.exact:
        return (len(p.items),)
    return None


def _sliced(length: Dim, bounds: Seq) -> Dim | None:
    values: list[Dim | None] = []
    for v in bounds.items:
        if is_none(v):
            values.append(None)
            continue
        if isinstance(v, Union) and any(is_none(o) for o in v.options):
            return None  # a bound that may be left out
        d = size(v)
        if d is None and isinstance(v, Unknown):
            d = v.dim
        if d is None:
            return None
        values.append(d)
    start, stop, step = values
    if step is not None and not isinstance(step, int):
        return None
    return slice_length(length, start, stop, step or 1)
