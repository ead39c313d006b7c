"""The whole A/B of one graph: staircase, anchors, interleaved pairs, retries, re-runs; and the record of it.

`serve` runs steps in a child process and gives results by step; an interruption keeps what it had given.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from probes.ab.bands import ANCHORS, Band, band_of, contended, rate
from probes.ab.loop import first_difference
from probes.ab.options import AbOptions, Workload, rows_of
from probes.ab.policies import parse, settled
from probes.ab.rows import Pair, judged, row
from probes.ab.shipped import against_shipped

Step = dict[str, Any]
Results = dict[str, Any]
Serve = Callable[[Sequence[Step], Results], None]
"""Fills the results by step id: a value, or a text that says why there is none."""
Judge = Callable[[Mapping[str, Any]], dict[str, Any]]
"""Judges the raw samples of a sweep."""


@dataclass(slots=True)
class Bed:
    """One workload and budget, and what was measured on it."""

    workload: Workload
    budget: int
    band: Band = field(default_factory=lambda: Band(0, 0, reason="no anchors"))
    anchors: list[Mapping[str, Any]] = field(default_factory=list)
    cost: dict[str, Any] | None = None
    pairs: dict[tuple[str, str], list[Pair]] = field(default_factory=dict)
    reruns: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)
    not_run: dict[tuple[str, str], str] = field(default_factory=dict)
    remembered: list[str] = field(default_factory=list)

    @property
    def costs(self) -> dict[int, float]:
        """Milliseconds by S; empty when the sweep was refused."""
        if self.cost is None or self.cost["status"] != "ok":
            return {}
        return {int(point["s"]): float(point["median_ms"]) for point in self.cost["points"]}


class Ab:
    """An A/B run. `run` may be interrupted at any step; `record` gives what there is."""

    def __init__(
        self, graph: str, capacity: int, options: AbOptions, serve: Serve, judge: Judge, seed: int = 0
    ) -> None:
        self.graph, self.capacity, self.options = graph, capacity, options
        self.serve, self.judge, self.seed = serve, judge, seed
        self.beds = [Bed(workload, budget) for workload in options.workloads for budget in options.budgets]
        self.status, self.reasons = "ok", list[str]()
        self.allocator: Mapping[str, Any] | None = None
        self._count = 0

    def run(self) -> None:
        """Measure everything; KeyboardInterrupt ends it early."""
        try:
            for bed in self.beds:
                self._prepare(bed)
                if bed.anchors:
                    self._rows(bed)
        except KeyboardInterrupt:
            self.status = "interrupted"
            self.reasons.append("interrupted; what was measured until then is kept")

    def _widest(self) -> int:
        """S of the largest draft; an open Kmax may turn out to be any up to 15."""
        return 1 + max(parse(policy).most or 15 for _, policy in rows_of(self.options))

    def _step(self, bed: Bed, kind: str, drafter: str = "", policy: str = "") -> Step:
        self._count += 1
        return {
            "id": f"{self.graph}/{bed.workload.name}/{bed.budget}/{kind}#{self._count}",
            "kind": "generate",
            "graph": self.graph,
            "capacity": self.capacity,
            "prompt": list(bed.workload.tokens),
            "budget": bed.budget,
            "stop": list(self.options.stop),
            "policy": policy,
            "drafter": drafter,
            "match": [self.options.match.least, self.options.match.most],
            "remember": self._earlier(bed) if drafter == "tree" else [],
        }

    def _earlier(self, bed: Bed) -> list[list[int]]:
        """Outputs of the workloads before this one. Never its own: a drafter that has seen the text is no drafter."""
        earlier = {other.workload.name: list(other.anchors[0]["tokens"]) for other in self.beds if other.anchors}
        earlier.pop(bed.workload.name, None)
        bed.remembered = list(earlier)
        return list(earlier.values())

    def _serve(self, steps: Sequence[Step], results: Results) -> None:
        try:
            self.serve(steps, results)
        finally:
            for step in steps:
                value = results.get(step["id"])
                if isinstance(value, str):
                    self.reasons.append(f"{step['id']}: {value}")
                elif value and "allocator" in value:
                    self.allocator = value["allocator"]

    def _prepare(self, bed: Bed) -> None:
        sweep: Step = {
            "id": f"{self.graph}/{bed.workload.name}/{bed.budget}/verify-cost",
            "kind": "sweep",
            "graph": self.graph,
            "capacity": self.capacity,
            "schedule": {
                "widths": list(range(1, self._widest() + 1)),
                "context": min(len(bed.workload.tokens) + bed.budget // 2, self.capacity - self._widest()),
                "repeats": 8,
                "seed": self.seed,
            },
        }
        for attempt in range(1 + self.options.retries):
            sweep = {**sweep, "id": f"{sweep['id']}{'+' * min(attempt, 1)}"}
            warm = self._step(bed, "warm-up") | {"budget": min(bed.budget, 16)}
            anchors = [self._step(bed, "anchor") for _ in range(ANCHORS)]
            results: Results = {}
            self._serve([sweep, warm, *anchors], results)
            if isinstance(results.get(sweep["id"]), Mapping):
                bed.cost = self.judge(results[sweep["id"]])
            bed.anchors += [results[one["id"]] for one in anchors if isinstance(results.get(one["id"]), Mapping)]
            bed.band = self._band(bed)
            if (bed.costs and not bed.band.reason) or not bed.anchors:
                break
        if any(first_difference(bed.anchors[0]["tokens"], one["tokens"]) is not None for one in bed.anchors[1:]):
            self.reasons.append(f"{bed.workload.name}: off runs differ among themselves, so nothing can be compared")
            bed.anchors = []

    def _band(self, bed: Bed) -> Band:
        """From the anchors that nobody disturbed where there are enough of them, else from all."""
        quiet = [one for one in bed.anchors if not contended((one,))]
        return band_of([rate(one) for one in (quiet if len(quiet) >= ANCHORS else bed.anchors)], self.options.band)

    def _rows(self, bed: Bed) -> None:
        chosen: dict[tuple[str, str], str] = {}
        for key in rows_of(self.options):
            policy = settled(parse(key[1]), _top(bed.cost))
            if policy is None:
                bed.not_run[key] = "the staircase has no plateau to take Kmax from; give it, as in adaptive:7"
            else:
                chosen[key] = key[1] if parse(key[1]).most else policy.name
        for _ in range(self.options.pairs):
            self._pairs(bed, chosen)
        for _ in range(self.options.retries if not bed.band.reason else 0):  # without a baseline no row can be valid
            spoiled = {key: policy for key, policy in chosen.items() if all(p.reasons for p in bed.pairs.get(key, []))}
            if spoiled:
                self._pairs(bed, spoiled)
        for key, pairs in bed.pairs.items():
            if any(pair.apart is not None for pair in pairs):
                bed.reruns[key] = {"lossless": None, "first_difference": None, "reason": "not run"}
                self._alone(bed, key, chosen[key])

    def _pairs(self, bed: Bed, rows: Mapping[tuple[str, str], str]) -> None:
        """Off, on, off, on, ... off: every on run between two off runs, the one before seconds away."""
        offs = [self._step(bed, "off") for _ in range(len(rows) + 1)]
        ons = {key: self._step(bed, f"on {key[0]} {policy}", key[0], policy) for key, policy in rows.items()}
        steps = [offs[0]]
        for on, off in zip(ons.values(), offs[1:], strict=True):
            steps += [on, off]
        results: Results = {}
        try:
            self._serve(steps, results)
        finally:
            for index, (key, on) in enumerate(ons.items()):
                runs = [results.get(step["id"]) for step in (offs[index], on, offs[index + 1])]
                if all(isinstance(run, Mapping) for run in runs):
                    pair = Pair(*runs)  # type: ignore[arg-type]
                    judged([pair], bed.band, bed.costs)
                    bed.pairs.setdefault(key, []).append(pair)

    def _alone(self, bed: Bed, key: tuple[str, str], policy: str) -> None:
        """A lossless failure again, off and on in a process of their own with nothing else to do."""
        off, on = self._step(bed, "alone off"), self._step(bed, f"alone {key[0]} {policy}", key[0], policy)
        results: Results = {}
        self._serve([off, on], results)
        runs = [results.get(step["id"]) for step in (off, on)]
        if all(isinstance(run, Mapping) for run in runs):
            apart = first_difference(runs[0]["tokens"], runs[1]["tokens"])  # type: ignore[index]
            bed.reruns[key] = {"lossless": apart is None, "first_difference": apart, "reason": ""}

    def record(self) -> dict[str, Any]:
        """The record as plain data."""
        measured = [bed for bed in self.beds if bed.anchors or bed.cost is not None]
        return {
            "status": self.status if any(bed.pairs for bed in self.beds) or self.status != "ok" else "refused",
            "reasons": list(self.reasons),
            "settings": self.options.as_json(),
            "capacity": self.capacity,
            "allocator": dict(self.allocator) if self.allocator else None,
            "workloads": [self._bed(bed) for bed in measured],
        }

    def _bed(self, bed: Bed) -> dict[str, Any]:
        seed = self.seed * 1000
        rows = [
            row(drafter, policy, pairs, bed.costs, seed + index, bed.reruns.get((drafter, policy)))
            for index, ((drafter, policy), pairs) in enumerate(bed.pairs.items())
        ]
        return {
            "name": bed.workload.name,
            "source": bed.workload.source,
            "prompt_tokens": len(bed.workload.tokens),
            "budget": bed.budget,
            "band": bed.band.as_json(),
            "verify_cost": bed.cost,
            "output": list(bed.anchors[0]["tokens"]) if bed.anchors else [],
            "baseline_tok_s": statistics.median(rate(one) for one in bed.anchors) if bed.anchors else None,
            "shipped": against_shipped(self.options, bed.anchors),
            "remembered": bed.remembered,
            "rows": rows,
            "not_run": [{"drafter": d, "policy": p, "reason": why} for (d, p), why in bed.not_run.items()],
        }


def _top(cost: Mapping[str, Any] | None) -> int | None:
    """The longest draft at the top of a plateau."""
    if cost is None or cost["status"] != "ok":
        return None
    return max((one["k"] for one in cost["staircase"]["plateaus"] if one["k"]), default=None)
