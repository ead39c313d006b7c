"""Commands and groups of them, and how a command line runs one: for typer, click and fire alike."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from auditor.interpreter import ExitSignal, Interpreter, Signal
from auditor.places import Site
from auditor.stdlib.options.option import Option, Parser
from auditor.stdlib.options.parsing import command_line, parse_arguments
from auditor.stdlib.options.signatures import signature_options
from auditor.values import NONE, Args, Bound, Const, Function, Instance, Seq, Unknown, Value, is_given


@dataclass(slots=True)
class Command:
    """A function behind a command line; `options` is None when its signature says them (typer, fire)."""

    name: str
    function: Value
    options: list[Option] | None = None


@dataclass(slots=True)
class App:
    """A group of commands (a typer app, a click group); `start` runs before any of them."""

    commands: list[Command] = field(default_factory=list)
    groups: dict[str, Value] = field(default_factory=dict)
    start: Command | None = None


def run_command(it: Interpreter, command: Command, argv: tuple[str, ...], site: Site | None) -> Value:
    function = command.function
    given = Args()
    if isinstance(function, Bound):
        given, function = Args([function.receiver]), function.function
    if not isinstance(function, Function):
        return it.call(command.function, Args(), site)
    options = command.options
    if options is None:
        options = signature_options(it, function, len(given.pos))
    # of several options for one parameter, the one with a default says what it is without any
    options = sorted(options, key=lambda o: "default" not in o.settings)
    namespace, rest = parse_arguments(it, Parser(options), argv, reader=id(function.node))
    if rest:
        it.sinks.problem(f"the script knows no argument {' '.join(rest)}", site)
        raise ExitSignal("SystemExit")
    keywords = {o.dest: _called_back(it, o, namespace.attrs[o.dest], site) for o in options}
    return it.call(function, Args(given.pos, keywords), site)


def _called_back(it: Interpreter, option: Option, value: Value, site: Site | None) -> Value:
    """What the callback of an option makes of its value, which is the last thing that it takes."""
    callback = option.settings.get("callback")
    if not is_given(callback):
        return value
    count = 1
    if isinstance(callback, Function):
        count = len((*callback.node.params.posonly_params, *callback.node.params.params))
    before: list[Value] = [Unknown("the context of a command", "context") for _ in range(count - 1)]
    return it.call(callback, Args([*before, value]), site)


def run_app(it: Interpreter, app: App, argv: tuple[str, ...], site: Site | None) -> Value:
    """The command that the first word names; without one the only command, else each of them in a world of its own."""
    named = {c.name: c for c in app.commands}
    if app.start is not None:
        at = next((n for n, word in enumerate(argv) if word in named or word in app.groups), 0)
        run_command(it, app.start, argv[:at], site)
        argv = argv[at:]
    if argv and argv[0] in named and (len(named) > 1 or app.start is not None):
        return run_command(it, named[argv[0]], argv[1:], site)
    if argv and argv[0] in app.groups:
        return start_command(it, app.groups[argv[0]], argv[1:], site)
    if len(app.commands) > 1:
        choice = Option(
            "(command)", ("command",), "command", {"choices": Seq("list", [Const(n) for n in named])}, "", site
        )
        it.flag_table.setdefault(choice.flag, choice)
    worlds = [_later(it, c, argv, site) for c in app.commands]
    worlds += [_later_group(it, g, site) for g in app.groups.values() if not argv]
    if not worlds:
        return NONE
    it.fork(worlds)
    return NONE


def _later(it: Interpreter, command: Command, argv: tuple[str, ...], site: Site | None) -> Callable[[], Signal]:
    def run() -> Signal:
        run_command(it, command, argv, site)
        return None

    return run


def _later_group(it: Interpreter, group: Value, site: Site | None) -> Callable[[], Signal]:
    def run() -> Signal:
        start_command(it, group, (), site)
        return None

    return run


def start_command(it: Interpreter, value: Value, argv: tuple[str, ...], site: Site | None) -> Value:
    payload = value.payload if isinstance(value, Instance) else None
    if isinstance(payload, App):
        return run_app(it, payload, argv, site)
    if isinstance(payload, Command):
        return run_command(it, payload, argv, site)
    return run_command(it, Command("", value), argv, site)


def given_words(it: Interpreter) -> tuple[str, ...]:
    """The command line. Raises `ExitSignal` when the script puts it together at run time."""
    words = command_line(it)
    if words is None:
        it.sinks.problem("the command line is put together at run time", None)
        raise ExitSignal("SystemExit")
    return tuple(words)


def known_texts(it: Interpreter, given: Value, site: Site | None) -> tuple[str, ...] | None:
    if site is None or not isinstance(given, Seq) or not given.exact:
        return None
    texts = [i.value for i in given.items if isinstance(i, Const) and isinstance(i.value, str)]
    return tuple(texts) if len(texts) == len(given.items) else None
