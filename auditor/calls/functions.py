"""Functions of the sources: what a definition makes, and how one is run."""

from __future__ import annotations

from typing import Any

import libcst as cst

from auditor.calls.parameters import bind, receiver
from auditor.interpreter import MAX_DEPTH, Frame, Interpreter, RaiseSignal, Return
from auditor.joins import join_all
from auditor.places import Site, here
from auditor.stdlib.managers import manager_of
from auditor.syntax import yields
from auditor.values import NONE, Args, Const, Env, Function, Mapping, Seq, Unknown, Value, key_of
from auditor.values.absence import maybe_absent


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
    generator = isinstance(node, cst.FunctionDef) and "yield" in frame.statement.text and yields(node.body)
    return Function(name, node, env, defaults, site=frame.statement.site(node), generator=generator)


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
        return manager_of(f, args)
    return _run(it, f, args, site) if f.kept is None else _run_once(it, f, f.kept, args, site)


def _run_once(it: Interpreter, f: Function, kept: Mapping, args: Args, site: Site | None) -> Value:
    """`functools.cache` and the like: what the function has given for these arguments, if it has."""
    given = Seq("tuple", [*args.pos, *(v for name, one in args.kw.items() for v in (Const(name), one))])
    key = key_of(given) if args.more is None else None
    entry = kept.entries.get(key) if key is not None else None
    if entry is not None and not maybe_absent(entry[1]):
        return entry[1]
    value = _run(it, f, args, site)
    if key is not None:
        it.heap.touch(kept)
        kept.entries[key] = (given, value)
    return value


def _run(it: Interpreter, f: Function, args: Args, site: Site | None) -> Value:
    depth = it.active.get(id(f.node), 0)
    # recursion from inside loops of unknown length doubles at every level: two levels show what there is to see
    if it.depth >= MAX_DEPTH or depth >= _MAX_RECURSION or (it.unknown_loops and depth >= 2):
        reason = f"`{f.name}` calls itself too deeply" if depth >= _MAX_RECURSION else "calls nest too deeply"
        return Unknown(reason, places=here(site))
    assert f.site is not None
    env = Env(parent=f.env)
    frame = Frame(env, f.site.statement, it.loader.module_of(f.env), f, receiver(f, args))
    bind(it, f, args, env, site)
    if f.generator:
        frame.yields = Seq("list", [])
    if type(f.node) is cst.Lambda:  # `isinstance` is slow on the abstract classes of LibCST
        return it.eval(f.node.body, frame)
    it.depth += 1
    it.active[id(f.node)] = depth + 1
    if site is not None:
        it.stack.append(site)
    conditions, mark, known, taken = it.conditions, len(it.heap.pending), len(it.assumed.made), len(it.ways)
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
        del it.ways[taken:]
        if site is not None:
            it.stack.pop()
    if len(worlds) > 1 or worlds[0][1]:
        it.merge([(None, c) for _, c in worlds], ())
    if frame.yields is not None:
        return frame.yields
    return join_all(s.value if isinstance(s, Return) else NONE for s, _ in worlds)
