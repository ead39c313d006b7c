"""Every form of table that is read, and what is said of those that are none."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from probes.ab.record import read as read_rows
from probes.plan import plan_table
from probes.tables import TableError, read


def write(folder: Path, name: str, text: str | dict[str, Any] | list[Any]) -> Path:
    path = folder / name
    path.write_text(text if isinstance(text, str) else json.dumps(text))
    return path


@pytest.mark.parametrize(
    "text",
    [
        "s,ms\n1,10\n2,11\n2,12\n",
        "S;median_ms\n1;10\n2;11\n2;12\n",
        "1,10\n2,11\n2,12\n",
        "# measured at night\ncontext,S,ms\n848,1,10\n848,2,11\n848,2,12\n",
        "\ufeffs,ms\r\n1,10\r\n2,11\r\n2,12\r\n",
    ],
)
def test_csv(tmp_path: Path, text: str) -> None:
    (table,) = read(write(tmp_path, "t.csv", text))
    assert table.times == {1: [10.0], 2: [11.0, 12.0]}
    assert table.scope == "unstated"


@pytest.mark.parametrize(
    "data",
    [
        {"s": [1, 2, 2], "ms": [10, 11, 12]},
        {"s": [1, 2], "ms": [10, [11, 12]]},
        [{"s": 1, "ms": 10}, {"s": 2, "ms": [11, 12]}],
        {"tables": [{"name": "one", "s": [1, 2, 2], "ms": [10, 11, 12]}]},
        {"label": "x", "verify_cost": [{"s": 1, "median_ms": 10}, {"s": 2, "median_ms": [11, 12]}]},
    ],
)
def test_json(tmp_path: Path, data: Any) -> None:
    (table,) = read(write(tmp_path, "t.json", data))
    assert table.times == {1: [10.0], 2: [11.0, 12.0]}


def test_a_swift_summary(tmp_path: Path) -> None:
    data = {
        "label": "code:k2",
        "verify_cost": [{"s": s, "median_ms": 37.0 + (17 if s > 3 else 0), "vs_decode_step": 1.0} for s in range(1, 9)],
        "ab": {
            "off": [{"generated": 256}],
            "on": [{"generated": 256, "k": 2}],
            "off_best_tps": 27.4,
            "on_best_tps": 46.3,
            "speedup": 1.69,
            "lossless": True,
        },
    }
    (table,) = read(write(tmp_path, "summary.json", data))
    found = plan_table(table)
    assert (found["label"], found["scope"]) == ("code:k2", "device")
    assert [p["k"] for p in found["plateaus"]] == [2, None]
    assert found["ab"]["speedup"] == pytest.approx(1.6898, abs=1e-3)
    assert found["ab"]["agrees"] is True
    assert found["ab"]["lossless"] is True


def test_a_speedup_that_its_own_rates_do_not_give(tmp_path: Path) -> None:
    data = {"label": "x", "ab": {"off_best_tps": 20.0, "on_best_tps": 30.0, "speedup": 2.1, "lossless": False}}
    (table,) = read(write(tmp_path, "summary.json", data))
    found = plan_table(table)
    assert (found["ab"]["speedup"], found["ab"]["agrees"]) == (1.5, False)
    assert found["status"] == "too-coarse"


def test_the_caller_may_say_where_a_table_was_measured(tmp_path: Path) -> None:
    assert read(write(tmp_path, "t.csv", "s,ms\n1,2\n"), "device")[0].scope == "device"
    assert (
        read(write(tmp_path, "t.json", {"s": [1], "ms": [2], "scope": "interpreter"}), "device")[0].scope
        == "interpreter"
    )


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("t.csv", "", "empty"),
        ("t.csv", "a,b\n1,2\n", "columns s and ms were expected, found a, b"),
        ("t.csv", "s,ms\n", "columns without a row; write one for each S and ms"),
        ("t.csv", "# made by hand\n\ns,ms\n1,1\n2\n", "t.csv:5: '2' has too few columns"),
        ("t.csv", f"s,ms\n1,{'1' * 200_000}\n", "t.csv:2: no line of a table (field larger than"),
        ("t.csv", "s,ms\n1,fast\n", "t.csv:2: 'fast' is no time in ms"),
        ("t.csv", "s,ms\n1.5,2\n", "'1.5' is no S"),
        ("t.csv", "s,ms\n0,2\n", "'0' is no S"),
        ("t.csv", "s,ms\n1,-2\n", "not all above 0"),
        ("t.csv", "s,ms\n1,nan\n", "not all above 0"),
        ("t.csv", "s,ms\n1,1\nnan,1\n", "'nan' is no S"),
        ("t.csv", "s,ms\n1,1\ninf,1\n", "'inf' is no S"),
        ("t.csv", "s,ms\n1,1\n1000000000,1\n", "whole number from 1 to 4096"),
        ("t.csv", "s,ms\n" + "".join(f"{s},1\n" for s in range(1, 514)), "513 different S"),
        ("t.json", '[{"s": true, "ms": 1}]', "True is no time"),
        ("t.json", '{"s": [1, 2], "ms": [[], [1]]}', "S=1 has no times"),
        ("t.json", '{"s": [1], "ms": [1' + "0" * 400 + "]}", "is no time in ms"),
        ("t.json", '{"schema": "spec-audit.probe/1", "graphs": [1]}', "cut or edited"),
        (
            "t.json",
            '{"schema": "spec-audit.probe/1", "graphs": [{"name": "m", "verify_cost": '
            '[{"context": 1, "scope": "device", "samples": [[1]]}]}]}',
            "cut or edited",
        ),
        ("t.json", "{", "not valid JSON"),
        ("t.json", "{}", "no table of S and ms"),
        ("t.json", "[1, 2]", "no table of S and ms"),
        ("t.json", '{"s": [1, 2], "ms": [1]}', "differ in length"),
        ("t.json", '{"verify_cost": [1]}', "has no S and ms"),
        ("t.json", '{"s": ["x"], "ms": [1]}', "'x' is no"),
    ],
)
def test_what_is_no_table_is_told(tmp_path: Path, name: str, text: str, says: str) -> None:
    with pytest.raises(TableError, match=says.replace("(", r"\(")):
        read(write(tmp_path, name, text))


@pytest.mark.parametrize(
    "graphs",
    [
        None,
        [{"name": "m", "ab": "x"}],
        [{"name": "m", "ab": {"workloads": [{"rows": [1]}]}}],
        [{"name": "m", "ab": {"workloads": [{"name": "w", "budget": 1, "rows": [{"rounds": [["a"]]}]}]}}],
    ],
)
def test_a_record_that_was_cut_is_told(tmp_path: Path, graphs: Any) -> None:
    path = write(tmp_path, "t.json", {"schema": "spec-audit.probe/1", "graphs": graphs})
    with pytest.raises(TableError, match="cut or edited"):
        read_rows(path)


def test_a_missing_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(TableError, match="No such file"):
        read(tmp_path / "none.csv")


def test_bytes_that_are_no_text_are_told(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes(b"\xff\xfe\x00s")
    with pytest.raises(TableError, match="UTF-8"):
        read(tmp_path / "t.csv")
