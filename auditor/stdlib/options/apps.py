"""The objects behind a command line: a typer app or click group, to which commands are added, and a click command."""

from __future__ import annotations

from auditor.interpreter import Interpreter, RaiseSignal
from auditor.objects.inheritance import OBJECT
from auditor.places import Site, here
from auditor.stdlib.options.running import App, Command, given_words, known_texts, start_command
from auditor.values import (
    NONE,
    Args,
    Function,
    Instance,
    Mapping,
    Native,
    NativeClass,
    Seq,
    Unknown,
    Value,
    is_given,
    text_of,
)


def _call(it: Interpreter, args: Args, site: Site | None) -> Value:
    """`command()` and `command.main(args)`."""
    obj, prefix = args.pos[0], args.kw.get("auto_envvar_prefix")
    payload = obj.payload if isinstance(obj, Instance) else None
    for command in (*getattr(payload, "commands", ()), getattr(payload, "start", payload)):
        if prefix is not None and isinstance(command, Command):
            set_defaults(command, Mapping({("str", "auto_envvar_prefix"): (NONE, prefix)}))
    given = args.get(1, "args")
    if not is_given(given):
        return start_command(it, args.pos[0], given_words(it), site)
    words = known_texts(it, given, site)
    if words is None:
        return Unknown("a command line that is put together at run time", "main()", places=here(site))
    return start_command(it, args.pos[0], words, site)


def _new_app(it: Interpreter, args: Args, site: Site | None) -> Value:
    start = args.kw.get("callback")
    return Instance(APP, payload=App(start=Command("", start) if isinstance(start, Function) else None))


def _app(args: Args) -> App:
    obj = args.pos[0]
    assert isinstance(obj, Instance)
    assert isinstance(obj.payload, App)
    return obj.payload


def _register(it: Interpreter, args: Args, site: Site | None) -> Value:
    """`@app.command()` and `@group.command()`: the name is given or the function's own."""
    app, given = _app(args), text_of(args.get(1, "name") or NONE)
    if len(args.pos) > 1 and isinstance(args.pos[1], Function):
        app.commands.append(Command(_name_of(args.pos[1]), args.pos[1]))
        return args.pos[1]

    def decorate(it: Interpreter, inner: Args, site: Site | None) -> Value:
        pending = pending_command(inner.pos[0])
        app.commands.append(Command(given or _name_of(pending.function), pending.function, pending.options))
        return inner.pos[0]

    return Native("command", decorate)


def _name_of(function: Value) -> str:
    return function.name.replace("_", "-") if isinstance(function, Function) else ""


def _callback(it: Interpreter, args: Args, site: Site | None) -> Value:
    app = _app(args)

    def decorate(it: Interpreter, inner: Args, site: Site | None) -> Value:
        app.start = Command("", inner.pos[0])
        return inner.pos[0]

    return Native("callback", decorate)


def _add(it: Interpreter, args: Args, site: Site | None) -> Value:
    """`app.add_typer(other, name=...)` and `group.add_command(command, name)`."""
    app, other = _app(args), args.pos[1]
    name = text_of(args.get(2, "name") or NONE)
    if isinstance(other, Instance) and isinstance(other.payload, Command):
        app.commands.append(Command(name or other.payload.name, other.payload.function, other.payload.options))
    elif name is None and isinstance(other, Instance) and isinstance(other.payload, App):
        app.commands += other.payload.commands
        app.groups.update(other.payload.groups)
    else:
        app.groups[name or str(len(app.groups))] = other
    return NONE


def pending_command(value: Value) -> Command:
    """The function under a stack of `click.option` decorators, with its options in their order."""
    if isinstance(value, Instance) and isinstance(value.payload, Command):
        return value.payload
    return Command(_name_of(value), value)


def set_defaults(command: Command, settings: Value | None) -> None:
    """`context_settings={"default_map": {...}, "auto_envvar_prefix": "NAME"}`."""
    given = settings.get("default_map") if isinstance(settings, Mapping) else None
    prefix = settings.get("auto_envvar_prefix") if isinstance(settings, Mapping) else None
    for option in command.options or ():
        if prefix is not None:
            option.settings.setdefault("envvar", prefix)
        if isinstance(given, Mapping) and (default := given.get(option.dest)) is not None:
            option.settings["default"] = default


def _function_of(it: Interpreter, args: Args, site: Site | None) -> Value:
    obj, name = args.pos[0], text_of(args.pos[1])
    if isinstance(obj, Instance) and isinstance(obj.payload, Command) and name == "callback":
        return obj.payload.function
    if isinstance(obj, Instance) and isinstance(obj.payload, Command) and name == "params":
        return Seq("list", [o.handle for o in obj.payload.options or () if o.handle is not None])
    raise RaiseSignal("AttributeError")


APP = NativeClass(
    "typer.Typer",
    {
        "__new__": _new_app,
        "__call__": _call,
        "main": _call,
        "command": _register,
        "group": _register,
        "callback": _callback,
        "add_typer": _add,
        "add_command": _add,
    },
    (OBJECT,),
)
COMMAND = NativeClass("click.Command", {"__call__": _call, "main": _call, "__getattr__": _function_of}, (OBJECT,))
