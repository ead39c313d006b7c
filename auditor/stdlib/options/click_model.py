"""`click`: a stack of decorators over a function gives its options."""

from __future__ import annotations

from auditor import operators
from auditor.handlers import itself, nothing
from auditor.interpreter import Interpreter
from auditor.objects.inheritance import OBJECT, class_lookup
from auditor.places import Site
from auditor.stdlib.options.apps import APP, COMMAND, pending_command, set_defaults
from auditor.stdlib.options.option import Option
from auditor.stdlib.options.running import App, Command
from auditor.values import (
    FALSE,
    NONE,
    TRUE,
    Args,
    Class,
    Const,
    Function,
    Instance,
    Native,
    NativeClass,
    Seq,
    Value,
    text_of,
)


def _click_option(argument: bool) -> Native:
    def make(it: Interpreter, args: Args, site: Site | None) -> Value:
        given = [t for t in (text_of(a) for a in args.pos) if t]
        names = tuple(t.split("/")[0].strip() for t in given)
        off = next((t.split("/")[1].strip() for t in given if "/" in t), "")
        option = _from_click(it, names, dict(args.kw), argument, site, off)
        option.handle = Instance(OBJECT, {"name": Const(option.dest)})

        def decorate(it: Interpreter, inner: Args, site: Site | None) -> Value:
            before = pending_command(inner.pos[0])
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
            found = pending_command(inner.pos[0])
            made = Command(name or found.name, found.function, found.options or [])
            set_defaults(made, args.kw.get("context_settings"))
            return Instance(APP, payload=App(start=made)) if group else Instance(COMMAND, payload=made)

        if args.pos and isinstance(args.pos[0], (Function, Instance)):
            name = None
            return decorate(it, Args([args.pos[0]]), site)
        return Native("command", decorate)

    return Native("click.command", make)


def _choice(it: Interpreter, args: Args, site: Site | None) -> Value:
    choices, sensitive = args.get(0, "choices"), args.get(1, "case_sensitive")
    insensitive = sensitive is not None and operators.truth(sensitive) is False
    attrs: dict[str, Value] = {"insensitive": TRUE} if insensitive else {}
    return Instance(OBJECT, attrs, choices if isinstance(choices, Seq) else Seq("list", []))


NATIVES: dict[str, Value] = {
    "click.command": _command(False),
    "click.group": _command(True),
    "click.option": _click_option(False),
    "click.argument": _click_option(True),
    "click.BOOL": Native("click.BOOL", lambda it, args, site: Const((text_of(args.pos[0]) or "").lower() in _YES)),
    "click.ParamType": NativeClass("click.ParamType", bases=(OBJECT,)),
    "click.Choice": Native("click.Choice", _choice),
    "click.pass_context": Native("click.pass_context", itself),
    "click.echo": Native("click.echo", nothing),
    "click.secho": Native("click.secho", nothing),
}
