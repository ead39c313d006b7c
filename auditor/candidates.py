"""Which files are worth evaluating: a cheap look at their text, before anything is parsed."""

from __future__ import annotations

import posixpath
import re
from collections import Counter
from collections.abc import Callable, Iterator, Set
from dataclasses import dataclass

from auditor.frameworks.tables import tables
from auditor.modules import ModuleSource, SyntaxProblem
from auditor.reach import EVERYTHING, Exporting, Imports, exporting, stem
from auditor.sources import SourceFile, Sources, Unreadable

_DEPTH = 4
"""How many modules lie between a script and an export call at most."""
_NEAR = 2
"""Beyond so many a script has to mention what exports by its name."""


@dataclass(frozen=True, slots=True)
class Candidates:
    """`files` may export something; `unreadable` could not be read, and why; `rest` has no trace of an export."""

    files: tuple[str, ...]
    unreadable: dict[str, str]
    rest: tuple[str, ...]


def find(sources: Sources, index: Callable[[SourceFile], ModuleSource]) -> Candidates:
    """Files that hold a word of an export framework, and scripts that reach what exports in such a file.

    They may reach it by way of modules that only define something and convert: of those that have a name of their own,
    for a test's `utils` is that of any other. Of a program that is not converted but put together, its file tells.
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
    converts = re.compile(rf"\b(?:{'|'.join(tables().converts)})\(")
    alike = Counter(map(_imported_as, files))
    others: dict[str, Exporting] = {}
    converting: dict[str, Exporting] = {}
    fresh, passed = set(found), set(found)
    for depth in range(_DEPTH):
        for path in sorted(fresh):
            entries = imports[path].mentioned(others)
            exports = _exporting(files[path], index, words, entries)
            if path not in found:
                exports = Exporting(exports.names)  # what it does as it is imported is for who runs it
            _add(others, _imported_as(path), exports)
            if path not in found or converts.search(files[path].text) or imports[path].mentioned(converting):
                _add(converting, _imported_as(path), exports)
        reached = {path: imports[path].mentioned(others) for path in files.keys() - found}
        if depth >= _NEAR:
            reached = {path: names & imports[path].mentioned(converting) - {"*"} for path, names in reached.items()}
        runs = {path for path, names in reached.items() if names and _runs(files[path].text, names)}
        between = {
            path
            for path in reached.keys() - runs - passed
            if reached[path] and alike[_imported_as(path)] == 1 and imports[path].mentioned(converting) - {"*"}
        }
        found, fresh = found | runs, (runs | between) - passed
        passed |= fresh
        if not fresh:
            break
    scripts = frozenset(found | passed)
    found |= {path for path, f in files.items() if path not in found and _starts(f.text, path, scripts, sources)}
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
    return any(not names.isdisjoint(_WORD.findall(line)) for line in _done(text))


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
