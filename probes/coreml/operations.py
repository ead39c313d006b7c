"""The operations of decoders that coremltools defines without a value: evaluated here, by their documentation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np


def silu(op: Any) -> Any:
    """x * sigmoid(x)."""
    x = op.x.val
    return x / (1 + np.exp(-x))


def conv(op: Any) -> Any:
    """A convolution over one or two dimensions, in groups: x [n, c_in, *d], weight [c_out, c_in / groups, *k]."""
    x, weight = op.x.val, op.weight.val
    spatial = x.ndim - 2
    if spatial not in (1, 2):
        raise ValueError(f"a convolution over {spatial} dimensions is not evaluated here")
    strides = _per_dimension(op.strides, spatial)
    dilations = _per_dimension(op.dilations, spatial)
    groups = int(op.groups.val) if op.groups is not None else 1
    extents = [dilation * (size - 1) + 1 for size, dilation in zip(weight.shape[2:], dilations, strict=True)]
    x = np.pad(x, [(0, 0), (0, 0), *_padding(op, x.shape[2:], extents, strides)])
    axes = tuple(range(2, 2 + spatial))
    windows = np.lib.stride_tricks.sliding_window_view(x, tuple(extents), axis=axes)  # type: ignore[call-overload]
    step = tuple(slice(None, None, stride) for stride in strides)
    hole = tuple(slice(None, None, dilation) for dilation in dilations)
    windows = windows[(slice(None), slice(None), *step, *hole)]
    inside, outside = x.shape[1] // groups, weight.shape[0] // groups
    parts = []
    for group in range(groups):
        seen = windows[:, group * inside : (group + 1) * inside]
        kernel = weight[group * outside : (group + 1) * outside]
        over = [1, *range(2 + spatial, 2 + 2 * spatial)]
        found = np.tensordot(seen, kernel, axes=(over, [1, *range(2, 2 + spatial)]))
        parts.append(np.moveaxis(found, -1, 1))
    out = np.concatenate(parts, axis=1)
    if op.bias is not None:
        out = out + op.bias.val.reshape(1, -1, *(1,) * spatial)
    return out.astype(np.float32)


def _per_dimension(given: Any, spatial: int) -> list[int]:
    return [1] * spatial if given is None else [int(one) for one in np.atleast_1d(given.val)]


def _padding(op: Any, sizes: Any, extents: list[int], strides: list[int]) -> list[tuple[int, int]]:
    kind = str(op.pad_type.val) if op.pad_type is not None else "valid"
    if kind == "valid":
        return [(0, 0)] * len(extents)
    if kind == "custom":
        flat = [int(one) for one in op.pad.val]
        return [(flat[2 * index], flat[2 * index + 1]) for index in range(len(extents))]
    found = []
    for size, extent, stride in zip(sizes, extents, strides, strict=True):
        total = max((-(-size // stride) - 1) * stride + extent - size, 0)
        less, more = total // 2, total - total // 2
        found.append((less, more) if kind == "same" else (more, less))
    return found


def gather_nd(op: Any) -> Any:
    """x[indices], the last dimension of the indices running over the first ones of x."""
    if op.batch_dims is not None and int(op.batch_dims.val):
        raise ValueError("gather_nd with batch dimensions is not evaluated here")
    return op.x.val[tuple(np.moveaxis(op.indices.val, -1, 0))]


def one_hot(op: Any) -> Any:
    """`on_value` where the index is, `off_value` elsewhere, in a new dimension `axis`."""
    size = int(op.one_hot_vector_size.val)
    on = 1 if op.on_value is None else op.on_value.val
    off = 0 if op.off_value is None else op.off_value.val
    chosen = np.arange(size) == np.asarray(op.indices.val)[..., None]
    axis = -1 if op.axis is None else int(op.axis.val)
    return np.moveaxis(np.where(chosen, on, off), -1, axis)


BY_HAND: dict[str, Callable[[Any], Any]] = {"conv": conv, "gather_nd": gather_nd, "one_hot": one_hot, "silu": silu}
