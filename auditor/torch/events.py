"""What happens while a module's `forward` is evaluated, beside the shapes: state writes, kernels, baked lengths."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from auditor import dims, operators
from auditor.joins import union
from auditor.places import Site, here
from auditor.roles import role_by_name
from auditor.torch import shared_positions, written_rows
from auditor.torch.rows import has_rows, is_mask, root
from auditor.torch.written_rows import is_length
from auditor.values import (
    Const,
    Num,
    Pick,
    Seq,
    Storage,
    Tensor,
    Union,
    Unknown,
    Value,
    as_dim,
    is_none,
    merge_places,
    serial,
)
from auditor.values.tags import BLENDED, COPY, FLIPPED, FLOORED, INPUT, MIXED, MOVED, ONE_PLACE, PICKED, WRAPS, sites
from rules.facts import Role

Example = Mapping[dims.Atom, int]
"""What the flexible dimensions of the inputs were when the model was traced, as far as it is known."""


@dataclass(frozen=True, slots=True)
class Write:
    """An in-place write. `wraps`: a remainder went into the position; `own`: the value comes from the storage.

    `unclear` says why nobody can tell which rows hold what after the write, `blended` why a row that is written
    would be another one had the rows of the query gone in one by one, `narrow` why it is not written once for each row
    of a longer query. `spread`: what is narrow goes into as many rows as the query has. `made`: where the rows that are
    written became what they are, `begin` the first of them.
    """

    storage: Storage
    site: Site
    wraps: bool
    whole: bool
    own: bool = False
    unclear: str = ""
    blended: str = ""
    narrow: str = ""
    spread: bool = False
    made: tuple[Site, ...] = ()
    begin: dims.Dim | None = None


@dataclass(slots=True)
class Events:
    """`example` is set when `torch.jit.trace` records the operations.

    A Python number that is made of a dimension or of a tensor is then a constant, and a branch on one is taken once.

    `layers`: the layers of a model whose `forward` is not read have run. `alone` is where attention saw the rows of the
    query only; None once it has seen others. `stale` is where it saw others of a cache than were written, and why.
    `hidden_cache` says which cache a model was handed that nobody can read.

    `symbolic`: an input has the symbolic query length. What was made before `started` was there before `forward` ran,
    and so was what was made in one of the intervals `outside`: statements of a module that were evaluated when a name
    of it was looked up. `last_rows` are the unknown values that are one row of another, with where it was taken,
    `row_axes` those whose rows lie along a known axis. `shared` is where single numbers met all rows of the query, and
    `placing` the tags of those that say where rows lie (see `torch/positions.py`).
    """

    example: Example | None = None
    writes: list[Write] = field(default_factory=list)
    row_kernels: list[tuple[Site, str]] = field(default_factory=list)
    baked: list[tuple[Site, str]] = field(default_factory=list)
    experts: list[Site] = field(default_factory=list)
    layers: bool = False
    alone: Site | None = None
    stale: tuple[Site, str] | None = None
    hidden_cache: Unknown | None = None
    _cached: bool = False
    symbolic: bool = False
    started: int = field(default_factory=serial)
    outside: list[tuple[int, int]] = field(default_factory=list)
    last_rows: dict[int, tuple[Value, Site]] = field(default_factory=dict)
    row_axes: dict[int, tuple[Value, int]] = field(default_factory=dict)
    shared: list[tuple[Site, Tensor]] = field(default_factory=list)
    placing: set[str] = field(default_factory=set)
    halves: dict[int, tuple[Tensor, Pick, Write]] = field(default_factory=dict)
    _kept: dict[int, Storage] = field(default_factory=dict)

    @property
    def inside(self) -> bool:
        """Whether the first layer is reached: what is computed from now on comes after embeddings."""
        return self.layers or bool(self.writes)

    def bakes(self, value: Value, site: Site | None, what: str) -> Value | None:
        """The constant that `what` makes of `value`; None where nothing is traced or any call has the same value."""
        if self.example is None or not _differs(value):
            return None
        if site is not None:
            self.baked.append((site, f"{what} makes a constant of {_told(value)} when the model is traced"))
        dim = value.dim if isinstance(value, Num) else None
        atom = dims.Atom(f"{what[:-1]}{dim or ''})" if what.endswith(")") else what, traced=True, minimum=0)
        return Num(dims.symbol(atom), places=merge_places(value.places, here(site)), flags=value.flags)

    def compare(self, op: str, a: Value, b: Value) -> Value | None:
        """A comparison of dimensions as the trace has decided it; None where it can be decided for every call."""
        if self.example is None:
            return None
        if op in ("in", "not in") and isinstance(b, Seq) and b.exact and (_differs(a) or any(map(_differs, b.items))):
            seen = [self._at(v) for v in (a, *b.items)]
            found = None if None in seen else (seen[0] in seen[1:]) == (op == "in")
        elif op in operators.COMPARE and (_differs(a) or _differs(b)):
            x, y = self._at(a), self._at(b)
            found = None if x is None or y is None else bool(operators.COMPARE[op](x, y))
        else:
            return None
        if found is None:
            return operators.unknown_from("which way a comparison went when the model was traced", "bool", a, b)
        return operators.derived(found, a, b)

    def least(self, values: list[Value], name: str) -> Value | None:
        """The `min` or `max` of dimensions as the trace has picked it: one of them, in every later call."""
        if self.example is None or not any(map(_differs, values)):
            return None
        seen = [self._at(v) for v in values]
        known = [s for s in seen if s is not None]
        if len(known) < len(seen):
            return union(values)
        return values[seen.index(min(known) if name == "min" else max(known))]

    def _at(self, v: Value) -> int | float | None:
        if isinstance(v, Const) and isinstance(v.value, (int, float)):
            return v.value
        d = as_dim(v)
        return dims.at(d, self.example or {}) if d is not None else None

    def written(
        self, target: Tensor, site: Site, key: Value | None, value: Value | None = None, unclear: str = ""
    ) -> None:
        """`target` (a view of a storage) is written in place, at `key` when it is an item assignment."""
        base = target.base or self._storage(target)
        if base is None:
            return
        if target.base is None:
            self.writes.append(Write(base, site, wraps=False, whole=True))
            return
        if key is not None:
            shared_positions.places(self, key)
        wraps = WRAPS in target.tags or wraps_at(key)
        whole = (key is None or _covers(key)) and is_layer(target)
        placed = _is_placed(target.base, value)
        own = not placed and isinstance(value, Tensor) and (value.base is target.base or target.base.tag in value.tags)
        layers = whole or _of_first_axis(key)
        wraps = wraps or (own and layers and isinstance(value, Tensor) and MOVED in value.tags)
        unclear = unclear or _unclear(target, key, value, whole)
        if not unclear and not whole and _rounded(key):
            unclear = "is written at a position that was rounded"
        part = self.symbolic and not whole
        slices = written_rows.aligned(target, key, value) if part else []
        if not unclear and part and (ONE_PLACE in target.tags or _stays(key, slices)):
            unclear = "is written in the same rows by every call"
        few = written_rows.too_few(slices)
        if few:
            self.baked.append((site, few))
        blended = self._blended(target.base, value, part) if self.symbolic else ""
        narrow = _narrow(key, value) if part else ""
        spread = placed or (bool(narrow) and _takes_rows(target, key))
        if placed and self.symbolic:
            narrow = "is written at one position, whatever the length of the query"
        made = (*value.cuts, *sites(value.tags)) if isinstance(value, Tensor) and (blended or narrow) else ()
        begin = written_rows.begin(slices)
        self.writes.append(Write(target.base, site, wraps, whole, own, unclear, blended, narrow, spread, made, begin))

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
        if not self.writes and any(map(_from_cache, value.tags)):
            return True
        mine = storage.tag in value.tags or value.base is storage
        return mine and all(w.storage.name != storage.name for w in self.writes)

    def attended(self, site: Site, alone: bool) -> None:
        """Attention over as many rows as the query has (`alone`), or over those of a cache."""
        self._cached = self._cached or not alone
        self.alone = None if self._cached else self.alone or site

    def sees(self, values: Tensor, site: Site, masked: bool = False) -> None:
        """Note when attention has values of a cache that do not end with the rows that were written.

        A mask may hide what is behind these, and cannot show what is not there.
        """
        if values.shape is None or len(values.shape) < 2:
            return
        own = {a for w in self.writes for d in w.storage.shape or () for a in dims.lengths_in(d)}
        for write in self.writes:
            if write.storage.tag in values.tags or values.base is write.storage:
                if not masked and dims.lengths_in(values.shape[-2]) <= own:
                    self.stale = self.stale or (site, _AS_MANY)
                elif values.shape[-2] == write.begin:
                    self.stale = self.stale or (site, _NONE_OF_THESE)

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
_NONE_OF_THESE = "attention sees the rows of a cache up to those of the query, and none of these"


def _is_placed(storage: Storage, value: Value | None) -> bool:
    """Whether a value is the state itself with one row put in."""
    pick = value.pick if isinstance(value, Tensor) else None
    return pick is not None and pick.what == "placed" and pick.held is not None and pick.held.name == storage.name


def _from_cache(tag: str) -> bool:
    kind, colon, name = tag.partition(":")
    return bool(colon) and kind == "from" and role_by_name(name).is_kv


def _differs(v: Value) -> bool:
    """Whether a number, or the numbers in a tensor or sequence, differ from one call of the graph to the next."""
    match v:
        case Tensor(tags=tags, base=base):
            # the content of a state, too: of other buffers it is the same in any call
            kept = base is not None and base.role == "buffer" and role_by_name(base.name) is not Role.UNKNOWN
            return INPUT in tags or kept
        case Seq(items=items) | Union(options=items):
            return any(map(_differs, items))
    return operators.is_flexible(v)


def _told(v: Value) -> str:
    if isinstance(v, Num):
        return f"the length `{v.dim}`"
    return "the values of a tensor" if isinstance(v, Tensor) else "a length"


def is_layer(t: Tensor) -> bool:
    """Whether a view of a storage is all of it, or all of it at one index of its first axes (one layer of a cache)."""
    assert t.base is not None
    if t.base.shape is None or t.shape is None:
        return True
    tail = t.base.shape[len(t.base.shape) - len(t.shape) :]
    return len(t.shape) <= len(t.base.shape) and all(
        a == b or (n < 2 and a == 1) for n, (a, b) in enumerate(zip(t.shape, tail, strict=True))
    )


def _unclear(target: Tensor, key: Value | None, value: Value | None, whole: bool) -> str:
    if _chosen(target) or _chosen(key):
        return "is written at a position that a condition chooses"
    if _computed(key):
        return "is written where values of the model say"
    unread = _unread(key)
    if unread is not None:
        return f"is written at a position that is not known: {unread.reason}"
    if not isinstance(value, Tensor) or whole:
        return ""
    assert target.base is not None
    if value.base is target.base or (COPY in value.tags and target.base.tag in value.tags):
        return "is written in part from itself"
    return ""


def _narrow(key: Value | None, value: Value | None) -> str:
    """Why what is written has the same rows for a query of any length; a single number says nothing."""
    if not isinstance(value, Tensor) or value.shape is None or any(map(dims.depends_on_query, value.shape)):
        return ""
    if value.cuts:
        return "takes one row of the query, whatever its length"
    as_ever = key is not None and value.shape and all(isinstance(d, int) for d in value.shape)
    return "is written in as many rows whatever the query" if as_ever else ""


def _takes_rows(target: Tensor, key: Value | None) -> bool:
    """Whether what is written to has a row for each row of the query, or may have."""
    match key:
        case None:
            return has_rows(target)
        case Seq(kind="slice", items=(start, stop, _)):
            first, end = 0 if is_none(start) else as_dim(start), as_dim(stop)
            return first is None or end is None or dims.depends_on_query(dims.sub(end, first))
        case Seq(items=items):
            return any(_takes_rows(target, i) for i in items if not _covers(i))
    return has_rows(key)


def _chosen(key: Value | None) -> bool:
    """Whether a condition or a bound chooses a position; where a slice ends says nothing of it."""
    if isinstance(key, Seq):
        return any(map(_chosen, key.items[:1] if key.kind == "slice" else key.items))
    if isinstance(key, Union):
        found = [as_dim(o) for o in key.options]
        return any(map(_chosen, key.options)) or any(isinstance(d, dims.Poly) and d.flexible for d in found)
    if isinstance(key, Num):
        if any(a.chosen for a in key.dim.atoms):
            return True
        alone = len(key.dim.terms) == 1
        made = [a.made[0] for a in key.dim.atoms if a.made is not None]
        return key.dim.flexible and ("min" in made or (alone and "either" in made))
    return isinstance(key, Tensor) and not key.tags.isdisjoint(PICKED)


def _computed(key: Value | None) -> bool:
    """Whether a condition on what the model computes selects the positions."""
    if isinstance(key, Seq):
        return any(map(_computed, key.items))
    return isinstance(key, Tensor) and key.dtype == "bool" and not is_mask(key)


def _unread(key: Value | None) -> Unknown | None:
    """What nobody could read of a position; an unknown number of the configuration is a number all the same."""
    match key:
        case Seq(items=items) | Union(options=items):
            return next((u for u in map(_unread, items) if u is not None), None)
        case Tensor(reason=Unknown() as reason) if reason.kind != "data":
            return reason
        case Unknown() if key.kind not in ("int", "data") or key.flexible:
            return key
    return None


def _rounded(key: Value | None) -> bool:
    """Whether a position was divided and nothing of it is left: several tokens have the same one then."""
    match key:
        case Seq(kind="slice", items=items):
            return _rounded(items[0])
        case Seq(items=items):
            return any(map(_rounded, items))
        case Tensor(tags=tags):
            return FLOORED in tags and WRAPS not in tags
        case Num(dim=d):
            return d.flexible and not d.remainder and any(a.name.startswith("div(") for a in d.atoms)
    return False


def in_one_place(key: Value | None) -> bool:
    """Whether a slice ends with the rows of the query and nothing else decides where: `[:, :, :s]` or `[:, :, -s:]`."""
    parts = (key.items if key.kind == "tuple" else [key]) if isinstance(key, Seq) else []
    if not all(isinstance(p, (Const, Num)) or (isinstance(p, Seq) and p.kind == "slice") for p in parts):
        return False
    bounds = [(p.items[0], p.items[1]) for p in parts if isinstance(p, Seq) and isinstance(p.items[0], (Const, Num))]
    ends = [(a, b) for a, b in bounds if is_length(a) or is_length(b)]
    return len(ends) == 1 and all(_of_query_alone(a, b) for a, b in ends)


def at_begin(key: Value | None) -> bool:
    """Whether one of the slices has the first rows: `[:, :s]`."""
    parts = (key.items if key.kind == "tuple" else [key]) if isinstance(key, Seq) else []
    bounds = [p.items for p in parts if isinstance(p, Seq) and p.kind == "slice"]
    return any(is_length(stop) and as_dim(start) in (None, 0) for start, stop, _ in bounds)


def _stays(key: Value | None, slices: written_rows.Slices) -> bool:
    """Whether nothing but lengths and numbers that are the same in every call say which rows are written."""
    return in_one_place(key) or written_rows.in_the_same_place(key, slices)


def _of_query_alone(start: Value, stop: Value) -> bool:
    first, last = as_dim(start), as_dim(stop)  # None for a bound that is left out
    if first is None or first == 0:
        return last is not None and dims.is_query(last)
    return last is None and dims.is_query(dims.neg(first))


def wraps_at(key: Value | None) -> bool:
    """Whether a remainder goes into a position."""
    match key:
        case Seq(items=items):
            return any(wraps_at(i) for i in items)
        case Tensor(tags=tags):
            return WRAPS in tags
        case None:
            return False
    dim = getattr(key, "dim", None)
    return bool(dim is not None and getattr(dim, "remainder", False))


def _of_first_axis(key: Value | None) -> bool:
    """Whether an item assignment writes all that is under some indices of the first axis: `x[i:j] = y`."""
    if isinstance(key, Seq) and key.kind == "tuple":
        return all(map(_covers, key.items[1:]))
    return key is not None and not isinstance(key, Tensor)


def _covers(key: Value) -> bool:
    """Whether an item assignment writes everything: `x[:] = y` or `x[...] = y`."""
    if isinstance(key, Seq) and key.kind == "slice":
        return all(is_none(b) for b in key.items)
    return isinstance(key, Const) and key.value is ...
