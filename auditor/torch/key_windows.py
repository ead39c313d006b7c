"""A window of keys that all rows of a call share: it ends with the call, where one row at a time has another.

seen = (keys <= rows[:, None]) & (keys >= end - 128)        # the first row has fewer keys than by itself
seen = (keys <= rows[:, None]) & (keys > rows[:, None] - 128)   # right: each row has its own window
"""

from __future__ import annotations

from collections.abc import Iterator

from auditor import dims
from auditor.dims import Dim, Poly
from auditor.interpreter import Interpreter
from auditor.places import Site, here
from auditor.torch import progressions
from auditor.values import Tensor, Value, merge_places
from auditor.values.tags import BLENDED, At

_OWN = {"<": 0, ">=": 0, "<=": 1, ">": 1}


def compared(it: Interpreter, op: str, a: Value, b: Value, made: Tensor, site: Site | None) -> Tensor:
    """`made` is `a op b`: marked where keys less than so many before the end of a call are told from the others."""
    if op not in _OWN:
        return made
    for keys, number in ((a, b), (b, a)):
        at, bound = progressions.numbers(keys), progressions.one(number)
        if at is None or at.step != 1 or not isinstance(bound, Poly) or not isinstance(keys, Tensor):
            continue
        own = _OWN[op] if keys is a else 1 - _OWN[op]
        first = dims.add(bound, own)
        if _has_keys(keys) and any(_is_before(first, place) for place in _ends(it, first)):
            made.tags = made.tags | At.of(BLENDED, site)
            made.places = merge_places(made.places, here(site))
    return made


def _has_keys(t: Tensor) -> bool:
    long = [d for d in t.shape or () if d != 1]
    return len(long) == 1 and not dims.is_query(long[0])


def _ends(it: Interpreter, bound: Dim) -> Iterator[Dim]:
    """Where a call may begin or end, by what goes into a number; how much a cache holds is the same in every call."""
    held = {a for shape in (it.events.held if it.events is not None else ()) for d in shape for a in dims.lengths_in(d)}
    atoms = bound.atoms if isinstance(bound, Poly) else frozenset()
    rows = next((dims.symbol(a) for a in atoms if a.query and a.made is None), 0)
    for atom in atoms:
        if atom.query or atom.counted or atom.made is not None or atom in held:
            continue
        whole = dims.symbol(atom)
        if atom.flexible:
            yield whole
            yield dims.sub(whole, rows)
        elif rows != 0:
            yield dims.add(whole, rows)


def _is_before(bound: Dim, place: Dim) -> bool:
    apart = dims.sub(place, bound)
    return not (isinstance(apart, Poly) and dims.differs(apart)) and dims.less(0, apart) is True
