"""Writes: in place, at given positions, and their functional spellings."""

from __future__ import annotations

from auditor import dims
from auditor.interpreter import Interpreter
from auditor.places import Site
from auditor.torch import rows
from auditor.torch.events import wraps_at
from auditor.torch.ops.arithmetic import added, broadcasting, clamped, clamped_between, scaled, subtracted
from auditor.torch.ops.op import Op, first
from auditor.torch.tensors import is_scalar, result, tagged
from auditor.values import Args, Const, Seq, Tensor, Unknown, Value, altered


def in_place(op: Op) -> Op:
    """The spelling with a trailing underscore: writes to the storage of its tensor."""

    def run(it: Interpreter, args: Args, site: Site | None) -> Value:
        t = first(args)
        if site is not None and it.events is not None:
            partial = op is scattered
            given = [a for a in args.pos[1:] if isinstance(a, (Seq, Tensor, Unknown)) and partial]
            key = next((a for a in given if isinstance(a, Unknown)), given[0] if given else None)
            own = op in (broadcasting, added, scaled, subtracted, clamped, clamped_between)
            value = args.pos[1] if op is copy_shape and len(args.pos) > 1 else t if own else None
            it.events.written(t, site, key if partial else None, value)
        made = op(it, args, site)
        if isinstance(made, Tensor):
            if it.events is not None and t.base is None:
                rows.overwritten(it, t, None, made.tags)
            shape = t.shape if t.shape is not None else made.shape
            made = altered(made, base=t.base, shape=shape, of=t.of, born=t.born)
        return made

    return run


def copy_shape(it: Interpreter, args: Args, site: Site | None) -> Value:
    t = first(args)
    return result(t.shape, t, *args.pos[1:], site=None)


def scattered(it: Interpreter, args: Args, site: Site | None) -> Value:
    """A functional write at given positions: the rows that it leaves alone are the old ones, in their places."""
    t = first(args)
    parts = [a for a in args.pos[1:] if isinstance(a, Tensor)]
    made = rows.spread_out(result(t.shape, t, *parts, site=None), *parts)
    axis = next((a for a in (*args.pos[1:3], args.kw.get("dim")) if isinstance(a, Const)), None)
    if axis is not None:
        made = rows.along(it, made, t, axis)
    elif (at := args.get(1, "indices")) is not None and isinstance(at, Seq) and t.shape is not None:
        made = rows.other(it, made, any(dims.depends_on_query(d) for d, _ in zip(t.shape, at.items, strict=False)))
    if any(map(wraps_at, (*args.pos[1:], *args.kw.values()))):
        return tagged(made, "moved")
    return rows.in_place_of(t, made)


def filled_in(t: Tensor, value: Value) -> None:
    """`t[...] = value` for a tensor that `forward` has made: what is said of the value holds of `t` as well."""
    if not isinstance(value, Tensor):
        if isinstance(value, Unknown) and not is_scalar(value):
            t.reason = t.reason or value
        return
    t.tags |= value.tags
    if value.reason is not None and value.reason.kind != "data":
        t.reason = t.reason or value.reason
    if t.shape is not None and rows.spreads(value, t.shape):
        t.tags |= {"mixed-rows"}
        t.cuts = (*t.cuts, *(c for c in value.cuts if c not in t.cuts))
