"""What a verify-cost table says about draft lengths: plateaus, K, bars, what to avoid, what to measure next."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from probes.ab.choices import choices
from probes.ab.record import Row
from probes.acceptance import Acceptance
from probes.robust import median_error, sigma
from probes.staircase import Plateau, Point, Staircase, fit
from probes.tables import Table

SCHEMA = "spec-audit.plan/1"
MEDIAN_NOISE = 0.03
"""The relative error taken for a table that gives one median for each S and nothing about its spread."""
NOISE_LIMIT = 0.08
"""Medians less certain than this cannot place a step of any interest."""
FEW_POINTS = 4


def plan(
    tables: Sequence[Table],
    acceptance: Acceptance | None = None,
    noise: float = MEDIAN_NOISE,
    rows: Sequence[Row] = (),
) -> dict[str, Any]:
    """The plan for `tables`, as `spec-audit.plan/1`; recorded A/B `rows` add which K for which workload."""
    made: dict[str, Any] = {"schema": SCHEMA, "tables": [plan_table(table, acceptance, noise) for table in tables]}
    return made | {"workloads": choices(rows, tables)} if rows else made


def points_of(table: Table, noise: float = MEDIAN_NOISE) -> list[Point]:
    """Medians with their relative errors: from the samples' own spread, pooled over S, or `noise` without samples."""
    medians = {s: statistics.median(values) for s, values in table.times.items()}
    if table.medians_only:
        return [Point(s, medians[s], noise) for s in sorted(medians)]
    spreads = [sigma(values) / medians[s] for s, values in table.times.items() if len(values) > 2]
    # With few samples a MAD may be 0 by chance; nobody times to better than half a percent.
    spread = max(statistics.median(spreads), 0.005) if spreads else noise
    return [Point(s, medians[s], median_error(spread, len(table.times[s]))) for s in sorted(medians)]


def plan_table(table: Table, acceptance: Acceptance | None = None, noise: float = MEDIAN_NOISE) -> dict[str, Any]:
    """One table's part of the plan."""
    base: dict[str, Any] = {
        "source": table.source,
        "label": table.label,
        "scope": table.scope,
        "context": table.context,
        "status": "ok",
        "reasons": [],
        "shape": None,
        "plateaus": [],
        "avoid": [],
        "measure_next": [],
        "points": [],
        "predictions": [],
        "ab": _ab(table),
    }
    if not table.times:
        return {
            **base,
            "status": "too-coarse",
            "reasons": ["the file has no verify-cost"],
            "measure_next": [1, 2, 3, 4],
        }
    points = points_of(table, noise)
    base["points"] = [{"s": p.s, "ms": p.ms, "error": p.error} for p in points]
    reasons = list(table.reasons)
    error = statistics.median(point.error for point in points)
    if error > NOISE_LIMIT:
        reasons.append(f"medians are known to {error:.0%} only, so no step can be placed; measure more repeats")
    if reasons:
        return {**base, "status": "refused", "reasons": reasons}
    one = next((point.ms for point in points if point.s == 1), None)
    stairs = fit(points)
    coarse = _too_coarse(points, stairs)
    base |= {"shape": stairs.shape, "measure_next": _measure_next(points, stairs)}
    if one is not None:
        for point, shown in zip(points, base["points"], strict=True):
            shown["c_v"] = point.ms / one
    if coarse:
        shown = [_plateau(plateau, one) | {"k": None} for plateau in stairs.plateaus]
        return {**base, "status": "too-coarse", "reasons": coarse, "plateaus": shown}
    assert one is not None
    if stairs.shape == "ramp":
        base["reasons"] = ["no staircase: every further position costs more, so no draft length stands out"]
    elif stairs.shape == "hinge":
        base["reasons"] = [f"no step: flat up to S={stairs.turns_at}, and every further position costs more"]
    base |= {
        "plateaus": [_plateau(plateau, one) for plateau in stairs.plateaus],
        "avoid": list(stairs.avoid),
    }
    base["predictions"] = _predictions(points, stairs, one, acceptance) if acceptance else []
    return base


def _plateau(plateau: Plateau, one: float | None) -> dict[str, Any]:
    return {
        "first": plateau.first,
        "last": plateau.last,
        "measured": plateau.count,
        "c_v": plateau.level / one if one else None,
        "bar": plateau.highest / one if one else None,
        "k": plateau.k,
        "end_seen": plateau.seen,
        "why": plateau.why,
    }


def _too_coarse(points: Sequence[Point], stairs: Staircase) -> list[str]:
    """Why the table cannot place a step; empty when it can."""
    reasons = []
    if points[0].s != 1:
        reasons.append("S=1 was not measured, so there is nothing to compare with")
    if len(points) < FEW_POINTS:
        reasons.append(f"{len(points)} values of S are too few to place a step")
    neighbours = sum(after.s == before.s + 1 for before, after in pairwise(points))
    if len(points) > 1 and 2 * neighbours < len(points) - 1:
        reasons.append("most of the S in between were not measured, so a step would lie at an unseen S")
    return reasons


def _measure_next(points: Sequence[Point], stairs: Staircase) -> list[int]:
    """S=1 if it is missing, every S inside a gap that hides a step, else the S after the last.

    Where the cost rises without steps, or a table is too coarse to tell, every gap is one that may hide a step.
    """
    wanted = set() if points[0].s == 1 else {1}
    gaps = list(stairs.gaps)
    if stairs.shape in ("ramp", "hinge"):
        gaps = [(before.s, after.s) for before, after in pairwise(points)]
    for below, above in gaps:
        wanted |= set(range(below + 1, above))
    return sorted(wanted) or [points[-1].s + 1]


def _predictions(
    points: Sequence[Point], stairs: Staircase, one: float, acceptance: Acceptance
) -> list[dict[str, Any]]:
    """Tokens per second for every K whose S was measured, K=0 (no speculation) first."""
    tops = {plateau.k for plateau in stairs.plateaus}
    found: list[dict[str, Any]] = []
    for point in points:
        tokens = acceptance.tokens(point.s - 1)
        if tokens is None:
            continue
        cost = point.ms / one
        found.append(
            {
                "k": point.s - 1,
                "c_v": cost,
                "tokens_per_round": tokens,
                "tokens_per_second": 1e3 * tokens / point.ms,
                "speedup": tokens / cost,
                "loses": tokens < cost,
                "plateau_top": point.s - 1 in tops,
            }
        )
    return found


def _ab(table: Table) -> dict[str, Any] | None:
    """An A/B record as it was read, with its speed-up recomputed from the two best rates."""
    if table.ab is None:
        return None
    off, on = table.ab.get("off_best_tps"), table.ab.get("on_best_tps")
    stated = table.ab.get("speedup")
    known = all(isinstance(rate, int | float) and math.isfinite(rate) and rate > 0 for rate in (off, on))
    ratio = float(on) / float(off) if known and on is not None and off is not None else None
    agrees = None if ratio is None or not isinstance(stated, int | float) else abs(stated - ratio) <= 0.01 * ratio
    return {
        "off_tps": off,
        "on_tps": on,
        "speedup": ratio,
        "stated_speedup": stated,
        "agrees": agrees,
        "lossless": table.ab.get("lossless"),
        "runs": {side: len(table.ab.get(side) or []) for side in ("off", "on")},
    }
