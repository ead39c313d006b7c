"""Are the rows of one forward of S=q those of q forwards of S=1?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from probes.gates.bench import Bench
from probes.gates.gate import GateResult, Outcome, graded, shown, worst
from probes.tolerance import Difference, compare

NAME = "rows"
QUESTION = "one forward of S=q gives the rows of q forwards of S=1"
_ELSEWHERE = 3
"""How far before the prefix's end the widest query is tried again. Prefixes are even, so this place is not."""


@dataclass(frozen=True, slots=True)
class _Compared:
    """What queries of several widths from one place give, against steps from there."""

    place: int
    widths: dict[int, Difference]


class _Short(Exception):
    """A query gave fewer or more rows than it has positions."""


def run(bench: Bench) -> GateResult:
    """Every width from 2; then the widest at an odd place, for a kernel may be right where whole blocks begin only."""
    widths = [width for width in bench.widths if width > 1]
    if not widths:
        return GateResult.not_run(NAME, "the graph takes S=1 only: there is nothing to compare")
    odd = max(1, bench.prefix - _ELSEWHERE)
    try:
        here = _compared(bench, bench.prefix, widths)
        there = _compared(bench, odd, widths[-1:]) if odd != bench.prefix else None
    except _Short as error:
        return GateResult.not_run(NAME, f"{error}, so there is nothing to compare")
    return _result(bench, here, there)


def _compared(bench: Bench, place: int, widths: Sequence[int]) -> _Compared:
    """The steps of the widest are the reference for all, for their tokens are the same."""
    start = bench.prefill(bench.tokens(place))
    drafts = bench.tokens(bench.widest, 1)
    reference = bench.steps(drafts, place)
    found = {}
    for width in widths:
        bench.back(start)
        rows = bench.forward(drafts[:width], place)
        if len(rows) != width:
            raise _Short(f"{len(rows)} rows came out for S={width}")
        found[width] = compare(reference[:width], rows)
    return _Compared(place, found)


def _result(bench: Bench, here: _Compared, there: _Compared | None) -> GateResult:
    found = [(part.place, width, one) for part in (here, there) if part for width, one in part.widths.items()]
    all_of = [one for _, _, one in found]
    verdicts = [graded(one, bench.tolerance) for one in all_of]
    verdict = worst(verdicts)
    largest = max(all_of, key=lambda one: one.relative)
    counted = here.widths.values()
    equal, total = sum(one.equal for one in counted), sum(one.rows for one in counted)
    ties = sum(len(one.flips) for one in counted if graded(one, bench.tolerance) is Outcome.CONFIRMED)
    numbers: dict[str, Any] = {
        "prefix": here.place,
        "max_delta_relative": largest.relative if largest.finite else None,
        "argmax_equal": equal,
        "rows": total,
        "near_ties": ties,
        "widths": {str(width): one.as_json() for width, one in here.widths.items()},
    }
    if there:
        numbers["elsewhere"] = {"prefix": there.place, "width": found[-1][1], **all_of[-1].as_json()}
    if verdict is not Outcome.CONFIRMED:
        place, width, bad = next(
            item for item, its in zip(found, verdicts, strict=True) if its is not Outcome.CONFIRMED
        )
        where = "" if place == here.place else f" after {place} tokens, not after {here.place}"
        near = " (between the bounds)" if verdict is Outcome.PARTIAL else ""
        overall = f"; all widths: argmax {equal} of {total} rows"
        return GateResult(NAME, verdict, f"S={width}{where}: {shown(bad)}{near}{overall}", numbers, bench.tolerance)
    tied = f", {ties} near tie{'s' if ties != 1 else ''}" if ties else ""
    widths = list(here.widths)
    span = f"S={widths[0]}..{widths[-1]}" if len(widths) > 1 else f"S={widths[0]}"
    reason = f"{span}: delta at most {largest.relative:.3g} of the scale, argmax {equal} of {total} rows{tied}"
    return GateResult(NAME, verdict, reason, numbers, bench.tolerance)
