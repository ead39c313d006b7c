"""Layers of a cache that more than one layer of the model writes to."""

from __future__ import annotations

from pathlib import Path

import pytest

from rules.facts import Role
from tests.auditor.support import EXPORTER, graph_of, mutate, scan_text

SIZES = "VOCAB, HIDDEN, HEADS, LAYERS, CONTEXT = 128, 32, 4, 2, 512\n"
CALL = (
    "x = layer(x, position_ids, key_cache[i], value_cache[i])",
    "x = layer(x, position_ids, key_cache, value_cache, i)",
)
TAKES = (
    "position_ids, key_cache, value_cache):\n        batch",
    "position_ids, key_cache, value_cache, i):\n        batch",
)
READ = (
    "key_cache[:, :, :end], value_cache[:, :, :end], mask)",
    "key_cache[SLOT, :, :, :end], value_cache[i, :, :, :end], mask)",
)
KEYS, VALUES = "        key_cache[:, :, start:end] = k\n", "        value_cache[:, :, start:end] = v\n"


def script(slot: str, more: str = "", layers: str = "json.load(open('c.json'))['n']") -> str:
    """The exporter, whose layers write keys to `slot` of the cache, and `more`."""
    written = KEYS.replace("[:,", f"[{slot}, :,") + (f"        {more}\n" if more else "")
    return mutate(
        EXPORTER,
        ("import argparse\n", "import argparse\nimport json\n"),
        (SIZES, f"{SIZES}LAYERS = {layers}\n"),
        CALL,
        TAKES,
        (KEYS, written),
        (VALUES, VALUES.replace("[:,", "[i, :,")),
        (READ[0], READ[1].replace("SLOT", slot)),
    )


SHARED = {
    "one for all": ("0",),
    "and the one before": ("i", "key_cache[i - 1, :, :, start:end] = k"),
}


@pytest.mark.parametrize("name", sorted(SHARED))
def test_rows_that_two_layers_write(tmp_path: Path, name: str) -> None:
    text = script(*SHARED[name])
    state = graph_of(scan_text(tmp_path, {"export.py": text})).facts.states.value[0]
    assert state.role is Role.UNKNOWN
    assert "written again by another layer or statement" in state.reason
    assert "        key_cache[" in text.splitlines()[state.evidence[-1].line - 1]


OWN = {
    "each its own": ("i",),
    "from the last on": ("LAYERS - 1 - i",),
    "each its own, counted": ("i", "", "4"),
    "one for every sixth": ("i // 6",),
    "by one branch or another": ("i", "if json.load(open('c.json'))['half']: key_cache[i, :, :, start:end] = k * 2"),
    "each of the heads": (
        "i",
        "for head in range(json.load(open('c.json'))['heads']): key_cache[0, :, head, start:end] = k[:, head]",
    ),
    "two of each": ("2 * i", "key_cache[2 * i + 1, :, :, start:end] = v"),
    "half of the heads": ("i", "key_cache[i, :, : HEADS // 2, start:end] = k[:, : HEADS // 2]"),
}


@pytest.mark.parametrize("name", sorted(OWN))
def test_rows_that_one_layer_writes(tmp_path: Path, name: str) -> None:
    state = graph_of(scan_text(tmp_path, {"export.py": script(*OWN[name])})).facts.states.value[0]
    assert state.role is Role.KV_KEY, state.reason
