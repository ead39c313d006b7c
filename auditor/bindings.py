"""The names that a round of a loop may read from the rounds before: those it surely binds first do not matter to it.

At the top level of a module, any function of the module may read them, too.
"""

from __future__ import annotations

import symtable
from collections.abc import Iterable, Iterator
from typing import Any

import libcst as cst

from auditor.modules import ModuleSource
from auditor.syntax import names, targets


def carried(node: cst.For | cst.While) -> set[str]:
    """The names that the text of a loop may read in a round before the round has bound them."""
    bound = set() if isinstance(node, cst.While) else set(targets(node.target))
    read = names(node.test) if isinstance(node, cst.While) else set()
    _block(node.body.body, bound, read)
    return read


def globals_read(source: ModuleSource) -> set[str]:
    """The names of a module that its functions and lambdas use as globals."""
    return {name for s in source.statements for name in _globals(symtable.symtable(s.text, s.path, "exec"))}


def taken(node: Any) -> set[str]:
    """The names that a function or lambda takes from around it, when it is made or when it runs; all of anything else.

    What it binds itself, its parameters among them, is its own, whatever it is called outside.
    """
    if not isinstance(node, (cst.FunctionDef, cst.Lambda)):
        return names(node)
    p, made = node.params, [*node.decorators] if isinstance(node, cst.FunctionDef) else []
    given = [x.default for x in (*p.posonly_params, *p.params, *p.kwonly_params) if x.default is not None]
    try:
        table = symtable.symtable(cst.Module([]).code_for_node(node), "function", "exec")
    except SyntaxError:  # `nonlocal` has nothing to refer to
        return names(node)
    return set(_globals(table)).union(*map(names, (*made, *given)))


def _globals(table: symtable.SymbolTable) -> Iterator[str]:
    for inner in table.get_children():
        if inner.get_type() == "function":
            yield from (s.get_name() for s in inner.get_symbols() if s.is_global())
        yield from _globals(inner)


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
                read |= names(node.iter) - bound
                _block(node.body.body, bound | set(targets(node.target)), read)
                if node.orelse is not None:
                    _block(node.orelse.body.body, set(bound), read)
            case cst.With():
                for item in node.items:
                    read |= names(item.item) - bound
                    if item.asname is not None:
                        bound |= set(targets(item.asname.name))
                _block(node.body.body, set(bound), read)  # a manager may swallow what ends the block early
            case _:
                read |= names(node) - bound


def _branch(node: cst.If, bound: set[str], read: set[str]) -> None:
    read |= names(node.test) - bound
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
            read |= names(node.value) - bound
            for target in node.targets:
                own = set(targets(target.target))
                read |= names(target.target) - own - bound
                bound |= own
        case cst.AnnAssign(value=cst.BaseExpression() as value):
            read |= names(value) - bound
            bound |= set(targets(node.target))
        case cst.Import() | cst.ImportFrom():
            aliases = node.names if not isinstance(node.names, cst.ImportStar) else ()
            bound |= {n for a in aliases for n in names(a.asname.name if a.asname is not None else a.name)}
        case _:
            read |= names(node) - bound
