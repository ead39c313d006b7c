"""Operations on one tensor: on each value, or moving and mixing values along an axis; all but `glu` keep its shape."""

from __future__ import annotations

from auditor import dims
from auditor.containers.lengths import integer
from auditor.interpreter import Interpreter
from auditor.places import Site
from auditor.torch import rows, shapes
from auditor.torch.masks import ALIKE, UNMASKED, WEIGHED, still_unmasked
from auditor.torch.ops.op import Op, first
from auditor.torch.tensors import dtype_of, result, tagged, unknown_tensor
from auditor.values import NO_FLAGS, Args, Tensor, Value


def same(it: Interpreter, args: Args, site: Site | None) -> Value:
    t = first(args)
    made = result(t.shape, t, site=None, dtype=dtype_of(args))
    made.reason = t.reason
    return made


def rounded(it: Interpreter, args: Args, site: Site | None) -> Value:
    made = same(it, args, site)
    return tagged(made, "floored") if isinstance(made, Tensor) else made


def fraction(it: Interpreter, args: Args, site: Site | None) -> Value:
    made = same(it, args, site)
    return tagged(made, "wraps") if isinstance(made, Tensor) else made


def masked(it: Interpreter, args: Args, site: Site | None) -> Value:
    """`masked_fill` and `masked_scatter`: the mask comes second."""
    made = same(it, args, site)
    mask = args.get(1, "mask")
    if not isinstance(made, Tensor) or mask is None:
        return made
    met = still_unmasked(made.tags, (first(args), mask)) if isinstance(mask, Tensor) else NO_FLAGS
    made.tags = made.tags - UNMASKED | met
    made = rows.spread_out(made, *(m for m in (mask,) if isinstance(m, Tensor)))
    return rows.masked(it, made, first(args), mask)


def softmax(it: Interpreter, args: Args, site: Site | None) -> Value:
    """Weights of attention, where scores go in."""
    return _weighed(first(args), ordered(1, -1, blends=True)(it, args, site))


def exponential(it: Interpreter, args: Args, site: Site | None) -> Value:
    """The same before it is divided by its sum."""
    return _weighed(first(args), same(it, args, site))


def _weighed(scores: Tensor, made: Value) -> Value:
    met = scores.tags & WEIGHED.keys()
    return tagged(made, *(WEIGHED[tag] for tag in met)) if met and isinstance(made, Tensor) else made


def triangle(it: Interpreter, args: Args, site: Site | None) -> Value:
    """`tril` and `triu`: rows that were alike are not, and keys behind a row may be hidden from it."""
    made = same(it, args, site)
    assert isinstance(made, Tensor)
    made.tags = made.tags - UNMASKED
    return made


def ordered(axis: int, default: int | None = None, blends: bool = False) -> Op:
    """What moves or mixes values along one axis, which is argument `axis`."""

    def run(it: Interpreter, args: Args, site: Site | None) -> Value:
        made = same(it, args, site)
        assert isinstance(made, Tensor)
        made.tags = made.tags - {ALIKE}
        along = args.get(axis, "dim", "dims", "axis")
        return rows.along(it, made, first(args), along, default, site if blends else None)

    return run


def flip(it: Interpreter, args: Args, site: Site | None) -> Value:
    t, made = first(args), same(it, args, site)
    return rows.flipped(it, made, t, args.get(1, "dims", "dim")) if isinstance(made, Tensor) else made


def rolled(it: Interpreter, args: Args, site: Site | None) -> Value:
    made = same(it, args, site)
    assert isinstance(made, Tensor)
    return tagged(rows.along(it, made, first(args), args.get(2, "dims"), blends=site), "moved")


def glu(it: Interpreter, args: Args, site: Site | None) -> Value:
    t, axis = first(args), integer(args.get(1, "dim"), -1)
    if t.shape is None or axis is None:
        return unknown_tensor("glu() of a tensor that is not known", site, t)
    n = shapes.normal(axis, len(t.shape))
    return result(shapes.replace(t.shape, n, dims.floordiv(t.shape[n], 2)), t, site=None)
