"""Which rows of a state an item assignment writes: those where the query stands, or the same ones in every call.

cache[:, :, :rows] = k                       # the first rows, in every call
cache[:, :, length - rows : length] = k      # the last ones
cache[:, :, torch.arange(rows)] = k
cache[:, :, end - 1 : end] = k               # one row, of a query of one token
"""

from __future__ import annotations

from auditor import dims
from auditor.dims import Dim
from auditor.values import Const, Num, Seq, Tensor, Unknown, Value, as_dim, is_none
from auditor.values.tags import COUNTED


def in_the_same_place(target: Tensor, key: Value | None, value: Value | None) -> bool:
    """Whether the rows that are written begin, or end, at the same row in every call."""
    return (
        _counts_rows(key)
        or _at_its_end(target, key)
        or any(_from_a_number(part) for part, rows in _aligned(target, key, value) if dims.is_query(rows))
    )


def begin(target: Tensor, key: Value | None, value: Value | None) -> Dim | None:
    """The first of as many rows as the query has, where they are written by a slice."""
    found = [as_dim(part.items[0]) for part, rows in _aligned(target, key, value) if dims.is_query(rows)]
    return found[0] if found else None


def too_few(target: Tensor, key: Value | None, value: Value | None) -> str:
    """What is wrong where a number of rows that is the same in every call takes as many as the query has."""
    for part, rows in _aligned(target, key, value):
        start, stop = (as_dim(b) for b in part.items[:2])
        length = dims.sub(stop, start) if start is not None and stop is not None else None
        if isinstance(length, int) and length >= 0 and dims.is_query(rows):
            return f"{length} row{'' if length == 1 else 's'} of a state take the `{rows}` rows of the query"
    return ""


def is_length(bound: Value) -> bool:
    """Whether a number is made of the lengths of inputs."""
    return isinstance(bound, Num) and bound.dim.flexible


def _from_a_number(part: Seq) -> bool:
    """`[4:end]`."""
    start, stop = part.items[:2]
    fixed = is_none(start) or (isinstance(start, Const) and type(start.value) is int and start.value >= 0)
    return fixed and not is_none(stop)


def _at_its_end(target: Tensor, key: Value | None) -> bool:
    lengths = target.shape or ()
    parts = _parts(key)
    slices = [(p.items, d) for p, d in zip(parts, lengths, strict=False) if isinstance(p, Seq) and p.kind == "slice"]
    ends = [(bounds, d) for bounds, d in slices if is_length(bounds[0])]
    return bool(ends) and len(parts) <= len(lengths) and all(_ends(bounds, d) for bounds, d in ends)


def _ends(bounds: list[Value], length: Dim) -> bool:
    start, stop = as_dim(bounds[0]), as_dim(bounds[1])
    return start is not None and stop in (None, length) and dims.is_query(dims.sub(length, start))


def _counts_rows(key: Value | None) -> bool:
    if isinstance(key, Tensor):
        return COUNTED in key.tags
    return any(isinstance(p, Tensor) and COUNTED in p.tags for p in _parts(key))


def _aligned(target: Tensor, key: Value | None, value: Value | None) -> list[tuple[Seq, Dim]]:
    """The slices of a key, each with the length of what is written along it."""
    parts = _parts(key)
    plain = all(_is_slice(p) or isinstance(p, (Const, Num, Unknown)) for p in parts)
    if not plain or target.shape is None or not isinstance(value, Tensor) or value.shape is None:
        return []
    behind = (None,) * (len(target.shape) - len(parts))
    kept = [*(p for p in parts if isinstance(p, Seq)), *behind]
    pairs = zip(reversed(kept), reversed(value.shape), strict=False)
    return [(part, length) for part, length in pairs if part is not None]


def _parts(key: Value | None) -> list[Value]:
    """The parts of a key; none where one of them stands for another number of axes than one."""
    parts = list(key.items) if isinstance(key, Seq) and key.kind == "tuple" else [key] if key is not None else []
    odd = any(is_none(p) or (isinstance(p, Const) and p.value is ...) for p in parts)
    return [] if odd else parts


def _is_slice(part: Value) -> bool:
    return isinstance(part, Seq) and part.kind == "slice"
