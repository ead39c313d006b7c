"""Source files as modules: an `ast` index of every reached file, LibCST for the statements that are evaluated.

Whole-file LibCST parsing is the dearest step of a scan, so a file is indexed with `ast` (names that each top-level
statement binds or mutates, first and last line), and a statement is parsed with LibCST when it is first evaluated.
"""

from __future__ import annotations

import ast
import io
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field

import libcst as cst

from auditor.deep import resting
from auditor.definitions import waiting
from auditor.lines import Lines
from auditor.outward import acting
from auditor.parsing import parsed
from auditor.places import Site
from auditor.sources import SourceFile
from auditor.toplevel import Import, effects, has_effect, imports, is_main_guard, registers, walruses


class SyntaxProblem(Exception):
    """The file is not Python; the message says where."""


@dataclass(slots=True, eq=False)
class Statement:
    """A top-level statement (or several on one line): its lines, what it binds, and, when asked for, its LibCST nodes.

    `waits` when it only defines what may be made when it is first looked up (see `auditor.definitions`); `effects` when
    it may change what other modules see; `registers` when a decorator puts what it defines into a table
    (`@register_attention("mha")`); `imports` when it does nothing but import. `at` is the statement inside it that is
    being evaluated.
    """

    path: str
    text: str
    first: int
    binds: frozenset[str] = frozenset()
    mutates: frozenset[str] = frozenset()
    star: bool = False
    waits: bool = False
    effects: bool = False
    main_guard: bool = False
    registers: bool = False
    imports: bool = False
    at: cst.CSTNode | None = field(default=None, repr=False)
    _nodes: tuple[cst.BaseStatement, ...] | None = field(default=None, repr=False)
    _lines: Lines | None = field(default=None, repr=False)
    _sites: dict[int, Site] = field(default_factory=dict, repr=False)

    def site(self, node: object) -> Site:
        """The place of `node`, which belongs to this statement."""
        found = self._sites.get(id(node))
        if found is None:
            found = self._sites[id(node)] = Site(self, node, within=self.at)
        return found

    @property
    def nodes(self) -> tuple[cst.BaseStatement, ...]:
        if self._nodes is None:
            module = parsed(self.text)
            self._nodes, self._lines = tuple(module.body), Lines(module, self.text, self.first)
        return self._nodes

    def line_of(self, node: object, within: cst.CSTNode | None = None) -> int:
        """The line (from 1) of `node` in its file; the statement's first line for None.

        `within` is a statement that probably holds it: to look there first is cheap.
        """
        if node is None or self._lines is None:
            return self.first
        return self._lines.of(node, within)


@dataclass(slots=True, eq=False)
class ModuleSource:
    """A file with its statements in order and, for each name, the statements that bind or mutate it.

    `ordered` when the order of its statements matters: a name is bound twice, or classes register themselves;
    `registers` when one of them does; `acts` when importing the file may do more than to define its names,
    beside what its `imports` do.
    """

    file: SourceFile
    statements: tuple[Statement, ...]
    binders: dict[str, list[int]]
    stars: tuple[int, ...]
    ordered: bool
    registers: bool
    acts: bool
    imports: tuple[Import, ...] = ()


_PYTHON = ".".join(map(str, sys.version_info[:2]))
"""The newest grammar that is known here; a script may be written in a newer one."""


@resting()
def index(file: SourceFile) -> ModuleSource:
    """Index one file. Raises `SyntaxProblem` when it does not parse (or nests deeper than Python's own parser goes)."""
    try:
        tree = ast.parse(file.text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        line = getattr(error, "lineno", None)
        where = f" at line {line}" if line else ""
        why = getattr(error, "msg", None) or str(error) or type(error).__name__
        raise SyntaxProblem(f"does not parse as Python {_PYTHON}{where}: {why}") from None
    # Lines as Python counts them: `splitlines` would also split at form feeds and at U+2028 inside a string.
    lines = list(io.StringIO(file.text, newline=None))
    statements: list[Statement] = []
    groups: list[list[ast.stmt]] = []
    for first, last, group in _groups(tree.body):
        text = "".join(lines[first - 1 : last])
        if len(text) > _LONG and any(map(_too_deep, group)):
            raise SyntaxProblem(f"the statement at line {first} nests more than {MAX_NESTING} levels deep")
        groups.append(group)
        statements.append(_statement(file.path, text, first, group))
    binders: dict[str, list[int]] = {}
    for number, statement in enumerate(statements):
        for name in statement.binds | statement.mutates:
            binders.setdefault(name, []).append(number)
    outward = acting(groups, file.text)
    for statement, waits, acts in zip(statements, waiting(groups, binders, file.text), outward, strict=True):
        statement.waits = waits and not acts
    stars = tuple(n for n, s in enumerate(statements) if s.star)
    ordered = _order_matters(binders, statements, file.text)
    registers = any(s.registers for s in statements)
    acts_itself = ordered or registers or any(outward) or any(s.effects for s in statements)
    imported = tuple(dict.fromkeys(imports(node for node in tree.body if not is_main_guard(node))))
    return ModuleSource(file, tuple(statements), binders, stars, ordered, registers, acts_itself, imported)


def _statement(path: str, text: str, first: int, group: list[ast.stmt]) -> Statement:
    """The statements that begin at one line and share lines."""
    binds: set[str] = set()
    mutates: set[str] = set()
    for node in group:
        for name, how in effects(node):
            (binds if how == "bind" else mutates).add(name)
        if ":=" in text:
            binds.update(walruses(node))
    return Statement(
        path,
        text,
        first,
        frozenset(binds - {"*"}),
        frozenset(mutates),
        star="*" in binds,
        effects=any(map(has_effect, group)),
        main_guard=any(map(is_main_guard, group)),
        registers=any(map(registers, group)),
        imports=all(isinstance(n, (ast.Import, ast.ImportFrom)) for n in group),
    )


def _order_matters(binders: dict[str, list[int]], statements: list[Statement], text: str) -> bool:
    if "__init_subclass__" in text:
        return True
    return any(sum(name in statements[n].binds for n in numbers) > 1 for name, numbers in binders.items())


MAX_NESTING = 300
"""Levels of one statement. LibCST and the evaluator recurse over it, and code that people write has some thirty."""

_LONG = 8_000
"""Characters. A shorter statement cannot nest that deep in a way that Python's own parser takes."""


def _too_deep(node: ast.AST) -> bool:
    level, depth = [node], 0
    while level:
        depth += 1
        if depth > MAX_NESTING:
            return True
        level = [child for parent in level for child in ast.iter_child_nodes(parent)]
    return False


def _groups(body: list[ast.stmt]) -> Iterator[tuple[int, int, list[ast.stmt]]]:
    """Statements with their first and last lines; those that share a line come together."""
    current: tuple[int, int, list[ast.stmt]] | None = None
    for node in body:
        first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", []))])
        last = node.end_lineno or node.lineno
        if current and first <= current[1]:
            current[2].append(node)
            current = (current[0], max(current[1], last), current[2])
            continue
        if current:
            yield current
        current = (first, last, [node])
    if current:
        yield current
