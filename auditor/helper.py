"""One helper of a scan, as its parent sees it: a process of its own, and what became of it."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import IO

from auditor.job_messages import READY, read_answer, request_line, runs_line
from auditor.request import ScanRequest
from auditor.runs import Outcome, Run
from auditor.seen import Seen

BOOT = "import sys; sys.path.insert(0, sys.argv[1]); from auditor.job import main; main()"
_TAIL = 4096


class Died(Exception):
    """A helper ended, or said what cannot be understood; the message completes "the process ..."."""


class Helper:
    """A helper as a context: when it is left, the process is dead and its pipes are closed.

    `busy` while it has runs to examine. Raises `OSError` when no process can be started.
    """

    def __init__(self, request: ScanRequest) -> None:
        self.busy = False
        self._request = request
        self._said = _scratch()
        try:
            self._process = subprocess.Popen(
                [sys.executable, *_flags(), "-c", BOOT, str(Path(__file__).resolve().parents[1])],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._said,
            )
        except OSError:
            self._said.close()
            raise

    def __enter__(self) -> Helper:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()
        for stream in (self._process.stdin, self._process.stdout, self._said):
            with contextlib.suppress(OSError):
                if stream is not None:
                    stream.close()

    def end(self) -> None:
        """Kill it, from whichever thread."""
        with contextlib.suppress(OSError):
            self._process.kill()
        self._process.wait()

    def ready(self) -> None:
        """Wait until it takes runs. Raises `Died`."""
        self._tell(request_line(self._request))
        if self._answer() != READY:
            raise Died("did not begin")

    def examine(self, runs: Sequence[Run]) -> tuple[list[Outcome], Seen]:
        """The outcomes of a script's runs, and what was seen for them. Raises `Died`."""
        self._tell(runs_line(runs))
        try:
            return read_answer(self._answer(), len(runs))
        except ValueError as error:
            raise Died(f"gave no answer that can be read ({error})") from None

    def _tell(self, line: bytes) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(line)
            self._process.stdin.flush()
        except OSError:
            raise Died(self._epitaph()) from None

    def _answer(self) -> bytes:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line.endswith(b"\n"):
            raise Died(self._epitaph())
        return line

    def _epitaph(self) -> str:
        """How it ended, with the last line that it left on standard error."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=1)  # its pipes close shortly before it is gone
        code = self._process.returncode
        last = f" ({self._last_line()})" if self._last_line() else ""
        if code is None:
            return f"fell silent{last}"
        if code >= 0:
            return f"ended with status {code}{last}"
        try:
            name = signal.Signals(-code).name
        except ValueError:
            name = f"signal {-code}"
        return f"was ended by {name}{last}"

    def _last_line(self) -> str:
        self._said.seek(0, os.SEEK_END)
        self._said.seek(max(0, self._said.tell() - _TAIL))
        lines = self._said.read().decode("utf-8", "replace").split("\n")
        return next((" ".join(line.split())[:300] for line in reversed(lines) if line.strip()), "")


def _scratch() -> IO[bytes]:
    """Where a helper's standard error goes: to a file, for a pipe would have to be emptied all the time."""
    try:
        return tempfile.TemporaryFile()
    except OSError:
        return Path(os.devnull).open("w+b")


def _flags() -> list[str]:
    """The current folder, which may be the audited tree, is never looked into; and what this process leaves out."""
    given = {"-I": sys.flags.isolated, "-E": sys.flags.ignore_environment, "-s": sys.flags.no_user_site}
    return ["-P", *(flag for flag, on in given.items() if on)]
