"""Which files are worth evaluating: a cheap look at their text, before anything is parsed."""

from __future__ import annotations

import posixpath
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Set
from dataclasses import dataclass

from auditor.frameworks.tables import tables
from auditor.launches import STARTS_PROGRAMS
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
    reach = _Reach(files, index, words)
    fresh, passed = set(found), set(found)
    for depth in range(_DEPTH):
        for path in sorted(fresh):
            reach.learn(path, of_itself=path in found)
        reached = {path: reach.names(path, far=depth >= _NEAR) for path in files.keys() - found}
        runs = {path for path, names in reached.items() if names and _runs(files[path].text, names)}
        between = {path for path in reached.keys() - runs - passed if reached[path] and reach.passes_on(path)}
        found, fresh = found | runs, (runs | between) - passed
        passed |= fresh
        if not fresh:
            break
    scripts = frozenset(found | passed)
    found |= {path for path, f in files.items() if path not in found and _starts(f, scripts, sources, words)}
    return Candidates(tuple(sorted(found)), unreadable, tuple(sorted(files.keys() - found)))


class _Reach:
    """What is known to export, by the names under which its files are imported.

    `converting` is the part of `exporting` that goes by way of a file that converts a model: of a program that is not
    converted but put together, its file tells.
    """

    def __init__(
        self, files: Mapping[str, SourceFile], index: Callable[[SourceFile], ModuleSource], words: re.Pattern[str]
    ) -> None:
        self._files, self._index, self._words = files, index, words
        self._imports = {path: Imports(file.text) for path, file in files.items()}
        self._alike = Counter(map(_imported_as, files))
        self._exporting: dict[str, Exporting] = {}
        self._converting: dict[str, Exporting] = {}

    def learn(self, path: str, of_itself: bool) -> None:
        """What a file exports that does so `of_itself`, or only defines what reaches an export elsewhere."""
        file, imports = self._files[path], self._imports[path]
        try:
            exports = exporting(self._index(file), self._words, imports.mentioned(self._exporting))
        except SyntaxProblem:
            exports = EVERYTHING
        if not of_itself:
            exports = Exporting(exports.names)  # what it does as it is imported is for who runs it
        _add(self._exporting, _imported_as(path), exports)
        if not of_itself or tables().converts.search(file.text) or imports.mentioned(self._converting):
            _add(self._converting, _imported_as(path), exports)

    def names(self, path: str, far: bool) -> frozenset[str]:
        """The names in a file that export elsewhere; `far` from it, only those that convert and are mentioned."""
        names = self._imports[path].mentioned(self._exporting)
        return names & self._by_name(path) if far else names

    def passes_on(self, path: str) -> bool:
        """Whether a module that only defines something may be what others export by.

        It has a name of its own, for a test's `utils` is that of any other.
        """
        return self._alike[_imported_as(path)] == 1 and bool(self._by_name(path))

    def _by_name(self, path: str) -> frozenset[str]:
        return self._imports[path].mentioned(self._converting) - {"*"}


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


_NAMED = re.compile(r"[\w./-]*\w")
_MODULES = re.compile(r"""["' ]-m["' ]|\brun_module\(""")
_PACKAGES = re.compile(r"""(?:["' ]-m["',\s]+|\brun_module\(["'])(\w+)\b(?!\.)""")


def _starts(file: SourceFile, scripts: Set[str], sources: Sources, words: re.Pattern[str]) -> bool:
    """Whether the file starts programs and names one that may export: a script, a module to be run, or a command."""
    if STARTS_PROGRAMS.search(file.text) is None:
        return False
    modules = _MODULES.search(file.text) is not None
    packages = frozenset(_PACKAGES.findall(file.text))
    for name in set(_NAMED.findall(file.text)):
        command = sources.console_script(name)
        module = command[0] if command is not None else name
        wanted: tuple[str, ...]
        if command is None and name.endswith(".py"):
            wanted = (posixpath.normpath(name).lstrip("./"),)
        elif command is not None or name in packages or (modules and "." in name):
            wanted = tuple(module.replace(".", "/") + end for end in (".py", "/__main__.py"))
            if _is_exporting_library(module, sources, words):
                return True
        else:
            continue
        if any(f != file.path and (f in wanted or f.endswith(tuple(f"/{w}" for w in wanted))) for f in scripts):
            return True
    return False


def _is_exporting_library(module: str, sources: Sources, words: re.Pattern[str]) -> bool:
    file = sources.program(module)
    return file is not None and not sources.audited(file.path) and words.search(file.text) is not None


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
