"""Operations that mix the rows of a tensor among themselves: products, convolutions, statistics along an axis."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from auditor import dims
from auditor.dims import Dim, is_query
from auditor.interpreter import Interpreter
from auditor.places import Site
from auditor.torch import positions, rows
from auditor.torch.masks import scores_across
from auditor.values import NO_FLAGS, Tensor, Value
from auditor.values.tags import ACROSS, BLENDED, FLIPPED, MASK, OTHER, SCORES, WEIGHTS, WEIGHTS_ACROSS, without


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
    flexible = b.shape is None or any(map(dims.is_flexible, b.shape))
    weight = b.shape is not None and len(b.shape) <= 2 and not flexible
    if weight:
        return made
    if made.shape is not None and len(made.shape) > 1 and is_query(made.shape[-2]) and not is_query(made.shape[-1]):
        made.tags = made.tags | {SCORES}
    alone = a.shape is not None and is_query(a.shape[-1])
    return rows.blended(mixed(made), site, alone and not is_part(a))


def is_part(weights: Tensor) -> bool:
    """Whether weights are cut out of those for more keys: another part of the attention sees the others."""
    whole = weights.of.shape[-1] if weights.of is not None and weights.of.shape else 0
    return dims.is_flexible(whole) and not is_query(whole)


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
    return rows.blended(made, site, across or (WEIGHTS in weights.tags and reads_written(it, values)))


def convolved(made: Tensor, x: Tensor, kernel: list[Dim], site: Site | None) -> Tensor:
    """A convolution or pooling of the last axes of `x`: it mixes rows that lie along one where its kernel is wider."""
    axes = (x.shape or ())[-len(kernel) :]
    wide = any(k != 1 and dims.depends_on_query(d) for d, k in zip(axes, kernel, strict=False))
    return rows.blended(made, site, wide)


def pooled(it: Interpreter, made: Tensor, t: Tensor, axes: Iterable[int], site: Site | None) -> Tensor:
    """A number for all rows of the query: it mixes them in whatever it goes into."""
    axes = set(axes)
    lying = {n for n, d in enumerate(t.shape or ()) if positions.is_rows(d)}
    return rows.blended(made, site, (bool(lying) and lying <= axes) or along_cache(it, t, axes))


def normed(it: Interpreter, made: Tensor, t: Tensor, axes: Iterable[int], site: Site | None) -> Tensor:
    """`t`, scaled by what lies along some of its axes."""
    shape, axes = t.shape or (), set(axes)
    return rows.blended(
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
    return whole or any(map(dims.is_flexible, lying))


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
    axes = rows.named_axes(t, axis, default)
    lengths = [t.shape[n] for n in axes] if t.shape is not None else []
    mixes = blends is not None and (any(map(positions.is_rows, lengths)) or (cached and along_cache(it, t, axes)))
    made = rows.blended(made, blends, mixes)
    return rows.other(it, made, any(map(dims.depends_on_query, lengths)), blends or site)
