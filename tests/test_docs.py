"""The documentation does not drift from the program, and builds without a warning."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from auditor import config, dims, exits, natives
from auditor.cli import cli, main
from auditor.frameworks import executorch
from auditor.torch.ops import products
from auditor.values import Args, Tensor
from auditor.values.tags import BLENDED
from reports.formats import FORMATS
from reports.rule_page import index, titles
from tests.auditor.support import EXPORTER, graph_of, scan_text
from tests.conftest import Snapshot

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"


def first_column(page: str, heading: str) -> list[str]:
    """The first cells of the first table after `heading`, without backticks."""
    text = (DOCS / page).read_text("utf-8").partition(heading)[2]
    rows = re.search(r"(?:^\|.*\n)+", text, re.MULTILINE)
    assert rows
    return [row.split("|")[1].strip().strip("`") for row in rows[0].splitlines()[2:]]


def test_commands(snapshot: Snapshot, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    parts = ["# Commands"]
    for name in cli.list_commands(click.Context(cli)):
        assert main([name, "--help"]) == exits.OK
        parts.append(f"## {name}\n\n```text\n{capsys.readouterr().out.rstrip()}\n```")
    snapshot(DOCS / "commands.md", "\n\n".join(parts) + "\n")


def test_the_list_of_rules(snapshot: Snapshot) -> None:
    snapshot(DOCS / "rules.md", index())


def test_the_navigation_has_every_rule_in_order() -> None:
    navigation = yaml.safe_load((ROOT / "mkdocs.yml").read_text("utf-8"))["nav"]
    (rules,) = [entry["Rules"] for entry in navigation if "Rules" in entry]
    assert rules[1:] == [f"rules/{name}.md" for name in titles()]


def test_the_configuration_has_every_key() -> None:
    assert first_column("configuration.md", "# Configuration") == list(config._READERS)


def test_the_formats_are_all_there() -> None:
    assert first_column("formats.md", "# Formats") == list(FORMATS)
    schemas = {path.name.removesuffix(".schema.json") for path in (ROOT / "reports" / "schemas").iterdir()}
    named = (DOCS / "formats.md").read_text("utf-8").partition("## Schemas")[2]
    assert schemas == set(re.findall(r"`([a-z]+-\d)`", named))


def test_the_exit_statuses() -> None:
    assert [int(cell) for cell in first_column("exit-statuses.md", "# Exit")] == [
        exits.OK,
        exits.SOMETHING,
        exits.USAGE,
        exits.NOTHING,
        exits.CRASH,
        exits.INTERRUPTED,
        exits.CLOSED,
    ]


def test_the_files_of_the_architecture_exist() -> None:
    named = re.findall(r"`((?:auditor|probes|rules|reports)/[\w./*]+)`", (DOCS / "architecture.md").read_text("utf-8"))
    assert len(named) > 10
    assert [name for name in named if not list(ROOT.glob(name))] == []


def test_the_configuration_of_the_page_is_one(tmp_path: Path) -> None:
    blocks = re.findall(r"```toml\n(.*?)```", (DOCS / "configuration.md").read_text("utf-8"), re.DOTALL)
    (tmp_path / "pyproject.toml").write_text("\n".join(blocks))
    read = config.load(tmp_path, tuple(FORMATS))
    assert len(read.expect) == 2
    assert str(read.waivers[0].expires) == "2027-01-31"


def code(heading: str, module: dict[str, Any]) -> dict[str, Any]:
    """The names of `module`, and what the code under a heading of the page on extending defines there."""
    section = (DOCS / "extending.md").read_text("utf-8").partition(f"## {heading}\n")[2].partition("\n## ")[0]
    (found,) = re.findall(r"```python\n(.*?)```", section, re.DOTALL)
    names = dict(module)
    exec(compile(found, "extending.md", "exec"), names)
    return names


def test_the_rule_of_the_page_is_one() -> None:
    rule = code("A rule", {})["RULE"]
    assert rule.valid
    assert [rule.check(example.facts) for example in rule.valid] == [None]
    (found,) = [rule.check(example.facts) for example in rule.invalid]
    assert (found.rule, found.severity) == ("odd-window", "error")
    assert found.evidence


def test_the_converter_of_the_page_exports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = code("A call of a framework", vars(executorch))
    monkeypatch.setitem(natives.natives(), "acme.convert", made["NATIVES"]["acme.convert"])
    known = replace(natives.tables(), packages=natives.tables().packages | {"acme"})
    monkeypatch.setattr(natives, "tables", lambda: known)
    before, _, behind = EXPORTER.partition("    converter = TorchConverter()\n")
    call = '    acme.convert(program, states=STATES).save("out/model.acme")\n'
    text = "import acme\n" + before + call + behind.partition('save_asset("out/model.aimodel")\n')[2]
    graph = graph_of(scan_text(tmp_path, {"export.py": text}))
    assert graph.bundle == "out/model.acme"
    assert str(graph.facts.query.value) == "dynamic"
    assert len(graph.facts.states.value or ()) == 2


def test_the_operation_of_the_page_mixes_what_it_sums() -> None:
    cdist = code("An operation of PyTorch", vars(products))["cdist"]
    rows_of = lambda *shapes: cdist(None, Args([Tensor(shape) for shape in shapes]), None)  # noqa: E731
    assert rows_of((8, 32), (5, 32)).shape == (8, 5)
    assert rows_of(None, (5, 32)).shape is None
    query = dims.symbol(dims.Atom("q", query=True))
    assert BLENDED not in rows_of((query, 32), (5, 32)).tags
    assert BLENDED in rows_of((32, query), (5, query)).tags


class Links(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given: dict[str, Any] = dict(attrs)
        if tag in ("link", "script", "img") and (link := given.get("href") or given.get("src")):
            self.links.append(link)


@pytest.mark.slow
def test_it_builds_without_a_warning(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path / "site")]
    # The theme's own announcement is no warning about our pages.
    environment = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    result = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert "WARNING" not in result.stderr
    for name in titles():
        page = tmp_path / "site" / "rules" / name / "index.html"
        assert f'<h1 id="{name}">' in page.read_text("utf-8")
        assert not [link for link in Links(page.read_text("utf-8")).links if link.startswith(("http", "//"))]
