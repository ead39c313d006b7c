"""What every export script does at its end: an exported program into a converter, and the asset to disk."""

from __future__ import annotations

from pathlib import Path

import coreai_torch
import torch
from coreai_torch import TorchConverter


def decomposed(model: torch.nn.Module, inputs: dict[str, torch.Tensor], dynamic: dict | None):
    with torch.no_grad():
        program = torch.export.export(model, (), inputs, dynamic_shapes=dynamic, strict=False)
    return program.run_decompositions(coreai_torch.get_decomp_table())


def save(converter: TorchConverter, output: Path, name: str) -> Path:
    path = output / f"{name}.aimodel"
    output.mkdir(parents=True, exist_ok=True)
    converter.to_coreai().save_asset(path)
    print(f"wrote {path}")
    return path
