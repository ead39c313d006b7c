"""Exporters of one decoder as people lay them out: settings, a model, and a script for each framework."""

from __future__ import annotations

CONFIG = """\
from dataclasses import dataclass, field


@dataclass
class ModelConfig:
    vocab_size: int = 32000
    hidden_size: int = 512
    num_heads: int = 8
    num_layers: int = 4
    context: int = 1024
    logits_to_keep: int = 0
    query_len: int = 8
    static: bool = False

    @property
    def head_dim(self):
        return self.hidden_size // self.num_heads
"""
MODEL = """\
import torch
import torch.nn as nn
import torch.nn.functional as F


class RMSNorm(nn.Module):
    def __init__(self, dim, eps=1e-6):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(dim))

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps) * self.weight


def rotate_half(x):
    a, b = x.chunk(2, dim=-1)
    return torch.cat((-b, a), dim=-1)


class Attention(nn.Module):
    def __init__(self, cfg, idx):
        super().__init__()
        self.cfg, self.idx = cfg, idx
        self.q_proj = nn.Linear(cfg.hidden_size, cfg.hidden_size, bias=False)
        self.k_proj = nn.Linear(cfg.hidden_size, cfg.hidden_size, bias=False)
        self.v_proj = nn.Linear(cfg.hidden_size, cfg.hidden_size, bias=False)
        self.o_proj = nn.Linear(cfg.hidden_size, cfg.hidden_size, bias=False)

    def forward(self, x, cos, sin, mask, k_cache, v_cache, start):
        b, s, _ = x.shape
        shape = (b, s, self.cfg.num_heads, self.cfg.head_dim)
        q = self.q_proj(x).view(shape).transpose(1, 2)
        k = self.k_proj(x).view(shape).transpose(1, 2)
        v = self.v_proj(x).view(shape).transpose(1, 2)
        q = q * cos + rotate_half(q) * sin
        k = k * cos + rotate_half(k) * sin
        k_cache[self.idx, :, :, start : start + s] = k
        v_cache[self.idx, :, :, start : start + s] = v
        keys = k_cache[self.idx, :, :, : start + s]
        values = v_cache[self.idx, :, :, : start + s]
        y = F.scaled_dot_product_attention(q, keys, values, attn_mask=mask)
        return self.o_proj(y.transpose(1, 2).reshape(b, s, -1))


class MLP(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.gate = nn.Linear(cfg.hidden_size, 4 * cfg.hidden_size, bias=False)
        self.up = nn.Linear(cfg.hidden_size, 4 * cfg.hidden_size, bias=False)
        self.down = nn.Linear(4 * cfg.hidden_size, cfg.hidden_size, bias=False)

    def forward(self, x):
        return self.down(F.silu(self.gate(x)) * self.up(x))


class Block(nn.Module):
    def __init__(self, cfg, idx):
        super().__init__()
        self.attn, self.mlp = Attention(cfg, idx), MLP(cfg)
        self.norm1, self.norm2 = RMSNorm(cfg.hidden_size), RMSNorm(cfg.hidden_size)

    def forward(self, x, *rest):
        x = x + self.attn(self.norm1(x), *rest)
        return x + self.mlp(self.norm2(x))


class Decoder(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.cfg = cfg
        self.embed = nn.Embedding(cfg.vocab_size, cfg.hidden_size)
        self.blocks = nn.ModuleList(Block(cfg, i) for i in range(cfg.num_layers))
        self.norm = RMSNorm(cfg.hidden_size)
        self.lm_head = nn.Linear(cfg.hidden_size, cfg.vocab_size, bias=False)
        inv = 1.0 / (10000 ** (torch.arange(0, cfg.head_dim, 2).float() / cfg.head_dim))
        angles = torch.outer(torch.arange(cfg.context).float(), inv)
        self.register_buffer("cos", torch.cat([angles, angles], -1).cos(), persistent=False)
        self.register_buffer("sin", torch.cat([angles, angles], -1).sin(), persistent=False)

    def forward(self, input_ids, position_ids, k_cache, v_cache):
        s = input_ids.shape[1]
        total = position_ids.shape[1]
        start = total - s
        x = self.embed(input_ids)
        pos = position_ids[0, start:]
        cos, sin = self.cos[pos][None, None], self.sin[pos][None, None]
        cols = torch.arange(total)
        mask = cols[None, :] <= (torch.arange(s) + start)[:, None]
        for block in self.blocks:
            x = block(x, cos, sin, mask, k_cache, v_cache, start)
        x = self.norm(x)
        if self.cfg.logits_to_keep:
            x = x[:, -self.cfg.logits_to_keep :]
        return self.lm_head(x)
"""
CORE_AI = """\
import argparse
import torch
from torch.export import Dim
from coreai_torch import TorchConverter
from config import ModelConfig
from model import Decoder


def sample_inputs(cfg):
    cache = torch.zeros(cfg.num_layers, 1, cfg.num_heads, cfg.context, cfg.head_dim)
    return {
        "input_ids": torch.ones(1, cfg.query_len, dtype=torch.int32),
        "position_ids": torch.arange(32, dtype=torch.int32)[None],
        "k_cache": cache,
        "v_cache": cache.clone(),
    }


def dynamic_shapes(cfg):
    seq = Dim("seq", min=1, max=256)
    total = Dim("total", min=1, max=cfg.context)
    return {"input_ids": {1: seq}, "position_ids": {1: total}, "k_cache": None, "v_cache": None}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", default="decoder.aimodel")
    parser.add_argument("--context", type=int, default=1024)
    args = parser.parse_args()
    cfg = ModelConfig(context=args.context)
    model = Decoder(cfg).eval()
    ep = torch.export.export(model, args=(), kwargs=sample_inputs(cfg), dynamic_shapes=dynamic_shapes(cfg))
    ep = ep.run_decompositions()
    converter = TorchConverter()
    converter.add_exported_program(
        ep, input_names=["input_ids", "position_ids"], output_names=["logits"], state_names=["k_cache", "v_cache"],
    )
    program = converter.to_coreai()
    program.save_asset(args.out)


if __name__ == "__main__":
    main()
"""
CORE_ML = """\
import coremltools as ct
import numpy as np
import torch
from config import ModelConfig
from model import Decoder


class Wrapper(torch.nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.inner = Decoder(cfg)
        shape = (cfg.num_layers, 1, cfg.num_heads, cfg.context, cfg.head_dim)
        self.register_buffer("k_cache", torch.zeros(shape, dtype=torch.float16))
        self.register_buffer("v_cache", torch.zeros(shape, dtype=torch.float16))

    def forward(self, input_ids, position_ids):
        return self.inner(input_ids, position_ids, self.k_cache, self.v_cache)


def convert(cfg, path="decoder.mlpackage"):
    model = Wrapper(cfg).eval()
    example = (torch.ones(1, 3, dtype=torch.int32), torch.arange(7, dtype=torch.int32)[None])
    traced = torch.jit.trace(model, example)
    q = ct.RangeDim(1, 128, default=1)
    total = ct.RangeDim(1, cfg.context, default=1)
    mlmodel = ct.convert(
        traced,
        inputs=[
            ct.TensorType(name="input_ids", shape=(1, q), dtype=np.int32),
            ct.TensorType(name="position_ids", shape=(1, total), dtype=np.int32),
        ],
        outputs=[ct.TensorType(name="logits", dtype=np.float16)],
        states=[
            ct.StateType(wrapped_type=ct.TensorType(shape=model.k_cache.shape, dtype=np.float16), name="k_cache"),
            ct.StateType(wrapped_type=ct.TensorType(shape=model.v_cache.shape, dtype=np.float16), name="v_cache"),
        ],
        minimum_deployment_target=ct.target.iOS18,
    )
    mlmodel.save(path)


if __name__ == "__main__":
    convert(ModelConfig())
"""
EXECUTORCH = """\
import torch
from torch.export import Dim, export
from executorch.backends.apple.coreml.compiler import CoreMLBackend
from executorch.backends.apple.coreml.partition import CoreMLPartitioner
from executorch.exir import to_edge_transform_and_lower
from config import ModelConfig
from model import Decoder


class Stateful(torch.nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.inner = Decoder(cfg)
        shape = (cfg.num_layers, 1, cfg.num_heads, cfg.context, cfg.head_dim)
        self.register_buffer("k_cache", torch.zeros(shape))
        self.register_buffer("v_cache", torch.zeros(shape))

    def forward(self, input_ids, position_ids):
        return self.inner(input_ids, position_ids, self.k_cache, self.v_cache)


def main():
    cfg = ModelConfig()
    model = Stateful(cfg).eval()
    example = (torch.ones(1, 3, dtype=torch.long), torch.arange(7)[None])
    dynamic = ({1: Dim("s", max=128)}, {1: Dim("t", max=cfg.context)})
    ep = export(model, example, dynamic_shapes=dynamic, strict=True)
    edge = to_edge_transform_and_lower(ep, partitioner=[CoreMLPartitioner(take_over_mutable_buffer=True)])
    et = edge.to_executorch()
    with open("decoder.pte", "wb") as f:
        f.write(et.buffer)


if __name__ == "__main__":
    main()
"""
