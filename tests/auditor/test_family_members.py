"""Whether one of the buffers of a long loop is there, and one by its own name."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.auditor.support import judged, mutate

SCRIPT = """\
import coremltools as ct
import numpy as np
import torch
from torch import nn

VOCAB, HIDDEN, HEADS, LAYERS, CONTEXT, HEAD = 128, 32, 4, 28, 512, 8


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(HIDDEN, 3 * HIDDEN)
        self.out = nn.Linear(HIDDEN, HIDDEN)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, HIDDEN)
        self.layers = nn.ModuleList([Layer() for _ in range(LAYERS)])
        self.head = nn.Linear(HIDDEN, VOCAB)
        for i in range(LAYERS):
            self.register_buffer(f"k_cache_{i}", torch.zeros(1, HEADS, CONTEXT, HEAD))
            self.register_buffer(f"v_cache_{i}", torch.zeros(1, HEADS, CONTEXT, HEAD))

    def forward(self, input_ids, mask):
        x = self.embed(input_ids)
        rows, end = x.shape[1], mask.shape[-1]
        start = end - rows
        for i in range(LAYERS):
            layer = self.layers[i]
            keys = getattr(self, f"k_cache_{i}")
            values = getattr(self, f"v_cache_{i}")
            q, k, v = layer.qkv(x).view(1, rows, 3, HEADS, HEAD).permute(2, 0, 3, 1, 4)
            keys[:, :, start:end, :] = k
            values[:, :, start:end, :] = v
            y = nn.functional.scaled_dot_product_attention(q, keys[:, :, :end], values[:, :, :end], mask)
            x = x + layer.out(y.transpose(1, 2).reshape(1, rows, HIDDEN))
        return self.head(x)


model = Model().eval()
traced = torch.jit.trace(model, (torch.zeros(1, 4, dtype=torch.int32), torch.zeros(1, 1, 4, 8)))
rows, seen = ct.RangeDim(1, 64), ct.RangeDim(1, CONTEXT)
states = []
for i in range(LAYERS):
    for kind in "kv":
        cache = ct.TensorType(shape=(1, HEADS, CONTEXT, HEAD), dtype=np.float16)
        states.append(ct.StateType(wrapped_type=cache, name=f"{kind}_cache_{i}"))
mlmodel = ct.convert(
    traced,
    inputs=[
        ct.TensorType(name="input_ids", shape=(1, rows), dtype=np.int32),
        ct.TensorType(name="mask", shape=(1, 1, rows, seen), dtype=np.float16),
    ],
    outputs=[ct.TensorType(name="logits", dtype=np.float16)],
    states=states,
)
mlmodel.save("out/model.mlpackage")
"""


def test_buffers_of_many_layers_are_a_cache(tmp_path: Path) -> None:
    assert judged(tmp_path, SCRIPT).verdict == "eligible"


SEEN = "rows, seen = ct.RangeDim(1, 64), ct.RangeDim(1, CONTEXT)\n"
BOX = "class Box:\n    pass\n\n\nbox = Box()\nfor i in range(99):\n    setattr(box, f'is_{i}', True)\n"
ASKED = {
    "has": "rows = 1 if hasattr(model, 'k_cache_30') else rows\n",
    "has not": "rows = rows if hasattr(model, 'k_cache_30') else 1\n",
    "len": "rows = len(vars(model))\n",
    "dict": "rows = 1 if 'k_cache_30' in model.__dict__ else rows\n",
    "box has": BOX + "rows = 1 if hasattr(box, 'is_3') else rows\n",
    "box has not": BOX + "rows = rows if hasattr(box, 'is_3') else 1\n",
}


@pytest.mark.parametrize("name", ASKED)
def test_whether_a_member_is_there_is_not_known(tmp_path: Path, name: str) -> None:
    assert judged(tmp_path, mutate(SCRIPT, (SEEN, SEEN + ASKED[name]))).verdict == "unresolved"


def test_a_member_by_its_own_name(tmp_path: Path) -> None:
    """One layer's cache is written elsewhere, in a ring."""
    code = "            values[:, :, start:end, :] = v\n"
    ring = "            self.k_cache_3[:, :, (start + torch.arange(rows)) % CONTEXT, :] = k\n"
    assert "ring-cache" in judged(tmp_path, mutate(SCRIPT, (code, code + ring))).broken
