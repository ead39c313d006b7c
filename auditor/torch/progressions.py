"""Whole numbers that go up by as much from row to row of a query, or along any axis.

positions = torch.arange(rows) + begin        # begin, begin + 1, ...: right where the call begins there
positions = torch.arange(rows) + end          # a step too far, by as many rows as the query has
positions = positions.clamp(max=begin)        # one position for all rows
positions = positions.flip(0)                 # the rows of the query in reverse
"""

from __future__ import annotations

from collections.abc import Iterable

from auditor import dims
from auditor.dims import Dim
from auditor.torch.row_places import is_behind, is_usual
from auditor.values import Pick, Tensor, Value, as_dim
from auditor.values.tags import COUNTED, FLOORED, FROM, INPUT, LOOKED, ONE, TURNED, WRAPS, Begins


def numbers(t: Value | None) -> Pick | None:
    """The numbers of a tensor that has them along its only long axis, or is a single one."""
    if not isinstance(t, Tensor) or t.pick is None or t.pick.what != "numbers" or t.shape is None:
        return None
    return t.pick if sum(d != 1 for d in t.shape) <= 1 else None


def progression(made: Tensor, begin: Dim, step: int | None) -> Tensor:
    """`made`, which has the numbers `begin`, `begin + step`, ... along its only long axis; None: in no such order."""
    rows = dims.product(made.shape or ())
    step = 0 if rows == 1 else step
    made.pick = Pick("numbers", begin=begin, step=step)
    made.tags = without(made.tags)
    if dims.is_query(rows) and not is_usual(begin, step, rows) and not (step == 0 and ONE in made.tags):
        made.tags = made.tags - {ONE} | {COUNTED, Begins.of(begin, step)}
    return made


def without(tags: frozenset[str]) -> frozenset[str]:
    """Tags without those of numbers of rows."""
    return frozenset(t for t in tags if type(t) is not Begins and t != COUNTED)


def combined(op: str, a: Value, b: Value, made: Tensor) -> Tensor:
    """`made` is `a op b`, of which one is a progression."""
    p, q = numbers(a), numbers(b)
    x, y = one(a), one(b)
    size = dims.product(made.shape) if made.shape is not None else 0
    if p is not None and y is not None and size == _length(a):
        return _with_number(op, p, y, made, size)
    if q is not None and x is not None and size == _length(b):
        if op == "-":
            return progression(made, dims.sub(x, q.begin), None if q.step is None else -q.step)
        return _with_number(op, q, x, made, size) if op in ("+", "*") else made
    if p is not None and q is not None and p.step is not None and q.step is not None and _alongside(a, b):
        if op == "+":
            return progression(made, dims.add(p.begin, q.begin), p.step + q.step)
        if op == "-":
            return progression(made, dims.sub(p.begin, q.begin), p.step - q.step)
    return made


def _with_number(op: str, p: Pick, number: Dim, made: Tensor, length: Dim) -> Tensor:
    match op:
        case "+":
            return progression(made, dims.add(p.begin, number), p.step)
        case "-":
            return progression(made, dims.sub(p.begin, number), p.step)
        case "*" if isinstance(number, int):
            return progression(made, dims.mul(p.begin, number), None if p.step is None else p.step * number)
        case "//" if p.begin == 0 and p.step == 1 and number == length:
            return progression(made, 0, 0)
    return made


def one(value: Value) -> Dim | None:
    """The number that a value, or all of a tensor, is."""
    if not isinstance(value, Tensor):
        return as_dim(value)
    if value.data is not None:
        return as_dim(value.data)
    p = numbers(value)
    return p.begin if p is not None and (p.step == 0 or all(d == 1 for d in value.shape or ())) else None


def _length(t: Value) -> Dim:
    return dims.product((t.shape if isinstance(t, Tensor) else None) or ())


def _alongside(a: Value, b: Value) -> bool:
    """Whether two progressions lie along the same axis and are as long."""
    axes = [
        [(n - len(t.shape), d) for n, d in enumerate(t.shape) if d != 1]
        for t in (a, b)
        if isinstance(t, Tensor) and t.shape is not None
    ]
    return len(axes) == 2 and axes[0] == axes[1]


def bounded(made: Tensor, t: Tensor, least: Value | None, most: Value | None) -> Tensor:
    """`made` are the numbers of `t`, of which those beyond a bound are the bound: a capacity is a number."""
    p = numbers(t)
    if p is None or p.step is None or p.step < 0:
        return made
    last = dims.add(p.begin, dims.mul(p.step, dims.sub(_length(t), 1)))
    for bound, near, far, sign in ((most, p.begin, last, 1), (least, last, p.begin, -1)):
        value = one(bound) if bound is not None else None
        if value is None:
            continue
        free, spare = dims.mul(sign, dims.sub(value, near)), dims.mul(sign, dims.sub(value, far))
        if isinstance(free, int) and free <= 0:
            return progression(made, value, 0)
        if isinstance(value, int) or (isinstance(spare, int) and spare >= 0):
            continue
        if isinstance(free, int) or dims.less(spare, 0) or is_behind(value, _length(t)):
            return progression(made, p.begin, None)
    return progression(made, p.begin, p.step)


def reversed_(made: Tensor, t: Tensor) -> Tensor:
    """`made` are the numbers of `t` from the last to the first."""
    p = numbers(t)
    if p is None or p.step is None:
        return made
    return progression(made, dims.add(p.begin, dims.mul(p.step, dims.sub(_length(t), 1))), -p.step)


def end(made: Tensor, t: Tensor, last: bool) -> Tensor:
    """`made` is the largest, or the least, of the numbers of `t`."""
    p = numbers(t)
    if p is None or p.step is None or p.step < 0 or any(d != 1 for d in made.shape or ()):
        return made
    return progression(made, dims.add(p.begin, dims.mul(p.step, dims.sub(_length(t), 1))) if last else p.begin, 0)


def sorted_(made: Tensor, t: Tensor, descending: bool) -> Tensor:
    """`made` are the numbers of `t` by their size."""
    p = numbers(t)
    if p is not None and p.step is not None and (p.step < 0) != descending:
        return reversed_(made, t)
    return progression(made, p.begin, p.step) if p is not None else made


def disordered(made: Tensor, t: Tensor) -> Tensor:
    """`made` are the numbers of `t` in another order."""
    p = numbers(t)
    return progression(made, p.begin, None) if p is not None else made


def summed_up(made: Tensor, t: Tensor) -> Tensor:
    """`made` is the running sum of a number that all of `t` is."""
    n = as_dim(t.data) if t.data is not None else None
    along = sum(d != 1 for d in t.shape or ()) == 1
    return progression(made, n, n) if isinstance(n, int) and along else made


def cut(made: Tensor, t: Tensor, axis: int, start: Dim | None, step: int = 1) -> Tensor:
    """`made` is what `t` has along an axis from `start` on: a part of a progression, or as many rows of a table."""
    assert t.shape is not None
    if start is None:
        return made
    if dims.less(start, 0):
        start = dims.add(t.shape[axis], start)
    p = numbers(t)
    if p is not None:
        if t.shape[axis] == 1 or p.step is None:
            return progression(made, p.begin, p.step)
        return progression(made, dims.add(p.begin, dims.mul(p.step, start)), p.step * step)
    if is_table(t):
        rows = next((d for d in made.shape or () if dims.is_query(d)), None)
        if rows is not None and rows not in t.shape and not is_usual(start, step, rows):
            made.tags = made.tags | {COUNTED, LOOKED, Begins.of(start, step)}
    return made


def moves_rows(t: Tensor, axis: int, index: Value | None, others: Iterable[Value | None] = ()) -> bool:
    """Whether an index takes rows of a state along an axis in another order than they have, or some of them twice.

    Rows lie where a length that differs between calls says how many. A remainder makes up for what was rounded.
    """
    if not isinstance(index, Tensor) or index.shape is None or t.shape is None:
        return False
    if not any(map(dims.is_flexible, (t.shape[axis], *index.shape))):
        return False
    if not any(tag.startswith(FROM) for tag in t.handed_on):
        return False
    if index.pick is not None and index.pick.what == "numbers":
        return index.pick.step != 1
    made = {FLOORED, WRAPS} & frozenset().union(*(o.tags for o in (index, *others) if isinstance(o, Tensor)))
    return len(made) == 1 and not made.isdisjoint(index.tags)


def is_known(index: Value | None) -> bool:
    """Whether an index has numbers for each row of the query, which are known."""
    p = numbers(index)
    return p is not None and dims.is_query(_length(index)) if index is not None else False


def is_each(index: Value | None, length: Dim) -> bool:
    """Whether an index has the number of each place along an axis, one after another."""
    p = numbers(index)
    return p is not None and p.begin == 0 and p.step == 1 and index is not None and _length(index) == length


def is_table(t: Tensor) -> bool:
    """Whether a tensor is kept, or made of sines, and nothing that goes in."""
    kept = not t.base.watched if t.base is not None else TURNED in t.tags
    return kept and INPUT not in t.tags


def picked(made: Tensor, t: Tensor, index: Value | None) -> Tensor:
    """`made` is what the progression `t` has at the places of another one."""
    p, at = numbers(t), numbers(index)
    if at is None and isinstance(index, Tensor) and (number := one(index)) is not None:
        at = Pick("numbers", begin=number, step=0)
    if p is None or at is None or p.step is None or sum(d != 1 for d in made.shape or ()) > 1:
        return made
    begin = dims.add(p.begin, dims.mul(p.step, at.begin))
    return progression(made, begin, None if at.step is None else p.step * at.step)


def assigned(t: Tensor, held: Pick, value: Value, whole: bool) -> None:
    """`t`, which held the numbers of rows of the query, is given a number, or the numbers of a tensor, or a part is."""
    given, number = numbers(value), one(value)
    if not dims.is_query(_length(t)) or (given is None and number is None):
        return
    if not whole:
        progression(t, held.begin, None)
    elif number is not None:
        progression(t, number, 0)
    elif given is not None:
        progression(t, given.begin, given.step)


def renewed(t: Tensor, made: Tensor) -> None:
    """`t` has become `made`, in place."""
    if made.pick is not None or COUNTED in t.tags:
        t.pick, t.tags = made.pick, without(t.tags) | (made.tags - without(made.tags))
