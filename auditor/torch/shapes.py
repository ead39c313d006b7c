"""Shape arithmetic: broadcasting, reshaping, slicing, concatenation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from auditor import dims
from auditor.dims import Dim

Shape = tuple[Dim, ...]


def broadcast_dim(a: Dim, b: Dim) -> Dim:
    """The broadcast of two dimensions of a program that runs: a 1 yields, the query yields to nobody."""
    if a == b or b == 1:
        return a
    if a == 1:
        return b
    if dims.depends_on_query(a) != dims.depends_on_query(b):
        return a if dims.depends_on_query(a) else b
    # Two symbols that are broadcast are equal in a program that runs, or one of them is 1.
    return b if isinstance(b, int) else a


def broadcast(shapes: Sequence[Shape]) -> Shape:
    """The shape that all of them are broadcast to, aligned at their last axes (see `broadcast_dim`)."""
    rank = max(map(len, shapes))
    out: list[Dim] = [1] * rank
    for s in shapes:
        padded = (1,) * (rank - len(s)) + tuple(s)
        out = [broadcast_dim(x, y) for x, y in zip(out, padded, strict=True)]
    return tuple(out)


def normal(axis: int, rank: int) -> int:
    """An axis counted from the front."""
    return axis + rank if axis < 0 else axis


def replace(shape: Shape, axis: int, size: Dim) -> Shape:
    """The shape with another size along an axis, which may be counted from the end."""
    axis = normal(axis, len(shape))
    return (*shape[:axis], size, *shape[axis + 1 :])


def drop(shape: Shape, axis: int) -> Shape:
    """The shape without an axis, which may be counted from the end."""
    axis = normal(axis, len(shape))
    return (*shape[:axis], *shape[axis + 1 :])


@dataclass(frozen=True, slots=True)
class Reshaped:
    """`fits` is False when the target holds another number of elements, None when that cannot be told."""

    shape: Shape
    fits: bool | None
    one_row: bool = False


def reshape(source: Shape, target: Sequence[Dim]) -> Reshaped:
    """`source` as `target`, where one entry may be -1."""
    total = dims.product(source)
    known = [d for d in target if d != -1]
    rest = dims.product(known)
    if len(known) < len(target):
        size = dims.exact_div(total, rest)
        inferred = size if size is not None else dims.opaque("reshape", total, rest)
        return Reshaped(tuple(inferred if d == -1 else d for d in target), True if size is not None else None)
    if total == rest:
        return Reshaped(tuple(target), True)
    depends = dims.depends_on_query(total)
    if depends and not dims.depends_on_query(rest):
        factor = dims.exact_div(total, rest)
        one = isinstance(factor, dims.Poly) and len(factor.terms) == 1
        return Reshaped(tuple(target), False, one_row=one)
    if not depends and dims.depends_on_query(rest):
        return Reshaped(tuple(target), False)
    return Reshaped(tuple(target), None)


def behind_rows(shape: Shape) -> Dim | None:
    """How many values lie behind the only axis of the query's rows: as many as belong to each of them."""
    found = [n for n, d in enumerate(shape) if dims.is_query(d)]
    return dims.product(shape[found[0] + 1 :]) if len(found) == 1 else None


def differs(a: Dim, b: Dim) -> bool:
    """Whether two numbers are not the same, as far as one is a part of the other."""
    return a != b and (dims.exact_div(a, b) is not None or dims.exact_div(b, a) is not None)


def slice_length(size: Dim, start: Dim | None, stop: Dim | None, step: int = 1) -> Dim:
    """How many elements `[start:stop:step]` of a dimension keeps (the program is taken to stay inside it)."""
    begin: Dim = 0 if start is None else start
    end: Dim = size if stop is None else stop
    negative_begin = dims.less(begin, 0) is True
    if negative_begin and start is not None and stop is None:
        count: Dim = dims.neg(begin)
        if isinstance(size, int) and isinstance(count, int):
            count = min(size, count)
        return _stepped(count, step)
    begin = dims.add(size, begin) if negative_begin else begin
    end = dims.add(size, end) if dims.less(end, 0) is True else end
    if isinstance(size, int):
        begin = min(begin, size) if isinstance(begin, int) else begin
        end = min(end, size) if isinstance(end, int) else end
    count = dims.sub(end, begin)
    return _stepped(max(0, count) if isinstance(count, int) else count, step)


def _stepped(count: Dim, step: int) -> Dim:
    if step in (1, -1):
        return count
    return dims.floordiv(dims.add(count, abs(step) - 1), abs(step))


def convolved(size: Dim, kernel: Dim, stride: Dim, padding: Dim, dilation: Dim) -> Dim:
    """Length after a convolution or pooling."""
    span = dims.mul(dilation, dims.sub(kernel, 1))
    inner = dims.sub(dims.add(size, dims.mul(2, padding)), dims.add(span, 1))
    return dims.add(dims.floordiv(inner, stride), 1)


def deconvolved(size: Dim, kernel: Dim, stride: Dim, padding: Dim, extra: Dim = 0) -> Dim:
    """Length after a transposed convolution; `extra` is its `output_padding`."""
    inner = dims.mul(dims.sub(size, 1), stride)
    return dims.add(dims.add(dims.sub(inner, dims.mul(2, padding)), kernel), extra)


def matmul(a: Shape, b: Shape) -> Shape:
    """`[..., n, k] @ [..., k, m]` is `[..., n, m]`; a vector has no row, or no column, of its own."""
    if len(a) == 1 and len(b) == 1:
        return ()
    if len(a) == 1:
        return (*b[:-2], b[-1])
    if len(b) == 1:
        return a[:-1]
    batch = broadcast([a[:-2] or (1,), b[:-2] or (1,)])
    batch = batch if len(a) > 2 or len(b) > 2 else ()
    return (*batch, a[-2], b[-1])


def summed_over(equation: str, operands: Sequence[Shape]) -> list[Dim]:
    """The dimensions that an einsum sums over, with a product of two operands or more."""
    left, arrow, right = equation.replace(" ", "").partition("->")
    terms = left.split(",")
    if not arrow or len(terms) != len(operands) or "." in left:
        return []
    return [
        shape[n]
        for term, shape in zip(terms, operands, strict=True)
        for n, letter in enumerate(term)
        if letter not in right and left.count(letter) > 1 and n < len(shape)
    ]


def einsum(equation: str, operands: Sequence[Shape]) -> Shape | None:
    """The result shape of an explicit or implicit einsum; None when the equation is not understood."""
    equation = equation.replace(" ", "")
    left, arrow, right = equation.partition("->")
    sizes: dict[str, Dim] = {}
    ellipsis: Shape = ()
    terms = left.split(",")
    if len(terms) != len(operands):
        return None
    for term, shape in zip(terms, operands, strict=True):
        head, dots, tail = term.partition("...")
        extra = len(shape) - len(head) - len(tail)
        if extra < 0 or (extra and not dots):
            return None
        ellipsis = max(ellipsis, shape[len(head) : len(head) + extra], key=len)
        letters = [
            *zip(head, shape[: len(head)], strict=True),
            *zip(tail, shape[len(shape) - len(tail) :], strict=True),
        ]
        for letter, size in letters:
            sizes[letter] = broadcast_dim(sizes[letter], size) if letter in sizes else size
    if not arrow:
        right = "".join(sorted(c for c in set(left) if c.isalpha() and left.count(c) == 1))
    head, dots, tail = right.partition("...")
    try:
        return (*(sizes[c] for c in head), *(ellipsis if dots else ()), *(sizes[c] for c in tail))
    except KeyError:
        return None


def text(shape: Shape) -> str:
    """A shape as reports show it: `[1, q, 64]`."""
    return f"[{', '.join(map(str, shape))}]"
