"""Comparisons, by the classes of the script where they say."""

from __future__ import annotations

from typing import Any

import libcst as cst

from auditor import operators
from auditor.calls.graph_edits import sought
from auditor.interpreter import Frame, Interpreter, RaiseSignal
from auditor.objects.inheritance import class_lookup
from auditor.places import Site
from auditor.values import Args, Instance, Mapping, Seq, Tensor, Unknown, Value


def comparison(it: Interpreter, node: cst.Comparison, frame: Frame) -> Value:
    left = it.eval(node.left, frame)
    result: Value | None = None
    for target in node.comparisons:
        right = it.eval(target.comparator, frame)
        op = _comparison_name(target.operator)
        if (isinstance(left, Tensor) or isinstance(right, Tensor)) and op not in ("is", "is not", "in", "not in"):
            one = it.meaning.tensor_binary(it, op, left, right, frame.statement.site(node))
        elif op in ("in", "not in") and isinstance(right, Instance) and not isinstance(right.payload, (Seq, Mapping)):
            one = _in_object(it, op, left, right, frame.statement.site(node))
        elif (own := _own_comparison(it, op, left, right, frame.statement.site(node))) is not None:
            one = own
        else:
            if isinstance(left, Unknown) and op in ("==", "in"):
                sought(it, left, right)
            decided = it.events.compare(op, left, right) if it.events is not None else None
            one = operators.compare(op, left, right) if decided is None else decided
        if isinstance(one, Unknown) and not one.places:
            one.places = (frame.statement.site(node),)
        result = one if result is None else _and(result, one)
        left = right
    assert result is not None
    return result


_REFLECTED = {"==": "==", "!=": "!=", "<": ">", ">": "<", "<=": ">=", ">=": "<="}
_COMPARING = {"==": "__eq__", "!=": "__ne__", "<": "__lt__", ">": "__gt__", "<=": "__le__", ">=": "__ge__"}


def _own_comparison(it: Interpreter, op: str, left: Value, right: Value, site: Site) -> Value | None:
    """What a class of the script says of a comparison with one of its objects; None when none does."""
    for obj, other, own in ((left, right, op), (right, left, _REFLECTED.get(op, ""))):
        if own not in _COMPARING or not isinstance(obj, Instance):
            continue
        if class_lookup(obj.cls, _COMPARING[own])[0] is not None:
            return it.call(it.get(obj, _COMPARING[own], site), Args([other]), site)
        if own == "!=" and class_lookup(obj.cls, "__eq__")[0] is not None:
            return operators.unary("not", it.call(it.get(obj, "__eq__", site), Args([other]), site))
    return None


def _in_object(it: Interpreter, op: str, item: Value, obj: Instance, site: Site) -> Value:
    try:
        found = it.call(it.get(obj, "__contains__", site), Args([item]), site)
    except RaiseSignal:
        return operators.unknown_from("`in` on an object that does not say", "bool", item)
    return operators.unary("not", found) if op == "not in" else found


def _and(a: Value, b: Value) -> Value:
    x, y = operators.truth(a), operators.truth(b)
    if x is False or y is False:
        return operators.derived(False, a, b)
    return (
        operators.derived(True, a, b)
        if x and y
        else operators.unknown_from("a comparison that is not known", "bool", a, b)
    )


_COMPARE: dict[type, str] = {
    cst.Equal: "==",
    cst.NotEqual: "!=",
    cst.LessThan: "<",
    cst.LessThanEqual: "<=",
    cst.GreaterThan: ">",
    cst.GreaterThanEqual: ">=",
    cst.Is: "is",
    cst.IsNot: "is not",
    cst.In: "in",
    cst.NotIn: "not in",
}


def _comparison_name(op: Any) -> str:
    return _COMPARE[type(op)]
