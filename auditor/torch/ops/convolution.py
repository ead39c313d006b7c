"""Convolutions, and other operations on what lies behind the channels."""

from __future__ import annotations

from auditor import dims
from auditor.dims import Dim
from auditor.interpreter import Interpreter
from auditor.places import Site
from auditor.torch import recurrences, row_mixing, shapes
from auditor.torch.ops.op import Op, first
from auditor.torch.shapes import Shape
from auditor.torch.tensors import as_tensor, result, size, sizes, unknown_tensor
from auditor.values import NONE, Args, Const, Seq, Value


def convolution(spatial: int, transposed: bool = False) -> Op:
    def run(it: Interpreter, args: Args, site: Site | None) -> Value:
        x, weight = as_tensor(args.get(0, "input") or NONE), as_tensor(args.get(1, "weight") or NONE)
        if x is None or x.shape is None or weight is None or weight.shape is None or len(weight.shape) != spatial + 2:
            return unknown_tensor(
                "a convolution of tensors that are not known", site, *(t for t in (x, weight) if t is not None)
            )
        kernel = list(weight.shape[2:])
        stride, padding = _each(args.get(3, "stride"), spatial, 1), _each(args.get(4, "padding"), spatial, 0)
        dilation = _each(args.get(5, "dilation") if not transposed else args.kw.get("dilation"), spatial, 1)
        groups = size(args.kw.get("groups", Const(1))) or 1
        channels = dims.mul(weight.shape[1], groups) if transposed else weight.shape[0]
        shape = convolved_shape(x.shape, channels, kernel, stride, padding, dilation, transposed)
        return recurrences.computed(it, row_mixing.convolved(result(shape, x, weight), x, kernel, site))

    return run


def _each(value: Value | None, count: int, default: int) -> list[Dim]:
    if value is None:
        return [default] * count
    if isinstance(value, Seq):
        return [size(i) or default if not isinstance(i, Const) else i.value for i in value.items] * (
            count if len(value.items) == 1 else 1
        )
    found = size(value)
    return [default if found is None else found] * count


def convolved_shape(
    x: Shape,
    channels: Dim,
    kernel: list[Dim],
    stride: list[Dim],
    padding: list[Dim],
    dilation: list[Dim],
    transposed: bool,
) -> Shape:
    count = len(kernel)
    spatial = x[-count:]
    if transposed:
        new = [shapes.deconvolved(d, k, s, p) for d, k, s, p in zip(spatial, kernel, stride, padding, strict=True)]
    else:
        new = [
            shapes.convolved(d, k, s, p, g)
            for d, k, s, p, g in zip(spatial, kernel, stride, padding, dilation, strict=True)
        ]
    return (*x[: -count - 1], channels, *new)


def interpolate(it: Interpreter, args: Args, site: Site | None) -> Value:
    t = first(args)
    given = sizes(it, [args.get(1, "size") or NONE], site) if args.get(1, "size") is not None else None
    if t.shape is None or given is None:
        return unknown_tensor("interpolate() to a size that is not known", site, t)
    return result((*t.shape[: -len(given)], *given), t)
