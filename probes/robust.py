"""Medians, their spread and their intervals: what timings on a shared machine can bear."""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Sequence

MAD_TO_SIGMA = 1.4826
"""sigma of a normal distribution / its median absolute deviation."""
MEDIAN_TO_MEAN = 1.2533
"""Standard error of a median / that of a mean, for a normal distribution: sqrt(pi / 2)."""


def mad(values: Sequence[float]) -> float:
    """The median absolute deviation from the median."""
    centre = statistics.median(values)
    return statistics.median(abs(value - centre) for value in values)


def sigma(values: Sequence[float]) -> float:
    """The standard deviation that the MAD suggests: outliers do not count."""
    return MAD_TO_SIGMA * mad(values)


def median_error(deviation: float, count: int) -> float:
    """The standard error of a median of `count` values."""
    return MEDIAN_TO_MEAN * deviation / math.sqrt(count)


def ratio_interval(
    above: Sequence[float], below: Sequence[float], seed: int, level: float = 0.95, draws: int = 400
) -> tuple[float, float]:
    """A bootstrap interval of median(above) / median(below), both resampled."""
    dice = random.Random(seed)
    ratios = sorted(
        statistics.median(dice.choices(above, k=len(above))) / statistics.median(dice.choices(below, k=len(below)))
        for _ in range(draws)
    )
    tail = (1 - level) / 2
    return ratios[round(tail * (draws - 1))], ratios[round((1 - tail) * (draws - 1))]
