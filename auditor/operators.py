"""Operators, comparisons and truth on values. Nothing here changes anything: all functions are pure."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable
from typing import Any

from auditor import dims
from auditor.joins import maybe_absent, present, same, union
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
    merge_places,
    number,
    origins,
    text_of,
)

BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "//": operator.floordiv,
    "%": operator.mod,
    "**": operator.pow,
    "<<": operator.lshift,
    ">>": operator.rshift,
    "&": operator.and_,
    "|": operator.or_,
    "^": operator.xor,
}
UNARY: dict[str, Callable[[Any], Any]] = {"-": operator.neg, "+": operator.pos, "~": operator.invert}
COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_TEXT_LIMIT = 20_000


def derived(value: Any, *sources: Value) -> Const:
    places, flags = origins(sources)
    return Const(value, places=places, flags=flags)


def unknown_from(reason: str, kind: str, *sources: Value, name: str = "") -> Unknown:
    """An unknown computed from `sources`: the first unknown among them gives the reason."""
    first: Unknown | None = None
    query = flexible = False
    for s in sources:
        if type(s) is not Const:
            if first is None and isinstance(s, Unknown):
                first = s
            query = query or depends_on_query(s)
            flexible = flexible or is_flexible(s)
    places, flags = origins(sources)
    return Unknown(
        first.reason if first is not None else reason,
        name,
        kind,
        places=places,
        flags=flags,
        query=query,
        flexible=flexible,
    )


def depends_on_query(v: Value) -> bool:
    match v:
        case Num(dim=d):
            return d.query
        case Unknown(query=q):
            return q
        case Tensor(tags=tags):
            return "query" in tags
    return False


def is_flexible(v: Value) -> bool:
    """Whether a number differs from call to call, with the shapes of the graph's inputs."""
    match v:
        case Num(dim=d):
            return d.flexible
        case Unknown(flexible=f):
            return f
    return False


def truth(v: Value) -> bool | None:
    """`bool(v)`, or None when it is unknown."""
    match v:
        case Const(value=x):
            return bool(x)
        case Pattern(text=t):
            return True if t.replace("*", "") else None
        case Num(dim=d):
            return True if dims.less(0, d) else None
        case Seq(items=items, rest=rest):
            if any(not isinstance(i, Star) for i in items):
                return True
            return None if items or rest else False
        case Mapping(entries=entries, rest=rest):
            if any(not maybe_absent(e) for _, e in entries.values()):
                return True
            return None if entries or rest else False
        case Union(options=options):
            seen = {truth(o) for o in options}
            return seen.pop() if len(seen) == 1 else None
        case Unknown() | Tensor() | ExternalObject() | External():
            return None
        case Instance(payload=Seq() | Mapping() as inner):
            return truth(inner)
        case Instance() if _defines(v, "__bool__", "__len__"):
            return None
    return True


def _defines(v: Value, *names: str) -> bool:
    """Whether a class of the script, behind an instance, has one of these methods, or extends a built-in type."""
    from auditor.objects.inheritance import mro

    if not isinstance(v, Instance):
        return False
    return any(
        (isinstance(c, Class) and any(name in c.env.names for name in names)) or isinstance(c, Native)
        for c in mro(v.cls)
    )


def binary(op: str, a: Value, b: Value) -> Value:
    """`a op b` for scalars, text and containers. Tensors, paths and instances are the caller's business."""
    if isinstance(a, Union):
        return union(binary(op, x, b) for x in a.options)
    if isinstance(b, Union):
        return union(binary(op, a, y) for y in b.options)
    if isinstance(a, Const) and isinstance(b, Const):
        return _concrete(op, a, b)
    text = _text_binary(op, a, b)
    if text is not None:
        return text
    if isinstance(a, Seq) and isinstance(b, Seq) and op in "+|&-":
        return _sequences(op, a, b)
    if isinstance(a, Seq) and op == "*":
        return _repeat(a, b)
    if isinstance(b, Seq) and op == "*":
        return _repeat(b, a)
    if isinstance(a, Mapping) and isinstance(b, Mapping) and op == "|":
        merged = {**a.entries, **{k: over(a.entries.get(k), e) for k, e in b.entries.items()}}
        return Mapping(merged, a.rest or b.rest, places=merge_places(a.places, b.places), flags=a.flags | b.flags)
    x, y = as_dim(a), as_dim(b)
    if x is not None and y is not None:
        result = _dimensions(op, x, y)
        if result is not None:
            return number(result, (a, b))
        return unknown_from("arithmetic on an unknown number", "float", a, b, name=f"({op})")
    kinds = {_numeric(a), _numeric(b)} if op in _ARITHMETIC else {""}
    kind = "" if "" in kinds else "data" if "data" in kinds else "float"
    return unknown_from(f"`{op}` on a value that is not known", kind, a, b)


_ARITHMETIC = frozenset({"+", "-", "*", "/", "//", "%", "**"})


def _numeric(v: Value) -> str:
    """`number`, `data` for plain data that may be one (or an array of them), else empty."""
    match v:
        case Num() | Const(value=bool() | int() | float()) | Unknown(kind="int" | "float" | "bool"):
            return "number"
        case Unknown(kind="data"):
            return "data"
    return ""


def over(old: tuple[Value, Value] | None, new: tuple[Value, Value]) -> tuple[Value, Value]:
    """An entry that is written over another: one that may be absent leaves the old one on that way."""
    if old is None or not maybe_absent(new[1]):
        return new
    return new[0], union([old[1], present(new[1])])


def _concrete(op: str, a: Const, b: Const) -> Value:
    x, y = a.value, b.value
    if op == "**" and (not isinstance(y, (int, float)) or abs(y) > 64 or (isinstance(x, int) and abs(x) > 1 << 32)):
        return unknown_from("a power too large to compute", "int", a, b)
    if op == "<<" and (not isinstance(y, int) or y > 128):
        return unknown_from("a shift too large to compute", "int", a, b)
    if op == "*" and isinstance(x, (str, bytes)) and isinstance(y, int) and len(x) * y > _TEXT_LIMIT:
        return unknown_from("a text too long to compute", "str", a, b)
    try:
        return derived(BINARY[op](x, y), a, b)
    except Exception as error:  # the script would raise here
        return unknown_from(f"`{op}` raises {type(error).__name__}", "", a, b)


def _text_binary(op: str, a: Value, b: Value) -> Value | None:
    x, y = text_of(a), text_of(b)
    if op == "+" and (x is not None or y is not None):
        if (x is None and not isinstance(a, Unknown)) or (y is None and not isinstance(b, Unknown)):
            return None
        return pattern((x or "*") + (y or "*"), a, b)
    if op == "%" and x is not None:
        given = b.items if isinstance(b, Seq) and b.kind == "tuple" else [b]
        if isinstance(a, Const) and all(isinstance(g, Const) for g in given):
            try:
                return derived(x % tuple(g.value for g in given if isinstance(g, Const)), a, b)
            except (TypeError, ValueError):
                pass
        return pattern(_percent(x), a, b)
    return None


_PERCENT = re.compile(r"%(?:\([^)]*\))?[-+ #0]*(?:\*|\d+)?(?:\.(?:\*|\d+)?)?[hlL]?([a-zA-Z%])")


def _percent(x: str) -> str:
    return _PERCENT.sub(lambda m: "%" if m[1] == "%" else "*", x)


def pattern(text: str, *sources: Value) -> Value:
    """A string with `*` for what is unknown."""
    while "**" in text:
        text = text.replace("**", "*")
    places, flags = origins(sources)
    return Pattern(text, places=places, flags=flags) if "*" in text else Const(text, places=places, flags=flags)


def _sequences(op: str, a: Seq, b: Seq) -> Value:
    places, flags = merge_places(a.places, b.places), a.flags | b.flags
    if op == "+":
        return Seq(a.kind, [*a.items, *b.items], a.rest or b.rest, places=places, flags=flags)
    if not (a.exact and b.exact):
        return unknown_from("a set operation on a set that is not known", "set", a, b)
    keys = {key_of(i) for i in b.items}
    if op == "|":
        mine = {key_of(i) for i in a.items}
        items = [*a.items, *(i for i in b.items if key_of(i) not in mine)]
    elif op == "&":
        items = [i for i in a.items if key_of(i) in keys]
    else:
        items = [i for i in a.items if key_of(i) not in keys]
    return Seq(a.kind, items, places=places, flags=flags)


def _repeat(a: Seq, b: Value) -> Value:
    if isinstance(b, Const) and isinstance(b.value, int):
        if len(a.items) * b.value > 4096:
            return Seq(a.kind, [Star(tuple(a.items))], places=a.places, flags=a.flags | b.flags)
        return Seq(a.kind, a.items * b.value, a.rest, places=merge_places(a.places, b.places), flags=a.flags | b.flags)
    times = as_dim(b) if a.exact else None
    count = None if times is None else dims.mul(len(a.items), times)
    return Seq(a.kind, [Star(tuple(a.items), count)], places=merge_places(a.places, b.places), flags=a.flags | b.flags)


def _dimensions(op: str, x: dims.Dim, y: dims.Dim) -> dims.Dim | None:
    match op:
        case "+":
            return dims.add(x, y)
        case "-":
            return dims.sub(x, y)
        case "*":
            return dims.mul(x, y)
        case "//":
            return dims.floordiv(x, y)
        case "/":
            return dims.exact_div(x, y)
        case "%":
            return dims.mod(x, y)
    return None


def opposite(result: Value, a: Value) -> Value:
    """`not a`, which knows what it asks."""
    if isinstance(result, (Unknown, Union)) and isinstance(a, (Unknown, Union)):
        result.test = ("not", a, None)
    return result


def unary(op: str, a: Value) -> Value:
    if isinstance(a, Union):
        made = union(unary(op, x) for x in a.options)
        return opposite(made, a) if op == "not" else made
    if op == "not":
        t = truth(a)
        made = unknown_from("the truth of a value that is not known", "bool", a) if t is None else derived(not t, a)
        return opposite(made, a)
    if isinstance(a, Const):
        try:
            return derived(UNARY[op](a.value), a)
        except TypeError:
            return unknown_from(f"`{op}` on {type(a.value).__name__}", "", a)
    d = as_dim(a)
    if d is not None and op in "-+":
        return number(dims.neg(d) if op == "-" else d, (a,))
    return unknown_from(f"`{op}` on a value that is not known", "", a)


_SOLID = (Seq, Mapping, Function, Class, Instance, Module, Native, NativeClass, Tensor, Bound, Pattern, Num)


def identical(a: Value, b: Value) -> bool | None:
    """`a is b`."""
    if isinstance(a, Const) and isinstance(b, Const):
        return type(a.value) is type(b.value) and bool(a.value == b.value)
    for x, y in ((a, b), (b, a)):
        if isinstance(x, Const) and isinstance(y, _SOLID):
            return False
        if isinstance(x, Const) and x.value is None and isinstance(y, Unknown) and y.typed:
            return False
        if isinstance(x, Const) and x.value is None and isinstance(y, (External, ExternalObject)):
            return False
    if isinstance(a, External) and isinstance(b, External):
        return a.dotted == b.dotted
    if isinstance(a, Instance) and isinstance(b, Instance) and "_value_" in a.attrs and "_value_" in b.attrs:
        return a.cls is b.cls and same(a.attrs["name"], b.attrs["name"])  # members of an enumeration
    if isinstance(a, _SOLID) and isinstance(b, _SOLID):
        return a is b or (isinstance(a, Seq) and same(a, b))
    return True if a is b else None


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
            if isinstance(x, (Unknown, Union)) and isinstance(y, Const):
                result.test = (_SAME[op], x, y.value)
    return result


def _compare(op: str, a: Value, b: Value) -> bool | None:
    if op in ("is", "is not"):
        result = identical(a, b)
        return result if result is None or op == "is" else not result
    if op in ("in", "not in"):
        found = contains(b, a)
        return found if found is None or op == "in" else not found
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
    if isinstance(a, Seq) and isinstance(b, Seq) and op not in ("==", "!="):
        return _compare_plain(op, a, b)
    if op in ("==", "!="):
        result = _equal(a, b)
        return result if result is None or op == "==" else not result
    return None


def _below(v: Value, bound: dims.Dim) -> bool:
    """Whether an unknown number is compared with one that only negative ones are below: lengths are none, it may be."""
    return isinstance(v, Unknown) and isinstance(bound, int) and bound <= 0


def _compare_plain(op: str, a: Seq, b: Seq) -> bool | None:
    """An ordering of two sequences of scalars."""
    x, y = ([i.value for i in s.items if isinstance(i, Const)] for s in (a, b))
    if len(x) != len(a.items) or len(y) != len(b.items) or a.rest is not None or b.rest is not None:
        return None
    try:
        return bool(COMPARE[op](x, y))
    except TypeError:
        return None


def _compare_dims(op: str, x: dims.Dim, y: dims.Dim) -> bool | None:
    match op:
        case "<":
            return dims.less(x, y)
        case ">":
            return dims.less(y, x)
        case "<=":
            r = dims.less(y, x)
            return None if r is None else not r
        case ">=":
            r = dims.less(x, y)
            return None if r is None else not r
    r = dims.equal(x, y)
    return r if r is None or op == "==" else not r


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
    if isinstance(a, Seq) and isinstance(b, Seq) and a.exact and b.exact:
        if a.kind != b.kind or len(a.items) != len(b.items):
            return False
        parts = [_same_item(x, y) for x, y in zip(a.items, b.items, strict=True)]
        return False if False in parts else None if None in parts else True
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        if a.rest is not None or b.rest is not None:
            return None
        if a.entries.keys() != b.entries.keys():
            return False if all(k[0] in ("str", "num") for k in (*a.entries, *b.entries)) else None
        parts = [_same_item(a.entries[k][1], b.entries[k][1]) for k in a.entries]
        return False if False in parts else None if None in parts else True
    if isinstance(a, Seq) and isinstance(b, Seq):
        return None if a.kind == b.kind else False
    if isinstance(a, Const) != isinstance(b, Const):
        return False
    return identical(a, b)


def _plain(v: Instance) -> bool:
    """Whether equality of the object is what the object itself tells: no method of a class says otherwise."""
    from auditor.objects.inheritance import class_lookup

    if _defines(v, "__eq__") or class_lookup(v.cls, "__getattr__")[0] is not None:
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
    seen = [_same_item(v, item) for v in values]
    if True in seen:
        return True
    return None if None in seen or not closed else False
