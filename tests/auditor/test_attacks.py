"""Scripts that hide what keeps speculative decoding from working: none of them may be called eligible.

Each entry edits a decoder that is eligible and says which verdict a careful reader would give at most. `out` entries
are those where the mechanism is told; with `unresolved` the tool only has to say that it does not know.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from rules.verdict import Verdict
from tests.auditor.support import CORE_ML, EXPORTER, indented, judged, mutate

Edit = tuple[str, str]

MADE = "    model = Model().eval()\n"
EXPORT = "    program = torch.export.export(model, (), inputs, dynamic_shapes=dynamic)\n"
NORM = "        x = self.norm(x)\n"
HEAD = "        logits = self.head(x)\n"
FORWARD = "    def forward(self, input_ids, position_ids, key_cache, value_cache):\n"
FUNCTION = "def export(args):\n"
CLASSES = "class Layer(nn.Module):\n"
WRITE = "        key_cache[:, :, start:end] = k\n"
UNREAD = ("from coreai_torch import TorchConverter\n", "from coreai_torch import TorchConverter\nimport rowkit\n")
PARSE = "    args = parser.parse_args()\n"


def _write(*lines: str) -> Edit:
    """The keys are written by these lines instead."""
    return WRITE, indented(lines)


SHORTENED = """\
from contextlib import contextmanager


@contextmanager
def shortened(model):
    before = model.head.forward
    model.head.forward = lambda x: before(x[:, -1:])
    try:
        yield model
    finally:
        model.head.forward = before


"""
LAST_FORWARD = """\
_whole = Model.forward


def last(self, input_ids, position_ids, key_cache, value_cache):
    return _whole(self, input_ids, position_ids, key_cache, value_cache)[:, -1:]


"""
INSIDE = "        program = torch.export.export(model, (), inputs, dynamic_shapes=dynamic)\n"

OUT: dict[str, tuple[Edit, ...]] = {
    "patched in a context manager": (
        (FUNCTION, SHORTENED + FUNCTION),
        (EXPORT, "    with shortened(model):\n" + INSIDE),
    ),
    "patched in a context manager that another one enters": (
        (
            FUNCTION,
            SHORTENED + "@contextmanager\ndef both(model):\n    with shortened(model):\n        yield\n\n\n" + FUNCTION,
        ),
        (EXPORT, "    with both(model):\n" + INSIDE),
    ),
    "forward replaced by mock.patch.object": (
        (FUNCTION, LAST_FORWARD + FUNCTION),
        (EXPORT, '    from unittest import mock\n    with mock.patch.object(Model, "forward", last):\n' + INSIDE),
    ),
    "a namespace that has the flag set": (
        (PARSE, "    args = parser.parse_args(namespace=argparse.Namespace(static=True))\n"),
    ),
    "a view at a wrapped position": (_write("at = start % 64", "key_cache[:, :, at : at + rows].copy_(k)"),),
    "narrow() at a wrapped position": (_write("key_cache.narrow(2, start % 64, rows).copy_(k)"),),
    "select() at a wrapped position": (_write("key_cache.select(2, start % 64).copy_(k[:, :, 0])"),),
    "slice_scatter() at a wrapped position": (
        _write("at = start % 64", "key_cache.copy_(key_cache.slice_scatter(k, 2, at, at + rows))"),
    ),
    "index_copy() at wrapped positions": (
        _write("at = torch.arange(start, end) % 64", "key_cache.copy_(key_cache.index_copy(2, at, k))"),
    ),
    "a remainder spelled with //": (
        _write("at = torch.arange(start, end)", "key_cache[:, :, at - (at // 64) * 64] = k"),
    ),
}

NOT_ELIGIBLE: dict[str, tuple[Edit, ...]] = {
    "a decorator of forward that nobody can read": (UNREAD, (FORWARD, "    @rowkit.last\n" + FORWARD)),
    "a call as such a decorator": (UNREAD, (FORWARD, "    @rowkit.keep(1)\n" + FORWARD)),
    "such a decorator of a helper": (
        UNREAD,
        (CLASSES, "@rowkit.last\ndef pick(x):\n    return x\n\n\n" + CLASSES),
        (NORM, "        x = pick(self.norm(x))\n"),
    ),
    "a decorator of the class that nobody can read": (
        UNREAD,
        ("class Model(nn.Module):\n", "@rowkit.last\nclass Model(nn.Module):\n"),
    ),
    "a class that goes through code nobody can read": (UNREAD, (FUNCTION, "rowkit.patch(Model)\n\n\n" + FUNCTION)),
    "an object that holds the model and goes through such code": (
        UNREAD,
        (MADE, MADE + "    args.model = model\n    rowkit.fuse(args)\n"),
    ),
    "a context manager that yields in a loop": (
        (
            FUNCTION,
            SHORTENED.replace("        yield model\n", "        for m in [model]:\n            yield m\n") + FUNCTION,
        ),
        (EXPORT, "    with shortened(model):\n" + INSIDE),
    ),
    "a mock by name": (
        (EXPORT, '    from unittest import mock\n    with mock.patch("export.Model.forward"):\n' + INSIDE),
    ),
    "the function that layers call is replaced": (
        (
            MADE,
            MADE
            + "    old = nn.functional.linear\n    nn.functional.linear = lambda x, w, b=None: old(x[:, -1:], w)\n",
        ),
    ),
    "a dimension of one length": (('Dim("tokens", min=1, max=64)', 'Dim("tokens", min=1, max=1)'),),
    "a layer that nobody can read, in one of two branches": (
        UNREAD,
        (CLASSES, 'import os\n\nFUSED = os.environ.get("FUSED")\n\n\n' + CLASSES),
        (NORM, "        if FUSED:\n            x = x + rowkit.layer(x)\n" + NORM),
    ),
    "a slot that nobody can read": (UNREAD, _write("at = rowkit.slot(start)", "key_cache[:, :, at : at + rows] = k")),
    "slots that nobody can read": (UNREAD, _write("key_cache[:, :, rowkit.slots(position_ids)] = k")),
    "slots of index_copy_ that nobody can read": (
        UNREAD,
        _write("key_cache.index_copy_(2, rowkit.slots(position_ids), k)"),
    ),
    "a cache that is written by code nobody can read": (UNREAD, _write("rowkit.update(key_cache, k, start)")),
    "positions that start again by a condition": (
        _write("at = torch.arange(start, end)", "key_cache[:, :, torch.where(at >= 64, at - 64, at)] = k"),
    ),
    "a cache that is shifted in place": (
        _write("key_cache[:, :, :-rows] = key_cache[:, :, rows:].clone()", "key_cache[:, :, -rows:] = k"),
    ),
    "a cache that sums up": (_write("key_cache += k.mean(2, keepdim=True)"),),
    "a cache that takes the last row only": (_write("key_cache[:, :, 0:1] = k[:, :, -1:]"),),
    "a state in a tensor that is no buffer": (
        (
            "        self.norm = nn.LayerNorm(HIDDEN)\n",
            "        self.norm = nn.LayerNorm(HIDDEN)\n        self.past = torch.zeros(1, 3, HIDDEN)\n",
        ),
        (NORM, "        y = torch.cat([self.past, x], 1)\n        self.past.copy_(y[:, -3:])\n" + NORM),
    ),
    "the last row, repeated": ((NORM, "        x = self.norm(x)[:, -1:].repeat(1, rows, 1)\n"),),
    "the last row, interleaved": ((NORM, "        x = self.norm(x)[:, -1:].repeat_interleave(rows, 1)\n"),),
    "the last row, padded": (
        (HEAD, "        logits = nn.functional.pad(self.head(x[:, -1:]), (0, 0, rows - 1, 0))\n"),
    ),
    "the last row, behind zeros": (
        (HEAD, "        logits = torch.cat([torch.zeros(1, rows - 1, VOCAB), self.head(x[:, -1:])], 1)\n"),
    ),
    "the last row, written into zeros": (
        (HEAD, "        logits = torch.zeros(1, rows, VOCAB)\n        logits[:, -1] = self.head(x[:, -1])\n"),
    ),
    "unread logits, written into zeros": (
        UNREAD,
        (HEAD, "        logits = torch.zeros(1, rows, VOCAB)\n        logits[:] = rowkit.head(x)\n"),
    ),
}

BUFFERS = '        self.register_buffer("keyCache"'
RETURN = "        return self.head(x + y.transpose(1, 2).reshape(batch, rows, HIDDEN))\n"
TAIL = "        h = torch.cat([self.tail, x], 1)\n        self.tail[:] = h[:, -3:]\n        x = x + h[:, 3:]\n"
CORE_ML_STATES: dict[str, str] = {
    "a buffer that is no declared state": 'self.register_buffer("tail", torch.zeros(1, 3, HIDDEN))',
    "a tensor that is no buffer": "self.tail = torch.zeros(1, 3, HIDDEN)",
}

HUGGING_FACE = """\
import torch
from torch import nn
from torch.export import Dim
from transformers import AutoModelForCausalLM
from coreai_torch import TorchConverter


class Last(nn.Module):
    def forward(self, x):
        return x[:, -1:]


class Wrap(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, input_ids, position_ids, key_cache, value_cache):
        x = self.model.model.embed_tokens(input_ids)
        end = position_ids.shape[1]
        start = end - x.shape[1]
        mask = torch.arange(end)[None] <= torch.arange(start, end)[:, None]
        for i, layer in enumerate(self.model.model.layers):
            h = layer.input_layernorm(x)
            key_cache[i, :, start:end] = layer.self_attn.k_proj(h)
            value_cache[i, :, start:end] = layer.self_attn.v_proj(h)
            q = layer.self_attn.q_proj(h)
            y = nn.functional.scaled_dot_product_attention(q, key_cache[i, :, :end], value_cache[i, :, :end], mask)
            x = x + layer.self_attn.o_proj(y)
        x = self.model.model.norm(x)
        return self.model.lm_head(x)


model = Wrap(AutoModelForCausalLM.from_pretrained("org/model"))
inputs = {
    "input_ids": torch.zeros((1, 4), dtype=torch.int32),
    "position_ids": torch.arange(8)[None],
    "key_cache": torch.zeros(2, 1, 64, 32),
    "value_cache": torch.zeros(2, 1, 64, 32),
}
dynamic = {"input_ids": {1: Dim("s", min=1, max=64)}, "position_ids": {1: Dim("e", min=1, max=64)}}
program = torch.export.export(model, (), inputs, dynamic_shapes=dynamic)
converter = TorchConverter()
converter.add_exported_program(
    program,
    input_names=["input_ids", "position_ids"],
    output_names=["logits"],
    state_names=["keyCache", "valueCache"],
)
converter.to_coreai().save_asset("out/m.aimodel")
"""
PROGRAM = "program = torch.export"
LM_HEAD = "        return self.model.lm_head(x)\n"
HUGGING_FACE_EDITS: dict[str, tuple[Edit, ...]] = {
    "the norm of each layer is replaced": (
        (PROGRAM, "for layer in model.model.model.layers:\n    layer.input_layernorm = Last()\n" + PROGRAM),
    ),
    "each layer goes through code that nobody can read": (
        UNREAD,
        (PROGRAM, "for layer in model.model.model.layers:\n    rowkit.patch(layer)\n" + PROGRAM),
    ),
    "all layers go through code that nobody can read": (
        UNREAD,
        (PROGRAM, "rowkit.patch(model.model.model.layers)\n" + PROGRAM),
    ),
    "a part that is not known": (
        ("            h = layer.input_layernorm(x)\n", "            h = layer.conv(layer.input_layernorm(x))\n"),
    ),
    "no head": ((PROGRAM, "model.model.lm_head = nn.Identity()\n" + PROGRAM),),
    "hidden states under the name of logits": ((LM_HEAD, "        return x\n"),),
    "the states of the model without its head": (
        (LM_HEAD, "        return self.model.model(inputs_embeds=x).last_hidden_state\n"),
    ),
    "a layer is appended": (
        (
            PROGRAM,
            "model.model.model.layers = model.model.model.layers[:-1]\nmodel.model.model.layers.append(Last())\n"
            + PROGRAM,
        ),
    ),
    "rows to keep, by a partial": (
        (
            PROGRAM,
            "import functools\nmodel.model.forward = functools.partial(model.model.forward, logits_to_keep=1)\n"
            + PROGRAM,
        ),
        (LM_HEAD, "        return self.model(inputs_embeds=x).logits\n"),
    ),
    "rows to keep, in keywords": (
        (LM_HEAD, "        return self.model(inputs_embeds=x, **{'logits_to_keep': 1}).logits\n"),
    ),
    "the forward of the class is replaced": (
        (PROGRAM, "type(model.model).forward = Last.forward\n" + PROGRAM),
        (LM_HEAD, "        return self.model(inputs_embeds=x).logits\n"),
    ),
    "a cache that is written, goes in and comes out": (
        ('    state_names=["keyCache", "valueCache"],\n', ""),
        (LM_HEAD, LM_HEAD.rstrip() + ", key_cache, value_cache\n"),
        (
            'input_names=["input_ids", "position_ids"]',
            'input_names=["input_ids", "position_ids", "key_cache", "value_cache"]',
        ),
        ('output_names=["logits"]', 'output_names=["logits", "key_cache_out", "value_cache_out"]'),
    ),
    "arguments that are not known": (
        UNREAD,
        (LM_HEAD, "        return self.model(inputs_embeds=x, **rowkit.options()).logits\n"),
    ),
}


@pytest.mark.parametrize("name", sorted(OUT))
def test_what_is_hidden_is_found(tmp_path: Path, name: str) -> None:
    assert judged(tmp_path, mutate(EXPORTER, *OUT[name])).verdict is Verdict.OUT


@pytest.mark.parametrize("name", sorted(NOT_ELIGIBLE))
def test_what_cannot_be_followed_is_not_eligible(tmp_path: Path, name: str) -> None:
    assert judged(tmp_path, mutate(EXPORTER, *NOT_ELIGIBLE[name])).verdict is not Verdict.ELIGIBLE


@pytest.mark.parametrize("name", sorted(CORE_ML_STATES))
def test_a_state_that_core_ml_is_not_told_of(tmp_path: Path, name: str) -> None:
    script = mutate(CORE_ML, (RETURN, TAIL + RETURN))
    script = mutate(script, (BUFFERS, f"        {CORE_ML_STATES[name]}\n{BUFFERS}"))
    assert judged(tmp_path, script).verdict is not Verdict.ELIGIBLE


@pytest.mark.parametrize("name", sorted(HUGGING_FACE_EDITS))
def test_an_edit_of_a_hugging_face_model_counts(tmp_path: Path, name: str) -> None:
    assert judged(tmp_path, mutate(HUGGING_FACE, *HUGGING_FACE_EDITS[name])).verdict is not Verdict.ELIGIBLE


HARMLESS: dict[str, tuple[Edit, ...]] = {
    "a patch that is undone before the export": (
        (FUNCTION, SHORTENED + FUNCTION),
        (EXPORT, "    with shortened(model):\n        model(**inputs)\n" + EXPORT),
    ),
    "a decorator that registers": (UNREAD, (FORWARD, '    @rowkit.register("x")\n' + FORWARD)),
    "a decorator of the class that registers": (
        UNREAD,
        ("class Model(nn.Module):\n", '@rowkit.register_model("x")\nclass Model(nn.Module):\n'),
    ),
    "a decorator of PyTorch": ((FORWARD, "    @torch.inference_mode()\n" + FORWARD),),
    "a command-line function with a decorator nobody can read": (UNREAD, (FUNCTION, "@rowkit.timed\n" + FUNCTION)),
    "rows written at positions of an input": (_write("key_cache.index_copy_(2, position_ids[0, start:], k)"),),
    "rows written into zeros": (
        (HEAD, "        logits = torch.zeros(1, rows, VOCAB)\n        logits[:] = self.head(x)\n"),
    ),
    "a tensor that is no buffer and is only read": (
        (
            "        self.norm = nn.LayerNorm(HIDDEN)\n",
            "        self.norm = nn.LayerNorm(HIDDEN)\n        self.scale = torch.ones(HIDDEN)\n",
        ),
        (NORM, "        x = self.norm(x) * self.scale\n"),
    ),
}


@pytest.mark.parametrize("name", sorted(HARMLESS))
def test_what_is_harmless_stays_eligible(tmp_path: Path, name: str) -> None:
    assert judged(tmp_path, mutate(EXPORTER, *HARMLESS[name])).verdict is Verdict.ELIGIBLE


def test_the_hugging_face_ground_is_eligible(tmp_path: Path) -> None:
    assert judged(tmp_path, HUGGING_FACE).verdict is Verdict.ELIGIBLE
