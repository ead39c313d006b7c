"""What each expression node means: the function for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import libcst as cst

from auditor.expressions.calls import call
from auditor.expressions.comparisons import comparison
from auditor.expressions.displays import comprehension, dict_, sequence
from auditor.expressions.functions import await_, lambda_, yield_
from auditor.expressions.lookups import subscript
from auditor.expressions.named import named
from auditor.expressions.names import attribute, name
from auditor.expressions.operations import boolean, conditional, operation, unary
from auditor.expressions.text import concatenated, formatted, literal
from auditor.interpreter import Frame, Interpreter
from auditor.values import Unknown, Value


def _not_evaluated(it: Interpreter, node: Any, frame: Frame) -> Value:
    return Unknown(f"{type(node).__name__} is not evaluated", places=(frame.statement.site(node),))


class _Expressions(dict[type, Callable[[Interpreter, Any, Frame], Value]]):
    def __missing__(self, kind: type) -> Callable[[Interpreter, Any, Frame], Value]:
        return _not_evaluated


EXPRESSIONS = _Expressions(
    {
        cst.Name: name,
        cst.SimpleString: literal,
        cst.Integer: literal,
        cst.Float: literal,
        cst.Imaginary: literal,
        cst.Ellipsis: literal,
        cst.ConcatenatedString: concatenated,
        cst.FormattedString: formatted,
        cst.Tuple: sequence("tuple"),
        cst.List: sequence("list"),
        cst.Set: sequence("set"),
        cst.Dict: dict_,
        cst.BinaryOperation: operation,
        cst.BooleanOperation: boolean,
        cst.Comparison: comparison,
        cst.UnaryOperation: unary,
        cst.IfExp: conditional,
        cst.Attribute: attribute,
        cst.Subscript: subscript,
        cst.Lambda: lambda_,
        cst.Await: await_,
        cst.Yield: yield_,
        cst.NamedExpr: named,
        cst.ListComp: comprehension("list"),
        cst.SetComp: comprehension("set"),
        cst.GeneratorExp: comprehension("list"),
        cst.DictComp: comprehension("dict"),
        cst.Call: call,
    }
)
