# ruff: noqa: E501  (a line of a script is not folded)
"""Per-layer buffers under counted names, in a model of more layers than are followed one by one."""

from __future__ import annotations

from pathlib import Path

import pytest

from rules.facts import Role
from rules.verdict import judge
from tests.auditor.support import graph_of, mutate, scan_text

LONG = """\
import coremltools as ct
import numpy as np
import torch
from torch import nn

VOCAB, HIDDEN, HEADS, CONTEXT, LAYERS = 128, 32, 4, 512, 28
SHAPE = (1, HEADS, CONTEXT, HIDDEN // HEADS)


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(HIDDEN, 3 * HIDDEN)

    def forward(self, x, mask, keys, values):
        batch, rows, _ = x.shape
        q, k, v = self.qkv(x).view(batch, rows, 3, HEADS, HIDDEN // HEADS).permute(2, 0, 3, 1, 4)
        end = mask.shape[-1]
        start = end - rows
        keys[:, :, start:end, :] = k
        values[:, :, start:end, :] = v
        y = nn.functional.scaled_dot_product_attention(q, keys[:, :, :end], values[:, :, :end], mask)
        return x + y.transpose(1, 2).reshape(batch, rows, HIDDEN)


class Model(nn.Module):
    def __init__(self, layers):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, HIDDEN)
        self.layers = nn.ModuleList([Layer() for _ in range(layers)])
        self.head = nn.Linear(HIDDEN, VOCAB)
        for i in range(layers):
            self.register_buffer(f"k_cache_{i}", torch.zeros(SHAPE))
            self.register_buffer(f"v_cache_{i}", torch.zeros(SHAPE))

    def forward(self, input_ids, causal_mask):
        x = self.embed(input_ids)
        for i, layer in enumerate(self.layers):
            keys, values = getattr(self, f"k_cache_{i}"), getattr(self, f"v_cache_{i}")
            x = layer(x, causal_mask, keys, values)
        return self.head(x)


model = Model(LAYERS).eval()
traced = torch.jit.trace(model, (torch.zeros(1, 4, dtype=torch.int32), torch.zeros(1, 1, 4, 8)))
rows = ct.RangeDim(1, 64)
states = []
for i in range(LAYERS):
    for kind in ("k", "v"):
        states.append(ct.StateType(ct.TensorType(shape=SHAPE, dtype=np.float16), name=f"{kind}_cache_{i}"))
mlmodel = ct.convert(
    traced,
    inputs=[
        ct.TensorType(name="input_ids", shape=(1, rows), dtype=np.int32),
        ct.TensorType(name="causal_mask", shape=(1, 1, rows, ct.RangeDim(1, CONTEXT)), dtype=np.float16),
    ],
    outputs=[ct.TensorType(name="logits", dtype=np.float16)],
    states=states,
)
mlmodel.save("out/model.mlpackage")
"""

CALL = "            x = layer(x, causal_mask, keys, values)\n"
REGISTERED = '            self.register_buffer(f"v_cache_{i}", torch.zeros(SHAPE))\n'
READ = '            keys, values = getattr(self, f"k_cache_{i}"), getattr(self, f"v_cache_{i}")\n'

CASES: dict[str, tuple[str, tuple[tuple[str, str], ...]]] = {
    "as it is": ("eligible", ()),
    "few layers": ("eligible", (("CONTEXT, LAYERS = 128, 32, 4, 512, 28", "CONTEXT, LAYERS = 128, 32, 4, 512, 3"),)),
    "states from the buffers": (
        "eligible",
        (
            (
                'for i in range(LAYERS):\n    for kind in ("k", "v"):\n        states.append(ct.StateType(ct.TensorType(shape=SHAPE, dtype=np.float16), name=f"{kind}_cache_{i}"))\n',
                "for name, buffer in model.named_buffers():\n    states.append(ct.StateType(ct.TensorType(shape=buffer.shape), name=name))\n",
            ),
        ),
    ),
    "a layer by its number": (
        "eligible",
        (
            (
                READ,
                f"{READ}            if i == 0:\n                keys, values = self.k_cache_0, self.v_cache_0\n",
            ),
        ),
    ),
    "one for all layers but the first": (
        "unresolved by unknown-state-role",
        (
            (
                READ,
                "            keys, values = (self.k_cache_0, self.v_cache_0) if i == 0 else (self.k_cache_1, self.v_cache_1)\n",
            ),
        ),
    ),
    "the last row": ("out by last-token-only", (("return self.head(x)", "return self.head(x[:, -1:])"),)),
    "one query": ("out by static-query", (("shape=(1, rows), dtype", "shape=(1, 1), dtype"),)),
    "a ring": ("out by ring-cache", (("start = end - rows", "start = (end - rows) % CONTEXT"),)),
    "a convolution that is no state": (
        "out by hybrid-state",
        (
            (REGISTERED, REGISTERED + '            self.register_buffer(f"conv_{i}", torch.zeros(1, 3, HIDDEN))\n'),
            (
                CALL,
                CALL
                + '            tail = getattr(self, f"conv_{i}")\n'
                + "            tail[:] = torch.cat([tail, x], dim=1)[:, -3:]\n",
            ),
        ),
    ),
    "the family of another loop, too": (
        "unresolved by unknown-logits",
        (
            (
                REGISTERED,
                REGISTERED
                + '        for i in range(layers):\n            self.register_buffer(f"k_cache_{i}", torch.zeros(1, 3, HIDDEN))\n',
            ),
        ),
    ),
    "several families for one name": (
        "unresolved by unknown-logits",
        ((READ, READ.replace("k_cache_{i}", "{model.kind}_cache_{i}")),),
    ),
}


@pytest.mark.parametrize("name", sorted(CASES))
def test_buffers_of_a_long_loop(tmp_path: Path, name: str) -> None:
    says, edits = CASES[name]
    facts = graph_of(scan_text(tmp_path, {"export.py": mutate(LONG, *edits)})).facts
    judgement = judge(facts)
    assert judgement.says() == says, [f.message for f in judgement.reasons]


def test_one_state_stands_for_all(tmp_path: Path) -> None:
    states = graph_of(scan_text(tmp_path, {"export.py": LONG})).facts.states.value
    assert states is not None
    assert [(s.name, s.role) for s in states] == [("k_cache_*", Role.KV_KEY), ("v_cache_*", Role.KV_VALUE)]
