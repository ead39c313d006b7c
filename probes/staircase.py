"""Plateaus and steps of t(S), and the draft lengths that stand at the top of a plateau.

Cost that does not fall with S is cut into flat stretches by exact dynamic programming on log t: residuals are weighed
by the standard error of the medians, each step pays for its two parameters (a BIC), and one below `MIN_STEP` is none.
The result is held against two models without steps, a ramp a + b (S - 1) and a hinge (flat, then a ramp): where one of
them explains the medians as well, there is no staircase and no K.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

MIN_STEP = math.log(1.06)
"""A step of less than 6% changes no decision, and plateaus themselves slope by 2%."""
MODEL_ERROR = 0.015
"""Plateaus and ramps are idealisations; below this relative error the data are not held against them."""
SHARP = 0.6
"""The share of a step that has to happen between two neighbours; on a ramp cut into pairs it would be a half."""


@dataclass(frozen=True, slots=True)
class Point:
    """The median time of one S, with its relative standard error."""

    s: int
    ms: float
    error: float


@dataclass(frozen=True, slots=True)
class Plateau:
    """A flat stretch of measured S. `seen`: the next S was measured as well, and the step is between the two.

    `level` is the fitted time, `highest` the largest measured one, both in ms. `k` is the draft length at its top, None
    with the reason in `why`.
    """

    first: int
    last: int
    count: int
    level: float
    highest: float
    seen: bool
    k: int | None
    why: str = ""


@dataclass(frozen=True, slots=True)
class Staircase:
    """`shape` is `staircase`, `flat`, `ramp` or `hinge`. `avoid` are draft lengths whose S is the first after a step.

    `gaps` are pairs of measured S between which a step lies at an unseen place.
    """

    shape: str
    plateaus: tuple[Plateau, ...]
    avoid: tuple[int, ...]
    gaps: tuple[tuple[int, int], ...]
    turns_at: int | None = None


def fit(points: Sequence[Point]) -> Staircase:
    """The staircase of `points` (at least one, S ascending and distinct)."""
    if any(after.s <= before.s for before, after in pairwise(points)):
        raise ValueError("S must ascend")
    logs = [math.log(point.ms) for point in points]
    errors = [math.hypot(point.error, MODEL_ERROR) for point in points]
    cuts, stairs = _segments(logs, errors)
    size = max(math.log(len(points)), 1.0)
    turns_at, smooth = _smooth(points, errors, size)
    if len(cuts) > 1 and smooth <= stairs:
        return Staircase("ramp" if turns_at is None else "hinge", (), (), (), turns_at)
    return _read(points, logs, errors, cuts)


def _segments(logs: Sequence[float], errors: Sequence[float]) -> tuple[list[tuple[int, int]], float]:
    """The best cut into rising levels, as index ranges (first, last), and its BIC."""
    count = len(logs)
    weights = [1 / error**2 for error in errors]
    price = 2 * max(math.log(count), 1.0)
    level = [[0.0] * count for _ in range(count)]
    cost = [[0.0] * count for _ in range(count)]
    for first in range(count):
        total = moment = square = 0.0
        for last in range(first, count):
            total += weights[last]
            moment += weights[last] * logs[last]
            square += weights[last] * logs[last] ** 2
            level[first][last] = moment / total
            cost[first][last] = max(square - moment**2 / total, 0.0)
    best = [[math.inf] * count for _ in range(count)]
    back: list[list[int]] = [[-1] * count for _ in range(count)]
    for last in range(count):
        for first in range(last + 1):
            if first == 0:
                best[first][last] = cost[first][last]
                continue
            for start in range(first):
                if level[first][last] - level[start][first - 1] < MIN_STEP:
                    continue
                total = best[start][first - 1] + cost[first][last] + price
                if total < best[first][last]:
                    best[first][last], back[first][last] = total, start
    first, last = min(range(count), key=lambda index: best[index][count - 1]), count - 1
    value = best[first][last]
    cuts = []
    while True:
        cuts.append((first, last))
        if first == 0:
            break
        first, last = back[first][last], first - 1
    return cuts[::-1], value + price / 2


def _smooth(points: Sequence[Point], errors: Sequence[float], size: float) -> tuple[int | None, float]:
    """The better of a ramp and a hinge: where the hinge turns (None for a ramp), and its BIC."""
    best: tuple[int | None, float] = (None, math.inf)
    for turn in [None, *(point.s for point in points[1:-2])]:
        start = points[0].s if turn is None else turn
        residual = _line([max(point.s - start, 0) for point in points], points, errors)
        value = residual + (2 if turn is None else 3) * size
        if value < best[1]:
            best = (turn, value)
    return best


def _line(xs: Sequence[float], points: Sequence[Point], errors: Sequence[float]) -> float:
    """Weighted least squares of ms against x with a slope of at least 0; the squared residuals in standard errors."""
    weights = [1 / (error * point.ms) ** 2 for point, error in zip(points, errors, strict=True)]
    total = sum(weights)
    mean_x = sum(w * x for w, x in zip(weights, xs, strict=True)) / total
    mean_y = sum(w * p.ms for w, p in zip(weights, points, strict=True)) / total
    spread = sum(w * (x - mean_x) ** 2 for w, x in zip(weights, xs, strict=True))
    joint = sum(w * (x - mean_x) * (p.ms - mean_y) for w, x, p in zip(weights, xs, points, strict=True))
    slope = max(joint / spread, 0.0) if spread else 0.0
    return sum(w * (p.ms - mean_y - slope * (x - mean_x)) ** 2 for w, x, p in zip(weights, xs, points, strict=True))


def _read(
    points: Sequence[Point], logs: Sequence[float], errors: Sequence[float], cuts: Sequence[tuple[int, int]]
) -> Staircase:
    plateaus: list[Plateau] = []
    avoid: list[int] = []
    gaps: list[tuple[int, int]] = []
    levels = [_level(logs, errors, first, last) for first, last in cuts]
    for index, (first, last) in enumerate(cuts):
        own = points[first : last + 1]
        top = points[last].s
        end = index == len(cuts) - 1
        seen = not end and points[last + 1].s == top + 1
        sharp = not end and _is_sharp(logs, errors, last, levels[index + 1] - levels[index])
        if seen and sharp:
            avoid.append(top)
        elif not end and not seen:
            gaps.append((top, points[last + 1].s))
        k, why = _draft_length(top, len(own), end, seen, sharp)
        highest = max(point.ms for point in own)
        plateaus.append(Plateau(own[0].s, top, len(own), math.exp(levels[index]), highest, seen, k, why))
    return Staircase("staircase" if len(cuts) > 1 else "flat", tuple(plateaus), tuple(avoid), tuple(gaps))


def _level(logs: Sequence[float], errors: Sequence[float], first: int, last: int) -> float:
    weights = [1 / error**2 for error in errors[first : last + 1]]
    return sum(w * y for w, y in zip(weights, logs[first : last + 1], strict=True)) / sum(weights)


def _is_sharp(logs: Sequence[float], errors: Sequence[float], last: int, step: float) -> bool:
    jump = logs[last + 1] - logs[last]
    return jump + math.hypot(errors[last], errors[last + 1]) >= SHARP * step


def _draft_length(top: int, count: int, end: bool, seen: bool, sharp: bool) -> tuple[int | None, str]:
    if end:
        return None, "its end was not seen"
    if not seen:
        return None, "the step after it lies at an S that was not measured"
    if not sharp:
        return None, "the cost rises over several S: no step"
    if top == 1:
        return None, "the step comes at S=2: no draft is free"
    if count == 1:
        return None, "one S between two steps is no plateau"
    return top - 1, ""
