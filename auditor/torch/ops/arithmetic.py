"""Arithmetic, comparison and choice of several tensors and numbers, which are broadcast."""

from __future__ import annotations

from collections.abc import Sequence

from auditor import operators
from auditor.interpreter import Interpreter
from auditor.places import Site
from auditor.torch import (
    key_comparisons,
    key_windows,
    mask_sides,
    mixed_numbers,
    placing,
    positions,
    progressions,
    read_rows,
    recurrences,
    row_masks,
    rows,
    shapes,
    shared_positions,
)
from auditor.torch.ops.op import Op, first
from auditor.torch.ops.products import is_parameter, matmul
from auditor.torch.shapes import Shape
from auditor.torch.tensors import as_tensor, is_scalar, result, tagged, unknown_tensor
from auditor.values import (
    NONE,
    Args,
    Bound,
    Const,
    ExternalObject,
    Num,
    Pick,
    Tensor,
    Union,
    Unknown,
    Value,
    is_given,
    text_of,
)
from auditor.values.tags import CHOSEN, FLOORED, MIXED, SHARED, TURNED, WRAPS


def broadcasting(it: Interpreter, args: Args, site: Site | None) -> Value:
    values = [
        *args.pos,
        *(args.kw[k] for k in ("other", "tensor1", "tensor2", "min", "max", "end", "weight") if k in args.kw),
    ]
    return combine(it, values, site)


def added(it: Interpreter, args: Args, site: Site | None) -> Value:
    made = _with_length(it, broadcasting(it, args, site), args, site)
    if not isinstance(made, Tensor):
        return made
    made = _counted("+", row_masks.summed(it, made, site, *args.pos, *args.kw.values()), args)
    return recurrences.summed(it, made, args.get(0, "input") or NONE, args.get(1, "other") or NONE)


def _counted(op: str, made: Tensor, args: Args) -> Tensor:
    """`made` by a function of two operands, numbers of rows or a mask; one with a factor is not followed."""
    a, b = args.get(0, "input"), args.get(1, "other")
    if a is None or b is None or "alpha" in args.kw or (_picked(a) is None and _picked(b) is None):
        return made
    made = mixed_numbers.computed(op, a, b, progressions.combined(op, a, b, made))
    return _of_masks(op, a, b, made)


def _of_masks(op: str, a: Value, b: Value, made: Tensor) -> Tensor:
    """`made` is `a op b`, of which one may be a mask, or both numbers of rows and keys."""
    if op == "-":
        made = key_comparisons.difference(a, b, made)
    return mask_sides.meets(op, mask_sides.combined(op, a, b, made), a, b)


def both(op: str) -> Op:
    """Masks that are combined, by a function that is an operator as well."""

    def run(it: Interpreter, args: Args, site: Site | None) -> Value:
        made = broadcasting(it, args, site)
        return _counted(op, made, args) if isinstance(made, Tensor) else made

    return run


def _picked(value: Value) -> Pick | None:
    return value.pick if isinstance(value, Tensor) else None


def _with_length(it: Interpreter, made: Value, args: Args, site: Site | None) -> Value:
    """`made` of two operands, of which the second may be a number that differs between calls."""
    other = args.get(1, "other")
    if other is not None and type(other) in _LENGTHS and isinstance(made, Tensor) and args.pos:
        return shared_positions.with_number(it.events, made, args.pos[0], other, site)
    return made


def product_added(it: Interpreter, args: Args, site: Site | None) -> Value:
    """`addcmul(t, a, b)` and `addcdiv(t, a, b)`: t + a * b, with a factor."""
    a, b = args.get(1, "tensor1"), args.get(2, "tensor2")
    return added(it, Args([first(args), scaled(it, Args([a or NONE, b or NONE]), site)]), site)


def between(it: Interpreter, args: Args, site: Site | None) -> Value:
    """`lerp(t, end, weight)`: t + weight * (end - t)."""
    made, weight = broadcasting(it, args, site), args.get(2, "weight") or NONE
    return recurrences.scaled(it, made, (weight,)) if isinstance(made, Tensor) else made


def added_to(it: Interpreter, args: Args, site: Site | None) -> Value:
    """`addmm(t, a, b)` and `baddbmm(t, a, b)`: t + a @ b, each with a factor."""
    product = matmul(it, Args([args.get(1, "mat1", "batch1") or NONE, args.get(2, "mat2", "batch2") or NONE]), site)
    return added(it, Args([first(args), product]), site)


def subtracted(it: Interpreter, args: Args, site: Site | None) -> Value:
    made = combine(it, [*args.pos, *(args.kw[k] for k in ("other",) if k in args.kw)], site)
    taken = args.get(1, "other")
    made = row_masks.cancelled(
        row_masks.summed(it, made, site, *args.pos, *args.kw.values()), args.get(0, "input"), taken
    )
    made = shared_positions.relative(made, args.get(0, "input") or NONE, taken or NONE)
    made = recurrences.summed(it, _counted("-", made, args), args.get(0, "input") or NONE, taken or NONE)
    return tagged(made, WRAPS) if isinstance(taken, Tensor) and FLOORED in taken.tags else made


def scaled(it: Interpreter, args: Args, site: Site | None) -> Value:
    made = _with_length(it, broadcasting(it, args, site), args, site)
    if not isinstance(made, Tensor):
        return made
    rounding = text_of(args.kw.get("rounding_mode", NONE))
    factors = [*args.pos, *(v for name, v in args.kw.items() if name != "out")]
    if rounding:
        return _counted("//", tagged(made, FLOORED), Args(args.pos))
    if len(factors) == 2:
        made = shared_positions.scaled("*", made, factors[0], factors[1], site)
    return recurrences.scaled(it, row_masks.scaled(it, made, site, *factors), factors)


def polar(it: Interpreter, args: Args, site: Site | None) -> Value:
    """Complex numbers of lengths and angles."""
    made = broadcasting(it, args, site)
    return tagged(made, TURNED) if isinstance(made, Tensor) else made


def multiplied(it: Interpreter, args: Args, site: Site | None) -> Value:
    """A product that is no quotient: by a mask, in place, it leaves room for a row (see `writes.in_place`)."""
    made = scaled(it, args, site)
    return _counted("*", made, args) if isinstance(made, Tensor) else made


def quantized(it: Interpreter, args: Args, site: Site | None) -> Value:
    """`fake_quantize_per_tensor_affine(input, scale, zero_point, ...)`: the two may be computed from the input."""
    return combine(it, args.pos[:3], site)


def modulo(it: Interpreter, args: Args, site: Site | None) -> Value:
    return _counted("%", tagged(combine(it, args.pos, site), WRAPS), args)


def floored(it: Interpreter, args: Args, site: Site | None) -> Value:
    return _counted("//", tagged(combine(it, args.pos, site), FLOORED), args)


def compared(op: str) -> Op:
    """A comparison by a function."""

    def run(it: Interpreter, args: Args, site: Site | None) -> Value:
        made = broadcasting(it, args, site)
        operands = [*args.pos, *args.kw.values()]
        shared_positions.numbered(it.events, *operands)
        if not isinstance(made, Tensor):
            return made
        made = row_masks.compares(made, operands)
        return _of_keys(it, op, operands[0], operands[1], made, site) if len(operands) == 2 else made

    return run


def _of_keys(it: Interpreter, op: str, a: Value, b: Value, made: Tensor, site: Site | None) -> Tensor:
    """`made` is a comparison, which may be one of numbers of keys with those of rows, or with one for all of them."""
    if _picked(a) is not None or _picked(b) is not None:
        made = key_comparisons.compared(op, a, b, made)
    return key_windows.compared(it, op, a, b, made, site)


def clamped(it: Interpreter, args: Args, site: Site | None) -> Value:
    """Values with a bound from above: of positions, two may be the same then."""
    return _bounded(it, args, None, args.get(1, "other", "max"), site)


def bounded_below(it: Interpreter, args: Args, site: Site | None) -> Value:
    return _bounded(it, args, args.get(1, "other", "min"), None, site)


def clamped_between(it: Interpreter, args: Args, site: Site | None) -> Value:
    return _bounded(it, args, args.get(1, "min"), args.get(2, "max"), site)


def _bounded(it: Interpreter, args: Args, least: Value | None, most: Value | None, site: Site | None) -> Value:
    made = broadcasting(it, args, site)
    if not isinstance(made, Tensor):
        return made
    t = args.get(0, "input")
    if isinstance(t, Tensor) and t.pick is not None:
        made = progressions.bounded(made, t, least, most)
    made = positions.looked_up(made)
    return tagged(made, CHOSEN) if is_given(most) and made.dtype.startswith(("int", "uint")) else made


def where(it: Interpreter, args: Args, site: Site | None) -> Value:
    if len(args.pos) + len(args.kw) < 3:
        return unknown_tensor("the positions where a condition holds", site, *args.pos)
    made = combine(it, [*args.pos, *args.kw.values()], site)
    given = (args.get(0, "condition"), args.get(1, "input"))  # `t.where(condition, other)` has it second
    condition = next((c for c in given if isinstance(c, Tensor) and c.dtype == "bool"), given[0])
    chosen = [v for v in (*args.pos, *args.kw.values()) if isinstance(v, Tensor) and v is not condition]
    if row_masks.is_mask(condition):
        made = _in_place(it, made, chosen)
    made.dtype = chosen[0].dtype if chosen else "float32"
    if condition is not None:
        made = row_masks.masked(it, made, site, condition, *(v for v in args.pos if v is not condition))
        made = recurrences.chosen(made, condition)
        yes, no = given[1] if condition is given[0] else given[0], args.get(2, "other")
        made = mask_sides.chosen(shared_positions.chosen(made, (yes, no)), condition, yes, no)
    if any(isinstance(v, Tensor) and v.dtype.startswith(("int", "uint")) for v in args.pos[1:]):
        return tagged(made, CHOSEN)
    return made


def _in_place(it: Interpreter, made: Tensor, chosen: Sequence[Tensor]) -> Tensor:
    """A choice by a mask of positions keeps the rows of a state in their places, unless the others come from them."""
    for v in chosen:
        taken = [o for o in chosen if o is not v]
        held = it.events is not None and any(it.events.from_held(v.base, o) for o in taken)
        if v.shape == made.shape and not held:
            made = rows.in_place_of(v, made)
    return made


def combine(it: Interpreter, values: Sequence[Value], site: Site | None) -> Tensor:
    """The broadcast of tensors and scalars. Code that cannot be read is remembered: a sum with it keeps its shape."""
    known, unread, loose = _shapes_of(values)
    shape = shapes.broadcast(known) if known else None
    if unread is not None and shape is not None and len(shape) < 2:
        shape = None  # a weight or a number says nothing of the rank of what it is combined with
    made = result(shape, *values, reason=unread)
    if shape is not None and made.cuts and _mixes(it, values, shape):
        made = tagged(made, MIXED)
    if made.dtype.startswith(("int", "uint")):
        made.dtype = next((v.dtype for v in values if isinstance(v, Tensor) and _is_float(v)), made.dtype)
    if SHARED in made.tags:
        shared_positions.meets(it.events, made, values, site)
    if shape is None:
        made.reason = unread or loose
    elif unread is None and made.reason is not None and made.reason.kind == "data":
        made.reason = None
    return made


def _mixes(it: Interpreter, values: Sequence[Value], shape: Shape) -> bool:
    """Whether one row of the query goes into all of them, or into those of a cache."""
    if any(isinstance(v, Tensor) and rows.spreads(v, shape) for v in values):
        return True
    return it.events is not None and read_rows.take_in(it, values, shape)


def _shapes_of(values: Sequence[Value]) -> tuple[list[Shape], Unknown | None, Unknown | None]:
    """(shapes of the operands, why one of them is not known, the data that fits whatever it is combined with)."""
    known: list[Shape] = []
    unread: Unknown | None = None
    loose: Unknown | None = None
    for v in values:
        if isinstance(v, Tensor):
            if v.shape is None and v.reason is not None and v.reason.kind == "data":
                loose = loose or v.reason
            elif v.shape is None:
                unread = unread or v.reason or Unknown("a tensor of unknown shape", places=v.places)
            else:
                known.append(v.shape)
        elif isinstance(v, Unknown) and not is_scalar(v):
            unread = unread or v
        elif isinstance(v, Union):
            t = as_tensor(v)
            if t is not None and t.shape is not None:
                known.append(t.shape)
            elif not all(is_scalar(o) for o in v.options):
                unread = unread or Unknown("one of several values", places=v.places)
        elif isinstance(v, (Bound, ExternalObject)):
            unread = unread or Unknown("an operand that is not known to be a tensor or a number", places=v.places)
    return known, unread, loose


def _is_float(t: Tensor) -> bool:
    """Whether a tensor is of no whole numbers; parameters are not, where nothing says what they are."""
    return t.dtype.startswith(("float", "bfloat", "half")) or (not t.dtype and is_parameter(t))


_LENGTHS = frozenset({Num, Unknown})
_COMPARES = frozenset({"<", "<=", ">", ">=", "==", "!="})


def tensor_binary(it: Interpreter, op: str, a: Value, b: Value, site: Site | None) -> Value:
    """`a op b` where one of them is a tensor."""
    if op == "@":
        return matmul(it, Args([a, b]), site)
    made = combine(it, [a, b], site)
    if it.events is not None and site is not None and isinstance(a, Tensor) and isinstance(b, Tensor):
        it.events.meets(a.shape or (), b.shape or (), site)
    if (type(b) in _LENGTHS or type(a) in _LENGTHS) and op not in _COMPARES:
        made = shared_positions.with_number(it.events, made, a, b, site)
        if op in ("//", "%", "**"):
            made = shared_positions.scaled(op, made, a, b, site)
    if op in ("%", "&") or (op == "-" and isinstance(b, Tensor) and FLOORED in b.tags):
        made = tagged(made, WRAPS)
    elif op == "//":
        made = tagged(made, FLOORED)
    elif op in _COMPARES:
        made = row_masks.compares(made, (a, b))
    elif op in ("+", "-"):
        made = recurrences.summed(it, row_masks.summed(it, made, site, a, b), a, b)
        made = shared_positions.relative(row_masks.cancelled(made, a, b), a, b) if op == "-" else made
    elif op == "^":
        made = row_masks.cancelled(made, a, b)
    elif op in ("*", "/"):
        made = recurrences.scaled(it, row_masks.scaled(it, made, site, a, b), (a, b))
        made = shared_positions.scaled(op, made, a, b, site)
    if (type(a) is Tensor and a.pick is not None) or (type(b) is Tensor and b.pick is not None):
        made = mixed_numbers.computed(op, a, b, placing.combined(it, op, a, b, made))
        made = _of_keys(it, op, a, b, made, site) if op in _COMPARES else _of_masks(op, a, b, made)
        if op not in ("*", "/"):
            shared_positions.numbered(it.events, a, b)
    elif op in _COMPARES:
        made = key_windows.compared(it, op, a, b, made, site)
    if isinstance(a, Tensor) and isinstance(b, (Const, Num)) and a.data is not None and op in "+-*//%":
        made.data = operators.binary(op, a.data, b)
    return made
