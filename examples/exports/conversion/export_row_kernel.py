"""Export the dense decoder with hand-written kernels, which need `--static-ids`: they compute one row."""

from __future__ import annotations

import argparse
from pathlib import Path

import coreai_torch
import torch
from coreai_torch import TorchConverter
from torch.export import Dim

from blocks import Config, DenseLM
from common import save
from kernels import matvec, replace_linears
from names import INPUT_NAMES, KV_STATE_NAMES, OUTPUT_NAMES


def build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=Path("build"))
    parser.add_argument("--static-ids", action=argparse.BooleanOptionalAction, default=True)
    return parser


def main(argv: list[str] | None = None) -> None:
    args = build_parser().parse_args(argv)
    config = Config()
    model = replace_linears(DenseLM(config)).half().eval()

    ids = torch.zeros((1, 1 if args.static_ids else 4), dtype=torch.int32)  # ids-example
    cache = torch.zeros(config.cache_shape(64), dtype=torch.float16)
    example = (ids, torch.arange(16, dtype=torch.int32)[None], cache, cache.clone())
    capacity = Dim("capacity", min=32, max=config.max_context)
    shapes = {
        "input_ids": {1: Dim("tokens", min=1, max=64)},
        "position_ids": {1: Dim("seen", min=1, max=config.max_context)},
        "key_cache": {3: capacity},
        "value_cache": {3: capacity},
    }
    if args.static_ids:
        shapes["input_ids"] = None

    def export_fn(module: torch.nn.Module) -> torch.export.ExportedProgram:
        program = torch.export.export(module, example, dynamic_shapes=shapes, strict=False)
        return program.run_decompositions(coreai_torch.get_decomp_table())

    converter = TorchConverter()
    converter.register_custom_kernels([matvec])
    converter.add_pytorch_module(  # export
        model,
        export_fn=export_fn,
        input_names=INPUT_NAMES,
        output_names=OUTPUT_NAMES,
        state_names=list(KV_STATE_NAMES),
    )
    save(converter, args.output, "pine-kernels")


if __name__ == "__main__":
    main()
