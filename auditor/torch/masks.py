"""Scores of attention that no mask has met: a row of the query then sees the keys of the rows behind it.

A mask hides a key from one row and shows it to another. What says the same to all rows, or one number to each, cannot.
"""

from __future__ import annotations

from collections.abc import Iterable

from auditor.dims import Poly, is_query
from auditor.values import NO_FLAGS, Tensor
from auditor.values.tags import ACROSS, ALIKE, COARSE, SCORES, UNMASKED, WEIGHTS, WEIGHTS_ACROSS

WEIGHED = {SCORES: WEIGHTS, ACROSS: WEIGHTS_ACROSS}
_SHOWING = frozenset({ALIKE, COARSE})


def alike(made: Tensor) -> Tensor:
    """Mark `made`, which is filled with one number or with one row again and again."""
    if made.shape is not None and any(map(is_query, made.shape)):
        made.tags = made.tags | {ALIKE}
    return made


def coarse(made: Tensor) -> Tensor:
    made.tags = made.tags | {COARSE}
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
        return other.shape is not None and not any(map(is_query, other.shape))
    return _hides_nothing_across(other) if tag in (ACROSS, WEIGHTS_ACROSS) else hides_nothing(other)


def scores_across(made: Tensor, a: Tensor, b: Tensor) -> bool:
    """Whether a product is one of rows of the query and of as many rows of a cache as there are by now.

    `a` comes out of a cache, and the axis of its rows, whose length is not that of the query, is left in the product.
    """
    if made.shape is None or a.shape is None or b.shape is None or len(made.shape) < 3 or is_query(made.shape[-2]):
        return False
    if any(map(is_query, a.shape)) or not any(map(is_query, b.shape)):
        return False
    return any(isinstance(d, Poly) and d.flexible and d in made.shape for d in a.shape)
