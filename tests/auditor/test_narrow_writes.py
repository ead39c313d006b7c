"""Writes that take one row of the query: right at the width that a graph is pinned to, and not for a longer query."""

from __future__ import annotations

from pathlib import Path

import pytest

from rules.facts import Role
from rules.fixes import FixedBy, judge_graph
from tests.auditor.edits import WRITE_KEYS, Edit, ids, state_of_keys
from tests.auditor.support import EXPORTER, graph_of, mutate, scan_text

PINNED = ids("None")
ONE = ("1 if args.static else 8", "1")
FOUR = ("1 if args.static else 8", "4")
LAST = (WRITE_KEYS, "        key_cache[:, :, start:end] = k[:, :, -1:]\n")
FIRST = (WRITE_KEYS, "        key_cache[:, :, start] = k[:, :, 0]\n")
EACH = (WRITE_KEYS, "        for t in range(rows):\n            key_cache[:, :, start + t] = k[:, :, t]\n")
VIEW = (WRITE_KEYS, "        key_cache.narrow(2, start, rows).copy_(k[:, :, -1:])\n")
SHAPED = (
    WRITE_KEYS,
    "        key_cache[:, :, start : start + 1] = k[:, :, :1].reshape(1, HEADS, 1, HIDDEN // HEADS)\n",
)


@pytest.mark.parametrize("write", [LAST, FIRST, EACH, VIEW, SHAPED])
def test_at_width_one_a_row_is_all_rows(tmp_path: Path, write: Edit) -> None:
    state = state_of_keys(tmp_path, PINNED, ONE, write)
    assert state.role is Role.KV_KEY
    assert "of the query" in state.reason or "whatever the query" in state.reason


def test_a_loop_over_a_fixed_width_writes_each_row(tmp_path: Path) -> None:
    assert state_of_keys(tmp_path, PINNED, FOUR, EACH).role is Role.KV_KEY


@pytest.mark.parametrize("write", [LAST, VIEW])
def test_one_row_that_goes_into_all_rows_of_a_fixed_width_is_told(tmp_path: Path, write: Edit) -> None:
    assert state_of_keys(tmp_path, PINNED, FOUR, write).role is Role.UNKNOWN


@pytest.mark.parametrize("write", [LAST, FIRST, EACH, VIEW, SHAPED])
def test_for_a_query_of_any_width_one_row_is_too_few(tmp_path: Path, write: Edit) -> None:
    state = state_of_keys(tmp_path, write)
    assert state.role is Role.UNKNOWN
    assert state.reason


def test_one_of_several_widths_is_not_a_fixed_one(tmp_path: Path) -> None:
    ranged = ids('{1: Dim("tokens", min=4, max=8)}')
    assert state_of_keys(tmp_path, ranged, FIRST).role is Role.UNKNOWN


@pytest.mark.parametrize(("width", "write"), [(ONE, FIRST), (ONE, LAST), (FOUR, EACH)])
def test_a_longer_query_is_no_fix_for_such_a_write(tmp_path: Path, width: Edit, write: Edit) -> None:
    judged = judge_graph(graph_of(scan_text(tmp_path, {"export.py": mutate(EXPORTER, PINNED, width, write)})))
    assert judged.fixed_by is FixedBy.NONE
    assert "that alone is no fix: the graph is then unresolved by `unknown-state-role`" in judged.fix


def test_without_such_a_write_it_is_one(tmp_path: Path) -> None:
    judged = judge_graph(graph_of(scan_text(tmp_path, {"export.py": mutate(EXPORTER, PINNED, ONE)})))
    assert judged.fixed_by is FixedBy.LINE
