from __future__ import annotations

import pytest

from rules.document_shapes import DocumentError
from rules.documents import check
from rules.speedups import Measured, measured, predicted, recorded
from tests.reports.probe_sample import ab, ab_row, plan_of, probe


def test_rows_by_workload() -> None:
    rows = list(measured({"ab": ab(ab_row(), ab_row("K=8", interval=None, lossless=False))}, "device"))
    shown = {"host": 0.012, "effect": "gains"}
    assert rows == [
        Measured("code", "K=7", "device", "ngram", 2.61, 53.7, 1.96, 1.9, 2.01, True, None, 256, 1.88, **shown),
        Measured("code", "K=8", "device", "ngram", 2.61, 53.7, 1.96, None, None, False, None, 256, 1.88, **shown),
    ]
    assert all(row.counts for row in rows)


def test_what_is_spoiled_is_left_out_and_says_why() -> None:
    (row,) = measured({"ab": ab(ab_row(status="spoiled", spoiled=["the baseline left its band"]))}, "device")
    assert row.left_out == "the baseline left its band"
    assert not row.counts
    (row,) = measured({"ab": ab(ab_row(status="spoiled"))}, "device")
    assert row.left_out == "spoiled"


def test_what_was_not_run_says_why_and_has_no_figures() -> None:
    skipped = [{"drafter": "tree", "policy": "adaptive", "reason": "no plateau"}]
    (_, row) = measured({"ab": ab(ab_row(), not_run=skipped)}, "device")
    assert row == Measured("code", "adaptive", "device", "tree", budget=256, not_run="no plateau")
    assert not row.counts


def test_a_failure_that_was_run_again_alone() -> None:
    (row,) = measured({"ab": ab(ab_row(lossless=False, rerun={"lossless": True}))}, "device")
    assert (row.lossless, row.alone) == (False, True)


@pytest.mark.parametrize("graph", [{}, {"ab": None}, {"ab": ab()}])
def test_nothing_is_made_of_nothing(graph: dict[str, object]) -> None:
    assert list(measured(graph, "device")) == []


def test_a_record_that_was_cut_is_refused() -> None:
    data = probe()
    data["graphs"][0]["ab"] = ab(ab_row())
    check(data)
    del data["graphs"][0]["ab"]["workloads"][0]["budget"]
    with pytest.raises(DocumentError, match="has no 'budget'"):
        check(data)


def test_a_plans_record() -> None:
    record = {"off_tps": 27.2, "on_tps": 53.7, "speedup": 1.97, "stated_speedup": 1.96, "lossless": None, "runs": {}}
    (row,) = recorded({"ab": record, "label": "phone", "scope": "device"})
    assert row == Measured("phone", "", "device", tokens_per_second=53.7, speedup=1.97)
    assert list(recorded(plan_of("x")["tables"][0])) == []


def test_predictions_leave_out_no_drafts() -> None:
    rows = list(predicted(plan_of("x")["tables"][0]))
    assert [row.policy for row in rows] == [f"K={k}" for k in range(1, 12)]
    assert all(row.speedup > 0 for row in rows)
