"""Unified diffs, applied in memory. Strict: every line of context must match; a hunk may have moved, nothing else."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

_HUNK = re.compile(rb"^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_QUOTED = re.compile(rb'\\([abtnvfr"\\]|[0-7]{1,3})')
_ESCAPES = {b"a": b"\a", b"b": b"\b", b"t": b"\t", b"n": b"\n", b"v": b"\v", b"f": b"\f", b"r": b"\r"}
_GIT_NAMES = re.compile(rb"^diff --git (\"?a/.*) (\"?b/.*)$")


class PatchError(Exception):
    """What is wrong with a hunk, or why it does not apply; the message names it. `resume` is the next line to read."""

    def __init__(self, message: str, resume: int = 0) -> None:
        super().__init__(message)
        self.resume = resume


@dataclass(frozen=True, slots=True)
class Hunk:
    """One replacement: the `old` lines (terminators included) become the `new` ones.

    `start` is the first old line, counted from 1 (with no old lines: the line after which to insert); `before` and
    `after` count the context lines at both ends; `line` is where the hunk stands in the diff.
    """

    start: int
    old: tuple[bytes, ...]
    new: tuple[bytes, ...]
    before: int
    after: int
    line: int
    number: int

    def __str__(self) -> str:
        return f"hunk {self.number} (line {self.line} of the diff, old line {self.start})"


@dataclass(frozen=True, slots=True)
class FilePatch:
    """What a diff does to one file. `old` is None for a new file, `new` for a deleted one; names are as written.

    `error` says why the hunks could not be read.
    """

    old: str | None
    new: str | None
    hunks: tuple[Hunk, ...]
    binary: bool = False
    copies: bool = False
    error: str = ""

    @property
    def name(self) -> str:
        return self.new or self.old or ""


def parse(data: bytes) -> tuple[FilePatch, ...]:
    """The files of a unified diff (plain, `diff -r` or git), in its order; none when it is no diff."""
    return tuple(_files(data.split(b"\n")))


def _files(lines: Sequence[bytes]) -> Iterator[FilePatch]:
    head = _Header()
    index = 0
    while index < len(lines):
        line = lines[index]
        if line.startswith(b"--- ") and index + 1 < len(lines) and lines[index + 1].startswith(b"+++ "):
            if head.binary:
                yield from head.files(())
                head = _Header()
            head.pair(line, lines[index + 1])
            try:
                hunks, index = _hunks(lines, index + 2)
                yield from head.files(hunks)
            except PatchError as error:
                yield from head.files((), str(error))
                index = error.resume
            head = _Header()
            continue
        if line.startswith(b"diff "):
            yield from head.files(())
            head = _Header()
        head.read(line)
        index += 1
    yield from head.files(())


class _Header:
    """The lines between two files of a git diff; a file without hunks (a pure rename, a binary) is only there."""

    def __init__(self) -> None:
        self.old: str | None = None
        self.new: str | None = None
        self.git: tuple[str, str] | None = None
        self.paired = self.created = self.deleted = self.binary = self.copies = False

    def read(self, line: bytes) -> None:
        line = line.rstrip(b"\r")
        if match := _GIT_NAMES.match(line):
            self.git = (_name(match[1]), _name(match[2]))
        elif line.startswith(b"new file mode "):
            self.created = True
        elif line.startswith(b"deleted file mode "):
            self.deleted = True
        elif line.startswith((b"rename from ", b"copy from ")):
            self.old = "a/" + _name(line.split(b" from ", 1)[1])
            self.copies = line.startswith(b"copy")
        elif line.startswith((b"rename to ", b"copy to ")):
            self.new = "b/" + _name(line.split(b" to ", 1)[1])
        elif line.startswith((b"Binary files ", b"GIT binary patch")):
            self.binary = True

    def pair(self, old: bytes, new: bytes) -> None:
        self.paired = True
        names = [_name(line[4:].split(b"\t")[0].rstrip()) for line in (old, new)]
        self.old, self.new = (None if name == "/dev/null" else name for name in names)

    def files(self, hunks: tuple[Hunk, ...], error: str = "") -> Iterator[FilePatch]:
        old, new = self.old, self.new
        if not self.paired and old is None and new is None:
            if self.git is None or not (self.created or self.deleted or self.binary):
                return
            old, new = self.git
        # A plain `diff -N` names both sides of a new file.
        appears = len(hunks) == 1 and not hunks[0].old and hunks[0].start == 0
        old = None if self.created or appears else old
        new = None if self.deleted else new
        if old is not None or new is not None:
            yield FilePatch(old, new, hunks, self.binary, self.copies, error)


def _name(raw: bytes) -> str:
    """A file name of a diff; git quotes the unusual ones as C does."""
    if len(raw) > 1 and raw.startswith(b'"') and raw.endswith(b'"'):
        raw = _QUOTED.sub(_unescape, raw[1:-1])
    return raw.decode("utf-8", "surrogateescape")


def _unescape(match: re.Match[bytes]) -> bytes:
    code = match[1]
    if code.isdigit():
        return bytes([int(code, 8) & 0xFF])
    return _ESCAPES.get(code, code)


def _hunks(lines: Sequence[bytes], index: int) -> tuple[tuple[Hunk, ...], int]:
    hunks: list[Hunk] = []
    while index < len(lines) and (match := _HUNK.match(lines[index])):
        hunk, index = _hunk(lines, index, match, len(hunks) + 1)
        hunks.append(hunk)
    return tuple(hunks), index


def _hunk(lines: Sequence[bytes], index: int, match: re.Match[bytes], number: int) -> tuple[Hunk, int]:
    head = index + 1
    start = int(match[1])
    olds = 1 if match[2] is None else int(match[2])
    news = 1 if match[4] is None else int(match[4])
    old: list[bytes] = []
    new: list[bytes] = []
    marks = bytearray()
    index += 1
    while len(old) < olds or len(new) < news:
        # The last piece of a split is what follows the final newline, and no line; an empty line is blank context.
        line = lines[index] if index < len(lines) - 1 or (index < len(lines) and lines[index]) else None
        mark = None if line is None else line[:1]
        if line is None or mark not in (b" ", b"-", b"+", b"", b"\r", b"\\"):
            raise PatchError(f"hunk {number} (line {head} of the diff) is cut short at line {index + 1}", head)
        if mark == b"\\":
            _unterminate(old, new, marks)
        else:
            content = (line if mark == b"\r" else line[1:]) + b"\n"
            if mark != b"+":
                old.append(content)
            if mark != b"-":
                new.append(content)
            marks.append(mark[0] if mark in (b"-", b"+") else 32)
        index += 1
    if len(old) > olds or len(new) > news:
        raise PatchError(f"hunk {number} (line {head} of the diff) has other line counts than it says", head)
    if index < len(lines) and lines[index].startswith(b"\\"):
        _unterminate(old, new, marks)
        index += 1
    before = len(marks) - len(marks.lstrip(b" "))
    after = len(marks) - len(marks.rstrip(b" "))
    return Hunk(start, tuple(old), tuple(new), before, after, head, number), index


def _unterminate(old: list[bytes], new: list[bytes], marks: bytearray) -> None:
    r"""`\ No newline at end of file` speaks of the line before it, on the side(s) that have it."""
    last = bytes(marks[-1:])
    for side, other in ((old, b"+"), (new, b"-")):
        if side and last != other:
            side[-1] = side[-1].removesuffix(b"\n")


def apply(hunks: Sequence[Hunk], data: bytes) -> bytes:
    """`data` after all hunks. A hunk that is not where it says is looked for nearby, then further away.

    Raises `PatchError` for the first hunk whose old lines are nowhere after the hunk before it.
    """
    lines = _split(data)
    out: list[bytes] = []
    done = shift = 0
    for hunk in hunks:
        # With no old lines the number is that of the line before, not of the first line.
        expected = (hunk.start if not hunk.old else hunk.start - 1) + shift
        at = _find(lines, hunk, expected, done)
        if at is None:
            there = hunk.new and _find(lines, Hunk(hunk.start, hunk.new, (), 0, 0, 0, 0), expected, done) is not None
            hint = "; its new lines are there already" if there else ""
            raise PatchError(f"{hunk} does not apply{hint}")
        shift += at - expected
        out += lines[done:at]
        out += hunk.new
        done = at + len(hunk.old)
    out += lines[done:]
    return b"".join(out)


def _split(data: bytes) -> list[bytes]:
    """Lines that end with a newline only: a carriage return is part of its line."""
    lines = [line + b"\n" for line in data.split(b"\n")]
    last = lines.pop()[:-1]
    return [*lines, last] if last else lines


def _find(lines: Sequence[bytes], hunk: Hunk, expected: int, done: int) -> int | None:
    """Where the old lines stand, nearest to `expected`; None when nowhere at or after `done`."""
    size = len(hunk.old)
    last = len(lines) - size
    if done <= expected <= last and tuple(lines[expected : expected + size]) == hunk.old:
        return expected
    if not size:
        return None
    # A hunk with less context on one side was cut by that end of the file; elsewhere it would be a chance match.
    if hunk.before < hunk.after and hunk.start <= 1:
        places: Iterator[int] | tuple[int, ...] = (0,)
    elif hunk.after < hunk.before:
        places = (last,)
    else:
        first = hunk.old[0]
        places = (at for at in _outwards(expected, done, last) if lines[at] == first)
    return next((at for at in places if at >= done and tuple(lines[at : at + size]) == hunk.old), None)


def _outwards(middle: int, low: int, high: int) -> Iterator[int]:
    for distance in range(1, max(middle - low, high - middle) + 1):
        for at in (middle - distance, middle + distance):
            if low <= at <= high:
                yield at
