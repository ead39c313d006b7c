"""`argparse`: the parser is rebuilt from the calls that make it, and the real `argparse` splits the command line.

Every value remembers the option it came from, so that a fact knows which flags it depends on.
"""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from auditor import operators
from auditor.containers import iterate
from auditor.interpreter import ExitSignal, Handler, Interpreter
from auditor.joins import union
from auditor.objects import OBJECT, class_lookup
from auditor.places import Site
from auditor.stdlib.files import PATH, make_path
from auditor.values import (
    FALSE,
    NONE,
    TRUE,
    Args,
    Class,
    Const,
    External,
    Instance,
    Mapping,
    Native,
    NativeClass,
    Seq,
    Union,
    Unknown,
    Value,
    merge_places,
    text_of,
)

_MISSING = object()
_CONST = "\0const"
_OWN = "\0own"
"""The action of an option whose action is a class of the script."""
_LISTED = ("append", "append_const", "extend", "count")


@dataclass(slots=True)
class Option:
    """One `add_argument` call. `flag` is how a user types it; positionals have their name.

    `handle` is what `add_argument` gave: the script may set its `default`, and a class of its own says what it does.
    """

    flag: str
    names: tuple[str, ...]
    dest: str
    settings: dict[str, Value]
    action: str
    site: Site | None
    handle: Instance | None = None

    @property
    def positional(self) -> bool:
        return not self.names[0].startswith("-")

    @property
    def choices(self) -> list[Value] | None:
        found = self.settings.get("choices")
        if isinstance(found, Seq) and found.exact:
            return list(found.items)
        return [k for k, _ in found.entries.values()] if isinstance(found, Mapping) and found.rest is None else None

    @property
    def must_choose(self) -> bool:
        """Whether the command line has to name one of the choices: there is no default."""
        nargs = self.settings.get("nargs")
        optional = isinstance(nargs, Const) and nargs.value in ("?", "*")
        required = "required" in self.settings and operators.truth(self.settings["required"]) is True
        return (
            bool(self.choices) and "default" not in self.settings and ((self.positional and not optional) or required)
        )

    def given(self) -> list[tuple[str, ...]]:
        """The command lines that make each choice."""
        texts = [t for t in (text_of(c) for c in self.choices or ()) if t]
        return [(t,) if self.positional else (self.flag, t) for t in texts]

    @property
    def off(self) -> str:
        """How a boolean option is switched off: `--no-x`, or the name that it has for that (click and typer)."""
        return text_of(self.settings["off"]) or "" if "off" in self.settings else "--no-" + self.flag.lstrip("-")

    @property
    def kind(self) -> str:
        """`switch` (store_true and the like), `choice`, or `value`."""
        if self.action in ("store_true", "store_false", "boolean"):
            return "switch"
        return "choice" if self.choices else "value"


@dataclass(slots=True)
class Parser:
    options: list[Option] = field(default_factory=list)
    defaults: dict[str, Value] = field(default_factory=dict)
    commands: dict[str, Parser] = field(default_factory=dict)
    command_dest: str = ""
    command_site: Site | None = None
    argument_default: Value | None = None


def _parser(args: Args) -> Parser:
    obj = args.pos[0]
    if isinstance(obj, Instance) and isinstance(obj.payload, Parser):
        return obj.payload
    raise TypeError("not a parser")


def _new(it: Interpreter, args: Args, site: Site | None) -> Value:
    obj = Instance(PARSER, payload=Parser(), places=(site,) if site else ())
    if not isinstance(args.pos[0], Class):  # else its `__init__` is run
        _init(it, Args([obj, *args.pos[1:]], args.kw, args.more), site)
    return obj


def _init(it: Interpreter, args: Args, site: Site | None) -> Value:
    parser = _parser(args)
    parents = args.kw.get("parents")
    if isinstance(parents, Seq):
        for p in parents.items:
            if isinstance(p, Instance) and isinstance(p.payload, Parser):
                parser.options += p.payload.options
                parser.defaults.update(p.payload.defaults)
    parser.argument_default = args.kw.get("argument_default")
    return NONE


def _action_name(value: Value | None) -> str:
    if value is None:
        return "store"
    if isinstance(value, External) and value.dotted.endswith("BooleanOptionalAction"):
        return "boolean"
    return text_of(value) or "store"


def _add_argument(it: Interpreter, args: Args, site: Site | None) -> Value:
    parser = _parser(args)
    names = tuple(t for t in (text_of(a) for a in args.pos[1:]) if t)
    if not names:
        return NONE
    longest = next((n for n in names if n.startswith("--")), names[0])
    dest = text_of(args.kw["dest"]) if "dest" in args.kw else None
    dest = dest or (longest.lstrip("-").replace("-", "_") if names[0].startswith("-") else names[0])
    settings = dict(args.kw)
    if "default" not in settings and (given := parser.defaults.get(dest, parser.argument_default)) is not None:
        settings["default"] = given
    option = Option(longest, names, dest, settings, _action_name(args.kw.get("action")), site)
    cls = args.kw.get("action")
    if isinstance(cls, Class):
        more = {k: v for k, v in settings.items() if k not in ("action", "dest")}
        made = it.call(cls, Args([], {"option_strings": Seq("list", []), "dest": Const(dest), **more}), site)
        option.action, option.handle = _OWN, made if isinstance(made, Instance) else None
        if option.handle is not None and (count := option.handle.attrs.get("nargs")) is not None:
            settings["nargs"] = count
    if option.handle is None:
        option.handle = Instance(ACTION, {"dest": Const(dest)})
    parser.options.append(option)
    return option.handle


def _same_parser(it: Interpreter, args: Args, site: Site | None) -> Value:
    return Instance(PARSER, payload=_parser(args))


def _add_subparsers(it: Interpreter, args: Args, site: Site | None) -> Value:
    parser = _parser(args)
    parser.command_dest = (text_of(args.kw["dest"]) if "dest" in args.kw else None) or ""
    parser.command_site = site
    return Instance(SUBPARSERS, payload=parser)


def _add_parser(it: Interpreter, args: Args, site: Site | None) -> Value:
    parent = _parser(args)
    child = _new(it, Args([PARSER], args.kw), site)
    name = text_of(args.pos[1])
    assert isinstance(child, Instance)
    if name:
        parent.commands[name] = child.payload
    return child


def _set_defaults(it: Interpreter, args: Args, site: Site | None) -> Value:
    parser = _parser(args)
    parser.defaults.update(args.kw)
    for option in parser.options:
        if option.dest in args.kw:
            option.settings["default"] = args.kw[option.dest]
    return NONE


def _get_default(it: Interpreter, args: Args, site: Site | None) -> Value:
    parser, name = _parser(args), text_of(args.pos[1])
    option = next((o for o in parser.options if o.dest == name), None)
    return _default(it, option) if option is not None else parser.defaults.get(name or "", NONE)


def _error(it: Interpreter, args: Args, site: Site | None) -> Value:
    raise ExitSignal("SystemExit")


def _parse(known_only: bool) -> Handler:
    def parse(it: Interpreter, args: Args, site: Site | None) -> Value:
        return it.each(args.get(1, "args") or NONE, lambda given: parse_one(it, given, args, site))

    def parse_one(it: Interpreter, given: Value, args: Args, site: Site | None) -> Value:
        parser = _parser(args)
        argv = _argv(it, given, site)
        if argv is None:
            return Unknown("the command line is put together at run time", "args", places=(site,) if site else ())
        namespace, rest = parse_arguments(it, parser, argv, args.get(2, "namespace"))
        if known_only:
            return Seq("tuple", [namespace, Seq("list", [Const(r) for r in rest])])
        if rest:
            it.sinks.problem(f"the script knows no argument {' '.join(rest)}", site)
            raise ExitSignal("SystemExit")
        return namespace

    return parse


def _argv(it: Interpreter, given: Value, site: Site | None) -> list[str] | None:
    """The texts of a command line; None when one of them is not known."""
    if isinstance(given, Const) and given.value is None:
        return command_line(it)
    if site is None or not isinstance(given, (Seq, Instance)):
        return None
    source = iterate(it, given, site)
    texts = [i.value for i in source.items if isinstance(i, Const) and isinstance(i.value, str)]
    return texts if source.exact and len(texts) == len(source.items) else None


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

    Raises `Again` when an earlier run came to the same.
    """
    kept = frozenset(_named(namespace, parser)) if isinstance(namespace, Instance) else frozenset()
    target, rest = _parse_into(it, parser, argv, namespace, kept)
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
        _add_real(real, option, f"{_CONST}{number}")
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
        raw = getattr(found, dest, _MISSING)
        if raw is _MISSING and (dest in kept or _suppressed(_default_of(options[0]))):
            continue
        target.attrs[dest] = _value(it, options, raw, parser)
    for name, value in parser.defaults.items():
        if name not in shared:
            target.attrs[name] = value
    for number, option in enumerate(parser.options):
        given = getattr(found, f"{_OWN}{number}", _MISSING)
        if option.action == _OWN and given is not _MISSING and option.handle is not None:
            _act(it, option, given, target, parser)
    if parser.commands:
        command_argv = list(found._rest)
        _parse_command(it, parser, found._command, command_argv, target, rest)
    return target, rest


def _act(it: Interpreter, option: Option, given: Any, target: Instance, parser: Parser) -> None:
    """What an action of the script's own does with the values that the command line gives it."""
    raw = [given] if not isinstance(given, list) else given
    values = [_given(it, [option], r, parser) for r in raw if isinstance(r, str)]
    value = Seq("list", values) if isinstance(given, list) else values[0] if values else Seq("list", [])
    assert option.handle is not None
    method = it.get(option.handle, "__call__", option.site)
    it.call(method, Args([Instance(PARSER, payload=parser), target, value, Const(option.flag)]), option.site)
    for name in list(target.attrs):
        target.attrs[name] = _marked(target.attrs[name], (), frozenset({option.flag}))


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
    settings: dict[str, Any] = {"default": _MISSING}
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
        case _ if option.action == _OWN:
            settings["dest"] = f"{_OWN}{const.removeprefix(_CONST)}"
            if settings.get("nargs") == 0:
                settings["action"] = "store_true"
                del settings["nargs"]
    if option.positional and settings.get("nargs") is None:
        settings["nargs"] = "?"
    elif option.positional and settings.get("nargs") == "+":
        settings["nargs"] = "*"
    if settings.get("nargs") == "?" and not option.positional:
        settings["const"] = const
    names = option.names if not option.positional else (option.dest,)
    try:
        real.add_argument(*names, **settings)
    except (ValueError, TypeError, argparse.ArgumentError):
        settings.pop("nargs", None)
        with contextlib.suppress(ValueError, TypeError, argparse.ArgumentError):
            real.add_argument(*names, **settings)
    if "off" in option.settings:
        with contextlib.suppress(ValueError, argparse.ArgumentError):
            real.add_argument(option.off, dest=option.dest, action="store_false", default=_MISSING)


def _value(it: Interpreter, options: list[Option], raw: Any, parser: Parser) -> Value:
    """The value of a destination: several options may write to it, and the first one has its default."""
    first = options[0]
    flags = frozenset(o.flag for o in options)
    places = tuple(o.site for o in options if o.site)
    listed = any(o.action in _LISTED for o in options)
    if raw is _MISSING or (raw is None and listed) or (raw == [] and first.positional):
        value = _default(it, first)
    elif isinstance(raw, list):
        before = _default(it, first) if listed else NONE
        kept = before.items if isinstance(before, Seq) else []
        value = Seq("list", [*kept, *(_given(it, options, r, parser) for r in raw)])
    elif first.action == "count":
        before = _default(it, first)
        value = Const(raw) if before is NONE else operators.binary("+", before, Const(raw))
    else:
        value = _given(it, options, raw, parser)
    return _marked(value, places, flags)


def _given(it: Interpreter, options: list[Option], raw: Any, parser: Parser) -> Value:
    """One value from the command line. Where the parser would refuse it as no choice, any choice may be meant."""
    if not isinstance(raw, str):
        return Const(raw)
    if raw.startswith(_CONST):
        return parser.options[int(raw.removeprefix(_CONST))].settings.get("const", NONE)
    option = next((o for o in options if o.kind != "switch"), options[0])
    value = _converted(it, option, raw)
    # argparse compares what `type` made of the word, typer and click the word itself
    allowed = Seq("list", option.choices) if option.choices is not None else None
    if allowed is not None and all(operators.contains(allowed, v) is False for v in (value, Const(raw))):
        it.sinks.problem(f"{option.flag} has no choice {raw!r}", option.site)
        return union(option.choices) if option.choices else value
    return value


def _marked(value: Value, places: tuple[Site, ...], flags: frozenset[str]) -> Value:
    if isinstance(value, (Seq, Mapping, Instance, Unknown, Union)):
        if isinstance(value, Instance):
            value = Instance(value.cls, value.attrs, value.payload)
        value.places = merge_places(places, value.places)
        value.flags = value.flags | flags
        if isinstance(value, Union):
            return Union(tuple(_marked(o, places, flags) for o in value.options), places=places, flags=flags)
        return value
    return replace(value, places=merge_places(places, value.places), flags=value.flags | flags)


def _default_of(option: Option) -> Value | None:
    """The default that was given: the last one, when the script has set it on what `add_argument` gave."""
    own = option.handle.attrs.get("default") if option.handle is not None else None
    return own if own is not None else option.settings.get("default")


def _suppressed(default: Value | None) -> bool:
    return isinstance(default, Const) and default.value == argparse.SUPPRESS


def _default(it: Interpreter, option: Option) -> Value:
    """What an option is that the command line does not give: an environment variable (click, typer) may say it."""
    plain, named = _plain_default(it, option), option.settings.get("envvar", NONE)
    if isinstance(named, Const) and named.value is None:
        return plain
    if option.choices:
        return union([plain, *option.choices])
    kind = "bool" if option.action in ("store_true", "boolean") else _kind(option)
    reason = f"an environment variable (`envvar`) may say what `{option.flag}` is"
    places = (option.site,) if option.site else ()
    return union([plain, Unknown(reason, f"environ[{text_of(named) or '*'}]", kind, places=places)])


def _plain_default(it: Interpreter, option: Option) -> Value:
    given = _default_of(option)
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


def _hidden(it: Interpreter, args: Args, site: Site | None) -> Value:
    """`parser._actions`: what `add_argument` gave, in order."""
    if text_of(args.pos[1]) == "_actions":
        return Seq("list", [o.handle for o in _parser(args).options if o.handle is not None])
    return Unknown("a part of a parser", f"ArgumentParser.{text_of(args.pos[1])}", places=(site,) if site else ())


_ACTION = ("option_strings", "dest", "nargs", "const", "default", "type", "choices", "required", "help", "metavar")


def _action(it: Interpreter, args: Args, site: Site | None) -> Value:
    obj = args.pos[0]
    assert isinstance(obj, Instance)
    it.heap.touch(obj)
    obj.attrs |= {**dict(zip(_ACTION, args.pos[1:], strict=False)), **args.kw}
    return NONE


_METHODS: dict[str, Handler] = {
    "__new__": _new,
    "__init__": _init,
    "__getattr__": _hidden,
    "add_argument": _add_argument,
    "add_argument_group": _same_parser,
    "add_mutually_exclusive_group": _same_parser,
    "add_subparsers": _add_subparsers,
    "set_defaults": _set_defaults,
    "get_default": _get_default,
    "parse_args": _parse(False),
    "parse_known_args": _parse(True),
    "parse_intermixed_args": _parse(False),
    "error": _error,
    "exit": _error,
    "print_help": lambda it, args, site: NONE,
    "print_usage": lambda it, args, site: NONE,
    "format_help": lambda it, args, site: Const(""),
}
PARSER = NativeClass("argparse.ArgumentParser", dict(_METHODS))
SUBPARSERS = NativeClass("argparse._SubParsersAction", {"add_parser": _add_parser})
ACTION = NativeClass("argparse.Action", {"__init__": _action})
NAMESPACE: NativeClass = NativeClass(
    "argparse.Namespace",
    {"__new__": lambda it, args, site: Instance(NAMESPACE, dict(args.kw))},
    (OBJECT,),
    closed=True,
)

NATIVES: dict[str, Value] = {
    "argparse.ArgumentParser": PARSER,
    "argparse.Namespace": NAMESPACE,
    "argparse.Action": ACTION,
    "argparse.SUPPRESS": Const(argparse.SUPPRESS),
    "argparse.REMAINDER": Const(argparse.REMAINDER),
    "argparse.OPTIONAL": Const(argparse.OPTIONAL),
    "argparse.ZERO_OR_MORE": Const(argparse.ZERO_OR_MORE),
    "argparse.ONE_OR_MORE": Const(argparse.ONE_OR_MORE),
}
