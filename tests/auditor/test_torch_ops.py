"""Operations of PyTorch, called by themselves: what shape comes out."""

from __future__ import annotations

from auditor.torch.ops.reductions import quantile
from auditor.torch.ops.sorting import buckets, positions
from auditor.values import Args, Const, Tensor


def test_shapes_of_quantiles_and_positions() -> None:
    table, levels, some = Tensor((8, 32)), Tensor((16,)), Tensor((8, 5))
    run = lambda op, *given: op(None, Args(list(given)), None)  # noqa: E731
    assert run(quantile, table, levels, Const(1)).shape == (16, 8)
    assert run(quantile, table, Const(0.5), Const(1)).shape == (8,)
    assert run(quantile, table, Const(0.5)).shape == ()
    assert run(positions, table, some).shape == (8, 5)
    assert run(buckets, some, levels).shape == (8, 5)
