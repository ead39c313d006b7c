# ruff: noqa: E501  (a line of a script is not folded)
"""What exporters to Core ML write, one idiom a script: each with what a careful reader would say of it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from rules.facts import FileStatus, InvocationKind
from rules.verdict import judge
from tests.auditor.support import default_graphs, scan_text

IMPORTS = """\
import argparse
import os
import coremltools as ct
import numpy as np
import torch
from torch import nn

VOCAB, HIDDEN, HEADS, LAYERS, CONTEXT, HEAD = 128, 32, 4, 2, 512, 8
"""

ATTENTION = """

class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(HIDDEN, 3 * HIDDEN)
        self.out = nn.Linear(HIDDEN, HIDDEN)

    def forward(self, x, mask, keys, values):
        batch, rows, _ = x.shape
        q, k, v = self.qkv(x).view(batch, rows, 3, HEADS, HEAD).permute(2, 0, 3, 1, 4)
        end = mask.shape[-1]
        start = end - rows
        keys[:, :, start:end, :] = k
        values[:, :, start:end, :] = v
        y = nn.functional.scaled_dot_product_attention(q, keys[:, :, :end], values[:, :, :end], mask)
        return x + self.out(y.transpose(1, 2).reshape(batch, rows, HIDDEN))
"""

BUFFERS = """\
        self.register_buffer("keyCache", torch.zeros(LAYERS, 1, HEADS, CONTEXT, HEAD))
        self.register_buffer("valueCache", torch.zeros(LAYERS, 1, HEADS, CONTEXT, HEAD))
"""

PAIR = """

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, HIDDEN)
        self.layers = nn.ModuleList([Attention() for _ in range(LAYERS)])
        self.norm = nn.LayerNorm(HIDDEN)
        self.head = nn.Linear(HIDDEN, VOCAB)
        self.register_buffer("keyCache", torch.zeros(LAYERS, 1, HEADS, CONTEXT, HEAD))
        self.register_buffer("valueCache", torch.zeros(LAYERS, 1, HEADS, CONTEXT, HEAD))

    def forward(self, input_ids, causal_mask):
        x = self.embed(input_ids)
        for i, layer in enumerate(self.layers):
            x = layer(x, causal_mask, self.keyCache[i], self.valueCache[i])
        return self.head(self.norm(x))
"""

TRACE = """

model = Model().eval()
traced = torch.jit.trace(model, (torch.zeros(1, 4, dtype=torch.int32), torch.zeros(1, 1, 4, 8)))
"""

RANGED = """\
rows, seen = ct.RangeDim(1, 64), ct.RangeDim(1, CONTEXT)
inputs = [
    ct.TensorType(name="input_ids", shape=(1, rows), dtype=np.int32),
    ct.TensorType(name="causal_mask", shape=(1, 1, rows, seen), dtype=np.float16),
]
"""

STATES = """\
states = [
    ct.StateType(wrapped_type=ct.TensorType(shape=model.keyCache.shape, dtype=np.float16), name="keyCache"),
    ct.StateType(wrapped_type=ct.TensorType(shape=model.valueCache.shape, dtype=np.float16), name="valueCache"),
]
"""

CONVERT = """\
mlmodel = ct.convert(
    traced, inputs=inputs, outputs=[ct.TensorType(name="logits", dtype=np.float16)], states=states,
    minimum_deployment_target=ct.target.iOS18,
)
mlmodel.save("out/model.mlpackage")
"""

PLAIN = PAIR.replace(BUFFERS, "")
"""The model without buffers."""

NO_BATCH = ("inputs_embeds.squeeze(2).transpose(1, 2)", "inputs_embeds[None]")

CHANNELS_FIRST = PAIR.replace(
    "def forward(self, input_ids, causal_mask)", "def forward(self, inputs_embeds, causal_mask)"
).replace("        x = self.embed(input_ids)\n", "        x = inputs_embeds.squeeze(2).transpose(1, 2)\n")

ELIGIBLE = "eligible"
STATIC, IO, HYBRID = "out by static-query", "out by kv-as-io", "out by hybrid-state"
LAST, NO_LOGITS, NOT = "out by last-token-only", "out by no-logits", "out by not-a-decoder"
RING, BAKED, WINDOW = "out by ring-cache", "out by baked-length", "unresolved by fixed-window"


@dataclass(frozen=True, slots=True)
class Idiom:
    """A script by its parts, what is said of its graphs in order, and further files."""

    says: tuple[str, ...] = (ELIGIBLE,)
    model: str = PAIR
    trace: str = TRACE
    inputs: str = RANGED
    states: str = STATES
    convert: str = CONVERT
    files: dict[str, str] = field(default_factory=dict)
    top: str = ""

    @property
    def text(self) -> str:
        return IMPORTS + self.top + ATTENTION + self.model + self.trace + self.inputs + self.states + self.convert


def embeddings(shape: str, example: str, *edits: tuple[str, str], says: str = ELIGIBLE) -> Idiom:
    """Embeddings of such a shape as the query, traced with such an example; channels first, but for what is edited."""
    return Idiom(
        says=(says,),
        model=changed(CHANNELS_FIRST, *edits),
        trace=changed(TRACE, ("torch.zeros(1, 4, dtype=torch.int32)", f"torch.zeros({example})")),
        inputs=changed(
            RANGED, ('name="input_ids", shape=(1, rows), dtype=np.int32', f'name="inputs_embeds", shape=({shape})')
        ),
    )


def changed(text: str, *edits: tuple[str, str]) -> str:
    for old, new in edits:
        assert old in text, old
        text = text.replace(old, new)
    return text


FACTORY = """\
import coremltools as ct
import numpy as np


def kv_states(shape, names=("keyCache", "valueCache")):
    out = []
    for name in names:
        out.append(ct.StateType(wrapped_type=ct.TensorType(shape=shape, dtype=np.float16), name=name))
    return out
"""

UNIFIED = changed(
    PAIR,
    (BUFFERS, '        self.register_buffer("kv_cache", torch.zeros(2 * LAYERS, 1, HEADS, CONTEXT, HEAD))\n'),
    ("self.keyCache[i], self.valueCache[i]", "self.kv_cache[i], self.kv_cache[LAYERS + i]"),
)

PER_LAYER = changed(
    PAIR,
    (
        BUFFERS,
        "        for i in range(LAYERS):\n"
        '            self.register_buffer(f"k_cache_{i}", torch.zeros(1, HEADS, CONTEXT, HEAD))\n'
        '            self.register_buffer(f"v_cache_{i}", torch.zeros(1, HEADS, CONTEXT, HEAD))\n',
    ),
    ("self.keyCache[i], self.valueCache[i]", 'getattr(self, f"k_cache_{i}"), getattr(self, f"v_cache_{i}")'),
)

PER_LAYER_STATES = """\
states = []
for i in range(LAYERS):
    for letter in ("k", "v"):
        name = f"{letter}_cache_{i}"
        shape = getattr(model, name).shape
        states.append(ct.StateType(wrapped_type=ct.TensorType(shape=shape, dtype=np.float16), name=name))
"""

TWO_SIZES = changed(
    PAIR,
    (
        BUFFERS,
        '        self.register_buffer("kv_full", torch.zeros(2, 1, HEADS, CONTEXT, HEAD))\n'
        '        self.register_buffer("kv_local", torch.zeros(2, 1, HEADS, 256, HEAD))\n',
    ),
    (
        "            x = layer(x, causal_mask, self.keyCache[i], self.valueCache[i])\n",
        "            cache = self.kv_full if i == 0 else self.kv_local\n"
        "            x = layer(x, causal_mask, cache[0], cache[1])\n",
    ),
)

IO_MODEL = changed(
    PLAIN,
    ("def forward(self, input_ids, causal_mask)", "def forward(self, input_ids, causal_mask, *past)"),
    (
        "            x = layer(x, causal_mask, self.keyCache[i], self.valueCache[i])\n",
        "            x, k, v = layer(x, causal_mask, past[2 * i], past[2 * i + 1])\n            new += [k, v]\n",
    ),
    ("        x = self.embed(input_ids)\n", "        x = self.embed(input_ids)\n        new = []\n"),
    ("        return self.head(self.norm(x))\n", "        return (self.head(self.norm(x)), *new)\n"),
)

IO_ATTENTION = changed(
    ATTENTION,
    ("        keys[:, :, start:end, :] = k\n", "        keys = torch.cat([keys, k], 2)\n"),
    ("        values[:, :, start:end, :] = v\n", "        values = torch.cat([values, v], 2)\n"),
    ("keys[:, :, :end], values[:, :, :end]", "keys, values"),
    (
        "return x + self.out(y.transpose(1, 2).reshape(batch, rows, HIDDEN))",
        "return x + self.out(y.transpose(1, 2).reshape(batch, rows, HIDDEN)), keys, values",
    ),
)

PAST = "past = [torch.zeros(1, HEADS, 4, HEAD) for _ in range(2 * LAYERS)]\n"
IO_TRACE = TRACE.replace("torch.zeros(1, 1, 4, 8)))", "torch.zeros(1, 1, 4, 8), *past))").replace(
    "traced =", PAST + "traced ="
)
IO_NAMED = (
    RANGED
    + """\
length = ct.RangeDim(1, CONTEXT)
for i in range(LAYERS):
    for letter in "kv":
        inputs.append(ct.TensorType(name=f"past_{letter}_{i}", shape=(1, HEADS, length, HEAD), dtype=np.float16))
"""
)
IO_CONVERT = """\
outputs = [ct.TensorType(name="logits")] + [ct.TensorType(name=f"new_{a}_{i}") for i in range(LAYERS) for a in "kv"]
mlmodel = ct.convert(traced, inputs=inputs, outputs=outputs)
mlmodel.save("out/model.mlpackage")
"""


def forward(*edits: tuple[str, str]) -> str:
    return changed(PAIR, *edits)


HEAD_LINE = "        return self.head(self.norm(x))\n"

HIDDEN_CONV = forward(
    ("def forward(self, input_ids, causal_mask)", "def forward(self, input_ids, causal_mask, conv)"),
    (
        HEAD_LINE,
        "        conv = torch.cat([conv[:, :, 1:], x[:, -1:].transpose(1, 2)], 2)\n"
        + HEAD_LINE.rstrip("\n")
        + ", conv\n",
    ),
)

CHUNK = """

class Body(nn.Module):
    def __init__(self, model, first, last):
        super().__init__()
        self.model, self.first, self.last = model, first, last
        self.register_buffer("keyCache", torch.zeros(LAYERS, 1, HEADS, CONTEXT, HEAD))
        self.register_buffer("valueCache", torch.zeros(LAYERS, 1, HEADS, CONTEXT, HEAD))

    def forward(self, hidden_states, causal_mask):
        x = hidden_states
        for i in range(self.first, self.last):
            x = self.model.layers[i](x, causal_mask, self.keyCache[i], self.valueCache[i])
        return x


class Head(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.norm, self.head = model.norm, model.head

    def forward(self, hidden_states):
        return self.head(self.norm(hidden_states))
"""

IDIOMS: dict[str, Idiom] = {
    "literal": Idiom(),
    "a dict of keywords, filled under conditions": Idiom(
        convert="kwargs = dict(inputs=inputs, minimum_deployment_target=ct.target.iOS18)\n"
        "if len(states) > 0:\n    kwargs['states'] = states\n"
        "if os.environ.get('FP16'):\n    kwargs['compute_precision'] = ct.precision.FLOAT16\n"
        "kwargs.update(outputs=[ct.TensorType(name='logits')])\n"
        "ct.convert(traced, **kwargs).save('m.mlpackage')\n"
    ),
    "states that the environment gives": Idiom(
        says=("unresolved by unknown-kind",),
        convert="kwargs = dict(inputs=inputs, outputs=[ct.TensorType(name='logits')])\n"
        "if os.environ.get('STATEFUL'):\n    kwargs['states'] = states\n"
        "ct.convert(traced, **kwargs).save('m.mlpackage')\n",
    ),
    "a helper that takes names": Idiom(
        top="\n\ndef to_coreml(traced, names, shapes, states, outputs):\n"
        "    types = [ct.TensorType(name=n, shape=s, dtype=np.float16) for n, s in zip(names, shapes)]\n"
        "    outs = [ct.TensorType(name=o) for o in outputs]\n"
        "    return ct.convert(traced, inputs=types, outputs=outs, states=states)\n",
        inputs="rows = ct.RangeDim(1, 64)\n"
        "names = ['input_ids', 'causal_mask']\nshapes = [(1, rows), (1, 1, rows, ct.RangeDim(1, CONTEXT))]\n",
        convert="to_coreml(traced, names, shapes, states, ['logits']).save('m.mlpackage')\n",
    ),
    "states from a factory in another module": Idiom(
        top="from factory import kv_states\n",
        files={"factory.py": FACTORY},
        states="states = kv_states(model.keyCache.shape)\n",
    ),
    "states from a method": Idiom(
        model=PAIR
        + "\n    def coreml_states(self):\n"
        + "        return [\n            ct.StateType(wrapped_type=ct.TensorType(shape=b.shape), name=n)\n"
        + "            for n, b in (('keyCache', self.keyCache), ('valueCache', self.valueCache))\n        ]\n",
        states="states = model.coreml_states()\n",
    ),
    "states from a wrapper's attribute": Idiom(
        model=changed(
            PAIR,
            (
                "    def forward(",
                "        self.states = []\n        for n in ('keyCache', 'valueCache'):\n"
                "            shape = getattr(self, n).shape\n"
                "            self.states += [ct.StateType(wrapped_type=ct.TensorType(shape=shape), name=n)]\n\n"
                "    def forward(",
            ),
        ),
        states="states = model.states\n",
    ),
    "states from the module's buffers": Idiom(
        states="states = [\n    ct.StateType(wrapped_type=ct.TensorType(shape=b.shape, dtype=np.float16), name=n)\n"
        "    for n, b in model.named_buffers()\n]\n",
        says=("eligible",),
    ),
    "one unified state": Idiom(
        model=UNIFIED,
        states="states = [ct.StateType(ct.TensorType(shape=model.kv_cache.shape, dtype=np.float16), 'kv_cache')]\n",
    ),
    "per-layer pairs": Idiom(model=PER_LAYER, states=PER_LAYER_STATES),
    "two caches of different length": Idiom(
        model=TWO_SIZES,
        states="states = [ct.StateType(ct.TensorType(shape=getattr(model, n).shape), name=n) for n in ('kv_full', 'kv_local')]\n",
    ),
    "a number of tokens beside them": Idiom(
        model=changed(
            PAIR,
            ("def forward(self, input_ids, causal_mask)", "def forward(self, ids_in, causal_mask, max_new_tokens)"),
            ("self.embed(input_ids)", "self.embed(ids_in)"),
        ),
        trace=TRACE.replace("1, 4, 8)))", "1, 4, 8), torch.tensor([128])))"),
        inputs=RANGED.replace("input_ids", "inputIds")
        + "inputs.append(ct.TensorType(name='maxNewTokens', shape=(1,), dtype=np.int32))\n",
    ),
    "a counter beside the cache": Idiom(
        model=forward(
            (
                '        self.register_buffer("keyCache"',
                '        self.register_buffer("cacheOffset", torch.zeros(1))\n        self.register_buffer("keyCache"',
            ),
            (HEAD_LINE, "        self.cacheOffset.add_(input_ids.shape[1])\n" + HEAD_LINE),
        ),
        states=STATES
        + "states.append(ct.StateType(ct.TensorType(shape=(1,), dtype=np.float16), name='cacheOffset'))\n",
    ),
    "a ring of positions": Idiom(
        says=(RING,),
        model=PAIR,
        top="",
        convert=CONVERT,
        files={"ring": ""},
    ),
    "inputs and outputs, by names of layers": Idiom(
        says=(IO,), model=IO_MODEL, trace=IO_TRACE, inputs=IO_NAMED, states="", convert=IO_CONVERT
    ),
    "inputs and outputs, unnamed": Idiom(
        says=(IO,),
        model=changed(
            IO_MODEL,
            ("*past)", "k_cache_0, v_cache_0, k_cache_1, v_cache_1)"),
            ("past[2 * i], past[2 * i + 1]", "(k_cache_0, k_cache_1)[i], (v_cache_0, v_cache_1)[i]"),
        ),
        trace=IO_TRACE,
        inputs="inputs = [ct.TensorType(shape=(1, ct.RangeDim(1, 64)), dtype=np.int32), ct.TensorType(shape=(1, 1, 4, 8))]\n"
        "inputs += [ct.TensorType(shape=p.shape) for p in past]\n",
        states="",
        convert="ct.convert(traced, inputs=inputs).save('m.mlpackage')\n",
    ),
    "a convolution's state through inputs and outputs": Idiom(
        says=(HYBRID,),
        model=HIDDEN_CONV,
        trace=TRACE.replace("torch.zeros(1, 1, 4, 8)))", "torch.zeros(1, 1, 4, 8), torch.zeros(1, HIDDEN, 4)))"),
        inputs=RANGED + "inputs.append(ct.TensorType(name='conv_in', shape=(1, HIDDEN, 4), dtype=np.float16))\n",
        convert=CONVERT.replace(
            '[ct.TensorType(name="logits", dtype=np.float16)]',
            "[ct.TensorType(name=n) for n in ('logits', 'conv_out')]",
        ),
    ),
    "a range on the mask only": Idiom(
        says=(STATIC,),
        trace=TRACE.replace("(1, 4,", "(1, 1,").replace("1, 1, 4, 8", "1, 1, 1, 8"),
        inputs=changed(RANGED, ("rows, seen = ct.RangeDim(1, 64),", "rows, seen = 1,")),
    ),
    "a range on the batch only": Idiom(
        says=(STATIC,),
        trace=TRACE.replace("(1, 4,", "(1, 1,").replace("1, 1, 4, 8", "1, 1, 1, 8"),
        inputs=changed(
            RANGED, ("shape=(1, rows)", "shape=(ct.RangeDim(1, 8), 1)"), ("(1, 1, rows, seen)", "(1, 1, 1, seen)")
        ),
    ),
    "a shape that is changed in place": Idiom(
        says=(STATIC,),
        inputs="rows, seen = ct.RangeDim(1, 64), ct.RangeDim(1, CONTEXT)\nids, mask = [1, rows], [1, 1, rows, seen]\n"
        "ids[1] = 1\nmask[2] = 1\n"
        "inputs = [ct.TensorType(name='input_ids', shape=ids), ct.TensorType(name='causal_mask', shape=tuple(mask))]\n",
    ),
    "the shape of the sample": Idiom(
        says=(STATIC,),
        trace="\n\nmodel = Model().eval()\nsample = torch.zeros(1, 1, dtype=torch.int32)\nmask = torch.zeros(1, 1, 1, CONTEXT)\n"
        "traced = torch.jit.trace(model, (sample, mask))\n",
        inputs="inputs = [ct.TensorType(name='input_ids', shape=sample.shape, dtype=np.int32),"
        " ct.TensorType(name='causal_mask', shape=mask.shape)]\n",
    ),
    "a list of shapes": Idiom(
        says=(WINDOW,),
        inputs="widths = [1, 4, 8]\n"
        "inputs = [ct.TensorType(name='input_ids', shape=ct.EnumeratedShapes(shapes=[(1, w) for w in widths]), dtype=np.int32),"
        " ct.TensorType(name='causal_mask', shape=ct.EnumeratedShapes(shapes=[(1, 1, w, CONTEXT) for w in widths]))]\n",
    ),
    "a shape of ct": Idiom(
        inputs="inputs = [ct.TensorType(name='input_ids', shape=ct.Shape(shape=(1, ct.RangeDim(1, 64))), dtype=np.int32),"
        " ct.TensorType(name='causal_mask', shape=ct.Shape((1, 1, ct.RangeDim(1, 64), ct.RangeDim(1, CONTEXT))))]\n"
    ),
    "several functions": Idiom(
        says=(STATIC, WINDOW),
        trace="\n\nmodel = Model().eval()\n",
        inputs="",
        convert="desc = ct.utils.MultiFunctionDescriptor()\n"
        "for name, width in (('decode', 1), ('prefill', 64)):\n"
        "    traced = torch.jit.trace(model, (torch.zeros(1, width, dtype=torch.int32), torch.zeros(1, 1, width, CONTEXT)))\n"
        "    inputs = [ct.TensorType(name='input_ids', shape=(1, width), dtype=np.int32), ct.TensorType(name='causal_mask', shape=(1, 1, width, CONTEXT))]\n"
        "    ct.convert(traced, inputs=inputs, outputs=[ct.TensorType(name='logits')], states=states).save(f'{name}.mlpackage')\n"
        "    desc.add_function(f'{name}.mlpackage', src_function_name='main', target_function_name=name)\n"
        "desc.default_function_name = 'decode'\n"
        "ct.utils.save_multifunction(desc, 'm.mlpackage')\n",
    ),
    "chunks, and a head of its own": Idiom(
        says=(NO_LOGITS, NO_LOGITS, NOT),
        model=PLAIN + CHUNK,
        trace="\n\nmodel = Model().eval()\nrows, seen = ct.RangeDim(1, 64), ct.RangeDim(1, CONTEXT)\nhidden = torch.zeros(1, 4, HIDDEN)\n",
        inputs="hidden_type = ct.TensorType(name='hidden_states', shape=(1, rows, HIDDEN), dtype=np.float16)\n"
        "types = [hidden_type, ct.TensorType(name='causal_mask', shape=(1, 1, rows, seen), dtype=np.float16)]\n",
        states="for n in range(2):\n    body = Body(model, n, n + 1).eval()\n"
        "    states = [ct.StateType(ct.TensorType(shape=body.keyCache.shape), name=s) for s in ('keyCache', 'valueCache')]\n"
        "    traced = torch.jit.trace(body, (hidden, torch.zeros(1, 1, 4, 8)))\n"
        "    ct.convert(traced, inputs=types, outputs=[ct.TensorType(name='hidden_out')], states=states).save(f'chunk_{n}.mlpackage')\n",
        convert="head = torch.jit.trace(Head(model).eval(), (hidden,))\n"
        "ct.convert(head, inputs=[hidden_type], outputs=[ct.TensorType(name='logits')]).save('head.mlpackage')\n",
    ),
    "the vocabulary over several outputs": Idiom(
        model=forward(
            (
                HEAD_LINE,
                "        logits = self.head(self.norm(x))\n        return tuple(logits.split(VOCAB // 4, dim=-1))\n",
            )
        ),
        convert=CONVERT.replace(
            '[ct.TensorType(name="logits", dtype=np.float16)]',
            "[ct.TensorType(name=f'logits{i + 1}') for i in range(4)]",
        ),
    ),
    "an argmax in the graph": Idiom(
        says=(NO_LOGITS,), model=forward((HEAD_LINE, HEAD_LINE.replace("\n", ".argmax(dim=-1)\n")))
    ),
    "a top-k in the graph": Idiom(
        says=(NO_LOGITS,),
        model=forward(
            (
                HEAD_LINE,
                "        values, indices = torch.topk(self.head(self.norm(x)), 8, dim=-1)\n        return values, indices\n",
            )
        ),
    ),
    "a head that a flag adds": Idiom(
        says=(NO_LOGITS,),
        model=changed(
            PAIR,
            (
                "    def __init__(self):\n        super().__init__()\n        self.embed",
                "    def __init__(self, with_head=False):\n        super().__init__()\n        self.with_head = with_head\n        self.embed",
            ),
            (
                HEAD_LINE,
                "        x = self.norm(x)\n        if self.with_head:\n            x = self.head(x)\n        return x\n",
            ),
        ),
        trace="\n\nparser = argparse.ArgumentParser()\nparser.add_argument('--with-head', action='store_true')\n"
        + TRACE.strip("\n").replace("Model()", "Model(with_head=parser.parse_args().with_head)")
        + "\n",
        convert=CONVERT.replace('name="logits"', 'name="output"'),
    ),
    "logits_to_keep": Idiom(
        says=(LAST,),
        model=changed(
            PAIR,
            (
                "def forward(self, input_ids, causal_mask)",
                "def forward(self, input_ids, causal_mask, logits_to_keep=1)",
            ),
            (HEAD_LINE, "        x = x[:, -logits_to_keep:] if logits_to_keep else x\n" + HEAD_LINE),
        ),
    ),
    "logits_to_keep 0": Idiom(
        model=changed(
            PAIR,
            (
                "def forward(self, input_ids, causal_mask)",
                "def forward(self, input_ids, causal_mask, logits_to_keep=0)",
            ),
            (
                HEAD_LINE,
                "        rows = slice(-logits_to_keep, None) if isinstance(logits_to_keep, int) else logits_to_keep\n        x = x[:, rows]\n"
                + HEAD_LINE,
            ),
        ),
    ),
    "channels first": Idiom(
        model=changed(
            PAIR,
            ("        self.head = nn.Linear(HIDDEN, VOCAB)\n", "        self.head = nn.Conv2d(HIDDEN, VOCAB, 1)\n"),
            (
                HEAD_LINE,
                "        x = self.norm(x).transpose(1, 2).unsqueeze(2)\n        return self.head(x).squeeze(2).transpose(1, 2)\n",
            ),
        )
    ),
    "channels first, and the logits too": Idiom(
        model=changed(
            PAIR,
            ("        self.head = nn.Linear(HIDDEN, VOCAB)\n", "        self.head = nn.Conv2d(HIDDEN, VOCAB, 1)\n"),
            (HEAD_LINE, "        x = self.norm(x).transpose(1, 2).unsqueeze(2)\n        return self.head(x)\n"),
        )
    ),
    "embeddings with channels first": embeddings("1, HIDDEN, 1, rows", "1, HIDDEN, 1, 4"),
    "embeddings with channels first, and a width of one": embeddings(
        "1, HIDDEN, rows, 1", "1, HIDDEN, 4, 1", ("squeeze(2)", "squeeze(3)")
    ),
    "embeddings without a batch, of one position": embeddings("1, HIDDEN", "4, HIDDEN", NO_BATCH, says=STATIC),
    "embeddings without a batch": embeddings("rows, HIDDEN", "4, HIDDEN", NO_BATCH),
    "embeddings with channels first, of one position": embeddings("1, HIDDEN, 1, 1", "1, HIDDEN, 1, 4", says=STATIC),
    "embeddings with channels first, of eight": embeddings("1, HIDDEN, 1, 8", "1, HIDDEN, 1, 4", says=WINDOW),
    "channels first, the last position": embeddings(
        "1, HIDDEN, 1, rows", "1, HIDDEN, 1, 4", ("self.norm(x)", "self.norm(x)[:, -1:]"), says=LAST
    ),
    "a package given to the converter": Idiom(
        convert=CONVERT.replace("    minimum", "    package_dir='out/given.mlpackage', minimum").replace(
            'mlmodel.save("out/model.mlpackage")\n', ""
        ),
    ),
    "an edit of the protobuf": Idiom(
        says=("unresolved by unknown-query",),
        inputs=changed(RANGED, ("rows, seen = ct.RangeDim(1, 64),", "rows, seen = 1,")),
        convert=CONVERT.replace(
            'mlmodel.save("out/model.mlpackage")\n',
            "spec = mlmodel.get_spec()\n"
            "spec.description.input[0].type.multiArrayType.shapeRange.sizeRanges[1].upperBound = 64\n"
            "ct.models.MLModel(spec, weights_dir=mlmodel.weights_dir).save('m.mlpackage')\n",
        ),
    ),
    "an edit of the protobuf in a loop": Idiom(
        says=("unresolved by unknown-query",),
        inputs=changed(RANGED, ("rows, seen = ct.RangeDim(1, 64),", "rows, seen = 1,")),
        convert=CONVERT.replace(
            'mlmodel.save("out/model.mlpackage")\n',
            "spec = mlmodel.get_spec()\n"
            "for one in spec.description.input:\n"
            "    if one.name == 'input_ids':\n"
            "        one.type.multiArrayType.shapeRange.sizeRanges[1].upperBound = 64\n"
            "ct.models.MLModel(spec, weights_dir=mlmodel.weights_dir).save('m.mlpackage')\n",
        ),
    ),
    "labels of the protobuf in a loop": Idiom(
        convert=CONVERT.replace(
            'mlmodel.save("out/model.mlpackage")\n',
            "spec = mlmodel.get_spec()\n"
            "for one in spec.description.input:\n"
            "    one.shortDescription = f'the {one.name}'\n"
            "ct.models.MLModel(spec, weights_dir=mlmodel.weights_dir).save('m.mlpackage')\n",
        ),
    ),
    "variants in a loop": Idiom(
        says=(STATIC, ELIGIBLE),
        inputs="",
        convert="for name, rows in {'static': 1, 'dynamic': ct.RangeDim(1, 64)}.items():\n"
        "    inputs = [ct.TensorType(name='input_ids', shape=(1, rows), dtype=np.int32),"
        " ct.TensorType(name='causal_mask', shape=(1, 1, rows, ct.RangeDim(1, CONTEXT)))]\n"
        "    ct.convert(traced, inputs=inputs, outputs=[ct.TensorType(name='logits')], states=states).save(f'{name}.mlpackage')\n",
    ),
    "no names at all": Idiom(
        convert="ct.convert(traced, inputs=inputs, states=states).save('m.mlpackage')\n",
    ),
    "embeddings as the query": Idiom(
        model=changed(
            PAIR,
            ("def forward(self, input_ids, causal_mask)", "def forward(self, inputs_embeds, causal_mask)"),
            ("        x = self.embed(input_ids)\n", "        x = inputs_embeds\n"),
        ),
        trace=TRACE.replace("torch.zeros(1, 4, dtype=torch.int32)", "torch.zeros(1, 4, HIDDEN)"),
        inputs=changed(
            RANGED,
            (
                'name="input_ids", shape=(1, rows), dtype=np.int32',
                'name="inputs_embeds", shape=(1, rows, HIDDEN), dtype=np.float16',
            ),
        ),
    ),
}


def said(root: Path, idiom: Idiom, text: str) -> tuple[list[str], list[list[str]]]:
    result = scan_text(root, {"export.py": text, **idiom.files})
    judgements = [judge(g.facts) for g in default_graphs(result)]
    return [j.says() for j in judgements], [[f.message for f in j.reasons] for j in judgements]


@pytest.mark.parametrize("name", sorted(IDIOMS))
def test_idioms(tmp_path: Path, name: str) -> None:
    idiom = IDIOMS[name]
    text = idiom.text
    if idiom.says == (IO,):
        text = text.replace(ATTENTION, IO_ATTENTION)
    if idiom.says == (RING,):
        text = text.replace("start = end - rows", "start = (end - rows) % CONTEXT")
    says, reasons = said(tmp_path, idiom, text)
    assert tuple(says) == idiom.says, reasons


def test_the_package_that_the_converter_is_given(tmp_path: Path) -> None:
    (graph,) = default_graphs(scan_text(tmp_path, {"export.py": IDIOMS["a package given to the converter"].text}))
    assert graph.bundle == "out/given.mlpackage"


def functions(root: Path, convert: str, before: str = "") -> list[tuple[str, str]]:
    idiom = IDIOMS["several functions"]
    result = scan_text(root, {"export.py": replace(idiom, convert=convert, trace=idiom.trace + before).text})
    return sorted((g.bundle, g.graph) for g in default_graphs(result))


def test_the_functions_of_a_bundle(tmp_path: Path) -> None:
    convert = IDIOMS["several functions"].convert
    assert functions(tmp_path / "a", convert) == [("m.mlpackage", "decode"), ("m.mlpackage", "prefill")]
    one = convert.replace("    desc.add_function(", "    if name == 'decode': desc.add_function(")
    assert functions(tmp_path / "b", one) == [("m.mlpackage", "decode"), ("prefill.mlpackage", "main")]
    other = convert.replace("desc.add_function(f'{name}.mlpackage'", "desc.add_function(f'old/{name}.mlpackage'")
    assert functions(tmp_path / "c", other) == [("decode.mlpackage", "main"), ("prefill.mlpackage", "main")]
    unsaved = convert.replace("ct.utils.save_multifunction(desc, 'm.mlpackage')\n", "")
    assert functions(tmp_path / "d", unsaved) == [("decode.mlpackage", "main"), ("prefill.mlpackage", "main")]
    twice = convert.replace("desc.default", "desc.add_function('decode.mlpackage', 'main', 'again')\ndesc.default")
    assert functions(tmp_path / "e", twice) == [
        ("m.mlpackage", "again"),
        ("m.mlpackage", "decode"),
        ("m.mlpackage", "prefill"),
    ]
    copied = convert.replace("    ct.convert(", "    made = ct.convert(").replace(
        ".save(f'{name}.mlpackage')\n",
        "\n    made.save(f'{name}.mlpackage')\n    made.save(f'copy-{name}.mlpackage')\n",
    )
    copied = copied.replace("desc.default", "desc.add_function('copy-decode.mlpackage', 'main', 'again')\ndesc.default")
    assert functions(tmp_path / "g", copied) == functions(tmp_path / "e", twice)
    removed = convert.replace("desc.default", "desc.remove_function('prefill')\ndesc.default")
    assert functions(tmp_path / "f", removed) == [("m.mlpackage", "decode"), ("prefill.mlpackage", "main")]


COMBINES = """\
import coremltools as ct

desc = ct.utils.MultiFunctionDescriptor("build/decode.mlpackage")
desc.add_function("build/prefill.mlpackage", src_function_name="main", target_function_name="prefill")
desc.default_function_name = "prefill"
ct.utils.save_multifunction(desc, "out/m.mlpackage")
"""


def test_a_script_that_puts_together_what_others_have_made_says_so(tmp_path: Path) -> None:
    recipe = '[m]\nscript = "combine.py"\nbundle = "out/m.mlpackage"\n'
    result = scan_text(tmp_path, {"combine.py": COMBINES, "recipe.toml": recipe})
    said = (
        "combine.py:6: `out/m.mlpackage` is put together from `build/decode.mlpackage`, "
        "which no export call of this run has made"
    )
    assert [(f.status, f.reason) for f in result.files if f.path == "combine.py"] == [(FileStatus.NO_EXPORT, said)]
    (graph,) = result.graphs
    assert (graph.invocation.kind, graph.facts.kind.reason) == (InvocationKind.RECIPE, said)


def test_functions_of_a_folder_that_is_not_known(tmp_path: Path) -> None:
    convert = IDIOMS["several functions"].convert.replace(
        "f'{name}.mlpackage'", "os.path.join(out, f'{name}.mlpackage')"
    )
    convert = convert.replace("'m.mlpackage'", "os.path.join(out, 'm.mlpackage')")
    found = functions(tmp_path, convert, "out = os.environ['OUT']\n")
    assert found == [("*/m.mlpackage", "decode"), ("*/m.mlpackage", "prefill")]
