"""What is found in one run does not depend on the runs before it, which have evaluated the same modules."""

from __future__ import annotations

from pathlib import Path

import pytest

from auditor.request import ScanRequest
from auditor.scan import _Scanner, scan
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
    runs = _Scanner._default_runs
    monkeypatch.setattr(_Scanner, "_default_runs", lambda *args: [*reversed(runs(*args))])
    assert _graphs(root) == forward
    assert {graph.script for graph in forward.values()} == {"a.py", "b.py"}


def test_an_import_without_a_source_is_named_in_every_run(tmp_path: Path) -> None:
    script = mutate("import shared\n" + EXPORTER, USES)
    root = write(tmp_path / "tree", {"a.py": script, "b.py": script, "shared.py": SHARED})
    reasons = {graph.script: graph.facts.logits.reason for graph in _graphs(root).values()}
    assert set(reasons) == {"a.py", "b.py"}
    assert all("the import of `einops` could not be resolved" in reason for reason in reasons.values()), reasons
