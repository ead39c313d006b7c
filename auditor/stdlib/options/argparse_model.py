"""`argparse`: the parser is rebuilt from the calls that make it.

Every value remembers the option it came from, so that a fact knows which flags it depends on.
"""

from __future__ import annotations

import argparse

from auditor.containers.iteration import iterate
from auditor.handlers import leaves, nothing
from auditor.interpreter import ExitSignal, Handler, Interpreter
from auditor.places import Site, here
from auditor.stdlib.options.option import OWN, Option, Parser
from auditor.stdlib.options.option_values import default_value
from auditor.stdlib.options.parsing import NAMESPACE, PARSER, command_line, parse_arguments
from auditor.values import (
    NONE,
    Args,
    Class,
    Const,
    External,
    Instance,
    Native,
    NativeClass,
    Seq,
    Unknown,
    Value,
    is_none,
    text_of,
)


def _parser(args: Args) -> Parser:
    obj = args.pos[0]
    if isinstance(obj, Instance) and isinstance(obj.payload, Parser):
        return obj.payload
    raise TypeError("not a parser")


def _new(it: Interpreter, args: Args, site: Site | None) -> Value:
    obj = Instance(PARSER, payload=Parser(), places=here(site))
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
        option.action, option.handle = OWN, made if isinstance(made, Instance) else None
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
    return default_value(it, option) if option is not None else parser.defaults.get(name or "", NONE)


def _parse(known_only: bool) -> Handler:
    def parse(it: Interpreter, args: Args, site: Site | None) -> Value:
        return it.each(args.get(1, "args") or NONE, lambda given: parse_one(it, given, args, site))

    def parse_one(it: Interpreter, given: Value, args: Args, site: Site | None) -> Value:
        parser = _parser(args)
        argv = _argv(it, given, site)
        if argv is None:
            return Unknown("the command line is put together at run time", "args", places=here(site))
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
    if is_none(given):
        return command_line(it)
    if site is None or not isinstance(given, (Seq, Instance)):
        return None
    source = iterate(it, given, site)
    texts = [i.value for i in source.items if isinstance(i, Const) and isinstance(i.value, str)]
    return texts if source.exact and len(texts) == len(source.items) else None


def _hidden(it: Interpreter, args: Args, site: Site | None) -> Value:
    """`parser._actions`: what `add_argument` gave, in order."""
    if text_of(args.pos[1]) == "_actions":
        return Seq("list", [o.handle for o in _parser(args).options if o.handle is not None])
    return Unknown("a part of a parser", f"ArgumentParser.{text_of(args.pos[1])}", places=here(site))


_ACTION = ("option_strings", "dest", "nargs", "const", "default", "type", "choices", "required", "help", "metavar")


def _action(it: Interpreter, args: Args, site: Site | None) -> Value:
    obj = args.pos[0]
    assert isinstance(obj, Instance)
    it.heap.touch(obj)
    obj.attrs |= {**dict(zip(_ACTION, args.pos[1:], strict=False)), **args.kw}
    return NONE


PARSER.methods |= {
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
    "error": leaves,
    "exit": leaves,
    "print_help": nothing,
    "print_usage": nothing,
    "format_help": lambda it, args, site: Const(""),
}


def _file_type(it: Interpreter, args: Args, site: Site | None) -> Value:
    """`FileType("r")`: a type that opens the file which the word names."""
    mode = args.pos[:1] or ([args.kw["mode"]] if "mode" in args.kw else [])

    def opened(it: Interpreter, given: Args, site: Site | None) -> Value:
        return it.call(it.loader.builtins["open"], Args([*given.pos[:1], *mode]), site)

    return Native("FileType", opened)


SUBPARSERS = NativeClass("argparse._SubParsersAction", {"add_parser": _add_parser})
ACTION = NativeClass("argparse.Action", {"__init__": _action})
NATIVES: dict[str, Value] = {
    "argparse.ArgumentParser": PARSER,
    "argparse.Namespace": NAMESPACE,
    "argparse.Action": ACTION,
    "argparse.FileType": Native("FileType", _file_type),
    "argparse.SUPPRESS": Const(argparse.SUPPRESS),
    "argparse.REMAINDER": Const(argparse.REMAINDER),
    "argparse.OPTIONAL": Const(argparse.OPTIONAL),
    "argparse.ZERO_OR_MORE": Const(argparse.ZERO_OR_MORE),
    "argparse.ONE_OR_MORE": Const(argparse.ONE_OR_MORE),
}
