"""Times forwards of every S at one place of one context, inside the child process.

The order is shuffled in every round, with S=1 anchors in between: a machine that slows down would otherwise make a
staircase of its own. The first call at each S is kept apart, because a runtime may specialise for a new shape.
"""

from __future__ import annotations

import gc
import os
import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from probes.backend import Session

FIRST, WARM, TIMED, ANCHOR = "first", "warm", "timed", "anchor"
_CHUNK = 16


@dataclass(frozen=True, slots=True)
class Schedule:
    """What to time: `repeats` rounds over `widths` after `warmups` calls each, an anchor after every `anchor_every`."""

    widths: Sequence[int]
    context: int
    repeats: int = 10
    warmups: int = 2
    anchor_every: int = 4
    seed: int = 0


def calls(schedule: Schedule) -> Iterator[tuple[int, str]]:
    """Every timed call in order, as (S, kind): reproducible from the seed."""
    order = random.Random(schedule.seed)
    widths = list(schedule.widths)
    order.shuffle(widths)
    for width in widths:
        yield width, FIRST
        for _ in range(schedule.warmups):
            yield width, WARM
    for _ in range(schedule.repeats):
        order.shuffle(widths)
        yield 1, ANCHOR
        for index, width in enumerate(widths, 1):
            yield width, TIMED
            if index % schedule.anchor_every == 0:
                yield 1, ANCHOR


def sweep(session: Session, schedule: Schedule, tick: Callable[[int, int], None] = lambda done, total: None) -> Any:
    """The raw samples: [S, milliseconds, kind] in the order in which they were taken.

    Nothing advances: each forward overwrites the rows of the one before, at `context`. `host_seconds` is everything
    outside the forwards that a verifier would do as well: making the inputs, and the argmax of every row.
    """
    import numpy as np

    tokens = [
        int(token) for token in np.random.default_rng(schedule.seed).integers(0, session.vocab, schedule.context + 64)
    ]
    session.reset()
    _prefill(session, tokens, schedule.context)
    plan = list(calls(schedule))
    samples: list[tuple[int, float, str]] = []
    drafts = {width: [tokens[index % len(tokens)] for index in range(width)] for width in schedule.widths}
    drafts.setdefault(1, tokens[:1])
    host = forwards = 0.0
    before = _load()
    gc.collect()
    gc.disable()
    try:
        for done, (width, kind) in enumerate(plan):
            started = time.perf_counter()
            rows = session.forward(drafts[width], schedule.context)
            rows.argmax(axis=1)
            spent = time.perf_counter() - started
            samples.append((width, session.seconds * 1e3, kind))
            if kind in (TIMED, ANCHOR):
                host += spent - session.seconds
                forwards += session.seconds
            if done % 16 == 0:
                tick(done, len(plan))
    finally:
        gc.enable()
    return {
        "context": schedule.context,
        "capacity": session.capacity,
        "seed": schedule.seed,
        "repeats": schedule.repeats,
        "samples": [[width, round(ms, 6), kind] for width, ms, kind in samples],
        "host_seconds": host,
        "forward_seconds": forwards,
        "load": [before, _load()],
    }


def _prefill(session: Session, tokens: Sequence[int], context: int) -> None:
    if session.widths is not None and 1 not in session.widths:
        raise ValueError(f"the graph takes S={session.widths} only, so there is no S=1 to compare with")
    chunk = _CHUNK if session.widths is None else max(session.widths)
    for start in range(0, context, chunk):
        piece = tokens[start : min(start + chunk, context)]
        if session.widths is not None and len(piece) not in session.widths:
            for index, token in enumerate(piece):
                session.forward([token], start + index)
        else:
            session.forward(piece, start)


def _load() -> float | None:
    """The load average of the last minute, where the system tells."""
    try:
        return os.getloadavg()[0]
    except (AttributeError, OSError):
        return None
