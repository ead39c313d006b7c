"""The last part of a model that is cut in pieces: hidden states in, logits out, and states as inputs and outputs."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.auditor.support import judged, mutate

SCRIPT = """\
import coremltools as ct
import torch
from torch import nn

LAYERS, HIDDEN = 2, 16


class Tail(nn.Module):
    def __init__(self):
        super().__init__()
        self.mix = nn.ModuleList([nn.Linear(HIDDEN, HIDDEN) for _ in range(LAYERS)])
        self.head = nn.Linear(HIDDEN, 128)

    def forward(self, hidden_in, *states):
        x, new = hidden_in, []
        for mix, state in zip(self.mix, states):
            state = state * 0.5 + mix(x)
            x = x + state
            new.append(state)
        return (self.head(x), *new)


shape = (1, 1, HIDDEN)
traced = torch.jit.trace(Tail().eval(), (torch.zeros(shape), *[torch.zeros(shape)] * LAYERS))
names = [f"state_{i}_a" for i in range(LAYERS)]
ct.convert(
    traced,
    inputs=[ct.TensorType(name=n, shape=shape) for n in ("hidden_in", *names)],
    outputs=[ct.TensorType(name="logits"), *[ct.TensorType(name=f"new_{n}") for n in names]],
).save("tail.mlpackage")
"""


def test_a_last_part_with_states_is_a_decoder(tmp_path: Path) -> None:
    assert judged(tmp_path, SCRIPT).says() == "out by hybrid-state"


@pytest.mark.parametrize("edit", [('"logits"', '"mel"'), ('"hidden_in", *names', '"frames", *names')])
def test_another_network_that_carries_something_along_is_none(tmp_path: Path, edit: tuple[str, str]) -> None:
    assert judged(tmp_path, mutate(SCRIPT, edit)).says() == "out by not-a-decoder"


INNER = mutate(
    SCRIPT,
    ("return (self.head(x), *new)", "return (x, *new)"),
    ('"logits"', '"hidden_out"'),
    ("names = [f", "names = ['conv_state', 'ssm_state']\n_ = [f"),
)


def test_an_inner_part_with_recurrent_states_is_a_hybrid(tmp_path: Path) -> None:
    assert judged(tmp_path, INNER).says() == "out by hybrid-state"


@pytest.mark.parametrize(
    "edit",
    [
        ("shape = (1, 1, HIDDEN)", "shape = (1, 8, HIDDEN)"),  # frames, several at once
        ('"hidden_out"', '"mel"'),
        ('"hidden_in", *names', '"frames", *names'),
    ],
)
def test_an_inner_part_that_does_not_step_through_tokens_is_none(tmp_path: Path, edit: tuple[str, str]) -> None:
    assert judged(tmp_path, mutate(INNER, edit)).says() == "out by not-a-decoder"
