"""What an arm knows of the names in its test."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import libcst as cst

from auditor import operators
from auditor.interpreter import Frame, Interpreter
from auditor.joins import union_of
from auditor.objects.instance_of import is_instance
from auditor.values import NONE, Env, Instance, Union, Unknown, Value

T = TypeVar("T")
Keep = Callable[[Value], bool]
Kept = list[tuple[bool, Any, str, Union]]
"""(answer of the test, object, name in it, value before) of what an arm has narrowed and not changed."""


def narrowed(
    it: Interpreter, test: Any, taken: bool, frame: Frame, thunk: Callable[[], T], kept: Kept | None = None
) -> T:
    """Run an arm knowing that `test` was true or false: unions in simple tests lose the options that contradict it."""
    fewer: list[tuple[Any, str, Union, Value]] = []
    for target, keep, answer in _narrowing(it, test, taken, frame):
        if type(target) is cst.Name:
            holder: Any = frame.env
            names = frame.env.names
            key = target.value
        else:
            holder = it.eval(target.value, frame)
            if not isinstance(holder, Instance):
                continue
            names, key = holder.attrs, target.attr.value
        value = names.get(key)
        if isinstance(value, Unknown) and answer is not None:
            it.assumed.assume(value, answer)
        if isinstance(value, Union):
            mine = it.assumed.chosen(value)
            options = [o for o in mine.options if keep(o)] if isinstance(mine, Union) else [mine]
            if options and len(options) < len(value.options):
                it.heap.touch(holder)
                names[key] = (
                    mine if isinstance(mine, Union) and len(options) == len(mine.options) else union_of(options)
                )
                fewer.append((holder, key, value, names[key]))
    result = thunk()
    if kept is not None:
        kept += [(taken, h, k, v) for h, k, v, now in fewer if _content(h).get(k) is now]
    return result


def widened(it: Interpreter, kept: Kept) -> None:
    """Where both arms go on, what each has narrowed is the value of before again, not another that looks like it."""
    for taken, holder, key, value in kept:
        now = _content(holder).get(key)
        if not taken or not isinstance(now, Union) or len(now.options) != len(value.options):
            continue
        if any(not t and h is holder and k == key and v is value for t, h, k, v in kept):
            it.heap.touch(holder)
            _content(holder)[key] = value


def _content(holder: Env | Instance) -> dict[str, Value]:
    return holder.names if isinstance(holder, Env) else holder.attrs


def _narrowing(it: Interpreter, test: Any, taken: bool, frame: Frame) -> list[tuple[Any, Keep, bool | None]]:
    """(name or attribute, which of its options agree with the outcome, its truth) for the simple parts of a test."""
    kind = type(test)
    if kind is cst.UnaryOperation and type(test.operator) is cst.Not:
        return _narrowing(it, test.expression, not taken, frame)
    if _narrowable(test):
        return [(test, lambda v: operators.truth(v) is not (not taken), taken)]
    if _is_isinstance(test):
        subject, cls = test.args[0].value, it.eval(test.args[1].value, frame)
        return [(subject, lambda v: is_instance(it, v, cls) is not (not taken), None)]
    if kind is cst.BooleanOperation:
        if (type(test.operator) is cst.And) == taken:
            return [*_narrowing(it, test.left, taken, frame), *_narrowing(it, test.right, taken, frame)]
        return []
    if kind is cst.Comparison and _narrowable(test.left) and len(test.comparisons) == 1:
        target = test.comparisons[0]
        operator = type(target.operator)
        if operator in (cst.Equal, cst.NotEqual) and type(target.comparator) is cst.SimpleString:
            constant, equal = it.eval(target.comparator, frame), (operator is cst.Equal) == taken
            return [
                (test.left, lambda v: operators.truth(operators.compare("==", v, constant)) is not (not equal), None)
            ]
        of_none = type(target.comparator) is cst.Name and target.comparator.value == "None"
        if of_none and operator in (cst.Is, cst.IsNot):
            wanted = (operator is cst.Is) == taken
            return [(test.left, lambda v: operators.identical(v, NONE) is not (not wanted), None)]
    return []


def _is_isinstance(test: Any) -> bool:
    if not (type(test) is cst.Call and type(test.func) is cst.Name and test.func.value == "isinstance"):
        return False
    return len(test.args) == 2 and _narrowable(test.args[0].value)


def _narrowable(node: Any) -> bool:
    kind = type(node)  # `isinstance` is slow to say no: the classes of LibCST are abstract
    return kind is cst.Name or (kind is cst.Attribute and type(node.value) is cst.Name)
