"""What a command line starts, behind what people put in front: `cd x &&`, `uv run`, `nice`, `python -m`, ..."""

from __future__ import annotations

import enum
import itertools
import posixpath
import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

_PYTHON = re.compile(r"^(?:.*/)?(?:python|pypy)[\d.]*$")
_SHELL = re.compile(r"^(?:.*/)?(?:ba|z|da)?sh$")
_COMMAND = re.compile(r"^-\w*c$")
_ASSIGNMENT = re.compile(r"^[A-Za-z_]\w*=")
_OPERATOR = re.compile(r"^[;&|()]+$")
_REDIRECTION = re.compile(r"^&?[<>]+&?$")
_DESCRIPTOR = re.compile(r"(?<=\s)\d(?=[<>])")
_RUNNERS = frozenset(
    {("uv", "run"), ("poetry", "run"), ("pdm", "run"), ("hatch", "run"), ("pipenv", "run"), ("rye", "run")}
)
_UV_VALUES = frozenset(
    {"--with", "--with-editable", "--with-requirements", "--python", "-p", "--project", "--directory", "--package"}
    | {"--extra", "--no-extra", "--group", "--no-group", "--only-group", "--env-file", "--find-links", "-f"}
    | {"--index", "--default-index", "--index-url", "-i", "--extra-index-url", "--cache-dir", "--config-file"}
)
"""Options of `uv run` and `uvx` that take the next word."""

_WRAPPERS = {
    "arch": frozenset({"-arch", "-e", "-d"}),
    "caffeinate": frozenset({"-t", "-w"}),
    "exec": frozenset({"-a"}),
    "nice": frozenset({"-n"}),
    "nohup": frozenset[str](),
    "sudo": frozenset({"-u", "-g"}),
    "time": frozenset({"-f", "-o"}),
}
"""Commands that run the one behind them, with those of their options that take the next word."""

_OF_OS = r"(?:system|popen|exec|spawn|posix_spawn)"
STARTS_PROGRAMS = re.compile(
    rf"\bsubprocess\b|\brunpy\b|\bcreate_subprocess_|\bos\.{_OF_OS}|\bfrom os import (?:\([^)]*|[^#\n]*)\b{_OF_OS}"
)
"""A text with one of the names by which a program starts another (those of `auditor.stdlib.processes`, and `spawn`)."""

_PYTHON_VALUES = frozenset({"-W", "-X", "--check-hash-based-pycs"})


class Starts(enum.StrEnum):
    SCRIPT = "script"
    MODULE = "module"
    COMMAND = "command"


@dataclass(frozen=True, slots=True)
class Launch:
    """What runs: a script's path, a module's dotted name (`python -m`), or an installed command; and its arguments.

    `folder` is the one it is started in, as far as the line says: empty for the current one.
    """

    starts: Starts
    name: str
    argv: tuple[str, ...]
    folder: str = ""


def shell_words(line: str) -> list[str]:
    """The words of a line for the shell, with its operators (`&&`, `;`, `>`). Raises `ValueError` for an open quote."""
    lexer = shlex.shlex(_DESCRIPTOR.sub("", line.replace("\\\n", " ")), posix=True, punctuation_chars=";&|()<>\n")
    lexer.whitespace, lexer.whitespace_split, lexer.commenters = " \t\r", True, ""
    return [word.replace("\n", ";") if word.strip(";&|()<>\n") == "" else word for word in lexer]


def words_of(line: str) -> list[str]:
    """The words of a line for the shell (see `shell_words`); none of one with an open quote, which starts nothing."""
    try:
        return shell_words(line)
    except ValueError:
        return []


def launches(words: Sequence[str], folder: str = "") -> Iterator[Launch]:
    """What the commands of a line start, each in its folder; nothing for those that start nothing that can be named."""
    for operator, group in itertools.groupby(words, lambda word: _OPERATOR.match(word) is not None):
        command = [] if operator else _without_redirections(list(group))
        if len(command) == 2 and command[0] in ("cd", "pushd"):
            folder = posixpath.join(folder, command[1])
        elif command and _SHELL.match(command[0]) and command[1:2] and _COMMAND.match(command[1]):
            yield from launches(words_of(" ".join(command[2:3])), folder)
        else:
            found = _launch(command)
            if found is not None:
                yield replace(found, folder=folder)


def _without_redirections(words: list[str]) -> list[str]:
    skip = {i + step for i, word in enumerate(words) if _REDIRECTION.match(word) for step in (0, 1)}
    return [word for i, word in enumerate(words) if i not in skip]


def _launch(words: list[str]) -> Launch | None:
    rest = words
    while rest:
        wrapper = _WRAPPERS.get(posixpath.basename(rest[0]))
        if rest[0] == "env" or _ASSIGNMENT.match(rest[0]):
            rest = rest[1:]
        elif wrapper is not None:
            rest = rest[1 + len(_options(rest[1:], wrapper)) :]
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
