"""`typer`: options out of the signature of a function, with what `Option` and `Argument` say of them."""

from __future__ import annotations

from auditor.handlers import nothing
from auditor.interpreter import Interpreter
from auditor.objects.inheritance import OBJECT
from auditor.places import Site
from auditor.stdlib.options.apps import APP
from auditor.stdlib.options.running import given_words, start_command
from auditor.stdlib.options.signatures import Declared
from auditor.values import Args, Instance, Native, Value, text_of


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


def _run_function(it: Interpreter, args: Args, site: Site | None) -> Value:
    return start_command(it, args.pos[0], given_words(it), site)


NATIVES: dict[str, Value] = {
    "typer.Typer": APP,
    "typer.Option": _declare(False),
    "typer.Argument": _declare(True),
    "typer.run": Native("typer.run", _run_function),
    "typer.echo": Native("typer.echo", nothing),
    "typer.secho": Native("typer.secho", nothing),
}
