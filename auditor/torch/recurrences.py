"""States that are computed anew from what they held: recurrences, whatever their names say.

    state = state * torch.sigmoid(gate(x)) + k * v                # a decay: every number is another one
    hidden = torch.tanh(inner(x) + outer(hidden))                 # a network of the old values
    state = state + k * (v - (k * state).sum(-2))                 # a sum with products of what the model computes

A cache keeps the rows that it has, as they are, and takes new ones beside them; a draft that is rejected is taken back
by its position. Of a recurrence nothing is left to go back to. What is computed from a state through a layer, an
activation or a factor that is no mask of zeros and ones, and has its shape, is marked as such, until it meets the old
values again.
"""

from __future__ import annotations

from collections.abc import Iterable

from auditor import dims
from auditor.interpreter import Interpreter
from auditor.torch.shapes import Shape
from auditor.values import Const, Storage, Tensor, Value
from auditor.values.tags import (
    ANEW,
    CHOSEN,
    FLOORED,
    INPUT,
    JUDGED,
    LEARNED,
    MASK,
    PARTLY,
    PRODUCT,
    RENEWED,
    WIDE,
)

_MASKS = frozenset({MASK, WIDE, JUDGED, CHOSEN, FLOORED})


def computed(it: Interpreter, made: Tensor) -> Tensor:
    """Mark `made`, of which each number is another one than those of the states that it is computed from."""
    if it.events is not None and made.shape and it.events.unwritten:
        shapes = it.events.unwritten
        for tag in shapes.keys() & made.tags:
            if _is_all(made.shape, shapes[tag]):
                made.tags = made.tags | {RENEWED, ANEW + tag}
    return made


def scaled(it: Interpreter, made: Tensor, factors: Iterable[Value]) -> Tensor:
    """A product: with a factor that the model learns or computes, or with a number, no value stays."""
    factors = [*factors]
    return product(it, computed(it, made) if any(map(_changes, factors)) else made, factors)


def product(it: Interpreter, made: Tensor, factors: Iterable[Value]) -> Tensor:
    """Mark `made` when it is as large as a state and no factor is a mask, a position or a tensor that goes in.

    A cache that takes rows by arithmetic takes them times such a factor.
    """
    if it.events is None or not it.events.wholes:
        return made
    tensors = [f for f in factors if isinstance(f, Tensor)]
    if any(map(_may_mask, tensors)):
        made.tags = made.tags | {PARTLY}
    elif made.shape in it.events.wholes and len(tensors) > 1 and all(map(_is_computed, tensors)):
        made.tags = made.tags | {PRODUCT}
    return made


def chosen(made: Tensor, condition: Value | None) -> Tensor:
    """Mark `made`, of which a condition has chosen parts."""
    made.tags = made.tags | {PARTLY} if isinstance(condition, Tensor) else made.tags
    return made


def _may_mask(factor: Tensor) -> bool:
    goes_in = INPUT in factor.tags or (factor.base is not None and factor.base.role == "input")
    told = factor.pick is not None and len(set(factor.pick.sides)) != 1  # what is the same everywhere is no mask
    return told or not factor.tags.isdisjoint(_MASKS) or (goes_in and not _is_computed(factor))


def _is_computed(factor: Tensor) -> bool:
    said = factor.handed_on
    return LEARNED in said and PARTLY not in said and not factor.dtype.startswith(("int", "uint", "bool"))


def summed(it: Interpreter, made: Tensor, a: Value, b: Value) -> Tensor:
    """Mark a sum, or a difference, of a state and such a product: it leaves no number as it was."""
    if it.events is None or made.shape not in it.events.wholes:
        return made
    for old, term in ((a, b), (b, a)):
        if isinstance(old, Tensor) and isinstance(term, Tensor) and PRODUCT in term.tags:
            for tag, shape in it.events.unwritten.items():
                if (tag in old.tags or _is_view(old.base, tag)) and _is_all(made.shape or (), shape):
                    made.tags = made.tags | {RENEWED, ANEW + tag}
    return made


def carried(tags: frozenset[str], tensors: Iterable[Tensor]) -> frozenset[str]:
    """The tags of what is put together from `tensors`, of which some are such: not where others have the old values."""
    for tag in tags:
        if tag.startswith(ANEW):
            old = tag.removeprefix(ANEW)
            if any(tag not in t.tags and (old in t.tags or _is_view(t.base, old)) for t in tensors):
                tags = tags - {tag}
    return tags if any(tag.startswith(ANEW) for tag in tags) else tags - {RENEWED}


def renews(state: Storage, value: Tensor) -> bool:
    """Whether `value` is computed anew from all that `state` held."""
    return ANEW + state.tag in value.tags


def _is_view(base: Storage | None, tag: str) -> bool:
    return base is not None and base.watched and base.tag == tag


def _is_all(shape: Shape, state: Shape) -> bool:
    """Whether a shape is that of the state (of which each row of a query makes another one), or of one layer of it."""
    if len(shape) == len(state):
        return all(a == b or (b == 1 and dims.is_query(a)) for a, b in zip(shape, state, strict=True))
    return len(shape) > 1 and shape == state[len(state) - len(shape) :]


def _changes(factor: Value) -> bool:
    """Whether a factor is no mask: it comes out of weights, or is a number."""
    if isinstance(factor, Const):
        return isinstance(factor.value, float) and factor.value not in (-1.0, 0.0, 1.0)
    if not isinstance(factor, Tensor) or factor.dtype.startswith(("int", "uint", "bool")):
        return False
    if factor.pick is not None and not factor.pick.sides:
        return False
    return LEARNED in factor.handed_on and factor.tags.isdisjoint(_MASKS)
