"""Functions of the sources: what a definition makes, how arguments are bound, how one is run."""

from __future__ import annotations

from typing import Any

import libcst as cst

from auditor.interpreter import MAX_DEPTH, Frame, Interpreter, RaiseSignal, Return
from auditor.joins import join_all
from auditor.places import Site
from auditor.syntax import parts
from auditor.torch import last_row
from auditor.values import NONE, Args, Const, Env, Function, Mapping, Seq, Unknown, Value


def make_function(it: Interpreter, node: cst.FunctionDef | cst.Lambda, name: str, frame: Frame) -> Function:
    """The function that a `def` or a lambda makes here, with the defaults as they are now."""
    defaults: dict[str, Value] = {}
    p = node.params
    for param in (*p.posonly_params, *p.params, *p.kwonly_params):
        if param.default is not None:
            defaults[param.name.value] = it.eval(param.default, frame)
    env = frame.env
    if "__class_scope__" in env.names:
        assert env.parent is not None
        env = env.parent
    generator = isinstance(node, cst.FunctionDef) and "yield" in frame.statement.text and _yields(node.body)
    return Function(name, node, env, defaults, site=frame.statement.site(node), generator=generator)


_yielding: dict[int, tuple[Any, bool]] = {}


def _yields(body: Any) -> bool:
    found = _yielding.get(id(body))
    if found is None or found[0] is not body:
        found = _yielding[id(body)] = (body, contains_yield(body))
    return found[1]


def contains_yield(node: Any) -> bool:
    """Whether a statement of a function makes it a generator."""
    if isinstance(node, cst.Yield):
        return True
    if isinstance(node, (cst.FunctionDef, cst.Lambda, cst.ClassDef)):
        return False
    return any(map(contains_yield, parts(node)))


_MAX_RECURSION = 24


def call_function(it: Interpreter, f: Function, args: Args, site: Site | None) -> Value:
    """Run a function of the sources on `args`."""
    if it.exhausted is not None:
        return it.exhausted
    if f.wrapped is not None and it.events is not None:
        return f.wrapped
    if it.rewired and id(f) in it.rewired:
        return it.rewired[id(f)][1]
    if f.manages:
        from auditor.stdlib.managers import made

        return made(f, args)
    depth = it.active.get(id(f.node), 0)
    # recursion from inside loops of unknown length doubles at every level: two levels show what there is to see
    if it.depth >= MAX_DEPTH or depth >= _MAX_RECURSION or (it.unknown_loops and depth >= 2):
        reason = f"`{f.name}` calls itself too deeply" if depth >= _MAX_RECURSION else "calls nest too deeply"
        return Unknown(reason, places=(site,) if site else ())
    assert f.site is not None
    env = Env(parent=f.env)
    frame = Frame(env, f.site.statement, it.loader.module_of(f.env), f, _receiver(f, args))
    bind(it, f, args, env, site)
    if f.generator:
        frame.yields = Seq("list", [])
    if type(f.node) is cst.Lambda:  # `isinstance` is slow on the abstract classes of LibCST
        return it.eval(f.node.body, frame)
    it.depth += 1
    it.active[id(f.node)] = depth + 1
    if site is not None:
        it.stack.append(site)
    conditions, mark, known = it.conditions, len(it.heap.pending), len(it.assumed.made)
    worlds: list[tuple[Any, Any]]
    try:
        signal = it.run_block(f.node.body.body, frame)
        worlds = it.heap.release(mark)
        worlds[-1] = (signal, worlds[-1][1])
    except RaiseSignal:
        worlds = it.heap.release(mark)[:-1]
        if not worlds:
            raise
    finally:
        it.depth -= 1
        it.active[id(f.node)] = depth
        it.conditions = conditions
        it.assumed.cut(known)
        if site is not None:
            it.stack.pop()
    if len(worlds) > 1 or worlds[0][1]:
        it.merge([(None, c) for _, c in worlds], ())
    if frame.yields is not None:
        return frame.yields
    return join_all(s.value if isinstance(s, Return) else NONE for s, _ in worlds)


def _receiver(f: Function, args: Args) -> Value | None:
    return args.pos[0] if f.owner is not None and args.pos else None


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
