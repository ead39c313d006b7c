"""Which files are worth evaluating: a cheap look at their text, before anything is parsed."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from auditor.frameworks.tables import tables
from auditor.modules import ModuleSource, SyntaxProblem
from auditor.reach import EVERYTHING, Exporting, Imports, exporting, stem
from auditor.sources import SourceFile, Sources, Unreadable

_DEPTH = 2


@dataclass(frozen=True, slots=True)
class Candidates:
    """`files` may export something; `unreadable` could not be read, and why; `rest` has no trace of an export."""

    files: tuple[str, ...]
    unreadable: dict[str, str]
    rest: tuple[str, ...]


def find(sources: Sources, index: Callable[[SourceFile], ModuleSource]) -> Candidates:
    """Files that hold a word of an export framework, and scripts that reach what exports in such a file."""
    words = re.compile("|".join(map(re.escape, tables().words)))
    files: dict[str, SourceFile] = {}
    unreadable: dict[str, str] = {}
    for path in sources.python_files():
        try:
            files[path] = sources.read(path)
        except Unreadable as error:
            unreadable[path] = error.reason
    found = {path for path, file in files.items() if words.search(file.text)}
    imports = {path: Imports(file.text) for path, file in files.items()}
    others: dict[str, Exporting] = {}
    fresh = found
    for _ in range(_DEPTH):
        for path in sorted(fresh):
            _add(others, stem(path), _exporting(files[path], index, words, imports[path].mentioned(others)))
        fresh = {
            path
            for path, file in files.items()
            if path not in found and _runs(file.text) and imports[path].mentioned(others)
        }
        if not fresh:
            break
        found = found | fresh
    return Candidates(tuple(sorted(found)), unreadable, tuple(sorted(files.keys() - found)))


def _exporting(
    file: SourceFile, index: Callable[[SourceFile], ModuleSource], words: re.Pattern[str], entries: frozenset[str]
) -> Exporting:
    try:
        return exporting(index(file), words, entries)
    except SyntaxProblem:
        return EVERYTHING


def _add(others: dict[str, Exporting], name: str, more: Exporting) -> None:
    """Files of one base name are taken together: which of them an import means is settled by the run."""
    old = others.get(name, Exporting(frozenset()))
    if name != "__init__":
        others[name] = Exporting(old.names | more.names, old.on_import or more.on_import)


def _runs(text: str) -> bool:
    """Whether the file does something when it is run: it has a main guard, or calls at its top level."""
    return "__main__" in text or _CALLS.search(text) is not None


_CALLS = re.compile(r"^[A-Za-z_][\w.]*\(|^(?:for|while|with)\b", re.MULTILINE)
