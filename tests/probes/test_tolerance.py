"""Differences of rows: what is the same, what is a near tie, what is a defect."""

from __future__ import annotations

import pytest

np = pytest.importorskip("numpy")

from probes.gates.bench import changed_rows  # noqa: E402
from probes.gates.gate import Outcome, graded, worst  # noqa: E402
from probes.tolerance import compare, compare_states, tolerance  # noqa: E402

ROWS = np.array([[0.0, 4.0, 1.0], [2.0, 0.0, -4.0]], np.float32)


def test_the_same_rows() -> None:
    found = compare(ROWS, ROWS.copy())
    assert (found.absolute, found.relative, found.equal, found.flips) == (0.0, 0.0, 2, ())
    assert found.gap == pytest.approx(0.5)


def test_a_delta_is_relative_to_the_largest_logit() -> None:
    other = ROWS.copy()
    other[1, 1] += 0.4
    assert compare(ROWS, other).relative == pytest.approx(0.1)


@pytest.mark.parametrize(
    ("precision", "delta", "verdict"),
    [
        ("float32", 5e-5, Outcome.CONFIRMED),
        ("float32", 5e-4, Outcome.PARTIAL),
        ("float32", 5e-3, Outcome.REFUTED),
        ("float16", 1.4e-2, Outcome.CONFIRMED),
        ("float16", 3e-2, Outcome.PARTIAL),
        ("float16", 0.15, Outcome.REFUTED),
        ("bfloat16", 3e-2, Outcome.CONFIRMED),
        ("float8e4m3fn", 0.15, Outcome.REFUTED),
    ],
)
def test_bounds_by_type(precision: str, delta: float, verdict: Outcome) -> None:
    other = ROWS.copy()
    other[0, 0] += 4 * delta
    assert graded(compare(ROWS, other), tolerance(precision)) is verdict


def test_a_near_tie_is_no_defect() -> None:
    left = np.array([[3.000, 2.999, -4.0]], np.float32)
    right = np.array([[2.999, 3.000, -4.0]], np.float32)
    found = compare(left, right)
    assert found.flips == ((0, pytest.approx(0.001 / 4, rel=0.01)),)
    assert graded(found, tolerance("float16")) is Outcome.CONFIRMED


def test_equal_argmax_is_no_pass() -> None:
    other = ROWS.copy()
    other[0, 2] -= 2
    found = compare(ROWS, other)
    assert found.equal == 2
    assert graded(found, tolerance("float16")) is Outcome.REFUTED


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_what_is_no_number_is_never_the_same(bad: float) -> None:
    other = ROWS.copy()
    other[0, 0] = bad
    found = compare(other, other)
    assert not found.finite
    assert found.as_json()["max_delta"] is None
    assert graded(found, tolerance("float16")) is Outcome.REFUTED


@pytest.mark.parametrize("lowest", [-1e4, -65504.0, -3.4e38])
def test_a_suppressed_entry_is_no_scale(lowest: float) -> None:
    padded = np.concatenate([ROWS, np.full((2, 5), lowest, np.float32)], axis=1)
    other = padded.copy()
    other[1, 1] += 0.4
    other[:, -1] *= 0.999
    assert compare(padded, other).relative == pytest.approx(0.1)


def test_an_entry_suppressed_on_one_side_is_a_difference() -> None:
    other = ROWS.copy()
    other[0, 0] = -1e4
    assert compare(ROWS, other).relative == pytest.approx(1, rel=1e-2)


def test_suppressed_entries_are_no_choice_where_all_logits_are_negative() -> None:
    padded = np.concatenate([ROWS - 10, np.full((2, 5), -1e4, np.float32)], axis=1)
    assert compare(padded, padded).equal == 2
    swapped = padded.copy()
    swapped[0, :2] = swapped[0, 1::-1]
    assert [row for row, _ in compare(padded, swapped).flips] == [0]


def test_a_shared_offset_is_no_scale() -> None:
    other = ROWS.copy()
    other[1, 1] += 0.4
    assert compare(ROWS + 1000, other + 1000).relative == pytest.approx(0.4 / 4.4, rel=1e-3)


def test_a_state_is_compared_with_its_largest_value() -> None:
    state = np.array([[[-2000.0, 3.0]]], np.float32)
    other = state.copy()
    other[0, 0, 0] += 200
    assert compare_states(state, other).relative == pytest.approx(0.1)
    assert not compare_states(state, state * np.nan).finite


def test_rows_of_another_shape() -> None:
    with pytest.raises(ValueError, match="against"):
        compare(ROWS, ROWS[:1])


def test_worst() -> None:
    assert worst([Outcome.CONFIRMED, Outcome.PARTIAL]) is Outcome.PARTIAL
    assert worst([Outcome.PARTIAL, Outcome.REFUTED]) is Outcome.REFUTED
    assert worst([]) is Outcome.CONFIRMED


def test_changed_rows() -> None:
    before = np.zeros((2, 5, 3))
    after = before.copy()
    after[1, 3, 0] = 1
    assert changed_rows(before, after, 1) == [3]
    assert changed_rows(before, after, 0) == [1]
    assert changed_rows(before, before, 1) == []
