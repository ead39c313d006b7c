"""The names that a round of a loop may read from the rounds before: those it surely binds first do not matter to it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import libcst as cst

_found: dict[int, tuple[Any, frozenset[str]]] = {}


def carried(node: cst.For | cst.While | cst.CompFor) -> frozenset[str]:
    """The names that a round of a loop may read before it has bound them."""
    known = _found.get(id(node))
    if known is None or known[0] is not node:
        bound = set() if isinstance(node, cst.While) else set(_targets(node.target))
        read: set[str] = set(_names(node.test)) if isinstance(node, cst.While) else set()
        if not isinstance(node, cst.CompFor):
            _block(node.body.body, bound, read)
        known = _found[id(node)] = (node, frozenset(read))
    return known[1]


def _block(body: Iterable[Any], bound: set[str], read: set[str]) -> None:
    """Add the names that a block may read before it binds them to `read`, those that it surely binds to `bound`."""
    for node in body:
        match node:
            case cst.SimpleStatementLine(body=parts) | cst.SimpleStatementSuite(body=parts):
                for small in parts:
                    _simple(small, bound, read)
            case cst.If():
                _branch(node, bound, read)
            case cst.For():
                read |= set(_names(node.iter)) - bound
                _block(node.body.body, bound | set(_targets(node.target)), read)
                if node.orelse is not None:
                    _block(node.orelse.body.body, set(bound), read)
            case cst.With():
                for item in node.items:
                    read |= set(_names(item.item)) - bound
                    if item.asname is not None:
                        bound |= set(_targets(item.asname.name))
                _block(node.body.body, bound, read)
            case _:
                read |= set(_names(node)) - bound


def _branch(node: cst.If, bound: set[str], read: set[str]) -> None:
    read |= set(_names(node.test)) - bound
    then, otherwise = set(bound), set(bound)
    _block(node.body.body, then, read)
    if isinstance(node.orelse, cst.If):
        _branch(node.orelse, otherwise, read)
    elif node.orelse is not None:
        _block(node.orelse.body.body, otherwise, read)
    bound |= then & otherwise


def _simple(node: Any, bound: set[str], read: set[str]) -> None:
    match node:
        case cst.Assign():
            read |= set(_names(node.value)) - bound
            for target in node.targets:
                names = set(_targets(target.target))
                read |= set(_names(target.target)) - names - bound
                bound |= names
        case cst.AnnAssign(value=cst.BaseExpression() as value):
            read |= set(_names(value)) - bound
            bound |= set(_targets(node.target))
        case cst.Import() | cst.ImportFrom():
            aliases = node.names if not isinstance(node.names, cst.ImportStar) else ()
            bound |= {n for a in aliases for n in _names(a.asname.name if a.asname is not None else a.name)}
        case _:
            read |= set(_names(node)) - bound


def _targets(node: Any) -> Iterator[str]:
    if isinstance(node, cst.Name):
        yield node.value
    elif isinstance(node, (cst.Tuple, cst.List)):
        for element in node.elements:
            yield from _targets(element.value)


def _names(node: Any) -> Iterator[str]:
    if isinstance(node, cst.Name):
        yield node.value
    for child in node.children:
        yield from _names(child)
