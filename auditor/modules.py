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
from auditor.parsing import parsed
from auditor.places import Site
from auditor.sources import SourceFile


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
    `registers` when one of them does; `acts` when importing the file may do more than to define its names.
    """

    file: SourceFile
    statements: tuple[Statement, ...]
    binders: dict[str, list[int]]
    stars: tuple[int, ...]
    ordered: bool
    registers: bool
    acts: bool


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
    for statement, waits in zip(statements, waiting(groups, binders, file.text), strict=True):
        statement.waits = waits
    stars = tuple(n for n, s in enumerate(statements) if s.star)
    ordered = _order_matters(binders, statements, file.text)
    registers = any(s.registers for s in statements)
    acts = ordered or registers or any(s.effects for s in statements)
    return ModuleSource(file, tuple(statements), binders, stars, ordered, registers, acts)


def _statement(path: str, text: str, first: int, group: list[ast.stmt]) -> Statement:
    """The statements that begin at one line and share lines."""
    binds: set[str] = set()
    mutates: set[str] = set()
    for node in group:
        for name, how in _effects(node):
            (binds if how == "bind" else mutates).add(name)
        if ":=" in text:
            binds.update(_walruses(node))
    return Statement(
        path,
        text,
        first,
        frozenset(binds - {"*"}),
        frozenset(mutates),
        star="*" in binds,
        effects=any(map(_has_effect, group)),
        main_guard=any(map(_is_main_guard, group)),
        registers=any(map(_registers, group)),
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


def _is_main_guard(node: ast.stmt) -> bool:
    return isinstance(node, ast.If) and "__name__" in ast.dump(node.test)


def _has_effect(node: ast.stmt) -> bool:
    """Whether running the statement may change something outside its own names: a call, or a write to an attribute."""
    match node:
        case ast.Expr(value=ast.Call()):
            return True
        case ast.Assign(targets=targets):
            return any(isinstance(t, (ast.Attribute, ast.Subscript)) for t in targets)
        case ast.AugAssign(target=target):
            return isinstance(target, (ast.Attribute, ast.Subscript))
        case ast.Delete():
            return True
        case ast.If() if _is_main_guard(node):
            return False
        case ast.If(body=body, orelse=orelse) | ast.For(body=body, orelse=orelse) | ast.While(body=body, orelse=orelse):
            return any(map(_has_effect, [*body, *orelse]))
        case ast.With(body=body):
            return any(map(_has_effect, body))
        case ast.Try(body=body, orelse=orelse, finalbody=final):
            return any(map(_has_effect, [*body, *orelse, *final]))
    return False


def _registers(node: ast.stmt) -> bool:
    if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return False
    return any("regist" in n.lower() or n.rpartition(".")[2] in ("impl", "custom_op") for n in _decorators(node))


def _decorators(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> list[str]:
    return [ast.unparse(d.func if isinstance(d, ast.Call) else d) for d in node.decorator_list]


def _commands(decorator: str) -> bool:
    """Whether it puts a function into a group of commands: `@app.command()`, where `@click.command()` makes one."""
    group, _, method = decorator.rpartition(".")
    return method in ("command", "callback", "group") and group not in ("", "click", "typer")


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


def _effects(node: ast.stmt) -> Iterator[tuple[str, str]]:
    """(name, 'bind' | 'mutate') for every module-level name that the statement binds or mutates; `*` for all of one."""
    match node:
        case ast.FunctionDef(name=n) | ast.AsyncFunctionDef(name=n) | ast.ClassDef(name=n):
            yield n, "bind"
            yield from ((d.partition(".")[0], "mutate") for d in _decorators(node) if _commands(d))
            return
        case ast.Import(names=names):
            for a in names:
                yield (a.asname or a.name.split(".")[0]), "bind"
        case ast.ImportFrom(names=names):
            for a in names:
                yield (a.asname or a.name), "bind"
        case ast.Assign(targets=targets):
            for t in targets:
                yield from _target(t)
        case ast.AnnAssign(target=t, value=v) if v is not None:
            yield from _target(t)
        case ast.AugAssign(target=t):
            for name, _ in _target(t):
                yield name, "mutate"
        case ast.Delete(targets=targets):
            for t in targets:
                for name, _ in _target(t):
                    yield name, "mutate"
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=root))):
            while isinstance(root, (ast.Attribute, ast.Subscript, ast.Call)):
                root = root.func if isinstance(root, ast.Call) else root.value
            if isinstance(root, ast.Name):
                yield root.id, "mutate"
        case ast.For(target=t) | ast.AsyncFor(target=t):
            yield from _target(t)
        case ast.With(items=items) | ast.AsyncWith(items=items):
            for item in items:
                if item.optional_vars is not None:
                    yield from _target(item.optional_vars)
        case ast.Try(handlers=handlers) | ast.TryStar(handlers=handlers):
            for h in handlers:
                if h.name is not None:
                    yield h.name, "bind"
        case ast.Match(cases=cases):
            for sub in (sub for c in cases for sub in ast.walk(c.pattern)):
                captured = sub.rest if isinstance(sub, ast.MatchMapping) else getattr(sub, "name", None)
                if captured is not None:
                    yield captured, "bind"
    for inner in _inside(node):
        yield from _effects(inner)


def _inside(node: ast.stmt) -> Iterator[ast.stmt]:
    """The statements in the blocks of a compound statement that is no definition."""
    for block in ("body", "orelse", "finalbody"):
        yield from getattr(node, block, ())
    for part in (*getattr(node, "handlers", ()), *getattr(node, "cases", ())):
        yield from part.body


def _walruses(node: ast.AST) -> Iterator[str]:
    """The module-level names that `:=` binds inside a statement."""
    if isinstance(node, ast.NamedExpr):
        yield node.target.id
    if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
        for child in ast.iter_child_nodes(node):
            yield from _walruses(child)


def _target(t: ast.expr) -> Iterator[tuple[str, str]]:
    match t:
        case ast.Name(id=n):
            yield n, "bind"
        case ast.Tuple(elts=elts) | ast.List(elts=elts):
            for e in elts:
                yield from _target(e)
        case ast.Starred(value=v):
            yield from _target(v)
        case ast.Attribute(value=v) | ast.Subscript(value=v):
            while isinstance(v, (ast.Attribute, ast.Subscript)):
                v = v.value
            if isinstance(v, ast.Name):
                yield v.id, "mutate"
