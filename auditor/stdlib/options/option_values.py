"""What an option is worth: from the word that the command line gives, or its default without one."""

from __future__ import annotations

import argparse
from dataclasses import replace
from typing import Any

from auditor import operators
from auditor.interpreter import ExitSignal, Interpreter
from auditor.joins import union
from auditor.places import Site
from auditor.stdlib.files import PATH, make_path
from auditor.stdlib.options.option import CONST, LISTED, MISSING, Option, Parser
from auditor.values import (
    FALSE,
    NONE,
    TRUE,
    Args,
    Const,
    External,
    Instance,
    Mapping,
    Native,
    Seq,
    Union,
    Unknown,
    Value,
    is_none,
    merge_places,
    text_of,
)


def value_of(it: Interpreter, options: list[Option], raw: Any, parser: Parser) -> Value:
    """The value of a destination: several options may write to it, and the first one has its default."""
    first = options[0]
    flags = frozenset(o.flag for o in options)
    places = tuple(o.site for o in options if o.site)
    listed = any(o.action in LISTED for o in options)
    if raw is MISSING or (raw is None and listed) or (raw == [] and first.positional):
        value = default_value(it, first)
    elif isinstance(raw, list):
        before = default_value(it, first) if listed else NONE
        kept = before.items if isinstance(before, Seq) else []
        value = Seq("list", [*kept, *(given_value(it, options, r, parser) for r in raw)])
    elif first.action == "count":
        before = default_value(it, first)
        value = Const(raw) if before is NONE else operators.binary("+", before, Const(raw))
    else:
        value = given_value(it, options, raw, parser)
    return marked(value, places, flags)


def given_value(it: Interpreter, options: list[Option], raw: Any, parser: Parser) -> Value:
    """One value from the command line. Where the parser would refuse it as no choice, any choice may be meant."""
    if not isinstance(raw, str):
        return Const(raw)
    if raw.startswith(CONST):
        return parser.options[int(raw.removeprefix(CONST))].settings.get("const", NONE)
    option = next((o for o in options if o.kind != "switch"), options[0])
    value = _converted(it, option, raw)
    # argparse compares what `type` made of the word, typer and click the word itself
    allowed = Seq("list", option.choices) if option.choices is not None else None
    if allowed is not None and all(operators.contains(allowed, v) is False for v in (value, Const(raw))):
        it.sinks.problem(f"{option.flag} has no choice {raw!r}", option.site)
        return union(option.choices) if option.choices else value
    return value


def marked(value: Value, places: tuple[Site, ...], flags: frozenset[str]) -> Value:
    if isinstance(value, (Seq, Mapping, Instance, Unknown, Union)):
        if isinstance(value, Instance):
            value = Instance(value.cls, value.attrs, value.payload)
        value.places = merge_places(places, value.places)
        value.flags = value.flags | flags
        if isinstance(value, Union):
            return Union(tuple(marked(o, places, flags) for o in value.options), places=places, flags=flags)
        return value
    return replace(value, places=merge_places(places, value.places), flags=value.flags | flags)


def default_of(option: Option) -> Value | None:
    """The default that was given: the last one, when the script has set it on what `add_argument` gave."""
    own = option.handle.attrs.get("default") if option.handle is not None else None
    return own if own is not None else option.settings.get("default")


def suppressed(default: Value | None) -> bool:
    return isinstance(default, Const) and default.value == argparse.SUPPRESS


def default_value(it: Interpreter, option: Option) -> Value:
    """What an option is that the command line does not give: an environment variable (click, typer) may say it."""
    plain, named = _plain_default(it, option), option.settings.get("envvar", NONE)
    if is_none(named):
        return plain
    if option.choices:
        return union([plain, *option.choices])
    kind = "bool" if option.action in ("store_true", "boolean") else _kind(option)
    reason = f"an environment variable (`envvar`) may say what `{option.flag}` is"
    places = (option.site,) if option.site else ()
    return union([plain, Unknown(reason, f"environ[{text_of(named) or '*'}]", kind, places=places)])


def _plain_default(it: Interpreter, option: Option) -> Value:
    given = default_of(option)
    if given is not None:
        if isinstance(given, Const) and isinstance(given.value, str) and "type" in option.settings:
            return _converted(it, option, given.value)
        if isinstance(given, Seq) and given.kind in ("list", "tuple"):
            return Seq(given.kind, list(given.items), given.rest, places=given.places)
        return given
    if option.action in ("store_true", "boolean", "version", "help"):
        return FALSE if option.action != "boolean" else NONE
    if option.action == "store_false":
        return TRUE
    if option.action == "count":
        return NONE
    nargs = option.settings.get("nargs")
    optional = isinstance(nargs, Const) and nargs.value in ("?", "*")
    required = operators.truth(option.settings["required"]) if "required" in option.settings else False
    if (option.positional and not optional) or required:
        return _required(option)
    return Seq("list", []) if option.positional and isinstance(nargs, Const) and nargs.value == "*" else NONE


def _required(option: Option) -> Value:
    """A required option without a default: one of its choices, or an unknown of its type."""
    choices = option.choices
    if choices:
        return union(choices)
    kind = _kind(option)
    if _type_name(option) == "path":
        return make_path("*")
    reason = f"`{option.flag}` has no default: the command line decides"
    return Unknown(reason, option.flag, kind, places=(option.site,) if option.site else ())


def _kind(option: Option) -> str:
    """The Python type of an option's value, as an `Unknown.kind`."""
    name = _type_name(option)
    return name if name in ("int", "float", "bool") else "str"


def _type_name(option: Option) -> str:
    given = option.settings.get("type")
    if given is PATH:
        return "path"
    return given.name if isinstance(given, Native) else ""


def _converted(it: Interpreter, option: Option, text: str) -> Value:
    name = _type_name(option)
    given = option.settings.get("type")
    if given is None or name == "str":
        return Const(text)
    if name in ("int", "float"):
        try:
            return Const(int(text) if name == "int" else float(text))
        except ValueError:
            it.sinks.problem(f"{option.flag} takes a number, not {text!r}", option.site)
            raise ExitSignal("SystemExit") from None
    if name == "path":
        return make_path(text)
    if isinstance(given, External):
        return Const(text)
    return it.call(given, Args([Const(text)]), option.site)
