"""Slots of a cache by the number of a layer: a remainder of that is no ring; one of a position is."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.auditor.support import EXPORTER, judged, mutate

CALL = "            x = layer(x, position_ids, key_cache[i], value_cache[i])\n"
HEAD = ("import argparse\n", "import argparse\nimport json\n\nSETTINGS = json.load(open('settings.json'))\n")
COUNTS = ["LAYERS", "SETTINGS['layers']", "24"]
SLOTS = ["i % {}", "i - i // {} * {}", "divmod(i, {})[1]"]


def slotted(count: str, slot: str, per: str) -> str:
    return mutate(
        EXPORTER,
        HEAD,
        ("for _ in range(LAYERS)])", f"for _ in range({count})])"),
        (CALL, f"            slot = {slot.replace('{}', per)}\n{CALL.replace('cache[i]', 'cache[slot]')}"),
    )


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("slot", SLOTS)
@pytest.mark.parametrize("per", ["LAYERS", "(SETTINGS['layers'] // 2)"])
def test_a_layer_finds_its_slot_by_its_number(tmp_path: Path, count: str, slot: str, per: str) -> None:
    assert judged(tmp_path, slotted(count, slot, per)).says() == "eligible"


@pytest.mark.parametrize("start", ["start % CONTEXT", "(start + SETTINGS['sinks']) % SETTINGS['window']"])
def test_a_position_that_comes_round_is_a_ring(tmp_path: Path, start: str) -> None:
    script = mutate(
        EXPORTER, HEAD, ("        start = end - rows\n", f"        start = end - rows\n        first = {start}\n")
    )
    for name in ("key", "value"):
        script = script.replace(f"{name}_cache[:, :, start:end]", f"{name}_cache[:, :, first : first + rows]")
    assert judged(tmp_path, script).says() == "out by ring-cache"


@pytest.mark.parametrize("rows", ["range(rows)", "range(start, end)"])
def test_the_rows_of_a_query_come_round_in_a_ring(tmp_path: Path, rows: str) -> None:
    script = EXPORTER
    for name in ("key", "value"):
        row = f"            {name}_cache[:, :, n % 64] = {name[0]}[:, :, n % rows]\n"
        script = mutate(
            script, (f"        {name}_cache[:, :, start:end] = {name[0]}\n", f"        for n in {rows}:\n{row}")
        )
    assert judged(tmp_path, script).says() != "eligible"
