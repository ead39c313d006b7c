"""States, outputs and buffers that are there under a condition: nobody may take one way for the other."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.auditor.support import CORE_ML, judged, mutate

INIT = '        self.register_buffer("keyCache"'
STATES = "    states=[\n"
CALL = ')\nmlmodel.save("out/model.mlpackage")'
FORWARD = "        x = self.embed(input_ids)\n"
HEAD = "        return self.head(x + y.transpose(1, 2).reshape(batch, rows, HIDDEN))\n"

MORE = (
    ("import torch\n", "import os\nimport types\nimport torch\n"),
    ("class Model(nn.Module):\n", "SETTINGS = types.SimpleNamespace(RECURRENT)\n\n\nclass Model(nn.Module):\n"),
    (
        INIT,
        '        if getattr(SETTINGS, "recurrent", False):\n'
        '            self.register_buffer("ssm_state", torch.zeros(1, HIDDEN))\n' + INIT,
    ),
    (
        FORWARD,
        FORWARD
        + '        if getattr(SETTINGS, "recurrent", False):\n'
        + "            self.ssm_state.copy_(self.ssm_state * 0.5 + x[:, -1])\n",
    ),
)
"""A recurrent state that a setting adds, of which `RECURRENT` is all that is set."""

CACHE = CORE_ML.split(STATES)[1].split("    ],\n")[0]
APPENDED = (
    'if SETTINGS.recurrent:\n    states.append(ct.StateType(ct.TensorType(shape=(1, HIDDEN)), name="ssm_state"))\n'
)
FOUND = APPENDED.replace("SETTINGS.recurrent", 'hasattr(model, "ssm_state")')
MAPPED = (
    'named = {"keyCache": model.keyCache, "valueCache": model.valueCache}\n'
    'if hasattr(model, "ssm_state"):\n    named["ssm_state"] = model.ssm_state\n'
    "states = [ct.StateType(ct.TensorType(shape=b.shape), name=n) for n, b in named.items()]\n"
)


def script(added: str, settings: str) -> str:
    """The export with states by `added`, and `settings` as the keywords of the settings."""
    head, tail = CORE_ML.split("mlmodel = ct.convert(\n")
    call = "mlmodel = ct.convert(\n" + tail.split(STATES)[0] + "    states=states,\n" + CALL + "\n"
    text = mutate(mutate(head, *MORE), ("SimpleNamespace(RECURRENT)", f"SimpleNamespace({settings})"))
    return text + "states = [\n" + CACHE + "]\n" + added + call


@pytest.mark.parametrize("added", [APPENDED, FOUND, MAPPED])
def test_a_state_that_nobody_knows_to_be_declared(tmp_path: Path, added: str) -> None:
    said = {
        settings: judged(tmp_path / str(n), script(added, settings)).says()
        for n, settings in enumerate(("recurrent=True", "recurrent=False", 'recurrent=os.environ["R"] == "1"'))
    }
    assert list(said.values()) == ["out by hybrid-state", "eligible", "unresolved by unknown-kind"]


def test_settings_that_are_not_all_known(tmp_path: Path) -> None:
    """What a namespace was not given it has not; one that is made of unread data may have anything."""
    assert judged(tmp_path / "none", script(FOUND, "layers=2")).says() == "eligible"
    unread = script(FOUND, '**torch.load("settings.pt")')
    assert str(judged(tmp_path / "unread", unread).verdict) == "unresolved"
    parsed = script(FOUND, '**torch.load("settings.pt")').replace("types.SimpleNamespace", "argparse.Namespace")
    parsed = parsed.replace("import types\n", "import argparse\n")
    assert str(judged(tmp_path / "parsed", parsed).verdict) == "unresolved"


@pytest.mark.parametrize(
    ("chosen", "says"),
    [
        ("True", "out by no-logits"),
        ("False", "eligible"),
        ('os.environ["GREEDY"] == "1"', "unresolved by unknown-logits"),
    ],
)
def test_a_choice_in_the_graph_on_one_of_two_ways(tmp_path: Path, chosen: str, says: str) -> None:
    """The token and the logits have the same rank: one tensor must not stand for both."""
    head = HEAD.replace("        return ", "        logits = ") + (
        "        if GREEDY:\n            logits = logits.argmax(-1, keepdim=True)\n        return logits\n"
    )
    text = mutate(CORE_ML, (HEAD, head), ("\n\nclass Model", f"\nGREEDY = {chosen}\n\n\nclass Model"))
    assert judged(tmp_path, "import os\n" + text).says() == says


COUNTED = """\
import os
import coremltools as ct
import numpy as np
import torch
from torch import nn

VOCAB, HIDDEN, CONTEXT, LAYERS = 128, 32, 512, COUNT


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.kv = nn.Linear(HIDDEN, 2 * HIDDEN)
        self.register_buffer("keys", torch.zeros(1, CONTEXT, HIDDEN))
        self.register_buffer("values", torch.zeros(1, CONTEXT, HIDDEN))

    def forward(self, x, mask):
        end = mask.shape[-1]
        k, v = self.kv(x).chunk(2, -1)
        self.keys[:, end - x.shape[1] : end] = k
        self.values[:, end - x.shape[1] : end] = v
        scores = torch.baddbmm(mask, x, self.keys[:, :end].transpose(1, 2))
        return x + scores.softmax(-1) @ self.values[:, :end]


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, HIDDEN)
        self.layers = nn.ModuleDict({f"layer{i}": Layer() for i in range(LAYERS)})
        self.head = nn.Linear(HIDDEN, VOCAB)

    def forward(self, input_ids, mask):
        x = self.embed(input_ids)
        for layer in self.layers.values():
            x = layer(x, mask)
        return self.head(x)


model = Model().eval()
traced = torch.jit.trace(model, (torch.zeros(1, 2, dtype=torch.int32), torch.zeros(1, 2, 9)))
rows = ct.RangeDim(1, 64)
ct.convert(
    traced,
    inputs=[
        ct.TensorType(name="input_ids", shape=(1, rows), dtype=np.int32),
        ct.TensorType(name="mask", shape=(1, rows, ct.RangeDim(1, CONTEXT))),
    ],
    states=[ct.StateType(ct.TensorType(shape=b.shape), name=n) for n, b in model.named_buffers()],
    outputs=[ct.TensorType(name="NAME")],
).save("m.mlpackage")
"""


@pytest.mark.parametrize("count", ["2", 'int(os.environ["LAYERS"])'])
@pytest.mark.parametrize("name", ["logits", "linear_0"])
def test_a_dict_of_as_many_layers_as_nobody_knows(tmp_path: Path, count: str, name: str) -> None:
    """Its buffers are states whatever their number; an output whose name says nothing is as wide as the vocabulary."""
    text = mutate(COUNTED, ("LAYERS = 128, 32, 512, COUNT", f"LAYERS = 128, 32, 512, {count}"), ('"NAME"', f'"{name}"'))
    assert judged(tmp_path, text).says() == "eligible"


def test_a_dict_of_layers_that_is_not_read(tmp_path: Path) -> None:
    """Layers that come from code that nobody read may hold any buffer."""
    text = mutate(
        COUNTED,
        ("LAYERS = 128, 32, 512, COUNT", "LAYERS = 128, 32, 512, 2"),
        ("import torch\n", "import torch\nimport elsewhere\n"),
        ('{f"layer{i}": Layer() for i in range(LAYERS)}', "elsewhere.layers()"),
    )
    assert str(judged(tmp_path, text).verdict) == "unresolved"
