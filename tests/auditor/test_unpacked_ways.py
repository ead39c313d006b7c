"""Values that are one of several, taken apart; and embeddings that are made of a table."""

from __future__ import annotations

from pathlib import Path

import pytest

from rules.facts import Logits, Query
from tests.auditor.support import graph_of, mutate, scan_text

SCRIPT = """\
import coremltools as ct
import numpy as np
import torch
from torch import nn

weights = torch.load("model.pth")
version = weights["version"]


def sizes():
    if version == 7:
        return 1, 8, 32
    return 1, 8


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(128, 16)
        self.head = nn.Linear(16, 128)
        self.register_buffer("k_cache", torch.zeros(1, 64, 16))

    def forward(self, ids, start):
        x = self.embed(ids)
        self.k_cache[:, start : start + ids.shape[1]] = x
        return self.head(x + self.k_cache.sum(1, keepdim=True) * 0)


batch, width, other = sizes()
traced = torch.jit.trace(Model().eval(), (torch.zeros(batch, width).int(), torch.zeros(1).int()))
inputs = [ct.TensorType("ids", (batch, width), np.int32), ct.TensorType("start", (1,), np.int32)]
states = [ct.StateType(ct.TensorType(shape=(1, 64, 16)), "k_cache")]
ct.convert(traced, inputs=inputs, outputs=[ct.TensorType("logits")], states=states).save("m.mlpackage")
"""


def _query(root: Path, script: str) -> Query | None:
    return graph_of(scan_text(root, {"export.py": script})).facts.query.value


def test_the_run_whose_tuple_has_as_many_items_goes_on(tmp_path: Path) -> None:
    assert _query(tmp_path, SCRIPT) == Query(False, (8,))


def test_a_run_that_no_tuple_fits_ends(tmp_path: Path) -> None:
    script = mutate(SCRIPT, ("batch, width, other = sizes()", "batch, width, other, more = sizes()"))
    assert _query(tmp_path, script) is None


def test_what_does_not_fit_is_caught_where_it_may_be(tmp_path: Path) -> None:
    caught = "try:\n    batch, width, other = sizes()\nexcept ValueError:\n    batch, width = 1, 4"
    found = _query(tmp_path, mutate(SCRIPT, ("batch, width, other = sizes()", caught)))
    assert found is None or found.widths != (8,)


EMBEDDED = """\
import coremltools as ct
import numpy as np
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding.from_pretrained(TABLE, freeze=True)
        self.layer = nn.Linear(16, 16)
        self.head = nn.Linear(16, 128)

    def forward(self, ids, keyCache):
        x = self.layer(self.embed(ids))
        keyCache[:, : ids.shape[1]] = x
        return self.head(x)


q = ct.RangeDim(1, 64)
traced = torch.jit.trace(Model().eval(), (torch.zeros(1, 4).int(), torch.zeros(1, 64, 16)))
inputs = [ct.TensorType("ids", (1, q), np.int32)]
states = [ct.StateType(ct.TensorType(shape=(1, 64, 16)), "keyCache")]
ct.convert(traced, inputs=inputs, states=states).save("m.mlpackage")
"""


@pytest.mark.parametrize(
    ("table", "logits"),
    [
        ("torch.zeros(128, 16)", Logits.ALL),
        ('torch.load("weights.pth")["embed"]', None),
        ("torch.zeros(512, 128)", Logits.NONE),
    ],
)
def test_embeddings_are_as_wide_as_the_table_that_they_are_given(
    tmp_path: Path, table: str, logits: Logits | None
) -> None:
    facts = graph_of(scan_text(tmp_path, {"export.py": EMBEDDED.replace("TABLE", table)})).facts
    assert facts.logits.value is logits


FUNCTIONAL = EMBEDDED.replace(
    "self.embed = nn.Embedding.from_pretrained(TABLE, freeze=True)",
    "self.table = nn.Parameter(torch.zeros(128, 16))",
).replace("self.embed(ids)", "nn.functional.embedding(ids, self.table)")


def test_looked_up_rows_have_the_type_of_the_table(tmp_path: Path) -> None:
    script = mutate(FUNCTIONAL, ("states=states", 'outputs=[ct.TensorType("logits")], states=states'))
    assert graph_of(scan_text(tmp_path / "numbers", {"export.py": script})).facts.logits.value is Logits.ALL
    chosen = mutate(
        script, ("return self.head(x)", "return nn.functional.embedding(ids, self.table.argmax(-1)[:, None])")
    )
    assert graph_of(scan_text(tmp_path / "ids", {"export.py": chosen})).facts.logits.value is not Logits.ALL
