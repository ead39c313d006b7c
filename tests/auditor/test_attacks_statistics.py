"""What a row takes from all rows of a forward: statistics over them; and what each call writes in the same place."""

from __future__ import annotations

from pathlib import Path

import pytest

from rules.verdict import Verdict
from tests.auditor.decoder_project import CONFIG, CORE_AI, MODEL
from tests.auditor.edits import Edit, instead
from tests.auditor.support import indented, judged, mutate

HEAD = "        return self.lm_head(x)\n"
INIT = "        self.norm = RMSNorm(cfg.hidden_size)\n"
ATTENTION = "        y = F.scaled_dot_product_attention(q, keys, values, attn_mask=mask)\n"
KEYS = "        k_cache[self.idx, :, :, start : start + s] = k\n"
VALUES = "        v_cache[self.idx, :, :, start : start + s] = v\n"
MASK = "        mask = cols[None, :] <= (torch.arange(s) + start)[:, None]\n"
PROJECTION = "        self.o_proj ="


def _before_head(*lines: str, made: str = "") -> tuple[Edit, ...]:
    """Lines before the head; `made` is made with the model."""
    edits = ((HEAD, indented(lines) + HEAD),)
    return (*edits, (INIT, INIT + f"        {made}\n")) if made else edits


def _head(*lines: str) -> tuple[Edit, ...]:
    return ((HEAD, indented(lines)),)


def _writes(at: str, value: str = "{0}") -> tuple[Edit, ...]:
    """Both caches are written by this line, with the cache's and the rows' names in it."""
    return (
        instead(KEYS, at.format("k_cache[self.idx]", value.format("k"))),
        instead(VALUES, at.format("v_cache[self.idx]", value.format("v"))),
    )


BROKEN: dict[str, tuple[Edit, ...]] = {
    "a scale of eight bits for all rows": _before_head(
        "scale = x.abs().max() / 127.0", "x = torch.round(x / scale).clamp(-128, 127) * scale"
    ),
    "less the mean of all": _before_head("x = (x - x.mean()) / x.std()"),
    "a gate of the mean row": _before_head("x = x * torch.sigmoid(x.mean(dim=1, keepdim=True))"),
    "a gate of the largest values": _before_head("x = x * torch.sigmoid(x.amax((0, 1)))"),
    "what is below the mean of the rows is masked": _before_head("x = x.masked_fill(x < x.mean(1, True), 0)"),
    "each channel by its norm": _before_head("x = torch.renorm(x, 2, 2, 1.0)"),
    "a norm of all": _before_head("x = x / x.norm()"),
    "a norm along the rows, behind its kind": _before_head("x = x / torch.norm(x, 2, 1, True)"),
    "the same as a method": _before_head("x = x / x.norm(2, 1, keepdim=True)"),
    "the same of vectors": _before_head("x = x / torch.linalg.vector_norm(x, 2, 1, True)"),
    "normalize without an axis": _before_head("x = F.normalize(x)"),
    "normalize along the rows": _before_head("x = F.normalize(x, dim=1)"),
    "layer_norm over rows and channels": _before_head("x = F.layer_norm(x, x.shape[1:])"),
    "layer_norm over the rows": _before_head("x = F.layer_norm(x.transpose(1, 2), (s,)).transpose(1, 2)"),
    "group_norm": _before_head("x = F.group_norm(x.transpose(1, 2), 8).transpose(1, 2)"),
    "a layer of groups": _before_head(
        "x = self.groups(x.transpose(1, 2)).transpose(1, 2)", made="self.groups = nn.GroupNorm(8, cfg.hidden_size)"
    ),
    "a layer of instances": _before_head(
        "x = self.each(x.transpose(1, 2)).transpose(1, 2)", made="self.each = nn.InstanceNorm1d(cfg.hidden_size)"
    ),
    "batch_norm that trains": _before_head(
        "x = F.batch_norm(x.transpose(1, 2), None, None, training=True).transpose(1, 2)"
    ),
    "a layer of batches without statistics": _before_head(
        "x = self.batch(x.transpose(1, 2)).transpose(1, 2)",
        made="self.batch = nn.BatchNorm1d(cfg.hidden_size, track_running_stats=False)",
    ),
    "a softmax over the rows by a layer": _before_head(
        "x = x * self.gate(x.sum(-1, keepdim=True))", made="self.gate = nn.Softmax(dim=1)"
    ),
    "attention by hand without a mask, with a layer": (
        (PROJECTION, "        self.softmax = nn.Softmax(dim=-1)\n" + PROJECTION),
        instead(ATTENTION, "y = self.softmax(q @ keys.transpose(2, 3) / 8) @ values"),
    ),
    "a layer of attention over the rows": _before_head(
        "x = x + self.mha(x, x, x)[0]", made="self.mha = nn.MultiheadAttention(cfg.hidden_size, 8, batch_first=True)"
    ),
    "a penalty for the tokens of all rows": _head(
        "logits = self.lm_head(x)",
        "seen = torch.zeros(1, 1, self.cfg.vocab_size).scatter(2, input_ids[:, None].long(), 1.0)",
        "return torch.where(seen > 0, logits / 1.2, logits)",
    ),
    "what the last row allows": _head(
        "logits = self.lm_head(x)", "return logits.masked_fill(logits[:, -1:] < 0, float('-inf'))"
    ),
    "a choice by the last row": _head(
        "logits = self.lm_head(x)", "return torch.where(logits[:, -1:] < 0, float('-inf'), logits)"
    ),
    "ones where the largest logits were": _head(
        "logits = self.lm_head(x)",
        "return torch.zeros_like(logits).scatter(-1, logits.argmax(-1, keepdim=True), 1.0)",
    ),
    "a scale of an observer": _before_head(
        "low, high = torch.aminmax(x)",
        "x = torch.fake_quantize_per_tensor_affine(x, (high - low) / 255, torch.zeros(1, dtype=torch.int32), 0, 255)",
    ),
    "less the median row": _before_head("x = x - x.median(dim=1, keepdim=True).values"),
    "the largest values of all rows": _before_head(
        "bound = x.abs().flatten().topk(1000).values[-1]", "x = torch.where(x.abs() >= bound, x, 0.0)"
    ),
    "a gate of what lies in one line": _before_head("x = x / x.reshape(-1).abs().amax()"),
    "less what is no tensor": _before_head("x = x - x.unheard_of"),
    "the token before, by padding": (
        ("self.embed(input_ids)", "self.embed(input_ids) + self.embed(F.pad(input_ids[:, :-1], (1, 0)))"),
    ),
    "the token before, by joining": (
        (
            "self.embed(input_ids)",
            "self.embed((31 * input_ids + torch.cat([input_ids[:, :1] * 0, input_ids[:, :-1]], 1)) % 32000)",
        ),
    ),
    "the token before, by rolling": (("self.embed(input_ids)", "self.embed(31 * input_ids + input_ids.roll(1, 1))"),),
    "the row before, by padding and a cut": _before_head("x = x + F.pad(x, (0, 0, 1, 0))[:, :-1] * 0.5"),
    "a row in front that pushes the last one out": (
        (
            "        x = self.embed(input_ids)\n",
            "        x = self.embed(input_ids)\n        x = torch.cat([self.norm.weight[None, None], x], 1)[:, :s]\n",
        ),
    ),
    "a mask with one bound for all rows": (
        (MASK, MASK.replace("(torch.arange(s) + start)", "torch.full((s,), total)")),
    ),
    "a mask by blocks": (instead(MASK, "mask = (cols // 32)[None, :] <= ((torch.arange(s) + start) // 32)[:, None]"),),
    "written at the start by each call": _writes("{0}[:, :, :s] = {1}"),
    "the same by narrow()": _writes("{0}.narrow(2, 0, s).copy_({1})"),
    "the same by a view": _writes("{0}[:, :, :s].copy_({1})"),
    "written at the end by each call": _writes("{0}[:, :, -s:] = {1}"),
    "every fourth row, at a fourth of the position": _writes(
        "{0}[:, :, start // 4 : (start + s) // 4] = {1}[:, :, ::4]"
    ),
    "slots that were rounded": _writes("{0}[:, :, torch.arange(start, start + s) // 4] = {1}"),
}


@pytest.mark.parametrize("name", sorted(BROKEN))
def test_rows_that_depend_on_those_of_the_same_call(tmp_path: Path, name: str) -> None:
    files = {"config.py": CONFIG, "model.py": mutate(MODEL, *BROKEN[name])}
    assert judged(tmp_path, CORE_AI, **files).verdict is not Verdict.ELIGIBLE


HARMLESS: dict[str, tuple[Edit, ...]] = {
    "a scale of eight bits for each row": _before_head(
        "scale = x.abs().amax(-1, keepdim=True) / 127.0", "x = torch.round(x / scale).clamp(-128, 127) * scale"
    ),
    "standardized row by row": _before_head("x = (x - x.mean(-1, keepdim=True)) / x.std(-1, keepdim=True)"),
    "what is below the mean of the channels is masked": _before_head("x = x.masked_fill(x < x.mean(-1, True), 0)"),
    "a deviation along the channels, behind its correction": _before_head("x = x / x.std(-1, True, True)"),
    "a norm along the channels, behind its kind": _before_head("x = x / x.norm(2, -1, True)"),
    "the same of vectors": _before_head("x = x / torch.linalg.vector_norm(x, dim=-1, keepdim=True)"),
    "normalize along the channels": _before_head("x = F.normalize(x, dim=-1)"),
    "layer_norm of the channels": _before_head("x = F.layer_norm(x, (x.shape[-1],))"),
    "rms_norm of the channels": _before_head("x = F.rms_norm(x, [self.cfg.hidden_size])"),
    "a layer of batches": _before_head(
        "x = self.batch(x.transpose(1, 2)).transpose(1, 2)", made="self.batch = nn.BatchNorm1d(cfg.hidden_size)"
    ),
    "batch_norm of kept statistics": _before_head(
        "x = F.batch_norm(x.transpose(1, 2), self.mean, self.var).transpose(1, 2)",
        made="self.mean, self.var = nn.Parameter(torch.zeros(8)), nn.Parameter(torch.ones(8))",
    ),
    "rows sorted by top-k and put back": _before_head(
        "order = x.sum(-1).flatten().topk(s, dim=0).indices",
        "x = x + 0 * x[0][order][(-order.float()).topk(s, dim=0).indices][None]",
    ),
    "what each row allows": _head("logits = self.lm_head(x)", "return logits.masked_fill(logits < 0, float('-inf'))"),
    "the largest values of each row": _before_head(
        "bound = x.abs().topk(8, dim=-1).values[..., -1:]", "x = torch.where(x.abs() >= bound, x, 0.0)"
    ),
    "less the median of each row": _before_head("x = x - x.median(dim=-1, keepdim=True).values"),
    "a row in front that is left out again": (
        (
            "        x = self.embed(input_ids)\n",
            "        x = self.embed(input_ids)\n        x = torch.cat([self.norm.weight[None, None], x], 1)[:, 1:]\n",
        ),
    ),
    "one position more for each row": (
        (
            "        pos = position_ids[0, start:]\n",
            "        pos = position_ids[0, -1:].expand(s) + torch.arange(1 - s, 1)\n",
        ),
    ),
    "the largest position": _before_head("x = x * (position_ids.max() + 1)"),
    "a statistic of a weight": _before_head("x = x / self.lm_head.weight.abs().max()"),
    "experts by a layer of softmax": _before_head(
        "w = self.gate(x[..., :8])", "x = x * w.amax(-1, keepdim=True)", made="self.gate = nn.Softmax(dim=-1)"
    ),
    "attention by hand with a mask, with a layer": (
        (PROJECTION, "        self.softmax = nn.Softmax(dim=-1)\n" + PROJECTION),
        instead(ATTENTION, "y = self.softmax((q @ keys.transpose(2, 3)).masked_fill(~mask, -1e9)) @ values"),
    ),
    "attention of a layer to a table": _before_head(
        "x = x + self.mha(x, self.table, self.table)[0]",
        made="self.mha, self.table = nn.MultiheadAttention(512, 8), nn.Parameter(torch.zeros(1, 50, 512))",
    ),
    "a mask by blocks and by rows": (
        instead(
            MASK,
            "at = torch.arange(s) + start",
            "mask = ((cols // 32)[None, :] == (at // 32)[:, None]) & (cols[None, :] <= at[:, None])",
        ),
    ),
    "written where the position says": _writes("{0}[:, :, start : start + s].copy_({1})"),
    "written by narrow() where the position says": _writes("{0}.narrow(2, start, s).copy_({1})"),
    "written at a range of positions": _writes("{0}[:, :, torch.arange(start, start + s)] = {1}"),
}


@pytest.mark.parametrize("name", sorted(HARMLESS))
def test_rows_that_depend_on_themselves_alone(tmp_path: Path, name: str) -> None:
    files = {"config.py": CONFIG, "model.py": mutate(MODEL, *HARMLESS[name])}
    judgement = judged(tmp_path, CORE_AI, **files)
    assert judgement.verdict is Verdict.ELIGIBLE, [f.message for f in judgement.reasons]


SLIDING = {
    "a tail of tokens": (
        "torch.zeros(1, 2, dtype=torch.int32)",
        "ids = torch.cat([key_ids, input_ids], 1)\n        key_ids.copy_(ids[:, -2:])\n",
    ),
    "a window of eight bits": (
        "torch.zeros(1, cfg.context, cfg.hidden_size, dtype=torch.int8)",
        "h = torch.cat([key_ids, self.embed(input_ids).to(torch.int8)], 1)\n"
        "        key_ids[:] = h[:, -key_ids.shape[1] :]\n",
    ),
}


@pytest.mark.parametrize("name", sorted(SLIDING))
def test_a_state_of_integers_that_slides(tmp_path: Path, name: str) -> None:
    example, body = SLIDING[name]
    forward = "    def forward(self, input_ids, position_ids, k_cache, v_cache):\n"
    model = mutate(MODEL, (forward, forward.replace("v_cache)", "v_cache, key_ids)") + f"        {body}"))
    last, shapes = '        "v_cache": cache.clone(),\n', '"v_cache": None}'
    script = mutate(
        CORE_AI,
        ('state_names=["k_cache", "v_cache"]', 'state_names=["k_cache", "v_cache", "key_ids"]'),
        (last, last + f'        "key_ids": {example},\n'),
        (shapes, shapes.replace("}", ', "key_ids": None}')),
    )
    assert judged(tmp_path, script, **{"config.py": CONFIG, "model.py": model}).verdict is not Verdict.ELIGIBLE
