"""The same values in another shape: reshapes, permutations, axes of length 1, expansion."""

from __future__ import annotations

from auditor import dims
from auditor.containers.lengths import integer
from auditor.interpreter import Interpreter
from auditor.places import Site
from auditor.torch import mask_sides, read_rows, regions, row_layouts, row_masks, rows, shapes
from auditor.torch.ops.conversions import view_of
from auditor.torch.ops.op import first
from auditor.torch.shapes import Shape
from auditor.torch.tensors import result, sizes, tagged, unknown_tensor
from auditor.values import NONE, Args, Const, Num, Seq, Tensor, Union, Unknown, Value
from auditor.values.tags import MIXED, ONE_ROW


def reshape(it: Interpreter, args: Args, site: Site | None) -> Value:
    t = first(args)
    given = args.pos[1:] or [v for k, v in args.kw.items() if k in ("shape", "size")]
    if len(given) == 1 and not isinstance(given[0], (Const, Num, Seq, Unknown, Union, Tensor)):
        return view_of(it, args, site)  # view(dtype)
    target = sizes(it, given, site)
    if t.shape is None and target is not None and -1 not in target and (it.events is None or _is_data(t)):
        return viewed(t, tuple(target))  # whatever it was in the file: a program that runs gives it this shape
    if t.shape is None or target is None:
        made = unknown_tensor("a reshape to sizes that are not known", site, t, *given)
        made.base = t.base
        return made
    done = shapes.reshape(t.shape, target)
    baked = done.fits is False or any(isinstance(d, dims.Poly) and d.traced for d in target)
    if baked and site is not None and it.events is not None:
        it.events.baked.append((site, f"reshape of {shapes.text(t.shape)} to {shapes.text(tuple(target))}"))
    made = read_rows.in_blocks(it, row_layouts.reshaped(viewed(t, done.shape), t, site), t)
    return tagged(made, ONE_ROW) if done.one_row else made


def view_as(it: Interpreter, args: Args, site: Site | None) -> Value:
    t, other = first(args), args.get(1, "other")
    if not isinstance(other, Tensor) or other.shape is None or t.shape is None:
        return expand(it, args, site)
    return read_rows.in_blocks(it, row_layouts.reshaped(viewed(t, other.shape), t, site), t)


def _is_data(t: Tensor) -> bool:
    """Whether all that is not known of a tensor is what a file holds."""
    return t.reason is not None and t.reason.kind == "data"


def flatten(it: Interpreter, args: Args, site: Site | None) -> Value:
    t = first(args)
    start, end = integer(args.get(1, "start_dim"), 0), integer(args.get(2, "end_dim"), -1)
    if t.shape is None or start is None or end is None:
        return unknown_tensor("flatten() of a tensor that is not known", site, t)
    rank = len(t.shape)
    start, end = shapes.normal(start, rank), shapes.normal(end, rank)
    made = viewed(t, (*t.shape[:start], dims.product(t.shape[start : end + 1]), *t.shape[end + 1 :]))
    return row_layouts.reshaped(made, t, site)


def unflatten(it: Interpreter, args: Args, site: Site | None) -> Value:
    t = first(args)
    axis, target = integer(args.get(1, "dim")), sizes(it, args.pos[2:] or [args.kw.get("sizes", NONE)], site)
    if t.shape is None or axis is None or target is None:
        return unknown_tensor("unflatten() with sizes that are not known", site, t)
    axis = shapes.normal(axis, len(t.shape))
    part = shapes.reshape((t.shape[axis],), target).shape
    made = row_layouts.reshaped(viewed(t, (*t.shape[:axis], *part, *t.shape[axis + 1 :])), t, site)
    return read_rows.in_blocks(it, made, t)


def permute(it: Interpreter, args: Args, site: Site | None) -> Value:
    t = first(args)
    order = sizes(it, args.pos[1:] or [args.kw.get("dims", NONE)], site)
    if t.shape is None or order is None or not all(isinstance(o, int) for o in order):
        return unknown_tensor("a permutation that is not known", site, t)
    shape = t.shape
    axes = [shapes.normal(o, len(shape)) for o in order if isinstance(o, int)]
    made = viewed(t, tuple(shape[o] for o in axes))
    made.region = regions.ordered(t, axes)
    return mask_sides.turned_over(made, t)


def transpose(it: Interpreter, args: Args, site: Site | None) -> Value:
    t = first(args)
    a, b = integer(args.get(1, "dim0", "axis0"), -2), integer(args.get(2, "dim1", "axis1"), -1)
    if t.shape is None or a is None or b is None:
        return unknown_tensor("a transposition that is not known", site, t)
    shape = list(t.shape)
    axes = list(range(len(shape)))
    if len(shape) >= 2:
        shape[a], shape[b] = shape[b], shape[a]
        axes[a], axes[b] = axes[b], axes[a]
    made = viewed(t, tuple(shape))
    made.region = regions.ordered(t, axes)
    return mask_sides.turned_over(made, t)


def movedim(it: Interpreter, args: Args, site: Site | None) -> Value:
    t = first(args)
    a, b = integer(args.get(1, "source")), integer(args.get(2, "destination"))
    if t.shape is None or a is None or b is None:
        return unknown_tensor("a move of dimensions that is not known", site, t)
    shape = list(t.shape)
    moved = shape.pop(shapes.normal(a, len(shape)))
    shape.insert(shapes.normal(b, len(t.shape)), moved)
    return viewed(t, tuple(shape))


def unsqueeze(it: Interpreter, args: Args, site: Site | None) -> Value:
    t, axis = first(args), integer(args.get(1, "dim", "axis"))
    if t.shape is None or axis is None:
        return unknown_tensor("unsqueeze() of a tensor that is not known", site, t)
    axis = axis + len(t.shape) + 1 if axis < 0 else axis
    made = viewed(t, (*t.shape[:axis], 1, *t.shape[axis:]))
    made.region = regions.widened(t, axis)
    made.data = t.data
    return made


def squeeze(it: Interpreter, args: Args, site: Site | None) -> Value:
    t = first(args)
    given = args.get(1, "dim", "axis")
    if t.shape is None:
        return t
    if given is None:
        return viewed(t, tuple(d for d in t.shape if d != 1))
    axis = integer(given)
    if axis is None:
        return unknown_tensor("squeeze() of an axis that is not known", site, t)
    axis = shapes.normal(axis, len(t.shape))
    if dims.depends_on_query(t.shape[axis]):
        return t  # squeezing a dimension that is not 1 does nothing
    made = viewed(t, shapes.drop(t.shape, axis))
    made.region = regions.dropped(t, axis)
    return made


def expand(it: Interpreter, args: Args, site: Site | None) -> Value:
    t = first(args)
    if args.pos[1:] and isinstance(args.pos[1], Tensor) and len(args.pos) == 2:
        other = args.pos[1]
        return (
            _spread(t, other.shape)
            if other.shape is not None
            else unknown_tensor("expand_as an unknown tensor", site, t)
        )
    target = sizes(it, args.pos[1:], site)
    if t.shape is None or target is None:
        return unknown_tensor("expand() to sizes that are not known", site, t)
    pad = (1,) * (len(target) - len(t.shape))
    return _spread(t, tuple(old if new == -1 else new for old, new in zip((*pad, *t.shape), target, strict=True)))


def _spread(t: Tensor, shape: Shape) -> Tensor:
    made = row_masks.widened(t, viewed(t, shape))
    return tagged(made, MIXED) if rows.spreads(t, shape) else made


def viewed(t: Tensor, shape: Shape) -> Tensor:
    made = result(shape, t)
    made.base, made.of = t.base, t if t.base is None else None
    if t.base is not None:
        made.region = regions.loose(t)
    if t.pick is not None:
        made.pick = t.pick.seen
    return made
