"""`if`: the arm that is taken, or both."""

from __future__ import annotations

from typing import Any

import libcst as cst

from auditor.interpreter import Frame, Interpreter, Signal
from auditor.statements.narrowing import Kept, narrowed, widened


def if_(it: Interpreter, node: cst.If, frame: Frame) -> Signal:
    test = it.eval(node.test, frame)
    known = it.truth(test)
    if known is not None:
        saved = it.conditions
        it.conditions = saved | test.flags
        try:
            return _arm(it, node, known, frame)
        finally:
            it.conditions = it.conditions if test.flags and _leaves(node) else saved
    kept: Kept = []
    signal = it.fork(
        [
            lambda: narrowed(it, node.test, True, frame, lambda: _arm(it, node, True, frame), kept),
            lambda: narrowed(it, node.test, False, frame, lambda: _arm(it, node, False, frame), kept),
        ],
        test,
    )
    widened(it, kept)
    return signal


def _arm(it: Interpreter, node: cst.If, taken: bool, frame: Frame) -> Signal:
    if taken:
        return it.run_block(node.body.body, frame)
    if node.orelse is None:
        return None
    if isinstance(node.orelse, cst.If):
        return if_(it, node.orelse, frame)
    return it.run_block(node.orelse.body.body, frame)


_leaving: dict[int, tuple[cst.If, bool]] = {}


def _leaves(node: cst.If) -> bool:
    """Whether an arm may leave the scope, so that what follows depends on the condition too."""
    found = _leaving.get(id(node))
    if found is None or found[0] is not node:
        found = _leaving[id(node)] = (node, _has_exit(node))
    return found[1]


def _has_exit(node: Any) -> bool:
    """Whether a statement, a block or an `else` part returns, raises, jumps or ends the process."""
    match node:
        case cst.Return() | cst.Raise() | cst.Continue() | cst.Break():
            return True
        case cst.Expr(value=cst.Call(func=cst.Attribute(attr=cst.Name(value=name)))):
            return name in ("exit", "error", "_exit")
        case cst.SimpleStatementLine(body=body) | cst.SimpleStatementSuite(body=body):
            return any(_has_exit(n) for n in body)
        case cst.IndentedBlock(body=body):
            return any(_has_exit(n) for n in body)
        case cst.If(body=body, orelse=orelse) | cst.For(body=body, orelse=orelse) | cst.While(body=body, orelse=orelse):
            return _has_exit(body) or _has_exit(orelse)
        case cst.Else(body=body) | cst.With(body=body) | cst.Finally(body=body) | cst.ExceptHandler(body=body):
            return _has_exit(body)
        case cst.Try(body=body, handlers=handlers, orelse=orelse):
            return _has_exit(body) or _has_exit(orelse) or any(_has_exit(h) for h in handlers)
        case cst.Match(cases=cases):
            return any(_has_exit(c.body) for c in cases)
    return False
