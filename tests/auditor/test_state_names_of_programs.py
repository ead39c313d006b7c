"""State names that a script reads off the signature of its program, and passes over a program that keep it."""

from __future__ import annotations

from pathlib import Path

import pytest

from rules.facts import Role
from rules.verdict import judge
from tests.auditor.support import graph_of, judged, mutate, scan_text

DENSE = """\
import coreai_torch
import torch
from torch import nn
from torch.export import Dim


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(128, 32)
        self.key, self.value = nn.Linear(32, 32), nn.Linear(32, 32)
        self.head = nn.Linear(32, 128)
        self.register_buffer("k_cache", torch.zeros(1, 512, 32))
        self.register_buffer("v_cache", torch.zeros(1, 512, 32))

    def forward(self, input_ids, position_ids):
        x = self.embed(input_ids)
        end = position_ids.shape[1]
        start = end - input_ids.shape[1]
        self.k_cache[:, start:end] = self.key(x)
        self.v_cache[:, start:end] = self.value(x)
        mask = position_ids[:, None, :] <= position_ids[:, start:, None]
        y = nn.functional.scaled_dot_product_attention(x, self.k_cache[:, :end], self.v_cache[:, :end], mask)
        return self.head(x + y)


model = Model().eval()
rows, seen = Dim("rows", min=1, max=64), Dim("seen", min=1, max=512)
example = (torch.zeros(1, 8, dtype=torch.int32), torch.arange(16)[None])
program = torch.export.export(model, example, dynamic_shapes={"input_ids": {1: rows}, "position_ids": {1: seen}})
program = program.run_decompositions(coreai_torch.get_decomp_table())
names = list(program.graph_signature.buffers_to_mutate.values())
converter = coreai_torch.TorchConverter().add_exported_program(
    program, input_names=["input_ids", "position_ids"], output_names=["logits"], state_names=names
)
converter.to_coreai().save_asset("dense.aimodel")
"""


@pytest.mark.parametrize(
    "spelled",
    [
        "list(program.graph_signature.buffers_to_mutate.values())",
        "tuple(program.graph_signature.buffers_to_mutate.values())",
        "[*program.graph_signature.buffers_to_mutate.values()]",
        "['k_cache', 'v_cache']",
    ],
)
def test_the_names_of_what_a_program_mutates_are_those_of_what_forward_writes(tmp_path: Path, spelled: str) -> None:
    script = mutate(DENSE, ("list(program.graph_signature.buffers_to_mutate.values())", spelled))
    graph = graph_of(scan_text(tmp_path, {"export.py": script}))
    assert judge(graph.facts).says() == "eligible"
    assert [s.role for s in graph.facts.states.value or ()] == [Role.KV_KEY, Role.KV_VALUE]


def test_names_that_the_script_computes_from_them_are_not_known(tmp_path: Path) -> None:
    spelled = "[n.upper() for n in program.graph_signature.buffers_to_mutate.values()]"
    script = mutate(DENSE, ("list(program.graph_signature.buffers_to_mutate.values())", spelled))
    assert judged(tmp_path, script).says().startswith("unresolved")


def test_a_recurrence_is_among_them(tmp_path: Path) -> None:
    made = '        self.register_buffer("conv", torch.zeros(1, 1, 32))\n'
    gate = "        self.conv[:] = self.conv * torch.sigmoid(self.key(x).mean(1, keepdim=True))\n"
    before = ('        self.register_buffer("v_cache"', "        self.k_cache[:, start:end] =")
    script = mutate(DENSE, *((b, a + b) for a, b in zip((made, gate), before, strict=True)))
    assert judged(tmp_path, script).says() == "out by hybrid-state"


def test_of_a_module_that_nobody_can_read_they_are_not_known(tmp_path: Path) -> None:
    script = mutate(DENSE, ("model = Model().eval()", "from elsewhere import Other\nmodel = Other().eval()"))
    judgement = judged(tmp_path, script)
    assert judgement.says().startswith("unresolved")
    assert "unknown-states" in judgement.says() or "unknown-kind" in judgement.says()


def test_what_a_part_writes_that_nobody_can_read_may_be_more(tmp_path: Path) -> None:
    script = mutate(
        DENSE,
        ("import coreai_torch", "import coreai_torch\nfrom elsewhere import Mixer"),
        ("self.head = nn.Linear(32, 128)", "self.head = nn.Linear(32, 128)\n        self.mixer = Mixer(32)"),
        ("return self.head(x + y)", "return self.head(self.mixer(x + y))"),
    )
    graph = graph_of(scan_text(tmp_path, {"export.py": script}))
    assert judge(graph.facts).says().startswith("unresolved")
    assert [s.role for s in graph.facts.states.value or ()] == [Role.KV_KEY, Role.KV_VALUE, Role.UNKNOWN]


@pytest.mark.parametrize(
    "lines",
    [
        "from coreai_opt.casting import cast_to_16_bit_precision\ncast_to_16_bit_precision(program)",
        "from coreai_opt.casting import cast_to_16_bit_precision\nprogram = cast_to_16_bit_precision(program)",
        "from coreai_opt.casting.casting import cast_fp32_to_fp16\ncast_fp32_to_fp16(exported_program=program)",
        "from coreai_torch._compression.utils import inject_subbyte_tensors\nprogram = inject_subbyte_tensors(program)",
    ],
)
def test_a_pass_that_changes_types_keeps_the_program(tmp_path: Path, lines: str) -> None:
    assert judged(tmp_path, mutate(DENSE, ("names = list(", lines + "\nnames = list("))).says() == "eligible"


@pytest.mark.parametrize("function", ["coreai_opt.casting.rewritten", "elsewhere.cast_to_16_bit_precision"])
def test_any_other_function_of_a_program_is_not_followed(tmp_path: Path, function: str) -> None:
    module, _, name = function.rpartition(".")
    lines = f"from {module} import {name}\nprogram = {name}(program)\nnames = list("
    assert judged(tmp_path, mutate(DENSE, ("names = list(", lines))).says().startswith("unresolved")


UNREAD = """\
import coreai_torch
import torch
from torch.export import Dim
from elsewhere import Model

model = Model.load("weights")
example = (torch.randn(1, 5, 16), torch.arange(5)[None])
rows = Dim("rows", min=1, max=512)
program = torch.export.export(model, args=example, dynamic_shapes={"features": {1: rows}, "position_ids": {1: rows}})
converter = coreai_torch.TorchConverter().add_exported_program(
    program, input_names=["features", "position_ids"], output_names=["logits"], state_names=["keyCache", "valueCache"]
)
converter.to_coreai().save_asset("unread.aimodel")
"""


def test_the_inputs_of_a_module_that_nobody_can_read_are_called_as_its_dynamic_shapes_say(tmp_path: Path) -> None:
    query = graph_of(scan_text(tmp_path, {"export.py": UNREAD})).facts.query
    assert query.value is not None
    assert query.value.dynamic


@pytest.mark.parametrize(
    ("shapes", "dynamic"),
    [
        ('{"features": None, "position_ids": {1: rows}}', False),
        ("({1: rows}, {1: rows})", True),
        ("(None, {1: rows})", False),
        ("None", False),
    ],
)
def test_and_by_their_order(tmp_path: Path, shapes: str, dynamic: bool) -> None:
    script = mutate(UNREAD, ('{"features": {1: rows}, "position_ids": {1: rows}}', shapes))
    query = graph_of(scan_text(tmp_path, {"export.py": script})).facts.query
    assert query.value is not None
    assert query.value.dynamic is dynamic


UNKNOWN_NAMES = """\
import torch
from coreai_torch import TorchConverter
from outside import STATE_NAMES, Model

one = torch.zeros((1, 1), dtype=torch.int32)
cache, kept = torch.zeros(2, 1, 4, 64, 16), torch.zeros(2, 1, 32, 3)
example = (one, one, cache, cache, kept)
axes = {"input_ids": None, "position_ids": None, "key_cache": None, "value_cache": None, "conv_state": None}
program = torch.export.export(Model().eval(), example, dynamic_shapes=axes)
converter = TorchConverter().add_exported_program(
    program, input_names=["input_ids", "position_ids"], output_names=["logits"], state_names=STATE_NAMES
)
converter.to_coreai().save_asset("model.aimodel")
"""
PLAIN = ((", kept)", ")"), (', "conv_state": None', ""))


def test_caches_of_an_unread_module_may_be_the_states_whose_names_nobody_knows(tmp_path: Path) -> None:
    facts = graph_of(scan_text(tmp_path, {"export.py": mutate(UNKNOWN_NAMES, *PLAIN)})).facts
    assert facts.kind.value is None
    assert facts.kv.value is None
    assert judge(facts).says() == "out by static-query"


def test_a_recurrent_state_among_them_makes_a_hybrid_and_no_other_network(tmp_path: Path) -> None:
    facts = graph_of(scan_text(tmp_path, {"export.py": UNKNOWN_NAMES})).facts
    assert facts.kv.value is None
    assert judge(facts).says() == "out by hybrid-state"
    assert facts.states.value is not None
    assert facts.states.value[0].reason == "`conv_state` goes in, as a declared state or as an ordinary tensor"
