from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from reports.html import HtmlReport
from rules.audit import audit
from rules.expect import Expectation
from rules.facts import Scan
from rules.verdict import Verdict
from tests.conftest import Snapshot
from tests.reports.sample import hostile, sample

SNAPSHOTS = Path(__file__).parent / "snapshots"
VOID = {"meta", "br", "hr", "img", "link", "input"}


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

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] != "style":
            self.texts.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.texts).split())


def render(scan: Scan) -> str:
    return HtmlReport().render(audit(scan, (Expectation("dense", Verdict.OUT),)))


def test_whole_output(snapshot: Snapshot) -> None:
    snapshot(SNAPSHOTS / "sample.html", render(sample()))


@pytest.mark.parametrize("scan", [sample(), hostile(), Scan("empty", (), ())], ids=["sample", "hostile", "empty"])
def test_nests_and_asks_for_nothing(scan: Scan) -> None:
    page = Page(render(scan))
    assert not {tag for tag, _ in page.tags} & {"script", "link", "img", "iframe", "object", "base", "form"}
    links = [attrs[name] for _, attrs in page.tags for name in ("src", "href", "action") if name in attrs]
    assert all(link and link.startswith("#") for link in links)
    assert not re.search(r"url\(|@import", render(scan))
    assert not [name for _, attrs in page.tags for name in attrs if name.startswith("on")]


def test_links_lead_to_a_section() -> None:
    page = Page(render(sample()))
    targets = {attrs["id"] for _, attrs in page.tags if "id" in attrs}
    links = {(attrs["href"] or "").removeprefix("#") for tag, attrs in page.tags if tag == "a"}
    assert links
    assert links == targets


def test_says_what_matters() -> None:
    text = Page(render(sample())).text
    assert "models/dense/recipe.toml#dense must be out and is eligible" in text
    assert "dropping --static-ids is no fix: without it the graph is out by row-kernel" in text
    assert "export_model.py:31 dynamic_shapes None under args.static_ids" in text
    assert "import of `toolkit.heads` was not found" in text
    assert "broken.py : not Python: line 3: unexpected indent" in text
    assert "ship twin : the same run exports it, and it is eligible" in text


def test_hostile_text_stays_text() -> None:
    html = render(hostile())
    assert "<script" not in html
    assert "\x1b" not in html
    assert "\u202e" not in html
    assert "<script>alert('x')</script>\"&\\x1b[31m\\u202ered\\x0anext" in Page(html).text
    html.encode("utf-8")
