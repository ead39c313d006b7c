"""Which top-level statements may change another module by what they call: `done = patch(library.Model)`.

A call in an assignment, a decorator, a default, a class body or a condition is usually made for its value, and then it
may wait until somebody looks the value up. But it may also write into another module, which is seen there without
anybody looking here. Only a file that holds such a write, or calls what it imports, is run for it.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

from auditor.definitions import PLAIN_PACKAGES
from auditor.toplevel import DEFINITIONS, has_effect, inside, is_main_guard

_IMPORTS = frozenset({"import_module", "__import__"})
_WRITES = frozenset({"setattr", "delattr", "exec", "eval"})
_SETS = re.compile(
    r"\b(?:setattr|delattr|exec|eval)\(|\b__dict__\b"
    r"|(?<!\bself)\.\w+(?:\[[^\]\n]*\])?[ \t]*(?:[-+*/%&|^@]|//|\*\*|<<|>>|:[^=\n]+)?=(?!=)"
    r"|^[ \t]*\w[\w.]*\.\w+[ \t]*,[^=\n()]*=(?!=)",
    re.MULTILINE,
)
"""`model.forward = x`, `model.table["a"] += x`, `a.b, c = x`. Prose that looks like one costs an evaluation."""
_FUNCTIONS = frozenset({ast.FunctionDef, ast.AsyncFunctionDef})
_DECORATED = frozenset(DEFINITIONS)
_INNER_IMPORT = re.compile(r"^[ \t]+(?:from|import) ", re.MULTILINE)
_QUIET = frozenset({ast.Import, ast.ImportFrom, ast.Pass, ast.Global})
_LEAVES = frozenset({ast.Constant, ast.Load, ast.Store, *_QUIET})


def acting(groups: Sequence[list[ast.stmt]], text: str) -> list[bool]:
    """For each group of statements of a file whether it calls, as it runs, what may change another module."""
    file = _File(groups, text)
    return [any(map(file.acts, group)) for group in groups]


class _File:
    """What a file imports and defines, and whether it writes elsewhere: looked for once somebody has to know."""

    def __init__(self, groups: Sequence[list[ast.stmt]], text: str) -> None:
        self._text = text
        self._body = [node for group in groups for node in group]
        self._own = frozenset(node.name for node in self._body if isinstance(node, DEFINITIONS))

    @cached_property
    def _foreign(self) -> frozenset[str]:
        """The names that are imported from anything but packages that nobody changes."""
        return frozenset(name for node in self._body for part in _statements(node) for name in _imported(part))

    @cached_property
    def _writes(self) -> bool:
        """Whether anything in it, functions included, sets a part of what is not `self`, or calls one of an import."""
        if not self._foreign and _INNER_IMPORT.search(self._text) is None:
            return False
        if _SETS.search(self._text):
            return True
        names = "|".join(map(re.escape, sorted(self._foreign))) or "(?!)"
        return re.search(rf"\b(?:{names})\.\w+\.[\w.]+\(", self._text) is not None

    def acts(self, node: ast.stmt) -> bool:
        """Whether running the statement, as it is imported, may change another module."""
        if type(node) in _QUIET or is_main_guard(node):
            return False
        if isinstance(node, ast.ClassDef) and any(map(has_effect, node.body)):
            return True
        calls, names = _calls(node)
        if not calls:
            return False
        if not self._own.isdisjoint(names) and self._writes:
            return True
        return any(_leads_out(call, self._foreign) for call in calls)


def _imported(node: ast.stmt) -> Iterator[str]:
    if isinstance(node, ast.ImportFrom) and (node.level or not _is_plain(node.module or "")):
        yield from (a.asname or a.name for a in node.names)
    elif isinstance(node, ast.Import):
        yield from (a.asname or a.name.split(".")[0] for a in node.names if not _is_plain(a.name))


def _statements(node: ast.stmt) -> Iterator[ast.stmt]:
    """A statement, and those in its blocks."""
    yield node
    if not isinstance(node, DEFINITIONS):
        for part in inside(node):
            yield from _statements(part)


def _is_plain(dotted: str) -> bool:
    top = dotted.split(".")[0]
    return top in PLAIN_PACKAGES or top in sys.stdlib_module_names


def _root(node: ast.expr) -> str:
    """The name that a chain of attributes and items begins with."""
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def _leads_out(call: ast.expr, foreign: frozenset[str]) -> bool:
    """Whether a call runs what another module defines, or gives something imported to what sets attributes."""
    if not isinstance(call, ast.Call):
        return False
    called = call.func.attr if isinstance(call.func, ast.Attribute) else _root(call.func)
    if called in _IMPORTS or _root(call.func) in foreign:
        return True
    given = (*call.args, *(keyword.value for keyword in call.keywords))
    names = (n.id for value in given for n in ast.walk(value) if isinstance(n, ast.Name))
    return called in _WRITES and not foreign.isdisjoint(names)


def _calls(node: ast.stmt) -> tuple[list[ast.expr], set[str]]:
    """The calls and decorators that run where the statement stands, and the names that are read there.

    What stands in the body of a function runs later.
    """
    found: list[ast.expr] = []
    names: set[str] = set()
    waiting: list[Any] = [node]
    while waiting:
        part = waiting.pop()
        kind = type(part)
        if kind is ast.Name:
            names.add(part.id)
        elif kind in _FUNCTIONS:
            waiting += part.args.defaults
            waiting += filter(None, part.args.kw_defaults)
        elif kind not in _LEAVES:
            waiting += ast.iter_child_nodes(part)
        if kind is ast.Call:
            found.append(part)
        elif kind in _DECORATED:
            found += part.decorator_list
            waiting += part.decorator_list
    return found, names
