"""Built-in functions that make text and bytes."""

from __future__ import annotations

from collections.abc import Callable

from auditor import operators
from auditor.expressions.text import format_value
from auditor.interpreter import Interpreter, RaiseSignal
from auditor.joins import union
from auditor.places import Site
from auditor.values import Args, Const, Instance, Pattern, Union, Unknown, Value


def as_text(it: Interpreter, args: Args, site: Site | None) -> Value:
    if not args.pos:
        return Const("")
    value = args.pos[0]
    if isinstance(value, Union):
        return union(as_text(it, Args([o]), site) for o in value.options)
    if isinstance(value, Instance) and not isinstance(value.payload, (Const, Pattern)):
        try:
            return it.call(it.get(value, "__str__", site), Args(), site)
        except RaiseSignal:
            pass
    return operators.pattern(format_value(value, "", None), value)


def _repr(it: Interpreter, args: Args, site: Site | None) -> Value:
    return operators.pattern(format_value(args.pos[0], "", "r"), args.pos[0])


def _chr(it: Interpreter, args: Args, site: Site | None) -> Value:
    v = args.pos[0]
    return operators.derived(chr(v.value), v) if isinstance(v, Const) else operators.pattern("*", v)


def _ord(it: Interpreter, args: Args, site: Site | None) -> Value:
    v = args.pos[0]
    return operators.derived(ord(v.value), v) if isinstance(v, Const) else operators.unknown_from("ord()", "int", v)


FUNCTIONS: dict[str, Callable[..., Value]] = {
    "str": as_text,
    "repr": _repr,
    "format": lambda it, args, site: operators.pattern("*", *args.pos),
    "hex": lambda it, args, site: operators.pattern("*", *args.pos),
    "bin": lambda it, args, site: operators.pattern("*", *args.pos),
    "chr": _chr,
    "ord": _ord,
    "bytes": lambda it, args, site: Unknown("bytes", "bytes", "bytes"),
    "bytearray": lambda it, args, site: Unknown("bytes", "bytearray", "bytes"),
    "memoryview": lambda it, args, site: Unknown("bytes", "memoryview", "bytes"),
}
