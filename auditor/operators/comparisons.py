"""Comparisons: order, equality, identity, and what a container holds."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from typing import Any

from auditor import dims
from auditor.answers import every, negated, some
from auditor.joins import union
from auditor.objects.inheritance import class_lookup
from auditor.operators.results import derived, unknown_from
from auditor.operators.truths import defines, truth
from auditor.sameness import same
from auditor.values import (
    Bound,
    Class,
    Const,
    External,
    ExternalObject,
    Function,
    Instance,
    Mapping,
    Module,
    Native,
    NativeClass,
    Num,
    Pattern,
    Seq,
    Star,
    Tensor,
    Union,
    Unknown,
    Value,
    as_dim,
    key_of,
    text_of,
)
from auditor.values.absence import maybe_absent

COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_SOLID = (Seq, Mapping, Function, Class, Instance, Module, Native, NativeClass, Tensor, Bound, Pattern, Num)


def identical(a: Value, b: Value) -> bool | None:
    """`a is b`."""
    if isinstance(a, Const) and isinstance(b, Const):
        return type(a.value) is type(b.value) and bool(a.value == b.value)
    for x, y in ((a, b), (b, a)):
        if isinstance(x, Const) and (isinstance(y, _SOLID) or (x.value is None and _is_something(y))):
            return False
    if isinstance(a, External) and isinstance(b, External):
        return a.dotted == b.dotted
    if isinstance(a, Instance) and isinstance(b, Instance) and "_value_" in a.attrs and "_value_" in b.attrs:
        return a.cls is b.cls and same(a.attrs["name"], b.attrs["name"])  # members of an enumeration
    if a is b:
        return True
    if isinstance(a, _SOLID) and isinstance(b, _SOLID):
        made = [x for x in (a, b) if isinstance(x, Instance) and x.taint is not None]  # `__new__` may give one object
        return None if made or (isinstance(a, Seq) and same(a, b)) else False
    return None


def _is_something(v: Value) -> bool:
    """Whether a value that nobody knows is surely not `None`."""
    return isinstance(v, (External, ExternalObject)) or (isinstance(v, Unknown) and v.typed)


def compare(op: str, a: Value, b: Value) -> Value:
    """One comparison; the result is a bool, an unknown bool, or (for tensors) decided by the caller."""
    for x, y, left in ((a, b, True), (b, a, False)):
        if isinstance(x, Union):
            return asked(union(compare(op, o, y) if left else compare(op, y, o) for o in x.options), op, a, b)
    result = _compare(op, a, b)
    if result is None:
        return asked(unknown_from("a comparison with a value that is not known", "bool", a, b), op, a, b)
    return derived(result, a, b)


_SAME = {"==": "==", "is": "==", "!=": "!=", "is not": "!="}


def asked(result: Value, op: str, a: Value, b: Value) -> Value:
    """The result of a comparison, which knows what it asks when that is whether a value equals a constant."""
    if op in _SAME and isinstance(result, (Unknown, Union)):
        for x, y in ((a, b), (b, a)):
            if isinstance(x, (Unknown, Union, Num)) and isinstance(y, Const):
                result.test = (_SAME[op], x, y.value)
    return result


def _compare(op: str, a: Value, b: Value) -> bool | None:
    if op in ("is", "is not"):
        result = identical(a, b)
        return result if op == "is" else negated(result)
    if op in ("in", "not in"):
        found = contains(b, a)
        return found if op == "in" else negated(found)
    if isinstance(a, Const) and isinstance(b, Const):
        try:
            return bool(COMPARE[op](a.value, b.value))
        except TypeError:
            return None
    x, y = as_dim(a), as_dim(b)
    if x is not None and y is not None:
        if op in ("<", "<=", ">", ">=") and (_below(a, y) or _below(b, x)):
            return None
        return _compare_dims(op, x, y)
    a, b = _native_items(a), _native_items(b)
    if isinstance(a, Seq) and isinstance(b, Seq) and op not in ("==", "!="):
        return _compare_plain(op, a, b)
    if op in ("==", "!="):
        result = _equal(a, b)
        return result if op == "==" else negated(result)
    return None


def _below(v: Value, bound: dims.Dim) -> bool:
    """Whether an unknown number is compared with one that only negative ones are below: lengths are none, it may be."""
    return isinstance(v, Unknown) and isinstance(bound, int) and bound <= 0


def _native_items(v: Value) -> Value:
    """What is compared of a value: the items of an object of Python's own that has some."""
    match v:
        case Instance(payload=Seq() as items, cls=NativeClass()):
            return items
    return v


def _compare_plain(op: str, a: Seq, b: Seq) -> bool | None:
    """An ordering of two sequences of scalars."""
    if a.rest is not None or b.rest is not None:
        return None
    x, y = ([i.value for i in s.items if isinstance(i, Const)] for s in (a, b))
    sets = a.kind in SETS and b.kind in SETS
    if len(x) != len(a.items) or len(y) != len(b.items):
        return None if sets or not (a.exact and b.exact) else _compare_in_order(op, a.items, b.items)
    try:
        return bool(COMPARE[op](set(x), set(y)) if sets else COMPARE[op](x, y))
    except TypeError:
        return None


def _compare_in_order(op: str, a: list[Value], b: list[Value]) -> bool | None:
    """An ordering of items of which not all are known: the first two that differ tell, where all before are equal."""
    for x, y in zip(a, b, strict=False):
        less, more = truth(compare("<", x, y)), truth(compare(">", x, y))
        if less or more:
            return bool(COMPARE[op](0, 1) if less else COMPARE[op](1, 0))
        if less is None or more is None:
            return None
    return bool(COMPARE[op](len(a), len(b)))


SETS = frozenset({"set", "frozenset"})


def _same_items(a: Seq, b: Seq) -> bool | None:
    if a.kind in SETS and b.kind in SETS:
        return _same_members(a, b)
    if a.kind != b.kind:
        return False
    if not (a.exact and b.exact):
        return None
    if len(a.items) != len(b.items):
        return False
    return every([_same_item(x, y) for x, y in zip(a.items, b.items, strict=True)])


def _same_entries(a: Mapping, b: Mapping) -> bool | None:
    if a.rest is not None or b.rest is not None:
        return None
    if a.entries.keys() != b.entries.keys():
        return False if all(k[0] in ("str", "num") for k in (*a.entries, *b.entries)) else None
    return every([_same_item(a.entries[k][1], b.entries[k][1]) for k in a.entries])


def _same_members(a: Seq, b: Seq) -> bool | None:
    """Whether two sets are equal: in whatever order, and of whichever kind."""
    if not (a.exact and b.exact):
        return None
    x, y = ({key_of(i) for i in s.items} for s in (a, b))
    if all(k is not None and k[0] in ("str", "num") for k in x | y):
        return x == y
    return True if x == y and all(k is not None and k[0] in ("str", "num", "bool", "NoneType") for k in x) else None


def _compare_dims(op: str, x: dims.Dim, y: dims.Dim) -> bool | None:
    match op:
        case "<":
            return dims.less(x, y)
        case ">":
            return dims.less(y, x)
        case "<=":
            return negated(dims.less(y, x))
        case ">=":
            return negated(dims.less(x, y))
    equal = dims.equal(x, y)
    return equal if op == "==" else negated(equal)


def _equal(a: Value, b: Value) -> bool | None:
    # Two texts of one pattern need not be the same text, nor two sequences that hold such texts.
    if a is b or (not isinstance(a, (Unknown, Tensor, Pattern, Seq, Mapping)) and same(a, b)):
        return True
    if isinstance(a, (Unknown, Tensor, Star)) or isinstance(b, (Unknown, Tensor, Star)):
        return None
    for x, y in ((a, b), (b, a)):
        if isinstance(x, Instance) and "_value_" in x.attrs and _mixes_in(x.cls):
            other = y.attrs.get("_value_", y) if isinstance(y, Instance) else y
            return truth(compare("==", x.attrs["_value_"], other))
    if any(isinstance(x, Instance) and (x.taint is not None or not _plain(x)) for x in (a, b)):
        return None
    s, t = text_of(a), text_of(b)
    if s is not None and t is not None:
        return _patterns_differ(s, t)
    if (s is None) != (t is None):
        return False
    if isinstance(a, Seq) and isinstance(b, Seq):
        return _same_items(a, b)
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        return _same_entries(a, b)
    if isinstance(a, Const) != isinstance(b, Const):
        return False
    return identical(a, b)


def _plain(v: Instance) -> bool:
    """Whether equality of the object is what the object itself tells: no method of a class says otherwise."""
    if defines(v, "__eq__") or class_lookup(v.cls, "__getattr__")[0] is not None:
        return False
    return not _of_protobuf(v.cls)


def _of_protobuf(cls: Value) -> bool:
    if isinstance(cls, Class):
        return any(map(_of_protobuf, cls.bases))
    return isinstance(cls, NativeClass) and cls.name.startswith("coremltools.proto")


_MIXED_IN = ("str", "int", "enum.StrEnum", "enum.IntEnum", "enum.IntFlag")


def _mixes_in(cls: Value) -> bool:
    """Whether the members of an enumeration are strings or numbers as well."""
    bases = cls.bases if isinstance(cls, (Class, NativeClass)) else ()
    return getattr(cls, "name", "") in _MIXED_IN or any(map(_mixes_in, bases))


def _same_item(a: Value, b: Value) -> bool | None:
    """Whether two items are equal; an item may be one of several values."""
    return truth(compare("==", a, b))


def _patterns_differ(s: str, t: str) -> bool | None:
    """False when no string can match both patterns by their fixed ends; None otherwise."""
    head = min(len(s.split("*")[0]), len(t.split("*")[0]))
    tail = min(len(s.split("*")[-1]), len(t.split("*")[-1]))
    if s[:head] != t[:head] or (tail and s[-tail:] != t[-tail:]):
        return False
    return None


def contains(container: Value, item: Value) -> bool | None:
    """`item in container`."""
    s, t = text_of(container), text_of(item)
    if s is not None:
        if t is None:
            return None
        if "*" in t:
            return None
        return True if t in s.replace("*", "\0") else (None if "*" in s else False)
    if isinstance(container, Instance) and isinstance(container.payload, (Seq, Mapping)):
        return contains(container.payload, item)
    if isinstance(container, Mapping):
        sure = [k for k, v in container.entries.values() if not maybe_absent(v)]
        found = _among(sure, container.rest is None, item)
        if found is not False or len(sure) == len(container.entries):
            return found
        others = (k for k, v in container.entries.values() if maybe_absent(v))
        return False if all(_same_item(k, item) is False for k in others) else None
    if isinstance(container, Seq):
        return _among((i for i in container.items if not isinstance(i, Star)), container.exact, item)
    return None


def _among(values: Iterable[Value], closed: bool, item: Value) -> bool | None:
    found = some([_same_item(v, item) for v in values])
    return found if found or closed else None
