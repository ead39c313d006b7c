"""Hugging Face models inside a stateful wrapper: the cache that is handed in, parts that are replaced, hooks on parts.

The library's `forward` is not read, so that what a script changes of it has to be seen where it is changed.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from rules.verdict import Verdict
from tests.auditor.edits import Edit
from tests.auditor.support import indented, judged, mutate

SCRIPT = """\
import coremltools as ct
import numpy as np
import torch
from transformers.cache_utils import Cache
from transformers.models.llama.modeling_llama import LlamaForCausalLM


class SliceUpdateKeyValueCache(Cache):
    def __init__(self, shape, dtype=torch.float32):
        super().__init__()
        self.past_seen_tokens = 0
        self.k_cache = torch.zeros(shape, dtype=dtype)
        self.v_cache = torch.zeros(shape, dtype=dtype)

    def update(self, key_states, value_states, layer_idx, cache_kwargs=None):
        position = cache_kwargs.get("cache_position", None)
        begin, end = self.past_seen_tokens, self.past_seen_tokens + position.shape[-1]
        self.k_cache[layer_idx, :, : key_states.shape[1], begin:end, :] = key_states
        self.v_cache[layer_idx, :, : value_states.shape[1], begin:end, :] = value_states
        return self.k_cache[layer_idx, :, :, :end, :], self.v_cache[layer_idx, :, :, :end, :]

    def get_seq_length(self, layer_idx=0):
        return self.past_seen_tokens


class StatefulLlama(torch.nn.Module):
    def __init__(self, model_path, batch_size=1, context_size=2048):
        super().__init__()
        self.model = LlamaForCausalLM.from_pretrained(model_path)
        config = self.model.config
        self.kv_cache_shape = (
            config.num_hidden_layers, batch_size, config.num_key_value_heads, context_size,
            config.hidden_size // config.num_attention_heads,
        )
        self.kv_cache = SliceUpdateKeyValueCache(shape=self.kv_cache_shape)
        self.register_buffer("keyCache", self.kv_cache.k_cache)
        self.register_buffer("valueCache", self.kv_cache.v_cache)

    @torch.no_grad()
    def forward(self, input_ids, causal_mask):
        self.kv_cache.past_seen_tokens = causal_mask.shape[-1] - input_ids.shape[-1]
        return self.model(
            input_ids, attention_mask=causal_mask, past_key_values=self.kv_cache, use_cache=True
        ).logits


def export(model_path, output):
    torch_model = StatefulLlama(model_path).eval()
    input_ids = torch.zeros((1, 2), dtype=torch.int32)
    causal_mask = torch.zeros((1, 1, 2, 5), dtype=torch.float32)
    traced = torch.jit.trace(torch_model, [input_ids, causal_mask])
    query_length = ct.RangeDim(lower_bound=1, upper_bound=2048, default=1)
    end_step = ct.RangeDim(lower_bound=1, upper_bound=2048, default=1)
    inputs = [
        ct.TensorType(shape=(1, query_length), dtype=np.int32, name="inputIds"),
        ct.TensorType(shape=(1, 1, query_length, end_step), dtype=np.float16, name="causalMask"),
    ]
    outputs = [ct.TensorType(dtype=np.float16, name="logits")]
    states = [
        ct.StateType(wrapped_type=ct.TensorType(shape=torch_model.kv_cache_shape, dtype=np.float16), name="keyCache"),
        ct.StateType(wrapped_type=ct.TensorType(shape=torch_model.kv_cache_shape, dtype=np.float16), name="valueCache"),
    ]
    mlmodel = ct.convert(
        traced, inputs=inputs, outputs=outputs, states=states,
        minimum_deployment_target=ct.target.iOS18, skip_model_load=True,
    )
    mlmodel.save(output)


export("meta-llama/Llama-3.2-1B-Instruct", "out/model.mlpackage")
"""
CACHE = "class SliceUpdateKeyValueCache"
CONFIG = "        config = self.model.config\n"
BEGIN = "        begin, end = self.past_seen_tokens, self.past_seen_tokens + position.shape[-1]\n"
WRITE = "        self.k_cache[layer_idx, :, : key_states.shape[1], begin:end, :] = key_states\n"
CALL = "        return self.model(\n"
LOGITS = "        ).logits\n"
SEEN = "        self.kv_cache.past_seen_tokens = causal_mask"
VALUES = '        self.register_buffer("valueCache"'
LIBRARY = "from transformers.models.llama import modeling_llama\n\n\n"
LAST_NORM = """\
class LastNorm(torch.nn.Module):
    def __init__(self, norm):
        super().__init__()
        self.norm = norm

    def forward(self, hidden):
        return self.norm(hidden[:, -1:])


"""
MLP = """\
class Other(torch.nn.Module):
    def __init__(self, config):
        super().__init__()
        self.up = torch.nn.Linear(config.hidden_size, config.intermediate_size)
        self.down = torch.nn.Linear(config.intermediate_size, config.hidden_size)

    def forward(self, hidden):
        return self.down(torch.nn.functional.silu(self.up(hidden)))


"""
MIXER = """\
class Other(torch.nn.Module):
    def __init__(self, config):
        super().__init__()
        self.conv = torch.nn.Conv1d(config.hidden_size, config.hidden_size, 3, padding=2)

    def forward(self, hidden):
        return self.conv(hidden.transpose(1, 2))[..., : hidden.shape[1]].transpose(1, 2)


"""
NORM = """\
class OwnNorm(torch.nn.Module):
    def __init__(self, hidden_size, eps=1e-6):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(hidden_size))

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True)) * self.weight


modeling_llama.LlamaRMSNorm = OwnNorm


"""


def _top(code: str) -> Edit:
    return CACHE, code + CACHE


def _built(*lines: str) -> Edit:
    return CONFIG, CONFIG + indented(lines)


EACH = _built("for layer in self.model.model.layers:", "    layer.mlp = Other(config)")
LAST = ("last = torch.arange(input_ids.shape[1]) == input_ids.shape[1] - 1",)
CHANGED: dict[str, tuple[Edit, ...]] = {
    "a cache that wraps": (
        (BEGIN, "        begin = self.past_seen_tokens % 1024\n        end = begin + position.shape[-1]\n"),
    ),
    "a cache that slides": (
        (
            WRITE,
            "        kept = self.k_cache[layer_idx][:, :, position.shape[-1] :]\n"
            "        self.k_cache[layer_idx] = torch.cat([kept, key_states], 2)\n",
        ),
    ),
    "a cache that takes the last row": ((WRITE, WRITE.replace("key_states\n", "key_states[:, :, -1:]\n")),),
    "a state beside the cache": (
        (VALUES, '        self.register_buffer("tail", torch.zeros(1, 1, 64))\n' + VALUES),
        (SEEN, "        self.tail[:] = causal_mask[..., :64].mean(2)\n" + SEEN),
    ),
    "a mask over the rows of logits": (
        (CALL, CALL.replace("return", "logits =")),
        (LOGITS, LOGITS + f"        {LAST[0]}\n        return torch.where(last[None, :, None], logits, 0)\n"),
    ),
    "a mixer in each layer": (_top(MIXER), EACH),
    "a hook on a layer": (
        _built("self.model.model.layers[0].register_forward_pre_hook(lambda m, a: (a[0][:, -1:],))"),
    ),
    "each layer goes through unread code": (
        _built("import turbo", "for layer in self.model.model.layers:", "    turbo.fuse(layer)"),
    ),
    "the forward of a norm is replaced": (
        _top(LIBRARY + "modeling_llama.LlamaRMSNorm.forward = lambda self, hidden: hidden[:, -1:]\n\n\n"),
    ),
    "a class of the library is replaced": (
        _top(LIBRARY + LAST_NORM + "modeling_llama.LlamaDecoderLayer = LastNorm\n\n\n"),
    ),
    "the base model's forward is replaced": (
        _built("old = self.model.model.forward", "self.model.model.forward = lambda *a, **k: turbo.run(old, a, k)"),
    ),
}
OUT: dict[str, tuple[Edit, ...]] = {
    "the last norm is replaced": (_top(LAST_NORM), _built("self.model.model.norm = LastNorm(self.model.model.norm)")),
    "a hook on the last norm": (_built("self.model.model.norm.register_forward_hook(lambda m, a, out: out[:, -1:])"),),
}
HARMLESS: dict[str, tuple[Edit, ...]] = {
    "nothing": (),
    "the feed-forward of each layer is replaced": (_top(MLP), EACH),
    "a norm of the library is replaced": (_top(LIBRARY + NORM),),
    "its forward is replaced": (
        _top(
            LIBRARY + "def norm(self, x):\n    return self.weight * (x / x.norm(dim=-1, keepdim=True))\n\n\n"
            "modeling_llama.LlamaRMSNorm.forward = norm\n\n\n"
        ),
    ),
    "rotations of the library are replaced": (
        _top(
            LIBRARY + "def rotated(q, k, cos, sin, position_ids=None):\n    return q * cos, k * cos\n\n\n"
            "modeling_llama.apply_rotary_pos_emb = rotated\n\n\n"
        ),
    ),
    "some of the layers are left out": (_built("self.model.model.layers = self.model.model.layers[:8]"),),
    "embeddings of the model go in": (
        (
            "            input_ids, attention_mask=",
            "            inputs_embeds=self.model.get_input_embeddings()(input_ids), attention_mask=",
        ),
    ),
    "a hook that only looks": (_built("self.model.model.norm.register_forward_hook(lambda m, a, out: None)"),),
    "a feature is renamed": (
        (
            "    mlmodel.save(output)\n",
            "    spec = mlmodel.get_spec()\n    ct.utils.rename_feature(spec, 'inputIds', 'tokens')\n"
            "    ct.models.MLModel(spec, weights_dir=mlmodel.weights_dir).save(output)\n",
        ),
    ),
}


@pytest.mark.parametrize("name", sorted(CHANGED))
def test_what_is_changed_is_not_eligible(tmp_path: Path, name: str) -> None:
    assert judged(tmp_path, mutate(SCRIPT, *CHANGED[name])).verdict is not Verdict.ELIGIBLE


@pytest.mark.parametrize("name", sorted(OUT))
def test_one_row_is_left_by_a_part(tmp_path: Path, name: str) -> None:
    assert judged(tmp_path, mutate(SCRIPT, *OUT[name])).says() == "out by last-token-only"


@pytest.mark.parametrize("name", sorted(HARMLESS))
def test_what_keeps_the_rows_stays_eligible(tmp_path: Path, name: str) -> None:
    judgement = judged(tmp_path, mutate(SCRIPT, *HARMLESS[name]))
    assert judgement.verdict is Verdict.ELIGIBLE, [f.message for f in judgement.reasons]


def test_a_wrapped_cache_is_a_ring(tmp_path: Path) -> None:
    judgement = judged(tmp_path, mutate(SCRIPT, *CHANGED["a cache that wraps"]))
    assert judgement.says() == "out by ring-cache"


@pytest.mark.parametrize(
    ("edits", "says"),
    [
        ((("(1, 1, query_length, end_step)", "(1, 1, 1, end_step)"),), "unresolved by unknown-logits"),
        ((("(1, 1, query_length, end_step)", "(1, end_step)"),), "eligible"),
        ((("attention_mask=causal_mask", "attention_mask=causal_mask[:, :, -1:]"),), "unresolved by unknown-logits"),
    ],
    ids=["of one row", "of tokens", "of the last row"],
)
def test_a_mask_that_says_the_same_to_all_rows(tmp_path: Path, edits: tuple[Edit, ...], says: str) -> None:
    """A mask of one row for each token leaves the triangle to the library."""
    assert judged(tmp_path, mutate(SCRIPT, *edits)).says() == says


@pytest.mark.parametrize(
    ("begin", "says"),
    [
        ("begin, end = 0, position.shape[-1]", "unresolved by unknown-state-role"),
        ("begin, end = self.past_seen_tokens, self.past_seen_tokens + 1", "out by baked-length"),
    ],
)
def test_a_cache_that_is_written_in_a_place_of_its_own(tmp_path: Path, begin: str, says: str) -> None:
    assert judged(tmp_path, mutate(SCRIPT, (BEGIN, f"        {begin}\n"))).says() == says


def test_a_cache_that_has_seen_nothing_in_every_call(tmp_path: Path) -> None:
    seen = "causal_mask.shape[-1] - input_ids.shape[-1]"
    assert judged(tmp_path, mutate(SCRIPT, (seen, "0"))).says() == "unresolved by unknown-state-role"


GIVEN = "        return self.k_cache[layer_idx, :, :, :end, :], self.v_cache[layer_idx, :, :, :end, :]\n"


@pytest.mark.parametrize(
    ("code", "says"),
    [
        (f"return key_states, value_states\n{GIVEN}", "unresolved by unknown-logits"),
        (
            f"if position.shape[-1] > 1:\n            return key_states, value_states\n{GIVEN}",
            "unresolved by unknown-logits",
        ),
        (GIVEN.replace(":end", ":begin").strip(), "unresolved by unknown-logits"),
        (GIVEN.replace(", :end, :]", "]").strip(), "eligible"),
        (f"{GIVEN.strip()}", "eligible"),
    ],
    ids=[
        "the new rows",
        "the new rows when there are several",
        "the old rows",
        "all, under the mask",
        "as many as seen",
    ],
)
def test_what_a_cache_gives_back(tmp_path: Path, code: str, says: str) -> None:
    assert judged(tmp_path, mutate(SCRIPT, (GIVEN, f"        {code}\n"))).says() == says


@pytest.mark.parametrize("cut", ["[:, -1:]", ".mean(1, keepdim=True)", ".flip(1)"])
def test_embeddings_of_other_rows_go_in(tmp_path: Path, cut: str) -> None:
    embedded = f"self.model.get_input_embeddings()(input_ids){cut}"
    script = mutate(
        SCRIPT, ("            input_ids, attention_mask=", f"            inputs_embeds={embedded}, attention_mask=")
    )
    assert judged(tmp_path, script).verdict is not Verdict.ELIGIBLE
