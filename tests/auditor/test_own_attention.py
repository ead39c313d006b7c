"""An attention of the script in a table, or in the place, of the library's: it is evaluated as the model runs it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rules.verdict import Verdict, judge
from tests.auditor.edits import Edit
from tests.auditor.support import graph_of, indented, judged, mutate, scan_text, write
from tests.auditor.test_model_parts import BEGIN, LOGITS, SCRIPT

CLASS = """\
class OwnAttention(LlamaAttention):
    def __init__(self, config, layer_idx=None):
        super().__init__(config=config, layer_idx=layer_idx)

    @torch.no_grad()
    def forward(self, hidden_states, attention_mask, position_ids=None, past_key_value=None, **kwargs):
        batch, rows, _ = hidden_states.size()
        query = self.q_proj(hidden_states).view(batch, rows, self.num_heads, self.head_dim).transpose(1, 2)
        keys = self.k_proj(hidden_states).view(batch, rows, self.num_key_value_heads, self.head_dim).transpose(1, 2)
        values = self.v_proj(hidden_states).view(batch, rows, self.num_key_value_heads, self.head_dim).transpose(1, 2)
        cos, sin = self.rotary_emb(values, position_ids)
        query, keys = apply_rotary_pos_emb(query, keys, cos, sin)
        end = attention_mask.shape[-1]
        keys, values = past_key_value.update(keys, values, self.layer_idx, (end - rows, end))
        keys = repeat_kv(keys, self.num_key_value_groups)
        values = repeat_kv(values, self.num_key_value_groups)
        y = torch.nn.functional.scaled_dot_product_attention(query, keys, values, attn_mask=attention_mask)
        y = y.transpose(1, 2).contiguous().view(batch, rows, self.hidden_size)
        return self.o_proj(y), None, None


"""
IMPORT = "from transformers.models.llama.modeling_llama import LlamaForCausalLM\n"
IMPORTS = """\
from transformers.models.llama.modeling_llama import (
    LLAMA_ATTENTION_CLASSES, LlamaAttention, LlamaForCausalLM, apply_rotary_pos_emb, repeat_kv,
)
"""
STATEFUL = "class StatefulLlama(torch.nn.Module):\n"
LOADED = "        self.model = LlamaForCausalLM.from_pretrained(model_path)\n"
OWN = mutate(
    SCRIPT,
    (IMPORT, IMPORTS),
    (STATEFUL, CLASS + STATEFUL),
    (LOADED, '        LLAMA_ATTENTION_CLASSES["sdpa"] = OwnAttention\n' + LOADED),
    ("layer_idx, cache_kwargs=None):", "layer_idx, span):"),
    ('        position = cache_kwargs.get("cache_position", None)\n', ""),
    ("begin, end = self.past_seen_tokens, self.past_seen_tokens + position.shape[-1]", "begin, end = span"),
)
ATTENDED = "attn_mask=attention_mask)"
BY_HAND = (
    "        y = torch.nn.functional.scaled_dot_product_attention(query, keys, values, attn_mask=attention_mask)\n"
)
SCORES = "        w = query @ keys.transpose(2, 3) / 8 + attention_mask\n"
UPDATED = "past_key_value.update(keys, values, self.layer_idx, (end - rows, end))"
GIVEN = "self.k_cache[layer_idx, :, :, :end, :], self.v_cache[layer_idx, :, :, :end, :]"
TABLE = '        LLAMA_ATTENTION_CLASSES["sdpa"] = OwnAttention\n'

BROKEN: dict[str, tuple[Edit, ...]] = {
    "no mask": ((ATTENDED, ATTENDED.replace("attn_mask=attention_mask", "")),),
    "the last row of the mask": ((ATTENDED, "attn_mask=attention_mask[:, :, -1:])"),),
    "keys of the last row": (("self.k_proj(hidden_states)", "self.k_proj(hidden_states[:, -1:])"),),
    "values less their mean": (
        ("self.v_proj(hidden_states)", "self.v_proj(hidden_states - hidden_states.mean(1, keepdim=True))"),
    ),
    "heads are joined where they lie": ((".transpose(1, 2).contiguous().view(batch", ".contiguous().view(batch"),),
    "one row comes out": (("return self.o_proj(y)", "return self.o_proj(y[:, -1:])"),),
    "written in the first rows": ((UPDATED, UPDATED.replace("(end - rows, end)", "(0, rows)")),),
    "written in a ring": ((UPDATED, UPDATED.replace("(end - rows, end)", "((end - rows) % 64, end % 64)")),),
    "cleared": (
        ("        begin, end = span\n", "        begin, end = span\n        self.k_cache[layer_idx].zero_()\n"),
    ),
    "the new rows alone": ((GIVEN, "key_states, value_states"),),
    "a window": ((GIVEN, GIVEN.replace(":end", "end - 64 : end")),),
    "a softmax over the rows": ((BY_HAND, SCORES + "        y = w.softmax(2) @ values\n"),),
    "a position for all rows": (
        ("self.rotary_emb(values, position_ids)", "self.rotary_emb(values, end - position_ids)"),
    ),
    "two kinds": ((TABLE, TABLE + '        LLAMA_ATTENTION_CLASSES["eager"] = LlamaAttention\n'),),
    "it raises": (("        end = attention_mask.shape[-1]\n", "        raise NotImplementedError\n"),),
    "a cache that nobody hands in": (("past_key_values=self.kv_cache, ", ""),),
}
HARMLESS: dict[str, tuple[Edit, ...]] = {
    "as it is": ((TABLE, TABLE),),
    "by hand": ((BY_HAND, SCORES + "        y = w.softmax(-1) @ values\n"),),
    "in the place of the class": (
        (IMPORTS, IMPORTS + "from transformers.models.llama import modeling_llama\n"),
        (TABLE, "        modeling_llama.LlamaAttention = OwnAttention\n"),
    ),
    "older positions": (
        ("cos, sin = self.rotary_emb(values, position_ids)", "cos, sin = self.rotary_emb(values, seq_len=2048)"),
        ("(query, keys, cos, sin)", "(query, keys, cos, sin, position_ids)"),
    ),
    "angles from the model": (
        ("position_ids=None, past", "position_embeddings=None, past"),
        ("self.rotary_emb(values, position_ids)", "position_embeddings"),
    ),
    "all kinds": ((TABLE, TABLE + '        LLAMA_ATTENTION_CLASSES["eager"] = OwnAttention\n'),),
}


@pytest.mark.parametrize("name", sorted(BROKEN))
def test_an_attention_that_breaks_the_rows_or_the_cache(tmp_path: Path, name: str) -> None:
    assert judged(tmp_path, mutate(OWN, *BROKEN[name])).verdict is not Verdict.ELIGIBLE


@pytest.mark.parametrize("name", sorted(HARMLESS))
def test_an_attention_that_keeps_them(tmp_path: Path, name: str) -> None:
    judgement = judged(tmp_path, mutate(OWN, *HARMLESS[name]))
    assert judgement.verdict is Verdict.ELIGIBLE, [f.message for f in judgement.reasons]


OTHER_FAMILIES = ["JambaForCausalLM", "Lfm2ForCausalLM", "Qwen3NextForCausalLM", "Mamba2ForCausalLM"]


@pytest.mark.parametrize("name", OTHER_FAMILIES)
def test_a_family_with_other_states_than_keys_and_values(tmp_path: Path, name: str) -> None:
    script = mutate(SCRIPT, (IMPORT, f"from transformers import {name} as LlamaForCausalLM\n"))
    judgement = judged(tmp_path, script)
    assert judgement.verdict is Verdict.UNRESOLVED
    assert any("keeps other states than keys and values" in f.message for f in judgement.reasons)


@pytest.mark.parametrize("name", ["MistralForCausalLM", "Qwen3MoeForCausalLM", "GPT2LMHeadModel", "GPTNeoXForCausalLM"])
def test_a_family_with_keys_and_values_only(tmp_path: Path, name: str) -> None:
    script = mutate(SCRIPT, (IMPORT, f"from transformers import {name} as LlamaForCausalLM\n"))
    assert judged(tmp_path, script).verdict is Verdict.ELIGIBLE


NAMED = {
    "Qwen/Qwen3-0.6B": "eligible",
    "microsoft/Phi-4-mini-instruct": "eligible",
    "ibm-granite/granite-3.3-2b-instruct": "eligible",
    "facebook/opt-125m": "eligible",
    "some/model": "eligible",
    "./checkpoints/7": "eligible",
    "ai21labs/Jamba-v0.1": "unresolved",
    "Qwen/Qwen3-Next-80B-A3B-Instruct": "unresolved",
    "Qwen/Qwen3.5-0.8B": "unresolved",
    "ibm-granite/granite-4.0-h-350m": "unresolved",
    "state-spaces/mamba-130m-hf": "unresolved",
    "acme/Unheard-7B": "unresolved",
}


@pytest.mark.parametrize("name", sorted(NAMED))
def test_the_name_of_a_checkpoint_says_its_family(tmp_path: Path, name: str) -> None:
    script = mutate(
        SCRIPT,
        (IMPORT, "from transformers import AutoModelForCausalLM as LlamaForCausalLM\n"),
        ('export("meta-llama/Llama-3.2-1B-Instruct"', f'export("{name}"'),
    )
    assert str(judged(tmp_path, script).verdict) == NAMED[name]


def test_a_family_that_nobody_has_listed(tmp_path: Path) -> None:
    script = mutate(SCRIPT, (IMPORT, "from transformers import UnheardForCausalLM as LlamaForCausalLM\n"))
    judgement = judged(tmp_path / "cache", script)
    assert judgement.verdict is Verdict.UNRESOLVED
    assert any("like `Unheard` keeps nothing but keys and values is not known" in f.message for f in judgement.reasons)
    alone = mutate(script, ("past_key_values=self.kv_cache, use_cache=True", "use_cache=False"))
    assert "like `Unheard`" not in str(judged(tmp_path / "alone", alone).reasons)


@pytest.mark.parametrize(("family", "verdict"), [("lfm2_moe", Verdict.UNRESOLVED), ("llama", Verdict.ELIGIBLE)])
def test_a_checkpoint_says_which_family_it_is(tmp_path: Path, family: str, verdict: Verdict) -> None:
    script = mutate(SCRIPT, (IMPORT, "from transformers import AutoModelForCausalLM as LlamaForCausalLM\n"))
    config = {"meta-llama/Llama-3.2-1B-Instruct/config.json": json.dumps({"model_type": family})}
    write(tmp_path / "checkpoints", config)
    graph = graph_of(scan_text(tmp_path / "src", {"export.py": script}, checkpoints=tmp_path / "checkpoints"))
    assert judge(graph.facts).verdict is verdict


@pytest.mark.parametrize(("family", "verdict"), [("Jamba", Verdict.UNRESOLVED), ("Llama", Verdict.ELIGIBLE)])
def test_a_model_from_the_configuration_of_a_family(tmp_path: Path, family: str, verdict: Verdict) -> None:
    imports = (IMPORT, f"from transformers import AutoModelForCausalLM, {family}Config\n")
    made = f"AutoModelForCausalLM.from_config({family}Config(num_hidden_layers=2))"
    script = mutate(SCRIPT, imports, ("LlamaForCausalLM.from_pretrained(model_path)", made))
    assert judged(tmp_path, script).verdict is verdict


@pytest.mark.parametrize("name", ["Qwen2ForCausalLM", "Glm4ForCausalLM", "AutoModelForCausalLM"])
def test_a_dense_family(tmp_path: Path, name: str) -> None:
    script = mutate(SCRIPT, (IMPORT, f"from transformers import {name} as LlamaForCausalLM\n"))
    assert judged(tmp_path, script).verdict is Verdict.ELIGIBLE


def test_a_mask_of_zeros(tmp_path: Path) -> None:
    script = mutate(SCRIPT, ("attention_mask=causal_mask", "attention_mask=torch.zeros_like(causal_mask)"))
    assert judged(tmp_path, script).verdict is not Verdict.ELIGIBLE


MODELING = "from transformers.models.llama import modeling_llama\n"
KINDS = "from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS, AttentionInterface\n"
SDPA = "torch.nn.functional.scaled_dot_product_attention"
REPEATED = (
    "key.repeat_interleave(module.num_key_value_groups, 1), value.repeat_interleave(module.num_key_value_groups, 1)"
)
ATTEND = (
    "def mine(module, query, key, value, attention_mask, **more):\n    {0}\n    return y.transpose(1, 2), None\n\n\n"
)
MASKED = ATTEND.format(f"y = {SDPA}(query, {REPEATED}, attn_mask=attention_mask)")
UNMASKED = ATTEND.format(f"y = {SDPA}(query, {REPEATED})")
ONE_ROW = ATTEND.format(f"y = {SDPA}(query[:, :, -1:], {REPEATED}, attn_mask=attention_mask)")
ROTATED = "def mine(q, k, cos, sin, *more, **others):\n    return q * cos{0}, k * cos{0}\n\n\n"
BUILT = '        self.register_buffer("keyCache"'
SETS = {
    "a kind by its name": 'ALL_ATTENTION_FUNCTIONS["sdpa"] = mine',
    "a kind that is registered": 'ALL_ATTENTION_FUNCTIONS.register("mine", mine)',
    "a kind of the interface": 'AttentionInterface.register("mine", mine)',
    "the function of a module": "modeling_llama.eager_attention_forward = mine",
}


def _with(top: str, *lines: str) -> str:
    return mutate(SCRIPT, (IMPORT, IMPORT + MODELING + KINDS + "\n\n" + top), (BUILT, indented(lines) + BUILT))


@pytest.mark.parametrize("name", sorted(SETS))
def test_another_kind_of_attention(tmp_path: Path, name: str) -> None:
    for top, eligible in ((MASKED, True), (UNMASKED, False), (ONE_ROW, False)):
        judgement = judged(tmp_path, _with(top, SETS[name]))
        assert (judgement.verdict is Verdict.ELIGIBLE) is eligible, [f.message for f in judgement.reasons]


def test_another_rotation(tmp_path: Path) -> None:
    place = "modeling_llama.apply_rotary_pos_emb = mine"
    assert judged(tmp_path, _with(ROTATED.format(".unsqueeze(1)"), place)).verdict is Verdict.ELIGIBLE
    turned = ROTATED.format("[:, -1:].unsqueeze(1)").replace("q * cos", "q[:, :, -1:] * cos")
    assert judged(tmp_path, _with(turned, place)).verdict is not Verdict.ELIGIBLE


@pytest.mark.parametrize(
    "place",
    [
        "self.model.model._update_causal_mask = {0}",
        "modeling_llama.LlamaModel._update_causal_mask = {0}",
        "modeling_llama.create_causal_mask = {0}",
    ],
)
def test_another_mask(tmp_path: Path, place: str) -> None:
    none, same = "lambda *args, **more: None", "lambda *args, **more: args[0]"
    assert judged(tmp_path, _with("", place.format(none))).verdict is not Verdict.ELIGIBLE
    assert judged(tmp_path, _with("", place.format(same))).verdict is Verdict.ELIGIBLE


OTHER = """\
class Other(torch.nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, x):
        return {0}


"""


def test_embeddings_and_a_head_that_are_set(tmp_path: Path) -> None:
    last, all_rows = OTHER.format("self.inner(x[:, -1:])"), OTHER.format("self.inner(x)")
    head = "self.model.set_output_embeddings(Other(self.model.lm_head))"
    assert judged(tmp_path, _with(last, head)).says() == "out by last-token-only"
    assert judged(tmp_path, _with(all_rows, head)).verdict is Verdict.ELIGIBLE
    embeddings = "self.model.set_input_embeddings(Other(self.model.model.embed_tokens))"
    assert judged(tmp_path, _with(last, embeddings)).verdict is not Verdict.ELIGIBLE


def test_outputs_as_a_tuple(tmp_path: Path) -> None:
    script = mutate(SCRIPT, (LOGITS, LOGITS.replace(".logits", ".to_tuple()[0]")))
    assert judged(tmp_path, script).verdict is Verdict.ELIGIBLE


def test_a_cache_whose_update_raises(tmp_path: Path) -> None:
    script = mutate(SCRIPT, (BEGIN, "        raise NotImplementedError\n"))
    assert judged(tmp_path, script).says() == "unresolved by unknown-state-role"
