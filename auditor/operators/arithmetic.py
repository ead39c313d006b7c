"""Operators on scalars, text and containers."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from typing import Any

from auditor import dims
from auditor.joins import present, union
from auditor.operators.results import derived, pattern, unknown_from
from auditor.operators.truths import truth
from auditor.values import (
    Const,
    Mapping,
    Num,
    Seq,
    Star,
    Union,
    Unknown,
    Value,
    as_dim,
    key_of,
    merge_places,
    number,
    text_of,
)
from auditor.values.absence import maybe_absent

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
UNARY: dict[str, Callable[[Any], Any]] = {
    "-": operator.neg,
    "+": operator.pos,
    "~": lambda x: ~int(x) if isinstance(x, bool) else ~x,  # newer Pythons warn of `~True`
}
_TEXT_LIMIT = 20_000


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


def _sequences(op: str, a: Seq, b: Seq) -> Value:
    places, flags = merge_places(a.places, b.places), a.flags | b.flags
    if op == "+":
        return Seq(a.kind, [*a.items, *b.items], a.rest or b.rest, places=places, flags=flags)
    if not (a.exact and b.exact):
        return unknown_from("a set operation on a set that is not known", "set", a, b)
    mine, keys = ({key_of(i) for i in s.items} for s in (a, b))
    if None in mine | keys:
        return unknown_from("a set operation on members that are not known", "set", a, b)
    if op == "|":
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
    """`op a` for scalars; tensors are the business of the caller."""
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
