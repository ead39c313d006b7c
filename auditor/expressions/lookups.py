"""Items that an expression reads."""

from __future__ import annotations

from typing import Any

import libcst as cst

from auditor.containers.reading import get_item, make_slice
from auditor.expressions.names import in_graph, would_raise
from auditor.interpreter import Frame, Interpreter, RaiseSignal
from auditor.values import NONE, Seq, Tensor, Value, merge_flags, text_of


def subscript(it: Interpreter, node: cst.Subscript, frame: Frame) -> Value:
    obj, site = it.eval(node.value, frame), frame.statement.site(node)
    try:
        index = index_of(it, node, frame)
        found = _chosen(it, get_item(it, obj, index, site), index)
        return in_graph(it, found)
    except RaiseSignal as error:
        return would_raise(it, error, site)


def _chosen(it: Interpreter, found: Value, index: Value) -> Value:
    """What a key has picked depends on the options of the key; the name of a scheme for weights decides no graph."""
    if not index.flags or isinstance(found, Tensor) or text_of(found) is not None:
        return found
    return it.tag(found, index.flags)


def index_of(it: Interpreter, node: cst.Subscript, frame: Frame) -> Value:
    """What stands between the brackets of a subscript, as one value."""
    parts = [_slice_part(it, e.slice, frame) for e in node.slice]
    trailing = len(node.slice) == 1 and type(node.slice[0].comma) is cst.Comma
    return parts[0] if len(parts) == 1 and not trailing else Seq("tuple", parts, flags=merge_flags(parts))


def _slice_part(it: Interpreter, part: Any, frame: Frame) -> Value:
    if type(part) is cst.Index:
        return it.eval(part.value, frame)
    lower, upper, step = [it.eval(x, frame) if x is not None else NONE for x in (part.lower, part.upper, part.step)]
    return make_slice(lower, upper, step, frame.statement.site(part))
