"""`fire`: a function, a class or a dict of functions becomes a command line."""

from __future__ import annotations

from auditor.interpreter import Interpreter
from auditor.places import Site
from auditor.stdlib.options.running import App, Command, given_words, known_texts, run_app, start_command
from auditor.values import NONE, Args, Class, Function, Mapping, Native, Value, text_of


def _fire(it: Interpreter, args: Args, site: Site | None) -> Value:
    component, command = args.get(0, "component"), args.get(1, "command") or NONE
    given = text_of(command)
    argv = tuple(given.split()) if given is not None else known_texts(it, command, site) or given_words(it)
    if isinstance(component, Mapping):
        app = App([Command(text_of(k) or "", v) for k, v in component.entries.values()])
        return run_app(it, app, argv, site)
    if isinstance(component, Class):
        made = it.call(component, Args(), site)
        methods = [n for n, v in component.env.names.items() if isinstance(v, Function) and not n.startswith("_")]
        return run_app(it, App([Command(n, it.get(made, n, site)) for n in methods]), argv, site)
    return start_command(it, component or NONE, argv, site)


NATIVES: dict[str, Value] = {
    "fire.Fire": Native("fire.Fire", _fire),
}
