"""Whether two values cannot be told apart, and whether two objects were made alike."""

from __future__ import annotations

from typing import Any

from auditor.values import (
    Bound,
    Const,
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
)

_DEPTH = 4


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
        case Native(name=x, function=f), Native(name=y, function=g):
            return f is g and x == y  # one function of ours stands for many that nobody follows
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
