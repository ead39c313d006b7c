"""Experts by coreai-torch's gathers: the rows of the query go where the index has them."""

from __future__ import annotations

from pathlib import Path

import pytest

from rules.facts import Trait
from rules.verdict import judge
from tests.auditor.support import EXPORTER, graph_of, judged, mutate, scan_text

EXPERTS = """\
import coreai_torch


class Experts(nn.Module):
    def __init__(self, batch_axes=1):
        super().__init__()
        self.product = coreai_torch.composite_ops.GatherMM(num_batch_axes=batch_axes)
        self.weight = nn.Parameter(torch.rand(1, 8, HIDDEN, HIDDEN))
        self.bias = nn.Parameter(torch.rand(1, 8, HIDDEN))
        self.router = nn.Linear(HIDDEN, 8)

    def forward(self, x):
        rows = x.shape[1]
        _, index = self.router(x).topk(2, dim=-1)
        index = index.reshape(rows, 2)
        y = self.product(x.reshape(-1, 1, 1, HIDDEN), self.weight, rhs_indices=index)
        bias = coreai_torch.composite_ops._gather_mm._gather(self.bias, index, num_batch_axes=1)
        y = y + bias.unsqueeze(-2)
        return x + y.reshape(1, rows, 2, HIDDEN).sum(2)


class Layer(nn.Module):
"""
SCRIPT = mutate(
    EXPORTER,
    ("class Layer(nn.Module):\n", EXPERTS),
    ("        self.norm = nn.LayerNorm(HIDDEN)\n", "        self.norm = Experts()\n"),
)


def test_rows_stay_through_experts(tmp_path: Path) -> None:
    facts = graph_of(scan_text(tmp_path, {"export.py": SCRIPT})).facts
    assert judge(facts).verdict == "eligible"
    assert facts.mark(Trait.MOE)


INDEX = "        index = index.reshape(rows, 2)\n"
MUTATIONS = {
    "one row of the index": (INDEX, INDEX + "        index = index[-1:]\n"),
    "an index that is not known": (INDEX, "        index = load_index(index)\n"),
    "batch axes that are not known": ("self.norm = Experts()", "self.norm = Experts(int(open('axes').read()))"),
    "more batch axes than there are": ("num_batch_axes=1)\n        y", "num_batch_axes=4)\n        y"),
}


@pytest.mark.parametrize("name", MUTATIONS)
def test_what_a_gather_does_is_not_guessed(tmp_path: Path, name: str) -> None:
    assert judged(tmp_path, mutate(SCRIPT, MUTATIONS[name])).verdict == "unresolved"


def test_both_sides_are_gathered(tmp_path: Path) -> None:
    """`lhs_indices` pick rows of the query: one row picked is one row of the output."""
    picked = (
        "self.product(x.reshape(-1, 1, 1, HIDDEN), self.weight, rhs_indices=index)",
        "self.product(x.reshape(1, -1, 1, HIDDEN), self.weight, torch.tensor([rows - 1]), torch.tensor([0]))",
    )
    shaped = ("        return x + y.reshape(1, rows, 2, HIDDEN).sum(2)\n", "        return y.reshape(1, 1, HIDDEN)\n")
    bias = ("        y = y + bias.unsqueeze(-2)\n", "")
    assert judged(tmp_path, mutate(SCRIPT, picked, shaped, bias)).verdict != "eligible"
