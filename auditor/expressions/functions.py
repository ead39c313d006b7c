"""Lambdas, and what generators and coroutines do."""

from __future__ import annotations

import libcst as cst

from auditor.calls.functions import make_function
from auditor.containers.iteration import iterate
from auditor.interpreter import Frame, Interpreter
from auditor.values import NONE, Value


def lambda_(it: Interpreter, node: cst.Lambda, frame: Frame) -> Value:
    return make_function(it, node, "<lambda>", frame)


def await_(it: Interpreter, node: cst.Await, frame: Frame) -> Value:
    return it.eval(node.expression, frame)


def yield_(it: Interpreter, node: cst.Yield, frame: Frame) -> Value:
    value: Value = NONE
    if isinstance(node.value, cst.From):
        source = iterate(it, it.eval(node.value.item, frame), frame.statement.site(node))
        items, rest = source.items, source.rest
    else:
        items, rest = [it.eval(node.value, frame) if node.value is not None else NONE], None
    if frame.yields is not None:
        it.heap.touch(frame.yields)
        frame.yields.items += items
        frame.yields.rest = frame.yields.rest or rest
    return value
