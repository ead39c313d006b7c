"""Waivers in the audited sources: comments of the form `# spec-audit: ignore[static-query] the reason`."""

from __future__ import annotations

import difflib
import io
import re
import tokenize
from collections.abc import Iterable, Iterator
from pathlib import Path

from auditor.trees import FolderTree, Unreadable, decode
from rules.facts import Place
from rules.waivers import Waiver, known_rules

_MARK = b"spec-audit:"
_COMMENT = re.compile(r"#\s*spec-audit:(?P<rest>.*)", re.DOTALL)
_IGNORE = re.compile(r"\s*ignore\[(?P<rules>[^\]]*)\](?P<reason>.*)", re.DOTALL)
_LAYOUT = frozenset({tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.COMMENT})


def comments(root: Path, paths: Iterable[str]) -> tuple[Waiver, ...]:
    """The waivers in these files, which are relative to `root`. A file that cannot be read has none."""
    tree = FolderTree(root)
    found: list[Waiver] = []
    for path in sorted(set(paths)):
        try:
            data = tree.read(path)
            if _MARK in data:
                found += in_text(path, decode(data, path))
        except Unreadable:
            continue
    return tuple(found)


def in_text(path: str, text: str) -> Iterator[Waiver]:
    """The waivers in a source text. A comment that stands alone concerns the next statement, any other its own line."""
    waiting: list[tuple[int, str]] = []
    code = 0
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            line = token.start[0]
            if token.type == tokenize.COMMENT:
                waiver = _COMMENT.search(token.string)  # beside a `noqa`, perhaps
                if waiver is None:
                    continue
                if code == line:
                    yield _waiver(path, line, line, waiver["rest"])
                else:
                    waiting.append((line, waiver["rest"]))
            elif token.type not in _LAYOUT:
                yield from (_waiver(path, at, line, rest) for at, rest in waiting)
                waiting = []
                code = token.end[0]
    except (tokenize.TokenError, SyntaxError):
        pass  # the scan reports the file; what stands before the break was read


def _waiver(path: str, at: int, line: int, rest: str) -> Waiver:
    place = Place(path, at)
    match = _IGNORE.fullmatch(rest)
    if match is None:
        return Waiver((), "", place=place, problem="write `# spec-audit: ignore[RULE] the reason`")
    names = tuple(name.strip() for name in match["rules"].split(",") if name.strip())
    return Waiver(names, match["reason"].strip(), place=place, line=line, problem=problem(names, match["reason"]))


def problem(names: Iterable[str], reason: str) -> str:
    """Why a waiver of these rules cannot be used; empty when it can."""
    known = known_rules()
    unknown = next((name for name in names if name not in known), None)
    if unknown is not None:
        close = difflib.get_close_matches(unknown, known, n=1)
        return f"no rule is called {unknown!r}" + (f"; did you mean {close[0]!r}?" if close else "")
    if not list(names):
        return "it names no rule"
    return "" if reason.strip() else "it gives no reason"
