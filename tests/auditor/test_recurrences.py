"""States that are computed anew from what they held, under names that say nothing or say the contrary; and caches."""

from __future__ import annotations

from pathlib import Path

import pytest

from rules.facts import Role
from rules.verdict import judge
from tests.auditor.support import graph_of, indented, line_of, mutate, scan_text

SCRIPT = """\
import coremltools as ct
import numpy as np
import torch
from torch import nn

T, H, D, V = 128, 4, 16, 1000
C = H * D


class Mixer(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.k, self.v, self.inner = (nn.Linear(C, C) for _ in range(4))
        self.gate = nn.Linear(C, H)
        self.decay = nn.Parameter(torch.ones(H, 1, 1))
        self.scale = nn.Parameter(torch.ones(H, 1, 1))
        self.register_buffer("keep", torch.ones(H, D, D))

    def forward(self, x, s, more, mask):
        B, S, _ = x.shape
        q, k, v = (f(x)[:, -1].view(B, H, D) for f in (self.q, self.k, self.v))
        kv = k[..., None] * v[:, :, None]
        g = torch.sigmoid(self.gate(x[:, -1]))[..., None, None]
        # the mixer
        return x + y


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(V, C)
        self.first, self.second = Mixer(), Mixer()
        self.head = nn.Linear(C, V)
        self.register_buffer("NAME", torch.zeros(1, H, D, D))
        self.register_buffer("more_cache", torch.zeros(1, H, T, D))

    def forward(self, input_ids, mask):
        x = self.first(self.embed(input_ids), self.NAME, self.more_cache, mask)
        return self.head(x)


example = (torch.zeros(1, 2, dtype=torch.int32), torch.zeros(1, H, D, 1))
traced = torch.jit.trace(Model().eval(), example)
rows = ct.RangeDim(1, 64, default=1)
model = ct.convert(
    traced,
    inputs=[
        ct.TensorType(name="input_ids", shape=(1, rows), dtype=np.int32),
        ct.TensorType(name="mask", shape=(1, H, D, 1)),
    ],
    outputs=[ct.TensorType(name="logits")],
    states=[ct.StateType(wrapped_type=ct.TensorType(shape=(1, H, D, D)), name="NAME")],
)
model.save("model.mlpackage")
"""
READ = "\ny = (q[:, :, None] @ s).reshape(B, 1, C)"


def script(body: str, name: str = "memory") -> str:
    return mutate(SCRIPT, ("        # the mixer\n", indented(body.splitlines()))).replace("NAME", name)


@pytest.mark.parametrize("name", ["memory", "state", "cache", "k_cache", "S0"])
@pytest.mark.parametrize(
    "body",
    [
        "s.copy_(s * g + kv)" + READ,
        "s[:] = kv + g * s" + READ,
        "s.mul_(g)\ns.add_(kv)" + READ,
        "s.copy_(0.9 * s + 0.1 * kv)" + READ,
        "s.copy_(s * torch.exp(-self.decay.float()) + kv)" + READ,
        "s.copy_(s * (1.0 - self.decay) + kv)" + READ,
        "s.copy_(s / (1.5 + self.decay.abs()) + kv)" + READ,
        "s.copy_(torch.tanh(s + kv))" + READ,
        "s.copy_(torch.nn.functional.silu(s) + kv)" + READ,
        "s.copy_(kv @ s)" + READ,
        "s.copy_(torch.einsum('bhde,bhef->bhdf', kv, s) + kv)" + READ,
        "s.copy_(nn.functional.linear(s, self.inner.weight[:D, :D]) + kv)" + READ,
        "s.copy_(torch.addcmul(kv, s, g))" + READ,
        "s.lerp_(kv, 0.25)" + READ,
        "new = s * g\nnew = new + kv\ns.copy_(new.contiguous().to(s.dtype))" + READ,
        "for t in range(2):\n    s.copy_(s * g + kv)" + READ,
        "s.copy_(s + kv)" + READ,
        "s.copy_(1.0 * s + kv)" + READ,
        "s.copy_(-s + kv)" + READ,
        "s.copy_(s * (1 - mask) + kv)" + READ,
        "s += kv" + READ,
        "s.add_(g * kv)" + READ,
        "s[:] = torch.sub(s, kv)" + READ,
        "s.copy_(s + k[..., None] @ v[:, :, None])" + READ,
        "new = v[:, :, None] - k[:, :, None] @ s\ns.copy_(s + k[..., None] @ new)" + READ,
        "new = v - (k[..., None] * s).sum(2)\ns.copy_(s + torch.einsum('bhd,bhe->bhde', k, new))" + READ,
    ],
)
def test_a_state_that_is_computed_anew(tmp_path: Path, body: str, name: str) -> None:
    text = script(body, name)
    graph = graph_of(scan_text(tmp_path, {"export.py": text}))
    (state,) = graph.facts.states.value or ()
    assert (state.name, state.role) == (name, Role.RECURRENT)
    written = next(line for line in body.splitlines() if line.strip().startswith("s"))
    assert state.reason == f"`{name}` is computed anew from what it held (export.py:{line_of(text, written)})"
    assert judge(graph.facts).says() == "out by hybrid-state"


@pytest.mark.parametrize(
    "body",
    [
        "s.copy_(s * (1 - mask) + kv * mask)",  # what goes in may be zeros and ones
        "s.copy_(s * (1.0 - mask.float()) + kv * mask)",
        "s.copy_(s * self.keep + kv * mask)",  # and so may a buffer
        "s.copy_(s * (g > 0.5) + kv * mask)",
        "s.copy_(s * (g > 0.5).float() + kv * mask)",
        "s.copy_(s * torch.round(g) + kv * mask)",
        "s.copy_(s * torch.where(g > 0.5, 1.0, 0.0) + kv * mask)",
        "s.copy_(torch.where(mask > 0, s * g, s))",  # some are as they were
        "s.copy_(torch.cat([s[:, :2], s[:, 2:] * g[:, 2:]], 1))",
        "s.copy_(torch.stack([s[:, 0], torch.tanh(s[:, 1]), s[:, 2], s[:, 3]], 1))",
        "s.copy_(s + mask * kv)",
        "s.copy_(s + mask @ v[:, :, None])",
        "s.copy_(s + self.keep * kv)",
        "s.copy_(s + kv * (g > 0.5))",
        "s.copy_(s + (torch.arange(D)[:, None] == 3) * kv)",
        "s.copy_(s + (torch.arange(D)[:, None] == 3).float() @ v[:, :, None])",
        "s.copy_(s + (kv * g) * mask)",
        "s.copy_(s + (kv * mask) * g)",
        "s.copy_(s + torch.where(mask > 0, kv, 0.0) * g)",
        "s.copy_(s + kv.masked_fill(mask == 0, 0.0) * g)",
        "s.copy_(s + (k * mask[..., 0])[..., None] * v[:, :, None])",
        "s.copy_(kv * g)",  # nothing of what it held
        "kept = s * self.scale\ns[:, :, 3:4] = k[:, :, None]\ns = kept",  # read with a factor, written in part
        "kept = torch.tanh(s)\ns.copy_(s.clone())\ns = kept",
    ],
)
@pytest.mark.parametrize("name", ["memory", "cache"])
def test_a_state_of_which_something_may_stay(tmp_path: Path, body: str, name: str) -> None:
    graph = graph_of(scan_text(tmp_path, {"export.py": script(body + READ, name)}))
    (state,) = graph.facts.states.value or ()
    assert state.role is not Role.RECURRENT
    assert "computed anew" not in state.reason


def carried(new: str, rows: str) -> str:
    """The same as an ordinary input that comes out again."""
    return mutate(
        script("s = " + new + READ),
        ("return x + y\n", "return x + y, s\n"),
        ("def forward(self, input_ids, mask):", "def forward(self, input_ids, mask, memory):"),
        (
            "        x = self.first(self.embed(input_ids), self.memory, ",
            "        x, memory = self.first(self.embed(input_ids), memory, ",
        ),
        ("        return self.head(x)\n", "        return self.head(x), memory\n"),
        ('        self.register_buffer("memory", torch.zeros(1, H, D, D))\n', ""),
        ("torch.zeros(1, H, D, 1))", "torch.zeros(1, H, D, 1), torch.zeros(1, H, D, D))"),
        ("rows = ct.RangeDim(1, 64, default=1)", f"rows = {rows}"),
        ("shape=(1, H, D, 1)),\n", 'shape=(1, H, D, 1)),\n        ct.TensorType(name="memory", shape=(1, H, D, D)),\n'),
        ('ct.TensorType(name="logits")]', 'ct.TensorType(name="logits"), ct.TensorType(name="new_memory")]'),
        ('    states=[ct.StateType(wrapped_type=ct.TensorType(shape=(1, H, D, D)), name="memory")],\n', ""),
    )


@pytest.mark.parametrize(
    ("new", "rows", "says", "role"),
    [
        ("s * g + kv", "1", "out by hybrid-state", Role.RECURRENT),
        ("s * g + kv", "ct.RangeDim(1, 64)", "out by hybrid-state", Role.RECURRENT),
        ("s * (1 - mask) + kv * mask", "1", "out by static-query", Role.UNKNOWN),
        ("torch.cat([s[:, :, 1:], k[:, :, None]], 2)", "1", "out by static-query", Role.UNKNOWN),
    ],
)
def test_what_comes_out_again(tmp_path: Path, new: str, rows: str, says: str, role: Role) -> None:
    graph = graph_of(scan_text(tmp_path, {"export.py": carried(new, rows)}))
    assert [(s.name, s.role) for s in graph.facts.states.value or ()] == [("memory", role)]
    assert judge(graph.facts).says() == says


def test_what_goes_through_a_part_of_a_model_is_none(tmp_path: Path) -> None:
    """It comes out under another name; `x` and `embeds` are no states under the same one either."""
    text = carried("torch.tanh(s) + kv", "1")
    for name, out in (("features", "encoded"), ("x", "new_x"), ("embeds", "embeds_out")):
        part = text.replace('"memory"', f'"{name}"').replace('"new_memory"', f'"{out}"')
        graph = graph_of(scan_text(tmp_path / name, {"export.py": part}))
        assert all(s.role is not Role.RECURRENT for s in graph.facts.states.value or ())
