"""Costs and staircases in words, for the probe's report and the plan."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from reports.wording import ranges

SCOPES = {
    "device": "device",
    "interpreter": "interpreter: program and plumbing, no device's cost",
    "program": "program semantics, device untested",
    "unstated": "where it was measured is not stated",
}
_BAR = 24


def cost_table(points: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """One line for each S: median, MAD, c_v with its interval, the first call, and a bar of c_v."""
    yield f"{'S':>3} {'median ms':>10} {'MAD':>8} {'c_v':>6} {'95%':>13} {'first ms':>9}"
    largest = max(point["c_v"] for point in points)
    for point in points:
        interval = f"{point['c_v_low']:.2f}-{point['c_v_high']:.2f}"
        first = "-" if point["first_ms"] is None else f"{point['first_ms']:.3f}"
        bar = "#" * max(1, round(_BAR * point["c_v"] / largest))
        yield (
            f"{point['s']:>3} {point['median_ms']:>10.3f} {point['mad_ms']:>8.3f} {point['c_v']:>6.2f} {interval:>13} "
            f"{first:>9} {bar}"
        )


def stairs_lines(stairs: Mapping[str, Any], scope: str) -> Iterator[str]:
    """Plateaus, K and bars, what to avoid and what to measure."""
    yield from stairs["reasons"]
    for plateau in stairs["plateaus"]:
        span = f"S={plateau['first']}" + (f"..{plateau['last']}" if plateau["last"] != plateau["first"] else "")
        cost = "" if plateau["c_v"] is None else f" c_v {plateau['c_v']:.2f}"
        if plateau["k"] is None:
            word = f": no K, {plateau['why']}" if plateau["why"] else ": no K"
        else:
            whose = "" if scope == "device" else f" ({scope})"
            word = f": K={plateau['k']}{whose}, pays above {plateau['bar']:.2f} tokens a round"
        yield f"plateau {span}{cost}{word}"
    if stairs["avoid"]:
        yield f"avoid K={', '.join(map(str, stairs['avoid']))}: just over a step"
    if stairs["measure_next"]:
        yield f"measure next: S={ranges(stairs['measure_next'])}"
