"""What happens while a module's `forward` is evaluated, beside the shapes: state writes, kernels, baked lengths."""

from __future__ import annotations

from dataclasses import dataclass, field

from auditor.places import Site
from auditor.values import Seq, Storage, Tensor, Value


@dataclass(frozen=True, slots=True)
class Write:
    """An in-place write. `wraps`: a remainder went into the position; `own`: the value comes from the storage."""

    storage: Storage
    site: Site
    wraps: bool
    whole: bool
    own: bool = False


@dataclass(slots=True)
class Events:
    """`traced`: `torch.jit.trace` records the operations, so that a Python number made of a dimension is a constant."""

    traced: bool = False
    writes: list[Write] = field(default_factory=list)
    row_kernels: list[tuple[Site, str]] = field(default_factory=list)
    baked: list[tuple[Site, str]] = field(default_factory=list)
    experts: list[Site] = field(default_factory=list)
    reads: set[int] = field(default_factory=set)

    def written(self, target: Tensor, site: Site, key: Value | None, value: Value | None = None) -> None:
        """`target` (a view of a storage) is written in place, at `key` when it is an item assignment."""
        if target.base is None:
            return
        wraps = "wraps" in target.tags or _wraps(key)
        whole = (key is None or _covers(key)) and is_layer(target)
        own = isinstance(value, Tensor) and (value.base is target.base or target.base.tag in value.tags)
        wraps = wraps or (own and whole and isinstance(value, Tensor) and "moved" in value.tags)
        self.writes.append(Write(target.base, site, wraps, whole, own))


def is_layer(t: Tensor) -> bool:
    """Whether a view of a storage is all of it, or all of it at one index of its first axes (one layer of a cache)."""
    assert t.base is not None
    if t.base.shape is None or t.shape is None:
        return True
    tail = t.base.shape[len(t.base.shape) - len(t.shape) :]
    return len(t.shape) <= len(t.base.shape) and all(
        a == b or (n < 2 and a == 1) for n, (a, b) in enumerate(zip(t.shape, tail, strict=True))
    )


def _wraps(key: Value | None) -> bool:
    match key:
        case Seq(items=items):
            return any(_wraps(i) for i in items)
        case Tensor(tags=tags):
            return "wraps" in tags
        case None:
            return False
    dim = getattr(key, "dim", None)
    return bool(dim is not None and getattr(dim, "remainder", False))


def _covers(key: Value) -> bool:
    """Whether an item assignment writes everything: `x[:] = y` or `x[...] = y`."""
    from auditor.values import Const

    if isinstance(key, Seq) and key.kind == "slice":
        return all(isinstance(b, Const) and b.value is None for b in key.items)
    return isinstance(key, Const) and key.value is ...
