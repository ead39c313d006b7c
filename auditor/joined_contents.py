"""What is in an environment, an object or a container where worlds meet that have changed it (see `auditor.heap`)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from auditor.joins import guarded, join, union
from auditor.values import (
    NO_FLAGS,
    Env,
    Instance,
    Mapping,
    Seq,
    Star,
    Union,
    Unknown,
    Value,
    origins,
)
from auditor.values.absence import Deleted, absent


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


def _different(a: dict[str, Value], b: dict[str, Value]) -> Iterator[tuple[str, Value | None, Value | None]]:
    """(name, value in a, value in b) of the names that have not the same value in both."""
    for name, x in a.items():
        y = b.get(name)
        if x is not y:
            yield name, x, y
    for name, y in b.items():
        if name not in a:
            yield name, None, y


def _perhaps(item: Value) -> Star | None:
    """What stands for an object that may be there, or for one of several; names must not be guessed."""
    match item:
        case Star():
            return item
        case Instance():
            return Star((item,))
        case Union(options=options) if all(isinstance(o, Instance) for o in options):
            return Star(options)
    return None


def _join_items(a: tuple[list[Value], Unknown | None], b: tuple[list[Value], Unknown | None]) -> Any:
    x, y = a[0], b[0]
    if len(x) == len(y):
        return [join(i, j) for i, j in zip(x, y, strict=True)], a[1] or b[1]
    short, long = (x, y) if len(x) < len(y) else (y, x)
    head = [join(i, j) for i, j in zip(short, long, strict=False)]
    extra = long[len(short) :]
    if all(isinstance(e, Star) for e in extra):
        return [*head, *extra], a[1] or b[1]
    perhaps = [_perhaps(e) for e in extra]
    if None not in perhaps:
        return [*head, *perhaps], a[1] or b[1]
    places, flags = origins(extra)
    return head, Unknown("items appended on one of two ways only", places=places, flags=flags or NO_FLAGS)
