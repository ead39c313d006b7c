from __future__ import annotations

from pathlib import Path

from reports.text import TextReport
from rules.audit import audit
from rules.expect import Expectation
from rules.facts import Scan
from rules.verdict import Verdict
from tests.conftest import Snapshot
from tests.reports.sample import hostile, sample

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
