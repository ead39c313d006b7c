"""What each statement node does: the function for it, and how blocks run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import libcst as cst

from auditor.interpreter import BREAK, CONTINUE, Frame, Interpreter, Return, Signal
from auditor.statements import assignments, branches, exceptions, loops, managers, matching, names
from auditor.values import NONE


def expression(it: Interpreter, node: cst.Expr, frame: Frame) -> Signal:
    if type(node.value) not in (cst.SimpleString, cst.ConcatenatedString):
        it.eval(node.value, frame)
    return None


def return_(it: Interpreter, node: cst.Return, frame: Frame) -> Signal:
    return Return(it.tag(it.eval(node.value, frame)) if node.value is not None else NONE)


_RUN: dict[type, Callable[[Interpreter, Any, Frame], Signal]] = {
    cst.Expr: expression,
    cst.Assign: assignments.assignment,
    cst.AnnAssign: assignments.annotated,
    cst.AugAssign: assignments.augmented,
    cst.Return: return_,
    cst.Pass: lambda it, node, frame: None,
    cst.Break: lambda it, node, frame: BREAK,
    cst.Continue: lambda it, node, frame: CONTINUE,
    cst.Del: assignments.delete,
    cst.Assert: exceptions.assert_,
    cst.Raise: exceptions.raise_,
    cst.Global: names.global_,
    cst.Nonlocal: names.nonlocal_,
    cst.Import: names.import_,
    cst.ImportFrom: names.import_from,
    cst.FunctionDef: names.function,
    cst.ClassDef: names.class_,
    cst.If: branches.if_,
    cst.For: loops.for_,
    cst.While: loops.while_,
    cst.Try: exceptions.try_,
    cst.TryStar: exceptions.try_,
    cst.With: managers.with_,
    cst.Match: matching.match_,
}
if hasattr(cst, "TypeAlias"):
    _RUN[cst.TypeAlias] = lambda it, node, frame: None


def run_block(it: Interpreter, body: Sequence[Any], frame: Frame) -> Signal:
    for node in body:
        signal = run(it, node, frame)
        if signal is not None:
            return signal
    return None


def run(it: Interpreter, node: Any, frame: Frame) -> Signal:
    it.tick()
    frame.statement.at = node
    if type(node) is cst.SimpleStatementLine:
        for small in node.body:
            signal = _RUN[type(small)](it, small, frame)
            if signal is not None:
                return signal
        return None
    handler = _RUN.get(type(node))
    return handler(it, node, frame) if handler else None
