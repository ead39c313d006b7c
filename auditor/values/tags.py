"""What is said of a tensor beside its shape: `Tensor.tags` is a set of these words, and of the tags of storages.

Most of them go on to whatever is computed from the tensor (see `tensors.result`), those of `OWN` do not.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from auditor.dims import Dim
    from auditor.places import Site


class At(str):
    """A tag that goes with one of those below, and says where that one was made: it goes on to what is computed."""

    __slots__ = ("site",)
    site: Site

    @classmethod
    def of(cls, tag: str, site: Site | None) -> frozenset[str]:
        """`tag`, with where it was made when that is known."""
        if site is None:
            return frozenset({tag})
        made = cls(f"{tag}@{id(site)}")
        made.site = site
        return frozenset({tag, made})


def without(tags: frozenset[str], *ended: str) -> frozenset[str]:
    """Tags without some of them, and without where those were made."""
    return frozenset(t for t in tags if (t.partition("@")[0] if type(t) is At else t) not in ended)


def kept(tags: Iterable[str], tag: str) -> frozenset[str]:
    """One of the tags, with where it was made; nothing where it is not among them."""
    return frozenset(t for t in tags if (t.partition("@")[0] if type(t) is At else t) == tag)


def sites(tags: Iterable[str]) -> list[Site]:
    """Where the tags were made, as far as it is known, in the order of their lines."""
    return sorted((t.site for t in tags if isinstance(t, At)), key=lambda s: (s.path, s.line))


class Begins(str):
    """A tag that goes with `COUNTED`: the number of the first row, and how far it is from each row to the next.

    `step` is None where the rows are in another order.
    """

    __slots__ = ("begin", "step")
    begin: Dim
    step: int | None

    @classmethod
    def of(cls, begin: Dim, step: int | None) -> Begins:
        made = cls(f"begins:{begin}/{step}")
        made.begin, made.step = begin, step
        return made


class Blocks(str):
    """A tag of a cache whose rows were put into blocks: the lengths of the axes that have them now."""

    __slots__ = ("lengths",)
    lengths: tuple[Dim, ...]

    @classmethod
    def of(cls, lengths: tuple[Dim, ...]) -> Blocks:
        made = cls(f"blocks:{lengths}")
        made.lengths = lengths
        return made


# where the values come from

FROM = "from:"
"""Computed from the storage whose name stands behind it."""
INPUT = "input"
"""Computed from an input of the graph."""
TOKENS, BESIDE = "tokens", "beside-tokens"
"""Whole numbers that are computed from the query; from another input of whole numbers."""
LEARNED = "learned"
"""Weights went into it."""
COPY = "copy"
"""A copy of an input or a buffer."""
ZERO = "zero"
"""All 0: a product with the number 0, or a difference of equal numbers."""
CAST = "cast"
"""A state as numbers of another type: it is read like the state, and what is written to it stays there."""
JUDGED = "judged"
"""A comparison of what the model computes."""
ARGMAX, TOPK = "argmax", "topk"
LARGEST = frozenset({ARGMAX, TOPK})
"""Values, or their positions, that were taken because they are the largest."""
CHOSEN = "chosen"
"""Whole numbers that a condition or a bound chooses."""
PICKED = LARGEST | {CHOSEN}
"""Positions that a condition, a bound or the model's own values choose."""
FLOORED = "floored"
"""Rounded: several positions have the same number."""
WRAPS = "wraps"
"""A remainder: positions that begin again at 0."""

# whose rows they are

ONE_ROW = "one-row"
"""Reshaped to a shape without the rows, which fits a query of one row only."""
MASK = "row-mask"
"""A comparison of positions."""
WIDE = "wide-mask"
"""A mask that says one thing for each row of the query, spread along another axis."""
OTHER = "other-rows"
"""Has such a mask in it, or rows that were permuted, shifted or set in part."""
FLIPPED = "flipped-rows"
"""Has its rows in reverse."""
NOT_THE_QUERYS = frozenset({OTHER, FLIPPED})
BEHIND_EACH = "behind-each:"
"""How many places of an axis that holds rows and others belong to each row stand behind it."""
MIXED = "mixed-rows"
"""One row of the query was spread over all of them, or stands among others."""
BLENDED = "blended-rows"
"""Rows of the query were mixed among themselves."""
BEHIND = "rows-behind-others"
"""Rows of the query that a fixed number of others was put in front of."""
ALIKE = "alike-rows"
"""Has a row for each row of the query, and the same numbers in all of them."""

# where rows stand (see `torch/positions.py`)

ONE = "one-position"
"""Computed from single numbers and nothing that differs from row to row."""
COUNTED = "counted-rows"
"""Computed from the numbers of the rows within a call and nothing else."""
ROWWISE = frozenset({ONE, COUNTED})
LENGTH, TURNED, LOOKED = "of-a-length", "turned", "looked-up"
"""A length of an axis, a sine or a table went into it."""
CALL = "of-a-call"
"""How many rows or keys there are went into a single number, or the largest of what goes in for each of them."""
SPAN = "as-many-behind"
"""A single number that the number of rows went into."""
SHARED = "shared-position"
"""Rows of the query that one position, or numbers of rows from 0, went into."""
STANDING = ROWWISE | {LENGTH, LOOKED, CALL}
"""What is said of the positions in a tensor, and not of what has rows of its own."""
HANDED_ON = STANDING | {TURNED}
"""What goes on from positions to what is computed from nothing else."""

# what attention has of them

SCORES, WEIGHTS = "scores", "weights"
"""A product with each row of a cache, and what a softmax makes of it: no mask has met it.

The rows of the query lie along the last axis but one. `ACROSS` and `WEIGHTS_ACROSS` mean the same where they do not.
"""
ACROSS, WEIGHTS_ACROSS = "scores-across", "weights-across"
COARSE = "coarse-mask"
"""A comparison of numbers that were rounded: it says the same for some rows, one behind another."""
TRIANGLE = "triangle"
"""A square triangle: a row of it for each place shows the places up to that one."""
FIRST_KEYS = "first-keys"
"""A triangle for the rows of the query that begins at the first key in every call, whatever the cache holds by then."""
UNMASKED = frozenset({SCORES, WEIGHTS, ACROSS, WEIGHTS_ACROSS, ALIKE, COARSE, FIRST_KEYS})

# what was written, and where

ONE_PLACE = "one-place"
"""A view of a state at a place that is the same in every call."""
GROWN = "grown"
"""A cache with new rows behind it."""
MOVED = "moved"
"""The rows of a cache in other places than before: a window that slides."""
KEPT = "kept:"
"""Has the rows of a state, whose name stands behind it, in their places, but for some that are new."""
LATER = "later-rows"
"""The rows of a state from a later one than the first on, up to its end."""
RENEWED, ANEW = "renewed", "anew-"
"""Computed from all of a state, so that none of its numbers stays; the other, with its tag behind it, says of which."""
PRODUCT = "learned-product"
"""As large as a state, and a product of nothing but what the model computes: a number for each of the state's."""
PARTLY = "partly-masked"
"""A mask, or what goes in and may be one, was a factor of it or has chosen it: parts of it may be 0."""

OWN = UNMASKED | {ARGMAX, TOPK, ONE_ROW, COPY, CAST, ZERO, BEHIND, JUDGED, LATER, PRODUCT} | STANDING
"""Said of one tensor, not of what is computed from it and others."""
OF_ALL = frozenset({MASK, WIDE, TURNED})
"""Said of what is computed from nothing but such tensors and numbers."""
