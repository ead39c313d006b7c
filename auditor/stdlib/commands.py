"""`typer`, `click` and `fire`: command lines out of functions. Their options are those of `argparse_model`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import libcst as cst

from auditor import operators
from auditor.interpreter import ExitSignal, Frame, Interpreter, RaiseSignal, Signal
from auditor.objects import OBJECT, class_lookup
from auditor.places import Site
from auditor.stdlib.argparse_model import Option, Parser, command_line, parse_arguments
from auditor.stdlib.files import PATH
from auditor.values import (
    FALSE,
    NONE,
    TRUE,
    Args,
    Bound,
    Class,
    Const,
    Function,
    Instance,
    Mapping,
    Native,
    NativeClass,
    Seq,
    Unknown,
    Value,
    text_of,
)


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


@dataclass(slots=True)
class Declared:
    """`typer.Option(...)` or `typer.Argument(...)` as a default, or inside `Annotated`."""

    argument: bool
    default: Value | None
    names: tuple[str, ...]
    callback: Value | None = None
    envvar: Value | None = None


# -- running ----------------------------------------------------------------------------------------------------


def _run(it: Interpreter, command: Command, argv: tuple[str, ...], site: Site | None) -> Value:
    function = command.function
    given = Args()
    if isinstance(function, Bound):
        given, function = Args([function.receiver]), function.function
    if not isinstance(function, Function):
        return it.call(command.function, Args(), site)
    options = command.options
    if options is None:
        options = _signature(it, function, len(given.pos))
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
    if callback is None or (isinstance(callback, Const) and callback.value is None):
        return value
    count = 1
    if isinstance(callback, Function):
        count = len((*callback.node.params.posonly_params, *callback.node.params.params))
    before: list[Value] = [Unknown("the context of a command", "context") for _ in range(count - 1)]
    return it.call(callback, Args([*before, value]), site)


def _run_app(it: Interpreter, app: App, argv: tuple[str, ...], site: Site | None) -> Value:
    """The command that the first word names; without one the only command, else each of them in a world of its own."""
    named = {c.name: c for c in app.commands}
    if app.start is not None:
        at = next((n for n, word in enumerate(argv) if word in named or word in app.groups), 0)
        _run(it, app.start, argv[:at], site)
        argv = argv[at:]
    if argv and argv[0] in named and (len(named) > 1 or app.start is not None):
        return _run(it, named[argv[0]], argv[1:], site)
    if argv and argv[0] in app.groups:
        return _start(it, app.groups[argv[0]], argv[1:], site)
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
        _run(it, command, argv, site)
        return None

    return run


def _later_group(it: Interpreter, group: Value, site: Site | None) -> Callable[[], Signal]:
    def run() -> Signal:
        _start(it, group, (), site)
        return None

    return run


def _start(it: Interpreter, value: Value, argv: tuple[str, ...], site: Site | None) -> Value:
    payload = value.payload if isinstance(value, Instance) else None
    if isinstance(payload, App):
        return _run_app(it, payload, argv, site)
    if isinstance(payload, Command):
        return _run(it, payload, argv, site)
    return _run(it, Command("", value), argv, site)


def _words(it: Interpreter) -> tuple[str, ...]:
    """The command line. Raises `ExitSignal` when the script puts it together at run time."""
    words = command_line(it)
    if words is None:
        it.sinks.problem("the command line is put together at run time", None)
        raise ExitSignal("SystemExit")
    return tuple(words)


def _call(it: Interpreter, args: Args, site: Site | None) -> Value:
    """`command()` and `command.main(args)`."""
    obj, prefix = args.pos[0], args.kw.get("auto_envvar_prefix")
    payload = obj.payload if isinstance(obj, Instance) else None
    for command in (*getattr(payload, "commands", ()), getattr(payload, "start", payload)):
        if prefix is not None and isinstance(command, Command):
            _set_defaults(command, Mapping({("str", "auto_envvar_prefix"): (NONE, prefix)}))
    given = args.get(1, "args")
    if given is None or (isinstance(given, Const) and given.value is None):
        return _start(it, args.pos[0], _words(it), site)
    words = _texts(it, given, site)
    if words is None:
        return Unknown("a command line that is put together at run time", "main()", places=(site,) if site else ())
    return _start(it, args.pos[0], words, site)


def _texts(it: Interpreter, given: Value, site: Site | None) -> tuple[str, ...] | None:
    if site is None or not isinstance(given, Seq) or not given.exact:
        return None
    texts = [i.value for i in given.items if isinstance(i, Const) and isinstance(i.value, str)]
    return tuple(texts) if len(texts) == len(given.items) else None


# -- signatures -------------------------------------------------------------------------------------------------


def _signature(it: Interpreter, f: Function, skip: int, positional: bool = True) -> list[Option]:
    """The options that the parameters of a function make; with `positional` one without a default is an argument."""
    out = []
    p = f.node.params
    assert f.site is not None
    frame = Frame(f.env, f.site.statement, it.loader.module_of(f.env))
    for param in (*p.posonly_params, *p.params, *p.kwonly_params)[skip:]:
        name = param.name.value
        annotation = param.annotation.annotation if param.annotation is not None else None
        declared = None
        if isinstance(annotation, cst.Subscript) and _last_name(annotation.value) == "Annotated":
            parts = [e.slice.value for e in annotation.slice if isinstance(e.slice, cst.Index)]
            annotation = parts[0]
            declared = next((d for x in parts[1:] if (d := _declared(it.eval(x, frame))) is not None), None)
        default = f.defaults.get(name)
        if (found := _declared(default)) is not None:
            declared, default = found, found.default
        elif declared is not None and default is None:
            default = declared.default
        if isinstance(default, Const) and default.value is ...:
            default = None
        out.append(_option(it, param, name, annotation, declared, default, positional, frame))
    return out


def _option(
    it: Interpreter,
    param: cst.Param,
    name: str,
    annotation: cst.BaseExpression | None,
    declared: Declared | None,
    default: Value | None,
    positional: bool,
    frame: Frame,
) -> Option:
    settings: dict[str, Value] = {} if default is None else {"default": default}
    if declared is not None and declared.callback is not None:
        settings["callback"] = declared.callback
    if declared is not None and declared.envvar is not None:
        settings["envvar"] = declared.envvar
    action = "store"
    kind = _last_name(_bare(annotation)) if annotation is not None else ""
    if kind == "bool" or (isinstance(default, Const) and isinstance(default.value, bool)):
        action = "boolean"
        settings.setdefault("default", FALSE)
    elif kind in ("int", "float", "str"):
        settings["type"] = it.loader.builtins[kind]
    elif kind == "Path":
        settings["type"] = PATH
    elif annotation is not None and kind[:1].isupper():
        members = _members(it, _bare(annotation), frame)
        if members:
            settings["choices"] = Seq("list", list(members))
            settings["type"] = it.eval(_bare(annotation), frame)
    site = frame.statement.site(param)
    argument = declared.argument if declared is not None else positional and default is None and action == "store"
    if argument:
        if default is not None:
            settings["nargs"] = Const("?")
        return Option(name, (name,), name, settings, action, site)
    if default is None and action == "store":
        settings["required"] = TRUE
    written = declared.names if declared is not None else ()
    off = next((n.split("/")[1] for n in written if "/" in n), "")
    if off and action == "boolean":
        settings["off"] = Const(off)
    given = tuple(n.split("/")[0] for n in written if n.startswith("-"))
    names = given or tuple(dict.fromkeys((f"--{name.replace('_', '-')}", f"--{name}")))
    flag = next((n for n in names if n.startswith("--")), names[0])
    return Option(flag, names, name, settings, action, site)


def _members(it: Interpreter, annotation: cst.BaseExpression, frame: Frame) -> list[Value]:
    """The values of an enumeration."""
    cls = it.eval(annotation, frame)
    if not isinstance(cls, Class):
        return []
    found = [v.attrs.get("value") for v in cls.env.names.values() if isinstance(v, Instance) and v.cls is cls]
    return [v for v in found if isinstance(v, Const)]


def _declared(value: Value | None) -> Declared | None:
    return value.payload if isinstance(value, Instance) and isinstance(value.payload, Declared) else None


def _bare(annotation: cst.BaseExpression) -> cst.BaseExpression:
    """`T` of `Optional[T]`, `T | None` and `List[T]`."""
    if isinstance(annotation, cst.BinaryOperation):
        return _bare(annotation.left if _last_name(annotation.left) != "None" else annotation.right)
    if isinstance(annotation, cst.Subscript) and isinstance(annotation.slice[0].slice, cst.Index):
        return _bare(annotation.slice[0].slice.value)
    return annotation


def _last_name(node: cst.BaseExpression) -> str:
    return node.attr.value if isinstance(node, cst.Attribute) else node.value if isinstance(node, cst.Name) else ""


# -- typer ------------------------------------------------------------------------------------------------------


def _declare(argument: bool) -> Native:
    def run(it: Interpreter, args: Args, site: Site | None) -> Value:
        default = args.get(0, "default")
        names = [t for t in (text_of(a) for a in args.pos) if t is not None and t.startswith("-")]
        if default is not None and (text_of(default) or "").startswith("--"):
            default = None  # inside `Annotated` the names come first, and the default stands in the signature
        if "default_factory" in args.kw:
            default = it.call(args.kw["default_factory"], Args(), site)
        callback, envvar = args.kw.get("callback"), args.kw.get("envvar")
        return Instance(OBJECT, payload=Declared(argument, default, tuple(names), callback, envvar))

    return Native("Argument" if argument else "Option", run)


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
        app.commands.append(Command(_named(args.pos[1]), args.pos[1]))
        return args.pos[1]

    def decorate(it: Interpreter, inner: Args, site: Site | None) -> Value:
        pending = _pending(inner.pos[0])
        app.commands.append(Command(given or _named(pending.function), pending.function, pending.options))
        return inner.pos[0]

    return Native("command", decorate)


def _named(function: Value) -> str:
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


def _run_function(it: Interpreter, args: Args, site: Site | None) -> Value:
    return _start(it, args.pos[0], _words(it), site)


# -- click ------------------------------------------------------------------------------------------------------


def _pending(value: Value) -> Command:
    """The function under a stack of `click.option` decorators, with its options in their order."""
    if isinstance(value, Instance) and isinstance(value.payload, Command):
        return value.payload
    return Command(_named(value), value)


def _click_option(argument: bool) -> Native:
    def make(it: Interpreter, args: Args, site: Site | None) -> Value:
        given = [t for t in (text_of(a) for a in args.pos) if t]
        names = tuple(t.split("/")[0].strip() for t in given)
        off = next((t.split("/")[1].strip() for t in given if "/" in t), "")
        option = _from_click(it, names, dict(args.kw), argument, site, off)
        option.handle = Instance(OBJECT, {"name": Const(option.dest)})

        def decorate(it: Interpreter, inner: Args, site: Site | None) -> Value:
            before = _pending(inner.pos[0])
            options = [option, *(before.options or [])]
            return Instance(COMMAND, payload=Command(before.name, before.function, options))

        return Native("option", decorate)

    return Native("click.option", make)


_YES = ("1", "true", "t", "yes", "y", "on")
"""What click takes for true."""


def _converter(it: Interpreter, kind: Value | None, site: Site | None) -> Native | None:
    """What an option's type makes of a word, where that is more than Python's own types do."""
    if kind is it.loader.builtins["bool"]:
        return Native("click.BOOL", lambda it, args, site: Const((text_of(args.pos[0]) or "").strip().lower() in _YES))
    if not isinstance(kind, Instance):
        return None
    if isinstance(kind.payload, Seq) and "insensitive" in kind.attrs:
        choices = kind.payload

        def pick(it: Interpreter, args: Args, site: Site | None) -> Value:
            word = (text_of(args.pos[0]) or "").casefold()
            return next((c for c in choices.items if (text_of(c) or "").casefold() == word), args.pos[0])

        return Native("click.Choice", pick)
    if isinstance(kind.cls, Class) and class_lookup(kind.cls, "convert")[0] is not None:
        return Native(
            "convert",
            lambda it, args, site: it.call(it.get(kind, "convert", site), Args([args.pos[0], NONE, NONE]), site),
        )
    return None


def _from_click(
    it: Interpreter, names: tuple[str, ...], settings: dict[str, Value], argument: bool, site: Site | None, off: str
) -> Option:
    plain = next((n for n in names if n and not n.startswith("-")), None)
    flags = tuple(n for n in names if n.startswith("-"))
    longest = next((n for n in flags if n.startswith("--")), flags[0] if flags else plain or "")
    dest = plain or longest.lstrip("-").replace("-", "_")
    action = "store"
    kind, default = settings.get("type"), settings.get("default")
    if "flag_value" in settings:
        action = "store_const"
        settings["const"] = settings["flag_value"]
        if default is not None and operators.truth(default) is True:
            settings["default"] = settings["flag_value"]
        else:
            settings.pop("default", None)
    elif off or operators.truth(settings.get("is_flag", FALSE)) is True:
        action = "boolean" if off else "store_true"
        settings.setdefault("default", FALSE)
        if off:
            settings["off"] = Const(off)
    elif kind is None and isinstance(default, Const) and isinstance(default.value, (bool, int, float)):
        kind = settings["type"] = it.loader.builtins[type(default.value).__name__]  # what click takes it for
    if isinstance(kind, Instance) and isinstance(kind.payload, Seq):
        settings["choices"] = kind.payload
    if isinstance(kind, Instance) or action != "store":
        settings.pop("type", None)
    converter = _converter(it, kind, site)
    if converter is not None and action == "store":
        settings["type"] = converter
    if argument:
        if "default" in settings or operators.truth(settings.get("required", TRUE)) is False:
            settings["nargs"] = Const("?")
        settings.pop("required", None)
        return Option(dest.lower(), (dest.lower(),), dest.lower(), settings, action, site)
    return Option(longest, flags or (f"--{dest}",), dest, settings, action, site)


def _command(group: bool) -> Native:
    def make(it: Interpreter, args: Args, site: Site | None) -> Value:
        name = text_of(args.get(0, "name") or NONE)

        def decorate(it: Interpreter, inner: Args, site: Site | None) -> Value:
            found = _pending(inner.pos[0])
            made = Command(name or found.name, found.function, found.options or [])
            _set_defaults(made, args.kw.get("context_settings"))
            return Instance(APP, payload=App(start=made)) if group else Instance(COMMAND, payload=made)

        if args.pos and isinstance(args.pos[0], (Function, Instance)):
            name = None
            return decorate(it, Args([args.pos[0]]), site)
        return Native("command", decorate)

    return Native("click.command", make)


def _set_defaults(command: Command, settings: Value | None) -> None:
    """`context_settings={"default_map": {...}, "auto_envvar_prefix": "NAME"}`."""
    given = settings.get("default_map") if isinstance(settings, Mapping) else None
    prefix = settings.get("auto_envvar_prefix") if isinstance(settings, Mapping) else None
    for option in command.options or ():
        if prefix is not None:
            option.settings.setdefault("envvar", prefix)
        if isinstance(given, Mapping) and (default := given.get(option.dest)) is not None:
            option.settings["default"] = default


def _choice(it: Interpreter, args: Args, site: Site | None) -> Value:
    choices, sensitive = args.get(0, "choices"), args.get(1, "case_sensitive")
    insensitive = sensitive is not None and operators.truth(sensitive) is False
    attrs: dict[str, Value] = {"insensitive": TRUE} if insensitive else {}
    return Instance(OBJECT, attrs, choices if isinstance(choices, Seq) else Seq("list", []))


def _function_of(it: Interpreter, args: Args, site: Site | None) -> Value:
    obj, name = args.pos[0], text_of(args.pos[1])
    if isinstance(obj, Instance) and isinstance(obj.payload, Command) and name == "callback":
        return obj.payload.function
    if isinstance(obj, Instance) and isinstance(obj.payload, Command) and name == "params":
        return Seq("list", [o.handle for o in obj.payload.options or () if o.handle is not None])
    raise RaiseSignal("AttributeError")


# -- fire -------------------------------------------------------------------------------------------------------


def _fire(it: Interpreter, args: Args, site: Site | None) -> Value:
    component, command = args.get(0, "component"), args.get(1, "command") or NONE
    given = text_of(command)
    argv = tuple(given.split()) if given is not None else _texts(it, command, site) or _words(it)
    if isinstance(component, Mapping):
        app = App([Command(text_of(k) or "", v) for k, v in component.entries.values()])
        return _run_app(it, app, argv, site)
    if isinstance(component, Class):
        made = it.call(component, Args(), site)
        methods = [n for n, v in component.env.names.items() if isinstance(v, Function) and not n.startswith("_")]
        return _run_app(it, App([Command(n, it.get(made, n, site)) for n in methods]), argv, site)
    return _start(it, component or NONE, argv, site)


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


def _same(it: Interpreter, args: Args, site: Site | None) -> Value:
    return args.pos[0]


def _quiet(it: Interpreter, args: Args, site: Site | None) -> Value:
    return NONE


NATIVES: dict[str, Value] = {
    "typer.Typer": APP,
    "typer.Option": _declare(False),
    "typer.Argument": _declare(True),
    "typer.run": Native("typer.run", _run_function),
    "typer.echo": Native("typer.echo", _quiet),
    "typer.secho": Native("typer.secho", _quiet),
    "click.command": _command(False),
    "click.group": _command(True),
    "click.option": _click_option(False),
    "click.argument": _click_option(True),
    "click.BOOL": Native("click.BOOL", lambda it, args, site: Const((text_of(args.pos[0]) or "").lower() in _YES)),
    "click.ParamType": NativeClass("click.ParamType", bases=(OBJECT,)),
    "click.Choice": Native("click.Choice", _choice),
    "click.pass_context": Native("click.pass_context", _same),
    "click.echo": Native("click.echo", _quiet),
    "click.secho": Native("click.secho", _quiet),
    "fire.Fire": Native("fire.Fire", _fire),
}
