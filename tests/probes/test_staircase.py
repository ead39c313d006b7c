"""Plateaus, tops and K; and the data that must give none."""

from __future__ import annotations

import pytest

from probes.staircase import Point, fit


def points(times: dict[int, float], error: float = 0.012) -> list[Point]:
    return [Point(s, ms, error) for s, ms in times.items()]


def stairs(*spans: tuple[int, float]) -> dict[int, float]:
    """Times from (last S, ms) of each plateau."""
    times: dict[int, float] = {}
    start = 1
    for last, ms in spans:
        times |= dict.fromkeys(range(start, last + 1), ms)
        start = last + 1
    return times


def test_two_steps() -> None:
    found = fit(points(stairs((3, 37.0), (8, 54.0), (16, 84.0))))
    assert found.shape == "staircase"
    assert [(p.first, p.last, p.k, p.seen) for p in found.plateaus] == [
        (1, 3, 2, True),
        (4, 8, 7, True),
        (9, 16, None, False),
    ]
    assert found.avoid == (3, 8)
    assert found.gaps == ()


def test_plateaus_may_slope() -> None:
    times = {s: (40 if s <= 7 else 60) * (1 + 0.003 * s) for s in range(1, 17)}
    assert [p.k for p in fit(points(times, 0.002)).plateaus] == [6, None]


def test_a_step_between_two_measured_s_has_no_place() -> None:
    found = fit(points({1: 30, 2: 30, 3: 30, 4: 30, 8: 50, 9: 50, 10: 50}))
    assert [(p.last, p.k) for p in found.plateaus] == [(4, None), (10, None)]
    assert found.gaps == ((4, 8),)
    assert found.avoid == ()


@pytest.mark.parametrize("slope", [0.02, 0.05, 0.26, 1.0])
@pytest.mark.parametrize("error", [0.003, 0.03])
def test_a_ramp_has_no_plateau(slope: float, error: float) -> None:
    found = fit(points({s: 50 * (1 + slope * (s - 1)) for s in range(1, 17)}, error))
    assert [p for p in found.plateaus if p.k is not None] == []
    assert found.shape in ("ramp", "flat")


def test_a_hinge_turns_without_a_step() -> None:
    found = fit(points({s: 50 + 8 * max(s - 6, 0) for s in range(1, 17)}))
    assert (found.shape, found.turns_at, found.plateaus) == ("hinge", 6, ())


def test_flat_is_one_plateau_whose_end_was_not_seen() -> None:
    found = fit(points(stairs((16, 50.0))))
    assert found.shape == "flat"
    assert [(p.first, p.last, p.k, p.why) for p in found.plateaus] == [(1, 16, None, "its end was not seen")]


def test_a_step_at_two_leaves_no_free_draft() -> None:
    first = fit(points(stairs((1, 30.0), (8, 50.0), (16, 70.0)))).plateaus[0]
    assert (first.last, first.k) == (1, None)


def test_one_s_between_two_steps_is_no_plateau() -> None:
    found = fit(points(stairs((4, 30.0), (5, 45.0), (16, 70.0))))
    assert [(p.last, p.k) for p in found.plateaus] == [(4, 3), (5, None), (16, None)]
    assert found.avoid == (4, 5)


def test_a_step_below_the_least_is_none() -> None:
    assert len(fit(points(stairs((8, 50.0), (16, 52.0)), 0.001)).plateaus) == 1


@pytest.mark.parametrize("count", [1, 2, 3])
def test_few_points(count: int) -> None:
    assert len(fit(points(dict.fromkeys(range(1, count + 1), 10.0))).plateaus) == 1


def test_s_must_ascend() -> None:
    with pytest.raises(ValueError, match="ascend"):
        fit([Point(2, 1.0, 0.01), Point(1, 1.0, 0.01)])
