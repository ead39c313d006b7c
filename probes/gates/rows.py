"""Are the rows of one forward of S=q those of q forwards of S=1?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from probes.gates.bench import Bench, Snapshot
from probes.gates.gate import GateResult, Outcome, graded, shown, worst
from probes.tolerance import Difference, compare

if TYPE_CHECKING:
    from probes.backend import Rows

NAME = "rows"
QUESTION = "one forward of S=q gives the rows of q forwards of S=1"
_FURTHER = 3
"""How far behind the prefix a wide query is tried again. Prefixes are even, so that place is not."""


@dataclass(frozen=True, slots=True)
class _Compared:
    """A query of `width` from `place` on, against the steps over the same tokens."""

    place: int
    width: int
    difference: Difference


class _Short(Exception):
    """A query gave fewer or more rows than it has positions."""


def run(bench: Bench) -> GateResult:
    """Every width from 2; then a wide one at an odd place, for a kernel may be right only where whole blocks begin."""
    import numpy as np

    widths = [width for width in bench.widths if width > 1]
    if not widths:
        return GateResult.not_run(NAME, f"{bench.only_one}: there is nothing to compare")
    start = bench.prefill(bench.tokens(bench.prefix))
    drafts = bench.tokens(bench.widest, 1)
    first = bench.steps(drafts[:_FURTHER], bench.prefix)
    further = bench.session.states()
    rest = bench.steps(drafts[_FURTHER:], bench.prefix + _FURTHER) if len(drafts) > _FURTHER else first[:0]
    reference = np.concatenate([first, rest])
    left = max((width for width in widths if width <= len(rest)), default=0)
    try:
        found = [_compared(bench, start, drafts[:width], bench.prefix, reference[:width]) for width in widths]
        if left:
            tokens = drafts[_FURTHER : _FURTHER + left]
            found.append(_compared(bench, further, tokens, bench.prefix + _FURTHER, rest[:left]))
    except _Short as error:
        return GateResult.not_run(NAME, f"{error}, so there is nothing to compare")
    return _result(bench, found)


def _compared(bench: Bench, start: Snapshot, tokens: Sequence[int], place: int, steps: Rows) -> _Compared:
    bench.back(start)
    rows = bench.forward(tokens, place)
    if len(rows) != len(tokens):
        raise _Short(f"{len(rows)} rows came out for S={len(tokens)}")
    return _Compared(place, len(tokens), compare(steps, rows))


def _result(bench: Bench, found: Sequence[_Compared]) -> GateResult:
    verdicts = [graded(one.difference, bench.tolerance) for one in found]
    verdict = worst(verdicts)
    largest = max((one.difference for one in found), key=lambda one: one.relative)
    here = [one for one in found if one.place == bench.prefix]
    equal, total = sum(one.difference.equal for one in here), sum(one.difference.rows for one in here)
    ties = sum(
        len(one.difference.flips) for one in here if graded(one.difference, bench.tolerance) is Outcome.CONFIRMED
    )
    numbers: dict[str, Any] = {
        "prefix": bench.prefix,
        "max_delta_relative": largest.relative if largest.finite else None,
        "argmax_equal": equal,
        "rows": total,
        "near_ties": ties,
        "widths": {str(one.width): one.difference.as_json() for one in here},
    }
    for one in found[len(here) :]:
        numbers["elsewhere"] = {"prefix": one.place, "width": one.width, **one.difference.as_json()}
    if verdict is not Outcome.CONFIRMED:
        bad = next(one for one, its in zip(found, verdicts, strict=True) if its is not Outcome.CONFIRMED)
        where = "" if bad.place == bench.prefix else f" after {bad.place} tokens, not after {bench.prefix}"
        near = " (between the bounds)" if verdict is Outcome.PARTIAL else ""
        overall = f"; all widths: argmax {equal} of {total} rows"
        words = f"S={bad.width}{where}: {shown(bad.difference)}{near}{overall}"
        return GateResult(NAME, verdict, words, numbers, bench.tolerance)
    tied = f", {ties} near tie{'s' if ties != 1 else ''}" if ties else ""
    span = f"S={here[0].width}..{here[-1].width}" if len(here) > 1 else f"S={here[0].width}"
    reason = f"{span}: delta at most {largest.relative:.3g} of the scale, argmax {equal} of {total} rows{tied}"
    return GateResult(NAME, verdict, reason, numbers, bench.tolerance)
