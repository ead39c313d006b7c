"""Do both ways leave the same states, on the rows that were written?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from probes.gates.bench import Bench, changed_rows
from probes.gates.gate import GateResult, Outcome, graded, worst
from probes.tolerance import compare_states

if TYPE_CHECKING:
    from probes.backend import Array

NAME = "state"
QUESTION = "one forward of S=q and q forwards of S=1 leave the same states"


def run(bench: Bench) -> GateResult:
    """The widest query; a cache on the rows up to the last one written, any other state whole."""
    if bench.single:
        return GateResult.not_run(NAME, f"{bench.only_one}: there is one way to write")
    if not bench.session.signature.states:
        return GateResult.not_run(NAME, "the graph has no states")
    start = bench.prefill(bench.tokens(bench.prefix))
    axes = bench.axes(start, bench.prefix)
    drafts = bench.tokens(bench.widest, 1)
    bench.back(start)
    bench.steps(drafts, bench.prefix)
    stepped = bench.session.states()
    bench.back(start)
    bench.forward(drafts, bench.prefix)
    together = bench.session.states()
    end = bench.prefix + bench.widest
    states: dict[str, Any] = {}
    verdicts: list[Outcome] = []
    reasons = []
    for name, array in stepped.items():
        axis = axes.get(name)
        difference = compare_states(_upto(array, axis, end), _upto(together[name], axis, end))
        verdicts.append(graded(difference, bench.tolerance))
        states[name] = {"max_delta_relative": difference.relative if difference.finite else None, "axis": axis}
        if axis is not None:
            written = changed_rows(start[name], together[name], axis)
            states[name]["rows_written"] = [written[0], written[-1]] if written else []
        if verdicts[-1] is not Outcome.CONFIRMED:
            reasons.append(f"{name} differs by {difference.relative:.3g} of its scale")
    verdict = worst(verdicts)
    numbers = {"width": bench.widest, "prefix": bench.prefix, "states": states}
    reason = "; ".join(reasons) or f"{len(states)} states agree after S={bench.widest} and {bench.widest} times S=1"
    return GateResult(NAME, verdict, reason, numbers, bench.tolerance)


def _upto(array: Array, axis: int | None, end: int) -> Array:
    if axis is None:
        return array
    return array[(slice(None),) * axis + (slice(0, end),)]
