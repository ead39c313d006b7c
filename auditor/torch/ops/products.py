"""Products: of matrices, linear layers, einsum, attention, embeddings."""

from __future__ import annotations

from auditor import dims
from auditor.interpreter import Interpreter
from auditor.memo import by_identity
from auditor.places import Site
from auditor.torch import placing, positions, recurrences, row_mixing, rows, shapes, shared_positions
from auditor.torch.mask_sides import shows_behind
from auditor.torch.masks import hides_nothing
from auditor.torch.ops.op import first
from auditor.torch.tensors import as_tensor, result, tagged, unknown_tensor
from auditor.values import NO_FLAGS, NONE, Args, Seq, Tensor, Value, altered, is_given, merge_places, text_of
from auditor.values.tags import (
    BLENDED,
    FLIPPED,
    INPUT,
    LEARNED,
    MOVED,
    SCORES,
    SHARED,
    STANDING,
    TOKENS,
    ZERO,
    At,
    kept,
)


def matmul(it: Interpreter, args: Args, site: Site | None) -> Value:
    a, b = as_tensor(args.get(0, "input") or NONE), as_tensor(args.get(1, "other", "mat2") or NONE)
    if a is None or b is None or a.shape is None or b.shape is None or not a.shape or not b.shape:
        return unknown_tensor("a product of tensors that are not known", site, *(t for t in (a, b) if t is not None))
    made = rows.spread_out(result(shapes.matmul(a.shape, b.shape), a, b), a, b)
    made = row_mixing.multiplied(made, a, b, site)
    if ZERO in a.tags or ZERO in b.tags:
        made.tags = made.tags - {INPUT}
    if SHARED in made.tags:
        shared_positions.meets(it.events, made, (a, b), site)
    if it.events is not None and site is not None:
        for t in (a, b) if it.events.unnamed and not is_parameter(b) else ():
            it.events.looks_at(t)
        if not row_mixing.is_part(a):
            it.events.multiplies(b, site)
        if not isinstance(b.shape[-2:][0], int) and not row_mixing.is_part(a):
            it.events.sees(b, site, masked=True)
        elif MOVED in b.tags and isinstance(b.shape[-1], dims.Poly):
            keys = altered(b, shape=(*b.shape[:-2], *reversed(b.shape[-2:])))
            it.events.sees(keys, site, masked=True)
    made = recurrences.product(it, recurrences.computed(it, row_mixing.leaked(it, made, a, b, site)), (a, b))
    return placing.spread(a, b, made) if a.pick is not None else made


def linear(it: Interpreter, args: Args, site: Site | None) -> Value:
    x, weight = as_tensor(args.get(0, "input") or NONE), as_tensor(args.get(1, "weight") or NONE)
    if x is not None and x.shape and weight is not None and weight.shape is None and is_parameter(weight):
        made = tagged(result((*x.shape[:-1], _width(weight)), x), LEARNED)
        made.places = merge_places(made.places, weight.places)
        return recurrences.computed(it, made)
    if x is None or weight is None or x.shape is None or weight.shape is None or len(weight.shape) != 2:
        return unknown_tensor(
            "a linear layer of tensors that are not known", site, *(t for t in (x, weight) if t is not None)
        )
    made = result((*x.shape[:-1], weight.shape[0]), x, weight)
    made.tags = made.tags - (STANDING if ZERO not in weight.tags else STANDING | {INPUT})
    made = rows.spread_out(made, weight)
    return recurrences.computed(it, rows.blended(made, site, dims.is_query(x.shape[-1])))


def is_parameter(t: Tensor) -> bool:
    return t.base is not None and t.base.role == "parameter"


@by_identity
def _width(weight: Tensor) -> dims.Dim:
    """How many outputs a layer has whose weight nobody knows: one number for one weight."""
    return dims.symbol(dims.Atom("weight.shape[0]"))


def einsum(it: Interpreter, args: Args, site: Site | None) -> Value:
    equation = text_of(args.pos[0])
    given = args.pos[1:]
    if len(given) == 1 and isinstance(given[0], Seq):
        given = given[0].items
    tensors = [as_tensor(g) for g in given]
    known = [t.shape for t in tensors if t is not None and t.shape is not None]
    shape = shapes.einsum(equation, known) if equation and len(known) == len(given) else None
    if shape is None:
        return unknown_tensor("an einsum of tensors that are not known", site, *(t for t in tensors if t is not None))
    made = result(shape, *(t for t in tensors if t is not None))
    if SHARED in made.tags:
        shared_positions.meets(it.events, made, (t for t in tensors if t is not None), site)
    summed = shapes.summed_over(equation or "", known)
    made = row_mixing.mixed(made) if sum(len(s) > 2 for s in known) > 1 else made
    if len(known) == 2 and len(shape) > 2 and dims.is_query(shape[-2]) and not dims.is_query(shape[-1]):
        made = tagged(made, SCORES)
    made = recurrences.computed(it, rows.blended(made, site, any(map(dims.is_query, summed))))
    made = recurrences.product(it, made, [t for t in tensors if t is not None])
    for t in tensors if it.events is not None else ():
        if t is not None and it.events is not None:
            it.events.looks_at(t)
    return (
        row_mixing.leaked(it, made, tensors[0], tensors[-1], site)
        if tensors[0] is not None and tensors[-1] is not None
        else made
    )


def attention(it: Interpreter, args: Args, site: Site | None) -> Value:
    """`scaled_dot_product_attention`, whose `is_causal` counts from where the keys begin, not from where they end."""
    return attended(it, args, False, site)


def attended(it: Interpreter, args: Args, causal: bool, site: Site | None) -> Value:
    """Scaled dot-product attention: query rows, value width. `causal`: each row of the query sees none behind it."""
    q, v = as_tensor(args.get(0, "query") or NONE), as_tensor(args.get(2, "value") or NONE)
    if q is None or q.shape is None:
        return unknown_tensor("attention with a query that is not known", site, *(t for t in (q,) if t is not None))
    width = v.shape[-1] if v is not None and v.shape else q.shape[-1]
    k = as_tensor(args.get(1, "key") or NONE)
    made = result((*q.shape[:-1], width), q, *(t for t in (v, k) if t is not None))
    seen_shape = next((t.shape for t in (v, k) if t is not None and t.shape and len(t.shape) > 1), None)
    if it.events is not None and seen_shape is not None and site is not None:
        it.events.attended(site, dims.is_query(seen_shape[-2]))
    mask = args.get(3, "attn_mask")
    if it.events is not None and site is not None and isinstance(mask, Tensor) and k is not None and k.shape:
        it.events.meets((*q.shape[:-1], *k.shape[-2:-1]), mask.shape or (), site)
    unmasked = v is not None and _sees_all(mask) and row_mixing.reads_written(it, v)
    for seen in (k, v) if it.events is not None and site is not None else ():
        if seen is not None:
            it.events.looks_at(seen)
            it.events.sees(seen, site, masked=not (causal and unmasked), complete=True)
    made = rows.blended(row_mixing.mixed(made), site, unmasked and not causal)
    if not isinstance(mask, Tensor):
        return made
    made.tags = made.tags | kept(mask.tags, BLENDED) | (At.of(BLENDED, site) if FLIPPED in mask.tags else NO_FLAGS)
    if it.events is not None and site is not None and v is not None and shows_behind(mask):
        it.events.shows_behind(v, site)
    made = shared_positions.biased(it.events, made, mask, site)
    at = mask.places[-1] if unmasked and mask.places else None
    return rows.blended(made, at, at is not None and not causal)


def _sees_all(mask: Value | None) -> bool:
    """Whether attention has no mask, or one that is the same for all rows of the query."""
    if not is_given(mask):
        return True
    return isinstance(mask, Tensor) and hides_nothing(mask)


def embedding(it: Interpreter, args: Args, site: Site | None) -> Value:
    ids, weight = as_tensor(args.get(0, "input") or NONE), as_tensor(args.get(1, "weight") or NONE)
    if ids is None or weight is None or ids.shape is None or weight.shape is None:
        made = unknown_tensor(
            "an embedding of tensors that are not known", site, *(t for t in (ids, weight) if t is not None)
        )
        made.dtype = "float32"
        return made
    made = result((*ids.shape, *weight.shape[1:]), ids, weight, dtype=weight.dtype or "float32")
    made = positions.looked_up(made)
    made.tags = made.tags - {TOKENS}
    return made


def outer(it: Interpreter, args: Args, site: Site | None) -> Value:
    a, b = first(args), as_tensor(args.get(1, "vec2") or NONE)
    if a.shape is None or b is None or b.shape is None:
        return unknown_tensor("an outer product of tensors that are not known", site, a)
    made = result((*a.shape, *b.shape), a, b, dtype=b.dtype if a.dtype.startswith("int") else "")
    if SHARED in made.tags:
        shared_positions.meets(it.events, made, (a, b), site)
    return shared_positions.scaled("*", made, a, b, site)
