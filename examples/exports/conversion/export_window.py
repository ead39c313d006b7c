"""Export a prefill graph that takes 64 tokens at a time, and a decode graph of one token, into one bundle."""

from __future__ import annotations

import argparse
from pathlib import Path

import torch
from coreai_torch import TorchConverter
from torch.export import Dim

from blocks import Config, DenseLM
from common import decomposed, save
from names import INPUT_NAMES, KV_STATE_NAMES, OUTPUT_NAMES

PREFILL = 64
ENTRY_POINTS = {"prefill": PREFILL, "decode": 1}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=Path("build"))
    parser.add_argument("--only", choices=sorted(ENTRY_POINTS), help="one of the two graphs")
    args = parser.parse_args()

    config = Config(max_context=2048)
    model = DenseLM(config).half().eval()
    cache = torch.zeros(config.cache_shape(config.max_context), dtype=torch.float16)
    converter = TorchConverter()
    for entry, width in ENTRY_POINTS.items():
        if args.only and entry != args.only:
            continue
        inputs = dict(
            input_ids=torch.zeros(1, width, dtype=torch.int32),  # ids-example
            position_ids=torch.arange(2 * PREFILL, dtype=torch.int32)[None, :],
            key_cache=cache,
            value_cache=cache.clone(),
        )
        dynamic = {name: None for name in inputs}
        dynamic["position_ids"] = {1: Dim("seen", min=PREFILL, max=config.max_context - 1)}
        converter.add_exported_program(  # export
            decomposed(model, inputs, dynamic),
            input_names=INPUT_NAMES,
            output_names=OUTPUT_NAMES,
            state_names=KV_STATE_NAMES,
            entrypoint_name=entry,
        )
    save(converter, args.output, "pine-windowed")


if __name__ == "__main__":
    main()
