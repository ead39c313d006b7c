"""What is found in one run does not depend on the runs before it, which have evaluated the same modules."""

from __future__ import annotations

from pathlib import Path

import pytest

from auditor import scan as scanning
from auditor.request import ScanRequest
from auditor.scan import scan
from rules.facts import Graph
from tests.auditor.support import EXPORTER, mutate, write

SHARED = """\
from einops import rearrange
from outside import LIMIT

TABLE = {"a": 1}


class Turner:
    def turn(self, x):
        return rearrange(x, "a b -> b a")


def pick(choice):
    return Turner if choice else TABLE
"""
USES = ("        logits = self.head(x)\n", "        logits = shared.Turner().turn(self.head(x))\n")
FLAG = (
    "def export(args):\n",
    "def export(args):\n    import shared\n    if args.static:\n        chosen = shared.pick(args.static)\n",
)


def _graphs(root: Path) -> dict[str, Graph]:
    return {graph.id: graph for graph in scan(ScanRequest(root, (root,))).graphs}


def test_the_order_of_the_runs_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = mutate("import shared\nfrom outside import LIMIT\n" + EXPORTER, USES, FLAG)
    second = mutate("import shared\nimport outside\nprint(outside.LIMIT)\n" + EXPORTER, USES)
    root = write(tmp_path / "tree", {"a.py": first, "b.py": second, "shared.py": SHARED})
    forward = _graphs(root)
    runs = scanning._default_runs
    monkeypatch.setattr(scanning, "_default_runs", lambda files: [*reversed(runs(files))])
    assert _graphs(root) == forward
    assert {graph.script for graph in forward.values()} == {"a.py", "b.py"}


def test_an_import_without_a_source_is_named_in_every_run(tmp_path: Path) -> None:
    script = mutate("import shared\n" + EXPORTER, USES)
    root = write(tmp_path / "tree", {"a.py": script, "b.py": script, "shared.py": SHARED})
    reasons = {graph.script: graph.facts.logits.reason for graph in _graphs(root).values()}
    assert set(reasons) == {"a.py", "b.py"}
    assert all("the import of `einops` could not be resolved" in reason for reason in reasons.values()), reasons


def test_graphs_of_which_nothing_is_known_have_names_of_their_own(tmp_path: Path) -> None:
    """Two choices of a required option, and neither run gets far."""
    script = """\
import argparse
from coreai_torch import TorchConverter
import nowhere
parser = argparse.ArgumentParser()
parser.add_argument("--size", choices=["small", "large"], required=True)
args = parser.parse_args()
nowhere.load(args.size)
raise SystemExit(nowhere.export(TorchConverter, args.size))
"""
    root = write(tmp_path / "tree", {"export.py": script})
    graphs = scan(ScanRequest(root, (root,))).graphs
    assert [g.id for g in graphs] == ["export.py::*@-", "export.py::*@-~2"], graphs
    assert [g.invocation.argv for g in graphs] == [("--size", "small"), ("--size", "large")]


LOADS = (
    ("    converter = TorchConverter()\n", "    program = phase(args, program)\n    converter = TorchConverter()\n"),
    (
        "def export(args):\n",
        "def phase(args, program):\n    if args.load:\n        return torch.export.load('p.pt2')\n"
        "    torch.export.save(program, 'p.pt2')\n    return program\n\n\ndef export(args):\n",
    ),
    (
        '"--static", action="store_true")\n',
        '"--static", action="store_true")\n    parser.add_argument("--load", action="store_true")\n',
    ),
)
STARTS = """\
import subprocess, sys
from pathlib import Path
from coreai_torch import TorchConverter
subprocess.run([sys.executable, str(Path(__file__).parent / "saves.py"), "--load"])
"""


def test_what_a_script_saves_is_not_there_for_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A script starts another one with a command line that makes it load what it saves by default."""
    recipe = '[m]\nscript = "saves.py"\nargs = ["--load"]\n'
    files = {"saves.py": mutate(EXPORTER, *LOADS), "starts.py": STARTS, "recipe.toml": recipe}
    root = write(tmp_path / "tree", files)
    forward = _graphs(root)
    runs = scanning._default_runs
    monkeypatch.setattr(scanning, "_default_runs", lambda files: [*reversed(runs(files))])
    assert _graphs(root) == forward
    started = [graph.facts.query for graph in forward.values() if graph.script == "starts.py"]
    assert [fact.value for fact in started] == [None], started
    saved = [graph.facts.query for graph in forward.values() if graph.script == "saves.py"]
    assert len(saved) >= 2
    assert all(fact.value for fact in saved), saved
