from __future__ import annotations

import base64
import hashlib
import re
from datetime import date
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from reports.html import HtmlReport
from reports.html import render as render_review
from reports.json_report import document
from rules.audit import Policy, audit
from rules.documents import check
from rules.examples import DENSE
from rules.expect import Expectation
from rules.facts import Place, Scan
from rules.fingerprints import fingerprints
from rules.review import Given, review
from rules.verdict import Verdict
from rules.waivers import Waiver
from tests.conftest import Snapshot
from tests.reports.large import large
from tests.reports.probe_sample import ab, ab_row, cost, gate, plan_of, probe
from tests.reports.sample import EVIL, hostile, sample
from tests.rules.graphs import graph

SNAPSHOTS = Path(__file__).parent / "snapshots"
VOID = {"meta", "br", "hr", "img", "link", "input", "wbr", "col"}


class Page(HTMLParser):
    """The tags and texts of a page; fails where tags do not nest."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] not in ("style", "script"):
            self.texts.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.texts).split())


SHIPPED = "models/dense/recipe.toml#dense"


def render(scan: Scan) -> str:
    return HtmlReport().render(audit(scan, (Expectation("dense", Verdict.OUT),)))


def full(*probes: dict[str, Any], plans: tuple[dict[str, Any], ...] = (), source_url: str = "") -> str:
    """The page of the sample with probes and plans."""
    data = document(audit(sample()))
    given = [Given(data, "probe.json", SHIPPED) for data in probes]
    tables = [Given(data, "plan.json") for data in plans]
    return render_review(review(data, given, tables), source_url=source_url)


def hostile_page() -> str:
    """Everything hostile: the scan, a probe of it, a plan, and the template of links."""
    scan = document(audit(hostile()))
    scan["provenance"] = {"command": [EVIL], "configuration": EVIL, "commit": EVIL, "source_url": EVIL}
    data = probe(EVIL, name=EVIL, scope=EVIL, environment={EVIL: EVIL, "nested": {EVIL: [EVIL]}})
    data["graphs"][0]["gates"] = [gate(EVIL, EVIL, EVIL)]
    data["graphs"][0]["why"] = [EVIL]
    data["graphs"][0]["notes"] = data["notes"] = [EVIL]
    data["graphs"][0]["verify_cost"][0]["reasons"] = [EVIL]
    given = Given(data, EVIL, scan["models"][0]["id"])
    table = Given(plan_of(EVIL, EVIL), EVIL, scan["models"][1]["id"])
    return render_review(review(scan, [given], [table]), [(EVIL, EVIL)], "")


def test_whole_output(snapshot: Snapshot) -> None:
    snapshot(SNAPSHOTS / "sample.html", render(sample()))


def test_whole_output_with_probes(snapshot: Snapshot) -> None:
    page = full(probe(), plans=(plan_of("phone"),), source_url="https://example.org/{path}#L{line}")
    snapshot(SNAPSHOTS / "review.html", page)


PAGES = {
    "sample": lambda: render(sample()),
    "hostile": hostile_page,
    "empty": lambda: render(Scan("empty", (), ())),
    "probed": lambda: full(probe(), plans=(plan_of("phone"),)),
}


@pytest.mark.parametrize("name", PAGES)
def test_nests_and_asks_for_nothing(name: str) -> None:
    html = PAGES[name]()
    page = Page(html)
    assert not {tag for tag, _ in page.tags} & {"link", "img", "iframe", "object", "base", "embed", "source"}
    assert [attrs for tag, attrs in page.tags if tag == "script"] == [{}]
    links = [attrs[name] for _, attrs in page.tags for name in ("src", "href", "action") if name in attrs]
    assert all(link and link.startswith("#") for link in links)
    assert not re.search(r"url\(|@import", html)
    assert not [name for _, attrs in page.tags for name in attrs if name.startswith("on")]


@pytest.mark.parametrize("name", PAGES)
def test_the_policy_allows_our_script_alone(name: str) -> None:
    html = PAGES[name]()
    (script,) = re.findall(r"<script>(.*?)</script>", html, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    (policy,) = [attrs["content"] for _, attrs in Page(html).tags if attrs.get("http-equiv")]
    assert policy == f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'"


@pytest.mark.parametrize("name", PAGES)
def test_links_lead_somewhere_and_anchors_are_unique(name: str) -> None:
    page = Page(PAGES[name]())
    targets = [attrs["id"] for _, attrs in page.tags if "id" in attrs]
    assert len(targets) == len(set(targets))
    links = {(attrs["href"] or "").removeprefix("#") for tag, attrs in page.tags if tag == "a"}
    assert links <= set(targets)


def test_every_model_has_a_section_and_a_row() -> None:
    page = Page(render(sample()))
    articles = {attrs["id"] for tag, attrs in page.tags if tag == "article"}
    rows = {attrs["data-m"] for _, attrs in page.tags if "data-m" in attrs}
    assert articles == rows
    assert len(articles) == len(audit(sample()).models)


def test_says_what_matters() -> None:
    text = Page(render(sample())).text
    assert "models/dense/recipe.toml#dense must be out and is eligible" in text
    assert "dropping --static-ids is no fix: without it the graph is out by row-kernel" in text
    assert "export_model.py:31 dynamic_shapes None under args.static_ids" in text
    assert "import of toolkit.heads was not found" in text
    assert "broken.py : not Python: line 3: unexpected indent" in text
    assert "ship twin : the same run exports it, and it is eligible" in text
    assert "2 Eligible" not in text
    assert "No probe of out/model was given" in text


def test_the_decision_comes_first() -> None:
    text = Page(full(probe())).text
    order = [
        text.index(word) for word in ("1 ● Eligible and confirmed", "Out, fixable by a flag", "Not a decoder", "Models")
    ]
    assert order == sorted(order)


def test_a_confirmed_model_says_where_and_which_draft_length() -> None:
    text = Page(full(probe())).text
    assert "Draft K=2 if a round brings more than 1.02 tokens, or K=7 if a round brings more than 1.49 tokens." in text
    assert "confirmed (device) 2, 7" in text
    assert "1.49 tokens a round" in text
    assert "Avoid K=3, 8: just over a step." in text
    assert "none: no end" in text
    assert "Apple M4 Max" in text


def test_an_interpreter_is_never_a_device() -> None:
    text = Page(full(probe(scope="interpreter"))).text
    assert "Eligible and confirmed" not in text
    assert "Drafting can ship" not in text
    assert "confirmed (interpreter) 2, 7 (interpreter)" in text
    assert "These are no device's costs, and no K for one." in text
    assert "Draft K" not in text


def test_a_refuted_model_names_no_draft_length() -> None:
    text = Page(full(probe(said={"rewind": "refuted"}))).text
    assert "Cannot verify drafts as shipped." in text
    assert "gate rewind: rewind says so" in text
    assert "refuted (device) -" in text
    assert "Draft K" not in text


def test_a_refused_sweep_is_not_drawn() -> None:
    page = Page(full(probe(costs=[cost(status="refused")])))
    assert "svg" not in {tag for tag, _ in page.tags}
    assert "the anchors drifted by 12%" in page.text


def test_a_cost_that_is_no_number_is_not_drawn() -> None:
    broken = cost()
    broken["points"][3] |= {"c_v": float("nan"), "c_v_low": float("nan"), "c_v_high": float("inf")}
    html = full(probe(costs=[broken]))
    (plot,) = re.findall(r"<svg.*?</svg>", html, re.DOTALL)
    assert "nan" not in plot
    assert "inf" not in plot


def test_plots_have_names_and_say_what_they_show() -> None:
    page = Page(full(probe()))
    (plot,) = [attrs for tag, attrs in page.tags if tag == "svg"]
    ids = {attrs.get("id") for _, attrs in page.tags}
    assert plot["role"] == "img"
    assert set((plot["aria-labelledby"] or "").split()) <= ids
    assert "Flat at 1.47 from S=4 to 8." in page.text
    assert "Plateau tops: K=2, K=7. Avoid K=3, 8, just over a step." in page.text


def test_measured_points_stand_where_their_cost_is() -> None:
    """The geometry of the plot: higher costs stand higher, in proportion."""
    (plot,) = re.findall(r"<svg.*?</svg>", full(probe()), re.DOTALL)
    (path,) = re.findall(r'<path class="dots" d="([^"]+)"', plot)
    dots = [float(y) for y in re.findall(r"M[\d.]+ ([\d.]+)h0", path)]
    one, five, ten = dots[0], dots[2], dots[5]
    assert (one - five) / (one - ten) == pytest.approx((1.46 - 1) / (2.29 - 1), abs=0.01)
    assert plot.count('class="chosen"') == 2
    assert plot.count('class="avoided"') == 2
    (whiskers,) = re.findall(r'<path class="whisker" d="([^"]+)"', plot)
    assert whiskers.count("M") == 12
    assert plot.count('class="level"') == 3


def test_links_are_safe_and_quoted() -> None:
    data = document(audit(Scan("x", (), (graph(DENSE),))))
    data["graphs"][0]["facts"]["query"]["evidence"] = [
        {"path": path, "line": 7, "note": ""} for path in ('a b/"<x>.py', "../up.py", "/etc/passwd", "a/../../b.py")
    ]
    html = render_review(review(data), source_url="https://example.org/{path}#L{line}")
    assert 'href="https://example.org/a%20b/%22%3Cx%3E.py#L7"' in html
    for path in ("up.py", "passwd", "b.py"):
        assert f"{path}#L7" not in html
        assert f"{path}:7" in html


def test_a_link_by_commit_needs_the_commit() -> None:
    scan = document(audit(Scan("x", (), (graph(DENSE),))))
    template = "https://example.org/{commit}/{path}"
    assert "https://" not in render_review(review(scan), source_url=template)
    scan["provenance"]["commit"] = "c" * 40
    assert f"https://example.org/{'c' * 40}/export_model.py" in render_review(review(scan), source_url=template)


def test_hostile_text_stays_text() -> None:
    html = hostile_page()
    assert html.count("<script") == 1
    assert "\x1b" not in html
    assert "\u202e" not in html
    assert "<script>alert('x')</script>\"&\\x1b[31m\\u202ered\\x0anext" in Page(html).text
    html.encode("utf-8")


def test_the_same_review_gives_the_same_bytes() -> None:
    assert full(probe(), plans=(plan_of("phone"),)) == full(probe(), plans=(plan_of("phone"),))


def test_a_large_page_is_small_enough() -> None:
    """300 graphs and 60 probes: at most 3 MB, the longest template of links included."""
    found = large()
    assert (len(found.scan["graphs"]), sum(len(item.probes) for item in found.models)) == (300, 60)
    page = render_review(found, source_url="https://example.org/organisation/repository/blob/main/{path}#L{line}")
    assert len(page.encode()) <= 3_000_000


def test_measured_speedups_by_workload() -> None:
    data = probe()
    spoiled = ab_row("K=8", status="spoiled", spoiled=["the baseline left its band"], speedup=2.1)
    failed = ab_row("K=4", lossless=False, interval=None, speedup=0.95, predicted=None, effect="even")
    data["graphs"][0]["ab"] = ab(ab_row(), spoiled, failed, ab_row("K=5", lossless=False, rerun={"lossless": True}))
    text = Page(full(data)).text
    assert "code K=7 ngram 2.61 53.7 1.96× 1.90–2.01 gains yes 1.2% 256 tokens 1.88×" in text
    assert "code K=8 ngram 2.61 53.7 left out: the baseline left its band yes" in text
    assert "2.10×" not in text
    assert "code K=4 ngram 2.61 53.7 0.95× not told apart from 1 NO 1.2% 256 tokens -" in text
    assert "yes, when run again alone" in text


def test_a_record_says_how_it_was_made_what_it_cost_and_what_was_not_run() -> None:
    data = probe(scope="interpreter", costs=[])
    said = {"tok_s": 27.0, "own_tok_s": 27.2, "speed_agrees": True, "difference": 0.0074}
    skipped = [{"drafter": "tree", "policy": "adaptive", "reason": "the staircase has no plateau"}]
    sweep = cost("interpreter", context=379)
    data["graphs"][0]["ab"] = ab(ab_row(), verify_cost=sweep, shipped=said, not_run=skipped)
    text = Page(full(data)).text
    for line in (
        "Runs with drafts against runs without: done Timed on the interpreter: no tokens per second and no speed-up of",
        "code: a prompt of 251 tokens, budget 256; without drafts 27.2 tokens/s; a baseline is valid from 26.5 to 28.1",
        "Agrees with the shipped runner: 27.20 tok/s here, 27.00 there (+0.7%, 1.5% allowed).",
        "Cost of a verify pass, code, budget 256 interpreter, context 379",
        "code (interpreter) adaptive tree - - not run: the staircase has no plateau - - 256 tokens -",
        "tree adaptive was not run on code: the staircase has no plateau.",
        "Costs were measured at one context length (379 tokens)",
    ):
        assert line in text, line
    assert (
        "The cost of a verify pass was not measured"
        not in text[text.index("Runs with drafts") : text.index("Facts and")]
    )


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"status": "refused", "reasons": ["gate rewind forbids it"], "workloads": []}, "without: refused gate rewind"),
        ({"status": "interrupted"}, "without: interrupted, this is what there was until then"),
        (
            {"forced": True, "notes": ["losslessness caught it"]},
            "forced, although a gate forbids it losslessness caught",
        ),
    ],
)
def test_a_record_that_is_not_whole(changes: dict[str, Any], line: str) -> None:
    data = probe()
    data["graphs"][0]["ab"] = {**ab(ab_row()), **changes}
    assert line in Page(full(data)).text


def test_only_spoiled_rows_measure_nothing() -> None:
    data = probe()
    data["graphs"][0]["ab"] = ab(ab_row(status="spoiled", spoiled=["contention"]))
    assert "No valid run with drafts was timed against one without" in Page(full(data)).text


def policy() -> Policy:
    """Of the sample: one waiver in each state, and a baseline that knows one finding and lost another."""
    waivers = (
        Waiver(("static-query",), "the <old> phone", model="flag"),
        Waiver(("moe",), "measured", model="nobody"),
        Waiver(("hybrid-state",), "next year", model="*", expires=date(2026, 1, 31)),
        Waiver(("row-kernel",), "", place=Place("toy.py", 4, "comment"), line=5, problem="it has no reason"),
    )
    tower = next(item for item in audit(sample()).graphs if item.graph.script == "tower.py")
    known = frozenset((fingerprints(tower)[0], "gone"))
    return Policy(waivers=waivers, baseline=known, today=date(2026, 2, 1))


def test_waivers_and_the_baseline_are_shown_by_their_state() -> None:
    page = HtmlReport().render(audit(sample(), policy=policy()))
    text = Page(page).text
    for said in (
        "1 waiver in force, 1 waiver unusable, 1 waiver expired, 1 waiver stale, 1 known finding in the baseline:",
        "In force 1 static-query (flag in the configuration) silences 1: the <old> phone",
        "Stale: these silence nothing 1 moe (nobody in the configuration) silences nothing: remove it",
        "Expired: these silence nothing any more 1 hybrid-state (* in the configuration) expired on 2026-01-31: look",
        "Unusable: these silence nothing 1 row-kernel (toy.py:4) is not used: it has no reason",
        "Baseline: 2 recorded findings; 1 known in this scan, 1 no longer there (--update-baseline forgets them).",
    ):
        assert said in text, said


def test_a_silenced_finding_says_so_in_its_place_and_keeps_its_verdict() -> None:
    data = document(audit(sample(), policy=policy()))
    page = render_review(review(data))
    section = page[page.index('<article id="m-models-flag-recipe-toml-flag"') :]
    text = Page(section[: section.index("</article>")] + "</article>").text
    assert "Waived: the <old> phone" in text
    assert "Every reason for this verdict is waived or in the baseline" in text
    whole = Page(page).text
    assert "static-query (waived)" in whole
    assert whole.count("Waived:") == 1
    assert "In the baseline: not new." in whole
    assert "(in the baseline)" in whole
    assert Page(render(sample())).text.count("waived") == 0


def test_without_waivers_and_in_a_report_that_knows_none() -> None:
    scan = document(audit(sample()))
    assert "No waivers. No baseline." in Page(render_review(review(scan))).text
    del scan["waivers"], scan["baseline"]
    for item in scan["graphs"]:
        for finding in (*item["reasons"], *item["advice"]):
            del finding["waived"], finding["known"]
    for model in scan["models"]:
        del model["silenced"]
    assert check(scan)
    assert "No waivers. No baseline." in Page(render_review(review(scan))).text
