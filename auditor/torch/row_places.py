"""Whether numbers that go up from row to row say where the rows of a call stand (see `progressions.py`).

Rows stand where the cache is written, so that any multiple of that place and its rows will do, with a number that is
the same for all rows and calls (padding in front, say). Numbers that look like it by themselves are not held against
the writes: a length less the rows of the query, or a number that goes in.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import TYPE_CHECKING

from auditor import dims
from auditor.dims import Atom, Dim, Poly
from auditor.values import Tensor
from auditor.values.tags import COUNTED, Begins

if TYPE_CHECKING:
    from auditor.torch.events import Events


def is_usual(begin: Dim, step: int | None, rows: Dim) -> bool:
    """Whether numbers are those of rows behind others: a length less these, or a number that goes in, says where."""
    if not step or not isinstance(begin, Poly):
        return False
    return any(_is_at(begin, step, place) for place in _places(begin, rows))


def is_behind(d: Dim, rows: Dim) -> bool:
    """Whether a number is a length less the rows of the query."""
    lengths = [dims.symbol(a) for a in d.atoms if a.flexible and not a.query] if isinstance(d, Poly) else []
    return any(_is_the_same(dims.sub(d, dims.sub(length, rows))) for length in lengths)


def _places(begin: Poly, rows: Dim) -> Iterator[Dim]:
    """Where a call may begin, by what goes into a number."""
    for atom in begin.atoms:
        if (atom.query and atom.made is None) or atom.counted:
            continue
        whole = dims.symbol(atom)
        yield dims.sub(whole, rows)
        if atom.made is not None or not atom.flexible:
            yield whole


def _is_the_same(d: Dim, held: Collection[Atom] = ()) -> bool:
    """Whether a number is the same in all calls, as far as no length goes into it but that of a cache (`held`)."""
    return not isinstance(d, Poly) or not any((a.query or a.flexible) and a not in held for a in d.atoms)


def are_right(tags: Iterable[str], events: Events) -> bool | None:
    """Whether all numbers of rows in these tags say where a call begins; None when there are none."""
    begins = [t for t in tags if isinstance(t, Begins)]
    return all(_is_right(b, events) for b in begins) if begins else None


def _is_right(b: Begins, events: Events) -> bool:
    if not b.step:
        return False
    held = {atom for shape in events.held for d in shape for atom in dims.lengths_in(d)}
    places = {w.span.begin for w in events.writes if w.span is not None}
    if any(_is_at(b.begin, b.step, place, held) for place in places):
        return True
    if any(map(dims.is_flexible, places)) or not isinstance(b.begin, Poly):
        return False
    behind = (dims.symbol(atom) for atom in b.begin.atoms if atom in held)
    return any(_is_at(b.begin, b.step, place) for place in behind)


def _is_at(begin: Dim, step: int, place: Dim, held: Collection[Atom] = ()) -> bool:
    """Whether numbers begin at as many steps as a place says, but for a number that is the same in all calls."""
    rest = dims.sub(begin, dims.mul(step, place))
    said = place.atoms if isinstance(place, Poly) else frozenset()
    return _is_the_same(rest, held) and (not isinstance(rest, Poly) or rest.atoms.isdisjoint(said))


def from_a_fixed_row(t: Tensor) -> bool:
    """Whether rows are counted from the same number in every call."""
    begins = [tag.begin for tag in t.tags if isinstance(tag, Begins)]
    return COUNTED in t.tags and all(not _but_rows(b) for b in begins)


def hide_nothing(t: Tensor, keys: Iterable[Dim]) -> bool:
    """Whether numbers of rows, held against those of all keys, hide none of them or the same ones in every call.

    They are counted from the same number, from behind the last key, or down.
    """
    begins = [tag for tag in t.tags if isinstance(tag, Begins)]
    behind = any(dims.less(b.begin, key) is False for b in begins for key in keys)
    return from_a_fixed_row(t) or behind or any(b.step is not None and b.step < 0 for b in begins)


def _but_rows(d: Dim) -> bool:
    """Whether more than the rows of the query goes into a number that is none."""
    return isinstance(d, Poly) and any(not a.query or a.made is not None for a in d.atoms)


def told(tags: Iterable[str]) -> str:
    """What is wrong with numbers of rows."""
    b = min((t for t in tags if isinstance(t, Begins)), default=None)
    if b is None or (b.step and not _but_rows(b.begin)):
        return "rows of the query have the same positions in every call, whatever the cache holds"
    if b.step == 0:
        return "one position goes into all rows of the query, and each has its own"
    if b.step is None:
        return "rows of the query have the positions of others, or some have one position"
    up = "" if b.step == 1 else f" in steps of {b.step}"
    return f"rows of the query have positions from `{b.begin}` on{up}, which is not where they stand in the cache"
