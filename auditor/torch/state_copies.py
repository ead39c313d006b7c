"""Copies of a state, or of a part of it, that take rows and are put back in its place: writes to the state itself.

    new = torch.slice_scatter(self.k_cache, k, 2, start, end)
    self.k_cache.copy_(new)                              # or `self.k_cache = new`

    new = self.k_cache[layer].clone()
    new[:, :, start:end] = k
    self.k_cache[layer] = new

A copy knows the part of the state that it was made of, and what was written to it since. What is computed from a copy
knows neither; put back, it is a write of all.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from auditor import dims
from auditor.places import Site
from auditor.torch.keys import covers, is_whole
from auditor.values import Const, Num, Pick, Put, Seq, Tensor, Unknown, Value, as_dim

if TYPE_CHECKING:
    from auditor.torch.events import Events

_STATES = ("input", "buffer")
MOST = 64
"""So many writes one copy remembers."""


def of(t: Tensor) -> Pick | None:
    """What a tensor is as a copy: one of itself where it is a view of a state, with nothing put in."""
    if t.base is not None and t.base.role in _STATES and t.pick is None:
        return Pick("copy", held=t.base, step=0, view=t)
    return t.pick if t.base is None and t.pick is not None and t.pick.what == "copy" else None


def taking(
    events: Events | None, t: Tensor, key: Value | None, value: Value | None, unclear: str, site: Site | None
) -> Pick | None:
    """What `t`, as a copy of a state, is with one write more."""
    before = of(t) if events is not None and site is not None else None
    if events is None or site is None or before is None or before.view is None or len(before.put) >= MOST:
        return None
    events.put_in |= {before.held.tag} if before.held is not None else set()
    put = Put(before.view, key, value, unclear, site)
    return Pick("copy", held=before.held, step=0, view=before.view, put=(*before.put, put))


def stacked(events: Events, parts: Sequence[Tensor]) -> Pick | None:
    """A copy of a whole state, put together from those of its layers, each in its place."""
    copies = [p.pick for p in parts if p.pick is not None and p.pick.what == "copy" and p.pick.view is not None]
    held = copies[0].held if copies else None
    if held is None or len(copies) < len(parts) or held.shape is None or held.shape[0] != len(parts):
        return None
    layers = [_layer(events, c.view) if c.view is not None and c.held is held else None for c in copies]
    if layers != [(n,) for n in range(len(parts))]:
        return None
    return Pick("copy", held=held, step=0, put=tuple(put for c in copies for put in c.put))


def put_back(events: Events, target: Tensor, key: Value | None, value: Value | None) -> Pick | None:
    """What a value is as a copy, where it is put in the place of that part of a state that it was made of."""
    pick = value.pick if isinstance(value, Tensor) else None
    if pick is None or not is_copy(pick) or pick.held is not target.base:
        return None
    return pick if _is_place_of(events, pick.view, target, key) else None


def is_copy(pick: Pick | None) -> bool:
    """Whether this is a copy of a part of a state, and has taken something."""
    return pick is not None and pick.what == "copy" and bool(pick.put)


def _is_place_of(events: Events, view: Tensor | None, target: Tensor, key: Value | None) -> bool:
    """Whether `target[key]` is the part of a state that a view is of: one layer, or (None) all of it."""
    theirs = () if view is None else _layer(events, view)
    if key is None or covers(key) or is_whole(key):
        mine = _layer(events, target)
        return view is target or (mine is not None and theirs == mine)
    number = layer(target, key)
    return number is not None and theirs == (number,)


def layer(t: Tensor, key: Value) -> dims.Dim | None:
    """The index of a layer, where a key takes all of one out of a whole state: `cache[i]`, `cache[i, :, :]`."""
    if t.base is None or t.shape != t.base.shape:
        return None
    first, rest = (key.items[0], key.items[1:]) if isinstance(key, Seq) and key.kind == "tuple" else (key, [])
    return as_dim(first) if isinstance(first, (Const, Num, Unknown)) and all(map(covers, rest)) else None


def _layer(events: Events, view: Tensor) -> tuple[dims.Dim, ...] | None:
    """Nothing for all of a state, the index of a layer; None where it is not known which part a view is."""
    if view.base is None or view.base.shape is None:
        return None
    known = events.layers_of.get(id(view))
    if known is not None and known[0] is view:
        return (known[1],)
    return () if view.shape == view.base.shape else None
