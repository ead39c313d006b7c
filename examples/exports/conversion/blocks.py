"""The parts that the decoders share: normalisation, attention over a KV cache, a gated feed-forward."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn


@dataclass
class Config:
    vocab_size: int = 512
    hidden_size: int = 64
    intermediate_size: int = 128
    num_layers: int = 2
    num_heads: int = 4
    num_kv_heads: int = 2
    max_context: int = 4096

    @property
    def head_dim(self) -> int:
        return self.hidden_size // self.num_heads

    def cache_shape(self, rows: int) -> tuple[int, ...]:
        """[layers, batch, KV heads, rows, head size]."""
        return (self.num_layers, 1, self.num_kv_heads, rows, self.head_dim)


class RMSNorm(nn.Module):
    def __init__(self, dim: int, eps: float = 1e-6) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))
        self.eps = eps

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps) * self.weight


class FeedForward(nn.Module):
    def __init__(self, config: Config) -> None:
        super().__init__()
        self.gate = nn.Linear(config.hidden_size, config.intermediate_size, bias=False)
        self.up = nn.Linear(config.hidden_size, config.intermediate_size, bias=False)
        self.down = nn.Linear(config.intermediate_size, config.hidden_size, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.down(F.silu(self.gate(x)) * self.up(x))


class Attention(nn.Module):
    def __init__(self, config: Config) -> None:
        super().__init__()
        self.config = config
        self.q = nn.Linear(config.hidden_size, config.num_heads * config.head_dim, bias=False)
        self.k = nn.Linear(config.hidden_size, config.num_kv_heads * config.head_dim, bias=False)
        self.v = nn.Linear(config.hidden_size, config.num_kv_heads * config.head_dim, bias=False)
        self.o = nn.Linear(config.num_heads * config.head_dim, config.hidden_size, bias=False)

    def heads(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        batch, rows, _ = x.shape
        size = self.config.head_dim
        q = self.q(x).view(batch, rows, self.config.num_heads, size).transpose(1, 2)
        k = self.k(x).view(batch, rows, self.config.num_kv_heads, size).transpose(1, 2)
        v = self.v(x).view(batch, rows, self.config.num_kv_heads, size).transpose(1, 2)
        return q, k, v

    def attend(self, q: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, position_ids: torch.Tensor) -> torch.Tensor:
        """`keys` and `values` hold all rows up to the last query; `position_ids` counts them."""
        batch, _, rows, _ = q.shape
        start = position_ids.shape[1] - rows
        groups = self.config.num_heads // self.config.num_kv_heads
        mask = position_ids[:, None, None, :] <= position_ids[:, None, start:, None]
        keys, values = keys.repeat_interleave(groups, dim=1), values.repeat_interleave(groups, dim=1)
        out = F.scaled_dot_product_attention(q, keys, values, attn_mask=mask)
        return self.o(out.transpose(1, 2).reshape(batch, rows, -1))

    def forward(self, x: torch.Tensor, position_ids: torch.Tensor, key_cache: torch.Tensor, value_cache: torch.Tensor) -> torch.Tensor:
        """The caches are [batch, KV heads, capacity, head size] and written in place."""
        q, k, v = self.heads(x)
        end = position_ids.shape[1]
        start = end - x.shape[1]
        key_cache[:, :, start:end] = k
        value_cache[:, :, start:end] = v
        return self.attend(q, key_cache[:, :, :end], value_cache[:, :, :end], position_ids)


class Layer(nn.Module):
    def __init__(self, config: Config) -> None:
        super().__init__()
        self.input_norm, self.attention = RMSNorm(config.hidden_size), Attention(config)
        self.post_norm, self.mlp = RMSNorm(config.hidden_size), FeedForward(config)

    def forward(self, x: torch.Tensor, position_ids: torch.Tensor, key_cache: torch.Tensor, value_cache: torch.Tensor) -> torch.Tensor:
        x = x + self.attention(self.input_norm(x), position_ids, key_cache, value_cache)
        return x + self.mlp(self.post_norm(x))


class DenseLM(nn.Module):
    """A dense decoder: logits of every position, a KV cache as its only states."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.config = config
        self.embed = nn.Embedding(config.vocab_size, config.hidden_size)
        self.layers = nn.ModuleList(Layer(config) for _ in range(config.num_layers))
        self.norm = RMSNorm(config.hidden_size)
        self.lm_head = nn.Linear(config.hidden_size, config.vocab_size, bias=False)

    def hidden(self, input_ids: torch.Tensor, position_ids: torch.Tensor, key_cache: torch.Tensor, value_cache: torch.Tensor) -> torch.Tensor:
        x = self.embed(input_ids)
        for index, layer in enumerate(self.layers):
            x = layer(x, position_ids, key_cache[index], value_cache[index])
        return self.norm(x)

    def forward(self, input_ids: torch.Tensor, position_ids: torch.Tensor, key_cache: torch.Tensor, value_cache: torch.Tensor) -> torch.Tensor:
        return self.lm_head(self.hidden(input_ids, position_ids, key_cache, value_cache))

    @classmethod
    def from_pretrained(cls, folder: str | None) -> DenseLM:
        """Weights and `config.json` of a checkpoint folder; a small random model without one."""
        import json
        from pathlib import Path

        if folder is None:
            return cls(Config()).eval()
        text = (Path(folder) / "config.json").read_text(encoding="utf-8")
        known = {k: v for k, v in json.loads(text).items() if k in Config.__dataclass_fields__}
        model = cls(Config(**known))
        model.load_state_dict(torch.load(Path(folder) / "weights.pt", map_location="cpu", weights_only=True))
        return model.eval()
