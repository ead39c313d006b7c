"""Tuples, lists, sets and dicts that are written out, and comprehensions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import libcst as cst

from auditor.containers.entries import put, unique, update_mapping
from auditor.containers.iteration import iterate
from auditor.interpreter import Frame, Interpreter
from auditor.statements.loops import run_comprehension
from auditor.values import Env, Mapping, Seq, Star, Unknown, Value, altered


def _collect(it: Interpreter, elements: Any, frame: Frame) -> tuple[list[Value], Unknown | None]:
    items: list[Value] = []
    rest: Unknown | None = None
    for e in elements:
        if type(e) is cst.StarredElement:
            more = iterate(it, it.eval(e.value, frame), frame.statement.site(e))
            items += more.items
            rest = rest or more.rest
        else:
            items.append(it.eval(e.value, frame))
    return items, rest


def sequence(kind: str) -> Callable[[Interpreter, Any, Frame], Value]:
    def handler(it: Interpreter, node: Any, frame: Frame) -> Value:
        items, rest = _collect(it, node.elements, frame)
        if kind == "set":
            items, unsure = unique(items)
            rest = rest or unsure
        return Seq(kind, items, rest, places=(frame.statement.site(node),), flags=it.conditions)

    return handler


def dict_(it: Interpreter, node: cst.Dict, frame: Frame) -> Value:
    result = Mapping(places=(frame.statement.site(node),), flags=it.conditions)
    elements: list[Any] = list(node.elements)
    for e in elements:
        if type(e) is cst.StarredDictElement:
            update_mapping(it, result, it.eval(e.value, frame))
            continue
        key, value = it.eval(e.key, frame), it.eval(e.value, frame)
        put(result, key, value)
    return result


def comprehension(kind: str) -> Callable[[Interpreter, Any, Frame], Value]:
    def handler(it: Interpreter, node: Any, frame: Frame) -> Value:
        site = frame.statement.site(node)
        out: Value = Mapping(places=(site,)) if kind == "dict" else Seq(kind, [], places=(site,))
        scope = Env(parent=frame.env, redirect={"": frame.env})
        inner = altered(frame, env=scope)

        def emit() -> None:
            if isinstance(out, Mapping):
                key, value = it.eval(node.key, inner), it.eval(node.value, inner)
                it.heap.touch(out)
                put(out, key, value)
            elif isinstance(out, Seq):
                value = it.eval(node.elt, inner)
                it.heap.touch(out)
                out.items.append(value)

        count = run_comprehension(it, node.for_in, inner, out, emit)
        if isinstance(out, Seq) and kind != "set" and len(out.items) == 1 and isinstance(out.items[0], Star):
            out.items = [Star(out.items[0].items, count)]
        if kind == "set" and isinstance(out, Seq):
            out.items, unsure = unique(out.items)
            out.rest = out.rest or unsure
        return out

    return handler
