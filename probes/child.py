"""The process in which a runtime runs. It may be killed by it at any step, so it says what it is about to do.

The request is one line of JSON on standard input; each event is one line on what was standard output, which is closed
to everybody else first. When standard input ends, so does the process: its parent is gone.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from probes import backend as backends
from probes.backend import Backend, OpenOptions, Session
from probes.ports import Positions
from probes.settle import settle

Emit = Callable[[Mapping[str, Any]], None]


def main() -> None:
    """Serve one request, then leave without the runtime's own exit, which sometimes aborts."""
    emit = _channel()
    request = json.loads(sys.stdin.readline())
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        _serve(request, emit)
    except Exception as error:
        emit({"event": "failed", "error": said(error)})
    sys.stderr.flush()
    os._exit(0)


def _channel() -> Emit:
    """Keep standard output for events: a runtime that prints must not be taken for one."""
    private = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    lock = threading.Lock()

    def emit(event: Mapping[str, Any]) -> None:
        with lock:
            private.write(json.dumps(event) + "\n")
            private.flush()

    return emit


def _end_with_parent() -> None:
    sys.stdin.read()
    folder = os.environ.get("SPEC_AUDIT_SCRATCH")
    if folder:
        shutil.rmtree(folder, ignore_errors=True)
    os._exit(1)


def said(error: BaseException) -> str:
    """An exception in one line; one of ours speaks for itself."""
    text = " ".join(str(error).split())
    if isinstance(error, backends.BackendError | backends.CapacityError):
        return text
    return f"{type(error).__name__}: {text}"[:600]


def _serve(request: Mapping[str, Any], emit: Emit) -> None:
    backend = backends.load(str(request["backend"]))
    emit({"event": "ready", "scope": backend.scope, "environment": backend.environment()})
    worker = _Worker(backend, request, emit)
    for step in request["steps"]:
        emit({"event": "step", "id": step["id"]})
        try:
            value = worker.run(step)
        except Exception as error:
            worker.forget()
            emit({"event": "error", "id": step["id"], "error": said(error), "kind": type(error).__name__})
        else:
            emit({"event": "result", "id": step["id"], "value": value})


class _Worker:
    """Runs steps, keeping the last opened session."""

    def __init__(self, backend: Backend, request: Mapping[str, Any], emit: Emit) -> None:
        self._backend = backend
        self._path = str(request["path"])
        self._request = request
        self._emit = emit
        self._session: tuple[tuple[str, int], Session] | None = None

    def forget(self) -> None:
        self._session = None

    def run(self, step: Mapping[str, Any]) -> Any:
        kinds = {
            "inspect": self._inspect,
            "gate": self._gate,
            "sweep": self._sweep,
            "placement": self._placement,
            "generate": self._generate,
        }
        return kinds[step["kind"]](step)

    def _inspect(self, step: Mapping[str, Any]) -> Any:
        found = self._backend.inspect(self._path)
        return {
            "signatures": [signature.as_json() for signature in found.signatures],
            "programs": {name: dict(seen) for name, seen in found.programs.items()},
            "unseen": list(found.unseen),
            "about": dict(found.about),
            "not_executable": found.not_executable,
        }

    def _opened(self, graph: str, capacity: int) -> Session:
        key = (graph, capacity)
        if self._session is None or self._session[0] != key:
            told = self._request.get("positions")

            def open_as(positions: Positions | None) -> Session:
                return self._backend.open(self._path, graph, self._options(capacity, positions))

            self._session = (key, open_as(Positions(told)) if told else settle(open_as))
        return self._session[1]

    def _options(self, capacity: int, positions: Positions | None = None) -> OpenOptions:
        asked = self._request
        return OpenOptions(
            capacity,
            positions,
            asked.get("vocab"),
            str(asked.get("compute_unit") or ""),
            int(asked.get("weight_limit") or 0),
            str(asked.get("keep") or ""),
        )

    def _placement(self, step: Mapping[str, Any]) -> Any:
        """Where the operations are meant to run, of a backend that can tell."""
        tell = getattr(self._backend, "placement", None)
        return tell(self._path, str(step["graph"]), self._options(0)) if tell else {}

    def _gate(self, step: Mapping[str, Any]) -> Any:
        from probes.gates import gate
        from probes.gates.bench import Bench, BenchOptions

        session = self._opened(str(step["graph"]), int(step["capacity"]))
        done = 0

        def tick() -> None:
            nonlocal done
            done += 1
            self._emit({"event": "progress", "id": step["id"], "done": done})

        bench = Bench(session, BenchOptions(**step["bench"]), tick)
        return gate(str(step["gate"])).run(bench).as_json()

    def _sweep(self, step: Mapping[str, Any]) -> Any:
        from probes.sweep import Schedule, sweep

        session = self._opened(str(step["graph"]), int(step["capacity"]))

        def tick(done: int, total: int) -> None:
            self._emit({"event": "progress", "id": step["id"], "done": done, "total": total})

        schedule = Schedule(**step["schedule"])
        if session.widths is not None:
            schedule = replace(schedule, widths=[width for width in schedule.widths if width in session.widths])
        found = sweep(session, schedule, tick)
        floor = getattr(session, "floor", None)
        return {**found, "floor_ms": floor(schedule.widths) if floor else {}}

    def _generate(self, step: Mapping[str, Any]) -> Any:
        from probes.ab.worker import run

        session = self._opened(str(step["graph"]), int(step["capacity"]))

        def tick(emitted: int) -> None:
            if emitted % 16 == 0:
                self._emit({"event": "progress", "id": step["id"], "done": emitted, "total": step["budget"]})

        return run(session, step, tick)
