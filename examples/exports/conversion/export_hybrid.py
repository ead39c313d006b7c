"""Export the hybrid decoder: short convolutions and a gated recurrence beside one attention layer."""

from __future__ import annotations

import argparse
from pathlib import Path

import torch
import torch.nn.functional as F
from coreai_torch import TorchConverter
from torch import nn
from torch.export import Dim

from blocks import Attention, Config, FeedForward, RMSNorm
from common import decomposed, save
from names import HYBRID_STATE_NAMES, INPUT_NAMES, OUTPUT_NAMES

KERNEL = 4


class Mixer(nn.Module):
    """A causal convolution over the last rows, then a recurrence over the query."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        size = config.hidden_size
        self.conv = nn.Conv1d(size, size, KERNEL, groups=size)
        self.decay, self.out = nn.Linear(size, size), nn.Linear(size, size, bias=False)

    def forward(self, x: torch.Tensor, conv_state: torch.Tensor, rec_state: torch.Tensor) -> torch.Tensor:
        window = torch.cat([conv_state, x.transpose(1, 2)], dim=-1)
        conv_state[:] = window[:, :, -(KERNEL - 1) :]
        mixed = F.silu(self.conv(window)).transpose(1, 2)
        keep = torch.sigmoid(self.decay(mixed))
        carried = torch.cumsum((1.0 - keep) * mixed, dim=1) + rec_state[:, None]
        rec_state[:] = carried[:, -1]
        return self.out(carried)


class HybridLM(nn.Module):
    def __init__(self, config: Config) -> None:
        super().__init__()
        self.config = config
        self.embed = nn.Embedding(config.vocab_size, config.hidden_size)
        self.mixers = nn.ModuleList(Mixer(config) for _ in range(config.num_layers))
        self.attention, self.mlp = Attention(config), FeedForward(config)
        self.norm = RMSNorm(config.hidden_size)
        self.lm_head = nn.Linear(config.hidden_size, config.vocab_size, bias=False)

    def forward(
        self,
        input_ids: torch.Tensor,
        position_ids: torch.Tensor,
        key_cache: torch.Tensor,
        value_cache: torch.Tensor,
        conv_state: torch.Tensor,
        rec_state: torch.Tensor,
    ) -> torch.Tensor:
        x = self.embed(input_ids)
        for index, mixer in enumerate(self.mixers):
            x = x + mixer(x, conv_state[index], rec_state[index])
        x = x + self.attention(x, position_ids, key_cache[0], value_cache[0])
        return self.lm_head(self.norm(x + self.mlp(x)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("output", nargs="?", type=Path, default=Path("build"))
    parser.add_argument("--prefill", type=int, default=8, help="tokens of the example; the query stays dynamic")
    args = parser.parse_args()

    config = Config()
    model = HybridLM(config).half().eval()
    seen, rows = 16, 64
    inputs = {
        "input_ids": torch.zeros((1, args.prefill), dtype=torch.int32),
        "position_ids": torch.arange(seen, dtype=torch.int32)[None],
        "key_cache": torch.zeros(config.cache_shape(rows), dtype=torch.float16),
        "value_cache": torch.zeros(config.cache_shape(rows), dtype=torch.float16),
        "conv_state": torch.zeros((config.num_layers, 1, config.hidden_size, KERNEL - 1), dtype=torch.float16),
        "rec_state": torch.zeros((config.num_layers, 1, config.hidden_size), dtype=torch.float16),
    }
    capacity = Dim("capacity", min=32, max=config.max_context)
    dynamic: dict = {name: None for name in inputs}
    dynamic["input_ids"] = {1: Dim("tokens", min=1, max=512)}
    dynamic["position_ids"] = {1: Dim("seen", min=1, max=config.max_context)}
    dynamic |= {name: {3: capacity} for name in ("key_cache", "value_cache")}

    converter = TorchConverter()
    converter.add_exported_program(  # export
        decomposed(model, inputs, dynamic),
        input_names=INPUT_NAMES,
        output_names=OUTPUT_NAMES,
        state_names=list(HYBRID_STATE_NAMES),
    )
    save(converter, args.output, "fern-hybrid")


if __name__ == "__main__":
    main()
