"""Rows of a state that are written twice in a call: by two layers, or by one that has read them in between.

cache[0, :, :, start:end] = k                            # by every layer
cache[layer // 2, ...] = k                               # by two
cache[layer, ...] = k;  cache[layer - 1, ...] = k

While one token goes in at a time, a layer finds what another has left of the rows before; in one forward over more
rows it finds its own. Where only one of the layers that share rows writes them, all find the same.

A loop of unknown length counts its layers with a symbol: the slots of a few layers are computed from it, together with
the conditions of the branches that lead to the write. Where a condition cannot be computed, nothing is said.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from auditor import dims
from auditor.dims import Atom, Dim, Poly
from auditor.operators import truth
from auditor.values import Num, Region, Storage, Unknown, Value, as_dim

if TYPE_CHECKING:
    from auditor.places import Site
    from auditor.interpreter import Interpreter, Way
    from auditor.torch.state_writes import Write


@dataclass(frozen=True, slots=True)
class Moment:
    """When something is written: in which rounds of loops of unknown length, by which branches since the outermost of
    them, and how often attention had read from a state that was written before.
    """

    rounds: tuple[int, ...] = ()
    ways: tuple[Way, ...] = ()
    reads: int = 0


@dataclass(frozen=True, slots=True)
class Read:
    """What attention has seen of a state, when so many writes had gone before."""

    storage: Storage
    site: Site
    region: Region
    moment: Moment
    after: int


def moment(it: Interpreter, reads: int) -> Moment:
    """Now."""
    rounds = it.rounds.open
    return Moment(tuple(n for n, _ in rounds), tuple(it.ways[rounds[0][1] if rounds else 0 :]), reads)


def twice(writes: Sequence[Write], reading: frozenset[int]) -> Write | None:
    """A write, of all to one state, to rows that another layer or statement writes as well.

    `reading` are the rounds of loops in which attention has read from a state that was written.
    """
    alike: dict[Any, list[Write]] = defaultdict(list)
    for w in writes:
        if w.region is not None and not (w.whole and _is_all(w.region)):
            alike[tuple(_closed(w.region)) if _is_known(w.region) else None].append(w)
    pairs = ((a, b) for found in alike.values() for n, b in enumerate(found) for a in found[: n + 1])
    return next((b for a, b in pairs if _meet(a, b, reading)), None)


def _is_known(region: Region) -> bool:
    """Whether nothing but numbers say which layer is meant."""
    return all(type(d) is int for d in _closed(region))


def early(reads: Sequence[Read], writes: Sequence[Write]) -> Read | None:
    """A read of rows that the same call writes later: by another layer, say, whose slot is read.

    Rows that go in one by one find there what earlier calls have left.
    """
    first: dict[Any, int] = {}
    for n, w in enumerate(writes):
        if w.region is not None and w.moment is not None and not w.moment.ways:
            first.setdefault((id(w.storage), *_closed(w.region)), n)
    for read in reads:
        if first.get((id(read.storage), *_closed(read.region)), read.after) < read.after:
            continue
        mine = [(n, w) for n, w in enumerate(writes) if w.storage is read.storage and _is_seen(w, read)]
        if mine and _is_early(read, mine):
            return read
    return None


def _is_seen(w: Write, read: Read) -> bool:
    """Whether a write is to the rows that end what a read sees, in whichever layer."""
    if w.region is None or w.moment is None or w.moment.rounds != read.moment.rounds or w.region.numbered:
        return False
    rows = [n for n, extent in enumerate(w.region.extents) if _is_open(extent)]
    if len(rows) != 1:
        return False
    (begin, length), (start, seen) = w.region.extents[rows[0]], read.region.extents[rows[0]]
    return dims.sub(dims.add(start, seen), begin) == length


def _is_early(read: Read, writes: Sequence[tuple[int, Write]]) -> bool:
    """Whether some layer reads what a later one writes and none has written before, however many layers there are."""
    counters = _counted(read.region)
    if len(counters) > 1 or any(_counted(w.region) != counters for _, w in writes if w.region is not None):
        return False
    numbers = [*_closed(read.region), *_asked(read.moment)]
    for _, w in writes:
        assert w.region is not None and w.moment is not None
        numbers += [*_closed(w.region), *_asked(w.moment)]
    bounds = [c.below for c in counters if c.below is not None]
    unknown = {x for d in (*bounds, *numbers) for x in _leaves(d)} - counters
    return all(_finds_nothing(dict.fromkeys(unknown, n), n, read, writes, counters) for n in _LAYERS)


def _finds_nothing(
    setting: Mapping[Atom, int],
    layers: int,
    read: Read,
    writes: Sequence[tuple[int, Write]],
    counters: frozenset[Atom],
) -> bool:
    """Whether some round reads a place that only later ones write, where the numbers that nobody knows are these."""
    counter = next(iter(counters), None)
    length = dims.at(counter.below, setting) if counter is not None and counter.below is not None else layers
    if length is None or length > 4 * max(_LAYERS):
        return False
    written: dict[tuple[int, ...], list[tuple[int, int]]] = defaultdict(list)
    wanted: list[tuple[tuple[int, ...], tuple[int, int]]] = []
    for number in range(length if counter is not None else 1):
        values = {**setting, **({counter: number} if counter is not None else {})}
        for at, region, when in ((read.after, read.region, read.moment), *((n, w.region, w.moment) for n, w in writes)):
            assert region is not None and when is not None
            taken = _is_taken(when, values)
            place = tuple(dims.at(d, values) for d in _closed(region))
            if taken is None or None in place:
                return False
            known = tuple(d for d in place if d is not None)
            if taken and region is read.region:
                wanted.append((known, (number, at)))
            elif taken:
                written[known].append((number, at))
    return any(written.get(place) and min(written[place]) >= when for place, when in wanted)


def _is_all(region: Region) -> bool:
    """Whether no index of an axis is chosen: the whole state is written, of which a part may be new."""
    return region.member is None and all(begin == 0 and length != 1 for begin, length in region.extents)


def _meet(a: Write, b: Write, reading: frozenset[int]) -> bool:
    """Whether rows that `a` has written are written again by `b`, in the same round of a loop or in another."""
    assert a.region is not None and b.region is not None
    if a.region.numbered != b.region.numbered or a.moment is None or b.moment is None:
        return False
    if a is b or (a.site == b.site and a.region == b.region and a.moment.rounds != b.moment.rounds):
        return is_of_one_layer(b) if a is not b and not _counted(a.region) else _collide(a, b, reading)
    if a.moment.rounds == b.moment.rounds and (a.region == b.region or _is_one_place(a, b)):
        return a.moment.reads < b.moment.reads and not _apart(a.moment, b.moment)
    return _collide(a, b, reading)


def is_of_one_layer(w: Write) -> bool:
    """Whether a write is to a layer at a fixed number; a state that each layer has for itself is not meant."""
    if w.region is None or w.storage.shape is None:
        return False
    if isinstance(w.region.member, int):
        return True
    if w.storage.shape[0] == 1:
        return False
    begin, length = w.region.extents[0]
    return isinstance(begin, int) and length == 1


def _apart(a: Moment, b: Moment) -> bool:
    """Whether two writes are those of two branches, of which one is taken, or may be."""
    ways = {w.fork: w.number for w in b.ways}
    if any(ways.get(w.fork, w.number) != w.number for w in a.ways):
        return True
    return bool(a.ways and b.ways) and not (ways.keys() <= {w.fork for w in a.ways}) and any(
        w.fork not in ways for w in a.ways
    )


_LAYERS = (6, 12, 24)
"""How many layers there are tried to be; every number that nobody knows is tried as the same, which it may be."""
_MOST = 2
"""In how many loops, one inside another, rounds are tried."""


def _collide(a: Write, b: Write, reading: frozenset[int]) -> bool:
    """Whether two rounds write the same rows, however many layers there are."""
    assert a.region is not None and b.region is not None and a.moment is not None and b.moment is not None
    counters = _counted(a.region)
    if not counters or counters != _counted(b.region) or len(counters) > _MOST:
        return False
    if not all(m.rounds and m.rounds[-1] in reading for m in (a.moment, b.moment)) or _differ(a.region, b.region):
        return False
    bounds = [c.below for c in counters if c.below is not None]
    numbers = [*_closed(a.region), *_closed(b.region), *_asked(a.moment), *_asked(b.moment)]
    unknown = {x for d in (*bounds, *numbers) for x in _leaves(d)} - counters
    if any(x.flexible for x in unknown):
        return False
    return all(_meets_in(dict.fromkeys(unknown, n), n, a, b, counters) for n in _LAYERS)


def _is_one_place(a: Write, b: Write) -> bool:
    """Whether two writes go to the same place however many layers there are, none of which is counted by a symbol."""
    assert a.region is not None and b.region is not None
    numbers = [*_closed(a.region), *_closed(b.region)]
    unknown = {x for d in numbers for x in _leaves(d)}
    if not unknown or any(x.counted for x in unknown) or _differ(a.region, b.region):
        return False
    tried = [[dims.at(d, dict.fromkeys(unknown, n)) for d in numbers] for n in _LAYERS]
    half = len(numbers) // 2
    return all(None not in found and found[:half] == found[half:] for found in tried)


def _differ(a: Region, b: Region) -> bool:
    """Whether along an axis that differs from call to call other places are written."""
    return any(x != y for x, y in zip(a.extents, b.extents, strict=True) if _is_open(x) or _is_open(y))


def _is_open(extent: tuple[Dim, Dim]) -> bool:
    return any(a.flexible for d in extent for a in _leaves(d))


def _closed(region: Region) -> list[Dim]:
    """The places of a region, along the axes that are as they are in every call."""
    member = [region.member] if region.member is not None else []
    return [*member, *(d for extent in region.extents if not _is_open(extent) for d in extent)]


def _meets_in(setting: Mapping[Atom, int], layers: int, a: Write, b: Write, counters: frozenset[Atom]) -> bool:
    """Whether two rounds write the same places, where the numbers that nobody knows are these."""
    order = sorted(counters, key=lambda c: c.number)
    lengths = [dims.at(c.below, setting) if c.below is not None else layers for c in order]
    if any(n is None or n > 4 * max(_LAYERS) for n in lengths):
        return False
    places: dict[tuple[int, ...], set[tuple[int, ...]]] = defaultdict(set)
    for w in (a, b):
        assert w.region is not None and w.moment is not None
        for numbers in itertools.product(*(range(n or 0) for n in lengths)):
            values = {**setting, **dict(zip(order, numbers, strict=True))}
            taken = _is_taken(w.moment, values)
            found = [dims.at(d, values) for d in _closed(w.region)]
            if taken is None or any(d is None for d in found):
                return False
            if taken:
                places[tuple(d for d in found if d is not None)].add(numbers)
    return any(len(rounds) > 1 for rounds in places.values())


def _is_taken(when: Moment, values: Mapping[Atom, int]) -> bool | None:
    """Whether the branches lead there; None where a condition cannot be computed."""
    for way in when.ways:
        answer = _answer(way.test, values)
        if answer is None:
            return None
        if answer is not (way.number == 0):
            return False
    return True


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


def _asked(when: Moment) -> Iterator[Dim]:
    """The numbers that the conditions on the way there are about."""
    for way in when.ways:
        test = way.test
        while isinstance(test, Unknown) and test.test is not None:
            test = test.test[1]
        d = as_dim(test) if isinstance(test, (Num, Unknown)) else None
        if d is not None:
            yield d


def _counted(region: Region) -> frozenset[Atom]:
    """The symbols of rounds that go into a region."""
    numbers = (region.member or 0, *(d for extent in region.extents for d in extent))
    return frozenset(a for d in numbers for a in _leaves(d) if a.counted)


def _leaves(d: Dim) -> Iterator[Atom]:
    """The symbols that a number is computed from."""
    for atom in d.atoms if isinstance(d, Poly) else ():
        if atom.made is None:
            yield atom
        else:
            yield from _leaves(atom.made[1])
            yield from _leaves(atom.made[2])
