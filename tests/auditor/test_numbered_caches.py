"""Caches in numbered pairs among the inputs of a conversion that names no outputs."""

from __future__ import annotations

from pathlib import Path

from tests.auditor.support import judged, mutate

SCRIPT = """\
import coremltools as ct
import torch
from torch import nn

LAYERS, HIDDEN, CONTEXT = 2, 16, 64


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.mix = nn.ModuleList([nn.Linear(HIDDEN, HIDDEN) for _ in range(LAYERS)])
        self.head = nn.Linear(HIDDEN, 128)

    def forward(self, inputs_embeds, slot, *caches):
        x, new = inputs_embeds, []
        for i, mix in enumerate(self.mix):
            key = caches[2 * i].scatter(1, slot, mix(x))
            value = caches[2 * i + 1].scatter(1, slot, mix(x))
            x = x + nn.functional.scaled_dot_product_attention(x, key, value)
            new += [key, value]
        return (self.head(x), *new)


shape = (1, CONTEXT, HIDDEN)
example = (torch.zeros(1, 1, HIDDEN), torch.zeros(1, 1, HIDDEN).long(), *[torch.zeros(shape)] * (2 * LAYERS))
program = torch.export.export(Step().eval(), example).run_decompositions({})
caches = [ct.TensorType(name=f"{n}_{i}", shape=shape) for i in range(LAYERS) for n in ("k", "v")]
inputs = [ct.TensorType(name="inputs_embeds", shape=(1, 1, HIDDEN)), ct.TensorType(name="slot", shape=(1, 1, HIDDEN))]
ct.convert(program, inputs=inputs + caches).save("step.mlpackage")
"""


def test_pairs_that_come_out_again_are_a_cache(tmp_path: Path) -> None:
    judgement = judged(tmp_path, SCRIPT)
    assert judgement.says() == "out by kv-as-io"
    assert [r.rule for r in judgement.reasons] == ["kv-as-io", "static-query"]


def test_pairs_that_do_not_come_out_again_make_no_decoder(tmp_path: Path) -> None:
    assert judged(tmp_path, mutate(SCRIPT, ("(self.head(x), *new)", "self.head(x)"))).says() == "out by not-a-decoder"
