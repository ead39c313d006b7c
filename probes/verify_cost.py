"""From raw samples to c_v(S) with its interval, or to a refusal with the numbers that show why.

A run on a machine that throttles or is busy is refused, not averaged: its ratios look like results. A forward that is
faster than its weights can be read from memory did not do the work.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from probes.robust import mad, median_error, ratio_interval, sigma
from probes.sweep import ANCHOR, FIRST, TIMED

DRIFT_FLOOR = 0.05
"""Anchors may move this far, as a share of their median, before anybody asks."""
SPREAD_LIMIT = 0.15
"""A robust standard deviation of the anchors beyond this share of their median is contention."""
OUTLIER, OUTLIER_SHARE = 1.5, 0.2
"""More than this share of anchors beyond this multiple of their median is contention."""
QUARTERS = 4
CACHE_BYTES = 256 * 2**20
"""Bundles below this may be read from a cache, so the speed of memory says nothing about them."""
READ_SHARE = 0.5
"""A dense decoder reads its weights but for the rows of an embedding that it does not look up: at least half."""


def judged(
    raw: Mapping[str, Any], scope: str, weight_bytes: int, bandwidth: float | None = None, moe: bool = False
) -> dict[str, Any]:
    """The table of one sweep. `bandwidth` is in bytes a second, the most that the memory can do; None: not known."""
    timed: dict[int, list[float]] = {}
    first: dict[int, float] = {}
    anchors = []
    for width, ms, kind in raw["samples"]:
        if kind == TIMED:
            timed.setdefault(width, []).append(ms)
        elif kind == FIRST:
            first[width] = ms
        elif kind == ANCHOR:
            anchors.append(ms)
    ones = timed.get(1, []) + anchors
    steadiness = anchor_report(anchors)
    plausible = plausibility(statistics.median(ones), weight_bytes, bandwidth, moe)
    reasons = [text for text in (steadiness.pop("reason"), plausible.pop("reason")) if text]
    total = raw["host_seconds"] + raw["forward_seconds"]
    points = [_point(width, timed[width], ones, first.get(width), raw["seed"]) for width in sorted(timed)]
    return {
        "status": "refused" if reasons else "ok",
        "reasons": reasons,
        "scope": scope,
        **{key: raw[key] for key in ("context", "capacity", "repeats", "seed")},
        "points": points,
        "anchors": steadiness,
        "plausibility": plausible,
        "host": {"seconds": raw["host_seconds"], "share": raw["host_seconds"] / total if total else 0.0},
        "load": raw["load"],
        "floor_ms": raw.get("floor_ms", {}),
        "samples": raw["samples"],
    }


def _point(
    width: int, values: Sequence[float], ones: Sequence[float], first: float | None, seed: int
) -> dict[str, Any]:
    own = ones if width == 1 else values
    centre = statistics.median(own)
    low, high = (1.0, 1.0) if width == 1 else ratio_interval(own, ones, seed * 1000 + width)
    return {
        "s": width,
        "n": len(own),
        "median_ms": centre,
        "mad_ms": mad(own),
        "first_ms": first,
        "c_v": centre / statistics.median(ones),
        "c_v_low": low,
        "c_v_high": high,
    }


def anchor_report(anchors: Sequence[float]) -> dict[str, Any]:
    """Whether the anchors stood still, with the numbers; `reason` is empty if they did."""
    if len(anchors) < 2 * QUARTERS:
        return {"n": len(anchors), "reason": f"{len(anchors)} anchors are too few to see a drift; use more repeats"}
    centre = statistics.median(anchors)
    spread = sigma(anchors) / centre
    bounds = [round(index * len(anchors) / QUARTERS) for index in range(QUARTERS + 1)]
    parts = [anchors[start:stop] for start, stop in pairwise(bounds)]
    levels = [statistics.median(part) for part in parts]
    # Pooled within the quarters, so that a drift does not widen the band that it is held against.
    within = statistics.median(sigma(part) for part in parts) / centre
    band = max(DRIFT_FLOOR, 5 * median_error(within, min(map(len, parts))))
    drift = (max(levels) - min(levels)) / centre
    slow = sum(value > OUTLIER * centre for value in anchors) / len(anchors)
    report: dict[str, Any] = {
        "n": len(anchors),
        "median_ms": centre,
        "quarter_medians_ms": levels,
        "drift": drift,
        "band": band,
        "spread": spread,
        "slow_share": slow,
        "reason": "",
    }
    if drift > band:
        rising = levels == sorted(levels)
        what = "throttling" if rising else "contention"
        shown = ", ".join(f"{level:.3g}" for level in levels)
        report["reason"] = f"S=1 anchors moved by {drift:.1%} (band {band:.1%}): {what}; by quarter {shown} ms"
    elif spread > SPREAD_LIMIT or slow > OUTLIER_SHARE:
        report["reason"] = f"S=1 anchors spread by {spread:.1%}, {slow:.0%} of them slow: contention"
    return report


def plausibility(one_ms: float, weight_bytes: int, bandwidth: float | None, moe: bool) -> dict[str, Any]:
    """Whether S=1 took long enough to read the weights; `reason` is empty if it did, or if nobody can tell."""
    report: dict[str, Any] = {"weight_bytes": weight_bytes, "bandwidth": bandwidth, "judged": False, "reason": ""}
    if bandwidth is None:
        return {**report, "why_not": "the memory's bandwidth is not known; give --bandwidth"}
    if moe:
        return {**report, "why_not": "experts are gathered, so a forward reads part of the weights"}
    if weight_bytes < CACHE_BYTES:
        return {**report, "why_not": "the weights may fit a cache"}
    floor = 1e3 * READ_SHARE * weight_bytes / bandwidth
    report |= {"judged": True, "floor_ms": floor}
    if one_ms < floor:
        report["reason"] = (
            f"S=1 took {one_ms:.3g} ms, and reading half of {weight_bytes / 1e9:.3g} GB at {bandwidth / 1e9:.0f} GB/s "
            f"takes {floor:.3g} ms: implausible"
        )
    return report
