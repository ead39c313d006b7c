"""`if`: the arm that is taken, or both."""

from __future__ import annotations

from typing import Any

import libcst as cst

from auditor.interpreter import Frame, Interpreter, Signal
from auditor.memo import by_identity
from auditor.statements.narrowing import Kept, narrowed, widened
from auditor.syntax import parts


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
    if type(node.orelse) is cst.If:
        return if_(it, node.orelse, frame)
    return it.run_block(node.orelse.body.body, frame)


@by_identity
def _leaves(node: cst.If) -> bool:
    """Whether an arm may leave the scope, so that what follows depends on the condition too."""
    return _has_exit(node)


_LEAVING = frozenset({cst.Return, cst.Raise, cst.Continue, cst.Break})
_HOLDING = frozenset(
    {cst.SimpleStatementLine, cst.SimpleStatementSuite, cst.IndentedBlock, cst.If, cst.Else, cst.For, cst.While}
    | {cst.With, cst.Try, cst.TryStar, cst.ExceptHandler, cst.ExceptStarHandler, cst.Finally, cst.Match, cst.MatchCase}
)


def _has_exit(node: Any) -> bool:
    """Whether a statement, a block or an `else` part returns, raises, jumps or ends the process."""
    kind = type(node)
    if kind in _LEAVING:
        return True
    if kind is cst.Expr:
        return _ends(node.value)
    return kind in _HOLDING and any(_has_exit(part) for part in parts(node))


def _ends(node: Any) -> bool:
    match node:
        case cst.Call(func=cst.Attribute(attr=cst.Name(value=name))):
            return name in ("exit", "error", "_exit")
    return False
