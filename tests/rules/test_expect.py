from __future__ import annotations

import pytest

from rules.audit import audit
from rules.examples import DENSE, HYBRID, PINNED, query
from rules.expect import Expectation, FailOn, broken, fails, matches
from rules.facts import FileResult, FileStatus, GraphFacts, Scan
from rules.fixes import judge_graph
from rules.models import Model, models
from rules.verdict import Verdict
from tests.rules.graphs import graph

ID = "models/x/recipe.toml#x"


def listed(facts: GraphFacts) -> tuple[Model, ...]:
    return models([judge_graph(graph(facts, recipe=ID))])


@pytest.mark.parametrize("name", [ID, "x", "models/*", "*#x", "x*", "*"])
def test_a_model_goes_by_its_identifier_its_table_or_a_pattern(name: str) -> None:
    assert broken([Expectation(name, Verdict.ELIGIBLE)], listed(DENSE)) == ()
    (item,) = broken([Expectation(name, Verdict.ELIGIBLE)], listed(PINNED))
    assert item.got is Verdict.OUT
    assert item.message == f"{ID} must be eligible and is out"


@pytest.mark.parametrize(
    ("pattern", "identifier", "holds"),
    [
        ("pine-kernels*", "models/pine/recipe.toml#pine-kernels-dynamic", True),
        ("pine*dynamic", "models/pine/recipe.toml#pine-kernels-dynamic", True),
        ("kernels*", "models/pine/recipe.toml#pine-kernels-dynamic", False),
        ("export_*", "conversion/export_dense.py", False),
        ("*[s1]*", "conversion/export.py[s1]", True),
        ("*[s1]*", "conversion/export.py", False),
    ],
)
def test_a_pattern_fits_the_whole_identifier_or_the_whole_table(pattern: str, identifier: str, holds: bool) -> None:
    assert matches(pattern, identifier) is holds


def test_unresolved_is_not_out() -> None:
    window = GraphFacts(DENSE.kind, DENSE.states, query(8), DENSE.logits, DENSE.kv)
    assert broken([Expectation("x", Verdict.OUT)], listed(window))


def test_an_expectation_of_nothing_is_broken() -> None:
    (item,) = broken([Expectation("models/x/recipe.toml#y", Verdict.OUT)], listed(HYBRID))
    assert item.got is None
    assert item.message == f"no model is called 'models/x/recipe.toml#y'; did you mean '{ID}'?"


@pytest.mark.parametrize(
    ("level", "holds", "missed", "out", "unresolved"),
    [
        (FailOn.NEVER, False, False, False, False),
        (FailOn.EXPECT, False, True, False, False),
        (FailOn.OUT, False, True, True, False),
        (FailOn.UNRESOLVED, False, True, True, True),
    ],
)
def test_levels_include_those_before(level: FailOn, holds: bool, missed: bool, out: bool, unresolved: bool) -> None:
    window = GraphFacts(DENSE.kind, DENSE.states, query(8), DENSE.logits, DENSE.kv)
    wish = broken([Expectation("x", Verdict.OUT)], listed(DENSE))
    assert fails(level, listed(DENSE), (), ()) is holds
    assert fails(level, listed(DENSE), wish, ()) is missed
    assert fails(level, listed(PINNED), (), ()) is out
    assert fails(level, listed(window), (), ()) is unresolved
    assert fails(level, listed(DENSE), (), [FileResult("a.py", FileStatus.ERROR, "not UTF-8")]) is unresolved


def test_an_audit_does_not_depend_on_the_order_of_the_scan() -> None:
    graphs = (graph(PINNED, script="b.py"), graph(DENSE, script="a.py"), graph(HYBRID, script="c.py", recipe=ID))
    files = (FileResult("b.py", FileStatus.EXPORTS), FileResult("a.py", FileStatus.EXPORTS))
    one = audit(Scan(".", files, graphs))
    other = audit(Scan(".", files[::-1], graphs[::-1]))
    assert one == other
    assert [one.count(verdict) for verdict in Verdict] == [1, 2, 0]
