"""Walks over LibCST nodes without what is white space: several times faster than its own `children`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from functools import cache
from typing import Any

import libcst as cst

from auditor.memo import by_identity

_SPACE = ("whitespace", "leading", "trailing", "lines", "header", "footer", "comma", "dot", "equal", "lpar", "rpar")


def parts(node: cst.CSTNode) -> list[Any]:
    """The nodes below a node, in the order of its fields."""
    out: list[Any] = []
    for name in _fields(type(node)):
        value = getattr(node, name)
        kind = type(value)
        if kind is tuple or kind is list:
            out += value
        elif value is not None and kind is not str and kind is not cst.MaybeSentinel:
            out.append(value)
    return out


def names(node: Any) -> set[str]:
    """Every name in a piece of code, those of attributes and of keyword arguments among them."""
    out: set[str] = set()
    todo = [node]
    while todo:
        one = todo.pop()
        if type(one) is cst.Name:
            out.add(one.value)
        else:
            todo += parts(one)
    return out


def spelled(node: Any) -> str:
    """The dotted name that an expression of names and attributes spells."""
    if type(node) is cst.Attribute:
        return f"{spelled(node.value)}.{node.attr.value}"
    return str(getattr(node, "value", "decorator"))


def targets(node: Any) -> Iterator[str]:
    """The names that an assignment to `node` binds."""
    kind = type(node)
    if kind is cst.Name:
        yield node.value
    elif kind is cst.Tuple or kind is cst.List:
        for element in node.elements:
            yield from targets(element.value)


@cache
def _fields(kind: type) -> tuple[str, ...]:
    return tuple(f.name for f in fields(kind) if not f.name.startswith(_SPACE))


def contains_yield(node: Any) -> bool:
    """Whether a statement of a function makes it a generator."""
    if isinstance(node, cst.Yield):
        return True
    if isinstance(node, (cst.FunctionDef, cst.Lambda, cst.ClassDef)):
        return False
    return any(map(contains_yield, parts(node)))


yields = by_identity(contains_yield)
"""The same, looked up once for each body."""
