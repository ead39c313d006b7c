"""Export a decoder whose cache travels as ordinary inputs and outputs, two tensors a layer."""

from __future__ import annotations

import argparse
from pathlib import Path

import torch
from coreai_torch import TorchConverter
from torch import nn
from torch.export import Dim

from blocks import Attention, Config, FeedForward, RMSNorm
from common import save


class Block(Attention):
    """Attention that gives the grown cache back instead of writing it."""

    def forward(self, x, position_ids, past_key, past_value):  # type: ignore[override]
        q, k, v = self.heads(x)
        keys, values = torch.cat([past_key, k], dim=2), torch.cat([past_value, v], dim=2)
        return self.attend(q, keys, values, position_ids), keys, values


class StatelessLM(nn.Module):
    def __init__(self, config: Config) -> None:
        super().__init__()
        self.config = config
        self.embed = nn.Embedding(config.vocab_size, config.hidden_size)
        self.blocks = nn.ModuleList([Block(config) for _ in range(config.num_layers)])
        self.mlp, self.norm = FeedForward(config), RMSNorm(config.hidden_size)
        self.lm_head = nn.Linear(config.hidden_size, config.vocab_size, bias=False)

    def forward(self, input_ids: torch.Tensor, position_ids: torch.Tensor, *past: torch.Tensor) -> tuple[torch.Tensor, ...]:
        x = self.embed(input_ids)
        present: list[torch.Tensor] = []
        for index, block in enumerate(self.blocks):
            y, keys, values = block(x, position_ids, past[2 * index], past[2 * index + 1])
            x = x + y
            present += [keys, values]
        return (self.lm_head(self.norm(x + self.mlp(x))), *present)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=Path("build"))
    args = parser.parse_args()

    config = Config()
    model = StatelessLM(config).eval()
    seen = 8
    past = Dim("past", min=1, max=config.max_context)
    pair = torch.zeros((1, config.num_kv_heads, seen, config.head_dim))
    inputs = (
        torch.zeros((1, 8), dtype=torch.int32),
        torch.arange(seen + 8, dtype=torch.int32)[None],
        *(pair.clone() for _ in range(2 * config.num_layers)),
    )
    dynamic = (
        {1: Dim("tokens", min=1, max=512)},
        {1: Dim.AUTO},  # past + tokens
        tuple({2: past} for _ in range(2 * config.num_layers)),
    )
    with torch.no_grad():
        program = torch.export.export(model, inputs, dynamic_shapes=dynamic, strict=False)

    layers = range(config.num_layers)
    cache_in = [f"past_{kind}_{i}" for i in layers for kind in ("key", "value")]  # cache-names
    cache_out = [f"present_{kind}_{i}" for i in layers for kind in ("key", "value")]
    converter = TorchConverter()
    converter.add_exported_program(  # export
        program.run_decompositions(),
        input_names=["input_ids", "position_ids", *cache_in],
        output_names=["logits", *cache_out],
    )
    save(converter, args.output, "birch-io")


if __name__ == "__main__":
    main()
