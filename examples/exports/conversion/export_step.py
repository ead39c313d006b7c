"""Export one decode step of the dense decoder: the query is one token, written into the script."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parent))

from coreai_torch import TorchConverter

from blocks import DenseLM
from common import decomposed, save
from names import INPUT_NAMES, KV_STATE_NAMES, OUTPUT_NAMES


def step_inputs(model: DenseLM) -> dict[str, torch.Tensor]:
    shape = model.config.cache_shape(model.config.max_context)
    return {
        "input_ids": torch.zeros((1, 1), dtype=torch.int32),  # pinned-by-literal
        "position_ids": torch.arange(16, dtype=torch.int32).reshape(1, -1),
        "key_cache": torch.zeros(shape, dtype=torch.float16),
        "value_cache": torch.zeros(shape, dtype=torch.float16),
    }


class StepExporter:
    """Keeps the model and the converter together, as a class of exporters does."""

    name = "pine-step"
    states = KV_STATE_NAMES

    def __init__(self, output: Path, checkpoint: str | None = None) -> None:
        self.output = output
        self.model = DenseLM.from_pretrained(checkpoint).half()

    @property
    def dynamic_shapes(self) -> dict:
        seen = torch.export.Dim("seen", min=1, max=self.model.config.max_context - 1)
        return {"input_ids": None, "position_ids": {1: seen}, "key_cache": None, "value_cache": None}

    def run(self) -> Path:
        program = decomposed(self.model, step_inputs(self.model), self.dynamic_shapes)
        converter = TorchConverter()
        converter.add_exported_program(  # export
            program,
            input_names=INPUT_NAMES,
            output_names=OUTPUT_NAMES,
            state_names=self.states,
        )
        return save(converter, self.output, self.name)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=Path("build"))
    parser.add_argument("--checkpoint")
    options = parser.parse_args()
    StepExporter(options.output, options.checkpoint).run()
