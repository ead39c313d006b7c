"""Attacks on the cache of a decoder that is exported to Core ML and by ExecuTorch: cleared, cut to a window, mixed.

Each is code at one place of the decoder in `decoder_project`, where its cache is written or read, or its mask is made.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from rules.verdict import Judgement, Verdict, judge
from tests.auditor.decoder_project import CONFIG, CORE_ML, EXECUTORCH, MODEL
from tests.auditor.support import graph_of, indented, judged, line_of, mutate, scan_text

KEYS_WRITTEN = "        k_cache[self.idx, :, :, start : start + s] = k\n"
KEYS = "        keys = k_cache[self.idx, :, :, : start + s]\n"
VALUES = "        values = v_cache[self.idx, :, :, : start + s]\n"
MASK = "        mask = cols[None, :] <= (torch.arange(s) + start)[:, None]\n"
SAME = KEYS_WRITTEN.strip()
AT = "(torch.arange(s) + start).view(1, 1, s, 1).expand_as(k)"

WRITTEN = {
    "cleared": ("k_cache[self.idx].zero_()", SAME),
    "filled": ("k_cache[self.idx].fill_(0.0)", SAME),
    "set to 0": ("k_cache[self.idx] = 0", SAME),
    "set to zeros": ("k_cache[self.idx, ...] = torch.zeros_like(k_cache[self.idx])", SAME),
    "zeros are copied": ("k_cache[self.idx].copy_(torch.zeros(1, 8, 1024, 64))", SAME),
    "cleared up to the call": ("k_cache[self.idx, :, :, :start].zero_()", SAME),
    "set to 0 up to the call": ("k_cache[self.idx, :, :, :start] = 0", SAME),
    "the first rows are cleared": ("k_cache[self.idx, :, :, :4] = 0", SAME),
    "all rows at one place": ("k_cache[self.idx].scatter_(2, torch.full_like(k, start, dtype=torch.long), k)",),
    "the same by its shape": ("k_cache[self.idx].scatter_(2, torch.full(k.shape, start), k)",),
    "the mean of old and new": (f'k_cache[self.idx].scatter_reduce_(2, {AT}, k, reduce="mean")',),
    "the larger of old and new": (f'k_cache[self.idx].index_reduce_(2, {AT}[0, 0, :, 0], k, "amax")',),
}
STILL_WRITTEN = {
    "cleared from the call on": ("k_cache[self.idx, :, :, start:].zero_()", SAME),
    "cleared behind the call": ("k_cache[self.idx, :, :, start + s :] = 0", SAME),
    "its own rows are cleared": ("k_cache[self.idx].narrow(2, start, s).zero_()", SAME),
    "scattered": (f"k_cache[self.idx].scatter_(2, {AT}, k)",),
    "at positions, beside one layer for all": (
        "rows = torch.arange(s) + start",
        "layer, batch = torch.full((s,), self.idx), torch.zeros(s, dtype=torch.long)",
        "k_cache.index_put_((layer, batch, torch.arange(8)[:, None], rows), k[0])",
    ),
}
READ = {
    "the last rows": "{0}_cache[self.idx, :, :, start + s - 128 : start + s]",
    "the last rows by narrow": "{0}_cache[self.idx].narrow(2, start + s - 128, 128)",
    "the first rows": "{0}_cache[self.idx, :, :, :64]",
    "as many as in the trace": "{0}_cache[self.idx, :, :, :7]",
    "sorted": "{0}_cache[self.idx, :, :, : start + s].sort(2).values",
    "a share of all rows": "{0}_cache[self.idx, :, :, : start + s].softmax(2)",
    "normalized over the rows": "F.normalize({0}_cache[self.idx, :, :, : start + s], dim=2)",
    "less the last": "({0} := {0}_cache[self.idx, :, :, : start + s]) - {0}[:, :, -1:]",
    "less the last, by narrow": "({0} := {0}_cache[self.idx, :, :, : start + s]) - {0}.narrow(2, -1, 1)",
    "less the first of the query": "({0} := {0}_cache[self.idx, :, :, : start + s]) - {0}[:, :, start : start + 1]",
    "by the last": "({0} := {0}_cache[self.idx, :, :, : start + s]) * {0}.select(2, -1)[:, :, None].sigmoid()",
    "less the last of the query": "{0}_cache[self.idx, :, :, : start + s] - {0}[:, :, -1:]",
    "one row twice": "torch.cat([{0}_cache[self.idx, :, :, : start + 1], {0}], dim=2)",
    "the rows of the query twice": "torch.cat([{0}_cache[self.idx, :, :, : start + s], {0}], dim=2)",
    "means of blocks": "{0}_cache[self.idx, :, :, : start + s].reshape(1, 8, -1, 4, 64).mean(3)",
    "the largest of blocks": "{0}_cache[self.idx, :, :, : start + s].unflatten(2, (-1, 4)).amax(3)",
    "less their mean": "({0} := {0}_cache[self.idx, :, :, : start + s]) - {0}.mean(2, keepdim=True)",
    "scaled by the largest of all": "({0} := {0}_cache[self.idx, :, :, : start + s]) / {0}.abs().max()",
}
STILL_READ = {
    "normalized in each row": "F.normalize({0}_cache[self.idx, :, :, : start + s], dim=-1)",
    "scaled by the largest of each row": (
        "({0} := {0}_cache[self.idx, :, :, : start + s]) / {0}.abs().amax(-1, keepdim=True)"
    ),
    "less the first": "({0} := {0}_cache[self.idx, :, :, : start + s]) - {0}[:, :, :1]",
    "less the first head": "({0} := {0}_cache[self.idx, :, :, : start + s]) - {0}[:, :1]",
    "before those of the query": "torch.cat([{0}_cache[self.idx, :, :, :start], {0}], dim=2)",
    "in blocks and back": "{0}_cache[self.idx, :, :, : start + s].unflatten(2, (-1, 4)).flatten(2, 3)",
    "means of channels": "{0}_cache[self.idx, :, :, : start + s].unflatten(3, (16, 4)).mean(4).repeat(1, 1, 1, 4)",
    "another type": "{0}_cache[self.idx, :, :, : start + s].to(torch.bfloat16)",
    "less the mean of the heads": "({0} := {0}_cache[self.idx, :, :, : start + s]) - {0}.mean(1, keepdim=True)",
    "by narrow": "{0}_cache[self.idx].narrow(2, 0, start + s)",
    "by index": "{0}_cache[self.idx].index_select(2, torch.arange(start + s))",
}
MASKED = {
    "rows counted from 0": "mask = cols[None, :] <= torch.arange(s)[:, None]",
    "rows of the trace": "mask = cols[None, :] <= (torch.arange(3) + start)[:, None]",
    "keys of the trace": "mask = torch.arange(7)[None, :] <= (torch.arange(s) + start)[:, None]",
}
STILL_MASKED = {
    "rows counted from the call": "mask = cols[None, :] - start <= torch.arange(s)[:, None]",
    "rows and keys the other way round": "mask = (torch.arange(s) + start)[:, None] >= cols[None, :]",
}


def _both(root: Path, model: str) -> list[Judgement]:
    """The judgements of the exporters to Core ML and by ExecuTorch."""
    files = {"config.py": CONFIG, "model.py": model}
    scripts = (("core_ml", CORE_ML), ("executorch", EXECUTORCH))
    found = [scan_text(root / name, {**files, "export.py": script}) for name, script in scripts]
    return [judge(graph_of(f).facts) for f in found]


def _reads(code: str) -> str:
    return mutate(
        MODEL,
        (KEYS, indented(["keys = " + code.format("k")])),
        (VALUES, indented(["values = " + code.format("v")])),
    )


def _check(root: Path, model: str, *, harmless: bool) -> None:
    for judgement in _both(root, model):
        eligible = judgement.verdict is Verdict.ELIGIBLE
        assert eligible is harmless, [f.message for f in judgement.reasons]


@pytest.mark.parametrize("name", sorted(WRITTEN))
def test_earlier_rows_are_lost_or_new_ones_lie_elsewhere(tmp_path: Path, name: str) -> None:
    _check(tmp_path, mutate(MODEL, (KEYS_WRITTEN, indented(WRITTEN[name]))), harmless=False)


@pytest.mark.parametrize("name", sorted(STILL_WRITTEN))
def test_earlier_rows_are_kept(tmp_path: Path, name: str) -> None:
    _check(tmp_path, mutate(MODEL, (KEYS_WRITTEN, indented(STILL_WRITTEN[name]))), harmless=True)


@pytest.mark.parametrize("name", sorted(READ))
def test_attention_sees_a_window_or_rows_with_others_in_them(tmp_path: Path, name: str) -> None:
    _check(tmp_path, _reads(READ[name]), harmless=False)


@pytest.mark.parametrize("name", sorted(STILL_READ))
def test_attention_sees_each_row_by_itself(tmp_path: Path, name: str) -> None:
    _check(tmp_path, _reads(STILL_READ[name]), harmless=True)


@pytest.mark.parametrize("name", sorted(MASKED))
def test_a_mask_for_other_rows(tmp_path: Path, name: str) -> None:
    _check(tmp_path, mutate(MODEL, (MASK, indented([MASKED[name]]))), harmless=False)


@pytest.mark.parametrize("name", sorted(STILL_MASKED))
def test_a_mask_for_the_rows_of_the_call(tmp_path: Path, name: str) -> None:
    _check(tmp_path, mutate(MODEL, (MASK, indented([STILL_MASKED[name]]))), harmless=True)


def test_weights_that_are_shared_out_over_all_rows_at_once(tmp_path: Path) -> None:
    attention = "        y = F.scaled_dot_product_attention(q, keys, values, attn_mask=mask)\n"
    by_hand = (
        "w = (q @ keys.transpose(2, 3)).masked_fill(~mask, -1e4)",
        "w = w.flatten(2).softmax(-1).view_as(w)",
        "y = w @ values",
    )
    _check(tmp_path / "flat", mutate(MODEL, (attention, indented(by_hand))), harmless=False)
    each = (by_hand[0], "w = w.softmax(-1)", by_hand[2])
    _check(tmp_path / "each", mutate(MODEL, (attention, indented(each))), harmless=True)


REGISTERED = '        self.register_buffer("k_cache", torch.zeros(shape, dtype=torch.float16))\n'


def test_a_cache_that_is_not_registered_is_no_state(tmp_path: Path) -> None:
    plain = (REGISTERED, "        self.k_cache = torch.zeros(shape, dtype=torch.float16)\n")
    other = (REGISTERED, REGISTERED.replace("self.", "self.plain = torch.zeros(shape)\n        self.", 1))
    wrapped = "return self.inner(input_ids, position_ids, self.k_cache, self.v_cache)"
    for edits in ((plain,), (other, (wrapped, wrapped.replace("self.k_cache", "self.plain")))):
        judgement = judged(tmp_path, mutate(CORE_ML, *edits), **{"config.py": CONFIG, "model.py": MODEL})
        assert judgement.says() == "unresolved by unknown-state-role", [f.message for f in judgement.reasons]


POSITIONS = """\
import coremltools as ct
import numpy as np
import torch
from torch import nn

VOCAB, HIDDEN, HEADS, LAYERS, CONTEXT, HEAD = 1000, 64, 4, 2, 2048, 16


class Attention(nn.Module):
    def __init__(self, layer):
        super().__init__()
        self.layer = layer
        self.qkv = nn.Linear(HIDDEN, 3 * HIDDEN)
        self.out = nn.Linear(HIDDEN, HIDDEN)

    def forward(self, x, mask, positions, kv_cache):
        b, s, _ = x.shape
        q, k, v = self.qkv(x).view(b, s, 3, HEADS, HEAD).permute(2, 0, 3, 1, 4)
        kv_cache[2 * self.layer, :, :, positions] = k
        kv_cache[2 * self.layer + 1, :, :, positions] = v
        keys, values = kv_cache[2 * self.layer], kv_cache[2 * self.layer + 1]
        w = (q @ keys.transpose(2, 3)).masked_fill(mask[None, None], -1e4).softmax(-1)
        y = w @ values
        return x + self.out(y.transpose(1, 2).reshape(b, s, HIDDEN))


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, HIDDEN)
        self.layers = nn.ModuleList([Attention(i) for i in range(LAYERS)])
        self.head = nn.Linear(HIDDEN, VOCAB)
        self.register_buffer("kv_cache", torch.zeros(2 * LAYERS, 1, HEADS, CONTEXT, HEAD))

    def forward(self, input_ids, position_ids):
        x = self.embed(input_ids)
        mask = torch.arange(CONTEXT)[None, :] > position_ids[:, None]
        for layer in self.layers:
            x = layer(x, mask, position_ids, self.kv_cache)
        return self.head(x)


model = Decoder().eval()
traced = torch.jit.trace(model, (torch.zeros(1, 5, dtype=torch.int32), torch.arange(5, dtype=torch.int32)))
q = ct.RangeDim(1, 256)
ct.convert(
    traced,
    inputs=[
        ct.TensorType(name="input_ids", shape=(1, q), dtype=np.int32),
        ct.TensorType(name="position_ids", shape=(q,), dtype=np.int32),
    ],
    outputs=[ct.TensorType(name="logits")],
    states=[ct.StateType(wrapped_type=ct.TensorType(shape=model.kv_cache.shape, dtype=np.float16), name="kv_cache")],
).save("m.mlpackage")
"""
"""A decoder whose positions go in, and which sees the whole of its cache through a mask."""
PUT = "        kv_cache[2 * self.layer, :, :, positions] = k\n"
TAKEN = "        keys, values = kv_cache[2 * self.layer], kv_cache[2 * self.layer + 1]\n"
HIDDEN_KEYS = "        mask = torch.arange(CONTEXT)[None, :] > position_ids[:, None]\n"
BROKEN_WHOLE = {
    "positions in reverse": (PUT, "kv_cache[2 * self.layer, :, :, positions.flip(0)] = k"),
    "positions that were sorted": (
        PUT,
        "kv_cache[2 * self.layer, :, :, positions.sort(descending=True).values] = k",
    ),
    "the last rows of the cache": (
        TAKEN,
        "keys, values = (kv_cache[2 * self.layer + n][:, :, -512:] for n in (0, 1))\nmask = mask[:, -512:]",
    ),
    "every second row of the cache": (
        TAKEN,
        "keys, values = (kv_cache[2 * self.layer + n][:, :, ::2] for n in (0, 1))\nmask = mask[:, ::2]",
    ),
    "values less the mean of all": (
        TAKEN,
        f"{TAKEN.strip()}\nvalues = values - values.mean(2, keepdim=True)",
    ),
    "keys by the largest of all": (TAKEN, f"{TAKEN.strip()}\nkeys = keys / keys.abs().amax()"),
    "rows counted from 0": (
        HIDDEN_KEYS,
        "mask = torch.arange(CONTEXT)[None, :] > torch.arange(input_ids.shape[1])[:, None]",
    ),
    "means of blocks": (
        TAKEN,
        f"{TAKEN.strip()}\nkeys, values = (t.view(1, HEADS, -1, 4, HEAD).mean(3) for t in (keys, values))\n"
        "mask = mask[:, ::4]",
    ),
    "means of blocks for each row": (
        TAKEN,
        f"{TAKEN.strip()}\nkeys = keys.view(1, HEADS, CONTEXT // 4, 4, HEAD).mean(3).repeat_interleave(4, 2)",
    ),
    "less the last of the query": (TAKEN, f"{TAKEN.strip()}\nkeys = keys - keys[:, :, positions[-1:]]"),
    "the masks of other rows": (HIDDEN_KEYS, HIDDEN_KEYS.strip().replace("[:, None]", ".flip(0)[:, None]")),
}
HARMLESS_WHOLE = {
    "as it is": (PUT, PUT.strip()),
    "a copy at positions": (PUT, "kv_cache[2 * self.layer].index_copy_(2, positions, k)"),
    "heads less their mean": (TAKEN, f"{TAKEN.strip()}\nvalues = values - values.mean(1, keepdim=True)"),
    "keys by the largest of each": (TAKEN, f"{TAKEN.strip()}\nkeys = keys / keys.abs().amax(-1, keepdim=True)"),
    "in blocks and back": (TAKEN, f"{TAKEN.strip()}\nkeys = keys.view(1, HEADS, -1, 4, HEAD).view(1, HEADS, -1, HEAD)"),
    "a window": (
        HIDDEN_KEYS,
        f"{HIDDEN_KEYS.strip()}\nmask = mask | (torch.arange(CONTEXT)[None, :] <= position_ids[:, None] - 512)",
    ),
    "a table of masks": (
        HIDDEN_KEYS,
        "mask = torch.ones(CONTEXT, CONTEXT, dtype=torch.bool).triu(1)[position_ids]",
    ),
}


@pytest.mark.parametrize("name", sorted(BROKEN_WHOLE))
def test_a_cache_that_is_seen_as_a_whole_and_is_not(tmp_path: Path, name: str) -> None:
    old, new = BROKEN_WHOLE[name]
    assert judged(tmp_path, mutate(POSITIONS, (old, indented(new)))).verdict is not Verdict.ELIGIBLE


@pytest.mark.parametrize("name", sorted(HARMLESS_WHOLE))
def test_a_cache_that_is_seen_as_a_whole(tmp_path: Path, name: str) -> None:
    old, new = HARMLESS_WHOLE[name]
    judgement = judged(tmp_path, mutate(POSITIONS, (old, indented(new))))
    assert judgement.verdict is Verdict.ELIGIBLE, [f.message for f in judgement.reasons]


VALUES_WRITTEN = "        v_cache[self.idx, :, :, start : start + s] = v\n"
ATTENTION = "        y = F.scaled_dot_product_attention(q, keys, values, attn_mask=mask)\n"


def test_a_cache_that_is_seen_before_it_is_written(tmp_path: Path) -> None:
    late = ((KEYS_WRITTEN, ""), (VALUES_WRITTEN, ""), (ATTENTION, ATTENTION + KEYS_WRITTEN + VALUES_WRITTEN))
    _check(tmp_path / "late", mutate(MODEL, *late), harmless=False)
    for end in ("start", "start + 1", "start + s"):
        joined = tuple(
            (line, f"        {name} = torch.cat([{name[0]}_cache[self.idx, :, :, :{end}], {name[0]}], dim=2)\n")
            for line, name in ((KEYS, "keys"), (VALUES, "values"))
        )
        _check(tmp_path / end, mutate(MODEL, *late, *joined), harmless=end == "start")


def test_rows_that_are_written_one_too_early(tmp_path: Path) -> None:
    early = tuple(
        (w, w.replace("start : start + s", "start - 1 : start + s - 1")) for w in (KEYS_WRITTEN, VALUES_WRITTEN)
    )
    _check(tmp_path / "early", mutate(MODEL, *early), harmless=False)


HEAD = "        return self.lm_head(x)\n"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (MASK, "mask = torch.ones(s, total, dtype=torch.bool)"),
        (MASK, "mask = cols[None, :] <= start"),
        (HEAD, "return self.lm_head(x).argmax(-1)"),
        (HEAD, "return self.lm_head(x).max(-1)[1]"),
        (HEAD, "return torch.topk(self.lm_head(x), 8).indices"),
    ],
)
def test_the_line_that_decides_is_cited(tmp_path: Path, old: str, new: str) -> None:
    model = mutate(MODEL, (old, indented([new])))
    for judgement in _both(tmp_path, model):
        cited = {(p.path, p.line) for f in judgement.reasons for p in f.evidence}
        assert ("model.py", line_of(model, new)) in cited


CASTS = {
    "to a type": "{0}_cache.double()[self.idx, :, :, start : start + s] = {0}",
    "a layer": "{0}_cache[self.idx].to(torch.float64)[:, :, start : start + s] = {0}",
    "to the type of something": "{0}_cache.type_as({0}.double())[self.idx, :, :, start : start + s] = {0}",
    "and written by index": "{0}_cache[self.idx].bfloat16().index_copy_(2, torch.arange(s) + start, {0})",
    "and copied to": "{0}_cache.double()[self.idx, :, :, start : start + s].copy_({0})",
}
NO_CASTS = {
    "to the type that it has": "{0}_cache.to({0}_cache.dtype)[self.idx, :, :, start : start + s] = {0}",
    "to a device": "{0}_cache.to({0}.device)[self.idx, :, :, start : start + s] = {0}",
    "of what is written": "{0}_cache[self.idx, :, :, start : start + s] = {0}.to({0}_cache.dtype)",
    "of what is copied": "{0}_cache[self.idx, :, :, start : start + s].copy_({0}.half())",
}


@pytest.mark.parametrize("name", sorted({**CASTS, **NO_CASTS}))
def test_a_cache_of_another_type_is_a_copy(tmp_path: Path, name: str) -> None:
    code = {**CASTS, **NO_CASTS}[name]
    writes = ((KEYS_WRITTEN, indented([code.format("k")])), (VALUES_WRITTEN, indented([code.format("v")])))
    for judgement in _both(tmp_path, mutate(MODEL, *writes)):
        assert str(judgement.verdict) == ("unresolved" if name in CASTS else "eligible")
