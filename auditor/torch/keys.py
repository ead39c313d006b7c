"""What a key says of the place where a tensor is read or written by it: `tensor[key]`."""

from __future__ import annotations

from auditor import dims
from auditor.torch.row_masks import is_mask
from auditor.values import Const, ExternalObject, Num, Seq, Tensor, Union, Unknown, Value, as_data, as_dim, is_none
from auditor.values.tags import ALIKE, FLIPPED, FLOORED, PICKED, WRAPS


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


def is_length(bound: Value) -> bool:
    """Whether a number is made of the lengths of inputs."""
    return isinstance(bound, Num) and bound.dim.flexible


def _of_query_alone(start: Value, stop: Value) -> bool:
    first, last = as_dim(start), as_dim(stop)  # None for a bound that is left out
    if first is None or first == 0:
        return last is not None and dims.is_query(last)
    return last is None and dims.is_query(dims.neg(first))


def is_rounded(key: Value | None) -> bool:
    """Whether a position was divided and nothing of it is left: several tokens have the same one then."""
    match key:
        case Seq(kind="slice", items=items):
            return is_rounded(items[0])
        case Seq(items=items):
            return any(map(is_rounded, items))
        case Tensor(tags=tags):
            return FLOORED in tags and WRAPS not in tags
        case Num(dim=d):
            return d.flexible and not d.remainder and any(a.name.startswith("div(") for a in d.atoms)
    return False


def is_chosen(key: Value | None) -> bool:
    """Whether a condition or a bound chooses a position; where a slice ends says nothing of it."""
    if isinstance(key, Seq):
        return any(map(is_chosen, key.items[:1] if key.kind == "slice" else key.items))
    if isinstance(key, Union):
        found = [as_dim(o) for o in key.options]
        return any(map(is_chosen, key.options)) or any(isinstance(d, dims.Poly) and d.flexible for d in found)
    if isinstance(key, Num):
        if any(a.chosen for a in key.dim.atoms):
            return True
        alone = len(key.dim.terms) == 1
        made = [a.made[0] for a in key.dim.atoms if a.made is not None]
        return key.dim.flexible and ("min" in made or (alone and "either" in made) or _has_a_floor(key.dim))
    return isinstance(key, Tensor) and not key.tags.isdisjoint(PICKED)


def is_one(key: Value | None) -> bool:
    """Whether all rows of the query are given the same position: `index_copy_(2, torch.full((rows,), start), k)`."""
    parts = key.items if isinstance(key, Seq) and key.kind == "tuple" else [key]
    rows = [p for p in parts if isinstance(p, Tensor) and any(map(dims.depends_on_query, p.shape or ()))]
    return bool(rows) and all(ALIKE in p.tags for p in rows)


def is_reversed(key: Value | None) -> bool:
    """Whether positions of the rows of the query are in reverse."""
    if isinstance(key, Seq) and key.kind == "tuple":
        return any(map(is_reversed, key.items))
    if not isinstance(key, Tensor):
        return False
    step = key.pick.step if key.pick is not None and key.pick.what == "numbers" else None
    return FLIPPED in key.tags or (step is not None and step < 0)


def _has_a_floor(d: dims.Dim) -> bool:
    """Whether the first of several positions is another: `max(begin, 4)`."""
    floors = [
        b for a in (d.atoms if isinstance(d, dims.Poly) else ()) if a.made and a.made[0] == "max" for b in a.made[1:]
    ]
    return any(isinstance(b, int) and b > 0 for b in floors)


def is_computed(key: Value | None) -> bool:
    """Whether a condition on what the model computes selects the positions."""
    if isinstance(key, Seq):
        return any(map(is_computed, key.items))
    return isinstance(key, Tensor) and key.dtype == "bool" and not is_mask(key)


def unread_part(key: Value | None) -> Unknown | None:
    """What nobody could read of a position; an unknown number of the configuration is a number all the same."""
    match key:
        case Seq(items=items) | Union(options=items):
            return next((u for u in map(unread_part, items) if u is not None), None)
        case Tensor(reason=Unknown() as reason) if reason.kind != "data":
            return reason
        case Unknown() if key.kind not in ("int", "data") or key.flexible:
            return key
        case ExternalObject():
            return unread_part(as_data(key))
    return None


def of_first_axis(key: Value | None) -> bool:
    """Whether an item assignment writes all that is under some indices of the first axis: `x[i:j] = y`."""
    if isinstance(key, Seq) and key.kind == "tuple":
        return all(map(covers, key.items[1:]))
    return key is not None and not isinstance(key, Tensor)


def is_whole(key: Value) -> bool:
    """Whether all parts of a key leave their axes as they are: `x[:, :]`."""
    return isinstance(key, Seq) and key.kind == "tuple" and all(map(covers, key.items))


def covers(key: Value) -> bool:
    """Whether an item assignment writes everything: `x[:] = y` or `x[...] = y`."""
    if isinstance(key, Seq) and key.kind == "slice":
        return all(is_none(b) for b in key.items)
    return isinstance(key, Const) and key.value is ...
