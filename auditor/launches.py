"""What a command line starts, behind the runners that people put in front: `uv run`, `python -m`, `env X=1`, ..."""

from __future__ import annotations

import enum
import re
from collections.abc import Sequence
from dataclasses import dataclass

_PYTHON = re.compile(r"^(?:.*/)?(?:python|pypy)[\d.]*$")
_ASSIGNMENT = re.compile(r"^[A-Za-z_]\w*=")
_RUNNERS = frozenset(
    {("uv", "run"), ("poetry", "run"), ("pdm", "run"), ("hatch", "run"), ("pipenv", "run"), ("rye", "run")}
)
_UV_VALUES = frozenset(
    {"--with", "--with-editable", "--with-requirements", "--python", "-p", "--project", "--directory", "--package"}
    | {"--extra", "--no-extra", "--group", "--no-group", "--only-group", "--env-file", "--find-links", "-f"}
    | {"--index", "--default-index", "--index-url", "-i", "--extra-index-url", "--cache-dir", "--config-file"}
)
"""Options of `uv run` and `uvx` that take the next word."""

_PYTHON_VALUES = frozenset({"-W", "-X", "--check-hash-based-pycs"})


class Starts(enum.StrEnum):
    SCRIPT = "script"
    MODULE = "module"
    COMMAND = "command"


@dataclass(frozen=True, slots=True)
class Launch:
    """What runs: a script's path, a module's dotted name (`python -m`), or an installed command; and its arguments."""

    starts: Starts
    name: str
    argv: tuple[str, ...]


def launch(words: Sequence[str]) -> Launch | None:
    """Reads a command line that is split into words; None when it starts nothing that can be named (`python -c`)."""
    rest = list(words)
    while rest:
        if rest[0] == "env" or _ASSIGNMENT.match(rest[0]):
            rest = rest[1:]
        elif tuple(rest[:2]) in _RUNNERS:
            module = "-m" in (flags := _options(rest[2:], _UV_VALUES)) or "--module" in flags
            rest = [*(["python", "-m"] if module else []), *rest[2 + len(flags) :]]
        elif rest[0] == "uvx" or rest[:2] == ["pipx", "run"]:
            rest = rest[1 if rest[0] == "uvx" else 2 :]
            rest = rest[len(_options(rest, _UV_VALUES)) :]
        elif _PYTHON.match(rest[0]):
            return _python(rest[1:])
        elif rest[0].endswith(".py"):
            return Launch(Starts.SCRIPT, rest[0], tuple(rest[1:]))
        else:
            return Launch(Starts.COMMAND, rest[0], tuple(rest[1:]))
    return None


def _python(rest: list[str]) -> Launch | None:
    flags = _options(rest, _PYTHON_VALUES)
    rest = rest[len(flags) :]
    if "-c" in flags or not rest or rest[0] == "-":
        return None
    return Launch(Starts.MODULE if "-m" in flags[-1:] else Starts.SCRIPT, rest[0], tuple(rest[1:]))


def _options(words: Sequence[str], valued: frozenset[str]) -> list[str]:
    """The options at the start, with their values."""
    taken: list[str] = []
    position = 0
    while position < len(words) and words[position].startswith("-") and words[position] != "-":
        word = words[position]
        size = 2 if word in valued and position + 1 < len(words) else 1
        taken += words[position : position + size]
        position += size
    return taken
