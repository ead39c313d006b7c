"""Which baselines are valid, and which rows are spoiled: the discipline of the pairs."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from probes.robust import mad, sigma

ANCHORS = 3
FLOOR, CAP = 0.03, 0.06
"""Half the width of a band, as a share of its centre: the published one has 3.7%. Noise never widens it past `CAP`."""
AGREE = 0.05
"""The two off runs around an on run may differ by this share of their mean."""
OTHERS_LIMIT = 0.25
"""Cores kept busy by others, before or during a run, beyond which it is contended."""
FAULTS_LIMIT = 1000.0
"""glibc's defaults give some 10,000 faults a forward, a pinned allocator some 40."""
COST_LIMIT, COST_COUNT = 0.15, 5
"""A median forward of a shape used `COST_COUNT` times may lie this far from the staircase."""


@dataclass(frozen=True, slots=True)
class Band:
    """Tokens per second that a baseline may have. `reason` says why no baseline is valid; empty if some are."""

    low: float
    high: float
    given: bool = False
    anchors: tuple[float, ...] = ()
    reason: str = ""

    def holds(self, rate: float) -> bool:
        return self.low <= rate <= self.high

    def as_json(self) -> dict[str, Any]:
        return {
            "low": self.low,
            "high": self.high,
            "given": self.given,
            "anchors": list(self.anchors),
            "median": statistics.median(self.anchors) if self.anchors else None,
            "mad": mad(self.anchors) if self.anchors else None,
            "reason": self.reason,
        }


def band_of(anchors: Sequence[float], given: tuple[float, float] | None = None) -> Band:
    """The band: as given, else median ± 3 sigma (from the MAD) of warm anchors, within `FLOOR` and `CAP`."""
    if given is not None:
        return Band(*given, given=True, anchors=tuple(anchors))
    if len(anchors) < ANCHORS:
        return Band(0, 0, anchors=tuple(anchors), reason=f"{len(anchors)} anchors; {ANCHORS} at least make a band")
    centre = statistics.median(anchors)
    half = max(FLOOR, 3 * sigma(anchors) / centre)
    reason = ""
    if half > CAP:
        reason = (
            f"the anchors spread by {sigma(anchors) / centre:.1%} (sigma; {CAP / 3:.0%} allowed): no baseline is valid"
        )
    half = min(half, CAP)
    return Band(centre * (1 - half), centre * (1 + half), anchors=tuple(anchors), reason=reason)


def rate(run: Mapping[str, Any]) -> float:
    """Tokens per second of a run, without the prompt."""
    return float(run["decoded"]) / float(run["seconds"]) if run["seconds"] and run["decoded"] else 0.0


def why_spoiled(
    before: Mapping[str, Any],
    on: Mapping[str, Any],
    after: Mapping[str, Any],
    band: Band,
    costs: Mapping[int, float] | None = None,
) -> list[str]:
    """What spoils a pair; empty when it counts. `costs` are milliseconds by S, of the staircase."""
    reasons = [band.reason] if band.reason else []
    rates = [rate(before), rate(after)]
    for where, one in zip(("before", "after"), rates, strict=True):
        if not band.holds(one):
            reasons.append(f"the baseline {where} it, {one:.2f} tok/s, left the band {band.low:.2f}..{band.high:.2f}")
    mean = statistics.fmean(rates)
    if mean and abs(rates[0] - rates[1]) > AGREE * mean:
        reasons.append(f"the off runs around it differ: {rates[0]:.2f} and {rates[1]:.2f} tok/s")
    return reasons + contended((before, on, after)) + _off_the_staircase(on, costs or {})


def contended(runs: Sequence[Mapping[str, Any]]) -> list[str]:
    """What others, or an allocator that was not pinned, did to any of `runs`."""
    reasons = []
    for when, key in (("before", "others_before"), ("during", "others")):
        most = max((run[key] for run in runs if run.get(key) is not None), default=0.0)
        if most > OTHERS_LIMIT:
            reasons.append(f"contention {when} it: others kept up to {most:.2f} cores busy")
    faults = max((run["faults_per_forward"] for run in runs if run.get("faults_per_forward") is not None), default=0.0)
    if faults > FAULTS_LIMIT:
        reasons.append(f"{faults:.0f} page faults a forward: the allocator is not pinned")
    return reasons


def _off_the_staircase(on: Mapping[str, Any], costs: Mapping[int, float]) -> list[str]:
    times: dict[int, list[float]] = {}
    for width, seconds in on["forwards"]:
        times.setdefault(int(width), []).append(1e3 * seconds)
    reasons = []
    for width, values in sorted(times.items()):
        if width in costs and len(values) >= COST_COUNT:
            off = statistics.median(values) / costs[width] - 1
            if abs(off) > COST_LIMIT:
                reasons.append(f"forwards of S={width} took {off:+.0%} against the staircase")
    return reasons
