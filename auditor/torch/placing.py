"""One row put into a cache by arithmetic: what a mask of zeros and a single one keeps, and what it lets in.

    at = (torch.arange(length)[:, None] == position).float()      # 1 at one position, 0 elsewhere
    cache = cache * (1.0 - at) + row * at                         # that row is new, all others are as they were
    cache.mul_(1.0 - at), then cache.add_(row * at)               # the same

    put = torch.nn.functional.one_hot(torch.arange(start, end), length).float()   # a single 1 for each row of the query
    cache = cache * (1.0 - put.sum(0)) + put.T @ rows                              # all of them at once

It is a write at a position. A gate that the model computes, a decay, or a mask of many ones looks the same and is a
recurrence: so nothing but numbers that are all different, compared with one position, counts as such a mask.
"""

from __future__ import annotations

from collections.abc import Collection

from auditor import dims
from auditor.interpreter import Interpreter
from auditor.torch import progressions, shapes
from auditor.torch.state_writes import is_layer
from auditor.values import Const, Num, Pick, Put, Tensor, Unknown, Value, altered, serial
from auditor.values.tags import MOVED, PICKED, WRAPS

_NOT_GIVEN = PICKED | {WRAPS, MOVED}
"""Tags of positions that are chosen, wrapped around or moved."""


def combined(it: Interpreter, op: str, a: Value, b: Value, made: Tensor) -> Tensor:
    """`made` is `a op b`, of which one has a part in such a write."""
    made = progressions.combined(op, a, b, made)
    match op:
        case "==":
            return _compared(a, b, made)
        case "-":
            return _subtracted(a, b, made)
        case "*":
            return _multiplied(a, b, made)
        case "+":
            return _added(it, a, b, made)
    return made


def one_hot(position: Value, made: Tensor) -> Tensor:
    """`one_hot(position)`: a mask with a single one where there is one position."""
    if _is_one(position):
        made.pick = Pick("at", serial())
    return _hot(position, made)


def _hot(position: Value, made: Tensor) -> Tensor:
    """`made` has a single one for each row of the query, where whole numbers that nothing has chosen say."""
    if isinstance(position, Tensor) and _is_of_rows(position) and _axes(made) is not None:
        made.pick = Pick("hot", serial(), step=0, places=position)
    return made


def _is_of_rows(position: Tensor) -> bool:
    """Whether there is one position for each row of the query."""
    long = [d for d in position.shape or () if d != 1]
    whole = position.dtype.startswith(("int", "uint")) and position.tags.isdisjoint(_NOT_GIVEN)
    return whole and len(long) == 1 and dims.is_query(long[0])


def _axes(t: Tensor) -> tuple[int, int] | None:
    """The axes of the rows of the query and of the places, from behind; None where there are others."""
    shape = t.shape or ()
    long = [n - len(shape) for n, d in enumerate(shape) if d != 1]
    rows = [n for n in long if dims.is_query(shape[n])]
    return (rows[0], next(n for n in long if n != rows[0])) if len(long) == 2 and len(rows) == 1 else None


def over_rows(t: Tensor, axes: Collection[int], made: Tensor) -> Tensor:
    """`made`, a sum over some axes: of such a matrix over its rows, it is 1 wherever one of them has a place."""
    found = _axes(t) if t.pick is not None and t.pick.what == "hot" else None
    if t.pick is not None and found is not None and set(axes) == {found[0] + len(t.shape or ())}:
        made.pick = Pick("hots", t.pick.mask, step=0)
    return made


def spread(a: Tensor, b: Tensor, made: Tensor) -> Tensor:
    """`made`, a product: of such a matrix, its places first, with rows of the query, it has these in their places."""
    if a.pick is not None and a.pick.what == "hot" and _axes(a) == (-1, -2) and b.shape and dims.is_query(b.shape[-2]):
        made.pick = Pick("new", a.pick.mask, step=0, places=a.pick.places, rows=b)
    return made


def halved(state: Tensor, mask: Value) -> Pick | None:
    """What `state.mul_(mask)` leaves of a state: what the opposite of such a mask keeps."""
    made = _multiplied(state, mask, Tensor(state.shape))
    return made.pick if made.pick is not None and made.pick.what == "kept" else None


def completed(it: Interpreter, state: Tensor, kept: Pick, row: Value) -> Tensor | None:
    """What `state.add_(row)` makes of what such a mask has kept: the state with one row put in, if that is the row."""
    tags = row.tags if isinstance(row, Tensor) else frozenset()
    made = _added(it, altered(state, pick=kept), row, Tensor(state.shape, tags=tags))
    return made if made.pick is not None else None


def _compared(a: Value, b: Value, made: Tensor) -> Tensor:
    """Numbers that equal one position: a mask with a single one."""
    for numbers, position in ((a, b), (b, a)):
        if isinstance(numbers, Tensor) and _all_differ(numbers):
            if _is_one(position):
                made.pick = Pick("at", serial())
            elif not any(map(dims.is_query, numbers.shape or ())):
                made = _hot(position, made)
    return made


def _all_differ(t: Tensor) -> bool:
    return t.pick is not None and t.pick.what == "numbers" and t.pick.step != 0


def _subtracted(a: Value, b: Value, made: Tensor) -> Tensor:
    """`1 - mask`: its opposite."""
    one = isinstance(a, Const) and a.value == 1
    if one and isinstance(b, Tensor) and b.pick is not None and b.pick.what in ("at", "hots"):
        made.pick = Pick("rest", b.pick.mask)
    return made


def _multiplied(a: Value, b: Value, made: Tensor) -> Tensor:
    """A state where the mask keeps it, and rows of the query where the mask is one."""
    for mask, value in ((a, b), (b, a)):
        if not isinstance(mask, Tensor) or mask.pick is None or not isinstance(value, Tensor):
            continue
        if mask.pick.what == "rest" and _fits(mask, value):
            made.pick = Pick("kept", mask.pick.mask, value.base, view=value)
        elif mask.pick.what == "at" and _lies_along(mask, value):
            made.pick = Pick("new", mask.pick.mask)
    return made


def _added(it: Interpreter, a: Value, b: Value, made: Tensor) -> Tensor:
    """What is kept and what is new by one mask: the state, with one row put in."""
    for old, new in ((a, b), (b, a)):
        if not isinstance(old, Tensor) or not isinstance(new, Tensor) or old.pick is None or new.pick is None:
            continue
        kept, put = old.pick, new.pick
        if (kept.what, put.what) != ("kept", "new") or kept.mask != put.mask:
            continue
        if it.events is None or it.events.from_held(kept.held, new):
            continue
        if put.rows is not None and kept.view is not None:
            taken = (Put(kept.view, put.places, put.rows, "", None),)
            made.pick, made.shape = Pick("copy", held=kept.held, step=0, view=kept.view, put=taken), old.shape
        else:
            made.pick, made.shape = Pick("placed", kept.mask, kept.held), old.shape
    return made


def _is_one(position: Value) -> bool:
    """Whether a value is a single number, which nothing that the model computes has chosen."""
    if not isinstance(position, Tensor):
        return isinstance(position, (Const, Num)) or (
            isinstance(position, Unknown) and position.kind in ("int", "data")
        )
    return position.shape is not None and all(d == 1 for d in position.shape) and position.tags.isdisjoint(_NOT_GIVEN)


def _lies_along(mask: Tensor, value: Tensor) -> bool:
    """Whether the rows of the query lie along the axis that the mask numbers: it is that of the positions."""
    long = [n - len(mask.shape or ()) for n, d in enumerate(mask.shape or ()) if d != 1]
    rows = [n - len(value.shape or ()) for n, d in enumerate(value.shape or ()) if dims.depends_on_query(d)]
    return len(long) == 1 and long == rows


def _fits(mask: Tensor, state: Tensor) -> bool:
    """Whether a mask lies along one axis of a whole state, or of a whole layer of it, and only one can be meant."""
    if state.base is None or state.base.role not in ("input", "buffer") or not is_layer(state):
        return False
    long = [d for d in mask.shape or () if d != 1]
    if len(long) != 1 or not state.shape or mask.shape is None:
        return False
    return state.shape.count(long[0]) == 1 and shapes.broadcast([mask.shape, state.shape]) == state.shape
