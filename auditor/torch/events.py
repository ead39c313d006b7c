"""What happens while a module's `forward` is evaluated, beside the shapes: state writes, kernels, baked lengths."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from auditor import dims
from auditor.dims import Dim
from auditor.places import Site
from auditor.roles import role_by_name
from auditor.torch import recurrences, shapes, shared_positions, state_copies, tracing, written_rows
from auditor.torch.accesses import Access, access
from auditor.torch.keys import is_length
from auditor.torch.positions import is_cache
from auditor.torch.rows import root
from auditor.torch.shapes import Shape
from auditor.torch.state_writes import Write, assigns_a_layer, unread_value, write_at, writes_all
from auditor.torch.tracing import Example
from auditor.values import Pick, Storage, Tensor, Unknown, Value, serial
from auditor.values.tags import BLENDED, CAST, COPY, FLIPPED, FROM, LEARNED, MIXED, MOVED

if TYPE_CHECKING:
    from auditor.interpreter import Interpreter


@dataclass(slots=True)
class Events:
    """`example` is set when `torch.jit.trace` records the operations.

    A Python number that is made of a dimension or of a tensor is then a constant, and a branch on one is taken once.

    `layers`: the layers of a model whose `forward` is not read have run. `alone` is where attention saw the rows of the
    query only; None once it has seen others. `stale` is where it saw others of a cache than were written, and why, and
    `unread` where something was written to one that nobody could read.
    `hidden_cache` says which cache a model was handed that nobody can read.

    `symbolic`: an input has the symbolic query length. What was made before `started` was there before `forward` ran,
    and so was what was made in one of the intervals `outside`: statements of a module that were evaluated when a name
    of it was looked up. `last_rows` are the unknown values that are one row of another, with where it was taken,
    `row_axes` those whose rows lie along a known axis. `shared` is where single numbers met all rows of the query, and
    `placing` the tags of those that say where rows lie (see `torch/positions.py`). `held` are the shapes of what
    may be a state, `unwritten` those by their tags that `forward` has not written yet, `renewed` those by name that it
    has computed anew from what they held, `copied` those by their tags of which it has written a copy. `seen` says by
    tag where attention has seen a cache that was not written yet, and how many rows of it; `complete` are the tags of
    those that it has seen no other rows beside; `joined` up to where rows of such a one were put before those of the
    query, and where. `unnamed` are the tags of what may be a state by a name that says nothing, `looked_at` those of
    them that attention has taken keys or values from. `put_in` are the tags of states of which a copy has taken rows,
    `wholes` the shapes of states and of their layers.

    `looked` is what attention has seen of which state in the `run`, `reading` the rounds of loops of unknown length in
    which that state was written before.
    """

    run: Interpreter | None = None
    example: Example | None = None
    writes: list[Write] = field(default_factory=list)
    row_kernels: list[tuple[Site, str]] = field(default_factory=list)
    baked: list[tuple[Site, str]] = field(default_factory=list)
    experts: list[Site] = field(default_factory=list)
    layers: bool = False
    alone: Site | None = None
    stale: tuple[Site, str] | None = None
    unread: tuple[Site, str] | None = None
    hidden_cache: Unknown | None = None
    _cached: bool = False
    symbolic: bool = False
    started: int = field(default_factory=serial)
    outside: list[tuple[int, int]] = field(default_factory=list)
    last_rows: dict[int, tuple[Value, Site]] = field(default_factory=dict)
    row_axes: dict[int, tuple[Value, int]] = field(default_factory=dict)
    shared: list[tuple[Site, Tensor]] = field(default_factory=list)
    placing: set[str] = field(default_factory=set)
    held: list[Shape] = field(default_factory=list)
    unwritten: dict[str, Shape] = field(default_factory=dict)
    renewed: dict[str, Site] = field(default_factory=dict)
    seen: dict[str, tuple[Site, Dim]] = field(default_factory=dict)
    copied: dict[str, Site] = field(default_factory=dict)
    complete: set[str] = field(default_factory=set)
    unnamed: frozenset[str] = frozenset()
    looked_at: set[str] = field(default_factory=set)
    put_in: set[str] = field(default_factory=set)
    wholes: set[Shape | None] = field(default_factory=set)
    halves: dict[int, tuple[Tensor, Pick, Write]] = field(default_factory=dict)
    joined: list[tuple[Storage, Dim, Site]] = field(default_factory=list)
    reading: set[int] = field(default_factory=set)
    looked: list[Access] = field(default_factory=list)
    _reads: int = 0
    _written: set[str] = field(default_factory=set)
    _kept: dict[int, Storage] = field(default_factory=dict)

    @property
    def inside(self) -> bool:
        """Whether the first layer is reached: what is computed from now on comes after embeddings."""
        return self.layers or bool(self.writes)

    def bakes(self, value: Value, site: Site | None, what: str) -> Value | None:
        """The constant that `what` makes of `value`; None where nothing is traced or any call has the same value."""
        if self.example is None or not tracing.differs(value):
            return None
        if site is not None:
            self.baked.append((site, f"{what} makes a constant of {tracing.told(value)} when the model is traced"))
        return tracing.constant(value, site, what)

    def meets(self, a: Shape, b: Shape, site: Site) -> None:
        """As many rows as the query are combined with a fixed number of rows: that works for this number only."""
        for x, y in zip(reversed(a), reversed(b), strict=False):
            for rows, fixed in ((x, y), (y, x)):
                if dims.is_flexible(rows) and isinstance(fixed, int) and fixed > 1:
                    self.baked.append((site, f"{shapes.text(a)} meets {shapes.text(b)}"))
                    return

    def compare(self, op: str, a: Value, b: Value) -> Value | None:
        """A comparison of dimensions as the trace has decided it; None where it can be decided for every call."""
        return tracing.compared(self.example, op, a, b) if self.example is not None else None

    def least(self, values: list[Value], name: str) -> Value | None:
        """The `min` or `max` of dimensions as the trace has picked it; None where any call picks the same."""
        return tracing.least(self.example, values, name) if self.example is not None else None

    def written(
        self, target: Tensor, site: Site, key: Value | None, value: Value | None = None, unclear: str = ""
    ) -> None:
        """`target` (a view of a storage) is written in place, at `key` when it is an item assignment."""
        if CAST in target.tags:
            unclear = unclear or "is cast to another type before it is written, so that a copy may be what is written"
        base = target.base or self._storage(target)
        if base is None:
            made = root(target)
            known = {tag for tag in made.tags if tag.startswith(FROM)}
            self.copied.update({tag: site for tag in known if COPY in made.tags or self._is_as(made, tag)})
            return
        if target.base is None:
            self.writes.append(Write(base, site, wraps=False, whole=True))
            return
        if self.puts_back(target, site, key, value, unclear):
            return
        if key is not None:
            shared_positions.places(self, key)
        whole = writes_all(target, key)
        if not whole or (value is not None and value is not target):
            self.settles(target, value, site, whole or assigns_a_layer(target, key))
        blended = self._blended(target.base, value, not whole) if self.symbolic else ""
        slices = written_rows.aligned(target, key, value) if self.symbolic and not whole else []
        unread = unread_value(value) if self.symbolic else None
        if unread is not None and self.unread is None and role_by_name(target.base.name).is_kv:
            self.unread = site, f"`{target.base.name}` takes what nobody could read: {unread.reason}"
        few = written_rows.too_few(slices)
        if few:
            self.baked.append((site, few))
        write = write_at(
            target,
            site,
            key,
            value,
            whole=whole,
            unclear=unclear,
            blended=blended,
            symbolic=self.symbolic,
            slices=slices,
            access=self._access(target, key, site),
        )
        before = self.seen.get(target.base.tag)
        ends = write.span is not None and before is not None and dims.is_query(dims.sub(before[1], write.span.begin))
        if before is not None and (ends or (base.tag in self.complete and write.capacity is not None)):
            self.stale = self.stale or (before[0], _BEFORE)
        for storage, end, joined in self.joined if write.span is not None else ():
            if storage is base and write.span is not None and write.span.begins_before(end):
                self.stale = self.stale or (joined, _TWICE)
        self.writes.append(write)
        self._written.add(base.tag)

    def _is_as(self, t: Tensor, tag: str) -> bool:
        """Whether a tensor has the shape of a state, or of one layer of it, that was not written yet."""
        held, shape = self.unwritten.get(tag), t.shape
        return held is not None and shape is not None and len(shape) > 1 and shape in (held, held[1:])

    def puts_back(self, target: Tensor, site: Site, key: Value | None, value: Value | None, unclear: str = "") -> bool:
        """Whether a copy of a part of a state is put back in its place; what it has taken is then written there."""
        copy = state_copies.put_back(target, key, value)
        if copy is None:
            return False
        for put in copy.put:
            self.written(put.view, put.site or site, put.key, put.value, unclear or put.unclear)
        return True

    def settles(self, target: Tensor, value: Value | None, site: Site, whole: bool) -> None:
        """What is computed from a storage from now on, that has been written, says nothing of what it held before."""
        assert target.base is not None
        if whole and isinstance(value, Tensor) and recurrences.renews(target.base, value):
            self.renewed.setdefault(target.base.name, site)
        self.unwritten.pop(target.base.tag, None)

    def _blended(self, storage: Storage, value: Value | None, part: bool) -> str:
        """Why rows that are written are not those of the query alone; `part`: no others are written."""
        if not isinstance(value, Tensor):
            return ""
        if BLENDED in value.tags:
            return "takes rows of the query that were mixed among themselves"
        if MIXED in value.tags:
            return "takes one row of the query in the place of several"
        if part and FLIPPED in value.tags:
            return "takes rows of the query in reverse"
        if part and self.from_held(storage, value):
            return "takes rows that are computed from those that it held before"
        return ""

    def from_held(self, storage: Storage | None, value: Tensor) -> bool:
        """Whether a value is computed from what a storage held before `forward` has written to it.

        What attention has read of a storage is in all that comes after it, so that only the first write tells; the very
        first of all does of any cache.
        """
        if storage is None:
            return False
        if not self.writes and not self.put_in and any(map(_from_cache, value.tags)):
            return True
        mine = (storage.tag in value.tags or value.base is storage) and storage.tag not in self.put_in
        return mine and all(w.storage.name != storage.name for w in self.writes)

    def attended(self, site: Site, alone: bool) -> None:
        """Attention over as many rows as the query has (`alone`), or over those of a cache."""
        self._cached = self._cached or not alone
        self.alone = None if self._cached else self.alone or site

    def looks_at(self, held: Tensor) -> None:
        """Note which states without a telling name a factor of a product is taken from, unchanged by weights."""
        if self.unnamed and held.base is not None:
            self.looked_at |= self.unnamed & {held.base.tag}
        elif self.unnamed and LEARNED not in held.tags:
            self.looked_at |= self.unnamed & held.tags

    def sees(self, values: Tensor, site: Site, masked: bool = False, complete: bool = False) -> None:
        """Note when attention has keys or values of a cache that do not end with the rows that were written.

        A mask may hide what is behind these, and cannot show what is not there. `complete`: no others come beside them.
        """
        self.looks(values, site)
        if self.stale is not None or values.shape is None or len(values.shape) < 2:
            return
        length, base = values.shape[-2], values.base
        mine = [w for w in self.writes if w.storage is base or (base is None and w.storage.tag in values.tags)]
        if not masked and mine:
            own = {a for w in self.writes for d in w.storage.shape or () for a in dims.lengths_in(d)}
            if dims.lengths_in(length) <= own:
                self.stale = site, _AS_MANY
                return
        spans = [w.span for w in mine if w.span is not None]
        missing = next(filter(None, (s.missing_of(length) for s in spans)), "")
        wholes = [w.storage.shape or () for w in mine if w.span is not None]
        missing = missing or next(filter(None, (written_rows.window(length, s) for s in wholes)), "")
        if spans and not (missing or masked or dims.is_query(length)) and not any(s.ends_at(length) for s in spans):
            missing = _OTHERS
        if mine and (missing or MOVED in values.tags):
            self.stale = site, missing or _ELSEWHERE
        if not mine and LEARNED not in values.tags:  # else new rows have been put behind those of the cache
            held = {base.tag} if base is not None else {t for t in values.tags if _from_cache(t)}
            self.seen.update(dict.fromkeys(held - self.seen.keys(), (site, length)))
            self.complete |= held if complete else set()

    def shows_behind(self, values: Tensor, site: Site) -> None:
        """Note that a mask shows each row of the query the keys behind it, of a cache that has them by now."""
        if self.stale is None and next(self.writes_to(values), None) is not None:
            self.stale = site, _BEHIND

    def rooms(self, t: Tensor) -> set[Dim]:
        """How many rows the caches have room for that a tensor comes out of, and that this forward has written."""
        return {w.capacity for w in self.writes_to(t) if w.capacity is not None}

    def writes_to(self, t: Tensor) -> Iterator[Write]:
        """What this forward has written to the storages that a tensor is a part of, or comes out of."""
        return (w for w in self.writes if w.storage is t.base or w.storage.tag in t.tags)

    def _access(self, t: Tensor, key: Value | None, site: Site) -> Access | None:
        if self.run is None or not self.symbolic:
            return None
        return access(self.run, t, key, site, self._reads, len(self.writes))

    def looks(self, held: Tensor, site: Site) -> None:
        """Note which rows of a cache something is computed from, as attention does."""
        if self.run is None or not self.symbolic:
            return
        found = self._access(held, None, site)
        if found is not None:
            self.looked.append(found)
        written = self._written
        if (held.base is not None and held.base.tag in written) or not written.isdisjoint(held.tags):
            self._reads += 1
            self.reading.update(n for n, _ in self.run.rounds.open)

    def multiplies(self, held: Tensor, site: Site) -> None:
        """Note when a product with keys or values of a cache has a fixed part of its rows: all lie along no axis."""
        self.looks(held, site)
        shape = held.shape or ()
        fixed = len(shape) > 2 and not any(map(dims.is_flexible, shape))
        if self.stale is not None or not fixed or not is_cache(held):
            return
        rooms = self.rooms(held)
        if rooms and not any(isinstance(dims.exact_div(d, r), (int, dims.Poly)) for d in shape for r in rooms):
            self.stale = site, "attention sees a fixed part of the rows of a cache"

    def reads(self, held: Tensor, start: Value | None, rows: Dim, site: Site) -> None:
        """Note when a fixed number of rows of a cache is read, from one on that moves with the call."""
        fixed = isinstance(rows, int) and rows > 1 and start is not None and is_length(start)
        if fixed and self.stale is None and held.base is not None and is_cache(held):
            self.stale = site, written_rows.window(rows, ())

    def kept(self, name: str, site: Site) -> None:
        """Something that was there before `forward` ran is another tensor afterwards."""
        self.writes.append(Write(Storage(name, "attribute"), site, wraps=False, whole=True))

    def _storage(self, target: Tensor) -> Storage | None:
        """The memory of a tensor that is no input, buffer or parameter, when it was there before `forward` ran."""
        whole = root(target)
        born = whole.born
        if born > self.started and not any(low < born < high for low, high in self.outside):
            return None
        line = f" at line {whole.places[0].line}" if whole.places else ""
        return self._kept.setdefault(born, Storage(f"(tensor made{line})", "attribute"))


_AS_MANY = "attention sees as many rows of a cache in every call: some that nothing or a draft was written to"
_BEFORE = "attention sees rows of a cache before those of the query are written to them"
_TWICE = "rows of a cache are joined with those of the query, some of which are written to the same places"
_OTHERS = "attention without a mask sees other rows of a cache than those up to the last of the query"
_BEHIND = "a mask shows each row of the query the keys behind it"
_ELSEWHERE = "attention sees the rows of a cache in other places than they were written to"


def _from_cache(tag: str) -> bool:
    return tag.startswith(FROM) and role_by_name(tag.removeprefix(FROM)).is_kv
