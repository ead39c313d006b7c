"""`raise`, `assert` and `try`: what is raised, and which handlers may take it."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from functools import partial

import libcst as cst

from auditor import operators
from auditor.heap import Contents
from auditor.interpreter import Attempt, ExitSignal, Frame, Interpreter, RaiseSignal, Signal
from auditor.objects.inheritance import mro
from auditor.statements.assignments import assign
from auditor.syntax import names
from auditor.values import Args, Class, External, Instance, NativeClass, Seq, Unknown, Value


def raise_(it: Interpreter, node: cst.Raise, frame: Frame) -> Signal:
    if node.exc is None:
        raise frame.caught[-1] if frame.caught else RaiseSignal("Exception")
    value = it.eval(node.exc, frame)
    if isinstance(value, (Class, NativeClass)):
        value = it.call(value, Args(), frame.statement.site(node))
    kind, raised = exception_name(value), value if isinstance(value, Instance) else None
    if kind in ("SystemExit", "KeyboardInterrupt"):
        raise ExitSignal(kind, value, raised)
    raise RaiseSignal(kind, value, raised)


def assert_(it: Interpreter, node: cst.Assert, frame: Frame) -> Signal:
    test = it.eval(node.test, frame)
    if operators.truth(test) is False and it.maybe_raised:
        raise RaiseSignal("AssertionError")
    return None  # an assertion that nobody catches holds in a script that ships


def exception_name(value: Value) -> str:
    match value:
        case Instance(cls=c):
            return exception_name(c)
        case Class(name=n) | NativeClass(name=n):
            return n.rsplit(".", 1)[-1]
        case External(dotted=d):
            return d.rsplit(".", 1)[-1]
    return "Exception"


def try_(it: Interpreter, node: cst.Try, frame: Frame) -> Signal:
    depth = len(it.heap.frames)
    attempt = Attempt(depth, _tries_an_import(node))
    known = len(it.assumed.made)
    it.maybe_raised.append(attempt)
    it.heap.open()
    signal: Signal = None
    raised: RaiseSignal | None = None
    try:
        signal = it.run_block(node.body.body, frame)
    except RaiseSignal as error:
        raised = error
    finally:
        it.maybe_raised.pop()
        it.assumed.cut(known)
    started = it.heap.before(depth) if attempt.errors else {}
    it.heap.close(depth)
    try:
        if raised is not None:
            signal = _handle(it, node, raised, frame)
        else:
            if signal is None and node.orelse is not None:
                signal = it.run_block(node.orelse.body.body, frame)
            caught = _ways(it, node, attempt.errors, frame)
            if caught:
                ended = signal
                signal = it.fork([lambda: ended, *(_caught(it, w, frame, started) for w in caught)])
    finally:
        if node.finalbody is not None:
            last = it.run_block(node.finalbody.body.body, frame)
            signal = last if last is not None else signal
    return signal


Way = tuple[cst.ExceptHandler, RaiseSignal, Contents]


def _ways(it: Interpreter, node: cst.Try, errors: list[tuple[RaiseSignal, Contents]], frame: Frame) -> list[Way]:
    """The handlers that may have to take what may have been raised, each from the first such moment."""
    found: dict[int, Way] = {}
    for error, contents in errors:
        for handler in _handlers_for(it, node, error, frame):
            found.setdefault(id(handler), (handler, error, contents))
    return list(found.values())


def _caught(it: Interpreter, way: Way, frame: Frame, started: Contents) -> Callable[[], Signal]:
    handler, error, contents = way

    def run() -> Signal:
        it.heap.apply({**started, **contents})
        return _run_handler(it, handler, error, frame)

    return run


def _handle(it: Interpreter, node: cst.Try, error: RaiseSignal, frame: Frame) -> Signal:
    handlers = _handlers_for(it, node, error, frame)
    if not handlers:
        raise error
    if len(handlers) == 1:
        return _run_handler(it, handlers[0], error, frame)
    return it.fork([partial(_run_handler, it, h, error, frame) for h in handlers])


def _run_handler(it: Interpreter, handler: cst.ExceptHandler, error: RaiseSignal, frame: Frame) -> Signal:
    if handler.name is not None:
        value: Value = error.raised or Unknown(f"an exception {error.kind}", "error")
        assign(it, handler.name.name, value, frame)
    frame.caught.append(error)
    try:
        return it.run_block(handler.body.body, frame)
    finally:
        frame.caught.pop()


_OF_IMPORTS = {"ImportError", "ModuleNotFoundError"}


def _tries_an_import(node: cst.Try) -> bool:
    return any(h.type is not None and names(h.type) & _OF_IMPORTS for h in node.handlers)


def _handlers_for(it: Interpreter, node: cst.Try, error: RaiseSignal, frame: Frame) -> list[cst.ExceptHandler]:
    """The handler that takes an exception; every one that may, when its class is not known.

    What a call raises that nobody can read is no failed import.
    """
    kinds = _kinds(error)
    out: list[cst.ExceptHandler] = []
    for handler in node.handlers:
        if handler.type is None:
            return [*out, handler]
        accepted = it.eval(handler.type, frame)
        names = {exception_name(k) for k in (accepted.items if isinstance(accepted, Seq) else [accepted])}
        if kinds is None:
            if not names <= _OF_IMPORTS:
                out.append(handler)
            if names & {"Exception", "BaseException"}:
                return out
        elif kinds & names:
            return [handler]
    return out


def _kinds(error: RaiseSignal) -> set[str] | None:
    """The names of the classes that an exception belongs to; None when its class is not known."""
    if error.raised is not None:
        order = mro(error.raised.cls)
        if all(isinstance(c, (Class, NativeClass)) for c in order):
            return {exception_name(c) for c in order}
    if error.kind == "Exception":
        return None
    own = getattr(builtins, error.kind, None)
    if isinstance(own, type) and issubclass(own, BaseException):
        return {c.__name__ for c in own.__mro__}
    return {error.kind, "BaseException", *(() if isinstance(error, ExitSignal) else ("Exception",))}
