"""Whether the rows of a tensor are still those of the query, one for one: masked, moved and overwritten rows are not.

A shape says how many rows there are, not whose. Three tags say the rest: `MASK` is on what compares positions, `OTHER`
on what has such a mask in it, or has its rows permuted, shifted or set in part. Attention and a residual sum with a
tensor that has its own rows give a row back what it needs, and `OTHER` ends there. `BLENDED` is on what has rows of the
query mixed among themselves (a product over them, a convolution along them, a running sum), and never ends: one forward
over S rows and S forwards over one row give different results then, whatever is added to it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from auditor import dims
from auditor.dims import Dim, is_query
from auditor.interpreter import Interpreter
from auditor.places import Site, here
from auditor.torch import positions, row_places, shapes, shared_positions
from auditor.torch.masks import alike, coarse, scores_across
from auditor.torch.shapes import Shape, normal
from auditor.torch.tensors import tagged
from auditor.values import NO_FLAGS, Const, Seq, Tensor, Union, Value, merge_places
from auditor.values.tags import (
    ACROSS,
    ALIKE,
    BEHIND,
    BEHIND_EACH,
    BLENDED,
    COPY,
    COUNTED,
    FIRST_KEYS,
    FLIPPED,
    FLOORED,
    INPUT,
    JUDGED,
    LEARNED,
    MASK,
    MIXED,
    MOVED,
    NOT_THE_QUERYS,
    OTHER,
    ROWWISE,
    SCORES,
    SHARED,
    TOKENS,
    WEIGHTS,
    WEIGHTS_ACROSS,
    WIDE,
    At,
    without,
)

_WRITTEN = frozenset({OTHER, FLIPPED, BLENDED, INPUT, FIRST_KEYS})
_NUMBERS = ("int", "uint", "bool")


def reshaped(made: Tensor, t: Tensor, site: Site | None) -> Tensor:
    """`made` is `t` in another shape: rows that are put into one axis with others have to be taken out again as such.

    `[1, h, q, d]` as `[1, h * q, d]`, and that as `[1, h, q, d]`, but not as `[1, q, h, d]`.
    """
    source, target = t.shape or (), made.shape or ()
    if dims.Poly not in map(type, source):
        return made  # no rows of the query
    before, after = shapes.behind_rows(source), shapes.behind_rows(target)
    if before is not None and after is not None:
        return blended(made, site, shapes.differs(before, after))
    into, out_of = _behind_shared(target), _behind_shared(source)
    if before is not None and into is not None and (each := dims.exact_div(before, into)) is not None:
        made.tags = made.tags | {f"{BEHIND_EACH}{each}"}
    elif after is not None and out_of is not None:
        said = {tag for tag in made.tags if tag.startswith(BEHIND_EACH)}
        each = dims.exact_div(after, out_of)
        made.tags = made.tags - said
        made = blended(made, site, bool(said) and f"{BEHIND_EACH}{each}" not in said)
    return made


def _behind_shared(shape: Shape) -> Dim | None:
    """How many values lie behind the only axis that the query's rows have with others."""
    found = [n for n, d in enumerate(shape) if positions.is_rows(d) and not is_query(d)]
    return dims.product(shape[found[0] + 1 :]) if len(found) == 1 else None


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
    return any(map(is_query, shape)) and any(isinstance(d, dims.Poly) and d.flexible and not is_query(d) for d in shape)


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
    return other(it, made, any(map(_is_row_mask, operands)) and not all(map(_is_row_mask, operands)), site)


def scaled(it: Interpreter, made: Tensor, site: Site | None, *operands: Value) -> Tensor:
    """A product; with the number 0, or as many of it, it is 0 whatever goes in."""
    numbers = [v.data if isinstance(v, Tensor) else v for v in operands]
    if any(isinstance(n, Const) and n.value == 0 for n in numbers):
        made.tags = made.tags - {INPUT}
    return masked(it, made, site, *operands)


def cancelled(made: Tensor, a: Value | None, b: Value | None) -> Tensor:
    """A difference; of a tensor and itself it is 0 whatever goes in."""
    if a is b:
        made.tags = made.tags - {INPUT}
    return made


def other(it: Interpreter, made: Tensor, when: bool, site: Site | None) -> Tensor:
    """Mark `made` at `site`: its rows are others than the query's. Numbers (positions, indices) do not count.

    Nor does what happens before a state is written: those are embeddings, which layers come after.
    """
    late = when and it.events is not None and it.events.inside
    if late and not made.dtype.startswith(_NUMBERS) and (made.shape is None or has_rows(made)):
        made.tags = made.tags | At.of(OTHER, site)
    return made


def summed(it: Interpreter, made: Tensor, site: Site | None, *operands: Value) -> Tensor:
    """A sum: each row is the query's when that of one operand is, and two of them in reverse order are mixed."""
    for tag in made.tags & NOT_THE_QUERYS:
        if any(tag not in t.tags for t in operands if isinstance(t, Tensor) and has_rows(t)):
            made.tags = made.tags - {tag} | {BLENDED} if tag == FLIPPED else without(made.tags, tag)
    return masked(it, made, site, *operands)


def mixed(made: Tensor) -> Tensor:
    """Attention: every row of the result has seen what it needs, but in reverse order it is not where it belongs."""
    blends = frozenset({BLENDED}) if FLIPPED in made.tags else NO_FLAGS
    made.tags = (without(made.tags, OTHER) if OTHER in made.tags else made.tags) - {FLIPPED, MASK} | blends
    return made


def multiplied(made: Tensor, a: Tensor, b: Tensor, site: Site | None) -> Tensor:
    """A product of matrices: with a weight the rows stay, with anything else they are mixed.

    A sum over as many rows as the query has leaves out those of a cache, unless its factors are cut out of more: then
    it is a part of an attention that has the cache in another part.
    """
    flexible = b.shape is None or any(isinstance(d, dims.Poly) and d.flexible for d in b.shape)
    weight = b.shape is not None and len(b.shape) <= 2 and not flexible
    if weight:
        return made
    if made.shape is not None and len(made.shape) > 1 and is_query(made.shape[-2]) and not is_query(made.shape[-1]):
        made.tags = made.tags | {SCORES}
    alone = a.shape is not None and is_query(a.shape[-1])
    return blended(mixed(made), site, alone and not is_part(a))


def is_part(weights: Tensor) -> bool:
    """Whether weights are cut out of those for more keys: another part of the attention sees the others."""
    whole = weights.of.shape[-1] if weights.of is not None and weights.of.shape else 0
    return isinstance(whole, dims.Poly) and whole.flexible and not is_query(whole)


def reads_written(it: Interpreter, t: Tensor) -> bool:
    """Whether a tensor comes out of a storage that this forward has written: a cache with new rows in it."""
    if it.events is None:
        return False
    names = {w.storage.tag for w in it.events.writes}
    return not names.isdisjoint(t.tags) or (t.base is not None and t.base.tag in names)


def leaked(it: Interpreter, made: Tensor, weights: Tensor, values: Tensor, site: Site | None) -> Tensor:
    """Mark `made`: weights that no mask has met give each row of the query the rows behind it, too.

    Where rows lie across, either factor may be the weights; and such a product may be scores itself.
    """
    pairs = ((weights, values), (values, weights))
    if any(scores_across(made, a, b) and reads_written(it, a) for a, b in pairs):
        made.tags = made.tags | {ACROSS}
    across = any(WEIGHTS_ACROSS in w.tags and reads_written(it, v) for w, v in pairs)
    return blended(made, site, across or (WEIGHTS in weights.tags and reads_written(it, values)))


def convolved(made: Tensor, x: Tensor, kernel: list[Dim], site: Site | None) -> Tensor:
    """A convolution or pooling of the last axes of `x`: it mixes rows that lie along one where its kernel is wider."""
    axes = (x.shape or ())[-len(kernel) :]
    wide = any(k != 1 and dims.depends_on_query(d) for d, k in zip(axes, kernel, strict=False))
    return blended(made, site, wide)


def pooled(it: Interpreter, made: Tensor, t: Tensor, axes: Iterable[int], site: Site | None) -> Tensor:
    """A number for all rows of the query: it mixes them in whatever it goes into."""
    axes = set(axes)
    lying = {n for n, d in enumerate(t.shape or ()) if positions.is_rows(d)}
    return blended(made, site, (bool(lying) and lying <= axes) or along_cache(it, t, axes))


def normed(it: Interpreter, made: Tensor, t: Tensor, axes: Iterable[int], site: Site | None) -> Tensor:
    """`t`, scaled by what lies along some of its axes."""
    shape, axes = t.shape or (), set(axes)
    return blended(
        made, site, any(positions.is_rows(shape[n]) for n in axes if n < len(shape)) or along_cache(it, t, axes)
    )


def along_cache(it: Interpreter, t: Tensor, axes: Collection[int]) -> bool:
    """Whether the rows of a cache lie along one of the axes: what is computed of all of them, any row is in.

    Scores have the rows of the query beside these.
    """
    shape = t.shape or ()
    if (not t.tags and t.base is None) or it.events is None or not (it.events.writes or it.events.unwritten):
        return False  # no state
    if any(map(is_query, shape)) or not positions.is_cache(t):
        return False
    rooms = it.events.rooms(t)
    lying = [shape[n] for n in axes if n < len(shape)]
    whole = len(lying) == len(shape) > 2 or any(d in rooms and shape.count(d) == 1 for d in lying)
    return whole or any(isinstance(d, dims.Poly) and d.flexible for d in lying)


def widened(t: Tensor, made: Tensor) -> Tensor:
    """`t`, expanded: a mask of rows stays one, and one row that goes into all of them makes them alike."""
    if _is_row_mask(t):
        made.tags = made.tags | {WIDE, MASK}
    return alike(made) if t.shape is not None and not any(map(is_query, t.shape)) else made


def along(
    it: Interpreter,
    made: Tensor,
    t: Tensor,
    axis: Value | None,
    default: int | None = None,
    blends: Site | None = None,
    site: Site | None = None,
    cached: bool = True,
) -> Tensor:
    """An operation at `site` that moves what lies along `axis`, or mixes it at `blends`; without an axis, all of it.

    `cached`: it mixes the rows of a cache, too, that lie along it.
    """
    axes = named_axes(t, axis, default)
    lengths = [t.shape[n] for n in axes] if t.shape is not None else []
    mixes = blends is not None and (any(map(positions.is_rows, lengths)) or (cached and along_cache(it, t, axes)))
    made = blended(made, blends, mixes)
    return other(it, made, any(map(dims.depends_on_query, lengths)), blends or site)


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


def joined(made: Tensor, lengths: list[Dim], site: Site | None) -> Tensor:
    """Parts of these lengths, one behind another along the rows: some of the query's come behind others that went in.

    A cache before them has a length of its own; a fixed number of rows in front moves them all by as many.
    """
    made.tags = made.tags - {ALIKE}
    front = isinstance(lengths[0], int) and lengths[0] > 0
    if front and any(map(is_query, lengths[1:])):
        made.tags = made.tags | {BEHIND}
    if len(lengths) > 1 and all(map(is_query, lengths)):
        made.tags = made.tags | {f"{BEHIND_EACH}1"}
    shifted = front and any(map(_cut_short, lengths[1:]))
    return blended(made, site, shifted)


def cut_behind(made: Tensor, key: Sequence[Value], site: Site | None) -> Tensor:
    """`made` is cut by `key` out of rows that stand behind others; from the first of these on, all are shifted."""
    if not any(map(is_query, made.shape or ())):
        return made
    starts = [p.items[0] for p in key if isinstance(p, Seq) and p.kind == "slice"]
    made.tags = made.tags - {BEHIND}
    return blended(made, site, bool(starts) and all(isinstance(b, Const) and b.value in (None, 0) for b in starts))


def _cut_short(d: Dim) -> bool:
    """Whether a length is that of the query less a fixed number of rows."""
    return isinstance(d, dims.Poly) and len(d.terms) == 2 and any(c < 0 and not m for m, c in d.terms) and d.query


def flipped(made: Tensor, t: Tensor, axis: Value | None, site: Site | None) -> Tensor:
    """A flip; there and back is where it was. Numbers do not count, unless they are the tokens or go in."""
    goes_in = INPUT in made.tags or not made.dtype.startswith(_NUMBERS)
    if goes_in and any(is_query(t.shape[n]) for n in named_axes(t, axis) if t.shape is not None):
        made.tags = without(made.tags, FLIPPED) if FLIPPED in made.tags else made.tags | At.of(FLIPPED, site)
    return made


def crosses(t: Tensor, index: Tensor) -> bool:
    """Whether each row of a tensor is indexed by as many numbers as the query has tokens: those behind it, too."""
    if t.shape is None or index.shape is None or len(t.shape) != len(index.shape) or TOKENS not in index.tags:
        return False
    rows = [n for n, d in enumerate(index.shape) if is_query(d)]
    return len(rows) == 2 and sum(map(is_query, t.shape)) == 1


def turned(made: Tensor, site: Site | None) -> Tensor:
    """Mark `made`, which was taken by numbers of rows in another order than theirs."""
    if INPUT in made.tags or not made.dtype.startswith(_NUMBERS):
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
        made.tags = made.tags - {t.base.tag}
    return made
