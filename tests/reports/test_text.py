from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from reports.text import TextReport
from reports.wording import ranges
from rules.audit import audit
from rules.examples import DENSE
from rules.expect import Expectation
from rules.facts import Fact, GraphFacts, Logits, Place, Scan
from rules.verdict import Verdict
from tests.conftest import Snapshot
from tests.reports.sample import hostile, sample
from tests.rules.graphs import graph

SNAPSHOTS = Path(__file__).parent / "snapshots"


def test_whole_output(snapshot: Snapshot) -> None:
    expectations = (Expectation("dense", Verdict.OUT), Expectation("flag", Verdict.OUT))
    snapshot(SNAPSHOTS / "sample.txt", TextReport().render(audit(sample(), expectations)))


def test_colour_adds_nothing_but_colour() -> None:
    found = audit(sample())
    plain, coloured = TextReport().render(found), TextReport(colour=True).render(found)
    assert "\x1b[32meligible" in coloured
    stripped = coloured
    for code in ("32", "31", "33", "1", "0", "1;31"):
        stripped = stripped.replace(f"\x1b[{code}m", "")
    assert stripped == plain


def test_hostile_names_cannot_steer_the_terminal() -> None:
    text = TextReport().render(audit(hostile()))
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "\\x1b[31m\\u202ered\\x0anext" in text
    assert "caf\\udce9.py" in text


def test_nothing_found() -> None:
    assert TextReport().render(audit(Scan("x", (), ()))).startswith("No graph was found")


def test_facts_that_are_not_known_for_one_reason_are_told_together() -> None:
    here, there = Place("toy.py", 3, "the import of `toolkit`"), Place("toy.py", 9, "a call")
    facts = GraphFacts.unknown("no export call is reached", here)
    text = TextReport().render(audit(Scan("x", (), (graph(facts),))))
    assert text.count("no export call is reached") == 1
    assert "unknown-kind, unknown-states, unknown-query, unknown-logits, unknown-kv: no export call is reached" in text
    apart = replace(facts, query=Fact.unknown("no export call is reached", there))
    text = TextReport().render(audit(Scan("x", (), (graph(apart),))))
    assert "unknown-kind, unknown-states: no export call is reached" in text
    assert "unknown-query: query unknown: no export call is reached" in text
    assert "unknown-logits, unknown-kv: no export call is reached" in text


def test_another_run_without_a_graph_is_told_by_its_command_line() -> None:
    facts = GraphFacts.unknown("no export call is reached", Place("toy.py", 3))
    runs = [replace(graph(facts, argv=("--step", step)), graph="*", id=f"toy.py::*@-{step}") for step in ("a", "b")]
    text = TextReport().render(audit(Scan("x", (), tuple(runs))))
    assert "also    export_model.py --step b: unresolved by unknown-kind" in text


def test_a_place_is_told_once_with_its_note() -> None:
    where = Place("toy.py", 9, "one row is left here")
    logits = Fact(Logits.LAST, (Place("toy.py", 3, "export call"), Place("toy.py", 9), where))
    text = TextReport().render(audit(Scan("x", (), (graph(replace(DENSE, logits=logits)),))))
    assert text.count("      toy.py:9") == 1
    assert "toy.py:9  one row is left here" in text


@pytest.mark.parametrize(
    ("numbers", "text"),
    [([], ""), ([9], "9"), ([5, 6], "5, 6"), ([5, 6, 7], "5..7"), ([1, 3, 4, 5, 9, 10], "1, 3..5, 9, 10")],
)
def test_ranges(numbers: list[int], text: str) -> None:
    assert ranges(numbers) == text
