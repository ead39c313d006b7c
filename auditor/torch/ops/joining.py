"""Longer tensors: joined, stacked, repeated, padded."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from auditor import dims
from auditor.containers.iteration import iterate
from auditor.containers.lengths import integer
from auditor.dims import Dim
from auditor.interpreter import Interpreter
from auditor.places import Site
from auditor.torch import (
    key_comparisons,
    mixed_numbers,
    progressions,
    read_rows,
    row_layouts,
    row_masks,
    row_mixing,
    rows,
    shapes,
    shared_positions,
    state_copies,
    vectors,
)
from auditor.torch.ops.op import first
from auditor.torch.shapes import Shape
from auditor.torch.state_writes import is_layer
from auditor.torch.tensors import as_tensor, result, size, sizes, tagged, unknown_tensor
from auditor.values import NONE, Args, Const, Tensor, Value, each_once
from auditor.values.tags import FROM, GROWN, MOVED, SHARED, WRAPS


def cat(it: Interpreter, args: Args, site: Site | None) -> Value:
    parts = args.get(0, "tensors")
    axis = integer(args.get(1, "dim", "axis"), 0)
    if parts is None or site is None:
        return unknown_tensor("cat() of tensors that are not known", site)
    source = iterate(it, parts, site)
    tensors = [as_tensor(v) for v in each_once(source.items)]
    known = [t for t in tensors if t is not None and t.shape is not None]
    if axis is None or not known:
        met = [t for t in tensors if t is not None] if source.rest is None else source.items
        return unknown_tensor("cat() of tensors that are not known", site, *met)
    given = [t.shape for t in known if t.shape is not None]
    axis = shapes.normal(axis, max(map(len, given)))
    if source.exact and len(known) == len(source.items) and all(axis < len(s) for s in given):
        return _cat_of(it, known, given, axis, site)
    unread = [t for t in tensors if t is not None and t.shape is None][:1]
    if unread:
        return unknown_tensor("cat() with a tensor that is not known", site, *unread, *known)
    if len(set(map(len, given))) > 1:
        return unknown_tensor("cat() of tensors of several ranks", site)
    length = dims.symbol(dims.Atom("cat", any(dims.depends_on_query(s[axis]) for s in given)))
    return rows.spread_out(result(shapes.replace(shapes.broadcast(given), axis, length), *known), *known)


def _cat_of(it: Interpreter, tensors: Sequence[Tensor], given: Sequence[Shape], axis: int, site: Site) -> Tensor:
    """Tensors of the shapes `given`, as many as there are, one behind another along an axis that all of them have."""
    lengths = [s[axis] for s in given]
    total = reduce(dims.add, lengths)
    made = result(shapes.broadcast([shapes.replace(s, axis, total) for s in given]), *tensors)
    made.tags = made.tags | _moved(tensors, axis, made.shape)
    first = len(tensors) > 1 and dims.is_query(lengths[0]) and _new_first(lengths, tensors)
    if first or read_rows.overlap(it, tensors, axis, site):
        made.tags = made.tags | {MOVED}
    if any(t.pick is not None or t.data is not None for t in tensors):
        made = key_comparisons.joined(mixed_numbers.joined(made, tensors, axis), tensors, axis)
    if SHARED in made.tags:
        shared_positions.meets(it.events, made, tensors, site)
    made = vectors.joined(row_layouts.joined(made, lengths, site), tensors)
    return rows.spread_out(rows.other(it, made, len(tensors) > 1 and dims.depends_on_query(total), site), *tensors)


def _new_first(lengths: Sequence[Dim], parts: Sequence[Tensor]) -> bool:
    """Whether as many rows as the query has stand in front of those of a cache."""
    behind = [t for d, t in zip(lengths, parts, strict=True) if isinstance(d, dims.Poly) and not dims.is_query(d)]
    return any(tag.startswith(FROM) for t in behind for tag in t.handed_on)


def _moved(parts: Sequence[Tensor], axis: int, whole: Shape | None) -> frozenset[str]:
    """What joining a cache with new rows says of the cache, should the result be written back to it.

    `grown` when it is longer than the cache: a slice of it is a window that slides. `moved` when the tail of the cache
    and new rows make up its length again.
    """
    head = parts[0]
    base = head.base
    if base is None or not base.watched or base.shape is None or whole is None or len(base.shape) < len(whole):
        return frozenset()
    if is_layer(head):
        return frozenset({GROWN})
    full = base.shape[len(base.shape) - len(whole) :]
    return frozenset({MOVED}) if len(parts) == 2 and whole[axis] == full[axis] else frozenset()


def stack(it: Interpreter, args: Args, site: Site | None) -> Value:
    parts, axis = args.get(0, "tensors"), integer(args.get(1, "dim", "axis"), 0)
    if parts is None or site is None or axis is None:
        return unknown_tensor("stack() of tensors that are not known", site)
    source = iterate(it, parts, site)
    options = [as_tensor(v) for v in each_once(source.items)]
    known = [t for t in options if t is not None and t.shape is not None]
    if not known or len(known) != len(options) or source.rest is not None:
        return unknown_tensor("stack() of tensors that are not known", site, *[t for t in options if t is not None])
    shape = shapes.broadcast([t.shape or () for t in known])
    axis = axis + len(shape) + 1 if axis < 0 else axis
    count: Dim = len(known) if source.exact else dims.symbol(dims.Atom("stack"))
    made = result((*shape[:axis], count, *shape[axis:]), *known)
    if it.events is not None and axis == 0 and source.exact:
        made.pick = state_copies.stacked(known)
    return made if made.pick is not None else mixed_numbers.stacked(made, known)


def repeat(it: Interpreter, args: Args, site: Site | None) -> Value:
    t, counts = first(args), sizes(it, args.pos[1:], site)
    if t.shape is None or counts is None:
        return unknown_tensor("repeat() with counts that are not known", site, t)
    pad = (1,) * (len(counts) - len(t.shape))
    made = result(tuple(dims.mul(d, c) for d, c in zip((*pad, *t.shape), counts, strict=True)), t, site=None)
    again = any(d != 1 and c != 1 for d, c in zip((*pad, *t.shape), counts, strict=True))
    if again and t.dtype.startswith(("int", "uint")):
        made = tagged(made, WRAPS)  # the same numbers come again: a table of slots in a ring
    return rows.spread_out(row_masks.widened(t, made), t)


def repeat_interleave(it: Interpreter, args: Args, site: Site | None) -> Value:
    t, count, axis = first(args), size(args.get(1, "repeats") or NONE), integer(args.get(2, "dim"))
    if t.shape is None or count is None or isinstance(args.get(1), Tensor):
        return unknown_tensor("repeat_interleave() with counts that are not known", site, t)
    if axis is None:
        return result((dims.mul(dims.product(t.shape), count),), t, site=None)
    made = result(
        shapes.replace(t.shape, axis, dims.mul(t.shape[shapes.normal(axis, len(t.shape))], count)), t, site=None
    )
    return rows.spread_out(row_mixing.along(it, made, t, Const(axis), site=site), t)


def pad(it: Interpreter, args: Args, site: Site | None) -> Value:
    t, amounts = first(args), sizes(it, [args.get(1, "pad") or NONE], site)
    if t.shape is None or amounts is None:
        return unknown_tensor("pad() by amounts that are not known", site, t)
    sides = [(len(t.shape) - 1 - n // 2, amounts[n], amounts[n + 1]) for n in range(0, len(amounts) - 1, 2)]
    shape = list(t.shape)
    for axis, before, behind in sides:
        shape[axis] = dims.add(shape[axis], dims.add(before, behind))
    made = result(tuple(shape), t)
    for axis, before, behind in sides:
        made = row_layouts.joined(made, [before, t.shape[axis]], site)
        made = row_layouts.joined(made, [before, dims.add(t.shape[axis], behind)], site)
    moved = any(dims.depends_on_query(t.shape[axis]) and (before, behind) != (0, 0) for axis, before, behind in sides)
    if any(before != 0 and read_rows.has_rows(it, t, axis) for axis, before, _ in sides):
        made = tagged(made, MOVED)
    if t.pick is not None:
        made = progressions.disordered(made, t)
    return rows.spread_out(rows.other(it, made, moved, site), t)
