"""Attacks on exporters of several files: what they export is known beforehand, and each hides it another way."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from rules.verdict import Verdict
from tests.auditor.decoder_project import CONFIG, CORE_AI, CORE_ML, EXECUTORCH, MODEL
from tests.auditor.edits import Edit
from tests.auditor.support import judged, mutate

HEAD = "        return self.lm_head(x)\n"
NORM = "        x = self.norm(x)\n        if self.cfg"
MASK = "        mask = cols[None, :] <= (torch.arange(s) + start)[:, None]\n"
KEYS = "        k_cache[self.idx, :, :, start : start + s] = k\n"
SETTINGS = "    cfg = ModelConfig(context=args.context)\n"
RESIDUAL = "        x = x + self.attn(self.norm1(x), *rest)\n"
FEED = "        return self.down(F.silu(self.gate(x)) * self.up(x))\n"
ROUTER = "        self.down = nn.Linear(4 * cfg.hidden_size, cfg.hidden_size, bias=False)\n\n    def"
SEQ = '    seq = Dim("seq", min=1, max=256)\n'
STATES = 'state_names=["k_cache", "v_cache"]'
LAST_INPUT = '        "v_cache": cache.clone(),\n'
SHAPES = '    return {"input_ids": {1: seq}, "position_ids": {1: total}, "k_cache": None, "v_cache": None}\n'
FORWARD = "    def forward(self, input_ids, position_ids, k_cache, v_cache):\n"
INNER = "        return self.inner(input_ids, position_ids, self.k_cache, self.v_cache)\n"
Q = "    q = ct.RangeDim(1, 128, default=1)\n"
WIDTH = ("query_len: int = 8", "query_len: int = 1")


@dataclass(frozen=True, slots=True)
class Case:
    """Edits of the script, of the model and of the settings."""

    script: tuple[Edit, ...] = ()
    model: tuple[Edit, ...] = ()
    config: tuple[Edit, ...] = ()
    base: str = CORE_AI


def _third_state(name: str, example: str, body: str) -> Case:
    return Case(
        (
            (STATES, f'state_names=["k_cache", "v_cache", "{name}"]'),
            (LAST_INPUT, LAST_INPUT + f'        "{name}": {example},\n'),
            (SHAPES, SHAPES.replace('"v_cache": None', f'"v_cache": None, "{name}": None')),
        ),
        ((FORWARD, FORWARD.replace("v_cache)", f"v_cache, {name})") + body),),
    )


OUT: dict[str, Case] = {
    "one token by the settings": Case(((SEQ, "    seq = Dim.STATIC\n"),), config=(WIDTH,)),
    "settings replaced": Case(
        ((SETTINGS, SETTINGS + "    import dataclasses\n    cfg = dataclasses.replace(cfg, logits_to_keep=1)\n"),)
    ),
    "a global of the model's module is set": Case(
        ((SETTINGS, SETTINGS + "    import model as m\n    m.LAST = True\n"),),
        (
            ("class RMSNorm", "LAST = False\n\n\nclass RMSNorm"),
            (NORM, "        x = self.norm(x)\n        if LAST:\n            x = x[:, -1:]\n        if self.cfg"),
        ),
    ),
    "a head out of a dict": Case(
        model=(
            (
                "        self.lm_head = nn.Linear(cfg.hidden_size, cfg.vocab_size, bias=False)\n",
                "        score = nn.Linear(cfg.hidden_size, 1)\n"
                "        heads = {'lm': nn.Linear(cfg.hidden_size, cfg.vocab_size), 'score': score}\n"
                "        self.lm_head = heads[cfg.head]\n",
            ),
        ),
        config=(("    static: bool", "    head: str = 'score'\n    static: bool"),),
    ),
    "a decorator of forward": Case(
        model=(
            (
                "class RMSNorm",
                "import functools\n\n\ndef last(function):\n    @functools.wraps(function)\n    def run(*a, **k):\n"
                "        return function(*a, **k)[:, -1:, :]\n\n    return run\n\n\nclass RMSNorm",
            ),
            (FORWARD, "    @last\n" + FORWARD),
        )
    ),
    "a mixin before the model": Case(
        (
            (
                "from model import Decoder\n",
                "from model import Decoder as Base\n\n\nclass Last:\n    def forward(self, *a, **k):\n"
                "        return super().forward(*a, **k)[:, -1:]\n\n\nclass Decoder(Last, Base):\n    pass\n",
            ),
        )
    ),
    "slots of a remainder": Case(
        model=(
            (
                KEYS,
                "        at = torch.remainder(torch.arange(start, start + s), self.cfg.context)\n"
                "        k_cache[self.idx, :, :, at] = k\n",
            ),
        )
    ),
    "a convolution's tail under the name of keys and values": _third_state(
        "kv_conv",
        "torch.zeros(1, 3, cfg.hidden_size)",
        "        kv_conv[:] = torch.cat([kv_conv, self.embed(input_ids)], 1)[:, -3:]\n",
    ),
    "a range of one": Case(((Q, "    q = ct.RangeDim(1, 1)\n"),), base=CORE_ML),
    "a range of one out of a dict": Case(
        ((Q, "    limits = {'q': {'lower_bound': 1, 'upper_bound': 1}}\n    q = ct.RangeDim(**limits['q'])\n"),),
        base=CORE_ML,
    ),
    "one enumerated shape": Case(
        (("shape=(1, q), dtype", "shape=ct.EnumeratedShapes(shapes=[(1, 1)]), dtype"),), base=CORE_ML
    ),
    "a range on the positions only": Case((("shape=(1, q), dtype", "shape=(1, 1), dtype"),), base=CORE_ML),
    "a branch that the trace took": Case(
        model=((NORM, "        x = self.norm(x)\n        if s > 1:\n            x = x[:, -1:]\n        if self.cfg"),),
        base=CORE_ML,
    ),
    "a length that the trace baked": Case(
        model=(("reshape(b, s, -1)", "reshape(1, 3, -1)"),),
        base=CORE_ML,
    ),
    "a row by index": Case(
        (
            (
                INNER,
                INNER.replace("return", "out =")
                + "        return out.index_select(1, torch.tensor([input_ids.shape[1] - 1]))\n",
            ),
        ),
        base=CORE_ML,
    ),
    "one token": Case((('Dim("s", max=128)', 'Dim("s", min=1, max=1)'), ("ones(1, 3", "ones(1, 1")), base=EXECUTORCH),
    "the last row": Case(((INNER, INNER.replace(")\n", ")[:, -1, :]\n")),), base=EXECUTORCH),
}
NOT_ELIGIBLE: dict[str, Case] = {
    "a dimension of one length": Case(((SEQ, '    seq = Dim("seq", min=1, max=1)\n'),)),
    "a range on the batch": Case(((SHAPES, SHAPES.replace("{1: seq}", "{0: seq}")),)),
    "settings out of a file that is not at hand": Case(
        ((SETTINGS, "    import json\n    cfg = ModelConfig(**json.load(open('/data/settings.json')))\n"),)
    ),
    "rows to keep by the environment": Case(
        model=(
            ("class RMSNorm", "import os\n\nKEEP = int(os.environ.get('KEEP', '1'))\n\n\nclass RMSNorm"),
            (NORM, "        x = self.norm(x)[:, -KEEP:]\n        if self.cfg"),
        )
    ),
    "slots that start again by a condition": Case(
        model=(
            (
                KEYS,
                "        at = start if start + s <= 512 else start - 512\n"
                "        k_cache[self.idx, :, :, at : at + s] = k\n",
            ),
        )
    ),
    "no mask": Case(model=(("attn_mask=mask)", "attn_mask=None)"),)),
    "causal from where the keys begin": Case(model=(("attn_mask=mask)", "is_causal=True)"),)),
    "the row before, mixed in": Case(
        model=(
            (
                RESIDUAL,
                "        h = self.norm1(x)\n        past = F.pad(h, (0, 0, 1, -1))\n"
                "        x = x + self.attn(h * 0.7 + past * 0.3, *rest)\n",
            ),
        )
    ),
    "the mean of the rows": Case(model=((NORM, NORM.replace("(x)", "(x - x.mean(1, keepdim=True))")),)),
    "a traced module goes through unread code": Case(
        (
            (
                "    q = ct.RangeDim(1, 128, default=1)\n",
                "    import turbo\n\n    traced = turbo.optimize(traced)\n    q = ct.RangeDim(1, 128, default=1)\n",
            ),
        ),
        base=CORE_ML,
    ),
    "a pass of the script": Case(
        (
            (
                "class Stateful",
                "from executorch.exir.pass_base import ExportPass\n\n\nclass KeepLast(ExportPass):\n"
                "    def call_operator(self, op, args, kwargs, meta):\n"
                "        return super().call_operator(op, args, kwargs, meta)\n\n\nclass Stateful",
            ),
            ("partitioner=[", "transform_passes=[KeepLast()], partitioner=["),
        ),
        base=EXECUTORCH,
    ),
    "copies of caches that come out": Case(
        (
            ("def forward(self, input_ids, position_ids):", "def forward(self, input_ids, position_ids, k_in, v_in):"),
            (
                INNER,
                "        k, v = k_in.clone(), v_in.clone()\n"
                "        return self.inner(input_ids, position_ids, k, v), k, v\n",
            ),
            (
                "torch.arange(7)[None])",
                "torch.arange(7)[None], torch.zeros(4, 1, 8, 64, 64), torch.zeros(4, 1, 8, 64, 64))",
            ),
            ("max=cfg.context)})", "max=cfg.context)}, None, None)"),
        ),
        base=EXECUTORCH,
    ),
}
ELIGIBLE: dict[str, Case] = {
    "Core AI": Case(),
    "Core ML": Case(base=CORE_ML),
    "ExecuTorch": Case(base=EXECUTORCH),
    "an automatic dimension": Case(((SEQ, "    seq = Dim.AUTO\n"),)),
    "a window mask over all of the cache": Case(
        model=(
            (
                MASK,
                "        row = (torch.arange(s) + start)[:, None]\n"
                "        mask = (cols[None, :] <= row) & (cols[None, :] > row - 256)\n",
            ),
        )
    ),
    "attention by hand": Case(
        model=(
            (
                "        y = F.scaled_dot_product_attention(q, keys, values, attn_mask=mask)\n",
                "        w = torch.matmul(q, keys.transpose(2, 3)) / self.cfg.head_dim**0.5\n"
                "        w = w + torch.where(mask, 0.0, torch.finfo(w.dtype).min)\n"
                "        w = F.softmax(w, dim=-1, dtype=torch.float32).to(q.dtype)\n"
                "        y = torch.matmul(w, values)\n",
            ),
        )
    ),
    "keys in eight bits": Case(
        model=(
            (
                KEYS,
                "        scale = k.abs().amax(-1, keepdim=True) / 127\n"
                + KEYS.replace("= k\n", "= torch.round(k / scale) * scale\n"),
            ),
        )
    ),
    "a capped head and normed keys": Case(
        model=(
            (HEAD, "        return torch.tanh(self.lm_head(x) / 30.0) * 30.0\n"),
            (
                "        q = q * cos",
                "        q, k = F.normalize(q, dim=-1), F.normalize(k, dim=-1)\n        q = q * cos",
            ),
        )
    ),
    "experts by a product for each token": Case(
        model=(
            (
                FEED,
                "        t = x.reshape(-1, x.shape[-1])\n"
                "        w, idx = self.router(t).softmax(-1).topk(2, dim=-1)\n"
                "        y = torch.einsum('th,tkhf->tkf', t, self.w1[idx])\n"
                "        y = torch.einsum('tkf,tkfh->tkh', F.silu(y), self.w2[idx])\n"
                "        return (y * w[..., None]).sum(1).view(x.shape)\n",
            ),
            (
                ROUTER,
                "        self.router = nn.Linear(cfg.hidden_size, 8)\n"
                "        self.w1 = nn.Parameter(torch.zeros(8, cfg.hidden_size, 64))\n"
                "        self.w2 = nn.Parameter(torch.zeros(8, 64, cfg.hidden_size))\n\n    def",
            ),
        )
    ),
    "experts by one-hot numbers": Case(
        model=(
            (
                FEED,
                "        t = x[0]\n        chosen = F.one_hot(self.router(t).argmax(-1), 8).float()\n"
                "        y = torch.einsum('te,th->eth', chosen, t)\n"
                "        y = torch.einsum('eth,ehf->etf', y, self.w1)\n"
                "        return torch.einsum('te,etf->tf', chosen, y)[None]\n",
            ),
            (
                ROUTER,
                "        self.router = nn.Linear(cfg.hidden_size, 8)\n"
                "        self.w1 = nn.Parameter(torch.zeros(8, cfg.hidden_size, cfg.hidden_size))\n\n    def",
            ),
        )
    ),
    "hidden states beside the logits": Case(model=((HEAD, "        return self.lm_head(x), x\n"),)),
    "a scripted module": Case(
        (("torch.jit.trace(model, example)", "torch.jit.script(model)"),),
        base=CORE_ML,
    ),
}


def _verdict(root: Path, case: Case) -> Verdict:
    files = {"config.py": mutate(CONFIG, *case.config), "model.py": mutate(MODEL, *case.model)}
    return judged(root, mutate(case.base, *case.script), **files).verdict


@pytest.mark.parametrize("name", sorted(OUT))
def test_a_script_that_says_so_elsewhere_is_out(tmp_path: Path, name: str) -> None:
    assert _verdict(tmp_path, OUT[name]) is Verdict.OUT


@pytest.mark.parametrize("name", sorted(NOT_ELIGIBLE))
def test_a_script_that_hides_what_it_exports_is_not_eligible(tmp_path: Path, name: str) -> None:
    assert _verdict(tmp_path, NOT_ELIGIBLE[name]) is not Verdict.ELIGIBLE


@pytest.mark.parametrize("name", sorted(ELIGIBLE))
def test_a_script_that_only_looks_like_it_stays_eligible(tmp_path: Path, name: str) -> None:
    assert _verdict(tmp_path, ELIGIBLE[name]) is Verdict.ELIGIBLE
