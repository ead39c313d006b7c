"""Example inputs out of a file: what `forward` says of their axes when it takes the shape apart."""

from __future__ import annotations

from pathlib import Path

import pytest

from rules.verdict import Verdict
from tests.auditor.edits import HYBRID, LAST, ROWS, UNKNOWN_LOGITS, third_state
from tests.auditor.support import EXPORTER, judged, mutate

LOADED = (
    '        "input_ids": torch.zeros((1, tokens), dtype=torch.int32),\n',
    '        "input_ids": torch.from_numpy(np.load("ids.npy")),\n',
)
NUMPY = ("import argparse\n", "import argparse\nimport numpy as np\n")
UNPACKED = "        batch, rows = input_ids.shape\n"


def loaded(rows: str, *edits: tuple[str, str]) -> str:
    """The exporter with a query out of a file, and a first line of `forward`."""
    return mutate(EXPORTER, LOADED, NUMPY, (ROWS, rows), *edits)


@pytest.mark.parametrize(
    "rows",
    [
        UNPACKED,
        "        (batch, rows) = input_ids.size()\n",
        '        """Says something."""\n        torch._check(True)\n        name = 1\n' + UNPACKED,
    ],
)
def test_the_axes_are_those_that_forward_unpacks(tmp_path: Path, rows: str) -> None:
    assert judged(tmp_path, loaded(rows)).says() == "eligible"


@pytest.mark.parametrize(
    "rows",
    [
        ROWS,
        "        shape = input_ids.shape\n",
        "        batch, *rest = input_ids.shape\n",
        "        batch, rows = position_ids.shape\n",
        "        input_ids = input_ids.view(nowhere.shape)\n" + UNPACKED,
        "        input_ids, rows = input_ids.squeeze(), 1\n" + UNPACKED,
        "        if input_ids.dim() == 1:\n            input_ids = input_ids[None]\n" + UNPACKED,
        "        batch, rows = input_ids.size(0)\n",
    ],
)
def test_forward_that_says_nothing_of_the_axes(tmp_path: Path, rows: str) -> None:
    more = (("import argparse\nimport numpy", "import argparse\nimport nowhere\nimport numpy"),)
    assert judged(tmp_path, mutate(loaded(rows), *more)).says() == UNKNOWN_LOGITS


def test_what_breaks_is_seen_with_unpacked_axes(tmp_path: Path) -> None:
    last = loaded(UNPACKED, ("self.head(x)", "self.head(x[:, -1:])"))
    assert judged(tmp_path, last).says() == UNKNOWN_LOGITS, "how many rows the batch has is not known"
    first = loaded(UNPACKED, ("self.head(x)", "self.head(x[:1, -1:])"))
    assert judged(tmp_path, first).says() == LAST
    state = third_state("convState", "conv_state", "1, 4, 8", "conv_state.copy_(conv_state + 1)")
    assert judged(tmp_path, loaded(UNPACKED, *state)).says() == HYBRID


ONE_LAYER = """\
import json
import numpy as np
import torch
from torch import nn
from coreai_torch import TorchConverter

WIDTH = json.load(open("config.json"))["width"]


class OneLayer(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.qkv = nn.Linear(WIDTH, 96)
        self.out = nn.Linear(32, WIDTH)

    def forward(self, x, key_cache, value_cache):
        batch, rows, _ = x.shape
        q, k, v = self.qkv(self.norm(x)).view(batch, rows, 3, 4, 8).permute(2, 0, 3, 1, 4)
        key_cache[:, :, :rows] = k
        value_cache[:, :, :rows] = v
        y = nn.functional.scaled_dot_product_attention(q, key_cache, value_cache)
        return x + self.out(y.transpose(1, 2).reshape(batch, rows, 32))


x = torch.from_numpy(np.load("x.npy"))
inputs = {"x": x, "key_cache": torch.zeros(1, 4, 64, 8), "value_cache": torch.zeros(1, 4, 64, 8)}
converter = TorchConverter()
converter.add_exported_program(
    torch.export.export(OneLayer(), (), inputs),
    input_names=["x"], output_names=["y"], state_names=["keyCache", "valueCache"],
)
converter.to_coreai().save_asset("out/layer.aimodel")
"""


def test_an_output_as_wide_as_the_embeddings_that_came_in(tmp_path: Path) -> None:
    assert judged(tmp_path, ONE_LAYER).says() == "out by no-logits"
    head = ("return x + self.out(y.transpose(1, 2).reshape(batch, rows, 32))", "return self.qkv(x)")
    open_ = judged(tmp_path, mutate(ONE_LAYER, head))
    assert open_.verdict is Verdict.UNRESOLVED
    assert "unknown-query" in [finding.rule for finding in open_.reasons]
