"""Keys that rows of a call see by what the call is like: how many rows it has, where it ends, where a row is in it.

    seen = (keys <= rows[:, None]) & (keys >= end - 128)          # the first row has fewer keys than by itself
    seen = (keys <= rows[:, None]) & (keys > rows[:, None] - q)   # as many as there are rows
    seen = (keys <= rows[:, None]) & (keys >= torch.arange(q)[:, None])
    seen = (keys <= rows[:, None]) & (keys > rows[:, None] - 128) # right: each row has its own window

One row at a time has others. That keys are those before the call, or up to its end, is right with a mask beside it.
"""

from __future__ import annotations

from collections.abc import Iterator

from auditor import dims
from auditor.dims import Dim, Poly
from auditor.interpreter import Interpreter
from auditor.places import Site, here
from auditor.torch import progressions
from auditor.torch.key_comparisons import rows_and_keys
from auditor.torch.shapes import Shape
from auditor.values import Num, Pick, Tensor, Value, merge_places
from auditor.values.tags import BLENDED, FIRST_KEYS, FLOORED, WRAPS, At

_OWN = {"<": 0, ">=": 0, "<=": 1, ">": 1}


def compared(it: Interpreter, op: str, a: Value, b: Value, made: Tensor, site: Site | None) -> Tensor:
    """`made` is `a op b`: marked where it says something else of a key and a row in another call."""
    hangs = _by_a_call(it, op, a, b)
    if hangs is None:
        hangs = FIRST_KEYS in made.tags or _by_a_part(a, b) or _by_a_part(b, a)
    elif not hangs:
        made.tags = made.tags - {FIRST_KEYS}
    if hangs:
        made.tags = made.tags | At.of(BLENDED, site)
        made.places = merge_places(made.places, here(site))
    return made


def _by_a_call(it: Interpreter, op: str, a: Value, b: Value) -> bool | None:
    """Whether the numbers of keys are compared with such of rows, or with one, that are other ones in another call.

    None where these are not known.
    """
    p, q = progressions.numbers(a), progressions.numbers(b)
    found = rows_and_keys(a, b) if p is not None and q is not None else None
    if found is not None and p is not None and q is not None:
        keys_first, rows, keys = found
        apart = dims.sub(q.begin, p.begin) if keys_first else dims.sub(p.begin, q.begin)
        return _differs(dims.sub(apart, dims.sub(keys, rows)), keys) if p.step == q.step == 1 else None
    for keys_, number in ((a, b), (b, a)):
        at, bound = progressions.numbers(keys_), progressions.one(number)
        if bound is None or not isinstance(keys_, Tensor):
            continue
        if keys_.pick is not None and keys_.pick.what == "distance" and keys_.shape is not None:
            return _differs_far(keys_.pick, bound, keys_.shape)
        length = _keys(keys_)
        if at is not None and at.step == 1 and op in _OWN and isinstance(bound, Poly) and length is not None:
            own = _OWN[op] if keys_ is a else 1 - _OWN[op]
            return _hides_some(it, dims.add(bound, own), length)
    return None


def _differs_far(distance: Pick, bound: Dim, shape: Shape) -> bool:
    """Whether so far from a row is elsewhere in another call."""
    rows, keys = shape[-2:]
    if dims.is_query(keys) and not dims.is_query(rows):
        rows, keys = keys, rows
    apart = dims.sub(distance.begin, bound)
    return _differs(dims.sub(apart if distance.step == 1 else dims.neg(apart), dims.sub(keys, rows)), keys)


def _hides_some(it: Interpreter, first: Dim, length: Dim) -> bool:
    """Whether keys up to a number are told from those behind it, and it is none that the call's mask may have, too."""
    for place, begins in _ends(it, first):
        behind = dims.sub(first, place)
        if isinstance(behind, int) and (0 <= behind <= 1 if begins else behind >= 0):
            return False
        if not (isinstance(behind, Poly) and dims.differs(behind)) and dims.less(behind, 0) is True:
            return True
    return _differs(first, length)


def _differs(d: Dim, length: Dim) -> bool:
    """Whether a number depends on how many rows a call has, or on how many keys there are by then."""
    if not isinstance(d, Poly) or not all(a.query or a.flexible for a in d.atoms):
        return False  # a number that goes in, or a setting
    of = dims.lengths_in(d)
    return d.query or (bool(of) and of <= dims.lengths_in(length))


def _by_a_part(t: Value, number: Value) -> bool:
    """Whether numbers of keys that were rounded, or begin again, are compared with a length."""
    if not isinstance(t, Tensor) or not isinstance(number, Num) or t.tags.isdisjoint((FLOORED, WRAPS)):
        return False
    length = _keys(t)
    return length is not None and _differs(number.dim, length)


def _keys(t: Tensor) -> Dim | None:
    """How many keys there are along the only long axis of a tensor."""
    long = [d for d in t.shape or () if d != 1]
    return long[0] if len(long) == 1 and not dims.is_query(long[0]) else None


def _ends(it: Interpreter, bound: Dim) -> Iterator[tuple[Dim, bool]]:
    """Where a call may begin (True) or end, by what goes into a number; a cache's length is the same in every call."""
    held = {a for shape in (it.events.held if it.events is not None else ()) for d in shape for a in dims.lengths_in(d)}
    atoms = bound.atoms if isinstance(bound, Poly) else frozenset()
    rows = next((dims.symbol(a) for a in atoms if a.query and a.made is None), 0)
    for atom in atoms:
        if atom.query or atom.counted or atom.made is not None or atom in held:
            continue
        whole = dims.symbol(atom)
        if atom.flexible and rows != 0:
            yield dims.sub(whole, rows), True
        elif atom.flexible:
            yield whole, False
        elif rows != 0:
            yield dims.add(whole, rows), False
