"""Whether the rows of a tensor are still those of the query, one for one: masked, moved and overwritten rows are not.

A shape says how many rows there are, not whose. Three tags say the rest: `MASK` is on what compares positions, `OTHER`
on what has such a mask in it, or has its rows permuted, shifted or set in part. Attention and a residual sum with a
tensor that has its own rows give a row back what it needs, and `OTHER` ends there. `BLENDED` is on what has rows of the
query mixed among themselves (a product over them, a convolution along them, a running sum), and never ends: one forward
over S rows and S forwards over one row give different results then, whatever is added to it.
"""

from __future__ import annotations

from dataclasses import replace

from auditor import dims
from auditor.dims import Dim, is_query
from auditor.interpreter import Interpreter
from auditor.places import Site, here
from auditor.torch.shapes import Shape, normal
from auditor.torch.tensors import tagged
from auditor.values import Const, Seq, Tensor, Union, Value, merge_places
from auditor.values.tags import (
    ACROSS,
    ALIKE,
    BLENDED,
    COPY,
    FIRST_KEYS,
    FLIPPED,
    INPUT,
    JUDGED,
    KEPT,
    MASK,
    MIXED,
    MOVED,
    OTHER,
    SCORES,
    TOKENS,
    At,
    without,
)

_WRITTEN = frozenset({OTHER, FLIPPED, BLENDED, INPUT, FIRST_KEYS})
_NUMBERS = ("int", "uint", "bool")


def has_rows(t: Value) -> bool:
    """Whether a value is a tensor with a row for each row of the query."""
    return isinstance(t, Tensor) and t.shape is not None and any(map(dims.depends_on_query, t.shape))


def blended(made: Tensor, site: Site | None, when: bool = True) -> Tensor:
    """Mark `made`: rows of the query are mixed in it, at `site`. Numbers do not count, unless they are the tokens."""
    if when and (TOKENS in made.tags or not made.dtype.startswith(_NUMBERS)):
        made.tags = made.tags | At.of(BLENDED, site)
        made.places = merge_places(made.places, here(site))
    return made


def unblended(value: Value) -> Value:
    """`value` without the mark that rows of the query are mixed in it."""
    if isinstance(value, Union):
        return replace(value, options=tuple(map(unblended, value.options)))
    return replace(value, tags=without(value.tags, BLENDED)) if isinstance(value, Tensor) else value


def other(it: Interpreter, made: Tensor, when: bool, site: Site | None) -> Tensor:
    """Mark `made` at `site`: its rows are others than the query's. Numbers (positions, indices) do not count.

    Nor does what happens before a state is written: those are embeddings, which layers come after.
    """
    late = when and it.events is not None and it.events.inside
    if late and not made.dtype.startswith(_NUMBERS) and (made.shape is None or has_rows(made)):
        made.tags = made.tags | At.of(OTHER, site)
    return made


def named_axes(t: Tensor, axis: Value | None, default: int | None = None) -> list[int]:
    """The axes that a call names: the `default` one, or all of them, when it names none."""
    if t.shape is None:
        return []
    given = axis.items if isinstance(axis, Seq) else [axis] if axis is not None else []
    numbers = [g.value for g in given if isinstance(g, Const) and isinstance(g.value, int)]
    if not given and default is not None:
        numbers = [default]
    if given and len(numbers) < len(given):
        return []
    axes = [normal(n, len(t.shape)) for n in numbers] or range(len(t.shape))
    return [n for n in axes if n < len(t.shape)]


def flipped(made: Tensor, t: Tensor, axis: Value | None, site: Site | None) -> Tensor:
    """A flip; there and back is where it was. Numbers do not count, unless they are the tokens or go in, or a mask."""
    goes_in = not made.tags.isdisjoint((INPUT, MASK)) or not made.dtype.startswith(_NUMBERS)
    if goes_in and any(is_query(t.shape[n]) for n in named_axes(t, axis) if t.shape is not None):
        made.tags = without(made.tags, FLIPPED) if FLIPPED in made.tags else made.tags | At.of(FLIPPED, site)
    return made


def turned(made: Tensor, t: Tensor, site: Site | None) -> Tensor:
    """Mark `made`, which was taken out of `t` by numbers of rows in another order than theirs."""
    if INPUT in made.tags or MASK in t.tags or not made.dtype.startswith(_NUMBERS):
        made.tags = made.tags | At.of(FLIPPED, site)
    return made


def root(t: Tensor) -> Tensor:
    """The tensor that `t` is a view of."""
    while t.of is not None:
        t = t.of
    return t


def overwritten(it: Interpreter, t: Tensor, part: Tensor | None, tags: frozenset[str] = frozenset()) -> None:
    """`part` of `t` (all of it when None) was written in place, by something with these `tags`."""
    whole = root(t)
    part = part if part is not None else t
    marks = tags & (_WRITTEN | {MOVED} if COPY in whole.tags else _WRITTEN)
    mark = OTHER if it.events is not None and it.events.inside else MASK
    if has_rows(whole) and not whole.dtype.startswith(_NUMBERS):
        assert whole.shape is not None
        rows = [d for d in whole.shape if dims.depends_on_query(d)]
        if part.shape is None or OTHER in part.tags - whole.tags or any(d not in part.shape for d in rows):
            marks = marks | {mark}
    for each in {id(x): x for x in (whole, t)}.values():
        each.tags = (each.tags - {SCORES, ACROSS, ALIKE, FIRST_KEYS}) | marks
        each.data, each.numbers, each.pick = None, (), None


def parts(value: Value) -> list[Tensor]:
    """The tensors that a value may be."""
    options = value.options if isinstance(value, Union) else (value,)
    return [o for o in options if isinstance(o, Tensor)]


def spreads(t: Tensor, shape: Shape) -> bool:
    """Whether one row that was cut out of the query goes into all rows of `shape`.

    Positions do that rightly (a start plus a range), so integers that are no tokens do not count, nor comparisons of
    them.
    """
    if not t.cuts or t.shape is None or (t.dtype.startswith(_NUMBERS) and t.tags.isdisjoint((JUDGED, TOKENS))):
        return False
    return any(map(dims.depends_on_query, shape)) and not any(map(_surely_rows, t.shape))


def _surely_rows(d: Dim) -> bool:
    """Whether a dimension depends on the query whichever way was taken."""
    return all(map(dims.depends_on_query, dims.alternatives(d)))


def spread_out(made: Tensor, *parts: Tensor) -> Tensor:
    """`made`, tagged when one row of the query is spread over all of its rows, or stands among others."""
    return tagged(made, MIXED) if made.shape is not None and any(spreads(p, made.shape) for p in parts) else made


def in_place_of(t: Tensor, made: Tensor) -> Tensor:
    """`made`, whose rows are in the places of those of the state `t`: it may be written back."""
    if t.base is not None:
        made.tags = made.tags - {t.base.tag} | {KEPT + t.base.name}
    return made
