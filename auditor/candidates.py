"""Which files are worth evaluating: a cheap look at their text, before anything is parsed."""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass

from auditor.frameworks.tables import tables
from auditor.sources import Sources, Unreadable

_IMPORT = re.compile(r"^[ \t]*(?:from[ \t]+([\w.]+)[ \t]+import|import[ \t]+([\w., \t]+))", re.MULTILINE)
_DEPTH = 2


@dataclass(frozen=True, slots=True)
class Candidates:
    """`files` may export something; `unreadable` could not be read, and why; `rest` has no trace of an export."""

    files: tuple[str, ...]
    unreadable: dict[str, str]
    rest: tuple[str, ...]


def find(sources: Sources) -> Candidates:
    """Files that hold a word of an export framework, and scripts that import such a file."""
    words = re.compile("|".join(map(re.escape, tables().words)))
    texts: dict[str, str] = {}
    unreadable: dict[str, str] = {}
    for path in sources.python_files():
        try:
            texts[path] = sources.read(path).text
        except Unreadable as error:
            unreadable[path] = str(error)
    found = {path for path, text in texts.items() if words.search(text)}
    for _ in range(_DEPTH):
        stems = {posixpath.splitext(posixpath.basename(p))[0] for p in found} - {"__init__"}
        more = {p for p, text in texts.items() if p not in found and _runs(text) and _imports(text) & stems}
        if not more:
            break
        found |= more
    return Candidates(tuple(sorted(found)), unreadable, tuple(sorted(set(texts) - found)))


def _runs(text: str) -> bool:
    """Whether the file does something when it is run: it has a main guard, or calls at its top level."""
    return "__main__" in text or bool(re.search(r"^[a-z_][\w.]*\(", text, re.MULTILINE))


def _imports(text: str) -> set[str]:
    out: set[str] = set()
    for source, names in _IMPORT.findall(text):
        for name in (source, *names.split(",")):
            out.update(name.strip().split(" ")[0].split(".")[-1:])
    return out
