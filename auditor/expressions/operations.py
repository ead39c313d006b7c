"""Operators on every kind of value, and what decides between two expressions."""

from __future__ import annotations

import libcst as cst

from auditor import operators
from auditor.interpreter import Frame, Interpreter, RaiseSignal
from auditor.joins import join_all
from auditor.places import Site
from auditor.statements.narrowing import narrowed
from auditor.torch import mask_sides
from auditor.values import Args, Instance, Tensor, Union, Unknown, Value, altered

_BINARY: dict[type, str] = {
    cst.Add: "+",
    cst.Subtract: "-",
    cst.Multiply: "*",
    cst.Divide: "/",
    cst.FloorDivide: "//",
    cst.Modulo: "%",
    cst.Power: "**",
    cst.LeftShift: "<<",
    cst.RightShift: ">>",
    cst.BitAnd: "&",
    cst.BitOr: "|",
    cst.BitXor: "^",
    cst.MatrixMultiply: "@",
}


def operation(it: Interpreter, node: cst.BinaryOperation, frame: Frame) -> Value:
    return binary(
        it,
        _BINARY[type(node.operator)],
        it.eval(node.left, frame),
        it.eval(node.right, frame),
        frame.statement.site(node),
    )


def binary(it: Interpreter, op: str, a: Value, b: Value, site: Site) -> Value:
    """`a op b` for every kind of value."""
    if isinstance(a, Union) or isinstance(b, Union):
        if isinstance(a, Union):
            return it.each(a, lambda x: binary(it, op, x, b, site))
        return it.each(b, lambda y: binary(it, op, a, y, site))
    if isinstance(a, Tensor) or isinstance(b, Tensor):
        return it.meaning.tensor_binary(it, op, a, b, site)
    for x, name, other in ((a, _DUNDER.get(op), b), (b, _RDUNDER.get(op), a)):
        if isinstance(x, Instance) and name:
            try:
                method = it.get(x, name, site)
            except RaiseSignal:
                continue
            return it.call(method, Args([other]), site)
    result = operators.binary(op, a, b)
    if isinstance(result, Unknown) and not result.places:
        result.places = (site,)
    return result


_DUNDER = {
    "+": "__add__",
    "-": "__sub__",
    "*": "__mul__",
    "/": "__truediv__",
    "//": "__floordiv__",
    "%": "__mod__",
    "|": "__or__",
}
_RDUNDER = {"+": "__radd__", "*": "__rmul__", "/": "__rtruediv__", "-": "__rsub__"}


def boolean(it: Interpreter, node: cst.BooleanOperation, frame: Frame) -> Value:
    left = it.eval(node.left, frame)
    stop = isinstance(node.operator, cst.Or)
    return _short_circuit(it, left, stop, node, frame)


def _short_circuit(it: Interpreter, left: Value, stop: bool, node: cst.BooleanOperation, frame: Frame) -> Value:
    if isinstance(left, Union):
        kept = [o for o in left.options if operators.truth(o) is stop]
        if len(kept) == len(left.options):
            return left
        if not kept and all(operators.truth(o) is (not stop) for o in left.options):
            return it.tag(it.eval(node.right, frame), left.flags)
        maybe = [o for o in left.options if operators.truth(o) is not (not stop)]
        return it.choose([lambda: join_all(maybe), lambda: it.eval(node.right, frame)])
    known = it.truth(left)
    if known is stop:
        return left
    if known is not None:
        saved, it.conditions = it.conditions, it.conditions | left.flags
        try:
            return it.tag(it.eval(node.right, frame), left.flags)
        finally:
            it.conditions = saved
    return it.choose([lambda: left, lambda: it.eval(node.right, frame)])


def unary(it: Interpreter, node: cst.UnaryOperation, frame: Frame) -> Value:
    value = it.eval(node.expression, frame)
    op = {cst.Not: "not", cst.Minus: "-", cst.Plus: "+", cst.BitInvert: "~"}[type(node.operator)]
    if isinstance(value, Tensor) and op != "not":
        made = altered(value, tags=value.handed_on, base=None, data=None)
        return mask_sides.negated(made, value, op) if value.pick is not None and op != "+" else made
    return operators.unary(op, value)


def conditional(it: Interpreter, node: cst.IfExp, frame: Frame) -> Value:
    test = it.eval(node.test, frame)
    known = it.truth(test)
    if known is None:
        return it.choose(
            [
                lambda: narrowed(it, node.test, True, frame, lambda: it.eval(node.body, frame)),
                lambda: narrowed(it, node.test, False, frame, lambda: it.eval(node.orelse, frame)),
            ],
            test,
        )
    saved, it.conditions = it.conditions, it.conditions | test.flags
    try:
        return it.tag(it.eval(node.body if known else node.orelse, frame), test.flags)
    finally:
        it.conditions = saved
