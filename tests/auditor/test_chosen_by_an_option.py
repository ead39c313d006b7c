"""An option that exports a decoder in place of something else; and parts of Hugging Face models that it is made of."""

from __future__ import annotations

from pathlib import Path

from rules.facts import InvocationKind
from rules.verdict import judge
from tests.auditor.support import EXPORTER, mutate, scan_text

SCRIPT = """\
import argparse
import coremltools as ct
import numpy as np
import torch
from torch import nn
from transformers import AutoModelForCausalLM


class Trunk(nn.Module):
    def __init__(self, whole):
        super().__init__()
        self.model = whole.model

    def forward(self, input_ids):
        return self.model(input_ids).last_hidden_state


class Step(nn.Module):
    def __init__(self, whole, length):
        super().__init__()
        self.embed = whole.model.embed_tokens
        self.head = nn.Conv2d(whole.config.hidden_size, whole.config.vocab_size, 1)
        self.head.weight.data.copy_(whole.lm_head.weight[:, :, None, None])
        dtype = self.embed.weight.dtype
        for n in range(len(whole.model.layers)):
            self.register_buffer(f"key_cache_{n}", torch.zeros(1, length, 64, dtype=dtype))
            self.register_buffer(f"value_cache_{n}", torch.zeros(1, length, 64, dtype=dtype))

    def forward(self, input_ids, position):
        return self.embed(input_ids)


def states_of(traced):
    states = []
    for name, buffer in traced.named_buffers():
        if buffer.dtype != torch.float16:
            raise ValueError(name)
        states.append(ct.StateType(ct.TensorType(shape=tuple(buffer.shape)), name=name))
    if not states:
        raise ValueError("no states")
    return states


parser = argparse.ArgumentParser()
parser.add_argument("--model", required=True)
parser.add_argument("--length", required=True, type=int)
parser.add_argument("--stateful", action="store_true")
args = parser.parse_args()
whole = AutoModelForCausalLM.from_pretrained(args.model, torch_dtype=torch.float16)
if args.stateful:
    example = (torch.zeros(1, 1).int(), torch.zeros(1).int())
    traced = torch.jit.trace(Step(whole, args.length).eval(), example)
    inputs = [ct.TensorType("input_ids", (1, 1), np.int32), ct.TensorType("position", (1,), np.int32)]
    outputs = [ct.TensorType("hidden_states")]
    made = ct.convert(traced, inputs=inputs, outputs=outputs, states=states_of(traced))
else:
    traced = torch.jit.trace(Trunk(whole).eval(), torch.zeros(1, args.length).int())
    made = ct.convert(traced, inputs=[ct.TensorType("input_ids", (1, args.length), np.int32)])
made.save("model.mlpackage")
"""


def _said(root: Path, script: str) -> dict[tuple[InvocationKind, tuple[str, ...]], str]:
    graphs = scan_text(root, {"export.py": script}).graphs
    return {(g.invocation.kind, g.invocation.argv): judge(g.facts).says() for g in graphs}


def test_an_option_that_exports_a_decoder_instead_is_a_variant(tmp_path: Path) -> None:
    assert _said(tmp_path, SCRIPT) == {
        (InvocationKind.DEFAULT, ()): "out by not-a-decoder",
        (InvocationKind.VARIANT, ("--stateful",)): "out by no-logits",
    }


def test_an_option_that_exports_another_thing_without_a_cache_is_none(tmp_path: Path) -> None:
    script = mutate(
        SCRIPT, (", states=states_of(traced))", ")"), ('f"key_cache_{n}"', '"a"'), ('f"value_cache_{n}"', '"b"')
    )
    assert list(_said(tmp_path, script)) == [(InvocationKind.DEFAULT, ())]


PLAIN = """def plain():
    model = nn.Sequential(nn.Embedding(VOCAB, HIDDEN), nn.Linear(HIDDEN, VOCAB))
    program = torch.export.export(model, (torch.zeros((1, 8), dtype=torch.int32),))
    converter = TorchConverter()
    converter.add_exported_program(program, input_names=["input_ids"], output_names=["logits"])
    converter.to_coreai().save_asset("out/plain.aimodel")


"""
DRIVER = """\
import argparse
from exporter import export

parser = argparse.ArgumentParser()
parser.add_argument("--static", action="store_true")
parser.add_argument("--use-cache", action="store_true")
parser.add_argument("--verbose", action="store_true")
export(parser.parse_args())
"""


def test_a_switch_that_is_named_for_a_cache_is_tried_where_another_file_exports(tmp_path: Path) -> None:
    exporter = mutate(
        EXPORTER.partition('if __name__ == "__main__":')[0],
        ("def export(args):\n", PLAIN + "def export(args):\n    if not args.use_cache:\n        return plain()\n"),
    )
    result = scan_text(tmp_path, {"run.py": DRIVER, "exporter.py": exporter})
    found = {g.invocation.argv: judge(g.facts).says() for g in result.graphs if g.script == "run.py"}
    assert found == {(): "out by not-a-decoder", ("--use-cache",): "eligible"}
