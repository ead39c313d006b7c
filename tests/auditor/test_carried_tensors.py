"""What a graph carries on as ordinary tensors: without names for it, in lists, and under names that a file holds."""

from __future__ import annotations

from pathlib import Path

import pytest

from rules.facts import Role
from rules.verdict import judge
from tests.auditor.support import graph_of, judged, mutate, scan_text

STEP = """\
import argparse
import json
import coremltools as ct
import numpy as np
import torch
from torch import nn

HIDDEN = 16


class Mixer(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate = nn.Linear(HIDDEN, HIDDEN)

    def forward(self, x, held):
        held = held * torch.sigmoid(self.gate(x)) + x
        return x + held, held


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(128, HIDDEN)
        self.mixers = nn.ModuleList([Mixer() for _ in range(2)])
        self.head = nn.Linear(HIDDEN, 128)

    def forward(self, token, *tensors):
        x, new = self.embed(token), []
        for mixer, tensor in zip(self.mixers, tensors):
            x, held = mixer(x, tensor)
            new.append(held)
        return (self.head(x), *new)


example = (torch.zeros(1, dtype=torch.int32), torch.zeros(1, HIDDEN), torch.zeros(1, HIDDEN))
program = torch.export.export(Step().eval(), example)
ct.convert(program).save("step.mlpackage")
"""

TRACE = """\
program = torch.jit.trace(Step().eval(), example)
inputs = [ct.TensorType(name="token", shape=(1,), dtype=np.int32)]
inputs += [ct.TensorType(name=f"layer_{n}_fast", shape=(1, HIDDEN), dtype=np.float32) for n in range(2)]
ct.convert(program, inputs=inputs).save("step.mlpackage")
"""


@pytest.mark.parametrize("way", ["export", "trace"])
def test_what_comes_out_again_computed_from_itself_is_recurrent_when_only_a_token_goes_in(
    tmp_path: Path, way: str
) -> None:
    script = STEP if way == "export" else STEP[: STEP.index("program =")] + TRACE
    graph = graph_of(scan_text(tmp_path, {"export.py": script}))
    assert judge(graph.facts).says() == "out by hybrid-state"
    assert [s.role for s in graph.facts.states.value or ()] == [Role.RECURRENT, Role.RECURRENT]


def test_what_goes_in_beside_the_token_and_does_not_come_out_is_no_state(tmp_path: Path) -> None:
    script = mutate(STEP, ("new.append(held)", "new.append(held.sum())"))
    assert judged(tmp_path, script).says() == "out by not-a-decoder"


def test_hidden_states_that_go_through_a_part_of_a_model_are_no_state(tmp_path: Path) -> None:
    script = mutate(
        STEP,
        ("def forward(self, token, *tensors):", "def forward(self, token, hidden_states):"),
        ("zip(self.mixers, tensors)", "zip(self.mixers, [hidden_states])"),
        ("torch.zeros(1, HIDDEN), torch.zeros(1, HIDDEN))", "torch.zeros(1, HIDDEN))"),
    )
    assert judged(tmp_path, script).says() == "out by not-a-decoder"


def test_a_longer_query_is_not_taken_for_one_token(tmp_path: Path) -> None:
    script = mutate(
        STEP,
        (
            "torch.zeros(1, dtype=torch.int32), torch.zeros(1, HIDDEN)",
            "torch.zeros(1, 4).int(), torch.zeros(1, HIDDEN)",
        ),
    )
    assert judged(tmp_path, script).says() == "out by not-a-decoder"


NAMED = """\
import argparse
import coremltools as ct
import numpy as np
import torch
from model import Step

parser = argparse.ArgumentParser()
parser.add_argument("checkpoint")
step = Step(parser.parse_args().checkpoint)
held = []
for n in range(step.layers):
    held += [torch.zeros(1, 16), torch.zeros(1, 4, 4, 4)]
inputs = [torch.zeros(1, 1, dtype=torch.int32), *held]
traced = torch.jit.trace(step, inputs)
types = [ct.TensorType("ids", (1, 1), np.int32)]
types += [ct.TensorType(f"state_{n}_in", inputs[n + 1].shape, np.float16) for n in range(len(inputs) - 1)]
outputs = [ct.TensorType("logits"), *[ct.TensorType(f"state_{n}_out") for n in range(len(inputs) - 1)]]
ct.convert(traced, inputs=types, outputs=outputs).save("step.mlpackage")
"""


def test_tensors_called_state_are_recurrent_when_only_a_token_goes_in_beside_them(tmp_path: Path) -> None:
    judgement = judged(tmp_path, NAMED)
    assert judgement.says() == "out by hybrid-state"


@pytest.mark.parametrize("other", ['ct.TensorType("position", (1,), np.int32)', 'ct.TensorType("mask", (1, 64))'])
def test_with_a_position_or_a_mask_they_may_be_a_cache(tmp_path: Path, other: str) -> None:
    script = mutate(
        NAMED,
        (
            'types = [ct.TensorType("ids", (1, 1), np.int32)]',
            f'types = [ct.TensorType("ids", (1, 1), np.int32), {other}]',
        ),
    )
    assert "hybrid-state" not in judged(tmp_path, script).says()


LISTS = """\
import argparse
import coremltools as ct
import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--layers", type=int, required=True)
args = parser.parse_args()


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(128, 16)
        self.mix = nn.ModuleList([nn.Linear(16, 16) for _ in range(args.layers)])
        self.head = nn.Linear(16, 128)

    def forward(self, ids, slot, k_caches, v_caches):
        x, keys, values = self.embed(ids), [], []
        for i, mix in enumerate(self.mix):
            key, value = k_caches[i].scatter(1, slot, mix(x)), v_caches[i].scatter(1, slot, mix(x))
            x = x + nn.functional.scaled_dot_product_attention(x, key, value)
            keys.append(key)
            values.append(value)
        return self.head(x), keys, values


caches = [torch.zeros(1, 64, 16) for _ in range(args.layers)]
example = (torch.zeros(1, 1).long(), torch.zeros(1, 1, 16).long(), caches, caches)
ct.convert(torch.export.export(Step().eval(), example)).save("step.mlpackage")
"""


def test_caches_in_lists_of_unknown_length_come_out_again(tmp_path: Path) -> None:
    assert judged(tmp_path, LISTS).says() == "out by kv-as-io"


def test_caches_in_lists_that_are_only_read_carry_nothing_on(tmp_path: Path) -> None:
    script = mutate(LISTS, ("return self.head(x), keys, values", "return self.head(x)"))
    assert judged(tmp_path, script).says() == "out by not-a-decoder"


MANIFEST = """\
import argparse
import json
import coremltools as ct
import torch

parser = argparse.ArgumentParser()
parser.add_argument("--model", required=True)
parser.add_argument("--manifest", required=True)
args = parser.parse_args()
entries = json.load(open(args.manifest))["inputs"]
inputs = [ct.TensorType(name=entry["name"], shape=entry["shape"]) for entry in entries]
ct.convert(torch.jit.load(args.model), inputs=inputs).save("model.mlpackage")
"""


def test_inputs_whose_names_are_in_a_file_may_be_caches(tmp_path: Path) -> None:
    judgement = judged(tmp_path, MANIFEST)
    assert judgement.says().startswith("unresolved by unknown-kind")
    assert ("export.py", 10) in [(e.path, e.line) for e in judgement.reasons[0].evidence]


def test_inputs_whose_shapes_alone_are_in_a_file_have_their_names(tmp_path: Path) -> None:
    script = mutate(MANIFEST, ('name=entry["name"]', 'name="image"'))
    assert judged(tmp_path, script).says() == "out by not-a-decoder"


@pytest.mark.parametrize(
    ("output", "says"),
    [("hidden", "out by no-logits"), ("logits", "out by static-query"), ("out", "out by static-query")],
)
def test_a_part_that_gives_hidden_states_and_what_it_carries_on_gives_no_logits(
    tmp_path: Path, output: str, says: str
) -> None:
    mask = 'ct.TensorType("ids", (1, 1), np.int32), ct.TensorType("mask", (1, 64))'
    script = mutate(
        NAMED,
        ('ct.TensorType("ids", (1, 1), np.int32)', mask),
        ('ct.TensorType("logits")', f'ct.TensorType("{output}")'),
    )
    assert judged(tmp_path, script).says() == says


def test_every_input_that_a_loop_of_unknown_length_adds_is_seen(tmp_path: Path) -> None:
    types = [line for line in NAMED.splitlines() if line.startswith(("types += ", "outputs = "))]
    script = mutate(
        NAMED,
        (
            types[0],
            "for n in range(step.layers):\n"
            '    types.append(ct.TensorType(f"past_key_{n}", (1, 4, 64, 4)))\n'
            '    types.append(ct.TensorType(f"conv_state_{n}_in", (1, 16, 3)))',
        ),
        (
            types[1],
            'outputs = [ct.TensorType("logits")]\n'
            "for n in range(step.layers):\n"
            '    outputs += [ct.TensorType(f"present_key_{n}"), ct.TensorType(f"conv_state_{n}_out")]',
        ),
    )
    graph = graph_of(scan_text(tmp_path, {"export.py": script}))
    assert judge(graph.facts).says() == "out by hybrid-state"
    assert {s.name: s.role for s in graph.facts.states.value or ()}["conv_state_*_in"] is Role.CONV


WRITTEN = """\
import coremltools as ct
import numpy as np
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(128, 16)
        self.head = nn.Linear(16, 128)
        self.register_buffer("keyCache", torch.zeros(1, 64, 16))
        self.register_buffer("valueCache", torch.zeros(1, 64, 16))
        self.register_buffer("scratch", torch.zeros(1, 64))

    def forward(self, input_ids, mask, held):
        x = self.embed(input_ids)
        end = mask.shape[-1]
        self.keyCache[:, end - input_ids.shape[1] : end] = x
        self.valueCache[:, end - input_ids.shape[1] : end] = x
        held[:, :1] = 0.0
        keys, values = self.keyCache[:, :end], self.valueCache[:, :end]
        return self.head(x + nn.functional.scaled_dot_product_attention(x, keys, values, mask))


traced = torch.jit.trace(Model().eval(), (torch.zeros(1, 2).int(), torch.zeros(1, 2, 5), torch.zeros(1, 64)))
q, end = ct.RangeDim(1, 64), ct.RangeDim(1, 64)
ct.convert(
    traced,
    inputs=[
        ct.TensorType("input_ids", (1, q), np.int32),
        ct.TensorType("mask", (1, q, end)),
        ct.TensorType("held", (1, 64)),
    ],
    outputs=[ct.TensorType("logits")],
    states=[ct.StateType(ct.TensorType(shape=(1, 64, 16)), name) for name in ("keyCache", "valueCache")],
).save("m.mlpackage")
"""


def test_an_input_that_a_traced_graph_writes_is_no_state(tmp_path: Path) -> None:
    graph = graph_of(scan_text(tmp_path, {"export.py": WRITTEN}))
    assert [s.name for s in graph.facts.states.value or ()] == ["keyCache", "valueCache"]
    assert judge(graph.facts).says() == "eligible"


def test_a_buffer_that_it_writes_is_one(tmp_path: Path) -> None:
    script = mutate(WRITTEN, ("held[:, :1] = 0.0", "self.scratch[:, :1] = held[:, :1]"))
    assert "scratch" in [s.name for s in graph_of(scan_text(tmp_path, {"export.py": script})).facts.states.value or ()]
    assert str(judged(tmp_path, script).verdict) == "unresolved"


BESIDE = """\
import coremltools as ct
import numpy as np
import torch
from torch import nn


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.gate, self.head = nn.Embedding(128, 16), nn.Linear(16, 16), nn.Linear(16, 128)

    def forward(self, token, position, *tensors):
        held, encoded = tensors[:-1], tensors[-1]
        x, new = self.embed(token) + position.float()[:, None], []
        for tensor in held:
            new.append(torch.sigmoid(self.gate(x)) * tensor + x)
            x = x + new[-1] + encoded.mean(1)
        return (self.head(x), *new)


example = [torch.zeros(1, dtype=torch.int32), torch.zeros(1, dtype=torch.int32)]
example += [torch.zeros(1, 16), torch.zeros(1, 16), torch.zeros(1, 5, 16)]
types = [ct.TensorType("token", (1,), np.int32), ct.TensorType("position", (1,), np.int32)]
types += [ct.TensorType(f"state{n}", (1, 16)) for n in range(2)]
types += [ct.TensorType("encoded", (1, ct.RangeDim(1, 256), 16))]
outputs = [ct.TensorType("logits"), *[ct.TensorType(f"state{n}_out") for n in range(2)]]
ct.convert(torch.jit.trace(Step().eval(), example), inputs=types, outputs=outputs).save("step.mlpackage")
"""


def test_tensors_called_state_beside_a_position_are_recurrent_when_forward_computes_them_anew(tmp_path: Path) -> None:
    graph = graph_of(scan_text(tmp_path, {"export.py": BESIDE}))
    assert judge(graph.facts).says() == "out by hybrid-state"
    assert [s.role for s in graph.facts.states.value or ()] == [Role.RECURRENT, Role.RECURRENT]


@pytest.mark.parametrize("new", ["tensor + x", "torch.where(position > 3, tensor, x)", "tensor * (position > 3) + x"])
def test_and_may_be_anything_when_something_of_them_may_stay(tmp_path: Path, new: str) -> None:
    script = mutate(BESIDE, ("torch.sigmoid(self.gate(x)) * tensor + x", new))
    graph = graph_of(scan_text(tmp_path, {"export.py": script}))
    assert judge(graph.facts).says() == "out by static-query"
    assert [s.role for s in graph.facts.states.value or ()] == [Role.UNKNOWN, Role.UNKNOWN]


UNLISTED = """\
import coremltools as ct
import numpy as np
import torch
from elsewhere import Model, states_of

model = Model().eval()
example = (torch.zeros(1, 1, 64), torch.zeros(1), torch.zeros(4, 96, 4))
types = [
    ct.TensorType("hidden_states", (1, 1, 64), np.float16),
    ct.TensorType("current_pos", (1,), np.int32),
    ct.TensorType("linear_conv_state", (4, 96, 4), np.float16),
]
outputs = [ct.TensorType("output_hidden_states"), ct.TensorType("linear_conv_state_out")]
traced = torch.jit.trace(model, example)
ct.convert(traced, inputs=types, outputs=outputs, states=states_of(model)).save("part.mlpackage")
"""


def test_a_recurrent_state_tells_enough_where_the_declared_ones_are_not_known(tmp_path: Path) -> None:
    graph = graph_of(scan_text(tmp_path, {"export.py": UNLISTED}))
    assert judge(graph.facts).broken[0] == "hybrid-state"
    assert [(s.name, s.role) for s in graph.facts.states.value or ()] == [
        ("linear_conv_state", Role.CONV),
        ("*", Role.UNKNOWN),
    ]


def test_without_one_they_stay_unknown(tmp_path: Path) -> None:
    script = UNLISTED.replace("linear_conv_state", "attention_bias")
    facts = graph_of(scan_text(tmp_path, {"export.py": script})).facts
    assert facts.states.value is None
    assert "hybrid-state" not in judge(facts).broken


PART = """\
import coremltools as ct
import torch
from elsewhere import Block

rows, seen = ct.RangeDim(1, 128), ct.RangeDim(1, 128)
types = [ct.TensorType("hidden_state", (1, rows, 64)), ct.TensorType("causal_mask", (1, 1, rows, seen))]
states = [ct.StateType(ct.TensorType(shape=(1, 4, 128, 16)), name) for name in ("k_cache", "v_cache")]
traced = torch.jit.trace(Block().eval(), (torch.zeros(1, 1, 64), torch.zeros(1, 1, 1, 1)))
ct.convert(traced, inputs=types, outputs=[ct.TensorType("hidden_out")], states=states).save("block.mlpackage")
"""


def test_a_hidden_state_is_the_query_of_a_part_of_a_model(tmp_path: Path) -> None:
    facts = graph_of(scan_text(tmp_path, {"export.py": PART})).facts
    assert facts.query.value is not None
    assert facts.query.value.dynamic
    assert judge(facts).says() == "out by no-logits"


def test_a_network_of_samples_with_a_hidden_and_a_cell_state_is_no_decoder(tmp_path: Path) -> None:
    names = ("audio_input", "hidden_state", "cell_state")
    given = ", ".join(f'ct.TensorType("{n}", (1, 64))' for n in names)
    outputs = ", ".join(f'ct.TensorType("{n}")' for n in ("speech", "new_hidden_state", "new_cell_state"))
    script = (
        "import coremltools as ct\nimport torch\nfrom elsewhere import Network\n"
        "traced = torch.jit.trace(Network().eval(), tuple(torch.zeros(1, 64) for _ in range(3)))\n"
        f"ct.convert(traced, inputs=[{given}], outputs=[{outputs}]).save('n.mlpackage')\n"
    )
    assert judge(graph_of(scan_text(tmp_path, {"export.py": script})).facts).says() == "out by not-a-decoder"


def test_beside_another_input_it_is_that_of_a_recurrent_network(tmp_path: Path) -> None:
    script = mutate(PART, ('ct.TensorType("causal_mask", (1, 1, rows, seen))', 'ct.TensorType("targets", (1, 7))'))
    query = graph_of(scan_text(tmp_path, {"export.py": script})).facts.query.value
    assert query is not None
    assert not query.dynamic
