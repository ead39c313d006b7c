"""Does the past matter? A state that is never written passes *rows*: every way of feeding is equally blind."""

from __future__ import annotations

import sys
from typing import Any

from probes.gates.bench import Bench
from probes.gates.gate import GateResult, Outcome, still
from probes.tolerance import compare

NAME = "history"
QUESTION = "changing an early token moves a late row, and every state is written"


def run(bench: Bench) -> GateResult:
    """Change one token at several distances before a step of its own; the row of that step has to move."""
    import numpy as np

    prompt = bench.tokens(bench.prefix)
    other = bench.tokens(bench.prefix, 2)
    bench.session.reset()
    blank = bench.session.states()
    written = bench.prefill(prompt)
    last = bench.steps(bench.tokens(1, 1), bench.prefix)
    unwritten = [name for name, array in written.items() if np.array_equal(blank[name], array)]
    bench.prefill(prompt)
    noise = compare(last, bench.steps(bench.tokens(1, 1), bench.prefix))
    unmoved = still(noise)
    moved: dict[str, float] = {}
    for distance in _distances(bench.prefix):
        changed = list(prompt)
        changed[-distance] = other[-distance]
        bench.prefill(changed)
        difference = compare(last, bench.steps(bench.tokens(1, 1), bench.prefix))
        moved[str(distance)] = difference.relative if difference.finite else sys.float_info.max
    numbers: dict[str, Any] = {
        "prefix": bench.prefix,
        "moved_by_distance": moved,
        "still_below": unmoved,
        "unwritten": unwritten,
    }
    reach = [int(distance) for distance, delta in moved.items() if delta > unmoved]
    observed = (
        {"unwritten-state": f"{', '.join(unwritten)}: as before after {bench.prefix} tokens"} if unwritten else {}
    )
    never = f"; never written: {', '.join(unwritten)}" if unwritten else ""
    if not reach:
        reason = f"no token of the prefix moves the next row: the past is lost{never}"
        return GateResult(NAME, Outcome.REFUTED, reason, numbers, observed=observed)
    window = "" if max(reach) == max(map(int, moved)) else " and no farther: a window, or a cache that forgets"
    reason = f"a token {max(reach)} positions back moves the row{window}{never}"
    return GateResult(NAME, Outcome.CONFIRMED, reason, numbers, observed=observed)


def _distances(prefix: int) -> list[int]:
    return sorted({distance for distance in (1, 2, 8, prefix // 2, prefix) if 1 <= distance <= prefix})
