"""Other routes to a Core ML or Core AI graph: ExecuTorch, other programs, state through ordinary inputs, registries."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from rules.facts import FileStatus, Kind, Role
from rules.verdict import Verdict, judge
from tests.auditor.support import CORE_ML, EXPORTER, default_graphs, file_of, graph_of, judged, mutate, scan_text, write

# -- ExecuTorch ---------------------------------------------------------------------------------------------------

EXECUTORCH = (
    EXPORTER.split("    converter = TorchConverter()")[0].replace(
        "from coreai_torch import TorchConverter",
        "from executorch.backends.apple.coreml.partition import CoreMLPartitioner\n"
        "from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner\n"
        "from executorch.exir import to_edge, to_edge_transform_and_lower, to_edge_with_preserved_ops\n"
        "from executorch.extension.export_util.utils import save_pte_program",
    )
    + """\
    edge = to_edge_transform_and_lower({"decode": program}, partitioner=[CoreMLPartitioner()])
    save_pte_program(edge.to_executorch(), "model", "out")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--static", action="store_true")
    export(parser.parse_args())
"""
)
LOWER = 'to_edge_transform_and_lower({"decode": program}, partitioner=[CoreMLPartitioner()])'


@pytest.mark.parametrize(
    "edge",
    [
        LOWER,
        "to_edge(program).to_backend(CoreMLPartitioner())",
        "to_edge_with_preserved_ops(program, preserve_ops=[torch.ops.aten.linear]).to_backend(CoreMLPartitioner())",
    ],
)
def test_executorch(tmp_path: Path, edge: str) -> None:
    graph = graph_of(scan_text(tmp_path, {"export.py": mutate(EXECUTORCH, (LOWER, edge))}))
    assert judge(graph.facts).says() == "eligible"
    assert graph.bundle == "out/model.pte"
    assert graph.graph == ("decode" if edge == LOWER else "forward")
    assert {s.name: s.role for s in graph.facts.states.value or ()} == {
        "key_cache": Role.KV_KEY,
        "value_cache": Role.KV_VALUE,
    }


def test_executorch_for_other_backends_exports_nothing_for_apple(tmp_path: Path) -> None:
    script = mutate(EXECUTORCH, (LOWER, LOWER.replace("CoreMLPartitioner", "XnnpackPartitioner")))
    assert default_graphs(scan_text(tmp_path, {"export.py": script})) == []


UNREAD = {
    "dynamic shapes by a tree": (
        "dynamic_shapes=dynamic)",
        "dynamic_shapes=torch.utils._pytree.tree_map(dims_of, inputs))",
    ),
    "a program goes through an unread call": ("    edge =", "    program = rewrite(program)\n    edge ="),
    "the graph is edited": ("    edge =", "    program.graph.output_node().update_arg(0, ())\n    edge ="),
}


@pytest.mark.parametrize("name", sorted(UNREAD))
def test_a_program_that_was_not_followed_may_have_states(tmp_path: Path, name: str) -> None:
    script = mutate(EXECUTORCH, ("import argparse\n", "import argparse\nfrom other import dims_of, rewrite\n"))
    script = mutate(script, *_buffers(), UNREAD[name])
    judgement = judged(tmp_path, script)
    assert judgement.verdict is Verdict.UNRESOLVED, [f.message for f in judgement.reasons]


def _buffers() -> tuple[tuple[str, str], ...]:
    """The cache as buffers of the model: nothing but what `forward` writes says that they are states."""
    registered = "".join(
        f'        self.register_buffer("{n}", torch.zeros(LAYERS, 1, HEADS, 64, HIDDEN // HEADS))\n'
        for n in ("key_cache", "value_cache")
    )
    head = "        self.head = nn.Linear(HIDDEN, VOCAB)\n"
    return (
        (head, head + registered),
        ("input_ids, position_ids, key_cache, value_cache):\n        rows", "input_ids, position_ids):\n        rows"),
        (
            "x = layer(x, position_ids, key_cache[i], value_cache[i])",
            "x = layer(x, position_ids, self.key_cache[i], self.value_cache[i])",
        ),
        ('        "key_cache": cache,\n        "value_cache": cache.clone(),\n', ""),
        ('        "key_cache": {3: Dim("capacity", min=64, max=CONTEXT)},\n', ""),
        ('        "value_cache": {3: Dim("capacity", min=64, max=CONTEXT)},\n', ""),
    )


@pytest.mark.parametrize(
    ("seen", "says"),
    [
        ("{1: Dim.AUTO}", "eligible"),
        ("None", "unresolved by unknown-logits"),
    ],
)
def test_executorch_with_a_cache_in_buffers(tmp_path: Path, seen: str, says: str) -> None:
    """Each `Dim.AUTO` is a dimension of its own; a length that is fixed puts the rows in one place."""
    free = ('{1: Dim("tokens", min=1, max=64)}', "{1: Dim.AUTO}")
    script = mutate(EXECUTORCH, *_buffers(), free, ('{1: Dim("seen", min=1, max=CONTEXT)}', seen))
    judgement = judged(tmp_path, script)
    assert judgement.says() == says, [f.message for f in judgement.reasons]


def test_executorch_rows(tmp_path: Path) -> None:
    last = mutate(EXECUTORCH, ("self.head(x)", "self.head(x[:, -1:])"))
    assert judged(tmp_path, last).says() == "out by last-token-only"


# -- shapes that a graph is compiled for --------------------------------------------------------------------------

PINNED = """\
    made = converter.to_coreai()
    made.set_static_shape_config("main", {f'"{n}"': {"position_ids": (1, 64), "input_ids": (1, n)} for n in WIDTHS})
    made.save_asset("out/model.aimodel")
"""


@pytest.mark.parametrize(
    ("widths", "verdict"),
    [
        ("(8, 16)", "unresolved by fixed-window"),
        ("(1,)", "out by static-query"),
        ("range(int(input()))", "unresolved by unknown-query"),
    ],
)
def test_static_shape_configurations_pin_the_query(tmp_path: Path, widths: str, verdict: str) -> None:
    script = mutate(EXPORTER, ('    converter.to_coreai().save_asset("out/model.aimodel")\n', PINNED))
    script = mutate(script, ("VOCAB, HIDDEN, HEADS", f"WIDTHS = {widths}\nVOCAB, HIDDEN, HEADS"))
    assert judged(tmp_path, script).says() == verdict


# -- state through ordinary inputs --------------------------------------------------------------------------------

LSTM = """\
import coremltools as ct
import numpy as np
import torch
from torch import nn


class Predictor(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(32, 16)
        self.lstm = nn.LSTM(16, 16)

    def forward(self, targets, h_in, c_in):
        y, (h, c) = self.lstm(self.embed(targets), (h_in, c_in))
        return y, h, c


state = torch.zeros(1, 1, 16)
traced = torch.jit.trace(Predictor().eval(), (torch.zeros(1, 1, dtype=torch.int32), state, state))
inputs = [
    ct.TensorType(name="targets", shape=(1, 1), dtype=np.int32),
    ct.TensorType(name="h_in", shape=(1, 1, 16)),
    ct.TensorType(name="c_in", shape=(1, 1, 16)),
]
outputs = [ct.TensorType(name=n) for n in ("y", "h_out", "c_out")]
ct.convert(traced, inputs=inputs, outputs=outputs).save("predictor.mlpackage")
"""


def test_an_lstm_state_in_ordinary_inputs(tmp_path: Path) -> None:
    graph = graph_of(scan_text(tmp_path, {"export.py": LSTM}))
    assert {s.name: s.role for s in graph.facts.states.value or ()} == {"h_in": Role.RECURRENT, "c_in": Role.RECURRENT}
    assert judge(graph.facts).says() == "out by hybrid-state"


@pytest.mark.parametrize(
    "edit",
    [
        ('ct.TensorType(name="targets", shape=(1, 1), dtype=np.int32)', 'ct.TensorType(name="audio", shape=(1, 1))'),
        ('name="c_in", shape=(1, 1, 16)', 'name="c_in", shape=(1, 4, 16)'),
        ('name="h_in"', 'name="features"'),
    ],
)
def test_what_is_no_lstm_state_of_a_token_graph(tmp_path: Path, edit: tuple[str, str]) -> None:
    assert judged(tmp_path, mutate(LSTM, edit)).says() == "out by not-a-decoder"


UNREAD_LSTM = (
    ("import torch\n", "import torch\nfrom speech import Network\n"),
    ("self.lstm = nn.LSTM(16, 16)", "self.network = Network.from_pretrained('x')"),
    ("self.lstm(self.embed(targets), (h_in, c_in))", "self.network(targets=targets, states=[h_in, c_in])"),
)
RENAMED = (
    UNREAD_LSTM[0],
    UNREAD_LSTM[1],
    ("forward(self, targets, h_in, c_in)", "forward(self, targets, hidden, cell)"),
    ("self.lstm(self.embed(targets), (h_in, c_in))", "self.network(targets=targets, states=[hidden, cell])"),
)


@pytest.mark.parametrize("edits", [UNREAD_LSTM, RENAMED])
def test_an_lstm_state_that_unread_code_receives(tmp_path: Path, edits: tuple[tuple[str, str], ...]) -> None:
    """Nobody can say what the network does to its inputs; that they are a recurrent state, names and shapes say."""
    facts = graph_of(scan_text(tmp_path, {"export.py": mutate(LSTM, *edits)})).facts
    assert {s.name: s.role for s in facts.states.value or ()} == {"h_in": Role.RECURRENT, "c_in": Role.RECURRENT}
    assert judge(facts).broken[0] == "hybrid-state"
    other = ('name="c_in", shape=(1, 1, 16)', 'name="c_in", shape=(1, 4, 16)')
    assert "hybrid-state" not in judged(tmp_path, mutate(LSTM, *edits, other)).broken


READ_ONLY = """\
import coremltools as ct
import numpy as np
import torch
from torch import nn


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(32, 16)

    def forward(self, ids, kv_cache):
        return OUTPUT


traced = torch.jit.trace(Reader().eval(), (torch.zeros(1, 4, dtype=torch.int32), torch.zeros(1, 64, 16)))
inputs = [
    ct.TensorType(name="ids", shape=(1, 4), dtype=np.int32),
    ct.TensorType(name="kv_cache", shape=(1, 64, 16)),
]
ct.convert(traced, inputs=inputs).save("reader.mlpackage")
"""


def test_a_cache_that_is_only_read_makes_no_decoder(tmp_path: Path) -> None:
    one = READ_ONLY.replace("OUTPUT", "self.embed(ids) + kv_cache[:, :4]")
    two = READ_ONLY.replace("OUTPUT", "self.embed(ids), kv_cache * 2")
    assert judged(tmp_path / "one", one).says() == "out by not-a-decoder"
    assert judged(tmp_path / "two", two).says() == "out by kv-as-io"


@pytest.mark.parametrize("name", ["kv_write_mask", "kv_cache_mask", "past_kv_length", "cache_key_positions"])
def test_what_says_where_a_cache_is_written_is_no_cache(tmp_path: Path, name: str) -> None:
    script = READ_ONLY.replace("OUTPUT", "self.embed(ids), kv_cache * 2").replace("kv_cache", name)
    assert judged(tmp_path, script).says() == "out by not-a-decoder"


@pytest.mark.parametrize(
    "output",
    [
        '{"y": self.embed(ids), "out": ({"k": kv_cache * 2}, {})}',
        '(self.embed(ids), {"caches": [kv_cache * 2]})',
        "Result(logits=self.embed(ids), caches=(kv_cache * 2, None))",
    ],
)
def test_a_cache_that_comes_out_inside_something(tmp_path: Path, output: str) -> None:
    """Outputs are flattened: what stands in dicts and tuples of an output is an output."""
    above = (
        "class Reader",
        "@dataclass\nclass Result:\n    logits: object\n    caches: object\n\n\nclass Reader",
    )
    script = mutate(READ_ONLY, above, ("import torch\n", "import torch\nfrom dataclasses import dataclass\n"))
    assert judged(tmp_path, script.replace("OUTPUT", output)).says() == "out by kv-as-io"
    assert judged(tmp_path, script.replace("OUTPUT", output.replace("kv_cache * 2", "None"))).says() == (
        "out by not-a-decoder"
    )


VECTOR = """\
import torch
from torch import nn
from executorch.backends.apple.coreml.partition import CoreMLPartitioner
from executorch.exir import to_edge


class Lookup(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("cache", torch.zeros(4, 3))

    def forward(self, q, value, at):
        return torch.ops.aten.index_put_(self.cache, [at, None], value).mm(q.transpose(0, 1))


example = (torch.randn((1, 3)), torch.randn((1, 3)), torch.tensor([0]))
to_edge(torch.export.export(Lookup(), example)).to_backend(CoreMLPartitioner())
"""


def test_a_vector_is_no_query_of_tokens(tmp_path: Path) -> None:
    graph = graph_of(scan_text(tmp_path / "vector", {"export.py": VECTOR}))
    assert [s.name for s in graph.facts.states.value or ()] == ["cache"]
    assert judge(graph.facts).says() == "out by not-a-decoder"
    rows = mutate(VECTOR, ("(torch.randn((1, 3)), ", "(torch.randn((1, 2, 3)), "))
    assert graph_of(scan_text(tmp_path / "rows", {"export.py": rows})).facts.kind.value is Kind.DECODER


# -- programs -----------------------------------------------------------------------------------------------------


def test_an_exporting_program_without_its_source_is_unresolved(tmp_path: Path) -> None:
    script = 'import subprocess\nsubprocess.run(["coreai.llm.export", "some/model"])\n'
    judgement = judged(tmp_path, script)
    assert str(judgement.verdict) == "unresolved"
    assert judgement.primary is not None
    assert "coreai.llm.export" in judgement.primary.message


def test_a_function_that_starts_one_of_several_programs(tmp_path: Path) -> None:
    script = """\
import subprocess

TOOLS = {"coreai.llm.export", "other"}


def convert(recipe):
    subprocess.run([recipe.tool, "--output-dir", "out"])
"""
    assert str(judged(tmp_path / "one", script).verdict) == "unresolved"
    without = mutate(script, ('"coreai.llm.export"', '"some.tool"'))
    assert default_graphs(scan_text(tmp_path / "two", {"export.py": without})) == []


# -- registries ---------------------------------------------------------------------------------------------------


def test_a_class_that_registers_itself_by_a_decorator(tmp_path: Path) -> None:
    registry = (
        "TABLE = {}\n\n\ndef register(name):\n    def put(cls):\n        TABLE[name] = cls\n        return cls\n"
        "    return put\n"
    )
    model = EXPORTER[EXPORTER.index("class Layer") : EXPORTER.index("def export")]
    head = EXPORTER[: EXPORTER.index("class Layer")]
    script = mutate(
        head + EXPORTER[EXPORTER.index("def export") :],
        ("    model = Model().eval()", '    model = TABLE["dense"]().eval()'),
        ("import argparse\n", "import argparse\nimport zoo_models\nfrom registry import TABLE\n"),
    )
    models = (
        head + "from registry import register\n\n\n" + mutate(model, ("class Model", '@register("dense")\nclass Model'))
    )
    files = {"registry.py": registry, "zoo_models.py": models, "export.py": script}
    assert judge(graph_of(scan_text(tmp_path, files)).facts).says() == "eligible"
    assert Kind.DECODER is graph_of(scan_text(tmp_path, files)).facts.kind.value


# -- phases -------------------------------------------------------------------------------------------------------

PHASES = """\
import argparse
import torch
from torch import nn
from coreai_torch import TorchConverter

KEYS = [f"k_{i}" for i in range(20)]
VALUES = [f"v_{i}" for i in range(20)]


class Step(nn.Module):
    def forward(self, new_token, *cache):
        return (new_token, *cache)


parser = argparse.ArgumentParser()
parser.add_argument("--lower", action="store_true")
if parser.parse_args().lower:
    converter = TorchConverter()
    converter.add_exported_program(
        torch.export.load("step.pt2"),
        input_names=["new_token", *KEYS, *VALUES],
        output_names=OUTPUTS,
    )
else:
    import policy

    torch.export.save(policy.trace(), "step.pt2")
"""


def test_a_later_phase_is_tried_when_the_first_exports_nothing(tmp_path: Path) -> None:
    carried = PHASES.replace("OUTPUTS", '["logits", *KEYS, *VALUES]')
    graph = graph_of(scan_text(tmp_path / "carried", {"export.py": carried}))
    assert graph.invocation.argv == ("--lower",)
    assert judge(graph.facts).says() == "out by kv-as-io"
    read = PHASES.replace("OUTPUTS", '["velocity"]')
    assert judged(tmp_path / "read", read).says() == "out by not-a-decoder"
    open_ = PHASES.replace("OUTPUTS", '["logits", "confidence"]')
    assert str(judged(tmp_path / "open", open_).verdict) == "unresolved"


def test_a_saved_program_is_loaded_again(tmp_path: Path) -> None:
    script = mutate(
        EXPORTER,
        (
            "    converter = TorchConverter()",
            '    torch.export.save(program, "m.pt2")\n    program = torch.export.load("m.pt2")\n'
            "    converter = TorchConverter()",
        ),
    )
    assert judged(tmp_path, script).says() == "eligible"
    other = mutate(script, ('load("m.pt2")', 'load("other.pt2")'))
    assert str(judged(tmp_path / "other", other).verdict) == "unresolved"


HF = """\
import coremltools as ct
import torch
from torch import nn
from transformers import AutoModelForCausalLM


class Decoder(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.layers, self.norm, self.head = model.model.layers, model.model.norm, model.lm_head
        self.register_buffer("keyCache", torch.zeros(1, 4, 64, 8))
        self.register_buffer("valueCache", torch.zeros(1, 4, 64, 8))

    def forward(self, hidden_states, mask):
        rows = hidden_states.shape[1]
        end = mask.shape[-1]
        attention = self.layers[0].self_attn
        k = attention.k_proj(self.layers[0].input_layernorm(hidden_states)).view(1, rows, 4, 8).transpose(1, 2)
        self.keyCache[:, :, end - rows : end] = k
        self.valueCache[:, :, end - rows : end] = k
        return self.head(self.norm(hidden_states + attention.o_proj(k.transpose(1, 2).reshape(1, rows, 32))))


model = Decoder(AutoModelForCausalLM.from_pretrained("some/model")).eval()
traced = torch.jit.trace(model, (torch.zeros(1, 1, 32), torch.zeros(1, 1, 1, 5)))
rows, seen = ct.RangeDim(1, 64), ct.RangeDim(1, 64)
ct.convert(
    traced,
    inputs=[
        ct.TensorType("hidden_states", shape=(1, rows, 32)),
        ct.TensorType("mask", shape=(1, 1, rows, seen)),
    ],
    outputs=[ct.TensorType("logits")],
    states=[
        ct.StateType(wrapped_type=ct.TensorType(shape=(1, 4, 64, 8)), name="keyCache"),
        ct.StateType(wrapped_type=ct.TensorType(shape=(1, 4, 64, 8)), name="valueCache"),
    ],
).save("m.mlpackage")
"""


def test_parts_of_a_hugging_face_model(tmp_path: Path) -> None:
    assert judged(tmp_path / "all", HF).says() == "eligible"
    last = mutate(
        HF, ("return self.head(self.norm(hidden_states +", "return self.head(self.norm(hidden_states[:, -1:] +")
    )
    assert judged(tmp_path / "last", last).says() != "eligible"
    unread = mutate(HF, ("self.norm(hidden_states +", "attention(hidden_states +"))
    assert str(judged(tmp_path / "unread", unread).verdict) == "unresolved"


OPENS = """\
import coremltools as ct
import elsewhere

model = ct.models.MLModel("decoder.mlpackage")
elsewhere.write("out.wav", model.predict({"ids": [1]}), 16000)
"""


def test_a_script_that_only_opens_converted_models_makes_no_graph(tmp_path: Path) -> None:
    result = scan_text(tmp_path, {"run.py": OPENS, "export.py": CORE_ML})
    found = file_of(result, "run.py")
    assert found.status is FileStatus.NO_EXPORT
    assert "`elsewhere` (run.py:2)" in found.reason
    assert {g.script for g in result.graphs} == {"export.py"}


def test_the_same_script_with_a_call_that_may_convert_is_unresolved(tmp_path: Path) -> None:
    call = "from elsewhere import convert_all\nconvert_all(model, convert_to='mlprogram')\n"
    result = scan_text(tmp_path, {"run.py": OPENS + call})
    assert judge(graph_of(result, "run.py").facts).says() == "unresolved by unknown-kind"


LAST = "out by last-token-only"
BASE = mutate(
    HF,
    ("from transformers import AutoModelForCausalLM", "from transformers import Qwen2Config, Qwen2Model"),
    ("model.model.layers, model.model.norm, model.lm_head", "model.layers, model.norm, nn.Linear(32, 128)"),
    ('AutoModelForCausalLM.from_pretrained("some/model")', "Qwen2Model(Qwen2Config(hidden_size=32, vocab_size=128))"),
)


@pytest.mark.parametrize(
    ("edits", "says"),
    [
        ((), "eligible"),
        ((("return self.head(self.norm(", "return (self.norm("), ('ct.TensorType("logits")', "")), "out by no-logits"),
        (
            (
                ("return self.head(", "return self.head(-"),
                ("reshape(1, rows, 32))))", "reshape(1, rows, 32)))[:, -1:])"),
            ),
            LAST,
        ),
        ((("model.layers, model.norm", "model.layers[:4], model.norm"),), "eligible"),
    ],
)
def test_a_hugging_face_model_without_a_head(tmp_path: Path, edits: tuple[tuple[str, str], ...], says: str) -> None:
    assert judged(tmp_path, mutate(BASE, *edits)).says() == says


def test_a_model_whose_code_comes_with_its_checkpoint_is_not_known(tmp_path: Path) -> None:
    script = mutate(
        BASE,
        ("import Qwen2Config, Qwen2Model", "import AutoModel"),
        ("Qwen2Model(Qwen2Config(hidden_size=32, vocab_size=128))", 'AutoModel.from_pretrained("m", trust=True)'),
    )
    assert judged(tmp_path / "known", script).says() == "eligible"
    remote = script.replace("trust=True", "trust_remote_code=True")
    assert str(judged(tmp_path / "remote", remote).verdict) == "unresolved"


# -- programs without a module ------------------------------------------------------------------------------------

STABLEHLO = """\
import coremltools as ct
import jax
from jax.export import export
from stablehlo_coreml import DEFAULT_HLO_PIPELINE
from stablehlo_coreml.converter import convert


def decode(params, ids, position, cache):
    return params["head"] @ params["embed"][ids], cache


hlo = export(jax.jit(decode))(None, None, None, None).mlir_module()
program = convert(hlo, minimum_deployment_target=ct.target.iOS18)
ct.convert(program, source="milinternal", pass_pipeline=DEFAULT_HLO_PIPELINE).save("decode.mlpackage")
"""


def test_a_program_from_stablehlo_is_unresolved_where_it_is_made(tmp_path: Path) -> None:
    judgement = judged(tmp_path, STABLEHLO)
    assert judgement.says() == "unresolved by unknown-kind"
    finding = judgement.reasons[0]
    assert "StableHLO" in finding.message
    assert ("export.py", 13) in [(e.path, e.line) for e in finding.evidence]


MIL = """\
import coremltools as ct
from coremltools.converters.mil import Builder as mb
from coremltools.converters.mil.mil import types


@mb.program(input_specs=[mb.TensorSpec(shape=(1, 1), dtype=types.int32), SECOND])
def program(ids, keys):
    return mb.relu(x=keys)


ct.convert(program, convert_to="mlprogram").save("m.mlpackage")
"""


@pytest.mark.parametrize(
    ("second", "says"),
    [
        ("mb.TensorSpec(shape=(1, 4, 64, 8))", "out by not-a-decoder"),
        ("mb.StateTensorSpec(shape=(1, 4, 64, 8), dtype=types.fp16)", "out by static-query"),
    ],
)
def test_a_program_written_op_by_op(tmp_path: Path, second: str, says: str) -> None:
    assert judged(tmp_path, MIL.replace("SECOND", second)).says() == says


@pytest.mark.parametrize(
    ("second", "says"),
    [
        ("mb.TensorSpec(shape=(1, 4, 64, 8))", "out by not-a-decoder"),
        ("mb.StateTensorSpec(shape=(1, 4, 64, 8), dtype=types.fp16)", "unresolved by fixed-window"),
        ("*json.load(open('specs.json'))", "unresolved by fixed-window"),
    ],
)
def test_inputs_given_to_the_call_do_not_hide_the_states_of_the_program(tmp_path: Path, second: str, says: str) -> None:
    flexible = 'inputs=[ct.TensorType("ids", ct.EnumeratedShapes(shapes=[(1, 4), (1, 8)]))], convert_to'
    script = "import json\n" + MIL.replace("SECOND", second).replace("convert_to", flexible)
    assert judged(tmp_path, script).says() == says


def test_a_flexible_program_written_op_by_op_is_not_guessed_at(tmp_path: Path) -> None:
    state = MIL.replace("SECOND", "mb.StateTensorSpec(shape=(1, 4, 64, 8), dtype=types.fp16)")
    script = state.replace("shape=(1, 1)", "shape=(1, get_new_symbol())")
    assert str(judged(tmp_path, script).verdict) == "unresolved"


def test_where_knowledge_of_a_program_written_op_by_op_ends_is_its_definition(tmp_path: Path) -> None:
    state = MIL.replace("SECOND", "mb.StateTensorSpec(shape=(1, 4, 64, 8), dtype=types.fp16)")
    found = graph_of(scan_text(tmp_path, {"export.py": state})).facts.logits
    assert "op by op" in found.reason
    assert ("export.py", 6) in [(e.path, e.line) for e in found.evidence]


def test_several_models_in_one_call_are_not_taken_for_no_decoder(tmp_path: Path) -> None:
    script = CORE_ML.replace("    traced,\n", "    {'init': traced, 'decode': traced},\n", 1)
    assert str(judged(tmp_path / "states", script).verdict) == "unresolved"
    stateless = script[: script.index("    states=[")] + ").save('m.mlpackage')\n"
    assert judged(tmp_path / "none", stateless).says() == "unresolved by unknown-kind"


TRACED = """\
import coremltools as ct
import torch
from torch import nn


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(64, 16)
        self.head = nn.Linear(16, 64)

    def forward(self, input_ids, *past):
        x = self.embed(input_ids)
        return self.head(x), *[torch.cat([p, x[:, None]], 2) for p in past]


past = [torch.zeros(1, 1, 4, 16) for _ in range(4)]
ct.convert(torch.jit.trace(Step().eval(), (torch.zeros(1, 1, dtype=torch.long), *past))).save("m.mlpackage")
"""


def test_the_inputs_of_a_trace_where_none_are_declared(tmp_path: Path) -> None:
    assert judged(tmp_path, TRACED).says() == "out by kv-as-io"
    wide = mutate(TRACED, ("torch.zeros(1, 1, dtype", "torch.zeros(1, 8, dtype"))
    assert judged(tmp_path / "wide", wide).says() == "out by kv-as-io"
    none = TRACED.replace("*past)", "past)").replace(", *[torch.cat([p, x[:, None]], 2) for p in past]", "")
    assert judged(
        tmp_path / "none", none.replace("def forward(self, input_ids, past)", "def forward(self, input_ids, mask)")
    ).says() == ("out by not-a-decoder")


def test_a_program_that_is_converted_further_is_one_graph(tmp_path: Path) -> None:
    script = CORE_ML.replace(
        'mlmodel.save("out/model.mlpackage")\n',
        'ct.convert(mlmodel, source="milinternal", convert_to="mlprogram").save("out/model.mlpackage")\n',
    )
    graph = graph_of(scan_text(tmp_path, {"export.py": script}))
    assert judge(graph.facts).says() == "eligible"
    assert graph.bundle == "out/model.mlpackage"


# -- libraries of another version ---------------------------------------------------------------------------------

MOVED = mutate(
    EXPORTER,
    (
        "from coreai_torch import TorchConverter\n",
        "from coreai_torch import TorchConverter\nfrom kit.export.rows import keep\n",
    ),
    ("        x = self.norm(x)\n", "        x = keep(self.norm(x))\n"),
)


def test_a_module_that_a_library_has_elsewhere_is_named(tmp_path: Path) -> None:
    library = tmp_path / "lib"
    write(library, {"kit/__init__.py": "", "kit/rows.py": "def keep(x):\n    return x\n"})
    (graph,) = default_graphs(scan_text(tmp_path / "repo", {"export.py": MOVED}, libraries=(library,)))
    judgement = judge(graph.facts)
    assert judgement.says() == "unresolved by unknown-logits"
    message = judgement.reasons[0].message
    assert "`kit.export.rows`" in message
    assert "kit/rows.py" in message
    assert "--library" not in message


EITHER = mutate(
    MOVED,
    (
        "from kit.export.rows import keep\n",
        "try:\n    from kit.export.rows import keep\nexcept ImportError:\n    from kit.rows import keep\n",
    ),
)


@pytest.mark.parametrize("folder", ["kit", "kit/export"])
@pytest.mark.parametrize(("body", "says"), [("x", "eligible"), ("x[:, -1:]", LAST)])
def test_a_script_that_is_made_for_two_versions_of_a_library(tmp_path: Path, folder: str, body: str, says: str) -> None:
    library = tmp_path / "lib"
    write(
        library,
        {"kit/__init__.py": "", f"{folder}/__init__.py": "", f"{folder}/rows.py": f"def keep(x):\n    return {body}\n"},
    )
    (graph,) = default_graphs(scan_text(tmp_path / "repo", {"export.py": EITHER}, libraries=(library,)))
    assert judge(graph.facts).says() == says


def test_an_import_that_may_fail_for_another_reason(tmp_path: Path) -> None:
    """What no library has may be there when the script runs: neither way is taken for the other."""
    library = tmp_path / "lib"
    write(library, {"kit/__init__.py": "", "kit/other.py": "def keep(x):\n    return x\n"})
    script = mutate(EITHER, ("from kit.rows import", "from kit.other import"))
    (graph,) = default_graphs(scan_text(tmp_path / "repo", {"export.py": script}, libraries=(library,)))
    assert str(judge(graph.facts).verdict) == "unresolved"
    keep = (
        "    def keep(self, x):\n        try:\n            return kit.export.rows.keep(x)\n"
        "        except ValueError:\n            return x\n\n"
    )
    caught = mutate(
        MOVED,
        ("from kit.export.rows import keep\n", "import kit\n"),
        ("keep(self.norm(x))", "self.keep(self.norm(x))"),
        ("    def forward(self, input_ids", keep + "    def forward(self, input_ids"),
    )
    (graph,) = default_graphs(scan_text(tmp_path / "caught", {"export.py": caught}, libraries=(library,)))
    assert str(judge(graph.facts).verdict) == "unresolved"


def test_a_module_that_no_library_has_is_asked_for(tmp_path: Path) -> None:
    message = judged(tmp_path, MOVED).reasons[0].message
    assert "`kit`" in message
    assert "--library" in message


def test_a_module_where_it_should_be(tmp_path: Path) -> None:
    library = tmp_path / "lib"
    files = {
        "kit/__init__.py": "",
        "kit/export/__init__.py": "",
        "kit/export/rows.py": "def keep(x):\n    return x[:, -1:]\n",
    }
    write(library, files)
    (graph,) = default_graphs(scan_text(tmp_path / "repo", {"export.py": MOVED}, libraries=(library,)))
    assert judge(graph.facts).says() == LAST


@pytest.mark.parametrize("name", ["kit-1.0-py3-none-any.whl", "kit.zip", "kit-1.0.zip"])
def test_a_library_in_an_archive_decides(tmp_path: Path, name: str) -> None:
    folder = "kit-1.0/src/" if name == "kit-1.0.zip" else ""
    for body, says in (("x", "eligible"), ("x[:, -1:]", LAST)):
        root = tmp_path / says.split()[-1]
        root.mkdir()
        with zipfile.ZipFile(root / name, "w") as archive:
            archive.writestr(f"{folder}kit/__init__.py", "")
            archive.writestr(f"{folder}kit/export/__init__.py", "")
            archive.writestr(f"{folder}kit/export/rows.py", f"def keep(x):\n    return {body}\n")
        result = scan_text(root / "repo", {"export.py": MOVED}, libraries=(root / name,))
        judgement = judge(graph_of(result).facts)
        assert judgement.says() == says
        if says == LAST:
            assert any(e.path.endswith("kit/export/rows.py") and e.line == 2 for e in judgement.reasons[0].evidence)


# -- states that go in and come out under one name ----------------------------------------------------------------

CARRIED = """\
import coremltools as ct
import numpy as np
import torch
from torch import nn


class Chunk(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(64, 16)
        self.head = nn.Linear(16, 64)

    def forward(self, query, one, other):
        x = self.embed(query)
        return self.head(x), one + x.sum(), other + x.sum()


state = torch.zeros(1, 4, 8)
traced = torch.jit.trace(Chunk().eval(), (torch.zeros(1, 1, dtype=torch.int32), state, state.clone()))
ct.convert(
    traced,
    inputs=[
        ct.TensorType(name="input_token", shape=(1, 1), dtype=np.int32),
        ct.TensorType(name="FIRST", shape=(1, 4, 8)),
        ct.TensorType(name="SECOND", shape=(1, 4, 8)),
    ],
    outputs=[ct.TensorType(name="logits"), ct.TensorType(name="OUT1"), ct.TensorType(name="OUT2")],
).save("m.mlpackage")
"""


@pytest.mark.parametrize(
    ("names", "says"),
    [
        (("k_0", "v_0", "new_k_0", "new_v_0"), "out by kv-as-io"),
        (("K_full_in", "V_full_in", "K_full_out", "V_full_out"), "out by kv-as-io"),
        (("state_0_a", "conv_state_0", "new_state_0_a", "new_conv_state_0"), "out by hybrid-state"),
        (("state_0_a", "state_0_b", "new_state_0_a", "new_state_0_b"), "out by static-query"),
        (("left_state", "right_state", "sum", "difference"), "out by not-a-decoder"),
        (("hidden_in", "mask_in", "hidden_out", "mask_out"), "out by not-a-decoder"),
    ],
)
def test_inputs_that_come_out_again(tmp_path: Path, names: tuple[str, ...], says: str) -> None:
    script = CARRIED
    for old, new in zip(("FIRST", "SECOND", "OUT1", "OUT2"), names, strict=True):
        script = mutate(script, (f'"{old}"', f'"{new}"'))
    assert judged(tmp_path, script).says() == says
