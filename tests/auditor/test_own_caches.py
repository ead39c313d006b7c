"""Caches of the script that a model whose source is not read is given: what they give back and say they hold."""

from __future__ import annotations

from pathlib import Path

import pytest

from rules.verdict import Verdict
from tests.auditor.support import judged, mutate
from tests.auditor.test_model_parts import SCRIPT

GIVEN = "return self.k_cache[layer_idx, :, :, :end, :], self.v_cache[layer_idx, :, :, :end, :]"
KEYS = "self.k_cache[layer_idx, :, :, :end, :]"
WRITTEN = "self.k_cache[layer_idx, :, : key_states.shape[1], begin:end, :] = key_states"
HELD = "        return self.past_seen_tokens\n"
NUMBERS = "torch.arange(key_states.shape[2])"
WRONG = {
    "keys in reverse": (GIVEN, GIVEN.replace(KEYS, f"{KEYS}.flip(-2)")),
    "keys by numbers that go down": (GIVEN, GIVEN.replace(":end, :]", "torch.arange(end - 1, -1, -1)]", 1)),
    "new keys first": (
        GIVEN,
        GIVEN.replace(KEYS, "torch.cat((key_states, self.k_cache[layer_idx, :, :, :begin, :]), 2)"),
    ),
    "keys written where the call ends": (WRITTEN, f"self.k_cache[layer_idx, :, :, {NUMBERS} + end] = key_states"),
    "keys written in reverse": (WRITTEN, f"self.k_cache[layer_idx, :, :, end - 1 - {NUMBERS}] = key_states"),
    "one layer for all": (WRITTEN, WRITTEN.replace("layer_idx", "0")),
    "one that is written later": (WRITTEN, WRITTEN.replace("layer_idx", "self.k_cache.shape[0] - 1 - layer_idx")),
    "two layers for one": (WRITTEN, WRITTEN.replace("layer_idx", "layer_idx // 2")),
    "keys from the second layer on": (WRITTEN, WRITTEN.replace("layer_idx", "max(layer_idx - 1, 0)")),
    "nothing held": (HELD, "        return 0\n"),
    "as many held as it can": (HELD, "        return self.k_cache.shape[3]\n"),
}
RIGHT = {
    "as they are": (GIVEN, GIVEN),
    "keys by their numbers": (GIVEN, GIVEN.replace(":end, :]", "torch.arange(end)]", 1)),
    "new keys last": (
        GIVEN,
        GIVEN.replace(KEYS, "torch.cat((self.k_cache[layer_idx, :, :, :begin, :], key_states), 2)"),
    ),
    "keys written by their numbers": (WRITTEN, f"self.k_cache[layer_idx, :, :, {NUMBERS} + begin] = key_states"),
    "as many held as there are, and padding": (HELD, "        return self.past_seen_tokens + 2\n"),
}


@pytest.mark.parametrize("name", sorted(WRONG))
def test_a_cache_that_does_other_than_it_should(tmp_path: Path, name: str) -> None:
    judgement = judged(tmp_path, mutate(SCRIPT, WRONG[name]))
    assert judgement.verdict is Verdict.UNRESOLVED, judgement


@pytest.mark.parametrize("name", sorted(RIGHT))
def test_a_cache_that_does_what_it_should(tmp_path: Path, name: str) -> None:
    judgement = judged(tmp_path, mutate(SCRIPT, RIGHT[name]))
    assert judgement.verdict is Verdict.ELIGIBLE, [f.message for f in judgement.reasons]
