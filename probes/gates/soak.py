"""Does it last? Many forwards of changing width: memory that grows, and results that change with time or heat."""

from __future__ import annotations

import random
import sys
from typing import TYPE_CHECKING

from probes.gates.bench import Bench
from probes.gates.gate import GateResult, Outcome, graded, shown
from probes.tolerance import Difference, compare

if TYPE_CHECKING:
    from probes.backend import Rows

NAME = "soak"
QUESTION = "many forwards of changing width give what the first of each width gave"


def run(bench: Bench) -> GateResult:
    """`soak` forwards after one prefix, in an order drawn from the seed."""
    order = random.Random(bench.options.seed)
    start = bench.prefill(bench.tokens(bench.prefix))
    drafts = bench.tokens(bench.widest, 1)
    first: dict[int, Rows] = {}
    worst: Difference | None = None
    bad: tuple[int, int, str] | None = None
    before = _peak()
    for index in range(bench.options.soak):
        width = order.choice(bench.widths)
        bench.back(start)
        rows = bench.forward(drafts[:width], bench.prefix)
        difference = compare(first.setdefault(width, rows), rows)
        if graded(difference, bench.tolerance) is not Outcome.CONFIRMED or difference.flips:
            bad = bad or (index, width, shown(difference))
        worst = difference if worst is None or difference.relative > worst.relative else worst
    after = _peak()
    grown = None if before is None or after is None else after - before
    numbers = {
        "forwards": bench.options.soak,
        "widths": sorted(first),
        "max_delta_relative": worst.relative if worst and worst.finite else None,
        "memory_grown_bytes": grown,
    }
    memory = "" if grown is None else f", peak memory grew by {grown / 2**20:.0f} MB"
    if bad is not None:
        words = f"forward {bad[0]} of {bench.options.soak} (S={bad[1]}) differs from the first of its width: {bad[2]}"
        return GateResult(NAME, Outcome.REFUTED, words + memory, numbers, bench.tolerance)
    words = f"{bench.options.soak} forwards of {len(first)} widths: as the first of each{memory}"
    return GateResult(NAME, Outcome.CONFIRMED, words, numbers, bench.tolerance)


def _peak() -> int | None:
    """The most memory that this process has taken, in bytes; None where the system does not tell."""
    try:
        import resource
    except ImportError:
        return None
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
