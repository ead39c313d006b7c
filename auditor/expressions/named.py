"""`:=`, which binds a name where an expression is evaluated."""

from __future__ import annotations

from dataclasses import replace

import libcst as cst

from auditor.interpreter import Frame, Interpreter
from auditor.statements.assignments import assign
from auditor.values import Value


def named(it: Interpreter, node: cst.NamedExpr, frame: Frame) -> Value:
    value = it.eval(node.value, frame)
    env = frame.env
    while env.parent is not None and env.redirect.get("") is not None:
        env = env.parent
    assign(it, node.target, value, replace(frame, env=env))
    return value
