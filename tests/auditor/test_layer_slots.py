"""Slots of a cache by the number of a layer: a remainder of that is no ring; one of a position is."""

from __future__ import annotations

from pathlib import Path

import pytest

from rules.facts import Role
from tests.auditor.support import EXPORTER, graph_of, judged, mutate, scan_text

CALL = "            x = layer(x, position_ids, key_cache[i], value_cache[i])\n"
HEAD = ("import argparse\n", "import argparse\nimport json\n\nSETTINGS = json.load(open('settings.json'))\n")
OWN = [("LAYERS", "LAYERS"), ("SETTINGS['layers']", "SETTINGS['layers']"), ("24", "24"), ("24", "SETTINGS['layers']")]
SHARED = [
    ("SETTINGS['layers']", "(SETTINGS['layers'] // 2)"),
    ("SETTINGS['layers']", "LAYERS"),
    ("24", "12"),
    ("4", "2"),
]
SLOTS = ["i % {}", "i - i // {} * {}", "divmod(i, {})[1]"]


def slotted(count: str, slot: str, per: str) -> str:
    return mutate(
        EXPORTER,
        HEAD,
        ("for _ in range(LAYERS)])", f"for _ in range({count})])"),
        (CALL, f"            slot = {slot.replace('{}', per)}\n{CALL.replace('cache[i]', 'cache[slot]')}"),
    )


@pytest.mark.parametrize(("count", "per"), OWN)
@pytest.mark.parametrize("slot", SLOTS)
def test_a_layer_finds_its_slot_by_its_number(tmp_path: Path, count: str, slot: str, per: str) -> None:
    assert judged(tmp_path, slotted(count, slot, per)).says() == "eligible"


@pytest.mark.parametrize(("count", "per"), SHARED)
@pytest.mark.parametrize("slot", [*SLOTS, "i // {}"])
def test_layers_that_come_round_to_one_slot_are_no_ring_and_write_the_same_rows(
    tmp_path: Path, count: str, slot: str, per: str
) -> None:
    assert judged(tmp_path, slotted(count, slot, per)).says() == "unresolved by unknown-state-role"


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


PRETRAINED = """\
    def __init__(self):
        super().__init__()
        given = LongForConditionalGeneration.from_pretrained("some/model")
        self.parts = given.model.decoder.layers
        self.embed = given.model.decoder.embed_tokens
        self.norm = nn.LayerNorm(HIDDEN)
        self.head = nn.Linear(HIDDEN, VOCAB)

    def forward(self, input_ids, position_ids, key_cache, value_cache):
        rows = input_ids.shape[1]
        x = self.embed(input_ids).view(1, rows, HIDDEN)
        end = position_ids.shape[1]
        start = end - rows
        for i, part in enumerate(self.parts):
            q, k, v = (p(x).view(1, rows, HEADS, -1).transpose(1, 2) for p in (part.q, part.k, part.v))
            key_cache[i, :, :, start:end] = k
            value_cache[i, :, :, start:end] = v
            mask = position_ids[:, None, None, :] <= position_ids[:, None, start:, None]
            keys, values = key_cache[i, :, :, :end], value_cache[i, :, :, :end]
            y = nn.functional.scaled_dot_product_attention(q, keys, values, mask)
            x = x + y.transpose(1, 2).reshape(1, rows, HIDDEN)
        return self.head(self.norm(x))


def export(args):
"""
"""The model with the layers of one that nobody can read, which it counts itself."""


def pretrained(*edits: tuple[str, str]) -> str:
    script = mutate(
        EXPORTER, ("import torch\n", "import torch\nfrom transformers import LongForConditionalGeneration\n")
    )
    head, model, rest = script.partition("class Model(nn.Module):\n")
    tail = rest.partition("def export(args):\n")[2]
    return mutate(head + model + PRETRAINED + tail, *edits)


@pytest.mark.parametrize("start", ["", ", 1", ", start=2"])
def test_layers_that_nobody_can_read_are_counted(tmp_path: Path, start: str) -> None:
    edits = [("enumerate(self.parts)", f"enumerate(self.parts{start})")]
    result = graph_of(scan_text(tmp_path, {"export.py": pretrained(*edits)}))
    assert {s.name: s.role for s in result.facts.states.value or ()} == {
        "keyCache": Role.KV_KEY,
        "valueCache": Role.KV_VALUE,
    }


@pytest.mark.parametrize("parts", ["unread(x)", "self.parts[0](x)", "unread(position_ids).found"])
def test_what_is_made_of_the_query_counts_its_rows(tmp_path: Path, parts: str) -> None:
    edits = [
        ("import argparse\n", "import argparse\nfrom elsewhere import unread\n"),
        ("enumerate(self.parts)", f"enumerate({parts})"),
    ]
    result = graph_of(scan_text(tmp_path, {"export.py": pretrained(*edits)}))
    assert {s.role for s in result.facts.states.value or ()} == {Role.UNKNOWN}
