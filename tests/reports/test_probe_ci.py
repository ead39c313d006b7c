"""The probe's formats for CI, from reports as the probe writes them."""

from __future__ import annotations

from typing import Any

import junitparser
import pytest
from markdown_it import MarkdownIt

from probes.cli import _probe_status
from reports import probe_ci
from tests.reports.probe_sample import ab, ab_row
from tests.reports.sample import EVIL
from tests.reports.test_html import Page


def gate(name: str, verdict: str, reason: str = "as it should be") -> dict[str, Any]:
    return {"gate": name, "verdict": verdict, "reason": reason}


def made(
    verdict: str, *gates: dict[str, Any], status: str = "ok", name: str = "dense.aimodel", loop: Any = None
) -> dict[str, Any]:
    """A report with the keys that the formats read; a second graph is refuted and does not decide."""
    why = [f"gate {item['gate']}: {item['reason']}" for item in gates if item["verdict"] != "confirmed"]
    plateau = {"first": 1, "last": 4, "c_v": 1.0, "bar": 1.02, "k": 3}
    stairs = {"plateaus": [plateau], "reasons": [], "avoid": [4], "measure_next": []}
    cost = {"context": 128, "scope": "interpreter", "status": "ok", "reasons": [], "staircase": stairs}
    graph = {"name": "main", "verdict": verdict, "why": why, "not_run": "", "gates": list(gates), "verify_cost": [cost]}
    graph["ab"] = loop
    refused = cost | {"status": "refused", "reasons": ["anchors moved"]}
    other = graph | {"ab": None, "name": "prefill", "gates": [gate("rows", "refuted", "no")], "verify_cost": [refused]}
    return {
        "bundle": name, "status": status, "verdict": verdict, "scope": "interpreter", "decode_graph": "main",
        "reasons": ["the child died"] if status == "refused" else [], "graphs": [graph, other],
    }  # fmt: skip


LOOP = ab(
    ab_row("7"),
    ab_row("8", status="spoiled", spoiled=["contention | load"], speedup=2.2),
    not_run=[{"drafter": "tree", "policy": "adaptive", "reason": "no plateau"}],
)
REPORTS = {
    "confirmed": made("confirmed", gate("rows", "confirmed")),
    "refuted": made("refuted", gate("rows", "refuted", "wrong mask")),
    "partial": made("partial", gate("rows", "partial", "between the bounds")),
    "refused": made("partial", status="refused"),
    "loop": made("confirmed", gate("rows", "confirmed"), loop=LOOP),
    "no loop": made(
        "confirmed", gate("rows", "confirmed"), loop=LOOP | {"status": "refused", "reasons": ["no rewind"]}
    ),
    "half a loop": made("confirmed", gate("rows", "confirmed"), loop=LOOP | {"status": "interrupted"}),
}


@pytest.mark.parametrize("fail_on", ["never", "refuted", "partial"])
@pytest.mark.parametrize("name", REPORTS)
def test_junit_fails_where_the_exit_status_does(name: str, fail_on: str) -> None:
    report = REPORTS[name]
    (suite,) = list(junitparser.JUnitXml.fromstring(probe_ci.junit(report, fail_on).encode()))
    assert (suite.failures > 0) is bool(_probe_status(report, fail_on))
    cases = {f"{case.classname} {case.name}": case for case in suite}
    assert cases["dense.aimodel:prefill gate rows"].is_skipped, "a graph that does not decide fails nothing"
    assert cases["dense.aimodel:prefill verify-cost at context 128"].is_skipped
    assert cases["dense.aimodel:main verify-cost at context 128"].is_passed


def test_the_loop_is_in_both_formats() -> None:
    (suite,) = list(junitparser.JUnitXml.fromstring(probe_ci.junit(REPORTS["no loop"], "never").encode()))
    (loop,) = [case for case in suite if case.name == "ab"]
    assert loop.is_skipped
    assert loop.result[0].message == "refused: no rewind"
    said = probe_ci.markdown(REPORTS["no loop"])
    assert "drafts on against off (interpreter: program and plumbing, no device's cost): refused\n\n- no rewind" in said
    done = probe_ci.markdown(REPORTS["loop"])
    assert "| code | 256 | ngram | 7 | 2.61 | 53.7 | 1.96x (1.90-2.01) gains | yes | 1.2% |" in done
    assert "left out: contention \\| load | yes |" in done
    assert "2.20" not in done
    assert "| code | 256 | tree | adaptive | - | - | not run: no plateau | - | - |" in done
    assert "**ab**" not in probe_ci.markdown(REPORTS["confirmed"])


def test_markdown_says_what_decides() -> None:
    text = probe_ci.markdown(REPORTS["refuted"])
    assert text.startswith("## ❌ `dense.aimodel`: refuted (")
    assert "interpreter" in text.splitlines()[0]
    assert "| ❌ refuted | rows | wrong mask |" in text
    assert "- plateau S=1..4 c\\_v 1.00: K=3 (interpreter), pays above 1.02 tokens a round" in text
    assert "- anchors moved" in text
    assert "refused" in probe_ci.markdown(REPORTS["refused"]).splitlines()[0]


def test_hostile_text_stays_text() -> None:
    report = made("refuted", gate("rows", "refuted", EVIL), name=EVIL)
    text = probe_ci.markdown(report)
    assert "<script" not in text
    page = Page(MarkdownIt("commonmark").enable("table").render(text))
    assert "<script>alert('x')</script>\"&\\x1b[31m\\u202ered\\x0anext" in page.text
    (suite,) = list(junitparser.JUnitXml.fromstring(probe_ci.junit(report, "refuted").encode()))
    assert any("<script>alert('x')</script>\"&\\x1b[31m\\u202ered\\x0anext" in case.classname for case in suite)
