"""A command line is split by the real `argparse`, from a parser that the script has declared."""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Hashable, Iterator, Sequence
from typing import Any

from auditor.command_lines import Due
from auditor.interpreter import ExitSignal, Interpreter
from auditor.joins import union
from auditor.objects.inheritance import OBJECT, class_lookup
from auditor.stdlib.options.option import CONST, MISSING, OWN, Option, Parser
from auditor.stdlib.options.option_values import default_of, given_value, marked, suppressed, value_of
from auditor.values import NONE, Args, Const, Instance, NativeClass, Seq, Value

PARSER = NativeClass("argparse.ArgumentParser")
"""Its methods are in `argparse_model`, which puts them in."""
NAMESPACE: NativeClass = NativeClass(
    "argparse.Namespace",
    {"__new__": lambda it, args, site: Instance(NAMESPACE, dict(args.kw), taint=args.more)},
    (OBJECT,),
    closed=True,
)


def command_line(it: Interpreter) -> list[str] | None:
    """The words behind the script's name, as far as the script has left or made them; None when one is not known."""
    words = it.loader.patched.get("sys.argv")
    if words is None:
        return list(it.argv)
    if not isinstance(words, Seq) or not words.exact:
        return None
    texts = [w.value for w in words.items[1:] if isinstance(w, Const) and isinstance(w.value, str)]
    return texts if len(texts) == len(words.items[1:]) else None


def parse_arguments(
    it: Interpreter, parser: Parser, argv: Sequence[str], namespace: Value | None = None, reader: Hashable = None
) -> tuple[Instance, list[str]]:
    """(namespace, unrecognised arguments) for a command line, which `reader` is called with (None: it goes on).

    Raises `Again` when an earlier run came to the same, `Due` when the run is about the choices that have to be made.
    """
    kept = frozenset(_named(namespace, parser)) if isinstance(namespace, Instance) else frozenset()
    target, rest = _parse_into(it, parser, argv, namespace, kept)
    if it.command_lines.choosing and any(o.must_choose for o in it.flag_table.values()):
        raise Due
    it.command_lines.met(reader, target.attrs, rest, [message for message, _ in it.sinks.problems])
    return target, rest


def _named(namespace: Instance, parser: Parser) -> Iterator[str]:
    """The destinations that a namespace of the script's own has before the command line is parsed."""
    yield from namespace.attrs
    yield from (o.dest for o in parser.options if class_lookup(namespace.cls, o.dest)[0] is not None)


def _parse_into(
    it: Interpreter,
    parser: Parser,
    argv: Sequence[str],
    namespace: Value | None = None,
    kept: frozenset[str] = frozenset(),
) -> tuple[Instance, list[str]]:
    """(namespace, unrecognised arguments); a default does not replace what is `kept`."""
    real = argparse.ArgumentParser(add_help=False, exit_on_error=False)
    shared: dict[str, list[Option]] = {}
    for number, option in enumerate(parser.options):
        shared.setdefault(option.dest, []).append(option)
        _add_real(real, option, f"{CONST}{number}")
    command_argv: list[str] = []
    if parser.commands:
        real.add_argument("_command", nargs="?", default=None)
        real.add_argument("_rest", nargs=argparse.REMAINDER)
    try:
        found, rest = real.parse_known_args(list(argv))
    except (argparse.ArgumentError, SystemExit) as error:
        it.sinks.problem(f"the command line does not fit the script's parser: {error}", None)
        raise ExitSignal("SystemExit") from None
    target = namespace if isinstance(namespace, Instance) else Instance(NAMESPACE)
    it.heap.touch(target)
    for dest, options in shared.items():
        for option in options:
            it.flag_table.setdefault(option.flag, option)
        raw = getattr(found, dest, MISSING)
        if raw is MISSING and (dest in kept or suppressed(default_of(options[0]))):
            continue
        target.attrs[dest] = value_of(it, options, raw, parser)
    for name, value in parser.defaults.items():
        if name not in shared:
            target.attrs[name] = value
    for number, option in enumerate(parser.options):
        given = getattr(found, f"{OWN}{number}", MISSING)
        if option.action == OWN and given is not MISSING and option.handle is not None:
            _act(it, option, given, target, parser)
    if parser.commands:
        command_argv = list(found._rest)
        _parse_command(it, parser, found._command, command_argv, target, rest)
    return target, rest


def _act(it: Interpreter, option: Option, given: Any, target: Instance, parser: Parser) -> None:
    """What an action of the script's own does with the values that the command line gives it."""
    raw = [given] if not isinstance(given, list) else given
    values = [given_value(it, [option], r, parser) for r in raw if isinstance(r, str)]
    value = Seq("list", values) if isinstance(given, list) else values[0] if values else Seq("list", [])
    assert option.handle is not None
    method = it.get(option.handle, "__call__", option.site)
    it.call(method, Args([Instance(PARSER, payload=parser), target, value, Const(option.flag)]), option.site)
    for name in list(target.attrs):
        target.attrs[name] = marked(target.attrs[name], (), frozenset({option.flag}))


def _parse_command(
    it: Interpreter, parser: Parser, command: str | None, argv: list[str], target: Instance, rest: list[str]
) -> None:
    flags = frozenset({"(sub-command)"})
    if command in parser.commands:
        child, more = _parse_into(it, parser.commands[command], argv, target)
        rest += more
        if parser.command_dest:
            target.attrs[parser.command_dest] = Const(command, flags=flags)
        return
    if command is not None:
        rest.append(command)
    names = [
        Const(n, flags=flags, places=(parser.command_site,) if parser.command_site else ()) for n in parser.commands
    ]
    if parser.command_dest:
        target.attrs[parser.command_dest] = union(names) if names else NONE
    merged: dict[str, list[Value]] = {}
    for child_parser in parser.commands.values():
        child, _ = _parse_into(it, child_parser, [], Instance(NAMESPACE))
        if isinstance(child, Instance):
            for name, value in child.attrs.items():
                merged.setdefault(name, []).append(value)
    for name, values in merged.items():
        target.attrs.setdefault(name, union(values))


def _add_real(real: argparse.ArgumentParser, option: Option, const: str) -> None:
    """Add the option to the real parser, which gives `const` where the option's own constant is meant."""
    settings = _real_settings(option, const)
    names = option.names if not option.positional else (option.dest,)
    try:
        real.add_argument(*names, **settings)
    except (ValueError, TypeError, argparse.ArgumentError):
        settings.pop("nargs", None)
        with contextlib.suppress(ValueError, TypeError, argparse.ArgumentError):
            real.add_argument(*names, **settings)
    if "off" in option.settings:
        with contextlib.suppress(ValueError, argparse.ArgumentError):
            real.add_argument(option.off, dest=option.dest, action="store_false", default=MISSING)


def _real_settings(option: Option, const: str) -> dict[str, Any]:
    """What the real parser is told of an option: how many words it takes, and that nothing is to be checked."""
    settings: dict[str, Any] = {"default": MISSING}
    if not option.positional:
        settings["dest"] = option.dest
    nargs = option.settings.get("nargs")
    if isinstance(nargs, Const) and isinstance(nargs.value, (int, str)):
        settings["nargs"] = nargs.value
    match option.action:
        case "store_true" | "store_false" | "count":
            settings["action"] = option.action
            settings.pop("nargs", None)
            if option.action == "count":
                settings["default"] = None
        case "boolean":
            settings["action"] = argparse.BooleanOptionalAction
        case "append" | "extend":
            settings["action"] = option.action
            settings["default"] = None
        case "store_const" | "append_const":
            settings["action"] = option.action
            settings["const"] = const
            if option.action == "append_const":
                settings["default"] = None
        case "version" | "help":
            settings["action"] = "store_true"
        case _ if option.action == OWN:
            settings["dest"] = f"{OWN}{const.removeprefix(CONST)}"
            if settings.get("nargs") == 0:
                settings["action"] = "store_true"
                del settings["nargs"]
    if option.positional and settings.get("nargs") is None:
        settings["nargs"] = "?"
    elif option.positional and settings.get("nargs") == "+":
        settings["nargs"] = "*"
    if settings.get("nargs") == "?" and not option.positional:
        settings["const"] = const
    return settings
