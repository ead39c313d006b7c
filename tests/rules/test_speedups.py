from __future__ import annotations

from typing import Any

import pytest

from rules.speedups import Measured, measured, predicted
from tests.reports.probe_sample import plan_of

FULL = {
    "k": 7,
    "tokens_per_forward": 2.6,
    "tokens_per_second": 53.7,
    "speedup": 1.96,
    "speedup_low": 1.9,
    "speedup_high": 2.0,
    "lossless": True,
    "budget": 256,
    "predicted": 1.9,
}
NO_BUDGET = {key: value for key, value in FULL.items() if key != "budget"}
READ = Measured("code", "7", "device", 2.6, 53.7, 1.96, 1.9, 2.0, True, 256, 1.9)


@pytest.mark.parametrize(
    "record",
    [
        [{**FULL, "workload": "code"}],
        {"rows": [{**FULL, "workload": "code"}]},
        {"workloads": [{"workload": "code", "rows": [FULL]}]},
        {"workloads": [{"name": "code", "arms": [FULL]}]},
        {"workloads": {"code": {"rows": [FULL]}}},
        {
            "budget": 256,
            "workloads": [{"workload": "code", "rows": [{k: v for k, v in FULL.items() if k != "budget"}]}],
        },
        {"rows": [{**FULL, "workload": "code", "speedup": {"median": 1.96, "low": 1.9, "high": 2.0}}]},
        {"rows": [{**FULL, "workload": "code", "speedup_interval": [1.9, 2.0]}]},
    ],
)
def test_rows_in_several_forms(record: Any) -> None:
    assert list(measured({"ab": record}, "device")) == [READ]


def test_a_total_is_not_handed_down_to_rows() -> None:
    record = {"speedup": 3.0, "lossless": True, "rows": [{"workload": "code", "k": 2, "tokens_per_second": 40.0}]}
    (row,) = measured({"ab": record})
    assert (row.speedup, row.lossless, row.tokens_per_second) == (None, None, 40.0)


def test_what_is_left_out_says_why() -> None:
    (row,) = measured({"ab": [{"workload": "chat", "k": 2, "left_out": "the baseline left its band", "speedup": 2.1}]})
    assert row.left_out == "the baseline left its band"


def test_a_plans_record() -> None:
    record = {"off_tps": 27.2, "on_tps": 53.7, "speedup": 1.97, "stated_speedup": 1.96, "lossless": None, "runs": {}}
    (row,) = measured({"ab": record, "label": "phone", "scope": "device"})
    assert row == Measured("phone", "", "device", tokens_per_second=53.7, speedup=1.97)


@pytest.mark.parametrize("record", [None, {}, [], "x", {"rows": "x"}, {"rows": [{"k": 2}]}, {"workloads": [3]}])
def test_nothing_is_made_of_nothing(record: Any) -> None:
    assert list(measured({"ab": record})) == []


def test_predictions_leave_out_no_drafts() -> None:
    rows = list(predicted(plan_of("x")["tables"][0]))
    assert [row.k for row in rows] == list(range(1, 12))
    assert all(row.speedup > 0 for row in rows)
