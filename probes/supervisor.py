"""The parent's side of the child process: starts it, keeps time, and makes results of its deaths.

When the child dies at a step, that step has failed with the name of the signal, and a new child does the rest.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

BOOT = "import sys; sys.path.insert(0, sys.argv[1]); from probes.child import main; main()"
TUNABLES = (
    "glibc.malloc.hugetlb=1:glibc.malloc.mmap_threshold=33554432:"
    "glibc.malloc.trim_threshold=4000000000:glibc.malloc.top_pad=268435456"
)
"""glibc gives large blocks back and faults them in again at every forward: times double, and become bimodal."""
STARTUP_SECONDS = 60.0
_STDERR_LINES = 40
_NOISE = ("ODIE [", "hwloc/")

Listener = Callable[[Mapping[str, Any], int], None]
"""Called with each event and the child's process id."""


@dataclass(frozen=True, slots=True)
class StepResult:
    """What became of a step: its value, or (then `value` is None) why there is none. `died` tells of a dead child."""

    value: Any = None
    failure: str = ""
    died: bool = False


@dataclass(slots=True)
class Run:
    """The results of all steps, and what the backend said of itself."""

    results: dict[str, StepResult] = field(default_factory=dict)
    scope: str = ""
    environment: dict[str, Any] = field(default_factory=dict)

    def value(self, step: str) -> Any:
        found = self.results.get(step)
        return found.value if found else None

    def failure(self, step: str) -> str:
        found = self.results.get(step)
        return found.failure if found else "not run"


def supervise(
    request: Mapping[str, Any],
    steps: Sequence[Mapping[str, Any]],
    seconds: float,
    listener: Listener = lambda event, pid: None,
) -> Run:
    """Run `steps` in children until all have a result. `seconds` is the limit of each step."""
    run = Run()
    left = list(steps)
    while left:
        before = len(left)
        failure = _one_child(request, left, seconds, listener, run)
        left = [step for step in left if step["id"] not in run.results]
        if len(left) == before:
            failure = failure or "the child process ended between two steps"
        if failure:
            for step in left:
                run.results[step["id"]] = StepResult(failure=failure, died=True)
            break
    return run


def _one_child(
    request: Mapping[str, Any], steps: Sequence[Mapping[str, Any]], seconds: float, listener: Listener, run: Run
) -> str:
    """Serve as many steps as one child survives; a text when no further child would do better."""
    try:
        scratch = tempfile.mkdtemp(prefix="spec-audit-")
    except OSError as error:
        return f"no temporary folder can be written ({error.strerror or error}); set TMPDIR to one that can"
    try:
        with _Child({**request, "steps": list(steps)}, scratch) as child:
            return _follow(child, seconds, listener, run)
    except OSError as error:
        return f"the child process could not be started ({error.strerror or error})"
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _follow(child: _Child, seconds: float, listener: Listener, run: Run) -> str:
    current, ready = "", False
    deadline = time.monotonic() + STARTUP_SECONDS
    while True:
        try:
            event = child.next_event(deadline - time.monotonic())
            slow = event is None and child.running()
        except TimeoutError:
            event, slow = None, True
        if event is None:
            how = f"took longer than {seconds if current else STARTUP_SECONDS:g} s" if slow else child.epitaph()
            if current:
                run.results[current] = StepResult(failure=f"at {current} the child process {how}", died=True)
                return f"not reached, for {current} {how}" if slow else ""
            return "" if ready and not slow else f"the child process {how} before its first step"
        listener(event, child.pid)
        kind = event["event"]
        if kind == "ready":
            ready = True
            run.scope, run.environment = str(event["scope"]), dict(event["environment"])
        elif kind == "step":
            current = str(event["id"])
            deadline = time.monotonic() + seconds
        elif kind == "result":
            run.results[current] = StepResult(event["value"])
            current = ""
        elif kind == "error":
            run.results[current] = StepResult(failure=str(event["error"]))
            current = ""
        elif kind == "failed":
            return str(event["error"])


class _Child:
    """A child process as a context: when it is left, the child is dead and its pipes are closed."""

    def __init__(self, request: Mapping[str, Any], scratch: str) -> None:
        environment = {**os.environ, "TMPDIR": scratch, "SPEC_AUDIT_SCRATCH": scratch}
        if sys.platform == "linux" and "GLIBC_TUNABLES" not in environment:
            environment["GLIBC_TUNABLES"] = TUNABLES
        root = str(Path(__file__).resolve().parents[1])
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-c", BOOT, root],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment,
            start_new_session=True,
        )
        self.pid = self._process.pid
        self._events: queue.Queue[dict[str, Any] | None] = queue.Queue()
        self._stderr: deque[str] = deque(maxlen=_STDERR_LINES)
        self._threads = [
            threading.Thread(target=self._read_events, args=(self._process.stdout,), daemon=True),
            threading.Thread(target=self._read_stderr, args=(self._process.stderr,), daemon=True),
        ]
        for thread in self._threads:
            thread.start()
        self._send(request)

    def _send(self, request: Mapping[str, Any]) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(json.dumps(request).encode() + b"\n")
            self._process.stdin.flush()

    def __enter__(self) -> _Child:
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)
        self._process.wait()
        for thread in self._threads:
            thread.join(timeout=5)
        for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()

    def _read_events(self, pipe: IO[bytes]) -> None:
        for line in pipe:
            with contextlib.suppress(ValueError):
                self._events.put(json.loads(line))
        self._events.put(None)

    def _read_stderr(self, pipe: IO[bytes]) -> None:
        for line in pipe:
            text = line.decode("utf-8", "replace").strip()
            if text and not text.startswith(_NOISE):
                self._stderr.append(text[:300])

    def next_event(self, seconds: float) -> dict[str, Any] | None:
        """The next event; None when the child closed its end. TimeoutError when the time is over."""
        try:
            return self._events.get(timeout=max(seconds, 0))
        except queue.Empty:
            raise TimeoutError from None

    def running(self) -> bool:
        """Whether the child is alive: given a moment, for its pipes close shortly before it is gone."""
        try:
            self._process.wait(timeout=0.5)
        except subprocess.TimeoutExpired:
            return True
        return False

    def epitaph(self) -> str:
        """How the child ended, with the last error (else the last line) that it left on standard error."""
        code = self._process.returncode
        spoken = [line for line in self._stderr if "error:" in line.lower()] or list(self._stderr)
        last = spoken[-1] if spoken else ""
        tail = f" ({last})" if last else ""
        if code is not None and code < 0:
            try:
                name = signal.Signals(-code).name
            except ValueError:
                name = f"signal {-code}"
            return f"was ended by {name}{tail}"
        return f"ended with status {code}{tail}"
