"""Plans from published tables, and the tables that must give no K."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any

import jsonschema
import pytest

from probes.acceptance import PerPosition, Rate, Records, parse
from probes.plan import plan, plan_table
from probes.tables import Table
from reports.plan_text import render

# A published sweep of a 30B model on an M4 Max, 848 tokens of context.
PUBLISHED = dict(
    zip(
        (1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 16),
        (36.9, 37.1, 37.7, 53.6, 54.0, 54.4, 54.7, 54.9, 84.6, 84.7, 81.0),
        strict=True,
    )
)
# A published hybrid: three samples, without S=1.
THREE_POINTS = {9: 135.0, 13: 143.0, 17: 197.0}


def table(times: dict[int, float], scope: str = "device", **fields: Any) -> Table:
    return Table("table.csv", "table", scope, {s: [ms] for s, ms in times.items()}, **fields)


def test_the_published_staircase() -> None:
    found = plan_table(table(PUBLISHED))
    assert found["status"] == "ok"
    assert [(p["first"], p["last"]) for p in found["plateaus"]] == [(1, 3), (4, 8), (9, 16)]
    assert [p["k"] for p in found["plateaus"]] == [2, 7, None]
    assert [round(p["bar"], 2) for p in found["plateaus"]] == [1.02, 1.49, 2.30]
    assert [p["end_seen"] for p in found["plateaus"]] == [True, True, False]
    assert found["avoid"] == [3, 8]
    assert found["measure_next"] == [17]


def test_three_points_are_too_coarse() -> None:
    found = plan_table(table(THREE_POINTS))
    assert found["status"] == "too-coarse"
    assert [p["k"] for p in found["plateaus"]] == [None, None]
    assert {p["c_v"] for p in found["plateaus"]} == {None}
    assert found["measure_next"] == [1, 14, 15, 16]
    assert "K=" not in render(plan([table(THREE_POINTS)]))


@pytest.mark.parametrize("ms", [(36.9, 37.1, 53.6, 54.9, 81.0), (55, 74, 104, 172, 301), (21.2, 38, 67, 130, 253)])
def test_powers_of_two_give_no_k_and_say_what_to_measure(ms: tuple[float, ...]) -> None:
    found = plan_table(table(dict(zip((1, 2, 4, 8, 16), ms, strict=True))))
    assert found["status"] == "too-coarse"
    assert [p["k"] for p in found["plateaus"] if p["k"] is not None] == []
    assert found["avoid"] == []
    assert 3 in found["measure_next"]
    assert set(found["measure_next"]) <= set(range(1, 17)) - {1, 2, 4, 8, 16}


def test_a_step_at_an_unseen_s_costs_its_own_k_only() -> None:
    times = {s: PUBLISHED[s] for s in (1, 2, 3, 4, 8, 16)}
    found = plan_table(table(times))
    assert found["status"] == "ok"
    assert [(p["last"], p["k"]) for p in found["plateaus"]] == [(3, 2), (8, None), (16, None)]
    assert found["measure_next"] == [9, 10, 11, 12, 13, 14, 15]


def test_a_refused_table_gives_nothing() -> None:
    found = plan_table(table(PUBLISHED, reasons=("S=1 anchors moved by 30%",)))
    assert (found["status"], found["plateaus"], found["avoid"]) == ("refused", [], [])


def test_times_that_are_too_uncertain_are_refused() -> None:
    found = plan_table(table(PUBLISHED), noise=0.1)
    assert found["status"] == "refused"
    assert "10%" in found["reasons"][0]


def test_samples_bring_their_own_noise() -> None:
    times = {s: [50 + (20 if s > 5 else 0) + wobble for wobble in (-0.4, -0.2, 0, 0.2, 9)] for s in range(1, 11)}
    found = plan_table(Table("x", "x", "device", times))
    assert [p["k"] for p in found["plateaus"]] == [4, None]


def test_an_interpreter_table_is_marked_wherever_a_k_stands() -> None:
    text = render(plan([table(PUBLISHED, scope="interpreter")]))
    for line in text.splitlines():
        assert "K=" not in line or "interpreter" in line or "avoid" in line
    assert "no device's cost" in text.splitlines()[0]


def test_predictions_and_where_speculation_loses() -> None:
    rows = {row["k"]: row for row in plan_table(table(PUBLISHED), Rate(0.5))["predictions"]}
    assert rows[0]["speedup"] == 1
    assert rows[2]["tokens_per_round"] == pytest.approx(1.75)
    assert rows[2]["tokens_per_second"] == pytest.approx(1.75 / 0.0377)
    assert not rows[2]["loses"]
    assert rows[8]["loses"]
    assert {k for k, row in rows.items() if row["plateau_top"]} == {2, 7}


def test_acceptance_of_nothing_always_loses() -> None:
    rows = plan_table(table(PUBLISHED), Rate(0.0))["predictions"]
    assert all(row["loses"] for row in rows if row["k"])


def test_no_prediction_where_the_data_do_not_reach() -> None:
    rows = plan_table(table(PUBLISHED), PerPosition((0.9, 0.5)))["predictions"]
    assert [row["k"] for row in rows] == [0, 1, 2]
    assert rows[2]["tokens_per_round"] == pytest.approx(1 + 0.9 + 0.45)


def test_records_predict_shorter_drafts() -> None:
    records = Records(((7, 3), (7, 0), (7, 6), (0, 0)))
    assert records.tokens(2) == pytest.approx(1 + (2 + 0 + 2) / 4)
    assert records.tokens(9) == pytest.approx(1 + 9 / 4)
    assert Records(((3, 3), (7, 1))).tokens(4) is None


@pytest.mark.parametrize(("text", "kind"), [("0.7", "rate"), ("0.8,0.6", "per-position")])
def test_acceptance_on_the_command_line(text: str, kind: str) -> None:
    assert parse(text).as_json()["kind"] == kind


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        ({"rate": 0.7}, "rate"),
        ([0.8, 0.6], "per-position"),
        ({"records": [[7, 3], [7, 0]]}, "records"),
        ([{"drafted": 4, "accepted": 1}], "records"),
        ({"k": 4, "accepted": [1, 0, 4]}, "records"),
    ],
)
def test_acceptance_from_a_file(tmp_path: Any, data: Any, kind: str) -> None:
    path = tmp_path / "acceptance.json"
    path.write_text(json.dumps(data))
    assert parse(str(path)).as_json()["kind"] == kind


@pytest.mark.parametrize("text", ["1.5", "x", "0.5,-1"])
def test_acceptance_that_is_none(text: str) -> None:
    with pytest.raises(ValueError, match=r"acceptance rate|neither"):
        parse(text)


@pytest.mark.parametrize("data", [[[3, 4]], {"records": [[1]]}, {}, {"k": 2, "accepted": [3]}, [["a", "b"]]])
def test_records_that_are_none(tmp_path: Any, data: Any) -> None:
    path = tmp_path / "acceptance.json"
    path.write_text(json.dumps(data))
    with pytest.raises(ValueError, match=r"expected|must lie"):
        parse(str(path))


def test_the_plan_keeps_its_contract() -> None:
    schema = json.loads(files("reports").joinpath("schemas/plan-1.schema.json").read_text())
    tables = [
        table(PUBLISHED),
        table(THREE_POINTS),
        table(PUBLISHED, reasons=("no",)),
        table({}),
        table({s: 10.0 + s for s in range(1, 9)}, ab={"off_best_tps": 27.0, "on_best_tps": 50.0, "lossless": True}),
    ]
    made = plan(tables, Rate(0.6))
    jsonschema.validate(json.loads(json.dumps(made)), schema)
    broken = json.loads(json.dumps(made))
    broken["tables"][0]["plateaus"][0].pop("k")
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(broken, schema)
