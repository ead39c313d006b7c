"""PyTorch's functions and tensor methods on shapes. Both spellings share one implementation: the tensor comes first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from auditor import dims, operators
from auditor.containers import integer, iterate
from auditor.dims import Dim
from auditor.interpreter import Interpreter
from auditor.places import Site
from auditor.torch import rows, shapes
from auditor.torch.events import is_layer, wraps_at
from auditor.torch.shapes import Shape
from auditor.torch.tensors import (
    as_tensor,
    dtype_of,
    flatten_items,
    is_scalar,
    result,
    size,
    sizes,
    tagged,
    unknown_tensor,
)
from auditor.values import (
    NONE,
    Args,
    Const,
    External,
    Num,
    Seq,
    Star,
    Storage,
    Tensor,
    Union,
    Unknown,
    Value,
    merge_flags,
    merge_places,
    number,
    serial,
    text_of,
)

Op = Callable[[Interpreter, Args, "Site | None"], Value]


def first(args: Args, *names: str) -> Tensor:
    """The tensor that the operation works on; a value that is no tensor counts as one of unknown shape."""
    value = args.get(0, "input", "self", "x", *names)
    found = as_tensor(value) if value is not None else None
    return found if found is not None else Tensor(() if value is not None and is_scalar(value) else None)


def lifted(op: Op) -> Op:
    """`op`, tried on each option when its first argument is one of several values."""

    def run(it: Interpreter, args: Args, site: Site | None) -> Value:
        if args.pos and isinstance(args.pos[0], Union):
            rest = args.pos[1:]
            return it.each(args.pos[0], lambda o: op(it, Args([o, *rest], args.kw, args.more), site))
        return op(it, args, site)

    return run


# -- elementwise ------------------------------------------------------------------------------------------------


def same(it: Interpreter, args: Args, site: Site | None) -> Value:
    t = first(args)
    made = result(t.shape, t, site=None, dtype=dtype_of(args))
    made.reason = t.reason
    return made


def view_of(it: Interpreter, args: Args, site: Site | None) -> Value:
    t = first(args)
    return replace(t, dtype=dtype_of(args) or t.dtype, of=t if t.base is None else None)


def cloned(it: Interpreter, args: Args, site: Site | None) -> Value:
    return replace(first(args), of=None, born=serial())


def converted(it: Interpreter, args: Args, site: Site | None) -> Value:
    t = first(args)
    given = next((a for a in (*args.pos[1:], *args.kw.values()) if isinstance(a, External) and "." in a.dotted), None)
    dtype = given.dotted.rsplit(".", 1)[-1] if given is not None else ""
    return _as_type(t, dtype)


def _as_type(t: Tensor, dtype: str) -> Tensor:
    """Numbers of another type are a copy; a state stays known as one."""
    copied = dtype not in ("", t.dtype) and (t.base is None or t.base.role == "parameter")
    if not copied:
        return replace(t, dtype=dtype or t.dtype, of=t if t.base is None else None)
    return replace(t, dtype=dtype, base=None, of=None, born=serial())


def cast(dtype: str) -> Op:
    return lambda it, args, site: _as_type(first(args), dtype)


def broadcasting(it: Interpreter, args: Args, site: Site | None) -> Value:
    values = [
        *args.pos,
        *(args.kw[k] for k in ("other", "tensor1", "tensor2", "min", "max", "end", "weight") if k in args.kw),
    ]
    return combine(values, site)


def added(it: Interpreter, args: Args, site: Site | None) -> Value:
    made = broadcasting(it, args, site)
    return rows.summed(it, made, *args.pos, *args.kw.values()) if isinstance(made, Tensor) else made


def scaled(it: Interpreter, args: Args, site: Site | None) -> Value:
    made = broadcasting(it, args, site)
    if not isinstance(made, Tensor):
        return made
    rounding = text_of(args.kw.get("rounding_mode", NONE))
    return tagged(made, "floored") if rounding else rows.masked(it, made, *args.pos, *args.kw.values())


def compared(it: Interpreter, args: Args, site: Site | None) -> Value:
    made = broadcasting(it, args, site)
    return rows.compares(made, [*args.pos, *args.kw.values()]) if isinstance(made, Tensor) else made


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
    return rows.masked(it, made, first(args), mask) if isinstance(made, Tensor) and mask is not None else made


def ordered(axis: int, default: int | None = None) -> Op:
    """What moves or mixes values along one axis, which is argument `axis`."""

    def run(it: Interpreter, args: Args, site: Site | None) -> Value:
        made = same(it, args, site)
        return rows.along(it, made, first(args), args.get(axis, "dim", "dims", "axis"), default)  # type: ignore[arg-type]

    return run


def flip(it: Interpreter, args: Args, site: Site | None) -> Value:
    t, made = first(args), same(it, args, site)
    return rows.flipped(it, made, t, args.get(1, "dims", "dim")) if isinstance(made, Tensor) else made


def clamped(it: Interpreter, args: Args, site: Site | None) -> Value:
    """Values with a bound from above: of positions, two may be the same then."""
    made = broadcasting(it, args, site)
    return tagged(made, "chosen") if isinstance(made, Tensor) and made.dtype.startswith(("int", "uint")) else made


def clamped_between(it: Interpreter, args: Args, site: Site | None) -> Value:
    most = args.get(2, "max")
    bounded = most is not None and not (isinstance(most, Const) and most.value is None)
    return (clamped if bounded else broadcasting)(it, args, site)


def combine(values: Sequence[Value], site: Site | None) -> Tensor:
    """The broadcast of tensors and scalars. Code that cannot be read is remembered: a sum with it keeps its shape."""
    shapes_: list[Shape] = []
    unread: Unknown | None = None
    loose: Unknown | None = None
    for v in values:
        if isinstance(v, Tensor):
            if v.shape is None and v.reason is not None and v.reason.kind == "data":
                loose = loose or v.reason  # weights and data fit what they are combined with
            elif v.shape is None:
                unread = unread or v.reason or Unknown("a tensor of unknown shape", places=v.places)
            else:
                shapes_.append(v.shape)
        elif isinstance(v, Unknown) and not is_scalar(v):
            unread = unread or v
        elif isinstance(v, Union):
            t = as_tensor(v)
            if t is not None and t.shape is not None:
                shapes_.append(t.shape)
            elif not all(is_scalar(o) for o in v.options):
                unread = unread or Unknown("one of several values", places=v.places)
    shape = shapes.broadcast(shapes_) if shapes_ else None
    if unread is not None and shape is not None and len(shape) < 2:
        shape = None  # a weight or a number says nothing of the rank of what it is combined with
    made = result(shape, *values, site=None, reason=unread)
    if shape is not None and any(isinstance(v, Tensor) and spreads(v, shape) for v in values):
        made = tagged(made, "mixed-rows")
    if shape is None:
        made.reason = unread or loose
    elif unread is None and made.reason is not None and made.reason.kind == "data":
        made.reason = None
    return made


def spreads(t: Tensor, shape: Shape) -> bool:
    """Whether one row that was cut out of the query goes into all rows of `shape`.

    Positions do that rightly (a start plus a range), so integers do not count.
    """
    if not t.cuts or t.shape is None or t.dtype.startswith(("int", "uint", "bool")):
        return False
    return any(map(dims.depends_on_query, shape)) and not any(map(_surely_rows, t.shape))


def _surely_rows(d: Dim) -> bool:
    """Whether a dimension depends on the query whichever way was taken."""
    return all(map(dims.depends_on_query, dims.alternatives(d)))


def tensor_binary(it: Interpreter, op: str, a: Value, b: Value, site: Site | None) -> Value:
    """`a op b` where one of them is a tensor."""
    if op == "@":
        return matmul(it, Args([a, b]), site)
    made = combine([a, b], site)
    _meets_fixed_rows(it, a, b, site)
    if op in ("%", "&") or (op == "-" and isinstance(b, Tensor) and "floored" in b.tags):
        made = tagged(made, "wraps")
    elif op == "//":
        made = tagged(made, "floored")
    elif op in ("<", "<=", ">", ">=", "==", "!="):
        made = rows.compares(made, (a, b))
    elif op in ("+", "-"):
        made = rows.summed(it, made, a, b)
    elif op in ("*", "/"):
        made = rows.masked(it, made, a, b)
    if isinstance(a, Tensor) and isinstance(b, (Const, Num)) and a.data is not None and op in "+-*//%":
        made.data = operators.binary(op, a.data, b)
    return made


def _meets_fixed_rows(it: Interpreter, a: Value, b: Value, site: Site | None) -> None:
    """As many rows as the query are combined with a fixed number of rows: the program works for that number only."""
    if it.events is None or site is None or not (isinstance(a, Tensor) and isinstance(b, Tensor)):
        return
    for x, y in zip(reversed(a.shape or ()), reversed(b.shape or ()), strict=False):
        for rows_, fixed in ((x, y), (y, x)):
            if dims.depends_on_query(rows_) and isinstance(fixed, int) and fixed > 1:
                it.events.baked.append((site, f"{text(a.shape or ())} meets {text(b.shape or ())}"))
                return


def modulo(it: Interpreter, args: Args, site: Site | None) -> Value:
    return tagged(combine(args.pos, site), "wraps")


def floored(it: Interpreter, args: Args, site: Site | None) -> Value:
    return tagged(combine(args.pos, site), "floored")


def subtracted(it: Interpreter, args: Args, site: Site | None) -> Value:
    made = combine([*args.pos, *(args.kw[k] for k in ("other",) if k in args.kw)], site)
    taken = args.get(1, "other")
    made = rows.summed(it, made, *args.pos, *args.kw.values())
    return tagged(made, "wraps") if isinstance(taken, Tensor) and "floored" in taken.tags else made


def where(it: Interpreter, args: Args, site: Site | None) -> Value:
    if len(args.pos) + len(args.kw) < 3:
        return unknown_tensor("the positions where a condition holds", site, *args.pos)
    made = combine([*args.pos, *args.kw.values()], site)
    for v in args.pos[1:]:
        if isinstance(v, Tensor) and v.shape == made.shape:
            made = _in_place_of(v, made)  # a masked choice keeps rows in their places
    given = (args.get(0, "condition"), args.get(1, "input"))  # `t.where(condition, other)` has it second
    condition = next((c for c in given if isinstance(c, Tensor) and c.dtype == "bool"), given[0])
    chosen = [v for v in (*args.pos, *args.kw.values()) if isinstance(v, Tensor) and v is not condition]
    made.dtype = chosen[0].dtype if chosen else "float32"
    if condition is not None:
        made = rows.masked(it, made, condition, *(v for v in args.pos if v is not condition))
    if any(isinstance(v, Tensor) and v.dtype.startswith(("int", "uint")) for v in args.pos[1:]):
        return tagged(made, "chosen")
    return made


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
            made = replace(made, base=t.base, shape=shape, of=t.of, born=t.born)
        return made

    return run


def copy_shape(it: Interpreter, args: Args, site: Site | None) -> Value:
    t = first(args)
    return result(t.shape, t, *args.pos[1:], site=None)


# -- reductions -------------------------------------------------------------------------------------------------


def _axes(args: Args, position: int = 1) -> list[int] | None:
    given = args.get(position, "dim", "axis", "axes")
    if given is None or (isinstance(given, Const) and given.value is None):
        return None
    items = given.items if isinstance(given, Seq) else [given]
    found = [integer(i) for i in items]
    return [f for f in found if f is not None] if all(f is not None for f in found) else [10**6]


def _keeps(args: Args, position: int = 2) -> bool:
    given = args.get(position, "keepdim", "keepdims")
    return given is not None and operators.truth(given) is True


def reduced(t: Tensor, axes: list[int] | None, keep: bool, site: Site | None) -> Tensor:
    if t.shape is None:
        return result(None, t, reason=t.reason)
    if axes is None:
        return result((1,) * len(t.shape) if keep else (), t, site=None)
    if any(a >= 10**6 for a in axes):
        return unknown_tensor("a reduction over an axis that is not known", site, t)
    shape = t.shape
    gone = {shapes.normal(a, len(shape)) for a in axes}
    cut = any(n in gone and dims.depends_on_query(d) for n, d in enumerate(shape))
    left = tuple(1 if n in gone else d for n, d in enumerate(shape) if keep or n not in gone)
    made = result(left, t, site=None)
    if cut and site is not None and site not in made.cuts:
        made.cuts = (*made.cuts, site)
    return made


def reduction(it: Interpreter, args: Args, site: Site | None) -> Value:
    return reduced(first(args), _axes(args), _keeps(args), site)


def extremum(it: Interpreter, args: Args, site: Site | None) -> Value:
    """`max`/`min`: (values, indices) along a dimension, a number, or elementwise with another tensor."""
    if len(args.pos) > 1 and isinstance(args.pos[1], Tensor):
        return combine(args.pos, site)
    axes = _axes(args)
    made = reduced(first(args), axes, _keeps(args), site)
    if axes is None:
        return made
    return pair(made, tagged(replace(made, dtype="int64"), "argmax"), ("values", "indices"))


def argmax(it: Interpreter, args: Args, site: Site | None) -> Value:
    made = reduced(first(args), _axes(args), _keeps(args), site)
    return tagged(replace(made, dtype="int64"), "argmax")


def topk(it: Interpreter, args: Args, site: Site | None) -> Value:
    t = first(args)
    k = size(args.get(1, "k") or NONE)
    axis = integer(args.get(2, "dim"), -1)
    if site is not None and it.events is not None:
        it.events.experts.append(site)
    if t.shape is None or k is None or axis is None:
        made = unknown_tensor("top-k of a tensor that is not known", site, t)
    else:
        made = result(shapes.replace(t.shape, axis, k), t, site=None)
    made = tagged(made, "topk")
    return pair(made, tagged(replace(made, dtype="int64"), "argmax"), ("values", "indices"))


def sort(it: Interpreter, args: Args, site: Site | None) -> Value:
    t = first(args)
    axis = args.get(1, "dim")
    axis = axis if isinstance(axis, Const) and type(axis.value) is int else args.kw.get("dim")
    made = rows.along(it, result(t.shape, t), t, axis, -1)
    return pair(made, replace(result(t.shape, t), dtype="int64"), ("values", "indices"))


def quantile(it: Interpreter, args: Args, site: Site | None) -> Value:
    """One reduced tensor for each quantile, stacked in front when several are asked for."""
    made = reduced(first(args), _axes(args, 2), _keeps(args, 3), site)
    asked = as_tensor(args.get(1, "q") or NONE)
    if asked is None or not asked.shape or made.shape is None:
        return (
            made
            if asked is None or asked.shape == ()
            else replace(made, shape=None, reason=asked.reason or made.reason)
        )
    return replace(made, shape=(*asked.shape, *made.shape))


def positions(it: Interpreter, args: Args, site: Site | None) -> Value:
    """Where each value would stand in sorted boundaries: as many numbers as there are values."""
    values = as_tensor(args.get(1, "input", "self") or NONE)
    if values is None:
        return unknown_tensor("searchsorted() of values that are not known", site, *args.pos)
    return replace(result(values.shape, values, first(args), site=None, reason=values.reason), dtype="int64")


def buckets(it: Interpreter, args: Args, site: Site | None) -> Value:
    t = first(args)
    return replace(result(t.shape, t, site=None, reason=t.reason), dtype="int64")


def pair(a: Value, b: Value, names: tuple[str, str]) -> Value:
    from auditor.torch.modules import named_pair

    return named_pair(a, b, names)


# -- shapes -----------------------------------------------------------------------------------------------------


def reshape(it: Interpreter, args: Args, site: Site | None) -> Value:
    t = first(args)
    given = args.pos[1:] or [v for k, v in args.kw.items() if k in ("shape", "size")]
    if len(given) == 1 and not isinstance(given[0], (Const, Num, Seq, Unknown, Union, Tensor)):
        return view_of(it, args, site)  # view(dtype)
    target = sizes(it, given, site)
    if t.shape is None and target is not None and -1 not in target and is_data(t):
        return _viewed(t, tuple(target))  # whatever it was in the file: a program that runs gives it this shape
    if t.shape is None or target is None:
        made = unknown_tensor("a reshape to sizes that are not known", site, t, *given)
        made.base = t.base
        return made
    done = shapes.reshape(t.shape, target)
    baked = done.fits is False or any(isinstance(d, dims.Poly) and d.traced for d in target)
    if baked and site is not None and it.events is not None:
        it.events.baked.append((site, f"reshape of {text(t.shape)} to {text(tuple(target))}"))
    made = result(done.shape, t, site=None)
    made.base, made.of = t.base, t if t.base is None else None
    return tagged(made, "one-row") if done.one_row else made


def is_data(t: Tensor) -> bool:
    """Whether all that is not known of a tensor is what a file holds."""
    return t.reason is not None and t.reason.kind == "data"


def text(shape: Shape) -> str:
    return f"[{', '.join(map(str, shape))}]"


def flatten(it: Interpreter, args: Args, site: Site | None) -> Value:
    t = first(args)
    start, end = integer(args.get(1, "start_dim"), 0), integer(args.get(2, "end_dim"), -1)
    if t.shape is None or start is None or end is None:
        return unknown_tensor("flatten() of a tensor that is not known", site, t)
    rank = len(t.shape)
    start, end = shapes.normal(start, rank), shapes.normal(end, rank)
    return _viewed(t, (*t.shape[:start], dims.product(t.shape[start : end + 1]), *t.shape[end + 1 :]))


def _viewed(t: Tensor, shape: Shape) -> Tensor:
    made = result(shape, t, site=None)
    made.base, made.of = t.base, t if t.base is None else None
    return made


def unflatten(it: Interpreter, args: Args, site: Site | None) -> Value:
    t = first(args)
    axis, target = integer(args.get(1, "dim")), sizes(it, args.pos[2:] or [args.kw.get("sizes", NONE)], site)
    if t.shape is None or axis is None or target is None:
        return unknown_tensor("unflatten() with sizes that are not known", site, t)
    axis = shapes.normal(axis, len(t.shape))
    part = shapes.reshape((t.shape[axis],), target).shape
    return _viewed(t, (*t.shape[:axis], *part, *t.shape[axis + 1 :]))


def permute(it: Interpreter, args: Args, site: Site | None) -> Value:
    t = first(args)
    order = sizes(it, args.pos[1:] or [args.kw.get("dims", NONE)], site)
    if t.shape is None or order is None or not all(isinstance(o, int) for o in order):
        return unknown_tensor("a permutation that is not known", site, t)
    shape = t.shape
    return _viewed(t, tuple(shape[o] for o in order if isinstance(o, int)))


def transpose(it: Interpreter, args: Args, site: Site | None) -> Value:
    t = first(args)
    a, b = integer(args.get(1, "dim0", "axis0"), -2), integer(args.get(2, "dim1", "axis1"), -1)
    if t.shape is None or a is None or b is None:
        return unknown_tensor("a transposition that is not known", site, t)
    shape = list(t.shape)
    if len(shape) >= 2:
        shape[a], shape[b] = shape[b], shape[a]
    return _viewed(t, tuple(shape))


def movedim(it: Interpreter, args: Args, site: Site | None) -> Value:
    t = first(args)
    a, b = integer(args.get(1, "source")), integer(args.get(2, "destination"))
    if t.shape is None or a is None or b is None:
        return unknown_tensor("a move of dimensions that is not known", site, t)
    shape = list(t.shape)
    moved = shape.pop(shapes.normal(a, len(shape)))
    shape.insert(shapes.normal(b, len(t.shape)), moved)
    return _viewed(t, tuple(shape))


def unsqueeze(it: Interpreter, args: Args, site: Site | None) -> Value:
    t, axis = first(args), integer(args.get(1, "dim", "axis"))
    if t.shape is None or axis is None:
        return unknown_tensor("unsqueeze() of a tensor that is not known", site, t)
    axis = axis + len(t.shape) + 1 if axis < 0 else axis
    made = _viewed(t, (*t.shape[:axis], 1, *t.shape[axis:]))
    made.data = t.data
    return made


def squeeze(it: Interpreter, args: Args, site: Site | None) -> Value:
    t = first(args)
    given = args.get(1, "dim", "axis")
    if t.shape is None:
        return t
    if given is None:
        return _viewed(t, tuple(d for d in t.shape if d != 1))
    axis = integer(given)
    if axis is None:
        return unknown_tensor("squeeze() of an axis that is not known", site, t)
    axis = shapes.normal(axis, len(t.shape))
    if dims.depends_on_query(t.shape[axis]):
        return t  # squeezing a dimension that is not 1 does nothing
    return _viewed(t, shapes.drop(t.shape, axis))


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
    made = rows.widened(t, _viewed(t, shape))
    return tagged(made, "mixed-rows") if spreads(t, shape) else made


def repeat(it: Interpreter, args: Args, site: Site | None) -> Value:
    t, counts = first(args), sizes(it, args.pos[1:], site)
    if t.shape is None or counts is None:
        return unknown_tensor("repeat() with counts that are not known", site, t)
    pad = (1,) * (len(counts) - len(t.shape))
    made = result(tuple(dims.mul(d, c) for d, c in zip((*pad, *t.shape), counts, strict=True)), t, site=None)
    again = any(d != 1 and c != 1 for d, c in zip((*pad, *t.shape), counts, strict=True))
    if again and t.dtype.startswith(("int", "uint")):
        made = tagged(made, "wraps")  # the same numbers come again: a table of slots in a ring
    return _mixed(rows.widened(t, made), t)


def _mixed(made: Tensor, *parts: Tensor) -> Tensor:
    """`made`, tagged when one row of the query is spread over all of its rows, or stands among others."""
    return tagged(made, "mixed-rows") if made.shape is not None and any(spreads(p, made.shape) for p in parts) else made


def repeat_interleave(it: Interpreter, args: Args, site: Site | None) -> Value:
    t, count, axis = first(args), size(args.get(1, "repeats") or NONE), integer(args.get(2, "dim"))
    if t.shape is None or count is None or isinstance(args.get(1), Tensor):
        return unknown_tensor("repeat_interleave() with counts that are not known", site, t)
    if axis is None:
        return result((dims.mul(dims.product(t.shape), count),), t, site=None)
    made = result(
        shapes.replace(t.shape, axis, dims.mul(t.shape[shapes.normal(axis, len(t.shape))], count)), t, site=None
    )
    return _mixed(rows.along(it, made, t, Const(axis)), t)


def narrow(it: Interpreter, args: Args, site: Site | None) -> Value:
    t, axis = first(args), integer(args.get(1, "dim"))
    length = size(args.get(3, "length") or NONE)
    if t.shape is None or axis is None or length is None:
        made = unknown_tensor("narrow() to a length that is not known", site, t)
        made.base = t.base
        return made
    axis = shapes.normal(axis, len(t.shape))
    made = _viewed(t, shapes.replace(t.shape, axis, length))
    if made.base is not None and wraps_at(args.get(2, "start")):
        made = tagged(made, "wraps")
    if dims.depends_on_query(t.shape[axis]) and not dims.depends_on_query(length) and site is not None:
        made.cuts = (*made.cuts, site)
    return made


def select(it: Interpreter, args: Args, site: Site | None) -> Value:
    t, axis = first(args), integer(args.get(1, "dim"))
    if t.shape is None or axis is None:
        return unknown_tensor("select() of an axis that is not known", site, t)
    axis = shapes.normal(axis, len(t.shape))
    made = _viewed(t, shapes.drop(t.shape, axis))
    if made.base is not None and wraps_at(args.get(2, "index")):
        made = tagged(made, "wraps")
    if dims.depends_on_query(t.shape[axis]) and site is not None:
        made.cuts = (*made.cuts, site)
    return made


def index_select(it: Interpreter, args: Args, site: Site | None) -> Value:
    t, axis, index = first(args), integer(args.get(1, "dim")), as_tensor(args.get(2, "index") or NONE)
    if t.shape is None or axis is None or index is None or index.shape is None:
        return unknown_tensor("index_select() with an index that is not known", site, t)
    axis = shapes.normal(axis, len(t.shape))
    count = index.shape[0] if index.shape else 1
    made = result(shapes.replace(t.shape, axis, count), t, index, site=None)
    if dims.depends_on_query(t.shape[axis]) and not dims.depends_on_query(count) and site is not None:
        made.cuts = (*made.cuts, site)
    return rows.along(it, made, t, Const(axis))


def gather(it: Interpreter, args: Args, site: Site | None) -> Value:
    t, index = first(args), as_tensor(args.get(2, "index") or NONE)
    if index is None or index.shape is None:
        return unknown_tensor("gather() with an index that is not known", site, t)
    made = result(index.shape, t, index, site=None)
    made.dtype = t.dtype
    if t.shape is not None and any(
        dims.depends_on_query(a) and not dims.depends_on_query(b) for a, b in zip(t.shape, index.shape, strict=False)
    ):
        made.cuts = (*made.cuts, site) if site is not None else made.cuts
    return rows.along(it, made, t, args.get(1, "dim"))


def cat(it: Interpreter, args: Args, site: Site | None) -> Value:
    parts = args.get(0, "tensors")
    axis = integer(args.get(1, "dim", "axis"), 0)
    if parts is None or site is None:
        return unknown_tensor("cat() of tensors that are not known", site)
    source = iterate(it, parts, site)
    tensors = [as_tensor(v) for i in source.items for v in (i.items if isinstance(i, Star) else (i,))]
    known = [t for t in tensors if t is not None and t.shape is not None]
    if axis is None or not known:
        unread = [t for t in tensors if t is not None] if source.rest is None else source.items
        return unknown_tensor("cat() of tensors that are not known", site, *unread)
    axis = shapes.normal(axis, max(len(t.shape or ()) for t in known))
    if not source.exact or len(known) != len(source.items) or any(len(t.shape or ()) <= axis for t in known):
        base = next((t for t in tensors if t is not None and t.shape is None), None)
        if base is not None:
            return unknown_tensor("cat() with a tensor that is not known", site, base, *known)
        if len({len(t.shape or ()) for t in known}) > 1:
            return unknown_tensor("cat() of tensors of several ranks", site)
        each = shapes.broadcast([t.shape or () for t in known])
        longer = any(dims.depends_on_query((t.shape or ())[axis]) for t in known)
        made = result(shapes.replace(each, axis, dims.symbol(dims.Atom("cat", longer))), *known, site=None)
        return _mixed(made, *known)
    total: Dim = 0
    for t in known:
        total = dims.add(total, (t.shape or ())[axis])
    shape = list(known[0].shape or ())
    for n in range(len(shape)):
        for t in known[1:]:
            if n != axis and n < len(t.shape or ()):
                shape[n] = shapes.broadcast_dim(shape[n], (t.shape or ())[n])
    made = result(shapes.replace(tuple(shape), axis, total), *known, site=None)
    made.tags = made.tags | _moved(known, axis, made.shape)
    return _mixed(rows.other(it, made, len(known) > 1 and dims.depends_on_query(total)), *known)


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
        return frozenset({"grown"})
    full = base.shape[len(base.shape) - len(whole) :]
    return frozenset({"moved"}) if len(parts) == 2 and whole[axis] == full[axis] else frozenset()


def rolled(it: Interpreter, args: Args, site: Site | None) -> Value:
    made = same(it, args, site)
    return tagged(rows.along(it, made, first(args), args.get(2, "dims")), "moved") if isinstance(made, Tensor) else made


def stack(it: Interpreter, args: Args, site: Site | None) -> Value:
    parts, axis = args.get(0, "tensors"), integer(args.get(1, "dim", "axis"), 0)
    if parts is None or site is None or axis is None:
        return unknown_tensor("stack() of tensors that are not known", site)
    source = iterate(it, parts, site)
    options = [as_tensor(v) for i in source.items for v in (i.items if isinstance(i, Star) else (i,))]
    known = [t for t in options if t is not None and t.shape is not None]
    if not known or len(known) != len(options) or source.rest is not None:
        return unknown_tensor("stack() of tensors that are not known", site, *[t for t in options if t is not None])
    shape = shapes.broadcast([t.shape or () for t in known])
    axis = axis + len(shape) + 1 if axis < 0 else axis
    count: Dim = len(known) if source.exact else dims.symbol(dims.Atom("stack"))
    return result((*shape[:axis], count, *shape[axis:]), *known, site=None)


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
        return Seq("tuple", [_part(t, axis, n, site) for n in lengths if n is not None])
    each = size(given)
    if each is None:
        return _unknown_parts(t, given, site)
    count = dims.exact_div(t.shape[axis], each)
    _counted(it, dims.floordiv(t.shape[axis], each), site, "split()")
    if isinstance(count, int) and count <= 64:
        return Seq("tuple", [_part(t, axis, each, site)] * count)
    if isinstance(each, int) and isinstance(t.shape[axis], int):
        whole = t.shape[axis]
        assert isinstance(whole, int)
        lengths_ = [each] * (whole // each) + ([whole % each] if whole % each else [])
        return Seq("tuple", [_part(t, axis, n, site) for n in lengths_])
    return Seq("tuple", [Star((_part(t, axis, each, site),))])


def _part(t: Tensor, axis: int, length: Dim, site: Site | None) -> Tensor:
    assert t.shape is not None
    made = _viewed(t, shapes.replace(t.shape, axis, length))
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


def chunk(it: Interpreter, args: Args, site: Site | None) -> Value:
    t, count, axis = first(args), integer(args.get(1, "chunks")), integer(args.get(2, "dim"), 0)
    if t.shape is None or count is None or axis is None:
        return _unknown_parts(t, Seq("tuple", [NONE] * (count or 0)), site)
    axis = shapes.normal(axis, len(t.shape))
    each = dims.floordiv(t.shape[axis], count)
    return Seq("tuple", [_part(t, axis, each, site)] * count)


def unbind(it: Interpreter, args: Args, site: Site | None) -> Value:
    t, axis = first(args), integer(args.get(1, "dim"), 0)
    if t.shape is None or axis is None:
        return Seq("tuple", [Star((unknown_tensor("parts of a tensor that are not known", site, t),))])
    axis = shapes.normal(axis, len(t.shape))
    part = _viewed(t, shapes.drop(t.shape, axis))
    count = t.shape[axis]
    _counted(it, count, site, "unbind()")
    if dims.depends_on_query(count) and site is not None:
        part.cuts = (*part.cuts, site)
    return Seq("tuple", [part] * count if isinstance(count, int) and count <= 64 else [Star((part,))])


def pad(it: Interpreter, args: Args, site: Site | None) -> Value:
    t, amounts = first(args), sizes(it, [args.get(1, "pad") or NONE], site)
    if t.shape is None or amounts is None:
        return unknown_tensor("pad() by amounts that are not known", site, t)
    shape = list(t.shape)
    for n in range(0, len(amounts) - 1, 2):
        axis = len(shape) - 1 - n // 2
        shape[axis] = dims.add(shape[axis], dims.add(amounts[n], amounts[n + 1]))
    longer = any(dims.depends_on_query(a) and a != b for a, b in zip(t.shape, shape, strict=True))
    shifted = any(
        dims.depends_on_query(t.shape[len(shape) - 1 - n // 2]) and (amounts[n], amounts[n + 1]) != (0, 0)
        for n in range(0, len(amounts) - 1, 2)
    )
    return _mixed(rows.other(it, result(tuple(shape), t, site=None), longer or shifted), t)


# -- products ---------------------------------------------------------------------------------------------------


def matmul(it: Interpreter, args: Args, site: Site | None) -> Value:
    a, b = as_tensor(args.get(0, "input") or NONE), as_tensor(args.get(1, "other", "mat2") or NONE)
    if a is None or b is None or a.shape is None or b.shape is None or not a.shape or not b.shape:
        return unknown_tensor("a product of tensors that are not known", site, *(t for t in (a, b) if t is not None))
    return rows.multiplied(result(shapes.matmul(a.shape, b.shape), a, b, site=None), a, b)


def linear(it: Interpreter, args: Args, site: Site | None) -> Value:
    x, weight = as_tensor(args.get(0, "input") or NONE), as_tensor(args.get(1, "weight") or NONE)
    if x is None or weight is None or x.shape is None or weight.shape is None or len(weight.shape) != 2:
        return unknown_tensor(
            "a linear layer of tensors that are not known", site, *(t for t in (x, weight) if t is not None)
        )
    return result((*x.shape[:-1], weight.shape[0]), x, weight, site=None)


def einsum(it: Interpreter, args: Args, site: Site | None) -> Value:
    equation = text_of(args.pos[0])
    given = args.pos[1:]
    if len(given) == 1 and isinstance(given[0], Seq):
        given = given[0].items
    tensors = [as_tensor(g) for g in given]
    known = [t.shape for t in tensors if t is not None and t.shape is not None]
    shape = shapes.einsum(equation, known) if equation and len(known) == len(given) else None
    if shape is None:
        return unknown_tensor("an einsum of tensors that are not known", site, *(t for t in tensors if t is not None))
    made = result(shape, *(t for t in tensors if t is not None), site=None)
    return rows.mixed(made) if sum(len(s) > 2 for s in known) > 1 else made


def attention(it: Interpreter, args: Args, site: Site | None) -> Value:
    """Scaled dot-product attention: query rows, value width."""
    q, v = as_tensor(args.get(0, "query") or NONE), as_tensor(args.get(2, "value") or NONE)
    if q is None or q.shape is None:
        return unknown_tensor("attention with a query that is not known", site, *(t for t in (q,) if t is not None))
    width = v.shape[-1] if v is not None and v.shape else q.shape[-1]
    others = (t for t in (v, as_tensor(args.get(1, "key") or NONE)) if t is not None)
    return rows.mixed(result((*q.shape[:-1], width), q, *others, site=None))


def embedding(it: Interpreter, args: Args, site: Site | None) -> Value:
    ids, weight = as_tensor(args.get(0, "input") or NONE), as_tensor(args.get(1, "weight") or NONE)
    if ids is None or weight is None or ids.shape is None or weight.shape is None:
        return unknown_tensor(
            "an embedding of tensors that are not known", site, *(t for t in (ids, weight) if t is not None)
        )
    return result((*ids.shape, *weight.shape[1:]), ids, weight, site=None)


def outer(it: Interpreter, args: Args, site: Site | None) -> Value:
    a, b = first(args), as_tensor(args.get(1, "vec2") or NONE)
    if a.shape is None or b is None or b.shape is None:
        return unknown_tensor("an outer product of tensors that are not known", site, a)
    return result((*a.shape, *b.shape), a, b, site=None)


def convolution(spatial: int, transposed: bool = False) -> Op:
    def run(it: Interpreter, args: Args, site: Site | None) -> Value:
        x, weight = as_tensor(args.get(0, "input") or NONE), as_tensor(args.get(1, "weight") or NONE)
        if x is None or x.shape is None or weight is None or weight.shape is None or len(weight.shape) != spatial + 2:
            return unknown_tensor(
                "a convolution of tensors that are not known", site, *(t for t in (x, weight) if t is not None)
            )
        kernel = list(weight.shape[2:])
        stride, padding = _each(args.get(3, "stride"), spatial, 1), _each(args.get(4, "padding"), spatial, 0)
        dilation = _each(args.get(5, "dilation") if not transposed else args.kw.get("dilation"), spatial, 1)
        groups = size(args.kw.get("groups", Const(1))) or 1
        channels = dims.mul(weight.shape[1], groups) if transposed else weight.shape[0]
        return result(
            convolved_shape(x.shape, channels, kernel, stride, padding, dilation, transposed), x, weight, site=None
        )

    return run


def _each(value: Value | None, count: int, default: int) -> list[Dim]:
    if value is None:
        return [default] * count
    if isinstance(value, Seq):
        return [size(i) or default if not isinstance(i, Const) else i.value for i in value.items] * (
            count if len(value.items) == 1 else 1
        )
    found = size(value)
    return [default if found is None else found] * count


def convolved_shape(
    x: Shape,
    channels: Dim,
    kernel: list[Dim],
    stride: list[Dim],
    padding: list[Dim],
    dilation: list[Dim],
    transposed: bool,
) -> Shape:
    count = len(kernel)
    spatial = x[-count:]
    if transposed:
        new = [shapes.deconvolved(d, k, s, p) for d, k, s, p in zip(spatial, kernel, stride, padding, strict=True)]
    else:
        new = [
            shapes.convolved(d, k, s, p, g)
            for d, k, s, p, g in zip(spatial, kernel, stride, padding, dilation, strict=True)
        ]
    return (*x[: -count - 1], channels, *new)


# -- making tensors ---------------------------------------------------------------------------------------------


def filled(it: Interpreter, args: Args, site: Site | None) -> Value:
    """`zeros`, `ones`, `empty`, `rand`, `randn`, ...: sizes first."""
    given = args.pos or [args.kw[k] for k in ("size", "shape") if k in args.kw]
    return _made(it, given, args, site)


def _made(it: Interpreter, given: Sequence[Value], args: Args, site: Site | None) -> Value:
    target = sizes(it, given, site)
    if target is None:
        return unknown_tensor("a tensor made with sizes that are not known", site, *given)
    places: tuple[Site, ...] = (site,) if site else ()
    if it.events is None:  # an example input: its sizes are told back to where they stand
        places = merge_places(places, *(v.places for s in given for v in flatten_items(s)))
    made = Tensor(tuple(target), dtype_of(args) or "float32", places=places, flags=_flags(given))
    if any(isinstance(d, dims.Poly) and d.wraps for d in target):
        made = tagged(made, "wraps")
    return made


def _flags(values: Sequence[Value]) -> frozenset[str]:
    return merge_flags([*values, *(v for s in values for v in flatten_items(s))])


def full(it: Interpreter, args: Args, site: Site | None) -> Value:
    return _made(it, [args.get(0, "size", "shape") or NONE], args, site)


def randint(it: Interpreter, args: Args, site: Site | None) -> Value:
    given = next((a for a in (*reversed(args.pos), args.kw.get("size")) if isinstance(a, Seq)), None)
    if given is None:
        return unknown_tensor("randint() with sizes that are not known", site)
    made = _made(it, [given], args, site)
    return replace(made, dtype=dtype_of(args) or "int64") if isinstance(made, Tensor) else made


def like(it: Interpreter, args: Args, site: Site | None) -> Value:
    t = first(args)
    made = result(t.shape, t, site=site, dtype=dtype_of(args))
    made.tags = frozenset(g for g in made.tags if g not in ("wraps", "argmax"))
    return made


def arange(it: Interpreter, args: Args, site: Site | None) -> Value:
    bounds = [size(a) for a in args.pos] or [size(args.kw.get("end", NONE))]
    if any(b is None for b in bounds) or not bounds:
        return unknown_tensor("arange() with bounds that are not known", site, *args.pos)
    known = [b for b in bounds if b is not None]
    start, stop = (0, known[0]) if len(known) == 1 else (known[0], known[1])
    length = (
        shapes.slice_length(stop, start, None, known[2] if len(known) > 2 and isinstance(known[2], int) else 1)
        if not isinstance(start, dims.Poly)
        else dims.sub(stop, start)
    )
    return Tensor((length,), dtype_of(args) or "int64", places=(site,) if site else (), flags=_flags(args.pos))


def linspace(it: Interpreter, args: Args, site: Site | None) -> Value:
    steps = size(args.get(2, "steps", "num") or NONE)
    return (
        Tensor((steps,), "float32", places=(site,) if site else ())
        if steps is not None
        else unknown_tensor("linspace()", site)
    )


def eye(it: Interpreter, args: Args, site: Site | None) -> Value:
    n = size(args.pos[0])
    m = size(args.pos[1]) if len(args.pos) > 1 else n
    return (
        Tensor((n, m), dtype_of(args) or "float32")
        if n is not None and m is not None
        else unknown_tensor("eye()", site)
    )


def from_data(it: Interpreter, args: Args, site: Site | None) -> Value:
    """`torch.tensor` and the like: nested sequences or numbers."""
    value = args.get(0, "data", "object")
    if value is None:
        return unknown_tensor("a tensor of data that is not known", site)
    if isinstance(value, Tensor):
        return replace(value, dtype=dtype_of(args) or value.dtype)
    shape = None if isinstance(value, Unknown) and value.kind == "data" else data_shape(value)
    if shape is None:
        return unknown_tensor("a tensor of data that is not known", site, value)
    leaves = flatten_items(value)
    if it.events is not None:
        it.events.bakes(Seq("list", [n for n in leaves if not isinstance(n, Tensor)]), site, "torch.tensor()")
    made = Tensor(shape, dtype_of(args), places=(site,) if site else (), flags=_flags([value]))
    if len(leaves) == 1:
        made.data = leaves[0]
    tags = [t for leaf in leaves for t in _leaf_tags(leaf)]
    return tagged(made, *tags) if tags else made


def _leaf_tags(leaf: Value) -> frozenset[str]:
    if isinstance(leaf, Tensor):
        return leaf.tags
    return frozenset({"wraps"}) if isinstance(leaf, Num) and leaf.dim.wraps else frozenset()


def data_shape(value: Value) -> Shape | None:
    if isinstance(value, Seq):
        if value.count is None:
            return None
        head = value.items[0] if value.items else None
        inner = () if head is None else data_shape(head.items[0] if isinstance(head, Star) else head)
        return None if inner is None else (value.count, *inner)
    if isinstance(value, Tensor):
        return value.shape
    if isinstance(value, (Const, Num)) or (
        isinstance(value, Unknown) and value.kind in ("int", "float", "bool", "data")
    ):
        return ()
    return None


def item(it: Interpreter, args: Args, site: Site | None) -> Value:
    t = first(args)
    if t.data is not None:
        return t.data
    baked: Value | None = it.events.bakes(t, site, "item()") if it.events is not None else None
    if baked is not None:
        return baked
    wraps = "wraps" in t.tags
    atom = dims.Atom("item", operators.depends_on_query(t), wraps)
    if t.dtype.startswith("float"):
        return Unknown("a number computed at run time", "item", "float", places=t.places, flags=t.flags)
    return number(dims.symbol(atom), (t,))


def meshgrid(it: Interpreter, args: Args, site: Site | None) -> Value:
    tensors = [as_tensor(a) for a in (args.pos[0].items if args.pos and isinstance(args.pos[0], Seq) else args.pos)]
    known = [t for t in tensors if t is not None and t.shape]
    if len(known) != len(tensors):
        return Seq("tuple", [unknown_tensor("meshgrid()", site)] * len(tensors))
    shape = tuple((t.shape or (1,))[0] for t in known)
    return Seq("tuple", [result(shape, *known)] * len(known))


def interpolate(it: Interpreter, args: Args, site: Site | None) -> Value:
    t = first(args)
    given = sizes(it, [args.get(1, "size") or NONE], site) if args.get(1, "size") is not None else None
    if t.shape is None or given is None:
        return unknown_tensor("interpolate() to a size that is not known", site, t)
    return result((*t.shape[: -len(given)], *given), t, site=None)


def glu(it: Interpreter, args: Args, site: Site | None) -> Value:
    t, axis = first(args), integer(args.get(1, "dim"), -1)
    if t.shape is None or axis is None:
        return unknown_tensor("glu() of a tensor that is not known", site, t)
    n = shapes.normal(axis, len(t.shape))
    return result(shapes.replace(t.shape, n, dims.floordiv(t.shape[n], 2)), t, site=None)


def filled_in(t: Tensor, value: Value) -> None:
    """`t[...] = value` for a tensor that `forward` has made: what is said of the value holds of `t` as well."""
    if not isinstance(value, Tensor):
        if isinstance(value, Unknown) and not is_scalar(value):
            t.reason = t.reason or value
        return
    t.tags |= value.tags
    if value.reason is not None and value.reason.kind != "data":
        t.reason = t.reason or value.reason
    if t.shape is not None and spreads(value, t.shape):
        t.tags |= {"mixed-rows"}
        t.cuts = (*t.cuts, *(c for c in value.cuts if c not in t.cuts))


def storage(name: str, role: str, watched: bool = False, shape: Shape | None = None) -> Storage:
    return Storage(name, role, watched, shape)


def scattered(it: Interpreter, args: Args, site: Site | None) -> Value:
    """A functional write at given positions: the rows that it leaves alone are the old ones, in their places."""
    t = first(args)
    parts = [a for a in args.pos[1:] if isinstance(a, Tensor)]
    made = _mixed(result(t.shape, t, *parts, site=None), *parts)
    axis = next((a for a in (*args.pos[1:3], args.kw.get("dim")) if isinstance(a, Const)), None)
    if axis is not None:
        made = rows.along(it, made, t, axis)
    elif (at := args.get(1, "indices")) is not None and isinstance(at, Seq) and t.shape is not None:
        made = rows.other(it, made, any(dims.depends_on_query(d) for d, _ in zip(t.shape, at.items, strict=False)))
    if any(map(wraps_at, (*args.pos[1:], *args.kw.values()))):
        return tagged(made, "moved")
    return _in_place_of(t, made)


def _in_place_of(t: Tensor, made: Tensor) -> Tensor:
    if t.base is not None:
        made.tags = made.tags - {t.base.tag}
    return made
