# ruff: noqa: E501  (one edit a line reads better than a folded one)
"""Layers of a cache that more than one layer of the model writes to."""

from __future__ import annotations

from pathlib import Path

import pytest

from rules.facts import Role
from rules.verdict import Verdict, judge
from tests.auditor.decoder_project import CONFIG, CORE_ML, MODEL
from tests.auditor.support import EXPORTER, graph_of, indented, mutate, scan_text

SIZES = "VOCAB, HIDDEN, HEADS, LAYERS, CONTEXT = 128, 32, 4, 2, 512\n"
CALL = (
    "x = layer(x, position_ids, key_cache[i], value_cache[i])",
    "x = layer(x, position_ids, key_cache, value_cache, i)",
)
TAKES = (
    "position_ids, key_cache, value_cache):\n        batch",
    "position_ids, key_cache, value_cache, i):\n        batch",
)
READ = (
    "key_cache[:, :, :end], value_cache[:, :, :end], mask)",
    "key_cache[SLOT, :, :, :end], value_cache[i, :, :, :end], mask)",
)
KEYS, VALUES = "        key_cache[:, :, start:end] = k\n", "        value_cache[:, :, start:end] = v\n"


UNKNOWN = "json.load(open('c.json'))['n']"


def script(slot: str, more: str = "", layers: str = UNKNOWN, when: str = "") -> str:
    """The exporter, whose layers write keys to `slot` of the cache (`when` a condition says so), and `more`."""
    put = KEYS.replace("[:,", f"[{slot}, :,")
    written = (f"        if {when}:\n    {put}" if when else put) + (f"        {more}\n" if more else "")
    return mutate(
        EXPORTER,
        ("import argparse\n", "import argparse\nimport json\n"),
        (SIZES, f"{SIZES}LAYERS = {layers}\n"),
        CALL,
        TAKES,
        (KEYS, written),
        (VALUES, VALUES.replace("[:,", "[i, :,")),
        (READ[0], READ[1].replace("SLOT", slot)),
    )


SHARED = {
    "one for all": ("0",),
    "and the one before": ("i", "key_cache[i - 1, :, :, start:end] = k"),
    "and the one before, but for the first": ("i", "key_cache[max(i - 1, 0), :, :, start:end] = k"),
    "two for one": ("i // 2",),
    "two for one, a few": ("i // 2", "", "4"),
    "one for every sixth": ("i // 6",),
    "half of them and again": ("i % (LAYERS // 2)",),
    "from the second on": ("max(i - 1, 0)",),
    "up to the second": ("min(i, 1)",),
    "to both sides of the second": ("abs(i - 1)",),
    "all but the odd ones": ("i - i % 2",),
    "by a number of the file": ("i // json.load(open('c.json'))['share']",),
    "where most of two write": ("i // 4", "", UNKNOWN, "i % 4 != 3"),
}


@pytest.mark.parametrize("name", sorted(SHARED))
def test_rows_that_two_layers_write(tmp_path: Path, name: str) -> None:
    text = script(*SHARED[name])
    state = graph_of(scan_text(tmp_path, {"export.py": text})).facts.states.value[0]
    assert state.role is Role.UNKNOWN
    assert "written again by another layer or statement" in state.reason
    assert "key_cache[" in text.splitlines()[state.evidence[-1].line - 1]


OWN = {
    "each its own": ("i",),
    "from the last on": ("LAYERS - 1 - i",),
    "each its own, counted": ("i", "", "4"),
    "as many slots as layers": ("i % LAYERS",),
    "by one branch or another": ("i", "if json.load(open('c.json'))['half']: key_cache[i, :, :, start:end] = k * 2"),
    "each of the heads": (
        "i",
        "for head in range(json.load(open('c.json'))['heads']): key_cache[i, :, head, start:end] = k[:, head]",
    ),
    "two of each": ("2 * i", "key_cache[2 * i + 1, :, :, start:end] = v"),
    "half of the heads": ("i", "key_cache[i, :, : HEADS // 2, start:end] = k[:, : HEADS // 2]"),
    "twice, before attention": ("i", "key_cache[i, :, :, start:end] = k * 2"),
    "the first of two": ("i // 2", "", UNKNOWN, "i % 2 == 0"),
    "the first of two, a few": ("i // 2", "", "4", "i % 2 == 0"),
    "all but the odd ones": ("i // 2", "", UNKNOWN, "not i % 2"),
    "some that a file says": ("i // 2", "", UNKNOWN, "json.load(open('c.json'))['own'][i]"),
    "no more than there are slots": ("i // json.load(open('c.json'))['n']", "", "1"),
}


@pytest.mark.parametrize("name", sorted(OWN))
def test_rows_that_one_layer_writes(tmp_path: Path, name: str) -> None:
    state = graph_of(scan_text(tmp_path, {"export.py": script(*OWN[name])})).facts.states.value[0]
    assert state.role is Role.KV_KEY, state.reason


COUNTS = ["4", f"{UNKNOWN}"]
FIRST = "        b, s, _ = x.shape\n        shape"
KEYS_OF = "        k_cache[self.idx, :, :, start : start + s] = k\n"
VIEWS = {
    "an item": "k_cache[{}][:, :, start : start + s] = k",
    "one by select": "k_cache.select(0, {})[:, :, start : start + s] = k",
    "one by narrow": "k_cache.narrow(0, {}, 1)[0, :, :, start : start + s] = k",
    "with an axis": "k_cache[{}].unsqueeze(0)[0, :, :, start : start + s] = k",
    "turned": "k_cache[{}].transpose(1, 2)[:, start : start + s] = k.transpose(1, 2)",
    "copied": "k_cache[{}, :, :, start : start + s].copy_(k)",
    "copied by numbers": "k_cache[{}].index_copy_(2, torch.arange(s) + start, k)",
    "one of all": "[*k_cache][{}][:, :, start : start + s] = k",
    "one of all by unbind": "k_cache.unbind(0)[{}][:, :, start : start + s] = k",
}


def judged_with(root: Path, model: str, layers: str, export: str = CORE_ML) -> Verdict:
    """The verdict of the decoder that is exported to Core ML, with so many layers."""
    config = mutate(
        CONFIG, ("num_layers: int = 4", f"num_layers: int = {layers}"), ("from data", "import json\nfrom data")
    )
    return judge(graph_of(scan_text(root, {"config.py": config, "model.py": model, "export.py": export})).facts).verdict


@pytest.mark.parametrize("layers", COUNTS)
@pytest.mark.parametrize("name", sorted(VIEWS))
def test_rows_that_are_written_by_a_view_of_a_layer(tmp_path: Path, name: str, layers: str) -> None:
    for slot, eligible in (("self.idx // 2", False), ("self.idx", True)):
        if layers != "4" and name.startswith("one of all"):
            continue  # which of the items it is, nobody knows
        written = (KEYS_OF, indented([VIEWS[name].format(slot)]))
        read = ("k_cache[self.idx, :, :, : start + s]", f"k_cache[{slot}, :, :, : start + s]")
        verdict = judged_with(tmp_path / str(eligible), mutate(MODEL, written, read), layers)
        assert (verdict is Verdict.ELIGIBLE) is eligible


def seen_at(slot: str, when: str = "") -> str:
    """The decoder, whose layers see those at `slot`, and write their own when a condition says so."""
    model = MODEL
    for name in ("k", "v"):
        put = KEYS_OF.replace("k_cache", f"{name}_cache").replace("= k", f"= {name}")
        seen = f"{name}_cache[self.idx, :, :, : start + s]"
        written = (put, f"        if {when}:\n    {put}") if when else (put, put)
        model = mutate(model, written, (seen, seen.replace("self.idx", slot)))
    return model


LATER = {
    "the next": ("self.idx + 1",),
    "the next, and the first again": ("(self.idx + 1) % self.cfg.num_layers",),
    "from the last on": ("self.cfg.num_layers - 1 - self.idx",),
    "the next, but for the last": ("min(self.idx + 1, self.cfg.num_layers - 1)",),
    "one that a later layer writes": ("self.idx // 2 * 2 + 1", "self.idx % 2 == 1"),
}
BEFORE = {
    "its own": ("self.idx",),
    "the one before": ("max(self.idx - 1, 0)",),
    "the first of two": ("self.idx // 2 * 2",),
    "the first of two, which alone writes": ("self.idx // 2 * 2", "self.idx % 2 == 0"),
    "the first": ("0",),
}


@pytest.mark.parametrize("layers", COUNTS)
@pytest.mark.parametrize("name", sorted({**LATER, **BEFORE}))
def test_rows_of_another_layer_are_seen_after_they_are_written(tmp_path: Path, name: str, layers: str) -> None:
    model = seen_at(*{**LATER, **BEFORE}[name])
    assert (judged_with(tmp_path, model, layers) is Verdict.ELIGIBLE) is (name in BEFORE)


REGISTERED = """\
        for i in range(cfg.num_layers):
            self.register_buffer(f"k_{i}", torch.zeros(shape[1:], dtype=torch.float16))
            self.register_buffer(f"v_{i}", torch.zeros(shape[1:], dtype=torch.float16))
"""
STATES = """\
        states=[
            ct.StateType(wrapped_type=ct.TensorType(shape=model.k_0.shape, dtype=np.float16), name=f"{n}_{i}")
            for i in range(cfg.num_layers)
            for n in "kv"
        ],
"""


def by_name(number: str) -> tuple[str, str]:
    """The decoder and its export, with a cache for each layer that it finds by its name."""
    head, _, rest = CORE_ML.partition('        self.register_buffer("k_cache"')
    _, _, rest = rest.partition("\n\n    def forward")
    middle, _, end = rest.partition("        states=[\n")
    export = head + REGISTERED + "\n    def forward" + middle + STATES + end.partition("        ],\n")[2]
    named = ", ".join(f'lambda i: getattr(self, f"{n}_{{{number}}}")' for n in "kv")
    model = MODEL
    for n in "kv":
        for rows in ("start : start + s", ": start + s"):
            model = mutate(model, (f"{n}_cache[self.idx, :, :, {rows}]", f"{n}_cache(self.idx)[:, :, {rows}]"))
    return model, mutate(export, ("self.k_cache, self.v_cache)", f"{named})"))


@pytest.mark.parametrize("layers", COUNTS)
@pytest.mark.parametrize("number", ["i", "cfg.num_layers - 1 - i", "i // 2", "i % 2", "max(i - 1, 0)", "0"])
def test_layers_that_find_a_cache_by_its_name(tmp_path: Path, number: str, layers: str) -> None:
    model, export = by_name(number.replace("cfg", "self.inner.cfg"))
    assert (judged_with(tmp_path, model, layers, export) is Verdict.ELIGIBLE) is (
        number in ("i", "cfg.num_layers - 1 - i")
    )


LAYERED = """\
import coremltools as ct
import torch
from torch import nn

HEADS, LAYERS, CONTEXT, HEAD = 4, 24, 512, 16


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(64, 3 * 64)
        self.register_buffer("kv_cache", torch.zeros(2, 1, HEADS, CONTEXT, HEAD))

    def forward(self, x, mask, kv_cache):
        b, s, _ = x.shape
        q, k, v = self.qkv(x).view(b, s, 3, HEADS, HEAD).permute(2, 0, 3, 1, 4)
        end = mask.shape[-1]
        kv_cache[0, :, :, end - s : end] = k
        kv_cache[1, :, :, end - s : end] = v
        y = nn.functional.scaled_dot_product_attention(q, kv_cache[0, :, :, :end], kv_cache[1, :, :, :end], mask)
        return x + y.transpose(1, 2).reshape(b, s, 64)


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(128, 64)
        self.layers = nn.ModuleList([Layer() for _ in range(LAYERS)])
        self.head = nn.Linear(64, 128)

    def forward(self, input_ids, mask):
        x = self.embed(input_ids)
        caches = [layer.kv_cache for layer in self.layers]
        for i, layer in enumerate(self.layers):
            x = layer(x, mask, caches[i])
        return self.head(x)


traced = torch.jit.trace(Decoder().eval(), (torch.zeros(1, 4, dtype=torch.int32), torch.zeros(1, 1, 4, 8)))
rows, shape = ct.RangeDim(1, 64), (2, 1, HEADS, CONTEXT, HEAD)
ct.convert(
    traced,
    inputs=[ct.TensorType("input_ids", (1, rows)), ct.TensorType("mask", (1, 1, rows, ct.RangeDim(1, CONTEXT)))],
    outputs=[ct.TensorType("logits")],
    states=[ct.StateType(ct.TensorType(shape=shape), name=f"layers.{i}.kv_cache") for i in range(LAYERS)],
).save("m.mlpackage")
"""
COUNTED = "LAYERS, CONTEXT, HEAD = 4, 24"


@pytest.mark.parametrize("layers", ["24", "2"])
@pytest.mark.parametrize("number", ["i", "LAYERS - 1 - i", "i // 2", "max(i - 1, 0)"])
def test_layers_that_find_a_cache_in_a_list(tmp_path: Path, number: str, layers: str) -> None:
    text = mutate(LAYERED, (COUNTED, COUNTED.replace("24", layers)), ("caches[i]", f"caches[{number}]"))
    verdict = judge(graph_of(scan_text(tmp_path, {"export.py": text})).facts).verdict
    assert (verdict is Verdict.ELIGIBLE) is (number in ("i", "LAYERS - 1 - i"))


@pytest.mark.parametrize("layers", ["24", "2"])
def test_a_cache_that_a_layer_has_for_itself(tmp_path: Path, layers: str) -> None:
    text = mutate(
        LAYERED,
        (COUNTED, COUNTED.replace("24", layers)),
        ("x = layer(x, mask, caches[i])", "x = layer(x, mask, layer.kv_cache)"),
    )
    assert judge(graph_of(scan_text(tmp_path, {"export.py": text})).facts).verdict is Verdict.ELIGIBLE


@pytest.mark.parametrize("layers", ["4", UNKNOWN])
def test_a_slot_that_is_read_off_a_tensor_may_be_any(tmp_path: Path, layers: str) -> None:
    """Two such numbers are not the same one, whatever the number of layers is."""
    text = script("slot", layers=layers)
    text = mutate(
        text,
        ("        batch, rows, _ = x.shape\n", "        batch, rows, _ = x.shape\n        slot = torch.split(torch.cat([torch.tensor([i]), position_ids[0, :1]]), 1)[0].item()\n"),
    )  # fmt: skip
    assert judge(graph_of(scan_text(tmp_path, {"export.py": text})).facts).verdict is Verdict.ELIGIBLE


COUNTING = """\
        full = 0
        self.layers = nn.ModuleList()
        for i in range(LAYERS):
            whole = json.load(open("c.json"))["kinds"][i] == "full"
            self.layers.append(Layer(full) if whole else Plain())
            full += whole
"""
PLAIN = """\
class Plain(nn.Module):
    slot = None

    def __init__(self):
        super().__init__()
        self.out = nn.Linear(HIDDEN, HIDDEN)

    def forward(self, x, position_ids, key_cache, value_cache):
        return x + self.out(x)


class Layer("""


def test_a_slot_that_only_some_layers_hold_is_not_that_of_the_first_for_all(tmp_path: Path) -> None:
    """The first of the layers that stand for all has 0; which slot the others have, nobody knows."""
    text = mutate(
        EXPORTER,
        ("import argparse\n", "import argparse\nimport json\n"),
        (SIZES, f"{SIZES}LAYERS = {UNKNOWN}\n"),
        ("class Layer(", PLAIN),
        ("    def __init__(self):\n        super().__init__()\n        self.qkv", "    def __init__(self, slot):\n        super().__init__()\n        self.slot = slot\n        self.qkv"),
        ("        self.layers = nn.ModuleList([Layer() for _ in range(LAYERS)])\n", COUNTING),
        ("key_cache[i], value_cache[i])", "key_cache, value_cache)"),
        (KEYS, KEYS.replace("[:,", "[self.slot, :,")),
        (VALUES, VALUES.replace("[:,", "[self.slot, :,")),
        (READ[0], READ[0].replace("[:,", "[self.slot, :,")),
    )  # fmt: skip
    roles = [s.role for s in graph_of(scan_text(tmp_path, {"export.py": text})).facts.states.value or ()]
    assert roles == [Role.KV_KEY, Role.KV_VALUE]
