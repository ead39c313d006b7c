"""`with`: entering and leaving, and managers that swallow what is raised."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import libcst as cst

from auditor.interpreter import Frame, Interpreter, Signal
from auditor.objects.inheritance import class_lookup
from auditor.places import Site
from auditor.statements.assignments import assign
from auditor.statements.exceptions import exception_name, try_
from auditor.stdlib.managers import EXIT_STACK, enter, leave
from auditor.syntax import contains_yield, parts, spelled
from auditor.values import NONE, ExternalObject, Function, Instance, NativeClass, Seq, Unknown, Value


def with_(it: Interpreter, node: cst.With, frame: Frame) -> Signal:
    managers: list[Value] = []
    swallowed: list[str] = []
    for item in node.items:
        manager = it.eval(item.item, frame)
        managers.append(manager)
        entered = _enter(it, manager, frame.statement.site(item))
        swallowed += _swallows(manager, node.body)
        if item.asname is not None:
            assign(it, item.asname.name, entered, frame)
    captured = it.captured
    try:
        return _suppressing(it, node, swallowed, frame) if swallowed else it.run_block(node.body.body, frame)
    finally:
        # A program that was captured inside keeps what was patched there: its facts are computed later.
        for item, manager in zip(reversed(node.items), reversed(managers), strict=True):
            if it.captured == captured:
                leave(it, manager, frame.statement.site(item))


def _suppressing(it: Interpreter, node: cst.With, kinds: list[str], frame: Frame) -> Signal:
    """A block whose managers end exceptions of these kinds: a `try` whose only handler does nothing."""
    types = cst.Tuple([cst.Element(cst.Name(kind)) for kind in kinds])
    handler = cst.ExceptHandler(body=cst.IndentedBlock([]), type=types)
    return try_(it, cst.Try(body=node.body, handlers=[handler]), frame)


def _enter(it: Interpreter, manager: Value, site: Site) -> Value:
    given = enter(it, manager, site)
    if given is not None:
        return given
    if isinstance(manager, Seq):
        return manager.items[0] if manager.items else NONE
    if isinstance(manager, Unknown):
        return manager.child(".__enter__()")
    return manager


def _swallows(manager: Value, body: cst.BaseSuite) -> list[str]:
    """The kinds of exceptions in `body` that a manager may end; empty where it lets all of them pass."""
    match manager:
        case ExternalObject(dotted=dotted) if dotted.endswith((".suppress", ".raises")):
            return [exception_name(kind) for kind in manager.args.pos]
        case Instance(cls=cls) if cls is EXIT_STACK:
            calls = (spelled(n.func) for n in _nodes(body) if isinstance(n, cst.Call))
            return ["Exception"] if any(name.endswith("suppress") for name in calls) else []
        case Instance(cls=NativeClass(), payload=(Function() as function, *_)):
            return _around_yield(function)
        case Instance():
            leaving, _ = class_lookup(manager.cls, "__exit__")
            return ["Exception"] if isinstance(leaving, Function) and _may_be_true(leaving.node.body) else []
    return []


def _around_yield(function: Function) -> list[str]:
    """What the handlers around the `yield` of a generator take and do not raise again."""
    return [
        spelled(handler.type).rpartition(".")[2] if isinstance(handler.type, (cst.Name, cst.Attribute)) else "Exception"
        for node in _nodes(function.node.body)
        if isinstance(node, cst.Try) and contains_yield(node.body)
        for handler in node.handlers
        if not _ends_in_raise(handler.body)
    ]


def _ends_in_raise(body: cst.BaseSuite) -> bool:
    last: Any = body.body[-1]
    return isinstance(last.body[-1] if isinstance(last, cst.SimpleStatementLine) else last, cst.Raise)


def _may_be_true(body: Any) -> bool:
    """Whether a function may return something that is not None or False."""
    given = [n.value for n in _nodes(body) if isinstance(n, cst.Return) and n.value is not None]
    return any(not isinstance(v, cst.Name) or v.value not in ("None", "False") for v in given)


def _nodes(node: Any) -> Iterator[Any]:
    """A node and what is in it, but for the bodies of inner functions and classes."""
    yield node
    for part in parts(node):
        if not isinstance(part, (cst.FunctionDef, cst.ClassDef, cst.Lambda)):
            yield from _nodes(part)
