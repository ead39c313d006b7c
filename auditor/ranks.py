"""How many axes an input has whose example nobody knows: what `forward` itself says when it takes the shape apart."""

from __future__ import annotations

import libcst as cst

from auditor.values import Function


def unpacked_rank(function: Function, parameter: str) -> int | None:
    """The number of names in `b, s, _ = parameter.shape` (or `.size()`), among the first statements of the function.

    With an input of another rank the program would not run. None when it is not taken apart before a branch, or
    before the name stands for something else.
    """
    body = function.node.body
    for statement in body.body if isinstance(body, cst.IndentedBlock) else ():
        if not isinstance(statement, cst.SimpleStatementLine):
            return None
        for small in statement.body:
            if isinstance(small, cst.Expr):
                continue
            if not isinstance(small, cst.Assign):
                return None
            for target in small.targets:
                names = _names(target.target)
                if isinstance(target.target, cst.Tuple) and names and _is_shape_of(small.value, parameter):
                    return len(names)
                if names is None or parameter in names:
                    return None
    return None


def _names(target: cst.BaseExpression) -> list[str] | None:
    """The names that an assignment binds; None when something else is among its targets."""
    if isinstance(target, cst.Name):
        return [target.value]
    elements = target.elements if isinstance(target, cst.Tuple) else ()
    names = [e.value.value for e in elements if isinstance(e, cst.Element) and isinstance(e.value, cst.Name)]
    return names if elements and len(names) == len(elements) else None


def _is_shape_of(value: cst.BaseExpression, parameter: str) -> bool:
    attribute = "shape"
    if isinstance(value, cst.Call) and not value.args:
        value, attribute = value.func, "size"
    return (
        isinstance(value, cst.Attribute)
        and value.attr.value == attribute
        and isinstance(value.value, cst.Name)
        and value.value.value == parameter
    )
