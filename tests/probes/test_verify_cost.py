"""Samples to costs; and the runs that are refused, with the numbers that show why."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from probes.sweep import ANCHOR, FIRST, TIMED, WARM, Schedule, calls, sweep
from probes.verify_cost import judged

SCHEDULE = Schedule(range(1, 9), 64, repeats=10, seed=3)


def raw(at: Callable[[int, float], float], noise: float = 0.02) -> dict[str, Any]:
    """Samples of time `at(s, share of the run done)`."""
    dice = random.Random(5)
    plan = list(calls(SCHEDULE))
    samples = [
        [s, at(s, index / len(plan)) * (1 + dice.gauss(0, noise)) * (9 if kind == FIRST else 1), kind]
        for index, (s, kind) in enumerate(plan)
    ]
    return {
        "context": 64,
        "capacity": 96,
        "seed": 3,
        "repeats": 10,
        "samples": samples,
        "host_seconds": 0.01,
        "forward_seconds": 0.99,
        "load": [0.1, 0.1],
    }


def test_the_order_is_shuffled_anchored_and_reproducible() -> None:
    plan = list(calls(SCHEDULE))
    assert plan == list(calls(SCHEDULE))
    kinds = Counter(kind for _, kind in plan)
    assert kinds == {FIRST: 8, WARM: 16, TIMED: 80, ANCHOR: 30}
    timed = [s for s, kind in plan if kind == TIMED]
    assert Counter(timed) == dict.fromkeys(range(1, 9), 10)
    assert timed[:8] != sorted(timed[:8])
    assert timed[:8] != timed[8:16]
    assert plan != list(calls(Schedule(range(1, 9), 64, repeats=10, seed=4)))


def test_costs_are_relative_to_s_1_and_first_calls_stay_apart() -> None:
    found = judged(raw(lambda s, done: 10 if s <= 4 else 15), "device", 0)
    assert found["status"] == "ok"
    by_s = {point["s"]: point for point in found["points"]}
    assert by_s[1]["c_v"] == 1
    assert by_s[8]["c_v"] == pytest.approx(1.5, rel=0.03)
    assert by_s[8]["c_v_low"] <= by_s[8]["c_v"] <= by_s[8]["c_v_high"]
    assert by_s[8]["c_v_high"] - by_s[8]["c_v_low"] < 0.15
    assert by_s[8]["first_ms"] > 100
    assert by_s[1]["n"] == 40
    assert found["host"]["share"] == pytest.approx(0.01)


def test_any_figure_can_be_had_again_from_the_samples() -> None:
    once = judged(raw(lambda s, done: 10 + s), "device", 0)
    again = judged({**raw(lambda s, done: 10 + s), "samples": once["samples"]}, "device", 0)
    assert once == again


def test_throttling_is_refused() -> None:
    found = judged(raw(lambda s, done: 10 * (1 + 0.3 * done)), "device", 0)
    assert found["status"] == "refused"
    assert "throttling" in found["reasons"][0]
    assert "by quarter" in found["reasons"][0]


def test_somebody_elses_work_in_the_middle_is_refused() -> None:
    found = judged(raw(lambda s, done: 10 * (1.4 if 0.5 < done < 0.75 else 1)), "device", 0)
    assert found["status"] == "refused"
    assert "contention" in found["reasons"][0]


def test_a_third_of_slow_calls_is_refused() -> None:
    dice = random.Random(1)
    found = judged(raw(lambda s, done: 10 * (2.5 if dice.random() < 0.33 else 1)), "device", 0)
    assert found["status"] == "refused"
    assert "contention" in found["reasons"][0]


def test_steady_noise_is_not_refused() -> None:
    assert judged(raw(lambda s, done: 10, noise=0.05), "device", 0)["status"] == "ok"


GB = 10**9


@pytest.mark.parametrize(
    ("ms", "bandwidth", "moe", "status", "says"),
    [
        (10, 100e9, False, "refused", "implausible"),
        (50, 100e9, False, "ok", ""),
        (10, 100e9, True, "ok", "experts"),
        (10, None, False, "ok", "not known"),
    ],
)
def test_faster_than_memory_is_refused(ms: float, bandwidth: float | None, moe: bool, status: str, says: str) -> None:
    found = judged(raw(lambda s, done: ms), "device", 4 * GB, bandwidth, moe)
    assert found["status"] == status
    assert says in (found["reasons"] or [found["plausibility"].get("why_not", "")])[0]


def test_a_small_bundle_may_live_in_a_cache() -> None:
    found = judged(raw(lambda s, done: 0.001), "device", 10**6, 100e9)
    assert found["status"] == "ok"
    assert not found["plausibility"]["judged"]


class Recorder:
    """A session that notes what it is asked; a forward costs `seconds` and nothing else."""

    widths = None
    vocab = 50
    capacity = 96
    seconds = 0.25

    def __init__(self) -> None:
        self.forwards: list[tuple[int, int]] = []

    def reset(self, states: Any = None) -> None:
        self.forwards.clear()

    def forward(self, tokens: Sequence[int], position: int) -> Any:
        import numpy as np

        self.forwards.append((len(tokens), position))
        return np.zeros((len(tokens), self.vocab), np.float32)


def test_the_sweep_fills_the_context_and_stays_there() -> None:
    session: Any = Recorder()
    found = sweep(session, Schedule((1, 2, 3), 40, repeats=2, warmups=1))
    assert session.forwards[:3] == [(16, 0), (16, 16), (8, 32)]
    assert {position for _, position in session.forwards[3:]} == {40}
    assert [[s, kind] for s, _, kind in found["samples"]] == [
        [s, kind] for s, kind in calls(Schedule((1, 2, 3), 40, 2, 1))
    ]
    assert {ms for _, ms, _ in found["samples"]} == {250.0}


def test_a_graph_without_s_1_is_not_timed() -> None:
    session: Any = Recorder()
    session.widths = (4,)
    with pytest.raises(ValueError, match="no S=1"):
        sweep(session, Schedule((4,), 16))
