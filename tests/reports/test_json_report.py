from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from reports.json_report import JsonReport, document
from rules.audit import audit
from rules.expect import Expectation
from rules.facts import Scan
from rules.verdict import Verdict
from tests.conftest import Snapshot
from tests.reports.sample import hostile, sample

SNAPSHOTS = Path(__file__).parent / "snapshots"
EXPECTATIONS = (Expectation("dense", Verdict.OUT), Expectation("nobody", Verdict.ELIGIBLE))


def validator() -> jsonschema.Draft202012Validator:
    schema = json.loads((files("reports") / "schemas" / "scan-1.schema.json").read_text("utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


@pytest.mark.parametrize("scan", [sample(), hostile(), Scan("empty", (), ())], ids=["sample", "hostile", "empty"])
def test_valid_against_the_shipped_schema(scan: Scan) -> None:
    validator().validate(json.loads(JsonReport().render(audit(scan, EXPECTATIONS))))


def test_the_schema_refuses() -> None:
    """A schema that accepts everything would make the test above worthless."""
    for path, wrong in (
        (("schema",), "spec-audit.scan/2"),
        (("graphs", 0, "verdict"), "maybe"),
        (("graphs", 0, "facts", "query", "value"), "static"),
        (("graphs", 0, "facts", "states", 0, "role"), "kv"),
        (("graphs", 0, "reasons"), [{"rule": "x"}]),
        (("models", 0, "fixable_by"), "hope"),
    ):
        data: Any = document(audit(sample()))
        holder = data
        for key in path[:-1]:
            holder = holder[key]
        holder[path[-1]] = wrong
        assert not validator().is_valid(data), path


def test_whole_output(snapshot: Snapshot) -> None:
    snapshot(SNAPSHOTS / "sample.json", JsonReport().render(audit(sample(), EXPECTATIONS)))


def test_the_primary_reason_comes_first_and_decides() -> None:
    for graph in document(audit(sample()))["graphs"]:
        if graph["verdict"] == "out":
            assert graph["reasons"][0]["severity"] == "error"


def test_unknown_states_are_null_not_empty() -> None:
    from dataclasses import replace

    from rules.examples import DENSE
    from rules.facts import Fact
    from tests.rules.graphs import graph

    facts = replace(DENSE, states=Fact.unknown("nobody knows"))
    (item,) = document(audit(Scan("x", (), (graph(facts),))))["graphs"]
    assert item["facts"]["states"] is None
    assert item["facts"]["states_reason"] == "nobody knows"


def test_a_lone_surrogate_survives_as_an_escape() -> None:
    data = JsonReport().render(audit(hostile())).encode("utf-8", "backslashreplace")
    assert any(file["path"] == "caf\udce9.py" for file in json.loads(data)["files"])
