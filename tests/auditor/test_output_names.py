"""Outputs that could not be followed: what the names that the converter gives them say, and what they do not."""

from __future__ import annotations

from pathlib import Path

import pytest

from rules.facts import Logits
from tests.auditor.edits import HEAD, HYBRID, NO_LOGITS, UNKNOWN_LOGITS, third_state
from tests.auditor.support import CORE_ML, EXPORTER, graph_of, judged, line_of, mutate, scan_text

UNREAD = (HEAD, "        logits = nowhere.finish(x)\n")
IMPORT = ("import argparse\n", "import argparse\nimport nowhere\n")
NAMES = 'output_names=["logits"]'


def unread(names: str, *edits: tuple[str, str]) -> str:
    """The exporter with a last layer that nobody can read, and outputs of these names."""
    return mutate(EXPORTER, UNREAD, IMPORT, (NAMES, f"output_names={names}"), *edits)


@pytest.mark.parametrize(
    "names",
    ['["hidden"]', '["text_embedding"]', '("cond", "eos_logit")', '["pcm", "k_cache_out", "v_cache_out"]'],
)
def test_names_that_say_no_logits(tmp_path: Path, names: str) -> None:
    assert judged(tmp_path, unread(names)).says() == NO_LOGITS


@pytest.mark.parametrize(
    "names",
    [
        '["logits"]',
        '["y"]',  # says nothing
        '["eos_logit"]',  # says what one output is, and not where the logits are
        '["hidden", "logits"]',
        '["hidden", "scores"]',
        '["hidden", "y"]',  # the other one may be the logits
        '["sample"]',  # a token, or a sound
        "[input()]",
        '["hidden"] if input() else ["logits"]',
    ],
)
def test_names_that_leave_it_open(tmp_path: Path, names: str) -> None:
    assert judged(tmp_path, unread(names)).says() == UNKNOWN_LOGITS


def test_the_line_of_the_name_is_cited(tmp_path: Path) -> None:
    script = unread("NAMED", ("VOCAB, HIDDEN, HEADS", 'NAMED = ["hidden"]\nVOCAB, HIDDEN, HEADS'))
    logits = graph_of(scan_text(tmp_path, {"export.py": script})).facts.logits
    assert logits.value is Logits.NONE
    assert [(p.line, p.note) for p in logits.evidence[1:]] == [
        (line_of(script, 'NAMED = ["hidden"]'), "the output is named `hidden`")
    ]


def test_a_state_that_cannot_be_rewound_is_said_first(tmp_path: Path) -> None:
    state = third_state("convState", "conv_state", "1, 4, 8", "conv_state.copy_(conv_state + 1)")
    assert judged(tmp_path, unread('["hidden"]', *state)).says() == HYBRID


def test_core_ml_names(tmp_path: Path) -> None:
    head = "self.head(x + y.transpose(1, 2).reshape(batch, rows, HIDDEN))"
    script = mutate(CORE_ML, (head, f"nowhere.finish({head})"), ("import torch\n", "import torch\nimport nowhere\n"))
    assert judged(tmp_path, script).says() == UNKNOWN_LOGITS
    assert judged(tmp_path, mutate(script, ('name="logits"', 'name="hidden"'))).says() == NO_LOGITS


# -- positions behind outputs whose number nobody knows ---------------------------------------------------------------

LAYERED = """\
import json
import coremltools as ct
import torch
from torch import nn

CONFIG = json.load(open("config.json"))
LAYERS, HIDDEN = CONFIG["num_hidden_layers"], 32


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(512, HIDDEN)
        self.mix = nn.ModuleList([nn.Linear(HIDDEN, HIDDEN) for _ in range(LAYERS)])
        self.head = nn.Linear(HIDDEN, CONFIG["classes"])

    def forward(self, input_ids, *past):
        x, new = self.embed(input_ids), []
        for layer in self.mix:
            x = layer(x)
            new.append(torch.cat([past[0], x], dim=1))
        return (*new, self.head(x))


ids, past = torch.zeros(1, 1, dtype=torch.int32), [torch.zeros(1, 64, HIDDEN) for _ in range(LAYERS)]
traced = torch.jit.trace(Step().eval(), (ids, *past))
inputs = [ct.TensorType(name="input_ids", shape=(1, ct.RangeDim(1, 64)))]
inputs += [ct.TensorType(name=f"past_key_{i}", shape=(1, 64, HIDDEN)) for i in range(LAYERS)]
outputs = [ct.TensorType(name=f"new_past_key_{i}") for i in range(LAYERS)] + [ct.TensorType(name="logits")]
ct.convert(traced, inputs=inputs, outputs=outputs).save("step.mlpackage")
"""


@pytest.mark.parametrize(
    ("edit", "logits"),
    [
        (("", ""), Logits.ALL),
        (("self.head(x))", "self.head(x)[:, -1:])"), Logits.LAST),
        (('name="logits")', 'name="hidden")'), Logits.NONE),
    ],
)
def test_outputs_behind_one_for_each_layer(tmp_path: Path, edit: tuple[str, str], logits: Logits) -> None:
    script = mutate(LAYERED, edit) if edit[0] else LAYERED
    assert graph_of(scan_text(tmp_path, {"export.py": script})).facts.logits.value is logits


def test_models_with_a_head_by_another_name(tmp_path: Path) -> None:
    script = (
        "import coremltools as ct\nimport torch\nfrom torch import nn\nfrom transformers import GPT2LMHeadModel\n\n\n"
        "class Model(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        '        self.gpt = GPT2LMHeadModel.from_pretrained("gpt2")\n'
        '        self.register_buffer("key_cache", torch.zeros(1, 64, 8))\n\n'
        "    def forward(self, input_ids):\n        self.key_cache[:, :2] = 1.0\n"
        "        return self.gpt(input_ids).logits[:, -1:]\n\n\n"
        "traced = torch.jit.trace(Model().eval(), torch.zeros(1, 4).int())\n"
        'state = ct.StateType(ct.TensorType(shape=(1, 64, 8)), name="key_cache")\n'
        'ids = ct.TensorType(name="input_ids", shape=(1, ct.RangeDim(1, 64)))\n'
        'ct.convert(traced, inputs=[ids], states=[state]).save("m.mlpackage")\n'
    )
    assert graph_of(scan_text(tmp_path, {"export.py": script})).facts.logits.value is Logits.LAST


def test_a_name_that_says_nothing_leaves_the_width_open(tmp_path: Path) -> None:
    wide = mutate(CORE_ML, ("self.head = nn.Linear(HIDDEN, VOCAB)", "self.head = nn.Linear(HIDDEN, int(input()))"))
    named = mutate(wide, ('ct.TensorType(name="logits", dtype', 'ct.TensorType(name="out", dtype'))
    assert graph_of(scan_text(tmp_path, {"export.py": named})).facts.logits.value is None
