from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from auditor import exits
from auditor.cli import main
from reports.json_report import document
from rules.audit import audit
from rules.examples import DENSE, PINNED
from rules.facts import Scan
from tests.reports.probe_sample import plan_of, probe
from tests.rules.graphs import graph

RECIPE = "models/dense/recipe.toml#dense"
OTHER = "models/other/recipe.toml#other"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A scan of two models of one bundle name, one of one model, a probe and a plan."""
    monkeypatch.chdir(tmp_path)
    dense = graph(DENSE, recipe=RECIPE)
    save("scan.json", document(audit(Scan("zoo", (), (dense,)))))
    save("twins.json", document(audit(Scan("zoo", (), (dense, graph(PINNED, recipe=OTHER))))))
    save("empty.json", document(audit(Scan("zoo", (), ()))))
    save("probe.json", probe())
    save("plan.json", plan_of("phone"))
    return tmp_path


def save(name: str, data: Any) -> None:
    Path(name).write_text(json.dumps(data), encoding="utf-8")


def usage(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["report", *arguments]) == exits.USAGE
    captured = capsys.readouterr()
    assert captured.out == ""
    return captured.err


def test_a_page_of_everything(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", "scan.json", "probe.json", f"plan.json#{RECIPE}", "--output", "page.html"]) == exits.OK
    page = Path("page.html").read_text("utf-8")
    assert "Eligible and confirmed" in page
    assert "as predicted" in page
    assert "<dt>spec-audit.probe/1</dt><dd>probe.json</dd>" in page
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "1 model: 1 confirmed" in captured.err


def test_the_order_of_the_files_does_not_matter(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", "probe.json", "scan.json"]) == exits.OK
    assert "Eligible and confirmed" in capsys.readouterr().out


def test_an_ambiguous_probe_is_an_error_and_a_name_settles_it(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = usage(capsys, "twins.json", "probe.json")
    assert RECIPE in said
    assert OTHER in said
    assert "probe.json#MODEL-ID" in said
    assert main(["report", "twins.json", f"probe.json#{RECIPE}", "--output", "page.html"]) == exits.OK
    capsys.readouterr()
    assert "no graph or model 'x'" in usage(capsys, "twins.json", "probe.json#x")


def test_what_joins_nothing_is_said_and_shown(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    save("stray.json", probe("stray.aimodel"))
    assert main(["report", "scan.json", "stray.json", "plan.json"]) == exits.OK
    captured = capsys.readouterr()
    assert "stray.json: no model of the scan ships a bundle 'stray.aimodel'" in captured.err
    assert "no model of the scan ships the bundle of the table 'phone'" in captured.err
    assert "Measured, and of no model of this scan" in captured.out


def test_nothing_to_audit(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", "empty.json"]) == exits.NOTHING
    assert "No graph was found" in capsys.readouterr().out


def test_one_scan(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "found 0" in usage(capsys, "probe.json")
    assert "found 2" in usage(capsys, "scan.json", "twins.json")
    assert "goes after a probe" in usage(capsys, f"scan.json#{RECIPE}")
    assert "Missing argument" in usage(capsys)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "bad.json: not valid JSON"),
        ("[" * 100_000, "bad.json: not valid JSON"),
        ("[]", "not a report of spec-audit"),
        ('{"schema": "spec-audit.scan/9"}', "its schema is spec-audit.scan/9, which this version does not read"),
        ('{"schema": "spec-audit.probe/1"}', "the report has no 'tool'"),
        ('{"schema": "spec-audit.scan/1", "tool": []}', "tool is no object"),
    ],
)
def test_files_that_are_no_reports(folder: Path, text: str, says: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("bad.json").write_text(text)
    assert says in usage(capsys, "scan.json", "bad.json")


def test_files_that_cannot_be_read(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "cannot read 'gone.json': No such file" in usage(capsys, "gone.json")
    assert "cannot read 'sub': Is a directory" in ((folder / "sub").mkdir() or usage(capsys, "sub"))
    Path("latin.json").write_bytes(b'{"schema": "caf\xe9"}')
    assert "latin.json: not valid JSON" in usage(capsys, "latin.json")
    assert "no such folder" in usage(capsys, "scan.json", "--output", "gone/page.html")


def test_links_to_the_repository(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    template = "https://example.org/blob/main/{path}#L{line}"
    assert main(["report", "scan.json", "--source-url", template]) == exits.OK
    assert '<a href="https://example.org/blob/main/export_model.py#L40">' in capsys.readouterr().out
    assert main(["report", "scan.json"]) == exits.OK
    assert "https://" not in capsys.readouterr().out


@pytest.mark.parametrize(
    "template",
    ["javascript:alert(1)//{path}", "data:text/html,{path}", "https://example.org/", "https://e.org/{path}/{x}"],
)
def test_templates_that_are_refused(folder: Path, template: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert "--source-url" in usage(capsys, "scan.json", "--source-url", template)


def test_a_template_in_a_report_that_was_edited_is_not_followed(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = json.loads(Path("scan.json").read_text())
    data["provenance"]["source_url"] = "javascript:alert('{path}')"
    save("scan.json", data)
    assert main(["report", "scan.json"]) == exits.OK
    assert "javascript:" not in capsys.readouterr().out


def test_a_scan_records_where_it_comes_from(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tree = folder / "tree"
    (tree / ".git").mkdir(parents=True)
    (tree / ".git" / "HEAD").write_text("c" * 40)
    (tree / "spec-audit.toml").write_text('source-url = "https://example.org/{commit}/{path}#L{line}"\n')
    (tree / "export.py").write_text("print('no export')\n")
    assert main(["scan", "tree", "--format", "json"]) == exits.NOTHING
    assert json.loads(capsys.readouterr().out)["provenance"] == {
        "command": ["spec-audit", "scan", "tree"],
        "configuration": "spec-audit.toml",
        "commit": "c" * 40,
        "source_url": "https://example.org/{commit}/{path}#L{line}",
    }
    (tree / "spec-audit.toml").write_text('source-url = "file:///{path}"\n')
    assert main(["scan", "tree"]) == exits.USAGE
    assert "source-url: write a URL that starts with https://" in capsys.readouterr().err
