"""The bound of a dynamic dimension: at most 1 is fixed; of several bounds, all have to leave room."""

from __future__ import annotations

from pathlib import Path

import pytest

from rules.facts import Query
from rules.verdict import Verdict, judge
from tests.auditor.edits import IDS
from tests.auditor.support import CORE_ML, EXPORTER, graph_of, judged, mutate, scan_text

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


UNREAD = ("import argparse\n", "import argparse\nimport outside\n")
SEEN = '        "position_ids": {1: Dim("seen", min=1, max=CONTEXT)},\n'


@pytest.mark.parametrize(
    ("edit", "says"),
    [
        ((IDS, IDS.replace("{1: Dim", "{0: outside.batch(), 1: Dim")), "eligible"),
        ((IDS, IDS.replace("{1: Dim", "(outside.batch(), Dim").replace("=64)}", "=64))")), "eligible"),
        ((SEEN, SEEN.replace("{1:", "{0: outside.batch(), 1:")), "eligible"),
        ((IDS, IDS.replace('{1: Dim("tokens", min=1, max=64)}', "{1: outside.rows()}")), "unresolved by unknown-query"),
        ((IDS, IDS.replace("{1: Dim", "{outside.axis(): outside.batch(), 1: Dim")), "unresolved by unknown-query"),
    ],
)
def test_what_is_not_known_of_the_batch_leaves_the_query_as_it_is(
    tmp_path: Path, edit: tuple[str, str], says: str
) -> None:
    assert judged(tmp_path, mutate(EXPORTER, UNREAD, edit)).says() == says


@pytest.mark.parametrize(
    ("shape", "says"),
    [
        ("(ct.RangeDim(1, outside.most()), rows)", "eligible"),
        ("(1, ct.RangeDim(1, outside.most()))", "unresolved by unknown-query"),
    ],
)
def test_nor_does_a_range_of_the_batch(tmp_path: Path, shape: str, says: str) -> None:
    script = mutate(CORE_ML, ("ids_shape = (1, rows)", f"import outside\nids_shape = {shape}"))
    assert judged(tmp_path, script).says() == says


@pytest.mark.parametrize(
    ("option", "size"),
    [
        ('"--batch", type=int, required=True', "args.batch"),
        ('"--batch", type=int, choices=[1, 2], required=True', "args.batch"),
        ('"--size", default="tiny"', '{"tiny": 1, "large": 2}[args.size]'),
    ],
)
def test_an_option_that_decides_another_dimension_is_not_named(tmp_path: Path, option: str, size: str) -> None:
    script = mutate(
        EXPORTER,
        ('"--static", action="store_true"', option),
        ("1 if args.static else 8", "1"),
        ('None if args.static else {1: Dim("tokens", min=1, max=64)}', "None"),
        ("torch.zeros((1, tokens)", f"torch.zeros(({size}, tokens)"),
    )
    for graph in scan_text(tmp_path, {"export.py": script}).graphs:
        judgement = judge(graph.facts)
        assert judgement.says() == "out by static-query"
        assert "no flag decides it" in judgement.findings[0].message
