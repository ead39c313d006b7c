"""Which side a mask hides: what it has for the keys before each row of the query, and what for those behind it.

    keys <= rows                                           # 1 before, 0 behind
    (1.0 - mask) * -1e9                                    # 0 before, -1e9 behind: added to scores, it hides these
    torch.full((rows, end), -1e9).tril(start)              # -1e9 before, 0 behind: the wrong side
    self.register_buffer("mask", torch.ones(size, size))   # 1 everywhere

Keys far from a row say it, so that neither a window nor the begin of a call changes anything; a window that hides keys
behind nothing has to meet another mask. Where rows and keys are as many, the keys lie along the last axis.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from auditor import dims
from auditor.dims import is_query
from auditor.places import Site
from auditor.torch import progressions
from auditor.values import Const, Pick, Tensor, Unknown, Value
from auditor.values.tags import ACROSS, BLENDED, SCORES, WEIGHTS, WEIGHTS_ACROSS, At

Sides = tuple[float, ...]
"""What a mask has before each row, for the key right behind it, and further behind."""
COMPARED: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}
_COMPUTED: dict[str, Callable[[float, float], float]] = {
    **COMPARED,
    "+": operator.add,
    "-": operator.sub,
    "*": lambda a, b: a * b if a and b else 0.0,
    "&": lambda a, b: float(bool(a) and bool(b)),
    "|": lambda a, b: float(bool(a) or bool(b)),
    "^": lambda a, b: float(bool(a) != bool(b)),
}
_OF_ONE: dict[str, Callable[[float], float]] = {
    "-": operator.neg,
    "~": operator.not_,
    "log": lambda x: math.log(x) if x > 0 else -math.inf,
}
_MET = frozenset({SCORES, ACROSS, WEIGHTS, WEIGHTS_ACROSS})
_HIDES = -20.0
"""What is added to a score so that hardly anything is left of its weight."""


def of(value: Value | None) -> Sides | None:
    """What a mask, or a tensor or number that is the same everywhere, has before and behind each row."""
    if isinstance(value, Tensor):
        if value.pick is not None:
            return value.pick.sides or None
        value = value.data
    level = _level(value)
    return (level, level, level) if level is not None else None


def _level(value: Value | None) -> float | None:
    if isinstance(value, Const) and isinstance(value.value, (bool, int, float)):
        return float(value.value)
    if isinstance(value, Unknown) and value.kind == "float" and value.name == "min":
        return -math.inf  # `torch.finfo(type).min`
    return None


def filled(made: Tensor, value: Value) -> Tensor:
    """`made`, a table of one number that a module keeps, should it be a mask."""
    level = _level(value)
    if level is not None and made.shape is not None and len(made.shape) > 1 and 1 not in made.shape[-2:]:
        made.pick = Pick("sides", step=None, sides=(level, level, level))
    return made


def combined(op: str, a: Value, b: Value, made: Tensor) -> Tensor:
    """`made` is `a op b`, of which one may be a mask; what is the same for all rows hides neither side of a row."""
    if not (is_mask(a) or is_mask(b)) or op not in _COMPUTED:
        return made
    x, y = of(a), of(b)
    if x is not None and y is not None:
        numbers = [_COMPUTED[op](n, m) for n, m in zip(x, y, strict=True)]
        if not any(map(math.isnan, numbers)):
            made.pick = _like(a if is_mask(a) else b, numbers)
            if is_mask(a) and is_mask(b):
                made.pick = replace(made.pick, step=None)
    elif op in ("&", "+"):
        mask, other = (a, b) if x is not None else (b, a)
        if isinstance(mask, Tensor) and is_mask(mask) and _is_alike(other):
            made.pick = mask.pick
    return made


def _is_alike(value: Value) -> bool:
    return isinstance(value, Tensor) and value.shape is not None and not any(map(is_query, value.shape))


def is_mask(value: Value) -> bool:
    """Whether it is known of a tensor what it has on each side."""
    return isinstance(value, Tensor) and value.pick is not None and bool(value.pick.sides)


def _like(mask: Value, sides: Iterable[float]) -> Pick:
    assert isinstance(mask, Tensor)
    assert mask.pick is not None
    step = mask.pick.step if mask.pick.what == "sides" else None
    return replace(mask.pick, what="sides", step=step, sides=tuple(map(float, sides)))


def negated(made: Tensor, t: Tensor, op: str) -> Tensor:
    """`made` is `-t`, `~t` or the like, or `log(t)`."""
    p = t.pick
    if p is None or not p.sides:
        made.pick = None
        if progressions.numbers(t) is not None and op == "-":
            return progressions.combined("-", Const(0), t, made)
        return made
    made.pick = _like(t, map(_OF_ONE[op], p.sides))
    return made


def chosen(made: Tensor, condition: Value | None, yes: Value | None, no: Value | None) -> Tensor:
    """`made` has `yes` where a condition holds and else `no`: a mask of numbers, or scores that keep what is behind."""
    if condition is None or not is_mask(condition):
        return made
    said, x, y = of(condition), of(yes), of(no)
    assert said is not None
    if x is not None and y is not None:
        made.pick = _like(condition, (a if holds else b for holds, a, b in zip(said, x, y, strict=True)))
        return made
    for holds in said[1:]:
        left = yes if holds else no
        if isinstance(left, Tensor):
            made.tags = made.tags | left.tags & _MET
    return made


def filled_where(made: Tensor, t: Tensor, mask: Value, value: Value | None) -> Tensor:
    """`made` is `t` with a number where a mask says so. One that nobody knows is taken for one that hides."""
    level = of(value)
    keeps = level is not None and level[0] > _HIDES and not t.tags.isdisjoint(_MET)
    return chosen(made, mask, t if keeps else value, t)


def meets(op: str, made: Tensor, a: Value, b: Value) -> Tensor:
    """`made` is `a op b`, of which one may be scores or weights: unmasked where keys behind a row are left."""
    for t, mask in ((a, b), (b, a)):
        if isinstance(t, Tensor) and isinstance(mask, Tensor) and is_mask(mask) and t.tags & _MET:
            said = mask if op != "-" else negated(Tensor(mask.shape, mask.dtype), mask, "-")
            if shows_behind(said, op):
                made.tags = made.tags | t.tags & _MET
    return made


def shows_behind(mask: Tensor, op: str = "") -> bool:
    """Whether attention that is given a mask, or scores that it is added to, shows each row the keys behind it."""
    if not is_mask(mask) or mask.pick is None:
        return False
    before, *behind = mask.pick.sides
    if op == "*":
        return any(behind)
    as_bias = any(n > _HIDES and not n - before <= _HIDES for n in behind)
    if op or mask.dtype.startswith(("float", "bfloat", "half", "int")):
        return as_bias
    return any(behind) and (mask.dtype == "bool" or as_bias)


def counted(made: Tensor, t: Tensor, axis: int) -> Tensor:
    """`made` is the sum of a mask along its keys: how many there are before each row, or behind it."""
    p = t.pick
    if p is None or p.what != "sides" or p.step is None or t.shape is None:
        return made
    rows, keys = t.shape[-2:]
    across = is_query(keys) and not is_query(rows)
    if axis - len(t.shape) != (-2 if across else -1):
        return made
    if (p.sides[0], p.sides[2]) == (1.0, 0.0):
        return progressions.progression(made, p.begin, 1)
    if (p.sides[0], p.sides[2]) == (0.0, 1.0):
        return progressions.progression(made, dims.sub(t.shape[axis], p.begin), -1)
    return made


def cut(made: Tensor, t: Tensor) -> Tensor:
    """`made`, rows and keys of a mask: it hides the same side."""
    if t.pick is not None and is_mask(t) and made.shape is not None and len(made.shape) > 1:
        rows, keys = made.shape[-2:]
        across = is_query(keys) and not is_query(rows)
        same = t.shape is not None and t.shape[-2:] == (rows, keys)
        made.pick = t.pick if same else None if across else replace(_like(t, t.pick.sides), step=None)
    return made


def one_row(made: Tensor, t: Tensor, last: bool, site: Site) -> Tensor:
    """`made` are the keys of one row of a mask: of the last one all that there are, of another not those of all."""
    if t.pick is not None and is_mask(t):
        made.pick = Pick("sides", step=None, sides=t.pick.sides[:1] * 3) if last else None
        made.tags = made.tags if last else made.tags | At.of(BLENDED, site)
    return made


def turned_over(made: Tensor, t: Tensor) -> Tensor:
    """`made` is `t` with its axes in another order: what has as many rows as keys may then be another mask."""
    if made.pick is not None and made.pick.sides:
        axes = (t.shape or ())[-2:]
        if sum(map(is_query, axes)) != 1 and len(set(made.pick.sides)) > 1:
            made.pick = None
    return made
