"""Models of the sources that a checkpoint is loaded into, by their class or by the library's choice."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.auditor.support import judged, mutate

SCRIPT = """\
import coremltools as ct
import numpy as np
import torch
from torch import nn
from transformers import AutoConfig, AutoModelForCausalLM, GenerationMixin, PretrainedConfig, PreTrainedModel


class OwnConfig(PretrainedConfig):
    model_type = "own"


class OwnModel(PreTrainedModel, GenerationMixin):
    config_class = OwnConfig

    def __init__(self, config):
        super().__init__(config)
        self.embed = nn.Embedding(config.vocab_size, config.hidden_size)
        self.head = nn.Linear(config.hidden_size, config.vocab_size)

    def forward(self, input_ids, keys, start):
        x = self.embed(input_ids)
        keys[:, start : start + input_ids.shape[1]] = x
        return self.head(x)


class Stateful(nn.Module):
    def __init__(self):
        super().__init__()
        self.model = OwnModel.from_pretrained("own/model", torch_dtype=torch.float16)
        self.register_buffer("key_cache", torch.zeros(1, 64, self.model.config.hidden_size))

    def forward(self, input_ids, mask):
        return self.model(input_ids, self.key_cache, mask.shape[-1] - input_ids.shape[1])


model = Stateful().eval()
traced = torch.jit.trace(model, (torch.zeros(1, 2).int(), torch.zeros(1, 1, 2, 5)))
q, end = ct.RangeDim(1, 64), ct.RangeDim(1, 64)
ct.convert(
    traced,
    inputs=[ct.TensorType("input_ids", (1, q), np.int32), ct.TensorType("mask", (1, 1, q, end))],
    outputs=[ct.TensorType("logits")],
    states=[ct.StateType(ct.TensorType(shape=tuple(model.key_cache.shape)), "key_cache")],
).save("m.mlpackage")
"""
LAST = ("return self.head(x)", "return self.head(x[:, -1:])")


@pytest.mark.parametrize(("edits", "says"), [((), "eligible"), ((LAST,), "out by last-token-only")])
def test_a_class_of_the_sources_is_made_from_its_checkpoint(
    tmp_path: Path, edits: tuple[tuple[str, str], ...], says: str
) -> None:
    assert judged(tmp_path, mutate(SCRIPT, *edits)).says() == says


def test_what_a_class_may_read_of_the_call_is_not_passed_over(tmp_path: Path) -> None:
    script = mutate(SCRIPT, ("torch_dtype=torch.float16", "last_row_only=True"))
    assert str(judged(tmp_path, script).verdict) == "unresolved"


@pytest.mark.parametrize(
    "call", ["AutoModelForCausalLM.register(OwnConfig, OwnModel)", "AutoConfig.register('own', OwnConfig)"]
)
def test_a_class_that_is_registered_is_as_it_was(tmp_path: Path, call: str) -> None:
    script = mutate(SCRIPT, ("class Stateful(", f"{call}\n\n\nclass Stateful("))
    assert judged(tmp_path, script).says() == "eligible"


def test_which_class_a_checkpoint_gives_is_not_known_once_one_is_registered(tmp_path: Path) -> None:
    library = ("self.model = OwnModel.from_pretrained(", "self.model = AutoModelForCausalLM.from_pretrained(")
    called = (
        "return self.model(input_ids, self.key_cache, mask.shape[-1] - input_ids.shape[1])",
        "start = mask.shape[-1] - input_ids.shape[1]\n"
        "        logits = self.model(input_ids, attention_mask=mask).logits\n"
        "        self.key_cache[:, start : start + input_ids.shape[1]] = 1.0\n"
        "        return logits",
    )
    register = "AutoModelForCausalLM.register(OwnConfig, OwnModel)\n\n\n"
    script = mutate(SCRIPT, library, called, LAST, ("class Stateful(", f"{register}class Stateful("))
    judgement = judged(tmp_path, script)
    assert str(judgement.verdict) == "unresolved"
    assert any("registered" in r.message for r in judgement.reasons)
