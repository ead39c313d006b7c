"""The part of a model that takes queries, keys and values, split into heads: which axis has the rows."""

from __future__ import annotations

from pathlib import Path

import pytest

from rules.facts import Query
from rules.verdict import judge
from tests.auditor.edits import STATIC, WINDOW
from tests.auditor.support import graph_of, scan_text

SCRIPT = """\
import coremltools as ct
import torch
from torch import nn

HEADS, WIDTH, CONTEXT, VOCAB, ROWS = 8, 64, 512, 1000, TRACED


class Part(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(HEADS * WIDTH, VOCAB)
        self.register_buffer("keyCache", torch.zeros(1, HEADS, CONTEXT, WIDTH))
        self.register_buffer("valueCache", torch.zeros(1, HEADS, CONTEXT, WIDTH))

    def forward(self, query_states, key_states, value_states, causal_mask):
        rows, end = query_states.shape[2], causal_mask.shape[-1]
        start = end - rows
        self.keyCache[:, :, start:end] = key_states
        self.valueCache[:, :, start:end] = value_states
        y = nn.functional.scaled_dot_product_attention(
            query_states, self.keyCache[:, :, :end], self.valueCache[:, :, :end], causal_mask
        )
        return self.head(y.transpose(1, 2).reshape(1, rows, HEADS * WIDTH))


model = Part().eval()
part = torch.zeros(1, HEADS, ROWS, WIDTH)
traced = torch.jit.trace(model, (part, part, part, torch.zeros(1, 1, ROWS, 8)))
rows, seen = DECLARED, ct.RangeDim(1, CONTEXT)
names = ("query_states", "key_states", "value_states")
types = [ct.TensorType(name=n, shape=(1, HEADS, rows, WIDTH)) for n in names]
ct.convert(
    traced,
    inputs=[*types, ct.TensorType(name="causal_mask", shape=(1, 1, rows, seen))],
    outputs=[ct.TensorType(name="logits")],
    states=[ct.StateType(ct.TensorType(shape=model.keyCache.shape), name=n) for n in ("keyCache", "valueCache")],
).save("part.mlpackage")
"""


@pytest.mark.parametrize(
    ("traced", "declared", "query", "says"),
    [
        ("4", "ct.RangeDim(1, 64)", Query(True), "eligible"),
        ("1", "1", Query(False, (1,)), STATIC),
        ("4", "4", Query(False, (4,)), WINDOW),
    ],
)
def test_the_rows_of_queries_with_heads(tmp_path: Path, traced: str, declared: str, query: Query, says: str) -> None:
    script = SCRIPT.replace("TRACED", traced).replace("DECLARED", declared)
    facts = graph_of(scan_text(tmp_path, {"export.py": script})).facts
    assert (facts.query.value, judge(facts).says()) == (query, says)
