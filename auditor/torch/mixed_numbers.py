"""Whole numbers of rows that were sorted, counted or put together anew: where a row stands says more than one of them.

positions.argsort()                          # where each stands among those of the call: 0, 1, ...
(positions >= 0).cumsum(-1)                  # 1, 2, ...
positions.cumsum(-1)                         # those of the rows before it are in each
a, b = positions.chunk(2, -1)
torch.cat((b, a), -1)                        # those of other rows
"""

from __future__ import annotations

from collections.abc import Sequence

from auditor import dims
from auditor.dims import Dim
from auditor.torch import progressions
from auditor.torch.positions import NUMBERS, is_rows
from auditor.values import Tensor, Value
from auditor.values.tags import BESIDE, COUNTED, MASK, ONE, PICKED, TOKENS, Begins


def are_of_rows(t: Tensor, axis: int) -> bool:
    """Whether whole numbers that are no tokens, or a mask of them, have one for each row along an axis."""
    if t.shape is None or not -len(t.shape) <= axis < len(t.shape) or not is_rows(t.shape[axis]):
        return False
    if progressions.numbers(t) is not None:
        return True
    beside = BESIDE in t.tags or (MASK in t.tags and t.dtype == "bool")
    return beside and t.dtype.startswith(NUMBERS) and t.tags.isdisjoint(PICKED | {TOKENS})


def ranked(made: Tensor, t: Tensor, axis: int, descending: bool) -> Tensor:
    """`made` says where the numbers of `t` stand among each other when they are sorted."""
    if not are_of_rows(t, axis) or t.shape is None:
        return made
    p = progressions.numbers(t)
    if p is None or not p.step:
        return progressions.progression(made, 0, None)
    up = (p.step > 0) != descending
    return progressions.progression(made, 0 if up else dims.sub(t.shape[axis], 1), 1 if up else -1)


def sorted_(made: Tensor, t: Tensor, axis: int, descending: bool) -> Tensor:
    """`made` are the numbers of `t` by their size; those that go up, as those of rows do, stay where they are."""
    if progressions.numbers(t) is not None:
        return progressions.sorted_(made, t, descending)
    return progressions.progression(made, 0, None) if descending and are_of_rows(t, axis) else made


def summed_up(made: Tensor, t: Tensor, axis: int) -> Tensor:
    """`made` are running sums: of a mask, how many rows there are up to each; of positions, none of their rows."""
    if not are_of_rows(t, axis):
        return progressions.summed_up(made, t)
    p = progressions.numbers(t)
    if p is not None and p.step != 0:
        return progressions.progression(made, p.begin, None)
    return progressions.progression(made, 1, 1) if p is None else made


def computed(op: str, a: Value, b: Value, made: Tensor) -> Tensor:
    """`made` is `a op b`, of which one has numbers of rows that are not where these stand, and will not be by adding.

    Two rows have one number then, or a mask has taken that of some. A position that is halved is one of its own.
    """
    if made.pick is not None or op not in ("//", "%", "*"):
        return made
    for t, other in ((a, b), (b, a)):
        p = progressions.numbers(t)
        if p is None or not isinstance(t, Tensor) or COUNTED not in t.tags:
            continue
        if op == "*":
            if isinstance(other, Tensor) and other.dtype.startswith(NUMBERS):
                made.tags = made.tags - {ONE} | {t for t in t.tags if t == COUNTED or type(t) is Begins}
        elif t is a:
            made = progressions.progression(made, p.begin, None)
    return made


def joined(made: Tensor, parts: Sequence[Tensor], axis: int) -> Tensor:
    """`made` are the numbers of these parts, one behind another along an axis."""
    found = [progressions.numbers(p) for p in parts]
    if made.shape is None or all(p is None for p in found) or made.shape[axis] == 1:
        return made
    lengths = [p.shape[axis] for p in parts if p.shape is not None]
    if any(dims.product(p.shape or ()) != n for p, n in zip(parts, lengths, strict=True)):
        return made  # the numbers lie along another axis
    begin, step, end = None, None, None
    for p, length in zip(found, lengths, strict=True):
        if p is None or (p.step is None) or (end is not None and p.begin != end):
            return _scattered(made, lengths)
        begin = p.begin if begin is None else begin
        step = p.step if length != 1 and step is None else step
        if length != 1 and p.step != step:
            return _scattered(made, lengths)
        end = dims.add(p.begin, dims.mul(step if step is not None else 1, length))
    assert begin is not None
    made.tags = made.tags - {ONE}
    return progressions.progression(made, begin, 1 if step is None else step)


def stacked(made: Tensor, parts: Sequence[Tensor]) -> Tensor:
    """`made` are the numbers of these parts side by side, halves of those of the rows, say."""
    found = [p for p in parts if progressions.numbers(p) is not None]
    return _scattered(made, [dims.product(p.shape or ()) for p in found]) if found else made


def _scattered(made: Tensor, lengths: Sequence[Dim]) -> Tensor:
    """`made`, parts of the numbers of rows that are not where they were."""
    parts = [d for d in lengths if dims.depends_on_query(d) and not dims.is_query(d)]
    if parts and all(isinstance(d, int) or d in parts for d in lengths):
        made.tags = made.tags - {ONE} | {COUNTED, Begins.of(0, None)}
    return made
