from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from reports.json_report import document
from rules.audit import audit
from rules.document_shapes import PLAN, PROBE, SCAN, DocumentError
from rules.documents import check, parse, read
from tests.reports.probe_sample import plan_of, probe
from tests.reports.sample import hostile, sample


@pytest.mark.parametrize(
    ("data", "schema"),
    [
        (document(audit(sample())), SCAN),
        (document(audit(hostile())), SCAN),
        (probe(), PROBE),
        (probe(refused=True), PROBE),
        (plan_of("x"), PLAN),
    ],
)
def test_what_our_own_code_writes_passes(data: dict[str, Any], schema: str) -> None:
    assert check(data) == schema


def test_a_file() -> None:
    raw = json.dumps(probe()).encode()
    assert parse(raw) == parse(raw, PROBE) == probe()
    with pytest.raises(DocumentError, match=r"not a report of `spec-audit scan --format json` \(schema"):
        parse(raw, SCAN)


def test_a_file_larger_than_any_report_is_not_taken_into_memory(tmp_path: Path) -> None:
    file = tmp_path / "scan.json"
    with file.open("wb") as out:
        out.truncate(500_000_001)  # a hole: the disk holds nothing of it
    with pytest.raises(DocumentError, match="larger than 500000000 bytes, which no report is"):
        read(file)


@pytest.mark.parametrize("raw", [b"", b"{", b"[" * 100_000, b'{"schema": "caf\xe9"}'])
def test_no_json(raw: bytes) -> None:
    with pytest.raises(DocumentError, match="not valid JSON"):
        parse(raw, SCAN)


@pytest.mark.parametrize("data", [None, [], "x", {}, {"schema": "other/1"}, {"schema": ["spec-audit.scan/1"]}])
def test_no_report(data: Any) -> None:
    with pytest.raises(DocumentError, match="not a report of spec-audit"):
        check(data)


def test_another_version_is_named() -> None:
    with pytest.raises(DocumentError, match=r"spec-audit.scan/2, which this version does not read; it reads .*scan/1"):
        check({**document(audit(sample())), "schema": "spec-audit.scan/2"})


@pytest.mark.parametrize(
    ("path", "wrong", "says"),
    [
        (("models",), None, "models is no list"),
        (("graphs", 0, "facts", "query"), {}, r"graphs\[0\].facts.query has no 'value'"),
        (("graphs", 0, "facts", "query", "evidence", 0, "line"), "3", r"evidence\[0\].line is '3'"),
        (("graphs", 0, "line"), 10**400, r"graphs\[0\].line is 1000"),
        (("graphs", 0, "reasons"), [{"rule": "\ud800"}], r"reasons\[0\].rule is "),
        (("graphs", 0, "line"), True, r"graphs\[0\].line is True"),
        (("graphs", 0, "verdict"), "maybe", "has the verdict 'maybe'"),
        (("models", 0, "primary"), "gone", "has a graph 'gone' that is not in the report"),
        (("models", 0, "verdict"), "fine", "has the verdict 'fine'"),
        (("models", 0, "fixable_by"), "hope", "is fixable by 'hope'"),
        (("models", 0, "graphs"), "text", r"models\[0\].graphs is no list"),
        (("waivers",), [{"state": "asleep", "message": "x"}], "a waiver is in the state 'asleep'"),
        (("waivers",), [{"state": "stale"}], r"waivers\[0\] has no 'message'"),
        (("baseline",), {"recorded": 1}, "baseline has no 'known'"),
        (("provenance",), "x", "provenance is no object"),
    ],
)
def test_a_scan_that_was_edited(path: tuple[Any, ...], wrong: Any, says: str) -> None:
    data: Any = copy.deepcopy(document(audit(sample())))
    holder = data
    for key in path[:-1]:
        holder = holder[key]
    holder[path[-1]] = wrong
    with pytest.raises(DocumentError, match=says):
        check(data)


def test_a_probe_whose_staircase_was_cut() -> None:
    data = probe()
    del data["graphs"][0]["verify_cost"][0]["staircase"]["avoid"]
    with pytest.raises(DocumentError, match="staircase has no 'avoid'"):
        check(data)


def test_a_verdict_that_nothing_stands_behind() -> None:
    data: Any = copy.deepcopy(document(audit(sample())))
    out = next(model for model in data["models"] if model["verdict"] == "out")
    out["verdict"] = "eligible"
    with pytest.raises(DocumentError, match="is eligible, and its graph is not"):
        check(data)
    next(graph for graph in data["graphs"] if graph["id"] == out["primary"])["verdict"] = "eligible"
    with pytest.raises(DocumentError, match="is eligible, with reasons against it"):
        check(data)


def test_a_model_that_is_there_twice() -> None:
    data: Any = copy.deepcopy(document(audit(sample())))
    data["models"].append(data["models"][0])
    with pytest.raises(DocumentError, match="is there twice"):
        check(data)


@pytest.mark.parametrize(
    ("path", "wrong", "says"),
    [
        (("graphs",), [], "confirmed, but none of its graphs is"),
        (("verdict",), "fine", "a probe has the verdict 'fine'"),
        (("graphs", 0, "verdict"), "fine", "a probe has the verdict 'fine'"),
        (("graphs", 0, "gates", 0, "numbers"), "x", r"gates\[0\].numbers is no object"),
        (("graphs", 0, "gates", 0, "numbers"), {"widths": {"2": 1}}, r"widths\[0\] is no object"),
        (("files",), True, "files is no object"),
        (
            ("graphs", 0, "verify_cost", 0, "points", 0, "median_ms"),
            10**400,
            r"verify_cost\[0\].points\[0\].median_ms is 1000",
        ),
        (("graphs", 0, "gates", 0, "thresholds"), {}, r"thresholds has no 'precision'"),
        (("graphs", 0, "verify_cost", 0, "points", 0, "median_ms"), float("nan"), "median_ms is nan"),
    ],
)
def test_a_probe_that_was_edited(path: tuple[Any, ...], wrong: Any, says: str) -> None:
    data: Any = probe()
    holder = data
    for key in path[:-1]:
        holder = holder[key]
    holder[path[-1]] = wrong
    with pytest.raises(DocumentError, match=says):
        check(data)
