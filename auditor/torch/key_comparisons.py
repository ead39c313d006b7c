"""Masks that are made of numbers of rows and of keys: comparisons, distances, triangles, and parts behind each other.

    keys <= rows[:, None]
    rows[:, None] - keys >= 0
    (keys <= rows[:, None]) | (keys >= start)                  # the keys of a call, as many as it has rows
    torch.ones(rows, end).tril(start)
    torch.cat((torch.zeros(rows, start), own), -1)             # what was there before, and a mask of the new rows

What they have before and behind each row is said as in `mask_sides.py`.
"""

from __future__ import annotations

from collections.abc import Sequence

from auditor import dims
from auditor.dims import Dim, is_query
from auditor.torch import progressions
from auditor.torch.mask_sides import COMPARED, combined, of
from auditor.values import Pick, Tensor, Value

_TURNED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


def compared(op: str, a: Value, b: Value, made: Tensor) -> Tensor:
    """`made` is `a op b`: numbers of rows and those of keys, their distance and a number, or a mask and a number."""
    if op not in _TURNED:
        return combined(op, a, b, made)
    p, q = progressions.numbers(a), progressions.numbers(b)
    for t, number, said in ((a, b, op), (b, a, _TURNED[op])):
        if isinstance(t, Tensor) and t.pick is not None and t.pick.what == "distance":
            return _far(said, t, number, made)
    if p is None or q is None or p.step != 1 or q.step != 1:
        made = _of_keys(op, a, b, made)
        return made if made.pick is not None else combined(op, a, b, made)
    found = rows_and_keys(a, b)
    if found is None:
        return made
    keys_first, rows, keys = found
    begin = dims.sub(q.begin, p.begin) if keys_first else dims.sub(p.begin, q.begin)
    return _held(_TURNED[op] if keys_first else op, begin, rows, keys, made)


def rows_and_keys(a: Value, b: Value) -> tuple[bool, Dim, Dim] | None:
    """Whether the first of two progressions has the keys, and how many rows and keys there are.

    Where these are as many the keys lie along the last axis.
    """
    first, second = _axis(a), _axis(b)
    if first is None or second is None or first[0] == second[0]:
        return None
    (at_a, many_a), (at_b, many_b) = first, second
    keys_first = is_query(many_b) if is_query(many_a) != is_query(many_b) else at_a > at_b
    return keys_first, *((many_b, many_a) if keys_first else (many_a, many_b))


def _axis(t: Value) -> tuple[int, Dim] | None:
    """The only long axis of a tensor, counted from the last one, and its length."""
    shape = t.shape if isinstance(t, Tensor) and t.shape is not None else ()
    long = [(n - len(shape), d) for n, d in enumerate(shape) if d != 1]
    return long[0] if len(long) == 1 else None


def _held(op: str, begin: Dim, rows: Dim, keys: Dim, made: Tensor) -> Tensor:
    """`made` holds where `row op key`, and the first row has a number that is so much above that of the first key."""
    holds = COMPARED[op]
    before, behind = holds(1, 0), holds(-1, 0)
    own = holds(0, 0) == before
    return _made(made, before, behind, dims.add(begin, int(own)), keys, rows)


def _made(made: Tensor, before: float, behind: float, shown: Dim, keys: Dim, rows: Dim) -> Tensor:
    """`made` has these numbers; so many of the keys are before the first row, itself among them where it counts so."""
    ahead = dims.sub(shown, dims.add(dims.sub(keys, rows), 1))
    near = before if isinstance(ahead, int) and ahead > 0 else behind
    made.pick = Pick("sides", begin=shown, sides=(float(before), float(near), float(behind)))
    return made


def difference(a: Value, b: Value, made: Tensor) -> Tensor:
    """`made` is `a - b`, which may be how far rows are from keys."""
    p, q = progressions.numbers(a), progressions.numbers(b)
    if made.pick is not None or p is None or q is None or p.step != 1 or q.step != 1:
        return made
    found = rows_and_keys(a, b)
    if found is not None:
        sign = -1 if found[0] else 1
        begin = dims.sub(p.begin, q.begin)
        made.pick = Pick("distance", begin=begin, step=sign, sides=(float(sign), float(-sign), float(-sign)))
    return made


def _far(op: str, t: Tensor, number: Value, made: Tensor) -> Tensor:
    """`made` is a distance of rows and keys, compared with a number."""
    bound, shape = progressions.one(number), t.shape or ()
    if bound is None or t.pick is None or len(shape) < 2:
        return made
    rows, keys = shape[-2:]
    if is_query(keys) and not is_query(rows):
        rows, keys = keys, rows
    begin = dims.sub(t.pick.begin, bound)
    if t.pick.step == -1:
        return _held(_TURNED[op], dims.neg(begin), rows, keys, made)
    return _held(op, begin, rows, keys, made)


def _of_keys(op: str, a: Value, b: Value, made: Tensor) -> Tensor:
    """`made` is a comparison of the numbers of keys with one for all rows: where a call begins, or where it ends."""
    for keys, number, said in ((a, b, op), (b, a, _TURNED[op])):
        p, bound, lies = progressions.numbers(keys), progressions.one(number), _axis(keys)
        if p is None or p.step != 1 or bound is None or lies is None:
            continue
        if is_query(lies[1]) or not dims.is_flexible(lies[1]):
            return made
        left = dims.sub(lies[1], dims.add(dims.sub(bound, p.begin), int(said in ("<=", ">"))))
        if isinstance(left, int) and left <= 0:
            sides = (1.0, 1.0, 1.0)
        elif any(is_query(dims.sub(left, n)) for n in (0, -1)):
            sides = (1.0, 0.0, 0.0)
        else:
            return made
        made.pick = Pick("sides", step=None, sides=sides if said in ("<", "<=") else tuple(1.0 - s for s in sides))
    return made


def triangle(made: Tensor, t: Tensor, lower: bool, diagonal: Dim | None) -> Tensor:
    """`made` is what `tril`, or `triu`, leaves of a mask or of a tensor that is the same everywhere."""
    sides = of(t)
    if sides is None or made.shape is None or len(made.shape) < 2:
        return made
    rows, keys = made.shape[-2:]
    across = is_query(keys) and not is_query(rows)
    before, near, behind = sides
    before, near, behind = (before, 0.0, 0.0) if lower != across else (0.0, near, behind)
    if diagonal is None or across or near != behind:
        made.pick = Pick("sides", step=None, sides=(before, near, behind))
        return made
    return _made(made, before, behind, dims.add(diagonal, int(lower)), keys, rows)


def joined(made: Tensor, parts: Sequence[Tensor], axis: int) -> Tensor:
    """`made` are masks of keys, one behind another: those of the call are in the last."""
    last, first = of(parts[-1]), of(parts[0])
    if last is None or first is None or made.shape is None or len(made.shape) < 2:
        return made
    shape = parts[-1].shape or ()
    if axis == len(made.shape) - 1 and len(shape) > 1 and is_query(shape[-1]) and not is_query(made.shape[-1]):
        made.pick = Pick("sides", step=None, sides=(first[0], last[1], last[2]))
    return made
