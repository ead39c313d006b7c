"""`contextlib`: context managers, above all those written as generators.

Of such a one it is told what is done before its `yield`, and what after the `with` block. Exporters patch a model this
way: `with patched(model): torch.export.export(model, ...)`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import libcst as cst

from auditor import operators
from auditor.calls.parameters import bind, receiver
from auditor.handlers import first_argument, itself
from auditor.interpreter import Frame, Interpreter, RaiseSignal, Signal
from auditor.objects.inheritance import OBJECT, class_lookup
from auditor.places import Site, here
from auditor.syntax import contains_yield
from auditor.values import (
    NONE,
    Args,
    Env,
    ExternalObject,
    Function,
    Instance,
    Native,
    NativeClass,
    Unknown,
    Value,
)

Exit = Callable[[Interpreter, Site], None]


class _Unfollowed(Exception):
    """The generator yields where a look at its statements does not tell what runs before and after."""


def _managed(it: Interpreter, args: Args, site: Site | None) -> Value:
    """`contextlib.contextmanager(function)`."""
    function = args.pos[0]
    if isinstance(function, Function) and function.generator:
        function.manages = True
    return function


def manager_of(function: Function, args: Args) -> Value:
    """What a call of such a function gives: nothing of it has run yet."""
    return Instance(MANAGER, payload=(function, args, []))


def _enter(it: Interpreter, args: Args, site: Site | None) -> Value:
    manager = args.pos[0]
    assert isinstance(manager, Instance)
    function, given, exits = manager.payload
    env = Env(parent=function.env)
    frame = Frame(env, function.site.statement, it.loader.module_of(function.env), function, receiver(function, given))
    bind(it, function, given, env, site)
    mark = len(it.heap.pending)
    it.depth += 1
    try:
        return _first_half(it, function.node.body.body, frame, exits)
    except _Unfollowed:
        exits.clear()
        places = here(site)
        it.poison = Unknown(f"what `{function.name}` does around its `with` block cannot be followed", places=places)
        return it.poison
    finally:
        it.depth -= 1
        it.settle(mark, None, ())


def _first_half(it: Interpreter, body: Sequence[Any], frame: Frame, exits: list[Exit]) -> Value:
    """Run the statements before the `yield`, leave what comes after it in `exits`, and give what it yields."""
    at = next((n for n, s in enumerate(body) if contains_yield(s)), None)
    if at is None or it.run_block(body[:at], frame) is not None:
        raise _Unfollowed
    exits.append(_later(body[at + 1 :], frame))
    match body[at]:
        case cst.SimpleStatementLine(body=[cst.Expr(value=cst.Yield(value=value))]) if not isinstance(value, cst.From):
            return it.eval(value, frame) if value is not None else NONE
        case cst.Try(body=inner, finalbody=last):
            if last is not None:
                exits.append(_later(last.body.body, frame))
            return _first_half(it, inner.body, frame, exits)
        case cst.With(items=items, body=inner):
            for item in items:
                manager = it.eval(item.item, frame)
                enter(it, manager, frame.statement.site(item))
                exits.append(_left(manager))
            return _first_half(it, inner.body, frame, exits)
        case cst.If(test=test, body=inner, orelse=other):
            truth = operators.truth(it.eval(test, frame))
            chosen = inner if truth else getattr(other, "body", None)
            if truth is not None and isinstance(chosen, cst.IndentedBlock):
                return _first_half(it, chosen.body, frame, exits)
    raise _Unfollowed


def _left(manager: Value) -> Exit:
    return lambda it, site: leave(it, manager, site)


def _later(body: Sequence[Any], frame: Frame) -> Exit:
    def run(it: Interpreter, site: Site) -> None:
        signal: Signal = it.run_block(body, frame)
        del signal  # the generator is at its end either way

    return run


def _exit(it: Interpreter, args: Args, site: Site | None) -> Value:
    manager = args.pos[0]
    assert isinstance(manager, Instance)
    *_, exits = manager.payload
    mark = len(it.heap.pending)
    while exits and site is not None:
        exits.pop()(it, site)
    it.settle(mark, None, ())
    return NONE


def _decorates(it: Interpreter, args: Args, site: Site | None) -> Value:
    """A manager as a decorator: the function runs inside it."""
    _enter(it, args, site)
    return args.pos[1] if len(args.pos) > 1 else NONE


MANAGER = NativeClass(
    "contextlib._GeneratorContextManager",
    {"__enter__": _enter, "__exit__": _exit, "__call__": _decorates},
    (OBJECT,),
)


_MODES = ("__torch_function__", "__torch_dispatch__")
"""Methods that PyTorch calls for every operation while a manager that has them is entered."""


def enter(it: Interpreter, manager: Value, site: Site) -> Value | None:
    """What the `__enter__` of an object gives; None when it is no object with a known one."""
    if isinstance(manager, Instance) and any(class_lookup(manager.cls, name)[0] is not None for name in _MODES):
        it.poison = it.poison or Unknown("operations go through a mode of the script's own", places=(site,))
    return _called(it, manager, "__enter__", Args(), site)


def leave(it: Interpreter, manager: Value, site: Site) -> None:
    """Run the `__exit__` of an object that has one that is known."""
    _called(it, manager, "__exit__", Args([NONE, NONE, NONE]), site)


def _called(it: Interpreter, manager: Value, name: str, args: Args, site: Site) -> Value | None:
    if not isinstance(manager, Instance):
        return None
    try:
        method = it.get(manager, name, site)
    except RaiseSignal:
        return None
    return None if isinstance(method, Unknown) else it.call(method, args, site)


# -- contextlib.ExitStack ---------------------------------------------------------------------------------------


def _stack(args: Args) -> list[Exit]:
    stack = args.pos[0]
    assert isinstance(stack, Instance)
    if stack.payload is None:
        stack.payload = []
    found: list[Exit] = stack.payload
    return found


def _enter_context(it: Interpreter, args: Args, site: Site | None) -> Value:
    manager = args.pos[1]
    given = enter(it, manager, site) if site is not None else None
    _stack(args).append(_left(manager))
    return given if given is not None else manager


def _push(it: Interpreter, args: Args, site: Site | None) -> Value:
    _stack(args).append(_left(args.pos[1]))
    return args.pos[1]


def _on_exit(it: Interpreter, args: Args, site: Site | None) -> Value:
    function, given = args.pos[1], Args(args.pos[2:], args.kw, args.more)

    def run(it: Interpreter, site: Site) -> None:
        it.call(function, given, site)

    _stack(args).append(run)
    return function


def _close(it: Interpreter, args: Args, site: Site | None) -> Value:
    exits = _stack(args)
    while exits and site is not None:
        exits.pop()(it, site)
    return NONE


EXIT_STACK = NativeClass(
    "contextlib.ExitStack",
    {
        "__enter__": itself,
        "__exit__": _close,
        "close": _close,
        "enter_context": _enter_context,
        "enter_async_context": _enter_context,
        "push": _push,
        "callback": _on_exit,
    },
    (OBJECT,),
    closed=True,
)


def _suppress(it: Interpreter, args: Args, site: Site | None) -> Value:
    return ExternalObject("contextlib.suppress", args)


NATIVES: dict[str, Value] = {
    "contextlib.suppress": Native("suppress", _suppress),
    "contextlib.nullcontext": Native("nullcontext", first_argument),
    "contextlib.contextmanager": Native("contextmanager", _managed),
    "contextlib.asynccontextmanager": Native("asynccontextmanager", _managed),
    "contextlib.ExitStack": EXIT_STACK,
    "contextlib.AsyncExitStack": EXIT_STACK,
}
