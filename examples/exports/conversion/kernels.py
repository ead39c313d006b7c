"""A Metal kernel for decoding: a matrix times one vector."""

from __future__ import annotations

import torch
from coreai_torch import TorchMetalKernel
from torch import nn

SOURCE = """
    uint row = thread_position_in_grid.x;
    float sum = 0.0f;
    for (uint i = 0; i < x.get_size(1); ++i) sum += float(x[0, i]) * float(weight[row, i]);
    y[0, row] = half(sum);
"""


def reference(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    return x @ weight.T


matvec = TorchMetalKernel(
    name="matvec",
    input_names=["x", "weight"],
    result_names=["y"],
    src=SOURCE,
    torch_defn=reference,
)


class MatVec(nn.Module):
    """A linear layer for a query of one row."""

    def __init__(self, linear: nn.Linear) -> None:
        super().__init__()
        self.weight = linear.weight

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = self.weight.shape[0]
        y = matvec(  # one-row-kernel
            x[:, 0],
            self.weight,
            threads_per_grid=(out, 1, 1),
            threads_per_thread_group=(32, 1, 1),
            result_shapes=[[1, out]],
        )
        return y.unsqueeze(1)


def replace_linears(model: nn.Module) -> nn.Module:
    """The feed-forward's projections become kernels."""
    for layer in model.layers:
        for name in ("gate", "up", "down"):
            setattr(layer.mlp, name, MatVec(getattr(layer.mlp, name)))
    return model
