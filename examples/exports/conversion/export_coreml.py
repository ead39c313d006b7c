"""Convert the dense decoder to Core ML: a flexible query with RangeDim, the KV cache as states."""

from __future__ import annotations

import argparse
from pathlib import Path

import coremltools as ct
import numpy as np
import torch

from blocks import Config, DenseLM


class StatefulLM(torch.nn.Module):
    """The decoder with its cache in buffers, which Core ML turns into states."""

    def __init__(self, model: DenseLM, context: int) -> None:
        super().__init__()
        self.model = model
        shape = model.config.cache_shape(context)
        self.register_buffer("keyCache", torch.zeros(shape))
        self.register_buffer("valueCache", torch.zeros(shape))

    def forward(self, input_ids: torch.Tensor, position_ids: torch.Tensor) -> torch.Tensor:
        return self.model(input_ids, position_ids, self.keyCache, self.valueCache)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=Path("build"))
    parser.add_argument("--context", type=int, default=512)
    parser.add_argument("--query", choices=["range", "enumerated", "one"], default="range")
    args = parser.parse_args()

    model = StatefulLM(DenseLM(Config(max_context=args.context)), args.context).eval()
    example = (torch.zeros((1, 4), dtype=torch.int32), torch.arange(8, dtype=torch.int32)[None])
    traced = torch.jit.trace(model, example, check_trace=False)

    seen = ct.RangeDim(lower_bound=1, upper_bound=args.context, default=8)
    if args.query == "range":
        ids_shape = (1, ct.RangeDim(lower_bound=1, upper_bound=64, default=4))  # ids-range
    elif args.query == "enumerated":
        ids_shape = ct.EnumeratedShapes(shapes=[(1, 1), (1, 4), (1, 8)], default=(1, 4))  # ids-enumerated
    else:
        ids_shape = (1, 1)  # ids-one
    cache_shape = tuple(model.keyCache.shape)
    mlmodel = ct.convert(  # export
        traced,
        inputs=[
            ct.TensorType(name="input_ids", shape=ids_shape, dtype=np.int32),
            ct.TensorType(name="position_ids", shape=(1, seen), dtype=np.int32),
        ],
        outputs=[ct.TensorType(name="logits", dtype=np.float16)],
        states=[
            ct.StateType(wrapped_type=ct.TensorType(shape=cache_shape, dtype=np.float16), name=name)
            for name in ("keyCache", "valueCache")  # states
        ],
        minimum_deployment_target=ct.target.iOS18,
    )
    args.output.mkdir(parents=True, exist_ok=True)
    mlmodel.save(str(args.output / f"pine-{args.query}.mlpackage"))


if __name__ == "__main__":
    main()
