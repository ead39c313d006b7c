"""Reductions over axes: sums, extrema, quantiles."""

from __future__ import annotations

from auditor import dims, operators
from auditor.containers.lengths import integer
from auditor.interpreter import Interpreter
from auditor.places import Site, here
from auditor.torch import mask_sides, placing, positions, progressions, read_rows, row_mixing, rows, shapes
from auditor.torch.ops.arithmetic import combine
from auditor.torch.ops.op import Op, first
from auditor.torch.pairs import named_pair
from auditor.torch.tensors import as_tensor, dtype_of, result, tagged, unknown_tensor
from auditor.values import NONE, Args, Seq, Tensor, Value, altered, is_given, merge_places
from auditor.values.tags import ARGMAX


def reduction(it: Interpreter, args: Args, site: Site | None) -> Value:
    return _pooled(it, args, site)


def norm(it: Interpreter, args: Args, site: Site | None) -> Value:
    """`norm(p, dim, keepdim)`: the kind of norm stands before the axes."""
    return _pooled(it, args, site, 2, 3)


def deviation(it: Interpreter, args: Args, site: Site | None) -> Value:
    """`std(dim, correction, keepdim)` and `var`."""
    return _pooled(it, args, site, keep=3)


def summed(it: Interpreter, args: Args, site: Site | None) -> Value:
    """A sum; of conditions it is how many hold."""
    t, axes = first(args), _axes(args)
    made = _pooled(it, args, site)
    made = altered(made, dtype=dtype_of(args) or ("int64" if made.dtype == "bool" else made.dtype))
    if t.pick is None or t.shape is None or axes is None:
        return made
    made = placing.over_rows(t, {shapes.normal(a, len(t.shape)) for a in axes}, made)
    if len(axes) != 1 or axes[0] >= len(t.shape):
        return made
    return mask_sides.counted(made, t, shapes.normal(axes[0], len(t.shape)))


def extremum(it: Interpreter, args: Args, site: Site | None) -> Value:
    """`max`/`min`: (values, indices) along a dimension, a number, or elementwise with another tensor."""
    if len(args.pos) > 1 and isinstance(args.pos[1], Tensor):
        return combine(it, args.pos, site)
    axes = _axes(args)
    made = _pooled(it, args, site)
    if axes is None:
        return made
    at = altered(made, dtype="int64", places=merge_places(here(site), made.places))
    return named_pair(made, tagged(at, ARGMAX), ("values", "indices"))


def bound(op: Op, last: bool) -> Op:
    """`max` and `min`: the last, or the first, of numbers that go up."""

    def run(it: Interpreter, args: Args, site: Site | None) -> Value:
        made = op(it, args, site)
        several = len(args.pos) > 1 and isinstance(args.pos[1], Tensor)
        return progressions.end(made, first(args), last) if isinstance(made, Tensor) and not several else made

    return run


def extrema(it: Interpreter, args: Args, site: Site | None) -> Value:
    """`aminmax`: the least and the largest value."""
    made = _pooled(it, args, site)
    return named_pair(made, made, ("min", "max"))


def argmax(it: Interpreter, args: Args, site: Site | None) -> Value:
    made = _reduced(it, first(args), _axes(args), _keeps(args), site)
    return tagged(altered(made, dtype="int64", places=merge_places(here(site), made.places)), ARGMAX)


def quantile(it: Interpreter, args: Args, site: Site | None) -> Value:
    """One reduced tensor for each quantile, stacked in front when several are asked for."""
    made = _reduced(it, first(args), _axes(args, 2), _keeps(args, 3), site)
    asked = as_tensor(args.get(1, "q") or NONE)
    if asked is None or not asked.shape or made.shape is None:
        return (
            made
            if asked is None or asked.shape == ()
            else altered(made, shape=None, reason=asked.reason or made.reason)
        )
    return altered(made, shape=(*asked.shape, *made.shape))


def _reduced(it: Interpreter, t: Tensor, axes: list[int] | None, keep: bool, site: Site | None) -> Tensor:
    if t.shape is None:
        return result(None, t, reason=t.reason)
    shape = t.shape
    if axes is not None and any(a >= 10**6 for a in axes):
        return unknown_tensor("a reduction over an axis that is not known", site, t)
    gone = {shapes.normal(a, len(shape)) for a in (range(len(shape)) if axes is None else axes)}
    cut = any(n in gone and dims.depends_on_query(d) for n, d in enumerate(shape))
    left = tuple(1 if n in gone else d for n, d in enumerate(shape) if keep or n not in gone)
    made = result(left, t)
    if cut and site is not None and site not in made.cuts:
        made.cuts = (*made.cuts, site)
    made = positions.counted(made, t)
    made = rows.blended(made, site, read_rows.over_blocks(t, gone))
    return row_mixing.pooled(it, made, t, gone, site)


def _pooled(it: Interpreter, args: Args, site: Site | None, position: int = 1, keep: int = 2) -> Tensor:
    """A reduction; over rows of a cache it takes in those of the whole query, whichever of these it goes into."""
    t, axes = first(args), _axes(args, position)
    made = _reduced(it, t, axes, _keeps(args, keep), site)
    if it.events is None or not it.events.writes or t.shape is None:
        return made
    over = [shapes.normal(a, len(t.shape)) for a in (range(len(t.shape)) if axes is None else axes) if a < 10**6]
    return rows.blended(made, site, any(read_rows.has_rows(it, t, a) for a in over) and not rows.has_rows(t))


def _axes(args: Args, position: int = 1) -> list[int] | None:
    given = args.get(position, "dim", "axis", "axes")
    if not is_given(given):
        return None
    items = given.items if isinstance(given, Seq) else [given]
    found = [integer(i) for i in items]
    return [f for f in found if f is not None] if all(f is not None for f in found) else [10**6]


def _keeps(args: Args, position: int = 2) -> bool:
    given = args.get(position, "keepdim", "keepdims")
    return given is not None and operators.truth(given) is True
