"""Caches that `forward` copies before it writes them: what is written there is no state."""

from __future__ import annotations

from pathlib import Path

import pytest

from rules.fixes import judge_graph
from tests.auditor.support import EXPORTER, graph_of, judged, mutate, scan_text

ROWS = "        rows = input_ids.shape[1]\n"
COPIES = ["{}.clone()", "torch.clone({})", "{}.detach().clone()"]


def copied(how: str) -> str:
    made = f"{how.format('key_cache')}, {how.format('value_cache')}"
    return mutate(EXPORTER, (ROWS, f"{ROWS}        key_cache, value_cache = {made}\n"))


@pytest.mark.parametrize("how", COPIES)
def test_copies_that_are_returned_are_a_cache_among_inputs_and_outputs(tmp_path: Path, how: str) -> None:
    script = mutate(
        copied(how),
        ("        return logits\n", "        return logits, key_cache, value_cache\n"),
        (
            'output_names=["logits"], state_names=STATES',
            'output_names=["logits", "newKeyCache", "newValueCache"]',
        ),
    )
    graph = graph_of(scan_text(tmp_path, {"export.py": script}))
    assert graph.facts.states.value == ()
    assert judge_graph(graph).judgement.says() == "out by kv-as-io"


@pytest.mark.parametrize("how", COPIES)
def test_a_declared_state_of_which_only_a_copy_is_written_is_never_written(tmp_path: Path, how: str) -> None:
    assert "unwritten-state" in [a.rule for a in judged(tmp_path, copied(how)).advice]


def test_a_view_is_no_copy(tmp_path: Path) -> None:
    assert not judged(tmp_path, copied("{}.detach()")).advice


@pytest.mark.parametrize("shape", ["(1, 1, HIDDEN)", "(BATCH, 1, HIDDEN)", "BATCH, 1, HIDDEN"])
def test_the_width_of_a_query_is_told_where_the_number_of_positions_stands(tmp_path: Path, shape: str) -> None:
    script = mutate(
        EXPORTER,
        ("import argparse\n", "import argparse\n\nBATCH = 1\n"),
        ('"input_ids": torch.zeros((1, tokens), dtype=torch.int32)', f'"inputs_embeds": torch.zeros({shape})'),
        ("input_ids, position_ids, key_cache", "inputs_embeds, position_ids, key_cache"),
        (ROWS, "        rows = inputs_embeds.shape[1]\n"),
        ("x = self.embed(input_ids)", "x = inputs_embeds"),
        ('"input_ids": None if args.static else {1: Dim("tokens", min=1, max=64)}', '"inputs_embeds": None'),
        ('input_names=["input_ids"', 'input_names=["inputs_embeds"'),
    )
    graph = graph_of(scan_text(tmp_path, {"export.py": script}))
    last = graph.facts.query.evidence[-1]
    assert graph.facts.query.value is not None
    assert graph.facts.query.value.widths == (1,)
    assert "torch.zeros" in script.splitlines()[last.line - 1]


@pytest.mark.parametrize("store", ["{}.copy_(new)", "{}[:] = new"])
def test_a_ring_that_goes_through_a_copy_is_one(tmp_path: Path, store: str) -> None:
    script = mutate(
        EXPORTER, ("        start = end - rows\n", "        start = end - rows\n        first = start % CONTEXT\n")
    )
    for name in ("key_cache", "value_cache"):
        copied = f"        new = {name}.clone()\n        new[:, :, first : first + rows] = {name[0]}\n"
        script = mutate(
            script, (f"        {name}[:, :, start:end] = {name[0]}\n", f"{copied}        {store.format(name)}\n")
        )
    assert judged(tmp_path, script).says() == "out by ring-cache"
