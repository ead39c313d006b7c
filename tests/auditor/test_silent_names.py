"""States under names that say nothing: what `forward` writes to them, and where, says what they are."""

from __future__ import annotations

from pathlib import Path

import pytest

from rules.facts import Role
from rules.verdict import judge
from tests.auditor.support import graph_of, mutate, scan_text

CORE_ML = """\
import coremltools as ct
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

D, H, CTX, V = 64, 4, 128, 1000


class Held(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("kk", torch.zeros(1, H, CTX, D // H))
        self.register_buffer("memo", torch.zeros(1, H, CTX, D // H))

    def put(self, pos, k, v):
        self.kk[:, :, pos] = k
        self.memo[:, :, pos] = v
        return self.kk, self.memo


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv, self.out = nn.Linear(D, 3 * D), nn.Linear(D, D)
        self.held = Held()

    def forward(self, x, pos, mask):
        b, s, _ = x.shape
        q, k, v = self.qkv(x).view(b, s, 3, H, D // H).permute(2, 0, 3, 1, 4)
        k, v = self.held.put(pos, k, v)
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        return x + self.out(y.transpose(1, 2).reshape(b, s, D))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.places = nn.Embedding(V, D), nn.Embedding(CTX, D)
        self.layers = nn.ModuleList([Layer() for _ in range(3)])
        self.head = nn.Linear(D, V)

    def forward(self, ids, pos, mask):
        x = self.embed(ids) + self.places(pos)
        for layer in self.layers:
            x = layer(x, pos, mask)
        return self.head(x)


net = Model().eval()
sample = (torch.zeros(1, 3, dtype=torch.int32), torch.arange(3, dtype=torch.int32), torch.zeros(1, 1, 3, CTX))
"""
EXPORT = """\
s = ct.RangeDim(1, 64, default=1)
model = ct.convert(
    torch.jit.trace(net, sample),
    inputs=[
        ct.TensorType(name="ids", shape=(1, s), dtype=np.int32),
        ct.TensorType(name="pos", shape=(s,), dtype=np.int32),
        ct.TensorType(name="mask", shape=(1, 1, s, CTX), dtype=np.float16),
    ],
    outputs=[ct.TensorType(name="logits")],
    states=[ct.StateType(wrapped_type=ct.TensorType(shape=b.shape), name=n) for n, b in net.named_buffers()],
)
model.save("model.mlpackage")
"""
EXECUTORCH = """\
from executorch.backends.apple.coreml.partition import CoreMLPartitioner
from executorch.exir import to_edge_transform_and_lower

s = torch.export.Dim("s", max=64)
program = torch.export.export(net, sample, dynamic_shapes=({1: s}, {0: s}, {2: s}))
edge = to_edge_transform_and_lower(program, partitioner=[CoreMLPartitioner()])
"""
PUT = "        self.kk[:, :, pos] = k\n        self.memo[:, :, pos] = v\n"
RENAMED = [
    ("def forward(self, ids, pos, mask):", "def forward(self, ids, rows, mask):"),
    ("self.places(pos)", "self.places(rows)"),
    ("layer(x, pos, mask)", "layer(x, rows, mask)"),
    ('"pos"', '"rows"'),
]
HELD = "        self.held = Held()\n"
SHAPE = "        b, s, _ = x.shape\n"
KEPT = '        self.register_buffer("kept", torch.zeros(1, 1, D))\n'
SHIFT = """\
        x = torch.cat([self.kept, x], 1)
        self.kept[:] = x[:, -1:]
        x = x[:, :-1]
"""


def copied(place: str) -> tuple[str, str]:
    return PUT, f"        self.kk.index_copy_(2, {place}, k)\n        self.memo.index_copy_(2, {place}, v)\n"


@pytest.mark.parametrize("export", [EXPORT, EXECUTORCH], ids=["coremltools", "executorch"])
@pytest.mark.parametrize(
    "edits",
    [
        [],
        [copied("pos")],
        [copied("pos.long()")],
        RENAMED,
        [("kk", "k"), ("memo", "v")],
        [("kk", "left"), ("memo", "right")],
    ],
    ids=["at indices", "by index_copy_", "of whole numbers", "by numbers of any name", "short names", "no names"],
)
def test_rows_that_are_written_where_they_stand_make_a_cache(
    tmp_path: Path, export: str, edits: list[tuple[str, str]]
) -> None:
    text = CORE_ML + export
    for old, new in edits:
        text = text.replace(old, new)
    graph = graph_of(scan_text(tmp_path, {"export.py": text}))
    assert {s.role for s in graph.facts.states.value or ()} <= {Role.KV_UNIFIED, Role.KV_KEY, Role.KV_VALUE}
    assert judge(graph.facts).says() == "eligible"


@pytest.mark.parametrize("export", [EXPORT, EXECUTORCH], ids=["coremltools", "executorch"])
@pytest.mark.parametrize(
    "edit",
    [
        (PUT, PUT.replace("pos] = ", "pos % 16] = ")),
        (PUT, "        self.kk[:, :, : k.shape[2]] = k\n        self.memo[:, :, : k.shape[2]] = v\n"),
        (PUT, PUT.replace("pos] = k", "pos[:1]] = k[:, :, -1:]").replace("pos] = v", "pos[:1]] = v[:, :, -1:]")),
        (PUT, PUT.replace("= v", "= v + self.memo[:, :, pos - 1]")),
        copied("torch.full_like(pos, 3)"),
        copied("torch.arange(k.shape[2])"),
        (PUT, "        self.kk[:] = torch.cat([self.kk, k], 2)[:, :, -CTX:]\n        self.memo[:, :, pos] = v\n"),
        (
            PUT,
            "        self.kk[:] = self.kk * torch.sigmoid(k.mean(2, True)) + 0.5\n        self.memo[:, :, pos] = v\n",
        ),
        ("attn_mask=mask)", "is_causal=True)"),
        ("self.places(pos)", "self.places(torch.arange(ids.shape[1]))"),
        ("return self.head(x)", "return self.head(x[:, -1:])"),
    ],
    ids=[
        "in a ring",
        "first rows",
        "one row",
        "from others",
        "one place",
        "counted from 0",
        "slid",
        "computed anew",
        "mask of the query alone",
        "positions from 0",
        "last row",
    ],
)
def test_what_is_wrong_with_a_cache_is_seen_under_any_name(tmp_path: Path, export: str, edit: tuple[str, str]) -> None:
    graph = graph_of(scan_text(tmp_path, {"export.py": mutate(CORE_ML + export, edit)}))
    assert judge(graph.facts).says() != "eligible"


def test_a_state_of_another_kind_beside_caches_without_names(tmp_path: Path) -> None:
    text = mutate(CORE_ML + EXPORT, (HELD, HELD + KEPT), (SHAPE, SHAPE + SHIFT))
    graph = graph_of(scan_text(tmp_path, {"export.py": text}))
    assert judge(graph.facts).says() != "eligible"


def test_an_encoder_with_tables_in_buffers_is_no_decoder(tmp_path: Path) -> None:
    text = mutate(
        CORE_ML + EXECUTORCH,
        (PUT, "        k, v = k + self.kk[:, :, :1], v + self.memo[:, :, :1]\n"),
        ("return self.kk, self.memo", "return k, v"),
        ("attn_mask=mask)", "is_causal=True)"),
    )
    assert judge(graph_of(scan_text(tmp_path, {"export.py": text})).facts).says() == "out by not-a-decoder"


LAYERED = """\
from pathlib import Path

import torch
import torch.nn as nn
from coreai_torch import TorchConverter

D, N, V = 32, LAYERS, 1000


class Decay(nn.Module):
    def __init__(self, slot):
        super().__init__()
        self.slot = slot
        self.k, self.gate = nn.Linear(D, D), nn.Linear(D, 1)

    def forward(self, x, memory):
        held = memory[self.slot]
        memory[self.slot] = held * torch.sigmoid(self.gate(x)).mean(1, True) + self.k(x).transpose(1, 2) @ x
        return x @ memory[self.slot]


class Plain(nn.Module):
    def __init__(self, slot):
        super().__init__()
        self.slot, self.lin = slot, nn.Linear(D, D)

    def forward(self, x, memory):
        return self.lin(x)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(V, D)
        mixers, recurrent, plain = [], 0, 0
        for i in range(N):
            if (i + 1) % 4:
                mixers.append(Decay(recurrent))
                recurrent += 1
            else:
                mixers.append(Plain(plain))
                plain += 1
        self.mixers = nn.ModuleList(mixers)
        self.count = recurrent

    def forward(self, ids, memory):
        x = self.embed(ids)
        for mixer in self.mixers:
            x = x + mixer(x, memory)
        return x @ self.embed.weight.t()


model = Model().eval()
s = torch.export.Dim("s", min=1, max=64)
example = (torch.zeros(1, 4, dtype=torch.long), torch.zeros(model.count, 1, D, D))
program = torch.export.export(model, example, dynamic_shapes=({1: s}, None))
converter = TorchConverter()
converter.add_exported_program(program, input_names=["ids"], output_names=["logits"], state_names=["memory"])
converter.to_coreai().save_asset(Path("model.aimodel"))
"""


@pytest.mark.parametrize("layers", ["8", "24"])
def test_layers_that_count_themselves_where_a_branch_picks_their_kind(tmp_path: Path, layers: str) -> None:
    """The number of a layer goes on from round to round, and the list holds layers of two kinds."""
    graph = graph_of(scan_text(tmp_path, {"export.py": LAYERED.replace("LAYERS", layers)}))
    (state,) = graph.facts.states.value or ()
    assert (state.role, judge(graph.facts).says()) == (Role.RECURRENT, "out by hybrid-state")
    assert not graph.facts.marks  # what is computed anew is no ring


TAILS = """\
import coremltools as ct
import numpy as np
import torch
import torch.nn as nn

D = 32


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.head = nn.Embedding(1000, D), nn.Linear(D, 1000)
        self.conv = nn.ModuleList([nn.Conv1d(D, D, 3, groups=D) for _ in range(2)])

    def forward(self, ids, ends):
        x, fresh = self.embed(ids).transpose(1, 2), []
        for i, conv in enumerate(self.conv):
            both = torch.cat([ends[i], x], -1)
            x = x + conv(both)
            fresh.append(both[..., -2:])
        return self.head(x.transpose(1, 2)), torch.stack(fresh)


traced = torch.jit.trace(Model().eval(), (torch.zeros(1, 4, dtype=torch.int32), torch.zeros(2, 1, D, 2)))
s = ct.RangeDim(1, 64, default=1)
ct.convert(
    traced,
    inputs=[
        ct.TensorType(name="ids", shape=(1, s), dtype=np.int32),
        ct.TensorType(name="ends", shape=(2, 1, D, 2), dtype=np.float16),
    ],
    outputs=[ct.TensorType(name="logits"), ct.TensorType(name="new_ends")],
).save("model.mlpackage")
"""


@pytest.mark.parametrize("name", ["ends", "tails", "rest"])
def test_the_last_rows_that_go_in_and_come_out_are_those_of_a_convolution(tmp_path: Path, name: str) -> None:
    graph = graph_of(scan_text(tmp_path, {"export.py": TAILS.replace("ends", name)}))
    (state,) = graph.facts.states.value or ()
    assert (state.name, state.role, judge(graph.facts).says()) == (name, Role.CONV, "out by hybrid-state")


REGISTERED = """\
        for i in range(20):
            self.register_buffer(f"kk_{i}", torch.zeros(1, H, CTX, D // H))
            self.register_buffer(f"memo_{i}", torch.zeros(1, H, CTX, D // H))
"""
COUNTED = mutate(
    CORE_ML + EXPORT,
    (HELD, ""),
    ("def forward(self, x, pos, mask):", "def forward(self, x, kk, memo, pos, mask):"),
    ("        k, v = self.held.put(pos, k, v)\n", "        kk[:, :, pos] = k\n        memo[:, :, pos] = v\n"),
    ("attention(q, k, v,", "attention(q, kk, memo,"),
    ("for _ in range(3)])\n", "for _ in range(20)])\n" + REGISTERED),
    ("for layer in self.layers:", "for i, layer in enumerate(self.layers):"),
    ("layer(x, pos, mask)", 'layer(x, getattr(self, f"kk_{i}"), getattr(self, f"memo_{i}"), pos, mask)'),
)
WRITES = "        kk[:, :, pos] = k\n        memo[:, :, pos] = v\n"
ATTENDS = "        y = F.scaled_dot_product_attention(q, kk, memo, attn_mask=mask)\n"


@pytest.mark.parametrize("names", [("kk", "memo"), ("keys", "vals"), ("k_cache", "v_cache")], ids="/".join)
@pytest.mark.parametrize(
    ("edit", "eligible"),
    [
        ((WRITES, WRITES), True),
        ((WRITES, WRITES.replace("pos]", "pos % 16]")), False),
        ((WRITES + ATTENDS, ATTENDS + WRITES), False),
        (
            (
                WRITES,
                WRITES.replace("pos] = k", "pos[:1]] = k[:, :, -1:]").replace("pos] = v", "pos[:1]] = v[:, :, -1:]"),
            ),
            False,
        ),
        ((WRITES, WRITES.replace("= v", "= v + memo[:, :, pos - 1]")), False),
    ],
    ids=["as it is", "in a ring", "read before", "one row", "from others"],
)
def test_buffers_of_more_layers_than_are_followed_one_by_one(
    tmp_path: Path, names: tuple[str, str], edit: tuple[str, str], eligible: bool
) -> None:
    text = mutate(COUNTED, edit).replace("kk", names[0]).replace("memo", names[1])
    assert (judge(graph_of(scan_text(tmp_path, {"export.py": text})).facts).says() == "eligible") is eligible
