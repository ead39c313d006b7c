"""Assignments, plain, annotated and augmented, and `del`."""

from __future__ import annotations

from typing import Any

import libcst as cst

from auditor.containers.iteration import iterate
from auditor.containers.unpacking import unpack
from auditor.containers.writing import delete_item, set_item
from auditor.expressions.lookups import index_of
from auditor.expressions.operations import binary
from auditor.interpreter import Frame, Interpreter, Signal
from auditor.torch import rows
from auditor.torch.state_writes import is_layer
from auditor.values import Args, Const, Mapping, Seq, Tensor, Value
from auditor.values.absence import Deleted


def assignment(it: Interpreter, node: cst.Assign, frame: Frame) -> Signal:
    value = it.eval(node.value, frame)
    for target in node.targets:
        assign(it, target.target, value, frame)
    return None


def annotated(it: Interpreter, node: cst.AnnAssign, frame: Frame) -> Signal:
    if node.value is not None:
        assign(it, node.target, it.eval(node.value, frame), frame)
    if isinstance(node.target, cst.Name):
        fields = frame.env.names.get("__annotations__")
        if isinstance(fields, Mapping):
            annotation = cst.Module([]).code_for_node(node.annotation.annotation)
            fields.entries[("str", node.target.value)] = (Const(node.target.value), Const(annotation))
    return None


_AUGMENTED: dict[type, str] = {
    cst.AddAssign: "+",
    cst.SubtractAssign: "-",
    cst.MultiplyAssign: "*",
    cst.DivideAssign: "/",
    cst.FloorDivideAssign: "//",
    cst.ModuloAssign: "%",
    cst.PowerAssign: "**",
    cst.BitOrAssign: "|",
    cst.BitAndAssign: "&",
    cst.BitXorAssign: "^",
    cst.LeftShiftAssign: "<<",
    cst.RightShiftAssign: ">>",
    cst.MatrixMultiplyAssign: "@",
}


def augmented(it: Interpreter, node: cst.AugAssign, frame: Frame) -> Signal:
    old = it.eval(node.target, frame)
    operand = it.eval(node.value, frame)
    op = _AUGMENTED[type(node.operator)]
    site = frame.statement.site(node)
    if op == "+" and isinstance(old, Seq) and old.kind == "list":
        more = iterate(it, operand, site)
        it.heap.touch(old)
        old.items += [it.tag(v) for v in more.items]
        old.rest = old.rest or more.rest
        return None
    made = binary(it, op, old, operand, site)
    if isinstance(old, Tensor) and it.events is not None:
        it.events.written(old, site, None, old)
        if old.base is None and isinstance(made, Tensor):
            rows.overwritten(it, old, None, made.tags)
        elif old.base is not None:
            it.events.settles(old, made, site, is_layer(old))
            if type(node.target) is cst.Attribute:
                return None  # it is the same tensor, with other numbers
    assign(it, node.target, made, frame)
    return None


def assign(it: Interpreter, target: Any, value: Value, frame: Frame) -> None:
    """Bind `value` to an assignment target."""
    kind = type(target)
    if kind is cst.Name:
        env = frame.env
        if env.redirect:
            env = env.redirect.get(target.value, env)
        it.heap.touch(env)
        env.names[target.value] = it.tag(value) if it.conditions else value
    elif kind is cst.Attribute:
        obj = it.eval(target.value, frame)
        it.set(obj, target.attr.value, it.tag(value), frame.statement.site(target))
    elif kind is cst.Subscript:
        obj = it.eval(target.value, frame)
        set_item(it, obj, index_of(it, target, frame), it.tag(value), frame.statement.site(target))
    elif kind is cst.Tuple or kind is cst.List:
        starred = next((i for i, e in enumerate(target.elements) if type(e) is cst.StarredElement), None)
        parts = unpack(it, value, len(target.elements), starred, frame.statement.site(target))
        for element, part in zip(target.elements, parts, strict=True):
            assign(it, element.value, part, frame)


def delete(it: Interpreter, node: cst.Del, frame: Frame) -> Signal:
    targets = [e.value for e in node.target.elements] if isinstance(node.target, cst.Tuple) else [node.target]
    for t in targets:
        if isinstance(t, cst.Name):
            env = frame.env.redirect.get(t.value, frame.env)
            it.heap.touch(env)
            env.names[t.value] = Deleted(f"`{t.value}` was deleted", t.value, places=(frame.statement.site(t),))
        elif isinstance(t, cst.Attribute):
            it.call(it.loader.builtins["delattr"], Args([it.eval(t.value, frame), Const(t.attr.value)]), None)
        elif isinstance(t, cst.Subscript):
            delete_item(it, it.eval(t.value, frame), index_of(it, t, frame), frame.statement.site(t))
    return None
