"""A write to a state of a graph: where it goes, what it takes, and what nobody can tell of it."""

from __future__ import annotations

from dataclasses import dataclass

from auditor import dims
from auditor.places import Site
from auditor.torch import written_rows
from auditor.torch.accesses import Access
from auditor.torch.keys import (
    covers,
    in_one_place,
    is_chosen,
    is_computed,
    is_one,
    is_reversed,
    is_rounded,
    of_first_axis,
    unread_part,
    wraps_at,
)
from auditor.torch.rows import has_rows
from auditor.torch.state_copies import is_copy
from auditor.values import Const, Num, Seq, Storage, Tensor, Unknown, Value, as_data, as_dim, is_none
from auditor.values.tags import COPY, INPUT, KEPT, LATER, MOVED, ONE_PLACE, WRAPS, sites


@dataclass(frozen=True, slots=True)
class Write:
    """An in-place write. `wraps`: a remainder went into the position; `own`: the value comes from the storage.

    `unclear` says why nobody can tell which rows hold what after the write, `blended` why a row that is written
    would be another one had the rows of the query gone in one by one, `narrow` why it is not written once for each row
    of a longer query. `spread`: what is narrow goes into as many rows as the query has. `made`: where the rows that are
    written became what they are, `span` where as many as the query has stand, `capacity` how many there is room for,
    `access` the part of the state that is written, and when. `fresh`: nothing of what was there is left. `read`:
    something was computed from what was there.
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
    span: written_rows.Span | None = None
    capacity: dims.Dim | None = None
    access: Access | None = None
    fresh: bool = False
    read: bool = False


def write_at(
    target: Tensor,
    site: Site,
    key: Value | None,
    value: Value | None,
    *,
    whole: bool,
    unclear: str,
    blended: str,
    symbolic: bool,
    slices: written_rows.Slices,
    access: Access | None,
) -> Write:
    """A write of `value` to a view of a storage. `symbolic`: the query has any length, to which rows can be held.

    `slices` are those of the key (see `written_rows.aligned`).
    """
    base = target.base
    assert base is not None
    part = symbolic and not whole
    placed = _is_placed(base, value)
    own = not placed and isinstance(value, Tensor) and (value.base is base or base.tag in value.tags)
    layers = whole or of_first_axis(key)
    moved = own and layers and isinstance(value, Tensor) and MOVED in value.tags
    slid = own and isinstance(value, Tensor) and LATER in value.tags and written_rows.ends_before(slices)
    wraps = WRAPS in target.tags or wraps_at(key) or moved or slid
    unclear = unclear or _unclear(target, key, value, whole)
    if not unclear and not whole and is_rounded(key):
        unclear = "is written at a position that was rounded"
    if not unclear and part and (ONE_PLACE in target.tags or _stays(key, slices)):
        unclear = "is written in the same rows by every call"
    if not unclear and symbolic and written_rows.clears(target, key, value):
        unclear = "is filled with the same in every call, also where earlier calls have written"
    if not unclear and part and written_rows.in_other_order(key):
        unclear = "is written in another order than that of the rows"
    narrow = _narrow(key, value) if part else ""
    spread = placed or (bool(narrow) and _takes_rows(target, key))
    if placed and symbolic:
        narrow = "is written at one position, whatever the length of the query"
    made = (*value.cuts, *sites(value.tags)) if isinstance(value, Tensor) and (blended or narrow) else ()
    span, room = written_rows.span(key, slices), written_rows.capacity(target, value)
    fresh = whole and not (own or placed) and isinstance(value, Tensor) and _is_fresh(base, value)
    row = (base, site, wraps, whole, own, unclear, blended, narrow, spread, made, span, room, access)
    return Write(*row, fresh, base.read)


def _is_fresh(base: Storage, value: Tensor) -> bool:
    """Whether a value is computed in a call, and from nothing that the state has held."""
    numbers = value.shape is not None and not value.dtype.startswith(("int", "uint", "bool"))
    return numbers and INPUT in value.tags and KEPT + base.name not in value.tags


def _stays(key: Value | None, slices: written_rows.Slices) -> bool:
    """Whether nothing but lengths and numbers that are the same in every call say which rows are written."""
    return in_one_place(key) or written_rows.in_the_same_place(key, slices)


def writes_all(target: Tensor, key: Value | None) -> bool:
    """Whether an assignment to a view of a storage leaves nothing of it, or nothing of one layer."""
    return (key is None or covers(key)) and is_layer(target)


def assigns_a_layer(target: Tensor, key: Value | None) -> bool:
    """Whether an assignment leaves nothing of what is at one index of a state's first axis: `state[layer] = new`."""
    parts = key.items if isinstance(key, Seq) and key.kind == "tuple" else [key]
    one = isinstance(parts[0], (Const, Num, Unknown)) and not is_none(parts[0]) and not covers(parts[0])
    return one and all(p is not None and covers(p) for p in parts[1:]) and is_layer(target)


def is_layer(t: Tensor) -> bool:
    """Whether a view of a storage is all of it, or all of it at one index of its first axes (one layer of a cache)."""
    assert t.base is not None
    if t.base.shape is None or t.shape is None:
        return True
    tail = t.base.shape[len(t.base.shape) - len(t.shape) :]
    return len(t.shape) <= len(t.base.shape) and all(
        a == b or (n < 2 and a == 1) for n, (a, b) in enumerate(zip(t.shape, tail, strict=True))
    )


def _is_placed(storage: Storage, value: Value | None) -> bool:
    """Whether a value is the state itself with one row put in."""
    pick = value.pick if isinstance(value, Tensor) else None
    return pick is not None and pick.what == "placed" and pick.held is not None and pick.held.name == storage.name


def _unclear(target: Tensor, key: Value | None, value: Value | None, whole: bool) -> str:
    if isinstance(value, Tensor) and is_copy(value.pick):
        return "takes a copy of another part, or of another state"
    if is_chosen(target) or is_chosen(key):
        return "is written at a position that a condition chooses"
    if is_computed(key):
        return "is written where values of the model say"
    if key is not None and is_one(key):
        return "is written at one position by all rows of the query"
    if key is not None and is_reversed(key):
        return "is written at positions that are in reverse"
    place = unread_part(key)
    if place is not None:
        return f"is written at a position that is not known: {place.reason}"
    parts = key.items if isinstance(key, Seq) and key.kind == "tuple" else [key]
    if isinstance(value, (Const, Num)) and (whole or any(map(_from_the_first, parts))):
        return "is filled with a number by every call"
    if not isinstance(value, Tensor) or whole:
        return ""
    assert target.base is not None
    if value.base is target.base or (COPY in value.tags and target.base.tag in value.tags):
        return "is written in part from itself"
    return ""


def unread_value(value: Value | None) -> Unknown | None:
    """Why what is written is not known; a number, or what a file holds, is known well enough."""
    found = value.reason if isinstance(value, Tensor) and value.shape is None else value and as_data(value)
    return found if isinstance(found, Unknown) and found.kind not in ("int", "float", "bool", "data") else None


def _from_the_first(part: Value | None) -> bool:
    """Whether a part of a key has rows from the first on, up to one that differs between calls."""
    if not isinstance(part, Seq) or part.kind != "slice":
        return False
    stop = as_dim(part.items[1])
    return as_dim(part.items[0]) in (None, 0) and isinstance(stop, dims.Poly) and stop.flexible


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
            return any(_takes_rows(target, i) for i in items if not covers(i))
    return has_rows(key)
