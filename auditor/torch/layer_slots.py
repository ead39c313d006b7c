"""Which layer of a cache a write goes to: two that write the same rows of one leave those of the last.

cache[0, :, :, start:end] = k                            # by every layer
cache[layer, ...] = k;  cache[layer - 1, ...] = k

While one token goes in at a time, a layer finds what another has left of the rows before; in one forward over more
rows it finds its own. A part of a layer's number (`layer // 6`) may be that of the layers that attend to all.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from auditor import dims
from auditor.dims import Dim, Poly
from auditor.values import Const, Num, Seq, Storage, Tensor, Unknown, Value, as_dim, is_none

if TYPE_CHECKING:
    from auditor.torch.state_writes import Write


def slot(target: Tensor, key: Value | None) -> Dim | None:
    """The index of the first axis of a state that a key writes to; None when it is not that of one layer."""
    if not isinstance(key, Seq) or key.kind != "tuple" or target.base is None or target.shape != target.base.shape:
        return None
    first = key.items[0]
    if isinstance(first, (Const, Num, Unknown)):
        return as_dim(first)
    if isinstance(first, Seq) and first.kind == "slice" and is_none(first.items[2]):
        begin, end = (as_dim(b) for b in first.items[:2])
        return begin if begin is not None and end is not None and dims.sub(end, begin) == 1 else None
    return None


def beside(target: Tensor, key: Value | None, first: int) -> str:
    """The parts of a key from the `first` on, as text: heads, say, of which each part may have its own."""
    parts = key.items[first:] if isinstance(key, Seq) else []
    pairs = zip(parts, (target.shape or ())[first:], strict=False)
    return "; ".join(_part(p, whole) for p, whole in pairs).rstrip("; ")


def _part(part: Value, whole: Dim) -> str:
    if not isinstance(part, (Seq, Const)):
        return "?"
    bounds = [as_dim(b) for b in (part.items if isinstance(part, Seq) else [part])]
    return "" if len(bounds) == 3 and bounds[0] in (None, 0) and bounds[1] in (None, whole) else str(bounds)


def shared(storage: Storage, writes: Sequence[Write]) -> Write | None:
    """The write to a layer of a state that another layer writes to as well, of all `writes` to that state."""
    found = [w for w in writes if w.slot is not None and w.span is not None]
    if not found or len(found) < len(writes) or not storage.shape or storage.shape[0] == 1:
        return None
    if any(w.viewed for w in found) and len({str(w.slot) for w in found}) > 1:
        return None  # views of several layers: what is written again may be so in another branch
    return next((b for n, b in enumerate(found) for a in found[:n] if _meet(a, b)), None)


def _meet(a: Write, b: Write) -> bool:
    """Whether two writes are of the same rows of one layer in two rounds of a loop, or of one layer and the next.

    Two statements that write the same may be those of two branches.
    """
    if a.slot is None or b.slot is None or a.span != b.span or a.beside != b.beside or "?" in a.beside:
        return False
    if a.site == b.site:
        return isinstance(a.slot, int) and a.slot == b.slot
    apart = dims.sub(a.slot, b.slot)
    steps = [c for m, c in a.slot.terms if m] if isinstance(a.slot, Poly) else []
    return isinstance(apart, int) and apart != 0 and len(steps) == 1 and apart % steps[0] == 0
