"""Methods and attributes of numbers, bytes and other plain values: Python's own, on values that are known."""

from __future__ import annotations

from typing import Any

from auditor import operators
from auditor.interpreter import Interpreter, RaiseSignal
from auditor.places import Site
from auditor.values import Args, Bound, Const, Native, Seq, Unknown, Value

_WIDEST = 10_000


def large(number: Any) -> bool:
    """Whether a number is no width, power or count that a result is surely made of in no time."""
    return isinstance(number, int) and abs(number) > _WIDEST


def scalar_attribute(obj: Const, name: str) -> Value:
    """An attribute of the value itself. Raises `RaiseSignal` where it has none."""
    if not hasattr(obj.value, name):
        raise RaiseSignal("AttributeError")
    found = getattr(obj.value, name)
    if not callable(found):
        return Const(found)

    def method(it: Interpreter, args: Args, site: Site | None) -> Value:
        given = [a.value for a in args.pos[1:] if isinstance(a, Const) and not large(a.value)]
        if len(given) == len(args.pos) - 1 and not args.kw:
            result = found(*given)
            return Const(result) if isinstance(result, (int, float, str, bytes, bool, type(None))) else wrapped(result)
        return operators.unknown_from("a method with arguments that are not known", "", *args.pos)

    return Bound(Native(name, method), obj)


def wrapped(result: Any) -> Value:
    """What a method of a value of Python gives, as a value of ours."""
    if isinstance(result, (list, tuple)):
        return Seq("list" if isinstance(result, list) else "tuple", [wrapped(r) for r in result])
    return (
        Const(result)
        if isinstance(result, (int, float, str, bytes, bool, type(None)))
        else Unknown("a value of a built-in method")
    )
