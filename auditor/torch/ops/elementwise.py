"""Operations on one tensor: on each value, or moving and mixing values along an axis; all but `glu` keep its shape."""

from __future__ import annotations

from collections.abc import Callable

from auditor import dims
from auditor.containers.lengths import integer
from auditor.interpreter import Interpreter
from auditor.places import Site
from auditor.torch import (
    key_comparisons,
    mask_sides,
    mixed_numbers,
    positions,
    progressions,
    recurrences,
    row_masks,
    row_mixing,
    rows,
    shapes,
)
from auditor.torch.masks import WEIGHED, still_unmasked, triangular
from auditor.torch.ops.op import Op, first
from auditor.torch.tensors import dtype_of, result, size, tagged, unknown_tensor
from auditor.values import NO_FLAGS, Args, Const, Seq, Tensor, Value
from auditor.values.tags import (
    ALIKE,
    BESIDE,
    BLENDED,
    FLIPPED,
    FLOORED,
    FROM,
    MASK,
    MOVED,
    PARTLY,
    TRIANGLE,
    TURNED,
    UNMASKED,
    WRAPS,
    kept,
)

_TensorOp = Callable[[Interpreter, Args, "Site | None"], Tensor]


def same(it: Interpreter, args: Args, site: Site | None) -> Tensor:
    t = first(args)
    made = result(t.shape, t, dtype=dtype_of(args))
    made.reason = t.reason
    return made


def activated(it: Interpreter, args: Args, site: Site | None) -> Tensor:
    """A function of each value, by which none stays as it was."""
    return recurrences.computed(it, bent(it, args, site))


def negated(op: str) -> Op:
    """`neg` and `logical_not`."""
    return lambda it, args, site: mask_sides.negated(same(it, args, site), first(args), op)


def logarithm(it: Interpreter, args: Args, site: Site | None) -> Value:
    """Of 1 it is 0, and of 0 it hides what it is added to."""
    return mask_sides.negated(activated(it, args, site), first(args), "log")


def bent(it: Interpreter, args: Args, site: Site | None) -> Tensor:
    """A function of each value that is no line: a distance to the first row says more than one to another, then."""
    return positions.looked_up(same(it, args, site))


def turned(it: Interpreter, args: Args, site: Site | None) -> Value:
    """A sine or a cosine, which of whole numbers is none."""
    made = same(it, args, site)
    made.tags = made.tags - {BESIDE} | {TURNED}
    made.dtype = "float32" if made.dtype.startswith(("int", "uint")) else made.dtype
    return made


def rounded(it: Interpreter, args: Args, site: Site | None) -> Value:
    return tagged(same(it, args, site), FLOORED)


def fraction(it: Interpreter, args: Args, site: Site | None) -> Value:
    return tagged(same(it, args, site), WRAPS)


def masked(it: Interpreter, args: Args, site: Site | None) -> Value:
    """`masked_fill` and `masked_scatter`: the mask comes second."""
    made = same(it, args, site)
    mask = args.get(1, "mask")
    if mask is None:
        return made
    met = NO_FLAGS
    if isinstance(mask, Tensor):
        if made.shape is not None and mask.shape is not None:
            made.shape = shapes.broadcast([made.shape, mask.shape]) or made.shape
        met = (
            still_unmasked(made.tags | mask.tags, (first(args), mask))
            | mask.tags & {TRIANGLE, FLIPPED}
            | kept(mask.tags, BLENDED)
        )
        made = rows.spread_out(made, mask)
    made.tags = made.tags - UNMASKED | met
    made = mask_sides.filled_where(made, first(args), mask, args.get(2, "value"))
    return recurrences.chosen(row_masks.masked(it, made, site, first(args), mask), mask)


def softmax(it: Interpreter, args: Args, site: Site | None) -> Value:
    """Weights of attention, where scores go in."""
    return _weighed(first(args), _shares(it, args, site))


def exponential(it: Interpreter, args: Args, site: Site | None) -> Value:
    """The same before it is divided by its sum."""
    return _weighed(first(args), activated(it, args, site))


def _weighed(scores: Tensor, made: Tensor) -> Tensor:
    made.tags = made.tags - {BESIDE, PARTLY}
    met = scores.tags & WEIGHED.keys()
    return tagged(made, *(WEIGHED[tag] for tag in met)) if met else made


def triangle(lower: bool) -> Op:
    """`tril` and `triu`: rows that were alike are not, and keys behind a row may be hidden from it."""

    def run(it: Interpreter, args: Args, site: Site | None) -> Value:
        diagonal = size(args.get(1, "diagonal") or Const(0))
        return key_comparisons.triangle(triangular(same(it, args, site), diagonal), first(args), lower, diagonal)

    return run


def ordered(axis: int, default: int | None = None, blends: bool = False) -> _TensorOp:
    """What moves or mixes values along one axis, which is argument `axis`."""

    def run(it: Interpreter, args: Args, site: Site | None) -> Tensor:
        made = same(it, args, site)
        made.tags = made.tags - {ALIKE}
        along = args.get(axis, "dim", "dims", "axis")
        return row_mixing.along(it, made, first(args), along, default, site if blends else None, site)

    return run


_shares = ordered(1, -1, blends=True)
_running = ordered(1, blends=True)


def flip(it: Interpreter, args: Args, site: Site | None) -> Value:
    t = first(args)
    axes = Seq("tuple", args.pos[1:]) if len(args.pos) > 2 else args.get(1, "dims", "dim", "axis")
    return _flipped(same(it, args, site), t, axes, site)


def _flipped(made: Tensor, t: Tensor, axes: Value | None, site: Site | None) -> Tensor:
    given = [integer(axis) for axis in (axes.items if isinstance(axes, Seq) else [axes])]
    if progressions.numbers(t) is not None:
        return progressions.reversed_(made, t) if any(_is_long(t, axis) for axis in given) else made
    made = rows.flipped(made, t, axes, site)
    return tagged(made, MOVED) if any(holds_rows_along(t, axis) for axis in given) else made


def _is_long(t: Tensor, axis: int | None) -> bool:
    return axis is not None and t.shape is not None and -len(t.shape) <= axis < len(t.shape) and t.shape[axis] != 1


def holds_rows_along(t: Tensor, axis: int | None) -> bool:
    """Whether the rows of a state may lie along an axis; the last one has their channels."""
    if axis is None or t.shape is None or axis in (-1, len(t.shape) - 1):
        return False
    return any(tag.startswith(FROM) for tag in t.handed_on)


def flip_of(axis: int) -> Op:
    """`flipud` and `fliplr`."""
    return lambda it, args, site: _flipped(same(it, args, site), first(args), Const(axis), site)


def rolled(it: Interpreter, args: Args, site: Site | None) -> Value:
    made = row_mixing.along(it, same(it, args, site), first(args), args.get(2, "dims"), blends=site, cached=False)
    made = rows.turned(made, made, site) if MASK in made.tags and rows.has_rows(made) else made
    return tagged(progressions.disordered(made, first(args)), MOVED)


def running_sum(it: Interpreter, args: Args, site: Site | None) -> Value:
    t = first(args)
    made = _running(it, args, site) if t.data is None else same(it, args, site)  # of one number nothing is mixed
    made.tags = made.tags - {ALIKE}
    made.dtype = dtype_of(args) or ("int64" if made.dtype == "bool" else made.dtype)
    axis = integer(args.get(1, "dim", "axis"))
    return mixed_numbers.summed_up(made, t, axis) if axis is not None else progressions.summed_up(made, t)


def glu(it: Interpreter, args: Args, site: Site | None) -> Value:
    t, axis = first(args), integer(args.get(1, "dim"), -1)
    if t.shape is None or axis is None:
        return unknown_tensor("glu() of a tensor that is not known", site, t)
    n = shapes.normal(axis, len(t.shape))
    return result(shapes.replace(t.shape, n, dims.floordiv(t.shape[n], 2)), t)
