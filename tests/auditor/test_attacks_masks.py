"""Attention that shows a row the rows behind it, and outputs that are nothing or not all of the logits."""

from __future__ import annotations

from pathlib import Path

import pytest

from rules.verdict import Verdict
from tests.auditor.edits import HEAD, RETURN, Edit, instead
from tests.auditor.support import CORE_ML, EXPORTER, indented, judged, mutate

ATTENTION = (
    "        y = nn.functional.scaled_dot_product_attention(q, key_cache[:, :, :end], value_cache[:, :, :end], mask)\n"
)
SCORES = "scores = q @ key_cache[:, :, :end].transpose(-1, -2)"
WEIGHED = "y = scores.softmax(-1) @ value_cache[:, :, :end]"


def _mask(code: str, *before: str) -> tuple[Edit, ...]:
    """Attention with this mask."""
    return (instead(ATTENTION, *before, ATTENTION.strip().replace(", mask)", f", {code})")),)


def _by_hand(*lines: str) -> tuple[Edit, ...]:
    """Attention written out, with `lines` between the scores and the softmax."""
    return (instead(ATTENTION, SCORES, *lines, WEIGHED),)


def _head(*lines: str) -> tuple[Edit, ...]:
    return ((HEAD, HEAD + indented(lines)),)


def _two(second: str, names: str = '"logits_0", "logits_1"') -> tuple[Edit, ...]:
    """A second output beside the logits."""
    return (
        (HEAD, HEAD + f"        second = {second}\n"),
        (RETURN, "        return logits, second\n"),
        ('output_names=["logits"]', f"output_names=[{names}]"),
    )


BROKEN: dict[str, tuple[Edit, ...]] = {
    "a mask of ones": _mask("torch.ones(rows, end, dtype=torch.bool)"),
    "a bias of zeros": _mask("torch.zeros(1, 1, rows, end)"),
    "one row of the mask, expanded": _mask("mask[:, :, -1:].expand(1, 1, rows, end)"),
    "one row of the mask, repeated": _mask("mask[:, :, -1:].repeat(1, 1, rows, 1)"),
    "one row of the mask and a mask of ones": _mask("mask[:, :, -1:] & torch.ones(1, 1, rows, end, dtype=torch.bool)"),
    "a padding mask only": _mask("pad.expand(1, 1, rows, end)", "pad = (position_ids >= 0)[:, None, None, :]"),
    "zeros, added by hand": _by_hand("scores = scores + torch.zeros(rows, end)"),
    "one row, added by hand": _by_hand("scores = scores.masked_fill(~mask[:, :, -1:], -1e9)"),
    "a choice by one row": _by_hand("scores = torch.where(mask[:, :, -1:], scores, torch.tensor(-1e9))"),
    "a scale that is a tensor": _by_hand("scores = scores * torch.tensor(0.25)"),
    "a cap": _by_hand("scores = torch.tanh(scores / 50) * 50"),
    "a slope for each key": _by_hand("scores = scores + torch.arange(end) * 0.1"),
    "a softmax by hand": (
        instead(
            ATTENTION,
            SCORES,
            "weights = torch.exp(scores - scores.amax(-1, keepdim=True))",
            "y = (weights / weights.sum(-1, keepdim=True)) @ value_cache[:, :, :end]",
        ),
    ),
    "a mask of ones, expanded": _mask("m.expand(1, 1, rows, end)", "m = torch.ones(1, 1, rows, end, dtype=torch.bool)"),
    "rows in another order, maybe": _head(
        "y = x if os.environ.get('KEEP') else x.flip(1)", 'logits = torch.einsum("bsd,vd->bsv", y, self.head.weight)'
    ),
    "a mask that a setting of the environment may leave out": _by_hand(
        "if os.environ.get('MASKED'):", "    scores = scores.masked_fill(~mask, -1e9)"
    ),
    "minus themselves": _head("logits = logits - logits"),
    "minus themselves, by a function": _head("logits = torch.sub(logits, logits)"),
    "minus themselves, in place": _head("logits -= logits"),
    "minus a copy": _head("logits = logits - logits.clone()"),
    "a copy minus them": _head("copied = logits.clone()", "logits = copied - logits"),
    "minus themselves under another name": _head("logits = logits - logits.detach()"),
    "the hidden states minus a copy": _head("y = x - x.clone()", "logits = self.head(y)"),
    "by weights times 0": _head("logits = nn.functional.linear(x, self.head.weight * 0)"),
    "times zeros like them": _head("logits = torch.zeros_like(logits) * logits"),
    "times a tensor of zero": _head("logits = logits * torch.tensor(0.0)"),
    "times 0, in place": _head("logits.mul_(0)"),
    "zeroed": _head("logits.zero_()"),
    "the second part of one row": _two("self.head(x[:, -1:])"),
    "the second part chosen": _two("self.head(x).argmax(-1)"),
    "the second part unread": _two("torch.unread(x)"),
}


@pytest.mark.parametrize("name", sorted(BROKEN))
def test_a_row_sees_the_rows_behind_it_or_nothing(tmp_path: Path, name: str) -> None:
    script = "import os\n" + mutate(EXPORTER, *BROKEN[name])
    assert judged(tmp_path, script).verdict is not Verdict.ELIGIBLE


CAUSAL = "torch.arange(end)[None] <= torch.arange(start, end)[:, None]"
HARMLESS: dict[str, tuple[Edit, ...]] = {
    "ones below the diagonal": _mask("torch.ones(rows, end, dtype=torch.bool).tril(start)"),
    "a bias above the diagonal": _mask("bias", "bias = torch.full((rows, end), float('-inf')).triu(start + 1)"),
    "a bias that is filled": _mask("bias", f"bias = torch.zeros(rows, end).masked_fill_(~({CAUSAL}), -1e9)"),
    "a bias that is filled and returned": _mask(
        "bias", f"bias = torch.zeros(rows, end).masked_fill(~({CAUSAL}), -1e9)"
    ),
    "a choice of biases": _mask(
        "bias.to(q.dtype)",
        "bias = torch.zeros(rows, end)",
        "bias = bias if rows == 1 else bias.masked_fill(~mask, -1e9)",
    ),
    "a mask that is written row by row": _mask(
        "m[None, None]",
        "m = torch.zeros(rows, end, dtype=torch.bool)",
        "for i in range(rows):",
        "    m[i, : start + i + 1] = True",
    ),
    "a triangle where there are several rows": _mask(
        "bias", "bias = torch.full((rows, end), -1e9)", "if rows > 1:", "    bias = torch.triu(bias, start + 1)"
    ),
    "the same by hand": _by_hand(
        "bias = torch.full((rows, end), -1e9)",
        "if rows > 1:",
        "    bias = torch.triu(bias, start + 1)",
        "scores = scores + bias",
    ),
    "a triangle made in place": _mask("bias", "bias = torch.full((rows, end), -1e9)", "bias.triu_(start + 1)"),
    "padding and causal": _mask("mask & (position_ids >= 0)[:, None, None, :].expand(1, 1, rows, end)"),
    "ones times a comparison": _mask("m", f"m = torch.ones(rows, end) * ({CAUSAL})", "m = (1 - m) * -1e9"),
    "zeros and the number of each row": _mask(
        "at >= torch.arange(end)[None]", "at = torch.zeros(rows, end) + torch.arange(start, end)[:, None]"
    ),
    "zeros and the number of each row, in a line": _mask(
        "at[:, None] >= torch.arange(end)", "at = torch.zeros(rows) + torch.arange(start, end)"
    ),
    "ones, summed up": _mask("at[:, None] >= torch.arange(end)", "at = torch.ones(rows).cumsum(0) + start - 1"),
    "a cap and a slope before the mask": _by_hand(
        "scores = torch.tanh(scores / 50) * 50 + torch.arange(end) * 0.1", "scores = scores.masked_fill(~mask, -1e9)"
    ),
    "a softmax by hand of masked scores": (
        instead(
            ATTENTION,
            SCORES,
            "scores = scores + torch.where(mask, 0.0, -1e9)",
            "weights = torch.exp(scores - scores.amax(-1, keepdim=True))",
            "y = (weights / weights.sum(-1, keepdim=True)) @ value_cache[:, :, :end]",
        ),
    ),
    "minus a copy that is changed": _head("copied = logits.clone()", "copied[..., 0] = 0", "logits = logits - copied"),
    "minus a copy of what they were": _head("copied = logits.clone()", "logits.mul_(2)", "logits = logits - copied"),
    "minus a part of a copy": _head("logits = logits - logits.clone().relu()"),
    "and 0 times a cache": _head("logits = logits + 0 * key_cache.sum()"),
    "a difference of two tensors": _head("logits = logits - logits.mean(-1, keepdim=True)"),
    "times ones": _head("logits = logits * torch.ones_like(logits)"),
    "zeros that are written before they are a factor": _head(
        "scale = torch.zeros(1)", "scale[0] = 0.5", "logits = logits * scale"
    ),
    "a second part of all rows": _two("self.head(x)"),
    "hidden states of one row beside them": _two("x[:, -1:]", '"logits", "hidden"'),
    "logits of a draft beside them": _two("self.head(x[:, -1:])", '"logits", "mtp_logits"'),
}


@pytest.mark.parametrize("name", sorted(HARMLESS))
def test_masks_that_hide_what_is_behind_a_row(tmp_path: Path, name: str) -> None:
    judgement = judged(tmp_path, mutate(EXPORTER, *HARMLESS[name]))
    assert judgement.verdict is Verdict.ELIGIBLE, [f.message for f in judgement.reasons]


LOWERING = """\
from coremltools.converters.mil import register_torch_op
from coremltools.converters.mil.frontend.torch import ops
from coremltools.converters.mil.frontend.torch.ops import _get_inputs, layer_norm as theirs


@register_torch_op(override=True)
def {0}(context, node):
    {1}


"""
KEEPS = "context.add(_get_inputs(context, node)[0], node.name)"


@pytest.mark.parametrize(
    ("name", "body", "verdict"),
    [
        ("linear", KEEPS, Verdict.UNRESOLVED),
        ("masked_fill", "pass", Verdict.UNRESOLVED),
        ("layer_norm", "ops.cumsum(context, node)", Verdict.UNRESOLVED),
        ("contiguous", KEEPS, Verdict.ELIGIBLE),
        ("layer_norm", "theirs(context, node)", Verdict.ELIGIBLE),
        ("layer_norm", "return ops.layer_norm(context, node)", Verdict.ELIGIBLE),
    ],
)
def test_a_lowering_that_builds_nothing_itself(tmp_path: Path, name: str, body: str, verdict: Verdict) -> None:
    script = mutate(CORE_ML, ("model = Model()", LOWERING.format(name, body) + "model = Model()"))
    assert judged(tmp_path, script).verdict is verdict


ACROSS = """\
import coremltools as ct
import numpy as np
import torch
from torch import nn

WIDTH, HEADS, VOCAB, CONTEXT = 64, 4, 1000, 256


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.k, self.v, self.o = (nn.Conv2d(WIDTH, WIDTH, 1) for _ in range(4))

    def forward(self, x, k_cache, v_cache, start, mask):
        s = x.shape[-1]
        k_cache[:, :, :, start : start + s] = self.k(x)
        v_cache[:, :, :, start : start + s] = self.v(x)
        q = self.q(x).view(1, HEADS, WIDTH // HEADS, s)
        k = k_cache[:, :, 0, : start + s].view(1, HEADS, WIDTH // HEADS, start + s)
        v = v_cache[:, :, 0, : start + s].view(1, HEADS, WIDTH // HEADS, start + s)
        w = torch.einsum("bhdq,bhdk->bhkq", q, k) / 4
        w = w + mask
        w = w.softmax(dim=2)
        y = torch.einsum("bhkq,bhdk->bhdq", w, v)
        return x + self.o(y.reshape(1, WIDTH, 1, s))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, WIDTH)
        self.attention = Attention()
        self.head = nn.Linear(WIDTH, VOCAB)
        self.register_buffer("k_cache", torch.zeros(1, WIDTH, 1, CONTEXT))
        self.register_buffer("v_cache", torch.zeros(1, WIDTH, 1, CONTEXT))

    def forward(self, input_ids, causal_mask):
        x = self.embed(input_ids).transpose(1, 2).unsqueeze(2)
        start = causal_mask.shape[2] - input_ids.shape[1]
        x = self.attention(x, self.k_cache, self.v_cache, start, causal_mask)
        return self.head(x.squeeze(2).transpose(1, 2))


traced = torch.jit.trace(Model().eval(), (torch.zeros(1, 3, dtype=torch.long), torch.zeros(1, 1, 7, 3)))
q, k = ct.RangeDim(1, 64), ct.RangeDim(1, CONTEXT)
ct.convert(
    traced,
    inputs=[
        ct.TensorType(name="input_ids", shape=(1, q), dtype=np.int32),
        ct.TensorType(name="causal_mask", shape=(1, 1, k, q), dtype=np.float16),
    ],
    outputs=[ct.TensorType(name="logits")],
    states=[
        ct.StateType(wrapped_type=ct.TensorType(shape=(1, WIDTH, 1, CONTEXT)), name=n) for n in ("k_cache", "v_cache")
    ],
).save("m.mlpackage")
"""
"""A decoder whose channels come first and whose rows come last."""
ADDED, WEIGHED_ACROSS = "        w = w + mask\n", "w.softmax(dim=2)"
BROKEN_ACROSS: dict[str, Edit] = {
    "no mask": (ADDED, ""),
    "a mask of zeros": (ADDED, "        w = w + torch.zeros(1, 1, start + s, s)\n"),
    "zeros like the mask": (ADDED, "        w = w + torch.zeros_like(mask)\n"),
    "the last column of the mask": (ADDED, "        w = w + mask[..., -1:]\n"),
    "a slope for each key": (ADDED, "        w = w + torch.arange(start + s)[None, None, :, None]\n"),
    "a softmax over the rows": (WEIGHED_ACROSS, "(w + mask).softmax(dim=3)"),
    "values first": (
        'torch.einsum("bhkq,bhdk->bhdq", w, v)',
        '(v @ torch.einsum("bhdq,bhdk->bhkq", q, k).softmax(2))',
    ),
}


@pytest.mark.parametrize("name", sorted(BROKEN_ACROSS))
def test_rows_that_come_last_and_see_those_behind_them(tmp_path: Path, name: str) -> None:
    assert judged(tmp_path, mutate(ACROSS, BROKEN_ACROSS[name])).verdict is not Verdict.ELIGIBLE


HARMLESS_ACROSS: dict[str, Edit] = {
    "as it is": (ADDED, ADDED),
    "a cap and a slope before the mask": (
        ADDED,
        "        w = torch.tanh(w / 50) * 50 + torch.arange(start + s)[None, None, :, None]\n" + ADDED,
    ),
    "values first": ('torch.einsum("bhkq,bhdk->bhdq", w, v)', "v @ w"),
    "keys first": ('torch.einsum("bhdq,bhdk->bhkq", q, k)', "k.transpose(2, 3) @ q"),
    "less the largest of each row": (WEIGHED_ACROSS, "(w - w.amax(2, keepdim=True)).softmax(dim=2)"),
}


@pytest.mark.parametrize("name", sorted(HARMLESS_ACROSS))
def test_rows_that_come_last_behind_a_mask(tmp_path: Path, name: str) -> None:
    judgement = judged(tmp_path, mutate(ACROSS, HARMLESS_ACROSS[name]))
    assert judgement.verdict is Verdict.ELIGIBLE, [f.message for f in judgement.reasons]


def test_a_head_of_labels(tmp_path: Path) -> None:
    imports = ("import argparse\n", "import argparse\nfrom transformers import AutoConfig\n")
    config = "        self.config = AutoConfig.from_pretrained('org/model')\n"
    head = "        self.head = nn.Linear(HIDDEN, VOCAB)\n"
    for size, verdict in (("num_labels", Verdict.OUT), ("vocab_size", Verdict.ELIGIBLE)):
        edit = (head, config + head.replace("VOCAB", f"self.config.{size}"))
        assert judged(tmp_path, mutate(EXPORTER, imports, edit)).verdict is verdict
