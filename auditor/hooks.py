"""Exporters that are generic over the model classes of their own repository: which classes such a function takes.

A parameter that is annotated with a class of the audited tree takes that class's subclasses: names, example inputs and
dynamic shapes then come from their methods (*class hooks*), and `forward` from the class itself.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from auditor.modules import ModuleSource, Statement
from auditor.sources import Sources, Unreadable

_CLASS = re.compile(r"^class[ \t]+(\w+)[ \t]*\(([^)]*)\)", re.MULTILINE)
_TESTS = re.compile(r"(?:^|/)tests?/|(?:^|/)(?:test_[^/]*|conftest)\.py$")
_MOST = 64


@dataclass(frozen=True, slots=True)
class ClassAt:
    """A top-level class of the audited tree."""

    path: str
    name: str
    line: int


@dataclass(frozen=True, slots=True)
class Hooked:
    """A function of `path` that exports whatever class its `parameter` is, when that is one of `classes`."""

    path: str
    function: str
    parameter: str
    classes: tuple[ClassAt, ...]


def generic_exporters(files: Iterable[ModuleSource], words: Sequence[str], sources: Sources) -> list[Hooked]:
    """The generic exporters of these files that no other generic exporter of the same file calls.

    A class that fits several goes to those whose annotation is nearest to it (`BaseForPhones` before `Base`).
    """
    takes = [(source.file.path, *pair) for source in files for pair in _annotated_functions(source, words)]
    if not takes:
        return []
    bases, defined = _bases(sources)
    below = {family: _leaves(family, bases) for *_, family in takes if family in defined}
    nearest: dict[ClassAt, int] = {}
    for leaves in below.values():
        for at, distance in leaves.items():
            nearest[at] = min(distance, nearest.get(at, distance))
    out = []
    for path, function, parameter, family in takes:
        mine = [at for at, distance in below.get(family, {}).items() if distance == nearest[at]]
        if mine:
            out.append(Hooked(path, function, parameter, tuple(sorted(mine, key=lambda at: (at.path, at.line)))))
    return out


def exporters(statement: Statement, words: Sequence[str]) -> list[str]:
    """The functions that a top-level statement defines, and the methods (`Class.method`) that have an export word."""
    found = []
    for node in ast.parse(statement.text).body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            found.append(node.name)
        elif isinstance(node, ast.ClassDef):
            methods = [m for m in node.body if isinstance(m, (ast.FunctionDef, ast.AsyncFunctionDef))]
            found += [f"{node.name}.{m.name}" for m in methods if any(w in ast.unparse(m) for w in words)]
    return sorted(found)


def as_inherited(source: ModuleSource, name: str) -> list[str]:
    """A method as the classes of its file have it that inherit it and have none below them; else the method itself.

    A mixin leaves to them what it needs (`rows = 8`), and is not made by itself.
    """
    owner, _, method = name.rpartition(".")
    bases: dict[str, list[str]] = {}
    for statement in source.statements if owner else ():
        for match in _CLASS.finditer(statement.text):
            for base in match[2].split(","):
                bases.setdefault(base.strip().rpartition(".")[2], []).append(match[1])
    leaves: list[str] = []
    level, seen = [owner], {owner}
    while level:
        below = [c for one in level for c in bases.get(one, ()) if c not in seen]
        seen.update(below)
        leaves += [c for c in below if c not in bases]
        level = below
    return [f"{leaf}.{method}" for leaf in leaves[:_MOST]] or [name]


def _annotated_functions(source: ModuleSource, words: Sequence[str]) -> Iterator[tuple[str, str, str]]:
    """(function, parameter, class that annotates it) of the exporting functions of a file."""
    texts: dict[str, str] = {}
    takes: dict[str, tuple[str, str]] = {}
    for statement in source.statements:
        if statement.text.lstrip().startswith(("def ", "async def ")) and any(w in statement.text for w in words):
            function = ast.parse(statement.text).body[0]
            if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)) and (pair := _annotated(function)):
                takes[function.name], texts[function.name] = pair, statement.text
    for name, pair in sorted(takes.items()):
        if not any(re.search(rf"\b{name}\(", text) for other, text in texts.items() if other != name):
            yield name, *pair


def _annotated(function: ast.FunctionDef | ast.AsyncFunctionDef) -> tuple[str, str] | None:
    """The first parameter that is annotated with a class, and that class's name."""
    for argument in (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs):
        match argument.annotation:
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.Constant(value=str(name)):
                name = name.rpartition(".")[2]
                if name[:1].isupper() and name != "Path":
                    return argument.arg, name
    return None


def _bases(sources: Sources) -> tuple[dict[str, list[ClassAt]], set[str]]:
    """(name of a base -> the classes that name it among their bases, all names); those of tests are no models."""
    found: dict[str, list[ClassAt]] = {}
    defined: set[str] = set()
    for path in sources.python_files():
        if _TESTS.search(path):
            continue
        try:
            text = sources.read(path).text
        except Unreadable:
            continue
        for match in _CLASS.finditer(text):
            at = ClassAt(path, match[1], text.count("\n", 0, match.start()) + 1)
            defined.add(at.name)
            for base in match[2].split(","):
                found.setdefault(base.split("[")[0].strip().rpartition(".")[2], []).append(at)
    return found, defined


def _leaves(family: str, bases: dict[str, list[ClassAt]]) -> dict[ClassAt, int]:
    """The classes below a name that have none below them, and how far below it they are."""
    level, seen = [family], {family}
    leaves: dict[ClassAt, int] = {}
    distance = 0
    while level and len(seen) < _MOST:
        distance += 1
        found = [at for name in level for at in bases.get(name, ()) if at.name not in seen]
        seen |= {at.name for at in found}
        leaves |= {at: distance for at in found if at.name not in bases}
        level = [at.name for at in found if at.name in bases]
    return leaves
