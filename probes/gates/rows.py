"""Are the rows of one forward of S=q those of q forwards of S=1?"""

from __future__ import annotations

from typing import Any

from probes.gates.bench import Bench
from probes.gates.gate import GateResult, Outcome, graded, shown, worst
from probes.tolerance import compare

NAME = "rows"
QUESTION = "one forward of S=q gives the rows of q forwards of S=1"


def run(bench: Bench) -> GateResult:
    """Every width from 2: the steps of the widest are the reference for all, for their tokens are the same."""
    widths = [width for width in bench.widths if width > 1]
    if not widths:
        return GateResult.not_run(NAME, "the graph takes S=1 only: there is nothing to compare")
    start = bench.prefill(bench.tokens(bench.prefix))
    drafts = bench.tokens(bench.widest, 1)
    reference = bench.steps(drafts, bench.prefix)
    by_width: dict[str, Any] = {}
    verdicts: list[Outcome] = []
    ties = equal = total = 0
    bad: tuple[int, str] | None = None
    largest = None
    for width in widths:
        bench.back(start)
        rows = bench.forward(drafts[:width], bench.prefix)
        if len(rows) != width:
            return GateResult.not_run(NAME, f"{len(rows)} rows came out for S={width}, so there is nothing to compare")
        difference = compare(reference[:width], rows)
        by_width[str(width)] = difference.as_json()
        verdicts.append(graded(difference, bench.tolerance))
        equal, total = equal + difference.equal, total + difference.rows
        ties += len(difference.flips) if verdicts[-1] is Outcome.CONFIRMED else 0
        if verdicts[-1] is not Outcome.CONFIRMED and bad is None:
            bad = (width, shown(difference))
        largest = difference if largest is None or difference.relative > largest.relative else largest
    assert largest is not None
    verdict = worst(verdicts)
    numbers = {
        "prefix": bench.prefix,
        "max_delta_relative": largest.relative if largest.finite else None,
        "argmax_equal": equal,
        "rows": total,
        "near_ties": ties,
        "widths": by_width,
    }
    if bad is not None:
        near = " (between the bounds)" if verdict is Outcome.PARTIAL else ""
        overall = f"; all widths: argmax {equal} of {total} rows"
        return GateResult(NAME, verdict, f"S={bad[0]}: {bad[1]}{near}{overall}", numbers, bench.tolerance)
    tied = f", {ties} near tie{'s' if ties != 1 else ''}" if ties else ""
    span = f"S={widths[0]}..{widths[-1]}" if len(widths) > 1 else f"S={widths[0]}"
    reason = f"{span}: delta at most {largest.relative:.3g} of the scale, argmax {equal} of {total} rows{tied}"
    return GateResult(NAME, verdict, reason, numbers, bench.tolerance)
