"""Functions and calls: parameters, decorators, and what calling each kind of value gives."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, TypeGuard

import libcst as cst

from auditor import operators
from auditor.interpreter import MAX_DEPTH, Frame, Interpreter, RaiseSignal, Return
from auditor.joins import join_all, union
from auditor.places import Site
from auditor.roles import words
from auditor.syntax import names, parts, spelled
from auditor.values import (
    NONE,
    Args,
    Bound,
    Class,
    Const,
    Env,
    External,
    ExternalObject,
    Function,
    Instance,
    Mapping,
    Native,
    NativeClass,
    Num,
    Pattern,
    Seq,
    Star,
    Tensor,
    Union,
    Unknown,
    Value,
    merge_flags,
)

_MAX_RECURSION = 24
_PROGRAMS = ("torch.export.ExportedProgram", "coreai", "coremltools.models")
"""Classes of ours whose objects are a graph: code that nobody can read may edit one."""
_MOST_TAINTED = 2_000
_HOLDING_NOTHING = frozenset({Const, Num, Pattern, Tensor, Unknown, External, Native})
_READS = frozenset(
    {"get", "pop", "copy", "items", "keys", "values", "to_dict", "item", "tolist", "get_tensor", "get_slice"}
)
"""Methods of plain data that give plain data."""


def make_function(it: Interpreter, node: cst.FunctionDef | cst.Lambda, name: str, frame: Frame) -> Function:
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
    is_async = isinstance(node, cst.FunctionDef) and node.asynchronous is not None
    return Function(name, node, env, defaults, site=frame.statement.site(node), generator=generator, is_async=is_async)


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


def make_decorated(it: Interpreter, node: cst.FunctionDef, frame: Frame) -> Value:
    function: Value = make_function(it, node, node.name.value, frame)
    for decorator in reversed(node.decorators):
        function = _decorate(it, decorator, function, frame)
    return function


def _decorate(it: Interpreter, decorator: cst.Decorator, function: Value, frame: Frame) -> Value:
    expr = decorator.decorator
    target = expr.func if isinstance(expr, cst.Call) else expr
    if isinstance(target, cst.Attribute) and target.attr.value in ("setter", "getter", "deleter"):
        current = frame.env.names.get(getattr(target.value, "value", ""))
        if target.attr.value == "setter" and isinstance(current, Function) and isinstance(function, Function):
            current.setter = function
            return current
        return current or function
    value = it.eval(expr, frame)
    site = frame.statement.site(decorator)
    if isinstance(value, (Function, Bound, Class, Native, NativeClass, Instance)):
        result = it.call(value, Args([function]), site)
        return function if isinstance(result, Unknown) and isinstance(value, (Native, NativeClass)) else result
    if isinstance(function, Function) and not keeps(it.eval(target, frame)):
        name = spelled(target)
        reason = f"the decorator `{name}` of `{function.name}` cannot be read"
        function.wrapped = Unknown(reason, name, places=(site,))
    return function


_KEEPING = frozenset(sys.stdlib_module_names) | {
    "torch",
    "numpy",
    "transformers",
    "executorch",
    "coremltools",
    "coreai_torch",
    "coreai",
    "coreai_opt",
    "jaxtyping",
    "beartype",
    "typeguard",
    "typing_extensions",
    "deprecated",
    "deprecation",
    "numba",
    "pytest",
    "click",
    "typer",
    "fire",
    "hydra",
    "absl",
    "tqdm",
}
"""Packages whose decorators leave what a function computes as it is."""


def keeps(decorator: Value) -> bool:
    """Whether a decorator without source is known, or says by its name, that it gives the function back."""
    if not isinstance(decorator, (External, Unknown)):
        return True
    name = decorator.dotted if isinstance(decorator, External) else decorator.name
    return name.split(".")[0] in _KEEPING or "regist" in name.rpartition(".")[2].lower()


def call(it: Interpreter, function: Value, args: Args, site: Site | None) -> Value:
    it.tick(site)
    while type(function) is Bound:
        args = Args([function.receiver, *args.pos], args.kw, args.more)
        function = function.function
        it.tick(site)
    match function:
        case Native():
            return _native(it, function, args, site)
        case Function():
            return call_function(it, function, args, site)
        case Class() | NativeClass():
            from auditor.objects.instances import instantiate

            return instantiate(it, function, args, site)
        case Instance():
            return _call_instance(it, function, args, site)
        case Union():
            return it.each(function, lambda f: call(it, f, args, site))
        case External():
            return it.loader.call_external(it, function, args, site)
        case ExternalObject():
            return it.loader.call_external(
                it, External(f"{function.dotted}()", places=function.places), args, site, function
            )
        case Unknown(kind="data", of=Unknown() as whole):
            method = it.meaning.method_of_data(it, whole, function.name.rpartition(".")[2], site)
            if method is not None:
                return call(it, method, args, site)
        case Const(value=None):
            raise RaiseSignal("TypeError", Unknown("None is called", places=(site,) if site else ()))
    return unread(it, function, args, site)


def _native(it: Interpreter, function: Native, args: Args, site: Site | None) -> Value:
    try:
        result = function.function(it, args, site)
        out = args.kw.get("out") if it.events is not None else None
        if isinstance(out, Tensor) and site is not None:
            _written_out(it, out, result, site)
        return result
    except (IndexError, KeyError, TypeError, ValueError, AttributeError, AssertionError) as error:
        return Unknown(
            f"`{function.name}` could not be evaluated with these arguments ({type(error).__name__})",
            places=(site,) if site else (),
        )


def _written_out(it: Interpreter, out: Tensor, result: Value, site: Site) -> None:
    """`torch.add(a, b, out=c)`."""
    from auditor.torch.ops.writes import filled_in
    from auditor.torch.rows import overwritten

    it.events.written(out, site, None, result)
    if out.base is None and isinstance(result, Tensor):
        filled_in(out, result)
        overwritten(it, out, None, result.tags)


def unread(it: Interpreter, function: Value, args: Args, site: Site | None) -> Unknown:
    """A call that nobody can read: its result is unknown, and so are the modules that it received."""
    name = (
        function.name
        if isinstance(function, Unknown) and function.name
        else getattr(function, "dotted", "") or "a value"
    )
    reason = function.reason if isinstance(function, Unknown) else f"the call to `{name}` cannot be read"
    places = function.places if isinstance(function, Unknown) and function.places else ((site,) if site else ())
    reads = isinstance(function, Unknown) and function.kind == "data" and name.rpartition(".")[2] in _READS
    result = Unknown(
        reason, f"{name}()", "data" if reads else "", places=places, flags=merge_flags([function, *args.all()])
    )
    taint(it, args, Unknown(reason, places=places))
    operated(it, function, args, site)
    it.assumed.forget()
    if it.events is not None and (it.events.last_rows or type(function) is not Unknown):
        from auditor.torch import last_row

        last_row.called(it, function, args, result)
    if site is not None and not reads:
        last = name.removesuffix(".default").rpartition(".")[2]
        _written_unread(it, args.all(), reason, site, last.endswith("_") and not last.endswith("__"))
    return result


_EDITS = frozenset(
    {"replace_input_with", "replace_all_uses_with", "update_arg", "update_kwarg", "insert_arg", "erase_node", "append"}
    | {"call_function", "call_method", "call_module", "create_node", "output", "node_copy", "graph_copy", "prepend"}
    | {"inserting_before", "inserting_after", "recompile"}
)
"""Methods by which a graph is changed."""


GRAPHS = frozenset(f"`{name}` of an exported program" for name in ("graph", "graph_module"))
"""Why the graph of a program, and whatever is taken out of it, is not known (see `torch_export`)."""


def operated(it: Interpreter, function: Value, args: Args, site: Site | None) -> None:
    """A graph of an exported program may be changed by a call: what it computes is then not what `forward` does.

    Passes that rewrite a graph and mean the same are common; what has looked for the outputs, makes an operation that
    takes rows out of others, or cannot be read, may mean another thing.
    """
    method = function.name.rpartition(".")[2] if _of_graph(function) else ""
    given = any(map(_of_graph, args.all())) and not method
    it.outputs_sought = it.outputs_sought or method == "output_node"
    if given or (method in _EDITS and it.outputs_sought) or (method in _MAKES and _takes_rows(args)):
        _poisoned(it, site)


_MAKES = frozenset({"call_function", "create_node"})
_TAKING = frozenset(
    {"slice", "select", "narrow", "index", "index_select", "gather", "mean", "sum", "amax", "max", "argmax", "topk"}
    | {"cumsum", "roll", "flip", "select_scatter", "slice_scatter", "index_put", "zeros_like", "full_like"}
)
"""Operators whose result may have other rows than what goes in."""


def _takes_rows(args: Args) -> bool:
    """Whether a node is made of an operator that may take rows out of others.

    One that works on the first axis does not (that of the layers or of the batch), nor one that begins at the start.
    """
    made = [v for v in args.all() if isinstance(v, (External, Native))]
    name = (made[0].dotted if isinstance(made[0], External) else made[0].name) if made else ""
    if _TAKING.isdisjoint(name.split(".")):
        return False
    given = next((v for v in args.all() if isinstance(v, Seq) and v.kind == "tuple"), None)
    settings = [i.value for i in given.items[1:] if isinstance(i, Const)] if given is not None else []
    return not any(type(s) is int and s == 0 for s in settings[:2])


def edited(it: Interpreter, obj: Value, site: Site | None) -> None:
    """A part of an exported program's graph is set."""
    if _of_graph(obj) and it.outputs_sought:
        _poisoned(it, site)


def sought(it: Interpreter, a: Value, b: Value) -> None:
    """`node.op == "output"`."""
    named = b.items if isinstance(b, Seq) else [b]
    if _of_graph(a) and any(isinstance(n, Const) and n.value == "output" for n in named):
        it.outputs_sought = True


def _of_graph(v: Value) -> TypeGuard[Unknown]:
    return isinstance(v, Unknown) and v.reason in GRAPHS


def _poisoned(it: Interpreter, site: Site | None) -> None:
    places = (site,) if site is not None else ()
    it.poison = it.poison or Unknown("the graph of an exported program is edited", places=places)


_PATCHES = frozenset({"patch", "patches", "patched", "patching", "monkey", "monkeypatch", "hijack"})
_HOOKS = frozenset({"hook", "hooks"})
_REPLACES = frozenset({"apply", "inject", "override", "replace", "swap"})


def says_it_patches(dotted: str, args: Args) -> bool:
    """Whether a function that nobody can read says by its name that it changes the code of others.

    `apply_fused_kernels()` is given nothing that it could work on, so that it works on what is there.
    """
    said = words(dotted.rpartition(".")[2])
    alone = not args.pos and len(said) > 1 and said[0] in _REPLACES
    alone = alone or (not _HOOKS.isdisjoint(said) and any(isinstance(v, (Function, Bound)) for v in args.all()))
    return "()" not in dotted and (alone or not _PATCHES.isdisjoint(words(dotted)))


def _written_unread(it: Interpreter, values: Iterable[Value], reason: str, site: Site, in_place: bool = False) -> None:
    """A call that nobody can read may write to the states that it receives; `in_place` when its name says so."""
    for v in values:
        if isinstance(v, Tensor) and it.events is not None and (in_place or (v.base is not None and v.base.watched)):
            it.events.written(v, site, None, unclear=f"is handed to code that nobody can read: {reason}")
        elif isinstance(v, (Seq, Union)):
            _written_unread(it, v.items if isinstance(v, Seq) else v.options, reason, site, in_place)


def taint(it: Interpreter, args: Args, cause: Unknown) -> None:
    """Mark the modules among the arguments as changed by a call that nobody can read."""
    for v in args.all():
        _taint(it, v, cause, set())


def _taint(it: Interpreter, v: Value, cause: Unknown, seen: set[int]) -> None:
    if type(v) in _HOLDING_NOTHING or id(v) in seen or len(seen) > _MOST_TAINTED:
        return
    from auditor.objects.inheritance import mro
    from auditor.torch.modules import MODULE, is_module, walk

    seen.add(id(v))
    if isinstance(v, Instance) and is_module(v):
        for _, m in list(walk(v)):
            if m.taint is None:
                it.heap.touch(m)
                m.taint = cause
    elif isinstance(v, Class) and any(c is MODULE for c in mro(v)):
        it.poison = it.poison or cause  # it may have another `forward` now
    elif isinstance(v, Instance):
        if isinstance(v.cls, NativeClass) and v.cls.name.startswith(_PROGRAMS) and v.taint is None:
            it.heap.touch(v)
            v.taint = cause
        if hasattr(v.payload, "changed"):
            v.payload.changed(cause)
        for i in list(v.attrs.values()):
            _taint(it, i, cause, seen)
    elif isinstance(v, (Seq, Star)):
        for i in v.items:
            _taint(it, i, cause, seen)
    elif isinstance(v, Mapping):
        for _, i in v.entries.values():
            _taint(it, i, cause, seen)
    elif isinstance(v, Union):
        for i in v.options:
            _taint(it, i, cause, seen)
    elif isinstance(v, Bound):
        _taint(it, v.receiver, cause, seen)
    elif isinstance(v, Function):
        scope: Env | None = v.env  # what the function can reach, should the call run it
        while scope is not None and scope.module is None:
            for i in list(scope.names.values()):
                _taint(it, i, cause, seen)
            scope = scope.parent


def spoil(it: Interpreter, args: Args, cause: Unknown) -> None:
    """Dicts and lists that a call that nobody can read may reach, by itself or by a function that it may call."""
    for v in args.all():
        _spoil(it, v, cause)
        if isinstance(v, Function):
            scope: Env | None = v.env
            while scope is not None and scope.module is None:
                for inner in list(scope.names.values()):
                    _spoil(it, inner, cause)
                scope = scope.parent


_CHANGES = frozenset({"adjust", "apply", "configure", "merge", "override", "overrides", "set", "tune", "update"})


def spoil_settings(it: Interpreter, dotted: str, args: Args, cause: Unknown) -> None:
    """Objects of the sources that go into a call that nobody can read and that says that it changes what it is given.

    One that loads, logs or builds something (most of them) leaves settings as they are; modules are marked elsewhere.
    """
    if _CHANGES.isdisjoint(words(dotted.rpartition(".")[2])):
        return
    from auditor.torch.modules import is_module

    for v in args.all():
        if isinstance(v, Instance) and isinstance(v.cls, Class) and not is_module(v):
            it.heap.touch(v)
            v.attrs = {k: union([x, cause]) for k, x in v.attrs.items()}


def _spoil(it: Interpreter, v: Value, cause: Unknown) -> None:
    if isinstance(v, Mapping):
        it.heap.touch(v)
        v.entries = {k: (n, union([x, cause])) for k, (n, x) in v.entries.items()}
        v.rest = v.rest or cause
    elif isinstance(v, Seq) and v.kind in ("list", "set", "deque"):
        it.heap.touch(v)
        v.items = [union([x, cause]) if not isinstance(x, Star) else x for x in v.items]
        v.rest = v.rest or cause


def handed(it: Interpreter, args: Args, cause: Unknown) -> None:
    """Functions that were handed to code that may run them: what they reach may have changed since."""
    for v in args.all():
        function = v.function if isinstance(v, Bound) else v
        if isinstance(v, Bound) and isinstance(function, Native) and isinstance(v.receiver, (Mapping, Seq)):
            spoil(it, Args([v.receiver]), cause)
        if not isinstance(function, Function):
            continue
        if isinstance(v, Bound):
            _taint(it, v.receiver, cause, set())
        said, scope = names(function.node), function.env
        while scope.module is None and scope.parent is not None:
            reached = [value for name, value in scope.names.items() if name in said]
            taint(it, Args(reached), cause)
            spoil(it, Args(reached), cause)
            scope = scope.parent


def _call_instance(it: Interpreter, obj: Instance, args: Args, site: Site | None) -> Value:
    from auditor.torch.modules import call_module, is_module

    if is_module(obj):
        return call_module(it, obj, args, site)
    try:
        method = it.get(obj, "__call__", site)
    except RaiseSignal:
        return Unknown("an object that is not callable is called", places=(site,) if site else ())
    return it.call(method, args, site)


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
        it._merge([(None, c) for _, c in worlds], ())
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
        from auditor.torch import last_row

        last_row.annotated(it, f, env)


def _missing(it: Interpreter, f: Function, param: cst.Param, site: Site | None) -> Value:
    name = param.name.value
    kind = ""
    if param.annotation is not None:
        kind = annotation_kind(param.annotation.annotation)
    elif name in ("config", "hf_config", "cfg"):
        kind = "data"
    place = f.site.statement.site(param) if f.site is not None else site
    return Unknown(f"nothing says what `{name}` of `{f.name}` is", name, kind, places=(place,) if place else ())


def annotation_kind(node: Any) -> str:
    """The Python type that an annotation names, as an `Unknown.kind`; a configuration is plain data."""
    if isinstance(node, cst.Name):
        return (
            node.value
            if node.value in ("int", "str", "bool", "float", "dict", "list")
            else "path"
            if node.value == "Path"
            else "data"
            if node.value.endswith("Config")
            else ""
        )
    return ""


__all__ = ["Tensor", "bind", "call", "make_decorated", "make_function", "operators", "replace", "taint", "unread"]
