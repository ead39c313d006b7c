"""Does the same input give the same choice, again and in a fresh process?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from probes.gates.bench import Bench
from probes.gates.gate import GateResult, Outcome, graded, shown
from probes.tolerance import compare

NAME = "repeat"
QUESTION = "the same tokens give the same argmax again, and in a fresh process"


def run(bench: Bench) -> GateResult:
    """Twice in this process. `numbers["argmax"]` is what a fresh process must give as well."""
    prompt = bench.tokens(bench.prefix)
    bench.session.reset()
    first = bench.feed(prompt, 0)
    bench.session.reset()
    second = bench.feed(prompt, 0)
    difference = compare(first, second)
    numbers = {**difference.as_json(), "argmax": [int(token) for token in first.argmax(axis=1)]}
    verdict = graded(difference, bench.tolerance)
    if difference.flips:
        verdict = Outcome.REFUTED
    return GateResult(NAME, verdict, f"in one process: {shown(difference)}", numbers, bench.tolerance)


def merge(first: Mapping[str, Any], fresh: Mapping[str, Any] | None, why: str = "") -> dict[str, Any]:
    """The results (as JSON) of two processes as one; `why` tells why there is no second."""
    merged = {**first, "numbers": dict(first["numbers"])}
    if fresh is None:
        if first["verdict"] == Outcome.CONFIRMED:
            merged["verdict"] = str(Outcome.PARTIAL)
        merged["reason"] = f"{first['reason']}; no fresh process: {why}"
        return merged
    here, there = first["numbers"]["argmax"], fresh["numbers"]["argmax"]
    same = sum(left == right for left, right in zip(here, there, strict=False))
    merged["numbers"]["fresh_process"] = {"rows": len(there), "argmax_equal": same}
    merged["reason"] = f"{first['reason']}; in a fresh process: argmax {same} of {len(here)}"
    if same != len(here) or len(here) != len(there):
        merged["verdict"] = str(Outcome.REFUTED)
    return merged
