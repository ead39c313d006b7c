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
from auditor.torch import regions
from auditor.values import Pick, Put, Storage, Tensor, Value

if TYPE_CHECKING:
    from auditor.torch.events import Events

_STATES = ("input", "buffer")
MOST = 64
"""So many writes one copy remembers."""


def of(t: Tensor) -> Pick | None:
    """What a tensor is as a copy: one of itself where it is a view of a state, with nothing put in."""
    if t.base is not None and t.base.role in _STATES and (t.pick is None or t.pick.sides):
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


def stacked(parts: Sequence[Tensor]) -> Pick | None:
    """A copy of a whole state, put together from those of its layers, each in its place."""
    copies = [p.pick for p in parts if p.pick is not None and p.pick.what == "copy" and p.pick.view is not None]
    held = copies[0].held if copies else None
    if held is None or len(copies) < len(parts) or held.shape is None or held.shape[0] != len(parts):
        return None
    layers = [_layer(c.view) if c.view is not None and c.held is held else None for c in copies]
    if layers != list(range(len(parts))):
        return None
    return Pick("copy", held=held, step=0, put=tuple(put for c in copies for put in c.put))


def put_back(target: Tensor, key: Value | None, value: Value | None) -> Pick | None:
    """What a value is as a copy, where it is put in the place of that part of a state that it was made of."""
    pick = value.pick if isinstance(value, Tensor) else None
    if pick is None or not is_copy(pick) or pick.held is None or pick.held is not target.base:
        return None
    return pick if _is_place_of(pick.view, pick.held, target, key) else None


def is_copy(pick: Pick | None) -> bool:
    """Whether this is a copy of a part of a state, and has taken something."""
    return pick is not None and pick.what == "copy" and bool(pick.put)


def _is_place_of(view: Tensor | None, held: Storage, target: Tensor, key: Value | None) -> bool:
    """Whether `target[key]` is the part of a state that a view is of; None of all of it."""
    theirs = regions.region(view) if view is not None else regions.whole(held)
    mine = regions.region(target) if key is None else regions.keyed(target, key)
    return mine is not None and mine == theirs


def _layer(view: Tensor) -> dims.Dim | None:
    """The index of the layer that a view is of a state; None of any other part."""
    part, whole = regions.region(view), regions.whole(view.base) if view.base is not None else None
    if part is None or whole is None or part.extents[1:] != whole.extents[1:] or part.axes != whole.axes[1:]:
        return None
    begin, length = part.extents[0]
    return begin if length == 1 else None
