"""Writes: in place, at given positions, and their functional spellings."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from auditor import dims, operators
from auditor.containers.lengths import integer
from auditor.interpreter import Interpreter
from auditor.places import Site
from auditor.torch import placing, progressions, row_layouts, row_mixing, rows, state_copies
from auditor.torch.keys import wraps_at
from auditor.torch.ops import creation, elementwise
from auditor.torch.ops.arithmetic import (
    added,
    between,
    broadcasting,
    clamped,
    clamped_between,
    multiplied,
    product_added,
    scaled,
    subtracted,
)
from auditor.torch.ops.op import Op, first
from auditor.torch.state_writes import is_layer
from auditor.torch.tensors import is_scalar, result, tagged
from auditor.values import NONE, Args, Const, Seq, Tensor, Unknown, Value, altered
from auditor.values.tags import ACROSS, INPUT, LARGEST, MIXED, MOVED, SCORES, TRIANGLE, UNMASKED


def in_place(op: Op) -> Op:
    """The spelling with a trailing underscore: writes to the storage of its tensor."""
    taken = _TAKEN.get(op, _nothing)

    def run(it: Interpreter, args: Args, site: Site | None) -> Value:
        t = first(args)
        if site is not None and it.events is not None:
            key, given, why = taken(args)
            placed = _put_in(it, t, args) if op is added else None
            it.events.written(t, site, key, placed or given, why)
        made = op(it, args, site)
        if isinstance(made, Tensor):
            if it.events is not None and t.base is not None and site is not None:
                it.events.settles(t, made, site, is_layer(t))
            if t.base is None:
                t.tags = t.tags | made.tags & {TRIANGLE}
            if it.events is None:
                t.pick = made.pick
            if it.events is not None and t.base is None:
                copy = state_copies.taking(it.events, t, *taken(args), site) if op in _PLACES else None
                rows.overwritten(it, t, None, made.tags)
                progressions.renewed(t, made)
                t.pick = t.pick or copy
                t.tags = t.tags if INPUT in made.tags else t.tags - {INPUT}
                t.tags = t.tags | made.tags & {SCORES, ACROSS}
            shape = t.shape if t.shape is not None else made.shape
            made = altered(made, base=t.base, shape=shape, of=t.of, born=t.born)
            if op is multiplied and site is not None:
                _keep_half(it, t, made, args.get(1, "other") or NONE)
        return made

    return run


def _keep_half(it: Interpreter, t: Tensor, made: Tensor, mask: Value) -> None:
    """Remember that `t.mul_(mask)`, which gives `made`, leaves room for one row (`_put_in`)."""
    kept = placing.halved(t, mask) if it.events is not None and t.base is not None else None
    if it.events is not None and kept is not None:
        for name in (t, made):
            it.events.halves[id(name)] = (name, kept, it.events.writes[-1])


def _put_in(it: Interpreter, t: Tensor, args: Args) -> Tensor | None:
    """A state with one row put in: what `t.mul_(1 - mask)` has left of it, when this adds the row.

    Both are one write, of that row.
    """
    if it.events is None or "alpha" in args.kw:
        return None
    _, kept, write = it.events.halves.pop(id(t), (None, None, None))
    if kept is None or write is not it.events.writes[-1]:
        return None
    it.events.writes.pop()
    made = placing.completed(it, t, kept, args.get(1, "other") or NONE)
    if made is None:
        it.events.writes.append(write)
    return made


def copy_shape(it: Interpreter, args: Args, site: Site | None) -> Value:
    t = first(args)
    made, given = result(t.shape, t, *args.pos[1:]), args.get(1, "src")
    held = progressions.numbers(t)
    if held is not None and given is not None:
        progressions.assigned(made, held, given, whole=True)
    return made


def _placed(args: Args) -> tuple[Value | None, Tensor | None]:
    """Where a write at given positions goes, and the tensor that it takes."""
    given = [a for a in (*args.pos[1:], *args.kw.values()) if isinstance(a, (Seq, Tensor, Unknown))]
    unread = next((a for a in given if isinstance(a, Unknown)), None)
    places = [a for a in given if not isinstance(a, Tensor) or a.dtype.startswith(("int", "uint", "bool"))]
    key = args.kw.get("index") or args.kw.get("indices") or unread or (places[0] if places else None)
    tensors = [a for a in given if isinstance(a, Tensor) and a is not key]
    return key, tensors[-1] if tensors else None


def _accumulates(args: Args) -> bool:
    """Whether a write may be told to add to what is there: `accumulate=True`, `reduce="add"`."""
    last = args.pos[3] if len(args.pos) > 3 else NONE
    told = last if isinstance(last, Const) and isinstance(last.value, bool) else args.kw.get("accumulate", NONE)
    return any(operators.truth(v) is not False for v in (told, args.kw.get("reduce", NONE)))


def scattered(it: Interpreter, args: Args, site: Site | None) -> Value:
    """A functional write at given positions: the rows that it leaves alone are the old ones, in their places."""
    t, made = first(args), _written_at(it, args, site)
    if any(map(wraps_at, (*args.pos[1:], *args.kw.values()))):
        return tagged(made, MOVED)
    taken = _placed(args)[1]
    held = it.events is not None and taken is not None and it.events.from_held(t.base, taken)
    if _accumulates(args) or (held and taken is not None and not state_copies.is_copy(taken.pick)):
        return made
    return _copied(it, t, made, _placed(args)[0], taken, site)


def _copied(
    it: Interpreter, t: Tensor, made: Tensor, key: Value | None, value: Value | None, site: Site | None
) -> Tensor:
    """`made`: the state `t`, or a copy of it, with a write more; else its rows lie where they lay, as far as seen."""
    made.pick = state_copies.taking(it.events, t, key, value, "", site)
    return made if made.pick is not None else rows.in_place_of(t, made)


def slice_scattered(it: Interpreter, args: Args, site: Site | None) -> Value:
    """`slice_scatter(t, src, dim, start, end, step)`: what `t[..., start:end:step] = src` leaves of it."""
    bounds = [args.get(n, name) or NONE for n, name in ((3, "start"), (4, "end"), (5, "step"))]
    return _at_axis(it, args, Seq("slice", bounds), site)


def select_scattered(it: Interpreter, args: Args, site: Site | None) -> Value:
    """`select_scatter(t, src, dim, index)`: what `t[..., index] = src` leaves of it."""
    return _at_axis(it, args, args.get(3, "index") or NONE, site)


def _at_axis(it: Interpreter, args: Args, part: Value, site: Site | None) -> Value:
    made, t, taken = scattered(it, args, site), first(args), args.get(1, "src")
    axis = integer(args.get(2, "dim"), 0)
    if not isinstance(made, Tensor) or t.shape is None or axis is None or (made.pick is None and t.base is None):
        return made
    before = [Seq("slice", [NONE, NONE, NONE])] * (axis if axis >= 0 else axis + len(t.shape))
    if made.pick is not None:
        made.pick = state_copies.taking(it.events, t, Seq("tuple", [*before, part]), taken, "", site)
    return made


def accumulated(it: Interpreter, args: Args, site: Site | None) -> Value:
    """A functional write that adds to what is there: `index_add`, `scatter_add`."""
    return _written_at(it, args, site)


def _written_at(it: Interpreter, args: Args, site: Site | None) -> Tensor:
    t = first(args)
    parts = [a for a in (*args.pos[1:], *args.kw.values()) if isinstance(a, Tensor)]
    made = rows.spread_out(result(t.shape, t, *parts), *parts)
    made.tags = made.tags - UNMASKED
    if any(row_layouts.crosses(t, p) for p in parts):
        made = rows.blended(made, site)
    if t.data is not None:
        made = _on_constants(made, t, parts, site)
    axis = next((a for a in (*args.pos[1:3], args.kw.get("dim")) if isinstance(a, Const)), None)
    if axis is not None:
        return row_mixing.along(it, made, t, axis, site=site)
    if isinstance(at := args.get(1, "indices"), Seq) and t.shape is not None:
        others = any(dims.depends_on_query(d) for d, _ in zip(t.shape, at.items, strict=False))
        return rows.other(it, made, others, site)
    return made


def _on_constants(made: Tensor, t: Tensor, parts: list[Tensor], site: Site | None) -> Tensor:
    """Writes into a tensor that is filled with one number: what is chosen says all of it where numbers are written.

    Rows of the query that are written where there is one place for all of them are mixed.
    """
    indices = [p for p in parts if p.dtype.startswith(("int", "uint"))]
    if len(indices) == len(parts):
        made = tagged(made, *(tag for p in indices for tag in p.tags & LARGEST))
    apart = rows.has_rows(t) or not any(map(rows.has_rows, parts))
    return rows.blended(made, site, not apart)


_PLACES = (scattered, accumulated, slice_scattered, select_scattered)
_Taken = tuple[Value | None, Value | None, str]


def _nothing(args: Args) -> _Taken:
    return None, None, ""


def _taken_at(args: Args, adds: bool = False) -> _Taken:
    return *_placed(args), "is added to what it held" if adds or _accumulates(args) else ""


_TAKEN: dict[Op, Callable[[Args], _Taken]] = {
    scattered: _taken_at,
    accumulated: partial(_taken_at, adds=True),
    creation.like: lambda args: (None, Const(0), ""),  # `zero_` and `fill_`
    copy_shape: lambda args: (None, args.pos[1] if len(args.pos) > 1 else None, ""),
    elementwise.masked: lambda args: (args.get(1, "mask"), None, ""),
    creation.like: lambda args: (None, args.get(1, "value") or Const(0), ""),
    **dict.fromkeys(
        (added, between, broadcasting, clamped, clamped_between, multiplied, product_added, scaled, subtracted),
        lambda args: (None, first(args), ""),
    ),
}
"""What an operation writes to its tensor when it works in place: where, what, and why nobody can tell what is there.

See `Events.written`; of the others nothing is said, so that they write all of it.
"""


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
        t.tags |= {MIXED}
        t.cuts = (*t.cuts, *(c for c in value.cuts if c not in t.cuts))
