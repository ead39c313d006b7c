"""The bound of a dynamic dimension: at most 1 is fixed; of several bounds, all have to leave room."""

from __future__ import annotations

from pathlib import Path

import pytest

from rules.facts import Query
from rules.verdict import Verdict, judge
from tests.auditor.edits import IDS
from tests.auditor.support import EXPORTER, graph_of, mutate, scan_text

READ = (
    "import argparse\n",
    'import argparse\nimport json\nimport outside\nSETTINGS = json.load(open("settings.json"))\n',
)


def _bound(root: Path, bound: str) -> tuple[Verdict, Query | None]:
    script = mutate(EXPORTER, READ, (IDS, IDS.replace("max=64", f"max={bound}")))
    facts = graph_of(scan_text(root, {"export.py": script})).facts
    return judge(facts).verdict, facts.query.value


@pytest.mark.parametrize(
    "bound",
    [
        '128 if SETTINGS["long"] else 64',
        'SETTINGS["context"]',
        'SETTINGS["context"] if SETTINGS["long"] else 64',
        'min(SETTINGS["context"], 4096) if SETTINGS["long"] else SETTINGS["context"]',
    ],
)
def test_every_bound_that_it_may_have_leaves_room(tmp_path: Path, bound: str) -> None:
    assert _bound(tmp_path, bound) == (Verdict.ELIGIBLE, Query(True))


def test_at_most_one_is_fixed(tmp_path: Path) -> None:
    verdict, query = _bound(tmp_path, "1")
    assert verdict is not Verdict.ELIGIBLE
    assert query is not None
    assert not query.dynamic


@pytest.mark.parametrize("bound", ['1 if SETTINGS["short"] else 64', "outside.bound()"])
def test_one_that_may_be_one_or_that_nobody_can_read_is_not_known(tmp_path: Path, bound: str) -> None:
    verdict, query = _bound(tmp_path, bound)
    assert verdict is not Verdict.ELIGIBLE
    assert query is None
