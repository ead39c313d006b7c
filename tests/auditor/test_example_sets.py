"""Scripts that export one of several networks: example inputs of different number, and what all agree on."""

from __future__ import annotations

from pathlib import Path

import pytest

from rules.verdict import Verdict
from tests.auditor.edits import NOT_A_DECODER, UNKNOWN_KIND
from tests.auditor.support import EXPORTER, graph_of, judged, mutate, scan_text

NETS = """\
import sys
import torch
from torch import nn
from coreai_torch import TorchConverter


class Wide(nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, *args):
        return self.inner(*[a.float() for a in args]).half()


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.out = nn.Linear(3, 8)

    def forward(self, image):
        return self.out(image)


class Mixer(nn.Module):
    def __init__(self):
        super().__init__()
        self.out = nn.Linear(8, 8)

    def forward(self, sample, condition, timestep):
        return self.out(sample + condition) * timestep


def build(net):
    if net == "encoder":
        return Encoder(), (torch.zeros(1, 9, 3),), ["image"], ["features"]
    if net == "mixer":
        return Mixer(), (torch.zeros(1, 4, 8), torch.zeros(1, 4, 8), torch.zeros(1)), ["sample", "cond", "t"], ["out"]
    raise SystemExit(net)


def convert(model, example, input_names, output_names, path):
    program = torch.export.export(model.eval(), tuple(example))
    converter = TorchConverter()
    converter.add_exported_program(program, input_names=list(input_names), output_names=list(output_names))
    converter.to_coreai().save_asset(path)


net = sys.argv[1]
model, example, input_names, output_names = build(net)
convert(Wide(model), example, input_names, output_names, f"out/{net}.aimodel")
"""
MIXER = '    if net == "mixer":\n'
OTHER_NET = '    if net == "other":\n        return Mixer(), {example}, {names}, ["y"]\n'


def test_one_of_several_networks_without_a_cache(tmp_path: Path) -> None:
    graph = graph_of(scan_text(tmp_path, {"export.py": NETS}))
    assert judged(tmp_path, NETS).says() == NOT_A_DECODER
    assert graph.bundle == "out/*.aimodel"
    assert graph.facts.query.value is None, "the widths differ"


@pytest.mark.parametrize(
    ("example", "names"),
    [
        ("tuple(torch.load(net))", '["x"]'),  # nobody knows how many
        ("torch.load(net)", '["x"]'),
        (
            "(torch.zeros(1, 1, dtype=torch.int32), torch.zeros(2, 1, 4, 64, 8), torch.zeros(2, 1, 4, 64, 8), 1)",
            '["input_ids", "past_key_0", "past_value_0", "n"]',  # a decoder
        ),
    ],
)
def test_one_network_more_that_may_be_a_decoder(tmp_path: Path, example: str, names: str) -> None:
    more = OTHER_NET.format(example=example, names=names)
    script = mutate(NETS, (MIXER, more + MIXER)).replace(
        "    def forward(self, *args):",
        "    def forward(self, input_ids=None, past_key_0=None, past_value_0=None, n=None):",
    )
    script = script.replace("for a in args", "for a in (input_ids, past_key_0, past_value_0)")
    assert judged(tmp_path, script).says() == UNKNOWN_KIND


SIGNATURE = "    def forward(self, input_ids, position_ids, key_cache, value_cache):\n        rows"
LOGITS = "        return logits\n"
PROGRAM = "    program = torch.export.export(model, (), inputs, dynamic_shapes=dynamic)\n"


def sets(other: str, *edits: tuple[str, str]) -> str:
    """The exporter with two sets of example inputs by keyword."""
    given = PROGRAM.replace("inputs,", f"inputs if input() else {other},")
    return mutate(EXPORTER, (PROGRAM, given), *edits)


def test_two_sets_that_give_the_same_graph(tmp_path: Path) -> None:
    script = sets('{**inputs, "scale": torch.ones(1)}', (SIGNATURE, SIGNATURE.replace("):", ", scale=1):")))
    assert judged(tmp_path, script).verdict is Verdict.ELIGIBLE


@pytest.mark.parametrize(
    "other",
    [
        '{**inputs, "conv_state": torch.zeros(1, 4, 8)}',
        '{**inputs, "input_ids": torch.zeros((1, 1), dtype=torch.int32), "conv_state": torch.zeros(1, 4, 8)}',
        "torch.load('inputs')",
    ],
)
def test_a_state_in_one_set_only(tmp_path: Path, other: str) -> None:
    script = sets(
        other,
        (SIGNATURE, SIGNATURE.replace("):", ", conv_state=None):")),
        (LOGITS, "        if conv_state is not None:\n            conv_state.copy_(conv_state + 1)\n" + LOGITS),
    )
    assert judged(tmp_path, script).verdict is not Verdict.ELIGIBLE
