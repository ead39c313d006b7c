"""Masks of rows: what compares positions, and what comes of a tensor and such a mask."""

from __future__ import annotations

from collections.abc import Iterable

from auditor import dims
from auditor.dims import is_query
from auditor.interpreter import Interpreter
from auditor.places import Site
from auditor.torch import row_places, rows, shared_positions
from auditor.torch.masks import alike, coarse
from auditor.values import Const, Tensor, Value
from auditor.values.tags import (
    BLENDED,
    COUNTED,
    FIRST_KEYS,
    FLIPPED,
    FLOORED,
    INPUT,
    JUDGED,
    LEARNED,
    MASK,
    MIXED,
    NOT_THE_QUERYS,
    OTHER,
    ROWWISE,
    SHARED,
    WIDE,
    ZERO,
    without,
)


def compares(made: Tensor, operands: Iterable[Value]) -> Tensor:
    """`made` is a comparison: a mask, unless it compares what the model computes."""
    tensors = [t for t in operands if isinstance(t, Tensor)]
    computed = any(t.dtype.startswith(("float", "bfloat", "half")) and not _is_input(t) for t in tensors)
    made.dtype = "bool"
    counts = any(COUNTED in t.tags and any(map(is_query, t.shape or ())) for t in tensors)
    if counts and any(map(_of_keys, tensors)):
        made.tags = made.tags | {FIRST_KEYS}
    made.tags = made.tags - {MASK, LEARNED} | {JUDGED} if computed else made.tags - {LEARNED} | {MASK}
    counted = [t for t in tensors if COUNTED in t.tags]
    first = (
        bool(counted)
        and not any(map(_of_keys_ahead, tensors))
        and _has_keys(made)
        and any(row_places.hide_nothing(t, made.shape or ()) for t in counted)
    )
    if SHARED in made.tags or not made.tags.isdisjoint(ROWWISE):
        made = shared_positions.compared(made, tensors)
    made.tags = made.tags | {FIRST_KEYS} if first else made.tags
    return coarse(made) if FLOORED in made.tags else made


def _of_keys(t: Tensor) -> bool:
    """Whether a tensor has as many numbers as there are keys, those of a cache among them, from the first one on."""
    if t.pick is None or t.pick.what != "numbers" or not isinstance(t.pick.begin, int):
        return False
    long = [d for d in t.shape or () if d != 1]
    return len(long) == 1 and not is_query(long[0])


def _of_keys_ahead(t: Tensor) -> bool:
    """Whether a tensor numbers keys from another number than the first: less where the call begins, say."""
    moves = t.pick is not None and t.pick.what == "numbers" and isinstance(t.pick.begin, dims.Poly)
    return moves and not any(map(is_query, t.shape or ()))


def _has_keys(made: Tensor) -> bool:
    """Whether there are rows of the query along an axis, and along another as many keys as there are by now."""
    shape = made.shape or ()
    return any(map(is_query, shape)) and any(dims.is_flexible(d) and not is_query(d) for d in shape)


def _is_input(t: Tensor) -> bool:
    return t.base is not None and t.base.role == "input"


def is_mask(m: Value | None) -> bool:
    """Whether a tensor is a mask that comes of positions or goes in, and not of what the model computes."""
    return isinstance(m, Tensor) and (MASK in m.tags or _is_input(m))


def _is_row_mask(m: Value) -> bool:
    """Whether a tensor says one thing for each row of the query: a mask of positions, or an input of one per row."""
    if not isinstance(m, Tensor) or m.shape is None or not (MASK in m.tags or _is_input(m)):
        return False
    rows = [n for n, d in enumerate(m.shape) if dims.depends_on_query(d)]
    rest = [d for n, d in enumerate(m.shape) if n not in rows and n > 0]
    return len(rows) == 1 and (WIDE in m.tags or (len(m.shape) > 1 and all(d == 1 for d in rest)))


def masked(it: Interpreter, made: Tensor, site: Site | None, *operands: Value) -> Tensor:
    """`made` of these operands, of which one may be a mask of rows."""
    return rows.other(it, made, any(map(_is_row_mask, operands)) and not all(map(_is_row_mask, operands)), site)


def scaled(it: Interpreter, made: Tensor, site: Site | None, *operands: Value) -> Tensor:
    """A product; with the number 0, or as many of it, it is 0 whatever goes in."""
    numbers = [v.data if isinstance(v, Tensor) else v for v in operands]
    made = masked(it, made, site, *operands)
    return _nothing(made) if any(isinstance(n, Const) and n.value == 0 for n in numbers) else made


def cancelled(made: Tensor, a: Value | None, b: Value | None) -> Tensor:
    """A difference; of a tensor and itself, or a copy of it, it is 0 whatever goes in."""
    return _nothing(made) if a is b or _are_one(a, b) else made


def _are_one(a: Value | None, b: Value | None) -> bool:
    """Whether two tensors are the same numbers: one under two names, or a copy that nothing has changed."""
    if not isinstance(a, Tensor) or not isinstance(b, Tensor) or a.shape != b.shape or a.base is not b.base:
        return False
    copies = [t.pick.mask for t in (a, b) if t.pick is not None and t.pick.what == "same"]
    return a.born == b.born or (len(copies) == 2 and copies[0] == copies[1])


def _nothing(made: Tensor) -> Tensor:
    """Numbers that are all 0: nothing that goes in is in them, and no row of it."""
    made.tags = without(made.tags, INPUT, BLENDED, MIXED, OTHER, FLIPPED) | {ZERO}
    return made


def summed(it: Interpreter, made: Tensor, site: Site | None, *operands: Value) -> Tensor:
    """A sum: each row is the query's when that of one operand is, and two of them in reverse order are mixed."""
    for tag in made.tags & NOT_THE_QUERYS:
        if any(tag not in t.tags for t in operands if isinstance(t, Tensor) and rows.has_rows(t)):
            made.tags = made.tags - {tag} | {BLENDED} if tag == FLIPPED else without(made.tags, tag)
    return masked(it, made, site, *operands)


def widened(t: Tensor, made: Tensor) -> Tensor:
    """`t`, expanded: a mask of rows stays one, and one row that goes into all of them makes them alike."""
    if _is_row_mask(t):
        made.tags = made.tags | {WIDE, MASK}
    return alike(made) if t.shape is not None and not any(map(is_query, t.shape)) else made
