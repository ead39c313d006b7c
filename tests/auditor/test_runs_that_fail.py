"""Recipes that name nothing to run, and runs that an error ends: the graph is unresolved, and says where and why."""

from __future__ import annotations

from pathlib import Path

import pytest

from rules.facts import Graph, Place
from rules.verdict import Verdict, judge
from tests.auditor.support import EXPORTER, line_of, mutate, scan_text

NET = (
    "def export(args):\n",
    "import sys\n\n\ndef export(args):\n    height = int(sys.argv[2]) if len(sys.argv) > 2 else 8\n",
)
UNPARSED = ("    args = parser.parse_args()\n", "    args = argparse.Namespace(static=False)\n")


def _recipe(root: Path, table: str, script: str = EXPORTER) -> Graph:
    result = scan_text(root, {"export.py": script, "recipe.toml": f"[one]\n{table}\n"})
    (graph,) = [g for g in result.graphs if g.invocation.recipe]
    return graph


def test_a_recipe_without_script_and_command(tmp_path: Path) -> None:
    graph = _recipe(tmp_path, "bundle = 'edit.aimodel'")
    assert judge(graph.facts).verdict is Verdict.UNRESOLVED
    assert graph.facts.kind.reason == "the recipe names no script and no command that makes its bundle"
    assert graph.facts.kind.evidence == (Place("recipe.toml", 0),)


@pytest.mark.parametrize(
    ("words", "reason"),
    [("['t5', '--half']", "int('--half')"), ("['t5', '1.5']", "int('1.5')")],
)
def test_arguments_that_the_script_cannot_read(tmp_path: Path, words: str, reason: str) -> None:
    script = mutate(EXPORTER, NET, UNPARSED)
    graph = _recipe(tmp_path, f"script = 'export.py'\nargs = {words}", script)
    assert judge(graph.facts).verdict is Verdict.UNRESOLVED
    assert graph.facts.kind.reason == f"the run ends before any export call (raises ValueError: {reason})"
    assert graph.facts.kind.evidence == (Place("export.py", line_of(script, "height = int")),)


def test_arguments_that_it_can_read(tmp_path: Path) -> None:
    graph = _recipe(tmp_path, "script = 'export.py'\nargs = ['t5', '16']", mutate(EXPORTER, NET, UNPARSED))
    assert judge(graph.facts).says() == "eligible"


def test_an_error_that_is_caught_ends_nothing(tmp_path: Path) -> None:
    caught = NET[1].replace(
        "    height = int(sys.argv[2]) if len(sys.argv) > 2 else 8\n",
        "    try:\n        height = float(sys.argv[2])\n    except ValueError:\n        height = 8\n",
    )
    script = mutate(EXPORTER, (NET[0], caught), UNPARSED)
    assert judge(_recipe(tmp_path, "script = 'export.py'\nargs = ['t5', 'x']", script).facts).says() == "eligible"


@pytest.mark.parametrize("leaves", ["sys.exit(3)", "exit()", "os._exit(1)", 'raise SystemExit("no weights")'])
def test_a_script_that_leaves_before_it_exports(tmp_path: Path, leaves: str) -> None:
    """The line where it leaves is cited."""
    script = mutate(EXPORTER, ("def export(args):\n", f"import os\nimport sys\n\n\ndef export(args):\n    {leaves}\n"))
    graph = _recipe(tmp_path, "script = 'export.py'\nargs = []", script)
    assert graph.facts.kind.reason == "the run ends before any export call (SystemExit)"
    assert graph.facts.kind.evidence == (Place("export.py", line_of(script, leaves)),)


def test_an_error_is_cited_before_an_import_that_was_not_read(tmp_path: Path) -> None:
    script = mutate(EXPORTER, (NET[0], "import acme\n" + NET[1]), UNPARSED)
    graph = _recipe(tmp_path, "script = 'export.py'\nargs = ['t5', 'x']", script)
    assert "imports without a source: `acme`" in graph.facts.kind.reason
    assert graph.facts.kind.evidence == (Place("export.py", line_of(script, "height = int")),)
