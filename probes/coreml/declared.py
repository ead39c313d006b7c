"""What a description allows of shapes. The program itself does not know: 17 rows run on a model declared for 16."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from probes.ports import Ports
from probes.roles import role_of
from probes.signature import Port, Signature, fixed_axis

if TYPE_CHECKING:
    from probes.backend import Array


def check(signature: Signature, inputs: Mapping[str, Array]) -> None:
    """ValueError unless every input has a declared shape, and enumerated ones have shapes of the same index."""
    for port in signature.inputs:
        if not allows(port, inputs[port.name].shape):
            raise ValueError(f"{port.name} of shape {list(inputs[port.name].shape)} is not declared: {port}")
    enumerated = [port for port in signature.inputs if port.shapes]
    if len(enumerated) < 2 or len({len(port.shapes) for port in enumerated}) != 1:
        return
    for together in zip(*(port.shapes for port in enumerated), strict=True):
        if all(shape == inputs[port.name].shape for port, shape in zip(enumerated, together, strict=True)):
            return
    given = ", ".join(f"{port.name} {list(inputs[port.name].shape)}" for port in enumerated)
    raise ValueError(f"{given}: enumerated shapes go together by index, and these do not")


def allows(port: Port, shape: tuple[int, ...]) -> bool:
    """Whether a port takes that shape."""
    if port.shapes:
        return shape in port.shapes
    if len(shape) != len(port.shape):
        return False
    for axis, size in enumerate(shape):
        low = port.bounds[axis][0] if port.bounds else port.shape[axis]
        most = port.most(axis)
        if size < low or (most is not None and size > most):
            return False
    return True


def longest(signature: Signature, found: Ports) -> int | None:
    """Rows of the shortest cache, and no more than the mask has columns for; None where nothing says."""
    rows = []
    for port in signature.states:
        axis = fixed_axis(port)
        if role_of(port)[0].is_kv and axis is not None:
            rows.append(port.shape[axis])
    if found.mask is not None and found.mask.shape:
        most = found.mask.most(len(found.mask.shape) - 1)
        rows += [most] if most is not None else []
    return min(rows, default=None)
