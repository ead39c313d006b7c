"""A row of the table: one drafter and policy on one workload and budget, from its pairs."""

from __future__ import annotations

import random
import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from probes.ab.bands import Band, rate, why_spoiled
from probes.ab.loop import first_difference

LEVEL, DRAWS = 0.95, 400


@dataclass(slots=True)
class Pair:
    """An on run with the off runs around it, and what spoils it."""

    before: Mapping[str, Any]
    on: Mapping[str, Any]
    after: Mapping[str, Any]
    reasons: list[str] = field(default_factory=list)

    @property
    def baseline(self) -> float:
        return statistics.fmean((rate(self.before), rate(self.after)))

    @property
    def speedup(self) -> float | None:
        return rate(self.on) / self.baseline if self.baseline else None

    @property
    def apart(self) -> int | None:
        """Where the text of the on run leaves that of the off run before it."""
        return first_difference(self.before["tokens"], self.on["tokens"])

    def as_json(self) -> dict[str, Any]:
        return {
            "off_before_tok_s": rate(self.before),
            "on_tok_s": rate(self.on),
            "off_after_tok_s": rate(self.after),
            "speedup": self.speedup,
            "spoiled": list(self.reasons),
            "lossless": self.apart is None,
            "first_difference": self.apart,
            "others": [run.get("others") for run in (self.before, self.on, self.after)],
            "faults_per_forward": [run.get("faults_per_forward") for run in (self.before, self.on, self.after)],
        }


def row(
    drafter: str,
    policy: str,
    pairs: Sequence[Pair],
    costs: Mapping[int, float],
    seed: int = 0,
    rerun: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """The row. Its figures come from the valid pairs; a row without one is spoiled, and gives its apparent speed-up."""
    valid = [pair for pair in pairs if not pair.reasons]
    shown = valid or list(pairs)
    on = shown[0].on
    differences = [pair.apart for pair in pairs if pair.apart is not None]
    speedups = [pair.speedup for pair in shown if pair.speedup is not None]
    speedup = statistics.median(speedups) if speedups else None
    interval = speedup_interval(shown, seed)
    predicted = predicted_speedup(on, costs)
    host = _host(shown)
    return {
        "drafter": drafter,
        "policy": policy,
        "status": "valid" if valid else "spoiled",
        "spoiled": [] if valid else list(pairs[-1].reasons),
        "tokens": on["decoded"],
        "ended": on["ended"],
        "forwards": len(on["forwards"]),
        "tokens_per_forward": on["decoded"] / len(on["forwards"]) if on["forwards"] else None,
        "mean_draft": _mean([drafted for drafted, _ in on["rounds"]]),
        "accepted_per_round": _mean([accepted for _, accepted in on["rounds"]]),
        "forwards_by_s": {str(s): n for s, n in sorted(Counter(int(s) for s, _ in on["forwards"]).items())},
        "tokens_per_second": statistics.median(rate(pair.on) for pair in shown),
        "baseline_tok_s": statistics.median(pair.baseline for pair in shown),
        "speedup": speedup,
        "interval": list(interval) if interval else None,
        "effect": effect(interval) if valid else "spoiled",
        "predicted": predicted,
        "predicted_error": predicted / speedup - 1 if predicted and speedup else None,
        "host": host,
        "lossless": not differences,
        "first_difference": min(differences) if differences else None,
        "rerun": dict(rerun) if rerun else None,
        "rounds": [list(one) for one in on["rounds"]],
        "drafts": {str(at): drafts for at, drafts in zip(on["at"], on["drafts"], strict=True) if drafts},
        "pairs": [pair.as_json() for pair in pairs],
    }


def effect(interval: tuple[float, float] | None) -> str:
    """`gains` or `loses` where the interval leaves 1 on one side, else `even`."""
    if interval is None:
        return "even"
    return "gains" if interval[0] > 1 else "loses" if interval[1] < 1 else "even"


def predicted_speedup(on: Mapping[str, Any], costs: Mapping[int, float]) -> float | None:
    """Tokens per forward over the mean c_v of the shapes used; None when the staircase lacks one of them."""
    widths = [int(width) for width, _ in on["forwards"]]
    if not widths or 1 not in costs or any(width not in costs for width in widths):
        return None
    mean = statistics.fmean(costs[width] / costs[1] for width in widths)
    return float(on["decoded"]) / len(widths) / mean


def speedup_interval(pairs: Sequence[Pair], seed: int) -> tuple[float, float] | None:
    """A bootstrap interval of the speed-up: pairs, rounds of the on runs and forwards of the off runs are resampled."""
    usable = [pair for pair in pairs if pair.on["forwards"] and pair.before["forwards"] and pair.after["forwards"]]
    if not usable:
        return None
    dice = random.Random(seed)
    drawn = []
    for _ in range(DRAWS):
        pair = dice.choice(usable)
        drawn.append(
            _resampled(pair.on, dice) / statistics.fmean(_resampled(x, dice) for x in (pair.before, pair.after))
        )
    drawn.sort()
    tail = (1 - LEVEL) / 2
    return drawn[round(tail * (DRAWS - 1))], drawn[round((1 - tail) * (DRAWS - 1))]


def _resampled(run: Mapping[str, Any], dice: random.Random) -> float:
    """The rate of a resample of a run's rounds; host time goes with the forwards."""
    rounds = list(zip(run["emitted"], (seconds for _, seconds in run["forwards"]), strict=True))
    picked = dice.choices(rounds, k=len(rounds))
    host = (run["seconds"] - run["forward_seconds"]) / len(rounds)
    spent = sum(seconds for _, seconds in picked) + host * len(picked)
    return sum(emitted for emitted, _ in picked) / spent if spent else 0.0


def _host(pairs: Sequence[Pair]) -> dict[str, float]:
    """Shares of the on runs' time that were spent outside the forwards."""
    total = sum(pair.on["seconds"] for pair in pairs)
    parts = {part: sum(pair.on[f"{part}_seconds"] for pair in pairs) for part in ("draft", "argmax", "forward")}
    rest = total - sum(parts.values())
    if not total:
        return {"share": 0.0, "draft": 0.0, "argmax": 0.0, "bookkeeping": 0.0}
    return {
        "share": 1 - parts["forward"] / total,
        "draft": parts["draft"] / total,
        "argmax": parts["argmax"] / total,
        "bookkeeping": rest / total,
    }


def _mean(values: Sequence[int]) -> float | None:
    return statistics.fmean(values) if values else None


def judged(pairs: Sequence[Pair], band: Band, costs: Mapping[int, float]) -> None:
    """Note on each pair what spoils it."""
    for pair in pairs:
        pair.reasons = why_spoiled(pair.before, pair.on, pair.after, band, costs)
