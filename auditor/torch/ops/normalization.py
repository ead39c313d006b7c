"""Normalizations: the shape stays, and values are scaled by those that lie along some axes, maybe those of the rows."""

from __future__ import annotations

from collections.abc import Iterable

from auditor import operators
from auditor.containers.lengths import integer
from auditor.interpreter import Interpreter
from auditor.places import Site
from auditor.torch import row_mixing, shapes
from auditor.torch.ops.elementwise import same
from auditor.torch.ops.op import Op, first
from auditor.values import Args, Seq, Value


def of_last_axes(it: Interpreter, args: Args, site: Site | None) -> Value:
    """`layer_norm(input, normalized_shape)` and `rms_norm`."""
    return of_last(it, args, axes_of(args.get(1, "normalized_shape")), site)


def axes_of(shape: Value | None) -> int:
    """How many axes a normalized shape has; 1 where nobody knows."""
    return len(shape.items) if isinstance(shape, Seq) and shape.exact else 1


def of_last(it: Interpreter, args: Args, count: int, site: Site | None) -> Value:
    rank = len(first(args).shape or ())
    return _scaled(it, args, range(max(rank - count, 0), rank), site)


def of_axes_from(number: int) -> Op:
    """`group_norm` (whose groups lie along axis 1) and `instance_norm`."""
    return lambda it, args, site: _scaled(it, args, range(number, len(first(args).shape or ())), site)


def of_batch(it: Interpreter, args: Args, site: Site | None) -> Value:
    """`batch_norm(input, running_mean, running_var, weight, bias, training)`: constants, unless it is training."""
    training = args.get(5, "training")
    if training is None or operators.truth(training) is False:
        return same(it, args, site)
    rank = len(first(args).shape or ())
    return _scaled(it, args, (n for n in range(rank) if n != 1), site)


def along_axis(it: Interpreter, args: Args, site: Site | None) -> Value:
    """`normalize(input, p=2.0, dim=1)`."""
    axis, rank = integer(args.get(2, "dim"), 1), len(first(args).shape or ())
    return _scaled(it, args, range(rank) if axis is None else (shapes.normal(axis, rank),), site)


def _scaled(it: Interpreter, args: Args, axes: Iterable[int], site: Site | None) -> Value:
    return row_mixing.normed(it, same(it, args, site), first(args), axes, site)
