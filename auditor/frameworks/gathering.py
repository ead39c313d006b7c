"""coreai-torch's gathers: rows of weights picked by an index (the experts of a token), and products with them."""

from __future__ import annotations

from auditor.interpreter import Interpreter
from auditor.places import Site
from auditor.torch.layers import attribute
from auditor.torch.ops.products import matmul
from auditor.torch.tensors import as_tensor, result, unknown_tensor
from auditor.values import NONE, Args, Const, Instance, Native, Tensor, Value, as_dim, is_none


def gather(it: Interpreter, args: Args, site: Site | None) -> Value:
    """`_gather(x, indices, num_batch_axes=0)`, the helper that the composite layer calls."""
    axes = as_dim(args.get(2, "num_batch_axes") or Const(0))
    x, index = as_tensor(args.get(0, "x") or NONE), as_tensor(args.get(1, "indices") or NONE)
    _experts(it, site)
    return _gathered(x, index, axes if isinstance(axes, int) else None, site)


def gather_matmul(it: Interpreter, obj: Instance, args: Args, site: Site | None) -> Value:
    """`GatherMM(num_batch_axes)(lhs, rhs, lhs_indices=None, rhs_indices=None)`: a product of what was gathered."""
    _experts(it, site)
    axes = attribute(obj, "num_batch_axes")
    batch = axes if isinstance(axes, int) else 0 if "num_batch_axes" not in obj.attrs else None
    sides = []
    for position, name in enumerate(("lhs", "rhs")):
        side = as_tensor(args.get(position, name) or NONE)
        index = args.get(position + 2, f"{name}_indices") or NONE
        if not is_none(index):
            side = _gathered(side, as_tensor(index), batch, site)
        if side is None or side.shape is None:
            return unknown_tensor("a gathered product of tensors that are not known", site, *args.all())
        sides.append(side)
    return matmul(it, Args(list(sides)), site)


def _gathered(x: Tensor | None, index: Tensor | None, axes: int | None, site: Site | None) -> Tensor:
    """`x[:, ..., index]`: the axes of the index stand in the place of the one behind the batch axes."""
    if x is None or index is None or x.shape is None or index.shape is None or axes is None or axes >= len(x.shape):
        return unknown_tensor("a gather of tensors that are not known", site, *(t for t in (x, index) if t is not None))
    return result((*x.shape[:axes], *index.shape, *x.shape[axes + 1 :]), x, index, site=site)


def _experts(it: Interpreter, site: Site | None) -> None:
    if it.events is not None and site is not None:
        it.events.experts.append(site)


NATIVES: dict[str, Value] = {"coreai_torch.composite_ops._gather_mm._gather": Native("gather", gather)}
