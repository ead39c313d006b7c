"""Export the sentence encoder: no cache, one embedding a text."""

from __future__ import annotations

import argparse
from pathlib import Path

import torch
import torch.nn.functional as F
from coreai_torch import TorchConverter
from torch import nn
from torch.export import Dim

from blocks import Config, FeedForward, RMSNorm
from common import decomposed, save


class EncoderLayer(nn.Module):
    def __init__(self, config: Config) -> None:
        super().__init__()
        self.qkv = nn.Linear(config.hidden_size, 3 * config.hidden_size)
        self.out = nn.Linear(config.hidden_size, config.hidden_size)
        self.norm, self.mlp = RMSNorm(config.hidden_size), FeedForward(config)
        self.heads = config.num_heads

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = (t.unflatten(-1, (self.heads, -1)).transpose(1, 2) for t in self.qkv(self.norm(x)).chunk(3, dim=-1))
        x = x + self.out(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(-2))
        return x + self.mlp(x)


class SentenceEncoder(nn.Module):
    def __init__(self, config: Config, depth: int) -> None:
        super().__init__()
        self.embed = nn.Embedding(config.vocab_size, config.hidden_size)
        self.layers = nn.Sequential(*[EncoderLayer(config) for _ in range(depth)])

    def forward(self, input_ids: torch.Tensor) -> torch.Tensor:
        pooled = self.layers(self.embed(input_ids)).mean(dim=1)
        return F.normalize(pooled, dim=-1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=Path("build"))
    parser.add_argument("--depth", type=int, default=2)
    args = parser.parse_args()

    model = SentenceEncoder(Config(), args.depth).eval()
    inputs = {"input_ids": torch.zeros((1, 16), dtype=torch.int32)}
    dynamic = {"input_ids": {1: Dim("length", min=1, max=512)}}
    converter = TorchConverter()
    converter.add_exported_program(  # export
        decomposed(model, inputs, dynamic),
        input_names=["input_ids"],
        output_names=["embedding"],
    )
    save(converter, args.output, "moss-encoder")


if __name__ == "__main__":
    main()
