"""Rows that are mixed among themselves, and outputs that nothing goes into: one forward over S rows is not S forwards.

Attention by way of the cache is the only mixing of rows that speculative decoding allows.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from rules.verdict import Verdict
from tests.auditor.edits import HEAD, NORM, WRITE_KEYS, Edit, instead
from tests.auditor.support import EXPORTER, indented, judged, mutate

INIT = "        self.norm = nn.LayerNorm(HIDDEN)\n"
SIZES = "VOCAB, HIDDEN, HEADS, LAYERS, CONTEXT = 128, 32, 4, 2, 512\n"
ATTENTION = (
    "        y = nn.functional.scaled_dot_product_attention(q, key_cache[:, :, :end], value_cache[:, :, :end], mask)\n"
)


def _at(anchor: str, *lines: str) -> Edit:
    return anchor, anchor + indented(lines)


BROKEN: dict[str, tuple[Edit, ...]] = {
    "a matrix that selects rows": (_at(NORM, "pick = torch.zeros(rows, rows)", "pick[:, -1] = 1", "x = pick @ x"),),
    "the same for each batch": (_at(NORM, "x = torch.bmm(torch.eye(rows)[-1:].expand(rows, rows)[None], x)"),),
    "a running mean": (_at(NORM, "x = x + torch.ones(rows, rows).tril() @ x"),),
    "an upper triangle": (_at(NORM, "x = torch.ones(rows, rows).triu() @ x"),),
    "from the right": (_at(NORM, "x = (x.transpose(1, 2) @ torch.ones(rows, rows).triu()).transpose(1, 2)"),),
    "a linear layer over the rows": (
        _at(NORM, "x = nn.functional.linear(x.transpose(1, 2), torch.ones(rows, rows)).transpose(1, 2)"),
    ),
    "a cut of a table": (
        _at(INIT, 'self.register_buffer("blend", torch.ones(CONTEXT, CONTEXT).tril(), persistent=False)'),
        _at(NORM, "x = x + self.blend[:rows, :rows] @ x"),
    ),
    "einsum over the rows": (_at(NORM, 'x = torch.einsum("st,btd->bsd", torch.ones(rows, rows).triu(), x)'),),
    "einsum of logits": (_at(HEAD, 'logits = torch.einsum("bsv,btv,btd->bsd", logits, logits, logits)'),),
    "a convolution along the rows": (
        _at(INIT, "self.mix = nn.Conv1d(HIDDEN, HIDDEN, 3, padding=1)"),
        _at(NORM, "x = self.mix(x.transpose(1, 2)).transpose(1, 2)"),
    ),
    "a causal convolution without a state": (
        _at(INIT, "self.mix = nn.Conv1d(HIDDEN, HIDDEN, 3, padding=2, groups=HIDDEN)"),
        _at(NORM, "x = x + self.mix(x.transpose(1, 2))[..., :rows].transpose(1, 2)"),
    ),
    "the same before the layers": (
        _at(INIT, "self.mix = nn.Conv1d(HIDDEN, HIDDEN, 3, padding=2)"),
        _at("        x = self.embed(input_ids)\n", "x = x + self.mix(x.transpose(1, 2))[..., :rows].transpose(1, 2)"),
    ),
    "pooled": (
        _at(INIT, "self.mix = nn.AvgPool1d(3, 1, 1)"),
        _at(NORM, "x = x + self.mix(x.transpose(1, 2)).transpose(1, 2)"),
    ),
    "a running sum, added": (_at(NORM, "x = x + x.cumsum(1) / 8"),),
    "rolled and added": (_at(NORM, "x = x + x.roll(1, 1)"),),
    "the rows before, added": (_at(NORM, "x = x + torch.cat([torch.zeros_like(x[:, :1]), x[:, :-1]], 1)"),),
    "the rows before, by padding": (_at(NORM, "x = x + nn.functional.pad(x[:, :-1], (0, 0, 1, 0))"),),
    "the rows before, by padding in and out": (_at(NORM, "x = x + nn.functional.pad(x, (0, 0, 1, -1))"),),
    "attention among the rows alone": (
        instead(ATTENTION, "y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)"),
    ),
    "the same by hand": (instead(ATTENTION, "y = (q @ k.transpose(-1, -2)).softmax(-1) @ v"),),
    "attention without a mask": (instead(ATTENTION, ATTENTION.strip().replace(", mask)", ")")),),
    "attention with a mask for all rows alike": (
        instead(ATTENTION, ATTENTION.strip().replace(", mask)", ", mask[:, :, -1:])")),
    ),
    "attention that is causal from where the keys begin": (
        instead(ATTENTION, ATTENTION.strip().replace(", mask)", ", is_causal=True)")),
    ),
    "attention by hand without a mask": (
        instead(
            ATTENTION,
            "scores = q @ key_cache[:, :, :end].transpose(-1, -2) / 4",
            "y = scores.softmax(-1) @ value_cache[:, :, :end]",
        ),
    ),
    "attention by einsum without a mask": (
        instead(
            ATTENTION,
            'scores = torch.einsum("bhqd,bhkd->bhqk", q, key_cache[:, :, :end])',
            'y = torch.einsum("bhqk,bhkd->bhqd", nn.functional.softmax(scores, -1), value_cache[:, :, :end])',
        ),
    ),
    "keys that are shifted": (
        instead(WRITE_KEYS, "k = k + torch.cat([k[:, :, :1], k[:, :, :-1]], 2)", "key_cache[:, :, start:end] = k"),
    ),
    "keys with the key before": (
        instead(
            WRITE_KEYS,
            "past = torch.cat([key_cache[:, :, start - 1 : start], k[:, :, :-1]], 2)",
            "key_cache[:, :, start:end] = 0.5 * k + 0.5 * past",
        ),
    ),
    "keys that decay": (
        instead(WRITE_KEYS, "key_cache[:, :, start:end] = k + 0.9 * key_cache[:, :, start - 1 : start]"),
    ),
    "keys that are convolved": (
        instead(
            WRITE_KEYS,
            "h = torch.cat([key_cache[:, :, start - 2 : start], k], 2)",
            "key_cache[:, :, start:end] = h[:, :, 2:] + h[:, :, 1:-1] + h[:, :, :-2]",
        ),
    ),
    "times zero": (_at(HEAD, "logits = logits * 0"),),
    "zeros like logits": (_at(HEAD, "logits = torch.zeros_like(logits)"),),
    "zeros": (_at(HEAD, "logits = torch.zeros(1, rows, VOCAB)"),),
    "zeros that an unread operator may fill": (
        _at(HEAD, "logits = torch.zeros(1, rows, VOCAB)", "torch.ops.mine.head(x, logits)"),
    ),
    "no head, and the vocabulary as wide as the states": (
        (SIZES, SIZES.replace("128, 32", "128, 128")),
        (HEAD, "        logits = x\n"),
    ),
}


@pytest.mark.parametrize("name", sorted(BROKEN))
def test_rows_that_are_mixed(tmp_path: Path, name: str) -> None:
    assert judged(tmp_path, mutate(EXPORTER, *BROKEN[name])).verdict is not Verdict.ELIGIBLE


PAST, NEW = "q @ key_cache[:, :, :start].transpose(-1, -2)", "q @ k.transpose(-1, -2)"
HARMLESS: dict[str, tuple[Edit, ...]] = {
    "a path for CUDA, where nothing is exported": (
        instead(
            ATTENTION,
            "if q.is_cuda:",
            "    y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)",
            "else:",
            f"    {ATTENTION.strip()}",
        ),
    ),
    "attention by hand": (
        instead(
            ATTENTION,
            "scores = q @ key_cache[:, :, :end].transpose(-1, -2) + torch.where(mask, 0.0, -1e9)",
            "y = scores.softmax(-1) @ value_cache[:, :, :end]",
        ),
    ),
    "attention by einsum": (
        instead(
            ATTENTION,
            'scores = torch.einsum("bhqd,bhkd->bhqk", q, key_cache[:, :, :end])',
            "p = nn.functional.softmax(scores + torch.where(mask, 0.0, torch.finfo(scores.dtype).min), dim=-1)",
            'y = torch.einsum("bhqk,bhkd->bhqd", p, value_cache[:, :, :end])',
        ),
    ),
    "attention in two parts": (
        instead(
            ATTENTION,
            f"p = torch.cat([{PAST}, {NEW}], -1).masked_fill(~mask, -1e9).softmax(-1)",
            "y = p[..., :start] @ value_cache[:, :, :start] + p[..., start:] @ v",
        ),
    ),
    "attention in two parts, split": (
        instead(
            ATTENTION,
            f"p = torch.cat([{PAST}, {NEW}], -1).masked_fill(~mask, -1e9).softmax(-1)",
            "past, new = p.split([start, rows], -1)",
            "y = past @ value_cache[:, :, :start] + new @ v",
        ),
    ),
    "attention over the cache and the rows behind it": (
        instead(
            ATTENTION,
            "keys = torch.cat([key_cache[:, :, :start], k], 2)",
            "values = torch.cat([value_cache[:, :, :start], v], 2)",
            "y = (q @ keys.transpose(-1, -2)).masked_fill(~mask, float('-inf')).softmax(-1) @ values",
        ),
    ),
    "angles by a product": (
        _at(
            NORM,
            "angles = (torch.ones(1, HIDDEN // 2, 1) @ position_ids[:, None, -rows:].float()).transpose(1, 2)",
            "x = x * torch.cat([angles.cos(), angles.sin()], -1)",
        ),
    ),
    "a convolution of one row": (
        _at(INIT, "self.mix = nn.Conv1d(HIDDEN, HIDDEN, 1)"),
        _at(NORM, "x = self.mix(x.transpose(1, 2)).transpose(1, 2)"),
    ),
    "attention to what no row of the query goes into": (
        _at(INIT, "self.frames = nn.Parameter(torch.zeros(1, 50, HIDDEN))"),
        _at(NORM, "x = x + nn.functional.scaled_dot_product_attention(x, self.frames, self.frames)"),
    ),
    "experts by their number": (
        _at(NORM, "chosen = nn.functional.one_hot(x.argmax(-1) % 4, 4)", "x = x * (chosen.sum(-1, keepdim=True) + 1)"),
    ),
    "positions by a running sum": (
        _at(
            NORM,
            "at = torch.ones(1, rows, dtype=torch.int64).cumsum(1) + position_ids.shape[1] - rows",
            "x = x * at.float()[..., None]",
        ),
    ),
    "a product with the head's weight": (instead(HEAD, "logits = x @ self.head.weight.t() + 0"),),
    "einsum with a weight": (instead(HEAD, 'logits = torch.einsum("bsd,vd->bsv", x, self.head.weight)'),),
    "scaled and capped": (_at(HEAD, "logits = torch.tanh(logits / 30.0) * 30.0", "logits = logits * 0.5"),),
    "copied into a tensor of their own": (
        _at(HEAD, "out = torch.empty(1, rows, VOCAB)", "out.copy_(logits)", "logits = out"),
    ),
    "added to zeros": (_at(HEAD, "logits = torch.zeros_like(logits) + logits"),),
    "written by out=": (
        _at(HEAD, "out = torch.zeros(1, rows, VOCAB)", "torch.mul(logits, 2, out=out)", "logits = out"),
    ),
}


@pytest.mark.parametrize("name", sorted(HARMLESS))
def test_what_keeps_each_row_to_itself_stays_eligible(tmp_path: Path, name: str) -> None:
    judgement = judged(tmp_path, mutate(EXPORTER, *HARMLESS[name]))
    assert judgement.verdict is Verdict.ELIGIBLE, [f.message for f in judgement.reasons]
