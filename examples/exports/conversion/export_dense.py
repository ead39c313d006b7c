"""Export the dense decoder. `--static-ids` pins the query to one token, which old runtimes want."""

from __future__ import annotations

import argparse
from pathlib import Path

import torch
from coreai_torch import TorchConverter
from torch.export import Dim

from blocks import DenseLM
from common import decomposed, save
from names import INPUT_NAMES, KV_STATE_NAMES, OUTPUT_NAMES


def parse_args() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default=None, help="checkpoint folder; a small random model without one")
    parser.add_argument("--output", type=Path, default=Path("build"))
    parser.add_argument("--name", default="pine-1b")
    parser.add_argument("--dtype", choices=["float16", "float32"], default="float16")
    parser.add_argument("--max-context", type=int, default=4096)
    parser.add_argument("--static-ids", action="store_true", help="input_ids is [1, 1]")
    return parser.parse_args()


def sample(model: DenseLM, static: bool, dtype: torch.dtype) -> tuple[dict, dict]:
    """Example inputs and their dynamic dimensions."""
    tokens = 1 if static else 8
    rows, seen = 64, 16
    inputs = {
        "input_ids": torch.zeros((1, tokens), dtype=torch.int32),  # ids-example
        "position_ids": torch.arange(seen, dtype=torch.int32)[None],
        "key_cache": torch.zeros(model.config.cache_shape(rows), dtype=dtype),
        "value_cache": torch.zeros(model.config.cache_shape(rows), dtype=dtype),
    }
    capacity = Dim("capacity", min=32, max=model.config.max_context)
    dynamic = {
        "input_ids": None if static else {1: Dim("tokens", min=1, max=2048)},  # ids-dim
        "position_ids": {1: Dim("seen", min=1, max=model.config.max_context)},
        "key_cache": {3: capacity},
        "value_cache": {3: capacity},
    }
    return inputs, dynamic


def main() -> None:
    args = parse_args()
    dtype = getattr(torch, args.dtype)
    model = DenseLM.from_pretrained(args.model).to(dtype)
    model.config.max_context = args.max_context
    inputs, dynamic = sample(model, args.static_ids, dtype)
    converter = TorchConverter()
    converter.add_exported_program(  # export
        decomposed(model, inputs, dynamic),
        input_names=INPUT_NAMES,
        output_names=OUTPUT_NAMES,
        state_names=KV_STATE_NAMES,
    )
    suffix = "_static" if args.static_ids else ""
    save(converter, args.output, f"{args.name}_{args.dtype}{suffix}")


if __name__ == "__main__":
    main()
