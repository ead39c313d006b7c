"""A cache of Hugging Face's own under a model of theirs: what it does with its rows is not seen."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.auditor.support import judged, line_of, mutate

SCRIPT = """\
import coremltools as ct
import numpy as np
import torch
from torch import nn
from transformers import AutoModelForCausalLM, StaticCache


class Own:
    def __init__(self):
        self.keys, self.values = torch.zeros(1, 4, 512, 8), torch.zeros(1, 4, 512, 8)

    def update(self, keys, values, layer, more):
        at = more["cache_position"]
        self.keys[:, :, at] = keys
        self.values[:, :, at] = values
        return self.keys, self.values


class Wrapper(nn.Module):
    def __init__(self):
        super().__init__()
        self.model = AutoModelForCausalLM.from_pretrained("some/model")
        self.cache = StaticCache(config=self.model.config, max_batch_size=1, max_cache_len=512)
        for n, (keys, values) in enumerate(zip(self.cache.key_cache, self.cache.value_cache)):
            self.register_buffer(f"key_cache_{n}", keys)
            self.register_buffer(f"value_cache_{n}", values)

    def forward(self, input_ids, cache_position):
        return self.model(input_ids, past_key_values=self.cache, use_cache=True).logits


model = Wrapper().eval()
traced = torch.jit.trace(model, (torch.zeros(1, 2, dtype=torch.int32), torch.arange(2)))
rows = ct.RangeDim(1, 64)
states = [ct.StateType(ct.TensorType(shape=(1, 4, 512, 8)), name=n) for n, _ in model.named_buffers()]
ct.convert(
    traced,
    inputs=[
        ct.TensorType(name="input_ids", shape=(1, rows), dtype=np.int32),
        ct.TensorType(name="cache_position", shape=(rows,), dtype=np.int32),
    ],
    states=states,
    outputs=[ct.TensorType(name="logits")],
).save("m.mlpackage")
"""
NAMED = "for n, _ in model.named_buffers()"
SPELLED = 'for n in ("key_cache_0", "value_cache_0")'


@pytest.mark.parametrize("names", [NAMED, SPELLED])
def test_a_cache_that_is_not_read(tmp_path: Path, names: str) -> None:
    """Its buffers are states by their names, and nothing is seen to write them."""
    text = mutate(SCRIPT, (NAMED, names))
    judgement = judged(tmp_path, text)
    assert judgement.says() == "unresolved by unknown-state-role"
    told = [f.message for f in judgement.unresolved]
    line = line_of(text, "self.cache = StaticCache(")
    assert all(f"`transformers.StaticCache` is not read (export.py:{line})" in m for m in told), told


@pytest.mark.parametrize("given", ["", "past_key_values=None, "])
def test_no_cache_at_all(tmp_path: Path, given: str) -> None:
    """States are declared, and attention has no cache that they could be."""
    text = mutate(SCRIPT, (NAMED, SPELLED), ("past_key_values=self.cache, ", given))
    assert judged(tmp_path, text).says() == "unresolved by unknown-logits"


def test_a_cache_of_the_script(tmp_path: Path) -> None:
    assert judged(tmp_path, mutate(SCRIPT, *OWN)).says() == "eligible"


OWN = (
    ("StaticCache(config=self.model.config, max_batch_size=1, max_cache_len=512)", "Own()"),
    ("        for n, (keys, values) in enumerate(zip(self.cache.key_cache, self.cache.value_cache)):\n", ""),
    (
        '            self.register_buffer(f"key_cache_{n}", keys)\n',
        '        self.register_buffer("keys", self.cache.keys)\n',
    ),
    (
        '            self.register_buffer(f"value_cache_{n}", values)\n',
        '        self.register_buffer("values", self.cache.values)\n',
    ),
)


@pytest.mark.parametrize(
    "past",
    [
        "[(self.cache.keys, self.cache.values)]",
        "((self.cache.keys, self.cache.values),)",
        "tuple((k, v) for k, v in [(self.cache.keys, self.cache.values)])",
        "torch.stack([self.cache.keys, self.cache.values])[None]",
    ],
)
def test_tensors_of_a_cache_are_only_read(tmp_path: Path, past: str) -> None:
    """A model that is given the tensors, and not the cache, joins its rows to copies of them: no state ever changes."""
    text = mutate(SCRIPT, *OWN, ("past_key_values=self.cache", f"past_key_values={past}"))
    judgement = judged(tmp_path, text)
    assert judgement.says() == "unresolved by unknown-state-role"
    told = [f.message for f in judgement.unresolved]
    assert all("nothing is seen to write" in m and "are only read" in m for m in told), told


def test_a_cache_of_the_script_that_keeps_the_update_of_a_library(tmp_path: Path) -> None:
    text = mutate(
        SCRIPT,
        ("class Own:", "class Own(StaticCache):"),
        ("    def update(", "    def other("),
        ("StaticCache(config=self.model.config, max_batch_size=1, max_cache_len=512)", "Own()"),
        (NAMED, SPELLED),
    )
    assert str(judged(tmp_path, text).verdict) == "unresolved"
