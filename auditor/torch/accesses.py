"""Where in a state something is written or seen, and when: in which round of a loop over layers, by which branches.

A loop of unknown length counts its layers with a symbol. Which slot a layer takes is computed for a few of them, with
all numbers that nobody knows taken to be the number of layers, which they may be.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from auditor import dims
from auditor.dims import Atom, Dim, Poly
from auditor.operators import truth
from auditor.places import Site
from auditor.torch import regions
from auditor.values import Num, Region, Storage, Tensor, Unknown, Value, as_dim

if TYPE_CHECKING:
    from auditor.interpreter import Interpreter, Way

LAYERS = (6, 12, 24)
"""How many layers there are tried to be."""
MOST = 4 * max(LAYERS)
"""More rounds of a loop are not tried."""


@dataclass(frozen=True, slots=True)
class Access:
    """A write to a state, or what attention sees of one.

    `place` are the numbers of the region along the axes that are alike in every call, `rows` the extents of the
    others. `rounds` are those of loops of unknown length that it is in, `ways` the branches since the outermost of them
    began. So many `writes` to states, and `reads` of those that were written, have gone before.
    """

    storage: Storage
    site: Site
    region: Region
    place: tuple[Dim, ...]
    rows: tuple[tuple[Dim, Dim], ...]
    rounds: tuple[int, ...]
    ways: tuple[Way, ...]
    reads: int
    writes: int

    @property
    def counters(self) -> frozenset[Atom]:
        """The symbols of rounds that go into the place, or into the conditions on the way there."""
        return frozenset(a for a in leaves((*self.place, *_asked(self))) if a.counted)

    def at(self, values: Mapping[Atom, int]) -> tuple[int, ...] | None:
        """The place, where symbols have these values; None where it cannot be computed."""
        found = [dims.at(d, values) for d in self.place]
        known = tuple(d for d in found if d is not None)
        return known if len(known) == len(found) else None

    def is_reached(self, values: Mapping[Atom, int]) -> bool | None:
        """Whether the branches lead here, where symbols have these values; None where nobody can compute it."""
        for way in self.ways:
            answer = _answer(way.test, values)
            if answer is None:
                return None
            if answer is not (way.number == 0):
                return False
        return True


def access(it: Interpreter, t: Tensor, key: Value | None, site: Site, reads: int, writes: int) -> Access | None:
    """The access to a part of a state; None where nobody can tell which part it is."""
    region = regions.keyed(t, key)
    if region is None or t.base is None:
        return None
    rounds = it.rounds.open
    ways = tuple(it.ways[rounds[0][1] if rounds else 0 :])
    place: list[Dim] = [region.member] if region.member is not None else []
    rows: list[tuple[Dim, Dim]] = []
    for extent in region.extents:
        if is_open(extent):
            rows.append(extent)
        else:
            place += extent
    if any(a.read for a in leaves(place)):
        return None
    return Access(t.base, site, region, tuple(place), tuple(rows), tuple(n for n, _ in rounds), ways, reads, writes)


def is_open(extent: tuple[Dim, Dim]) -> bool:
    """Whether places differ from call to call."""
    return not all(type(d) is int for d in extent) and any(a.flexible for a in leaves(extent))


def leaves(numbers: Iterable[Dim]) -> Iterator[Atom]:
    """The symbols that numbers are computed from."""
    for d in numbers:
        for atom in d.atoms if type(d) is Poly else ():
            if atom.made is None:
                yield atom
            else:
                yield from leaves(atom.made[1:])


def unknown(found: Iterable[Access], counters: Iterable[Atom]) -> frozenset[Atom]:
    """The symbols that go into accesses, the conditions on them, and the lengths of the loops that count them."""
    numbers = [c.below for c in counters if c.below is not None]
    for a in found:
        numbers += [*a.place, *_asked(a)]
    return frozenset(leaves(numbers)).difference(counters)


def rounds_of(counter: Atom, setting: Mapping[Atom, int], layers: int) -> range | None:
    """The rounds that a symbol counts; None for more than are tried."""
    count = dims.at(counter.below, setting) if counter.below is not None else layers
    return range(count) if count is not None and count <= MOST else None


def _answer(test: Value | None, values: Mapping[Atom, int]) -> bool | None:
    if isinstance(test, Unknown) and test.test is not None:
        op, subject, constant = test.test
        if op == "not":
            answer = _answer(subject, values)
            return None if answer is None else not answer
        d = as_dim(subject)
        found = dims.at(d, values) if d is not None else None
        return None if found is None else (found == constant) is (op == "==")
    if isinstance(test, Num):
        found = dims.at(test.dim, values)
        return None if found is None else found != 0
    return truth(test) if test is not None else None


def _asked(a: Access) -> Iterator[Dim]:
    """The numbers that the conditions of an access are about."""
    for way in a.ways:
        test = way.test
        while isinstance(test, Unknown) and test.test is not None:
            test = test.test[1]
        d = as_dim(test) if isinstance(test, (Num, Unknown)) else None
        if d is not None:
            yield d
