"""The README does not drift from the program."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from auditor import exits
from auditor.cli import main
from rules.registry import all_rules
from rules.rule import Severity
from tests.conftest import Snapshot

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
EFFECTS = {Severity.ERROR: "out", Severity.WARNING: "unresolved", Severity.NOTE: "advice"}


def replaced(block: str, content: str) -> str:
    """The README with other content between `<!-- block -->` and `<!-- /block -->`."""
    start, end = f"<!-- {block} -->\n", f"<!-- /{block} -->"
    before, _, rest = README.read_text("utf-8").partition(start)
    return before + start + content + "\n" + end + rest.partition(end)[2]


def test_help(snapshot: Snapshot, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    shown = []
    for arguments in (["--help"], ["scan", "--help"]):
        assert main(arguments) == exits.OK
        shown.append(f"$ spec-audit {' '.join(arguments)}\n{capsys.readouterr().out.rstrip()}\n")
    snapshot(README, replaced("help", "```text\n" + "\n".join(shown) + "```"))


def test_rules(snapshot: Snapshot) -> None:
    rows = [
        f"| [`{rule.id}`](docs/rules/{rule.id}.md) | {EFFECTS[rule.severity]} | {rule.summary} |"
        for rule in all_rules()
    ]
    snapshot(README, replaced("rules", "\n".join(["| rule | verdict | |", "| --- | --- | --- |", *rows])))


def test_exit_statuses() -> None:
    listed = re.findall(r"^\| (\d+) \|", README.read_text("utf-8"), re.MULTILINE)
    assert [int(status) for status in listed] == [
        exits.OK,
        exits.SOMETHING,
        exits.USAGE,
        exits.NOTHING,
        exits.CRASH,
        exits.INTERRUPTED,
        exits.CLOSED,
    ]


def test_links_lead_somewhere() -> None:
    links = re.findall(r"\]\(([^)#:]+)\)", README.read_text("utf-8"))
    assert links
    assert [link for link in links if not (ROOT / link).exists()] == []


def test_the_ci_runs_the_commands_of_the_readme() -> None:
    names = re.findall(r"<!-- ci: (\w+) -->\n```sh\npython3 ", README.read_text("utf-8"))
    assert f"for name in {' '.join(names)}; do" in (ROOT / ".ci" / "run").read_text("utf-8")
