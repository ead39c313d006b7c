"""What of a file can lead to an export: a look at which names mention which, wider than what a run would do.

A file that imports an exporting one is worth evaluating only if it mentions something of it that leads to an export
call: many tools of such a repository import a helper from an exporting script, and none of its exporting functions.
"""

from __future__ import annotations

import io
import posixpath
import re
import tokenize
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from auditor.modules import ModuleSource, Statement

_WORD = re.compile(r"[^\W\d]\w*")
_ATTRIBUTE = re.compile(r"\.\s*([^\W\d]\w*)")
_FROM = re.compile(r"^[ \t]*from[ \t]+([\w.]+)[ \t]+import[ \t]*(\([^)]*\)|[^\n]*)", re.MULTILINE)
_IMPORT = re.compile(r"^[ \t]*import[ \t]+([\w., \t]+)", re.MULTILINE)
_HIDDEN = re.compile(r"\b(?:getattr|import_module|__import__|runpy|exec|eval|vars|globals|spec_from_file_location)\b")
_COMMENT = re.compile(r"#[^\n]*")
_SENTENCE = re.compile(r"[rRbBuU]*[\"']+\s*\S+\s+\S+\s+\S")
"""A string of more than two words that evaluates nothing."""
_WAITS_FOR_A_CALL = ("def ", "async def ", "class ", "import ", "from ")


@dataclass(frozen=True, slots=True)
class Exporting:
    """The top-level names of a file that lead to an export; `on_import` when importing the file does."""

    names: frozenset[str]
    on_import: bool = False


EVERYTHING = Exporting(frozenset(), on_import=True)
"""Of a file that cannot be indexed."""


def stem(path: str) -> str:
    return posixpath.splitext(posixpath.basename(path))[0]


def exporting(source: ModuleSource, words: re.Pattern[str], entries: Iterable[str]) -> Exporting:
    """The names of a file that lead to a word of an export framework, or to one of `entries` (`Imports.mentioned`)."""
    names = set(entries)
    statements = [_Mentions(s, words) for s in source.statements]
    grown = True
    while grown:
        grown = False
        for one in statements:
            new = (one.statement.binds | one.statement.mutates) - names
            if new and one.lead_to(names):
                names |= new
                grown = True
    on_import = any(one.acts and one.lead_to(names) for one in statements)
    return Exporting(frozenset(names), on_import)


class _Mentions:
    """What a statement mentions; `acts` when it does something as its file is imported."""

    def __init__(self, statement: Statement, words: re.Pattern[str]) -> None:
        self.statement = statement
        self.acts = not (statement.main_guard or statement.text.startswith(_WAITS_FOR_A_CALL))
        self._words = words
        self._has_prose = self.acts
        self._read(statement.text)

    def lead_to(self, names: set[str]) -> bool:
        """Whether it mentions a word of an export framework, or a name that leads to one."""
        leads = self._exports or not self._names.isdisjoint(names)
        if not (leads and self._has_prose):
            return leads
        self._has_prose = False
        self._read(_without_prose(self.statement.text))  # it takes long, and most mention neither
        return self.lead_to(names)

    def _read(self, text: str) -> None:
        self._names = frozenset(_WORD.findall(text))
        self._exports = self._words.search(text) is not None


def _without_prose(text: str) -> str:
    """A statement without its comments and without the strings that are sentences: they may name what they never call.

    A command line is a sentence, too: what it starts is another program, which importing the file does not export.
    """
    said = []
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.STRING and _SENTENCE.match(token.string):
                said.append(token._replace(string='""'))
            elif token.type != tokenize.COMMENT:
                said.append(token)
        return tokenize.untokenize(said)
    except (tokenize.TokenError, SyntaxError, ValueError):
        return text


class Imports:
    """What a file imports, by the last component of each module's name, and what it mentions of it."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.taken: dict[str, set[str]] = {}
        self.aliases: dict[str, str] = {}
        for source, clause in _FROM.findall(text):
            for name, alias in _clause(clause):
                self.taken.setdefault(source.split(".")[-1], set()).add(name)
                self.aliases[alias] = name  # it may be a module of a package
        for names in _IMPORT.findall(text):
            for name, alias in _clause(names):
                self.aliases[alias.split(".")[-1]] = name.split(".")[-1]

    @property
    def stems(self) -> frozenset[str]:
        return frozenset(self.taken) | frozenset(self.aliases.values())

    def mentioned(self, others: Mapping[str, Exporting]) -> frozenset[str]:
        """The exporting names of `others` that the file mentions, as it calls them; `*` where it may reach any."""
        met = self.stems & others.keys()
        if not met:
            return frozenset()
        out: set[str] = set()
        attributes: frozenset[str] | None = None
        for name in met:
            other = others[name]
            if other.on_import or "*" in self.taken.get(name, ()):
                out.add("*")
            out |= {alias for alias, real in self.aliases.items() if real in other.names & self.taken.get(name, set())}
            handles = [alias for alias, real in self.aliases.items() if real == name]
            if not handles:
                continue
            if attributes is None:
                attributes = frozenset(_ATTRIBUTE.findall(self.text))
            out |= other.names & attributes
            if other.names and (_HIDDEN.search(self.text) or any(map(self._handed_on, handles))):
                out.add("*")
        return frozenset(out)

    def _handed_on(self, handle: str) -> bool:
        """Whether a module is used other than by an attribute of it: another file may then do anything with it."""
        rest = _COMMENT.sub("", _IMPORT.sub("", _FROM.sub("", self.text)))
        return re.search(rf"(?<![\w.]){re.escape(handle)}\b(?!\s*\.)", rest) is not None


def _clause(text: str) -> Iterable[tuple[str, str]]:
    """(name, name it is given) of each item of an import clause."""
    for item in _COMMENT.sub("", text).strip("() \t\n").split(","):
        parts = item.split()
        if parts:
            yield parts[0], parts[-1]
