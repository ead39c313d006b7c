"""Scores of attention that no mask has met: a row of the query then sees the keys of the rows behind it.

A mask hides a key from one row and shows it to another. What says the same to all rows, or one number to each, cannot.
"""

from __future__ import annotations

from collections.abc import Iterable

from auditor import dims
from auditor.dims import Dim, is_query
from auditor.values import NO_FLAGS, Tensor
from auditor.values.tags import (
    ACROSS,
    ALIKE,
    COARSE,
    FIRST_KEYS,
    SCORES,
    TRIANGLE,
    UNMASKED,
    WEIGHTS,
    WEIGHTS_ACROSS,
)

WEIGHED = {SCORES: WEIGHTS, ACROSS: WEIGHTS_ACROSS}
_SHOWING = frozenset({ALIKE, COARSE, FIRST_KEYS})


def alike(made: Tensor) -> Tensor:
    """Mark `made`, which is filled with one number or with one row again and again."""
    if made.shape is not None and any(map(is_query, made.shape)):
        made.tags = made.tags | {ALIKE}
    return made


def coarse(made: Tensor) -> Tensor:
    made.tags = made.tags | {COARSE}
    return made


def triangular(made: Tensor, diagonal: Dim | None) -> Tensor:
    """Mark `made`, a triangle that ends at this diagonal (None: not known).

    The rows of a call stand behind what the cache holds, so the diagonal has to move with it. One that is a number
    shows the first keys in every call, and hides the others.
    """
    made.tags = made.tags - UNMASKED
    if made.shape is None or len(made.shape) < 2 or not isinstance(diagonal, int):
        return made
    rows, keys = made.shape[-2:]
    if rows == keys:
        made.tags = made.tags | {TRIANGLE}
    elif is_query(rows) and not isinstance(dims.sub(keys, rows), int):
        made.tags = made.tags | {FIRST_KEYS}
    return made


def first_rows(made: Tensor, whole: Tensor, axis: int, start: Dim | None) -> Tensor:
    """Mark `made`, which was cut along `axis`: the first rows of a triangle, one for each of the query's."""
    if TRIANGLE not in made.tags or start != 0 or made.shape is None or whole.shape is None:
        return made
    if axis == len(whole.shape) - 2 and is_query(made.shape[-2]) and not is_query(whole.shape[-2]):
        made.tags = made.tags - {TRIANGLE} | ({FIRST_KEYS} if made.shape[-2] != made.shape[-1] else NO_FLAGS)
    return made


def hides_nothing(m: Tensor) -> bool:
    """Whether no key is hidden from one row of the query and shown to another, wherever `m` is added to scores."""
    return m.shape is not None and (len(m.shape) < 2 or 1 in m.shape[-2:] or not m.tags.isdisjoint(_SHOWING))


def _hides_nothing_across(m: Tensor) -> bool:
    """The same where the rows lie along any axis: `m` has none of them, or nothing but them."""
    others = [d for d in m.shape or () if not is_query(d)]
    alone = m.shape is not None and (len(others) == len(m.shape) or all(d == 1 for d in others))
    return alone or not m.tags.isdisjoint(_SHOWING)


def still_unmasked(tags: frozenset[str], sources: Iterable[Tensor]) -> frozenset[str]:
    """Those of `tags`, which one of the sources has, that hold of what is computed from all of them."""
    found = tags & UNMASKED
    if not found:
        return NO_FLAGS
    sources = tuple(sources)
    return frozenset(t for t in found if all(t in s.tags or _leaves(s, t) for s in sources))


def _leaves(other: Tensor, tag: str) -> bool:
    """Whether what is computed from a tensor that has a tag and this one has the tag, too."""
    if tag in _SHOWING:
        shows = tag != ALIKE and not other.tags.isdisjoint(_SHOWING)
        return shows or (other.shape is not None and not any(map(is_query, other.shape)))
    return _hides_nothing_across(other) if tag in (ACROSS, WEIGHTS_ACROSS) else hides_nothing(other)


def scores_across(made: Tensor, a: Tensor, b: Tensor) -> bool:
    """Whether a product is one of rows of the query and of as many rows of a cache as there are by now.

    `a` comes out of a cache, and the axis of its rows, whose length is not that of the query, is left in the product.
    """
    if made.shape is None or a.shape is None or b.shape is None or len(made.shape) < 3 or is_query(made.shape[-2]):
        return False
    if any(map(is_query, a.shape)) or not any(map(is_query, b.shape)):
        return False
    return any(dims.is_flexible(d) and d in made.shape for d in a.shape)
