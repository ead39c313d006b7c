"""Joining values where worlds meet: equal things stay, a few different ones are kept as a union."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

from auditor import dims
from auditor.sameness import same
from auditor.values import (
    MAX_OPTIONS,
    Const,
    Num,
    Pattern,
    Seq,
    Star,
    Tensor,
    Union,
    Unknown,
    Value,
    altered,
    as_dim,
    merge_places,
    origins,
)
from auditor.values.absence import Absent, maybe_absent, options_present
from auditor.values.tags import LARGEST

_deciding: list[Unknown] = []


def decided_by(condition: Value | None) -> AbstractContextManager[None]:
    """Unions that are made inside are what a condition that nobody knows has decided."""
    options = condition.options if isinstance(condition, Union) else (condition,)
    cause = next((o for o in options if isinstance(o, Unknown)), None)
    return nullcontext() if cause is None else _decided(cause)


@contextmanager
def _decided(cause: Unknown) -> Iterator[None]:
    _deciding.append(cause)
    try:
        yield
    finally:
        _deciding.pop()


def join(a: Value, b: Value) -> Value:
    """One value that stands for either."""
    if a is b:
        return a
    if same(a, b):
        return _same_part(a if a.flags >= b.flags else b, b if a.flags >= b.flags else a)
    match a, b:
        case Unknown(), Unknown() if not isinstance(a, Absent) and not isinstance(b, Absent):
            return merge_unknowns(a, b)
        case Tensor(), Tensor():
            return _join_tensors(a, b)
        case Star(), Star():
            more = tuple(y for y in b.items if not any(same(x, y) for x in a.items))
            return Star((*a.items, *more), a.count if a.count == b.count else None)
        case Seq(kind="tuple"), Seq(kind="tuple") if a.exact and b.exact and len(a.items) == len(b.items):
            items = [join(x, y) for x, y in zip(a.items, b.items, strict=True)]
            return Seq("tuple", items, places=merge_places(a.places, b.places), flags=a.flags | b.flags)
    if (
        (_number(a) and _number(b))
        or (isinstance(a, Num) and _maybe_number(b))
        or (_maybe_number(a) and isinstance(b, Num))
    ):
        x, y = as_dim(a), as_dim(b)
        if x is not None and y is not None and not (isinstance(x, int) and isinstance(y, int)):
            d = dims.either(x, y)
            places, flags = merge_places(a.places, b.places), a.flags | b.flags
            return Num(d, places=places, flags=flags) if isinstance(d, dims.Poly) else a
    return union([a, b])


def _same_part(one: Value, other: Value) -> Value:
    """`one` of two values that are alike, but that they may be other parts of a state, or its names."""
    if type(one) is Tensor and one.region is not None and type(other) is Tensor and one.region != other.region:
        return altered(one, region=None)
    if type(one) is Pattern and one.number is not None and type(other) is Pattern and one.number != other.number:
        return altered(one, number=None)
    return one


def _maybe_number(v: Value) -> bool:
    return isinstance(v, Unknown) and v.kind in ("", "data") and not isinstance(v, Absent)


def _number(v: Value) -> bool:
    return (
        isinstance(v, Num)
        or (isinstance(v, Unknown) and v.kind in ("int", "float"))
        or (isinstance(v, Const) and isinstance(v.value, (int, float)) and not isinstance(v.value, bool))
    )


def _join_tensors(a: Tensor, b: Tensor) -> Value:
    if (a.tags ^ b.tags) & LARGEST:
        return union_of([a, b])  # one is a choice among what the other may be
    if a.shape is None or b.shape is None or len(a.shape) != len(b.shape):
        if a.shape is None:
            return a
        if b.shape is None:
            return b
        return union_of([a, b])
    rows = [(dims.depends_on_query(x), dims.depends_on_query(y)) for x, y in zip(a.shape, b.shape, strict=True)]
    if (True, False) in rows and (False, True) in rows:
        return union_of([a, b])  # the query lies along another axis
    shape = tuple(dims.either(x, y) for x, y in zip(a.shape, b.shape, strict=True))
    return Tensor(
        shape,
        a.dtype if a.dtype == b.dtype else "",
        a.reason or b.reason,
        merge_places(a.cuts, b.cuts),
        a.tags | b.tags,
        a.base if a.base is b.base else None,
        places=merge_places(a.places, b.places),
        flags=a.flags | b.flags,
    )


def union(values: Iterable[Value]) -> Value:
    """A union of the distinct values; an `Unknown` when there are too many."""
    flat: list[Value] = []
    for v in values:
        for o in v.options if isinstance(v, Union) else (v,):
            if isinstance(o, Unknown) and not isinstance(o, Absent):
                other = next(
                    (n for n, f in enumerate(flat) if isinstance(f, Unknown) and not isinstance(f, Absent)), None
                )
                if other is not None:
                    flat[other] = merge_unknowns(flat[other], o)  # type: ignore[arg-type]
                    continue
            alike = None if len(flat) > MAX_OPTIONS else next((n for n, f in enumerate(flat) if same(o, f)), None)
            if alike is None:
                flat.append(o)  # beyond that many nothing is kept of them but their origins
            else:
                flat[alike] = _same_part(flat[alike], o)
    return union_of(flat)


def union_of(flat: list[Value]) -> Value:
    """A union of values of which no two are the same and none is a union itself (see `union`)."""
    if len(flat) == 1:
        return flat[0]
    places, flags = origins(flat)
    if len(flat) > MAX_OPTIONS:
        return Unknown("one of more values than are kept apart", places=places, flags=flags)
    cause = _deciding[-1] if _deciding else None
    if cause is not None:
        places = merge_places(places, cause.places)
    return Union(tuple(flat), places=places, flags=flags, cause=cause)


def join_all(values: Iterable[Value]) -> Value:
    """One value that stands for any of them, of which there has to be one."""
    out: Value | None = None
    for v in values:
        out = v if out is None else join(out, v)
    assert out is not None, "join of nothing"
    return out


class Merged(Unknown):
    """One of two unknown things: attributes of it are one of two unknown attributes."""

    parts: tuple[Unknown, Unknown]
    depth: int

    def child(self, key: str, kind: str = "", number: str = "") -> Value:
        if self.depth > _DEEPEST:
            return super().child(key, kind, number)  # a loop that joins what it takes apart doubles this each time
        found = self.assigned.get(key + number) or self.children.get(key + number)
        if found is None:
            found = join(self.parts[0].child(key, kind, number), self.parts[1].child(key, kind, number))
            self.children[key + number] = found
        return found


_DEEPEST = 6
_merged: dict[tuple[int, int], Merged] = {}


def merge_unknowns(a: Unknown, b: Unknown) -> Unknown:
    """The join of two unknowns is an unknown; joining the same two again gives the same one."""
    if a is b or (isinstance(a, Merged) and b in a.parts):
        return a
    if isinstance(b, Merged) and a in b.parts:
        return b
    found = _merged.get((id(a), id(b))) or _merged.get((id(b), id(a)))
    if found is None:
        kinds = {a.kind, b.kind}
        kind = a.kind if len(kinds) == 1 else "unread" if "unread" in kinds else ""
        if kinds <= {"int", "float", "data"}:
            kind = kind or ("data" if "data" in kinds else "float")
        named = min((a, b), key=lambda u: len(u.name) or 1000)
        found = Merged(
            a.reason,
            named.name,
            kind,
            places=merge_places(a.places, b.places),
            flags=a.flags | b.flags,
            query=a.query or b.query,
            flexible=a.flexible or b.flexible,
        )
        found.parts = (a, b)
        found.depth = 1 + max(p.depth if isinstance(p, Merged) else 0 for p in found.parts)
        _merged[(id(a), id(b))] = found
    return found


def present(v: Value) -> Value:
    """The value where it is there: the ways without it would raise."""
    return union(options_present(v)) if maybe_absent(v) else v


def guarded(value: Value, test: Value | None, when: Value, otherwise: Value) -> Value:
    """What a branch on `test` made one of two values: a later branch on it finds its own again."""
    if test is not None and type(value) is Union and value is not when and value is not otherwise:
        value.guard = (test, when, otherwise)
    return value
