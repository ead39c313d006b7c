"""Joining values and contents where worlds meet: equal things stay, a few different ones are kept as a union."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

from auditor import dims
from auditor.values import (
    MAX_OPTIONS,
    NO_FLAGS,
    Bound,
    Const,
    Env,
    External,
    Function,
    Instance,
    Mapping,
    Native,
    Num,
    Pattern,
    Seq,
    Star,
    Tensor,
    Union,
    Unknown,
    Value,
    as_dim,
    merge_places,
    origins,
)

_DEPTH = 4
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


def same(a: Value, b: Value, depth: int = _DEPTH) -> bool:
    """Whether two values cannot be told apart (places and flags aside)."""
    if a is b:
        return True
    if type(a) is not type(b) and not (isinstance(a, Unknown) and isinstance(b, Unknown)):
        return False
    match a, b:
        case Const(value=x), Const(value=y):
            return type(x) is type(y) and bool(x == y)
        case Num(dim=x), Num(dim=y):
            return x == y
        case Pattern(text=x), Pattern(text=y):
            return x == y
        case Tensor(), Tensor():
            alike = a.shape == b.shape and a.dtype == b.dtype and a.base is b.base and a.tags == b.tags
            # what has no shape is unknown anyway; of the others, one may have passed through code that nobody read
            return alike and (a.shape is None or ((a.reason is None) == (b.reason is None) and a.cuts == b.cuts))
        case Seq(), Seq() if depth and a.kind == b.kind and len(a.items) == len(b.items) and a.rest is b.rest:
            return all(same(x, y, depth - 1) for x, y in zip(a.items, b.items, strict=True))
        case Star(items=x), Star(items=y):
            alike = a.count == b.count and len(x) == len(y) and (a.replaced is None) == (b.replaced is None)
            return alike and all(same(i, j, depth - 1) for i, j in zip(x, y, strict=True))
        case Mapping(), Mapping() if depth and a.entries.keys() == b.entries.keys() and a.rest is b.rest:
            return all(same(a.entries[k][1], b.entries[k][1], depth - 1) for k in a.entries)
        case Instance(), Instance() if depth and a.cls is b.cls and a.attrs.keys() == b.attrs.keys():
            held = _holds_same(a.payload, b.payload, depth)
            return held and all(same(a.attrs[k], b.attrs[k], depth - 1) for k in a.attrs)
        case External(dotted=x), External(dotted=y):
            return x == y
        case Native(function=x), Native(function=y):
            return x is y
        case Bound(), Bound():
            return a.function is b.function and same(a.receiver, b.receiver, depth - 1)
        case Union(), Union() if len(a.options) == len(b.options) and _guarded_alike(a, b, depth):
            return all(same(x, y, depth - 1) for x, y in zip(a.options, b.options, strict=True))
        case Unknown(), Unknown():
            return a.reason == b.reason and a.name == b.name and a.name != ""
    return False


def _guarded_alike(a: Union, b: Union, depth: int) -> bool:
    if a.guard is None or b.guard is None:
        return a.guard is b.guard
    (test, *values), (other, *others) = a.guard, b.guard
    return test is other and all(same(x, y, depth - 1) for x, y in zip(values, others, strict=True))


def _holds_same(a: Any, b: Any, depth: int) -> bool:
    if isinstance(a, Value) and isinstance(b, Value):
        return same(a, b, depth - 1)
    return a is b or (type(a) is type(b) and bool(a == b))


def congruent(a: Value, b: Value, seen: set[tuple[int, int]] | None = None) -> bool:
    """Whether two objects were made alike: equal scalars and shapes all the way down, identities aside.

    A loop body that is evaluated again makes its objects anew; congruent ones stand for the same repeated element.
    """
    seen = set() if seen is None else seen
    if a is b or (id(a), id(b)) in seen:
        return True
    seen.add((id(a), id(b)))
    match a, b:
        case Instance(), Instance():
            if a.cls is not b.cls or a.attrs.keys() != b.attrs.keys():
                return False
            payloads = isinstance(a.payload, Value) and isinstance(b.payload, Value)
            return (congruent(a.payload, b.payload, seen) if payloads else type(a.payload) is type(b.payload)) and all(
                congruent(a.attrs[k], b.attrs[k], seen) for k in a.attrs
            )
        case Tensor(), Tensor():
            return str(a.shape) == str(b.shape)
        case Num(), Num():
            return str(a.dim) == str(b.dim)
        case Unknown(), Unknown():
            return a.reason == b.reason
        case Seq(), Seq():
            return (
                a.kind == b.kind
                and len(a.items) == len(b.items)
                and all(congruent(x, y, seen) for x, y in zip(a.items, b.items, strict=True))
            )
        case Star(items=x), Star(items=y):
            return len(x) == len(y) and all(congruent(i, j, seen) for i, j in zip(x, y, strict=True))
        case Union(options=x), Union(options=y):
            return len(x) == len(y) and all(congruent(i, j, seen) for i, j in zip(x, y, strict=True))
        case Mapping(), Mapping():
            return a.entries.keys() == b.entries.keys() and all(
                congruent(a.entries[k][1], b.entries[k][1], seen) for k in a.entries
            )
        case Bound(), Bound():
            return congruent(a.function, b.function, seen) and congruent(a.receiver, b.receiver, seen)
        case Function(), Function():
            return a.node is b.node
    return same(a, b)


def join(a: Value, b: Value) -> Value:
    """One value that stands for either."""
    if a is b:
        return a
    if same(a, b):
        if a.flags == b.flags:
            return a
        return a if a.flags >= b.flags else b
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


def _maybe_number(v: Value) -> bool:
    return isinstance(v, Unknown) and v.kind in ("", "data") and not isinstance(v, Absent)


def _number(v: Value) -> bool:
    return (
        isinstance(v, Num)
        or (isinstance(v, Unknown) and v.kind in ("int", "float"))
        or (isinstance(v, Const) and isinstance(v.value, (int, float)) and not isinstance(v.value, bool))
    )


_PICKED = frozenset({"argmax", "topk"})


def _join_tensors(a: Tensor, b: Tensor) -> Value:
    if (a.tags ^ b.tags) & _PICKED:
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
            if len(flat) > MAX_OPTIONS or not any(same(o, f) for f in flat):
                flat.append(o)  # beyond that many nothing is kept of them but their origins
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


def join_contents(obj: Any, contents: list[Any], test: Value | None = None) -> Any:
    """The join of the contents that an object has in several worlds (see `Heap.join`).

    `test` is the condition, when it is true in the first of two worlds and false in the second.
    """
    first, *others = contents
    for other in others:
        if other is not first:
            first = _join_two(obj, first, other, test)
    return first


def _join_two(obj: Any, a: Any, b: Any, test: Value | None) -> Any:
    match obj:
        case Env():
            return _join_names(a, b, test)
        case Unknown():
            return _join_attributes(a, b, test)
        case Instance():
            payload, differs = _join_payloads(a[1], b[1])
            return _join_attributes(a[0], b[0], test), payload, a[2] or b[2] or differs
        case Mapping():
            entries = dict(a[0])
            rest = a[1] or b[1]
            for key in {**a[0], **b[0]}:
                if key in a[0] and key in b[0]:
                    entries[key] = (a[0][key][0], join(a[0][key][1], b[0][key][1]))
                else:
                    name, value = a[0].get(key) or b[0][key]
                    entries[key] = (name, union([value, absent(value)]))
            return entries, rest
        case Seq():
            return _join_items(a, b)
    raise TypeError(type(obj).__name__)


def _join_payloads(a: Any, b: Any) -> tuple[Any, Unknown | None]:
    """What an object holds after either of two ways, and why that is not known when no one thing stands for both."""
    if a is b or (type(a) is type(b) and a == b):
        return a, None
    if isinstance(a, Seq) and isinstance(b, Seq):
        return Seq(a.kind, *_join_items((a.items, a.rest), (b.items, b.rest))), None
    return a if a is not None else b, Unknown("what an object holds differs on two ways")


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


class Absent(Unknown):
    """A name or key that exists in some worlds only."""


class Deleted(Unknown):
    """What is left of a name after `del`."""


def absent(value: Value) -> Absent:
    """What stands beside a value on the way on which it is not set."""
    return Absent("set on one of two ways only", places=value.places, flags=value.flags)


def maybe_absent(v: Value) -> bool:
    """Whether an entry or attribute is not there on one of the ways."""
    return isinstance(v, Union) and any(isinstance(o, Absent) for o in v.options)


def options_present(v: Value) -> list[Value]:
    """What a value may be on the ways on which it is there."""
    return [o for o in v.options if not isinstance(o, Absent)] if isinstance(v, Union) else [v]


def present(v: Value) -> Value:
    """The value where it is there: the ways without it would raise."""
    return union(options_present(v)) if maybe_absent(v) else v


def guarded(value: Value, test: Value | None, when: Value, otherwise: Value) -> Value:
    """What a branch on `test` made one of two values: a later branch on it finds its own again."""
    if test is not None and type(value) is Union and value is not when and value is not otherwise:
        value.guard = (test, when, otherwise)
    return value


def _different(a: dict[str, Value], b: dict[str, Value]) -> Iterator[tuple[str, Value | None, Value | None]]:
    """(name, value in a, value in b) of the names that have not the same value in both."""
    for name, x in a.items():
        y = b.get(name)
        if x is not y:
            yield name, x, y
    for name, y in b.items():
        if name not in a:
            yield name, None, y


def _join_names(a: dict[str, Value], b: dict[str, Value], test: Value | None) -> dict[str, Value]:
    out = dict(a)
    for name, x, y in _different(a, b):
        # A name that one way does not bind would raise there if it were read: the other way is the one that goes on.
        if type(x) is Deleted or type(y) is Deleted:
            x, y = (y, None) if type(x) is Deleted else (x, None)
        if x is not None and y is not None:
            out[name] = guarded(join(x, y), test, x, y)
        else:
            out[name] = x or y  # type: ignore[assignment]
    return out


def _join_attributes(a: dict[str, Value], b: dict[str, Value], test: Value | None) -> dict[str, Value]:
    out = dict(a)
    for name, x, y in _different(a, b):
        if x is not None and y is not None:
            out[name] = guarded(join(x, y), test, x, y)
        else:
            one = x or y
            assert one is not None
            gone = absent(one)
            out[name] = guarded(union([one, gone]), test, x or gone, y or gone)
    return out


def _join_items(a: tuple[list[Value], Unknown | None], b: tuple[list[Value], Unknown | None]) -> Any:
    x, y = a[0], b[0]
    if len(x) == len(y):
        return [join(i, j) for i, j in zip(x, y, strict=True)], a[1] or b[1]
    short, long = (x, y) if len(x) < len(y) else (y, x)
    head = [join(i, j) for i, j in zip(short, long, strict=False)]
    extra = long[len(short) :]
    if all(isinstance(e, Star) for e in extra):
        return [*head, *extra], a[1] or b[1]
    if all(isinstance(e, (Star, Instance)) for e in extra):  # objects that may be there; names must not be guessed
        return [*head, *(e if isinstance(e, Star) else Star((e,)) for e in extra)], a[1] or b[1]
    places, flags = origins(extra)
    return head, Unknown("items appended on one of two ways only", places=places, flags=flags or NO_FLAGS)
