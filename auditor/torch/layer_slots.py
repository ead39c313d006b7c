"""Rows of a state that layers share: written by two of them, or seen by one before another writes them.

cache[0, :, :, start:end] = k                            # by every layer
cache[layer // 2, ...] = k                               # by two
cache[layer, ...] = k;  cache[layer - 1, ...] = k

While one token goes in at a time, a layer finds what another has left of the rows before; in one forward over more
rows it finds its own. Where only one of the layers that share rows writes them, before the others, all find the same.
Where a condition on a write cannot be computed (see `accesses.py`), nothing is said.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from auditor import dims
from auditor.dims import Atom
from auditor.torch.accesses import LAYERS, Access, is_open, leaves, rounds_of, unknown

if TYPE_CHECKING:
    from auditor.torch.state_writes import Write

_MOST = 2
"""In how many loops, one inside another, rounds are tried."""


def twice(writes: Sequence[Write], reading: frozenset[int]) -> Write | None:
    """A write, of these to states of one name, to rows that another layer or statement writes as well.

    `reading` are the rounds of loops in which attention has seen a state that was written.
    """
    alike: dict[Any, list[tuple[Write, Access]]] = defaultdict(list)
    for w in writes:
        if w.access is not None and not (w.whole and _is_all(w.access)):
            place = w.access.place
            key = tuple(place) if all(type(d) is int for d in place) else None
            alike[id(w.storage), key].append((w, w.access))
    for found in alike.values():
        for n, (write, b) in enumerate(found):
            if any(_meet(a, b, reading) for _, a in found[: n + 1]):
                return write
    return None


def _is_all(a: Access) -> bool:
    """Whether the whole of a state is written, of which a part may be new."""
    wholes = tuple((0, length) for length in a.storage.shape or ())
    return a.region.member is None and a.region.extents == wholes


def _meet(a: Access, b: Access, reading: frozenset[int]) -> bool:
    """Whether rows that `a` has written are written again by `b`, in the same round of a loop or in another."""
    if a.region.numbered != b.region.numbered or a.rows != b.rows:
        return False
    if a is not b and a.site == b.site and a.region == b.region and a.rounds != b.rounds and not b.counters:
        return is_of_one_layer(b) and not b.ways  # under a condition it may be the layer of one round
    if a is not b and a.rounds == b.rounds and (a.region == b.region or _is_one_place(a, b)):
        return a.reads < b.reads and not _apart(a, b)
    return _collide(a, b, reading)


def is_of_one_layer(a: Access) -> bool:
    """Whether an access is to a layer at a fixed number; a state that each layer has for itself is not meant."""
    if isinstance(a.region.member, int):
        return True
    if a.storage.each:
        return False
    begin, length = a.region.extents[0]
    return isinstance(begin, int) and length == 1 and (a.storage.shape or (1,))[0] != 1


def _apart(a: Access, b: Access) -> bool:
    """Whether two accesses are those of two branches, of which one is taken, or may be."""
    first, second = ({way.fork: way.number for way in one.ways} for one in (a, b))
    if any(second.get(fork, number) != number for fork, number in first.items()):
        return True
    return bool(first.keys() - second.keys() and second.keys() - first.keys())


def _is_one_place(a: Access, b: Access) -> bool:
    """Whether two accesses are to one place however many layers there are, none of which a symbol counts."""
    symbols = frozenset(leaves((*a.place, *b.place)))
    if not symbols or any(x.counted for x in symbols):
        return False
    tried = [[one.at(dict.fromkeys(symbols, n)) for one in (a, b)] for n in LAYERS]
    return all(x is not None and x == y for x, y in tried)


def _collide(a: Access, b: Access, reading: frozenset[int]) -> bool:
    """Whether two rounds write the same rows, however many layers there are."""
    counters = a.counters
    if not counters or counters != b.counters or len(counters) > _MOST:
        return False
    if a.storage.each and a.region.member is None:
        return False
    if not any(x.counted for x in leaves(a.place)):
        return False  # a number that an element of a list holds, which stands for those of all layers
    if not all(one.rounds and one.rounds[-1] in reading for one in (a, b)):
        return False
    return all(_two_rounds_in(n, a, b, counters) for n in LAYERS)


def _two_rounds_in(layers: int, a: Access, b: Access, counters: frozenset[Atom]) -> bool:
    """Whether two rounds write the same place, with so many layers."""
    setting = dict.fromkeys(unknown((a, b), counters), layers)
    order = sorted(counters, key=lambda c: c.number)
    ranges = [r for c in order if (r := rounds_of(c, setting, layers)) is not None]
    if len(ranges) < len(order):
        return False
    places: dict[tuple[int, ...], set[tuple[int, ...]]] = defaultdict(set)
    for one, numbers in itertools.product((a, b), itertools.product(*ranges)):
        values = {**setting, **dict(zip(order, numbers, strict=True))}
        reached, place = one.is_reached(values), one.at(values)
        if reached is None or place is None:
            return False
        if reached:
            places[place].add(numbers)
    return any(len(rounds) > 1 for rounds in places.values())


def early(seen: Sequence[Access], writes: Sequence[Write]) -> Access | None:
    """What attention sees of rows that the same call writes later: in the slot of another layer, say.

    Rows that go in one by one find there what earlier calls have left.
    """
    known = [w.access for w in writes if w.access is not None]
    first: dict[Any, int] = {}
    for w in known:
        if not w.ways:
            first.setdefault((id(w.storage), *w.place), w.writes)
    for read in seen:
        if first.get((id(read.storage), *read.place), read.writes) < read.writes:
            continue
        mine = [w for w in known if w.storage is read.storage and _is_seen(w, read)]
        if mine and _is_early(read, mine):
            return read
    return None


def _is_seen(w: Access, read: Access) -> bool:
    """Whether a write is to the rows that end what a read sees, in whichever layer."""
    if w.rounds != read.rounds or w.region.numbered or len(w.rows) != 1:
        return False
    ((begin, length),) = w.rows
    start, seen = read.region.extents[next(n for n, extent in enumerate(w.region.extents) if is_open(extent))]
    return dims.sub(dims.add(start, seen), begin) == length


def _is_early(read: Access, writes: Sequence[Access]) -> bool:
    """Whether some layer sees what a later one writes and none has written before, however many layers there are."""
    counters = read.counters
    if len(counters) > 1 or any(w.counters != counters for w in writes):
        return False
    return all(_finds_nothing(n, read, writes, next(iter(counters), None)) for n in LAYERS)


def _finds_nothing(layers: int, read: Access, writes: Sequence[Access], counter: Atom | None) -> bool:
    """Whether some round sees a place that only later ones write, with so many layers."""
    counters = [counter] if counter is not None else []
    setting = dict.fromkeys(unknown((read, *writes), counters), layers)
    rounds = rounds_of(counter, setting, layers) if counter is not None else range(1)
    written: dict[tuple[int, ...], list[tuple[int, int]]] = defaultdict(list)
    wanted: list[tuple[tuple[int, ...], tuple[int, int]]] = []
    for number, one in itertools.product(rounds or (), (read, *writes)):
        values = {**setting, **dict.fromkeys(counters, number)}
        reached, place = one.is_reached(values), one.at(values)
        if reached is None or place is None:
            return False
        if reached and one is read:
            wanted.append((place, (number, one.writes)))
        elif reached:
            written[place].append((number, one.writes))
    return any(place in written and min(written[place]) >= when for place, when in wanted)
