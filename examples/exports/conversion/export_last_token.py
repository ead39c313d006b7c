"""Export the dense decoder for chat: only the last token's logits leave the graph, to save bandwidth."""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path

import torch
from coreai_torch import TorchConverter
from torch.export import Dim

import names
from blocks import Config, DenseLM
from common import decomposed, save


class ChatLM(DenseLM):
    def forward(
        self,
        input_ids: torch.Tensor,
        position_ids: torch.Tensor,
        key_cache: torch.Tensor,
        value_cache: torch.Tensor,
    ) -> torch.Tensor:
        hidden = self.hidden(input_ids, position_ids, key_cache, value_cache)
        hidden = hidden[:, -1:, :]  # one row left
        return self.lm_head(hidden)


def export_fn(model: torch.nn.Module, *, tokens: int = 8, seen: int = 16) -> torch.export.ExportedProgram:
    config = model.config
    cache = torch.zeros(config.cache_shape(64), dtype=torch.float16)
    inputs = {
        "input_ids": torch.zeros((1, tokens), dtype=torch.int32),
        "position_ids": torch.arange(seen, dtype=torch.int32).unsqueeze(0),
        "key_cache": cache,
        "value_cache": cache.clone(),
    }
    capacity = Dim("capacity", min=32, max=config.max_context)
    dynamic = {
        "input_ids": {1: Dim("tokens", min=1, max=512)},
        "position_ids": {1: Dim("seen", min=1, max=config.max_context)},
        "key_cache": {3: capacity},
        "value_cache": {3: capacity},
    }
    return decomposed(model, inputs, dynamic)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-o", "--output", type=Path, default=Path("build"))
    parser.add_argument("--layers", type=int, default=2)
    args, _ = parser.parse_known_args()

    model = ChatLM(Config(num_layers=args.layers)).half().eval()
    converter = TorchConverter().add_pytorch_module(  # export
        model,
        export_fn=partial(export_fn, tokens=8),
        input_names=names.INPUT_NAMES,
        output_names=names.OUTPUT_NAMES,
        state_names=names.KV_STATE_NAMES,
    )
    save(converter, args.output, f"pine-chat-{args.layers}l")


if __name__ == "__main__":
    main()
