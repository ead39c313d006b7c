"""Parts of a tensor: at an index, along an axis, or all of them as a tuple."""

from __future__ import annotations

from collections.abc import Sequence

from auditor import dims
from auditor.containers.lengths import integer
from auditor.dims import Dim
from auditor.interpreter import Interpreter
from auditor.places import Site
from auditor.torch import positions, progressions, read_rows, regions, row_layouts, row_mixing, rows, shapes, vectors
from auditor.torch.keys import at_begin, in_one_place, wraps_at
from auditor.torch.masks import first_rows
from auditor.torch.ops.op import first
from auditor.torch.ops.views import viewed
from auditor.torch.tensors import as_tensor, result, size, tagged, unknown_tensor
from auditor.values import NONE, Args, Const, Seq, Star, Tensor, Value, altered, as_dim, number
from auditor.values.tags import MOVED, ONE_PLACE, WRAPS


def narrow(it: Interpreter, args: Args, site: Site | None) -> Value:
    t, axis = first(args), integer(args.get(1, "dim"))
    length = size(args.get(3, "length") or NONE)
    if t.shape is None or axis is None or length is None:
        made = unknown_tensor("narrow() to a length that is not known", site, t)
        made.base = t.base
        return made
    axis = shapes.normal(axis, len(t.shape))
    made = first_rows(viewed(t, shapes.replace(t.shape, axis, length)), t, axis, size(args.get(2, "start") or NONE))
    if made.base is not None and wraps_at(args.get(2, "start")):
        made = tagged(made, WRAPS)
    key = _slice(args.get(2, "start"), length)
    if made.base is not None and in_one_place(key):
        made = positions.first_of_all(tagged(made, ONE_PLACE), t, at_begin(key))
    start = size(args.get(2, "start") or NONE)
    made.region = regions.taken(t, axis, start, length)
    made = progressions.cut(made, t, axis, start)
    one = length == 1 and read_rows.is_one(it, t, axis, args.get(2, "start"))
    if one or (start is not None and read_rows.are_elsewhere(it, t, axis, start)):
        made = tagged(made, MOVED)
    if it.events is not None and site is not None:
        it.events.reads(t, args.get(2, "start"), length, site)
    if length == 1 != t.shape[axis]:
        made = positions.taken(made, t, args.get(2, "start"))
    if dims.depends_on_query(t.shape[axis]) and not dims.depends_on_query(length) and site is not None:
        made.cuts = (*made.cuts, site)
    return made


def _slice(start: Value | None, length: Dim) -> Seq:
    return Seq("slice", [start or NONE, number(length), NONE])


def select(it: Interpreter, args: Args, site: Site | None) -> Value:
    t, axis = first(args), integer(args.get(1, "dim"))
    if t.shape is None or axis is None:
        return unknown_tensor("select() of an axis that is not known", site, t)
    axis = shapes.normal(axis, len(t.shape))
    made = positions.taken(viewed(t, shapes.drop(t.shape, axis)), t, args.get(2, "index"))
    made.region = regions.taken(t, axis, as_dim(args.get(2, "index") or NONE))
    if t.pick is not None and t.shape[axis] != 1:
        made = progressions.cut(made, t, axis, size(args.get(2, "index") or NONE), 0)
    if made.base is not None and wraps_at(args.get(2, "index")):
        made = tagged(made, WRAPS)
    if read_rows.is_one(it, t, axis, args.get(2, "index")):
        made = tagged(made, MOVED)
    if t.numbers:
        made = vectors.taken(made, t, args.get(2, "index") or NONE)
    if dims.depends_on_query(t.shape[axis]) and site is not None:
        made.cuts = (*made.cuts, site)
    return made


def index_select(it: Interpreter, args: Args, site: Site | None) -> Value:
    t, axis, index = first(args), integer(args.get(1, "dim")), as_tensor(args.get(2, "index") or NONE)
    if t.shape is None or axis is None or index is None or index.shape is None:
        return unknown_tensor("index_select() with an index that is not known", site, t)
    axis = shapes.normal(axis, len(t.shape))
    count = index.shape[0] if index.shape else 1
    made = positions.looked_up(result(shapes.replace(t.shape, axis, count), t, index))
    made = progressions.picked(made, t, index)
    made = _in_order(made, t, axis, index)
    if dims.depends_on_query(t.shape[axis]) and not dims.depends_on_query(count) and site is not None:
        made.cuts = (*made.cuts, site)
    return _by_numbers(it, made, t, axis, index, site)


def _by_numbers(it: Interpreter, made: Tensor, t: Tensor, axis: int, index: Tensor, site: Site | None) -> Tensor:
    """`made`, taken by numbers along an axis: rows of the query are where they were only by their own."""
    assert t.shape is not None
    if progressions.is_each(index, t.shape[axis]):
        return made
    made = row_mixing.along(it, made, t, Const(axis), site=site)
    return rows.turned(made, t, site) if dims.is_query(t.shape[axis]) and progressions.is_known(index) else made


def _in_order(made: Tensor, t: Tensor, axis: int | None, index: Tensor) -> Tensor:
    """`made`, taken along an axis: marked when rows of a state are not in the order that they have in it."""
    if axis is None or t.shape is None:
        return made
    return tagged(made, MOVED) if progressions.moves_rows(t, shapes.normal(axis, len(t.shape)), index) else made


def gather(it: Interpreter, args: Args, site: Site | None) -> Value:
    t, index = first(args), as_tensor(args.get(2, "index") or NONE)
    if index is None or index.shape is None:
        return unknown_tensor("gather() with an index that is not known", site, t)
    made = progressions.picked(positions.looked_up(result(index.shape, t, index)), t, index)
    made = _in_order(made, t, integer(args.get(1, "dim")), index)
    made.dtype = t.dtype
    if row_layouts.crosses(t, index):
        made = rows.blended(made, site)
    if t.shape is not None and any(
        dims.depends_on_query(a) and not dims.depends_on_query(b) for a, b in zip(t.shape, index.shape, strict=False)
    ):
        made.cuts = (*made.cuts, site) if site is not None else made.cuts
    return row_mixing.along(it, made, t, args.get(1, "dim"), site=site)


def take_along(it: Interpreter, args: Args, site: Site | None) -> Value:
    """`take_along_dim(t, indices, dim)`: the index is first made as large as the tensor along all other axes."""
    t, index, axis = first(args), as_tensor(args.get(1, "indices") or NONE), integer(args.get(2, "dim"))
    if t.shape is None or index is None or index.shape is None or axis is None or len(t.shape) != len(index.shape):
        return unknown_tensor("take_along_dim() with an index that is not known", site, t)
    axis = shapes.normal(axis, len(t.shape))
    whole = shapes.broadcast([t.shape, index.shape])
    wide = altered(index, shape=shapes.replace(whole, axis, index.shape[axis]))
    return gather(it, Args([t, Const(axis), wide]), site)


_MOST = 64
"""Of as many parts each is told from the others."""


@vectors.apart
def tensor_split(it: Interpreter, args: Args, site: Site | None) -> Value:
    """`tensor_split(t, parts or positions, dim)`: positions may count from the end."""
    t, given = first(args), args.get(1, "indices_or_sections", "indices", "sections") or NONE
    axis = integer(args.get(2, "dim"), 0)
    if not isinstance(given, Seq):
        return chunk(it, Args([t, given, Const(axis)]), site)
    at = [size(i) for i in given.items]
    if t.shape is None or axis is None or not given.exact or any(p is None for p in at):
        return _unknown_parts(t, Seq("tuple", [NONE, *given.items], given.rest), site)
    axis = shapes.normal(axis, len(t.shape))
    whole = t.shape[axis]
    ends = [dims.add(whole, p) if isinstance(p, int) and p < 0 else p for p in at if p is not None]
    lengths = [dims.sub(b, a) for a, b in zip([0, *ends], [*ends, whole], strict=True)]
    return Seq("tuple", _parts_of(t, axis, lengths, site))


@vectors.apart
def split(it: Interpreter, args: Args, site: Site | None) -> Value:
    t, axis = first(args), integer(args.get(2, "dim", "axis"), 0)
    given = args.get(1, "split_size_or_sections", "split_size", "indices_or_sections") or NONE
    if t.shape is None or axis is None:
        return _unknown_parts(t, given, site)
    axis = shapes.normal(axis, len(t.shape))
    if isinstance(given, Seq):
        lengths = [size(i) for i in given.items]
        if not given.exact or any(n is None for n in lengths):
            return _unknown_parts(t, given, site)
        return Seq("tuple", _parts_of(t, axis, [n for n in lengths if n is not None], site))
    each = size(given)
    if each is None:
        return _unknown_parts(t, given, site)
    count = dims.exact_div(t.shape[axis], each)
    _counted(it, dims.floordiv(t.shape[axis], each), site, "split()")
    if isinstance(count, int) and count <= _MOST:
        return _equal_parts(t, axis, each, count, site)
    if isinstance(each, int) and isinstance(t.shape[axis], int):
        whole = t.shape[axis]
        assert isinstance(whole, int)
        lengths_ = [each] * (whole // each) + ([whole % each] if whole % each else [])
        return Seq("tuple", [_part(t, axis, n, site) for n in lengths_])
    return Seq("tuple", [Star((_part(t, axis, each, site),), count)])


@vectors.apart
def chunk(it: Interpreter, args: Args, site: Site | None) -> Value:
    t, count, axis = first(args), integer(args.get(1, "chunks")), integer(args.get(2, "dim"), 0)
    if t.shape is None or count is None or axis is None:
        return _unknown_parts(t, Seq("tuple", [NONE] * (count or 0)), site)
    axis = shapes.normal(axis, len(t.shape))
    each = dims.floordiv(t.shape[axis], count)
    if isinstance(each, int) or count < 1 or count > _MOST:
        return _equal_parts(t, axis, each, count, site)
    lengths = [each] * (count - 1)
    return Seq("tuple", _parts_of(t, axis, [*lengths, dims.sub(t.shape[axis], dims.mul(each, count - 1))], site))


@vectors.apart
def unbind(it: Interpreter, args: Args, site: Site | None) -> Value:
    t, axis = first(args), integer(args.get(1, "dim"), 0)
    if t.shape is None or axis is None:
        return Seq("tuple", [Star((unknown_tensor("parts of a tensor that are not known", site, t),))])
    axis = shapes.normal(axis, len(t.shape))
    part = viewed(t, shapes.drop(t.shape, axis))
    count = t.shape[axis]
    _counted(it, count, site, "unbind()")
    if dims.depends_on_query(count) and site is not None:
        part.cuts = (*part.cuts, site)
    if not isinstance(count, int) or count > 64:
        part.region = None
        return Seq("tuple", [Star((part,))])
    return Seq("tuple", [altered(part, region=regions.taken(t, axis, n)) for n in range(count)])


def _parts_of(t: Tensor, axis: int, lengths: Sequence[Dim], site: Site | None) -> list[Value]:
    parts: list[Value] = []
    begin: Dim = 0
    for length in lengths:
        part = progressions.cut(_part(t, axis, length, site), t, axis, begin)
        part.region = regions.taken(t, axis, begin, length)
        parts.append(part)
        begin = dims.add(begin, length)
    return parts


def _equal_parts(t: Tensor, axis: int, each: Dim, count: int, site: Site | None) -> Seq:
    part = _part(t, axis, each, site)
    if part.base is None:
        return Seq("tuple", [part] * count)
    begins = [dims.mul(each, n) for n in range(count)]
    return Seq("tuple", [altered(part, region=regions.taken(t, axis, b, each)) for b in begins])


def _part(t: Tensor, axis: int, length: Dim, site: Site | None) -> Tensor:
    assert t.shape is not None
    made = viewed(t, shapes.replace(t.shape, axis, length))
    made.region = None
    if made.pick is not None and made.shape != t.shape:
        made = progressions.disordered(made, t)  # which of the parts it is, and where it begins, is not known
    if dims.depends_on_query(t.shape[axis]) and not dims.depends_on_query(length) and site is not None:
        made.cuts = (*made.cuts, site)
    return made


def _counted(it: Interpreter, count: Dim, site: Site | None, what: str) -> None:
    """A tuple of as many tensors as a dimension is long: a trace has as many of them as its example."""
    if it.events is not None:
        it.events.bakes(number(count), site, what)


def _unknown_parts(t: Tensor, given: Value, site: Site | None) -> Value:
    part = unknown_tensor("parts of a tensor that are not known", site, t)
    count = len(given.items) if isinstance(given, Seq) and given.exact else None
    return Seq("tuple", [part] * count if count else [Star((part,))])
