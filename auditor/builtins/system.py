"""Built-in functions that reach out of the evaluated code: files, the terminal, other code, the end of the process."""

from __future__ import annotations

from collections.abc import Callable

from auditor import documents
from auditor.expressions.text import format_value
from auditor.handlers import leaves, nothing
from auditor.importing import import_module
from auditor.interpreter import Interpreter
from auditor.places import Site, here
from auditor.values import Args, Const, Instance, NativeClass, Unknown, Value, text_of


def _input(it: Interpreter, args: Args, site: Site | None) -> Value:
    return Unknown("input() is typed in at run time", "input()", "str", places=here(site))


def _read_config(it: Interpreter, args: Args, site: Site | None) -> Value:
    obj = args.pos[0]
    assert isinstance(obj, Instance)
    return Instance(CONFIG_FILE, dict(obj.attrs), places=obj.places, flags=obj.flags)


CONFIG_FILE = NativeClass("file", {"read": _read_config, "close": nothing})
"""A configuration, opened: `json.load` of it, or `json.loads` of its text, gives its data."""


def _open(it: Interpreter, args: Args, site: Site | None) -> Value:
    name = format_value(args.pos[0], "", None) if args.pos else "*"
    it.may_raise("FileNotFoundError")
    if name.endswith("config.json") and it.loader.checkpoints.text(name) is not None:
        return Instance(CONFIG_FILE, {"name": Const(name)})
    mode = text_of(args.get(1, "mode") or Const("r"))
    if mode is None or set(mode) & set("wax+*"):
        it.written.add(name)
    elif documents.find(it, name) is not None:
        return Instance(CONFIG_FILE, {"document": Const(name)}, places=here(site), flags=args.pos[0].flags)
    return Unknown(
        f"the contents of the file `{name}` are read at run time", f"open({name})", "file", places=here(site)
    )


def _exec(it: Interpreter, args: Args, site: Site | None) -> Value:
    it.poison = Unknown("code in a string is not evaluated", "exec()", places=here(site))
    return it.poison


def _import(it: Interpreter, args: Args, site: Site | None) -> Value:
    name = text_of(args.pos[0])
    assert site is not None
    return (
        import_module(it, name.split(".")[0], None, site)
        if name and "*" not in name
        else Unknown("a module whose name is not known", places=(site,))
    )


FUNCTIONS: dict[str, Callable[..., Value]] = {
    "print": nothing,
    "input": _input,
    "breakpoint": nothing,
    "open": _open,
    "exit": leaves,
    "quit": leaves,
    "exec": _exec,
    "eval": _exec,
    "__import__": _import,
}
