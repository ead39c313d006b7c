"""How arguments are bound to the parameters of a function, and what is known of one that nobody gives."""

from __future__ import annotations

from typing import Any

import libcst as cst

from auditor.interpreter import Interpreter
from auditor.joins import join_all
from auditor.places import Site
from auditor.torch import last_row
from auditor.values import Args, Const, Env, Function, Mapping, Seq, Unknown, Value


def bind(it: Interpreter, f: Function, args: Args, env: Env, site: Site | None) -> None:
    """Bind arguments to parameters in `env`; what is missing becomes an unknown that says so."""
    p = f.node.params
    names = env.names
    positional = [*p.posonly_params, *p.params]
    keywords = dict(args.kw)
    for i, param in enumerate(positional):
        name = param.name.value
        if i < len(args.pos):
            names[name] = args.pos[i]
        elif name in keywords:
            names[name] = keywords.pop(name)
    for param in p.kwonly_params:
        if param.name.value in keywords:
            names[param.name.value] = keywords.pop(param.name.value)
    if type(p.star_arg) is cst.Param:
        names[p.star_arg.name.value] = Seq("tuple", list(args.pos[len(positional) :]), args.more)
    if p.star_kwarg is not None:
        entries = {("str", k): (Const(k), v) for k, v in keywords.items()}
        names[p.star_kwarg.name.value] = Mapping(entries, args.more)  # type: ignore[arg-type]
    for param in (*positional, *p.kwonly_params):
        name = param.name.value
        if name in names:
            continue
        default = f.defaults.get(name)
        if args.more is not None:
            given = args.more.child(f".{name}")
            names[name] = join_all([given, default]) if default is not None else given
        elif default is not None:
            names[name] = default
        else:
            names[name] = _missing(it, f, param, site)
    if f.name == "__init__":
        last_row.annotated(it, f, env)


def receiver(f: Function, args: Args) -> Value | None:
    """The object that a method is called on."""
    return args.pos[0] if f.owner is not None and args.pos else None


def _missing(it: Interpreter, f: Function, param: cst.Param, site: Site | None) -> Value:
    name = param.name.value
    kind = ""
    if param.annotation is not None:
        kind = _annotation_kind(param.annotation.annotation)
    elif name in ("config", "hf_config", "cfg"):
        kind = "data"
    place = f.site.statement.site(param) if f.site is not None else site
    return Unknown(f"nothing says what `{name}` of `{f.name}` is", name, kind, places=(place,) if place else ())


_PLAIN = {**{name: name for name in ("int", "str", "bool", "float", "dict", "list")}, "Path": "path"}


def _annotation_kind(node: Any) -> str:
    """The Python type that an annotation names, as an `Unknown.kind`; a configuration is plain data."""
    if not isinstance(node, cst.Name):
        return ""
    return _PLAIN.get(node.value) or ("data" if node.value.endswith("Config") else "")
