"""How often the staircase is read right, on simulated verify-cost runs; a change-point library is the oracle.

    python benchmarks/staircase_study.py [--runs 400] [--seed 0]

needs `ruptures` and numpy. A run is simulated call by call in the order of the real sweep (shuffled rounds, S=1
anchors, first calls), so that drift and outliers meet the same medians, anchors and refusals as on a machine:

- 1 to 4 steps over S=1..16, each 10-60% of the time below it, plateaus of two S at least (the first may be S=1 alone);
- plateaus slope by up to 0.3% per S, as measured ones do;
- noise 1-5%, 2% of the calls take 1.5-4 times as long, first calls at a new S up to 20 times;
- drift 0, or 2-30% over the run, steady or all at once.

The oracle gets the same medians (of runs that were not refused): ruptures' exact dynamic programming on log t, given
the true number of steps, and its PELT with a BIC penalty, the true noise and the tool's own model error. A run is right
when every step is found at its place and no other is. Ramps, hinges and runs sampled at powers of two have no top that
may be called: each K is counted as an error.
"""

from __future__ import annotations

import argparse
import math
import random
import statistics
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from probes.plan import plan_table
from probes.robust import median_error
from probes.staircase import MODEL_ERROR
from probes.sweep import ANCHOR, FIRST, Schedule, calls
from probes.tables import Table, times_of
from probes.verify_cost import anchor_report

WIDTHS = tuple(range(1, 17))
POWERS = (1, 2, 4, 8, 16)


@dataclass(frozen=True, slots=True)
class Truth:
    """Time in ms by S, and the last S of every plateau but the last."""

    times: dict[int, float]
    tops: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Trouble:
    """What happens to a run. `drift` is the whole change over it; `sudden` puts it into one moment."""

    noise: float = 0.03
    outliers: float = 0.02
    drift: float = 0.0
    sudden: bool = False


def staircase(dice: random.Random, steps: int) -> Truth:
    """A random staircase: tops at least two S apart, so that every plateau after S=1 has two S."""
    while True:
        tops = tuple(sorted(dice.sample(WIDTHS[:-2], steps)))
        if all(after - before >= 2 for before, after in pairwise(tops)):
            break
    level, times = dice.uniform(5, 60), {}
    slope = dice.uniform(0, 0.003)
    start = 1
    for s in WIDTHS:
        times[s] = level * (1 + slope * (s - start))
        if s in tops:
            level, start = times[s] * (1 + dice.uniform(0.10, 0.60)), s + 1
    return Truth(times, tops)


def ramp(dice: random.Random, _: int) -> Truth:
    base, slope = dice.uniform(5, 60), dice.uniform(0.03, 0.5)
    return Truth({s: base * (1 + slope * (s - 1)) for s in WIDTHS}, ())


def hinge(dice: random.Random, _: int) -> Truth:
    base, slope, turn = dice.uniform(5, 60), dice.uniform(0.05, 0.4), dice.randint(3, 10)
    return Truth({s: base * (1 + slope * max(s - turn, 0)) for s in WIDTHS}, ())


def simulate(truth: Truth, trouble: Trouble, schedule: Schedule, dice: random.Random) -> dict[str, Any]:
    """Raw samples as a sweep gives them."""
    plan = list(calls(schedule))
    moment = dice.uniform(0.2, 0.8)
    samples = []
    for index, (s, kind) in enumerate(plan):
        where = index / len(plan)
        shift = trouble.drift * (where > moment if trouble.sudden else where)
        ms = truth.times[s] * (1 + shift) * math.exp(dice.gauss(0, trouble.noise))
        if dice.random() < trouble.outliers:
            ms *= dice.uniform(1.5, 4)
        if kind == FIRST:
            ms *= dice.uniform(1, 20)
        samples.append([s, ms, kind])
    base = {"context": 128, "capacity": 160, "seed": schedule.seed, "repeats": schedule.repeats}
    return {**base, "samples": samples, "host_seconds": 0.0, "forward_seconds": 1.0, "load": [None, None]}


def read(raw: dict[str, Any]) -> dict[str, Any]:
    """The tool's own way from samples to a plan."""
    reason = anchor_report([ms for _, ms, kind in raw["samples"] if kind == ANCHOR])["reason"]
    return plan_table(Table("study", "study", "device", times_of(raw["samples"]), (reason,) if reason else ()))


def tops(plan: dict[str, Any]) -> tuple[int, ...]:
    return tuple(plateau["last"] for plateau in plan["plateaus"] if plateau["end_seen"])


def oracles(raw: dict[str, Any], steps: int, noise: float) -> dict[str, tuple[int, ...]]:
    """Tops by ruptures: told the number of steps, and by a penalty."""
    import numpy as np
    import ruptures

    times = times_of(raw["samples"])
    widths = sorted(times)
    signal = np.array([[math.log(statistics.median(times[s]))] for s in widths])
    exact = ruptures.Dynp(model="l2", min_size=1, jump=1).fit(signal).predict(n_bkps=steps)
    error = math.hypot(median_error(noise, raw["repeats"]), MODEL_ERROR)
    penalty = 2 * math.log(len(widths)) * error**2
    pelt = ruptures.Pelt(model="l2", min_size=1, jump=1).fit(signal).predict(pen=penalty)
    return {
        "ruptures, told the number": tuple(widths[cut - 1] for cut in exact[:-1]),
        "ruptures, BIC penalty": tuple(widths[cut - 1] for cut in pelt[:-1]),
    }


def staircases(runs: int, trouble: Trouble, repeats: int, seed: int, oracle: bool) -> dict[str, Any]:
    """Shares of runs read right, of those that were not refused; and every K that came out of a refused run."""
    dice = random.Random(f"{seed} {trouble} {repeats}")
    right: dict[str, int] = {"this tool": 0}
    refused = leaked = wrong_k = 0
    for run in range(runs):
        steps = 1 + run % 4
        truth = staircase(dice, steps)
        raw = simulate(truth, trouble, Schedule(WIDTHS, 128, repeats=repeats, seed=run), dice)
        plan = read(raw)
        if plan["status"] == "refused":
            refused += 1
            leaked += len(plan["plateaus"]) + len(plan["avoid"])
            continue
        right["this tool"] += tops(plan) == truth.tops
        wrong_k += any(p["k"] is not None and p["k"] + 1 not in truth.tops for p in plan["plateaus"])
        for name, found in oracles(raw, steps, trouble.noise).items() if oracle else ():
            right[name] = right.get(name, 0) + (found == truth.tops)
    read_runs = (runs - refused) or math.nan
    shares = {name: count / read_runs for name, count in right.items()}
    return {"refused": refused / runs, "leaked": leaked, "wrong_k": wrong_k / read_runs, "right": shares}


def false_tops(
    runs: int, make: Callable[[random.Random, int], Truth], widths: Sequence[int], seed: int
) -> dict[str, Any]:
    """How often a K is called where none may be."""
    dice = random.Random(f"{seed} {make.__name__} {widths}")
    called = unfilled = 0
    for run in range(runs):
        truth = make(dice, 1 + run % 4)
        trouble = Trouble(noise=dice.uniform(0.01, 0.05))
        plan = read(simulate(truth, trouble, Schedule(widths, 128, repeats=10, seed=run), dice))
        unseen = [p for p in plan["plateaus"] if p["k"] is not None]
        called += bool(unseen)
        unfilled += not plan["measure_next"] and plan["status"] != "refused"
    return {"called": called / runs, "without_advice": unfilled / runs}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=400)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    print(f"{options.runs} runs a line, S=1..16, 1 to 4 steps of 10-60%; shares of the runs that were not refused\n")
    print(f"{'noise':>6} {'repeats':>8} {'refused':>8} {'tops right':>11} {'a wrong K':>10}   oracle: told, penalty")
    for noise in (0.01, 0.02, 0.03, 0.04, 0.05):
        for repeats in (5, 10) if noise == 0.03 else (10,):
            found = staircases(options.runs, Trouble(noise), repeats, options.seed, True)
            own, *others = found["right"].values()
            print(
                f"{noise:>6.0%} {repeats:>8} {found['refused']:>8.1%} {own:>11.2%} {found['wrong_k']:>10.2%}   "
                + ", ".join(f"{share:.2%}" for share in others)
            )
    print(f"\n{'drift':>6} {'how':>8} {'refused':>8} {'tops right':>11} {'a wrong K':>10}   K out of refused runs")
    for sudden in (False, True):
        for drift in (0.02, 0.05, 0.10, 0.20, 0.30):
            found = staircases(options.runs, Trouble(0.03, 0.02, drift, sudden), 10, options.seed, False)
            how = "sudden" if sudden else "steady"
            print(
                f"{drift:>6.0%} {how:>8} {found['refused']:>8.1%} {found['right']['this tool']:>11.2%} "
                f"{found['wrong_k']:>10.2%}   {found['leaked']}"
            )
    print("\nno K may be called:")
    for name, make, widths in (
        ("ramp, S=1..16", ramp, WIDTHS),
        ("hinge, S=1..16", hinge, WIDTHS),
        ("staircase at powers of two", staircase, POWERS),
        ("ramp at powers of two", ramp, POWERS),
    ):
        found = false_tops(options.runs, make, widths, options.seed)
        print(f"  {name:28} a K in {found['called']:.2%} of the runs, no advice in {found['without_advice']:.2%}")


if __name__ == "__main__":
    main()
