"""Which files are worth evaluating: a cheap look at their text, before anything is parsed."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterator, Set
from dataclasses import dataclass

from auditor.frameworks.tables import tables
from auditor.modules import ModuleSource, SyntaxProblem
from auditor.reach import EVERYTHING, Exporting, Imports, exporting, stem
from auditor.sources import SourceFile, Sources, Unreadable

_DEPTH = 4
"""How many modules lie between a script and an export call at most."""


@dataclass(frozen=True, slots=True)
class Candidates:
    """`files` may export something; `unreadable` could not be read, and why; `rest` has no trace of an export."""

    files: tuple[str, ...]
    unreadable: dict[str, str]
    rest: tuple[str, ...]


def find(sources: Sources, index: Callable[[SourceFile], ModuleSource]) -> Candidates:
    """Files that hold a word of an export framework, and scripts that reach what exports in such a file.

    They may reach it by way of modules that only define something.
    """
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
    passed: set[str] = set()
    fresh = set(found)
    for _ in range(_DEPTH):
        for path in sorted(fresh):
            _add(others, _imported_as(path), _exporting(files[path], index, words, imports[path].mentioned(others)))
        passed |= fresh
        reached = {path: imports[path].mentioned(others) for path in files.keys() - passed}
        fresh = {path for path, names in reached.items() if names}
        if not fresh:
            break
        found |= {path for path in fresh if _runs(files[path].text, reached[path])}
    scripts = frozenset(found)
    found |= {path for path, f in files.items() if path not in scripts and _starts(f.text, path, scripts, sources)}
    return Candidates(tuple(sorted(found)), unreadable, tuple(sorted(files.keys() - found)))


def _exporting(
    file: SourceFile, index: Callable[[SourceFile], ModuleSource], words: re.Pattern[str], entries: frozenset[str]
) -> Exporting:
    try:
        return exporting(index(file), words, entries)
    except SyntaxProblem:
        return EVERYTHING


def _imported_as(path: str) -> str:
    """The last component of the name under which a file is imported: that of its folder for a package."""
    return stem(posixpath.dirname(path)) if stem(path) == "__init__" else stem(path)


def _add(others: dict[str, Exporting], name: str, more: Exporting) -> None:
    """Files of one base name are taken together: which of them an import means is settled by the run."""
    old = others.get(name, Exporting(frozenset()))
    others[name] = Exporting(old.names | more.names, old.on_import or more.on_import)


def _runs(text: str, names: frozenset[str]) -> bool:
    """Whether the file does something when it is run: it has a main guard, or calls at its top level.

    Many modules only set constants there, by calls too: what is assigned has to mention one of `names`, which export.
    """
    if "__main__" in text or _CALLS.search(text) is not None:
        return True
    return any("*" in names or not names.isdisjoint(_WORD.findall(line)) for line in _done(text))


_PROGRAMS = re.compile(r"\b(?:subprocess\.|os\.system\(|runpy\.|from subprocess import|from runpy import)")
_NAMED = re.compile(r"[\w./-]*\w")
_MODULES = re.compile(r"""["' ]-m["' ]|\brun_module\(""")


def _starts(text: str, path: str, scripts: Set[str], sources: Sources) -> bool:
    """Whether the file starts programs and names one that may export: a script, a module to be run, or a command."""
    if _PROGRAMS.search(text) is None:
        return False
    modules = _MODULES.search(text) is not None
    for name in set(_NAMED.findall(text)):
        command = sources.console_script(name)
        if command is not None:
            wanted = command[0].replace(".", "/") + ".py"
        elif name.endswith(".py"):
            wanted = posixpath.normpath(name).lstrip("./")
        elif modules and "." in name:
            wanted = name.replace(".", "/") + ".py"
        else:
            continue
        if any(f != path and (f == wanted or f.endswith("/" + wanted)) for f in scripts):
            return True
    return False


_CALLS = re.compile(r"^[A-Za-z_][\w.]*\(|^(?:for|while|with|match|async)\b", re.MULTILINE)
_BRANCHES = ("if ", "elif ", "else:", "try:", "except", "finally:")
_DEFINES = ("def ", "class ", "import ", "from ", "async ", "@", "#")
_WORD = re.compile(r"[^\W\d]\w*")


def _done(text: str) -> Iterator[str]:
    """The lines that call something in an assignment at the top level, or in a branch there."""
    branch = False
    for line in text.splitlines():
        inner = line[:1] in ("", " ", "\t", ")", "]", "}")
        branch = branch if inner else line.startswith(_BRANCHES)
        sets = not inner and "=" in line and not line.startswith(_DEFINES)
        if "(" in line and (sets or (branch and not line.lstrip().startswith(_DEFINES))):
            yield line
