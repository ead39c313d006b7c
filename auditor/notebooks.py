"""Jupyter notebooks as scripts: the code of their cells, in order, each line where it stands in the file.

A line of a cell is a line of the file (`"x = 1\\n",`), so that what is cited is found in the notebook as it is stored;
all other lines of the file are empty.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from auditor.frameworks.tables import tables
from auditor.trees import Unreadable

SUFFIX = ".ipynb"
_NEWLINE = re.compile(r"\r\n|\r|\n")
_SHELL = re.compile(r"^[ \t]*(?:%%?\w|[!?]|[\w.]+\?+\s*$)")
"""Lines that are for IPython: magics, commands of the shell, questions. A `%` before a space is Python's own."""

_ASSIGNED = re.compile(r"^([ \t]*[\w, \t]+=[ \t]*)[%!].*$")
_TRANSPARENT = frozenset({"%%time", "%%timeit", "%%capture", "%%prun"})
"""Magics of whole cells whose code runs as it would without them."""


def code_of(raw: str, path: str) -> str:
    """The Python text of a notebook. Raises `Unreadable` when it is none, or when its lines cannot be told."""
    try:
        document = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise Unreadable(path, "not a notebook: no JSON") from error
    cells = document.get("cells") if isinstance(document, dict) else None
    if not isinstance(cells, list):
        raise Unreadable(path, "not a notebook of format 4: it has no list of cells")
    lines = _NEWLINE.split(raw)
    out, at = [""] * len(lines), 0
    for cell in cells:
        source = cell.get("source") if isinstance(cell, dict) else None
        written = [source] if isinstance(source, str) else source
        if not isinstance(written, list) or not any(written):
            continue
        start = _find(lines, at, source, written)
        if start is None and not any(word in raw for word in tables().words):
            return ""  # it has nothing to do with an export
        if start is None:
            raise Unreadable(path, "a notebook whose cells are not stored line by line: save it with Jupyter")
        if cell.get("cell_type") == "code":
            out[start : start + len(written)] = _python([str(line).rstrip("\r\n") for line in written])
        at = start + len(written)
    return "\n".join(out)


def _find(lines: list[str], at: int, source: Any, written: list[Any]) -> int | None:
    """Where the lines of a cell begin: behind `"source": [`, or on the line itself where there is only one."""
    for number in range(at, len(lines)):
        head, colon, rest = lines[number].strip().partition(":")
        if head != '"source"' or not colon:
            continue
        if isinstance(source, str):
            if "\n" not in source.rstrip("\n") and _text(rest) == source:
                return number
        elif rest.strip() == "[" and [_text(line) for line in lines[number + 1 : number + 1 + len(written)]] == written:
            return number + 1
    return None


def _text(line: str) -> Any:
    try:
        return json.loads(line.strip().removesuffix(","))
    except ValueError:
        return None


def _python(lines: list[str]) -> Iterator[str]:
    """The lines of a cell as Python, as many as there are; what is for IPython alone becomes nothing."""
    first = next((line.split()[0] for line in lines if line.strip()), "")
    if first.startswith("%%") and first not in _TRANSPARENT:
        lines = [""] * len(lines)
    for line in lines:
        yield _ASSIGNED.sub(r"\1None", line) if not _SHELL.match(line) else ""
