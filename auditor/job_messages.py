"""What a scan and the processes that help it say to each other, as data that JSON can hold.

Like the cache's entries, messages are data and nothing in them is ever executed; whatever is not exactly what the other
side writes is a `ValueError`.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar

from auditor.request import ScanRequest
from auditor.runs import Found, Outcome, Run
from auditor.scan_codec import decode, encode
from auditor.seen import Seen
from rules.facts import Graph, InvocationKind, Scan

READY = b"ready\n"
"""The first line of a helper: from here on it takes runs."""

T = TypeVar("T")


def request_line(request: ScanRequest) -> bytes:
    """The first line that a helper is told: what is audited."""
    return _line(
        [
            str(request.root),
            [str(path) for path in request.paths],
            [str(path) for path in request.libraries],
            None if request.checkpoints is None else str(request.checkpoints),
        ]
    )


def read_request(line: bytes) -> ScanRequest:
    root, paths, libraries, checkpoints = _read(line, list)
    return ScanRequest(
        Path(root),
        tuple(map(Path, paths)),
        tuple(map(Path, libraries)),
        checkpoints=None if checkpoints is None else Path(checkpoints),
    )


def runs_line(runs: Sequence[Run]) -> bytes:
    """A further line that a helper is told: the runs of one script."""
    return _line([[r.script, r.argv, str(r.kind), r.recipe, r.shipped, r.command, r.line] for r in runs])


def read_runs(line: bytes) -> list[Run]:
    return [
        Run(script, tuple(argv), InvocationKind(kind), recipe, shipped, command, at)
        for script, argv, kind, recipe, shipped, command, at in _read(line, list)
    ]


def answer_line(outcomes: Sequence[Outcome], seen: Seen) -> bytes:
    """What a helper answers: what the runs came to, and what was seen for it."""
    graphs = [graph for o in outcomes for graph in (*(found.graph for found in o.graphs), *o.waiting)]
    return _line(
        {
            "graphs": encode(Scan("", (), tuple(graphs))),
            "outcomes": [
                [[found.way for found in o.graphs], len(o.waiting), o.exports, o.error, o.reason] for o in outcomes
            ],
            "seen": seen.plain(),
            "steady": seen.steady,
        }
    )


def read_answer(line: bytes, runs: int) -> tuple[list[Outcome], Seen]:
    """The outcomes of so many runs, and what was seen for them. Raises `ValueError` for anything else."""
    data = _read(line, dict)
    try:
        graphs = deque(decode(data["graphs"]).graphs)
        outcomes = [_outcome(item, graphs) for item in data["outcomes"]]
        seen = Seen.of(data["seen"])
        seen.steady = data["steady"] is True
    except (KeyError, TypeError, AttributeError, IndexError) as error:
        raise ValueError(f"not an answer: {error!r}") from None
    if len(outcomes) != runs or graphs:
        raise ValueError("not an answer to what was asked")
    return outcomes, seen


def _outcome(item: Any, left: deque[Graph]) -> Outcome:
    """The next outcome, with its graphs, which are the next of those that are left."""
    ways, waiting, exports, error, reason = item
    if not (isinstance(exports, bool) and isinstance(error, str) and isinstance(reason, str)):
        raise ValueError("not an outcome")
    graphs = tuple(Found(left.popleft(), _way(way)) for way in ways)
    return Outcome(graphs, tuple(left.popleft() for _ in range(waiting)), exports, error, reason)


def _way(data: Any) -> tuple[tuple[str, int], ...]:
    way = tuple((path, line) for path, line in data)
    if not all(isinstance(path, str) and isinstance(line, int) for path, line in way):
        raise ValueError("not a way to an export call")
    return way


def _line(data: Any) -> bytes:
    return json.dumps(data, separators=(",", ":")).encode("ascii") + b"\n"


def _read(line: bytes, kind: type[T]) -> T:
    data = json.loads(line)
    if not isinstance(data, kind):
        raise ValueError(f"not a {kind.__name__}")
    return data
