"""What a runtime says about one entry point: its inputs, states and outputs, before anything is run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

DYNAMIC = -1


@dataclass(frozen=True, slots=True)
class Port:
    """A named tensor. A dynamic dimension is -1; `dtype` is the name that numpy uses (`float16`, `int32`)."""

    name: str
    shape: tuple[int, ...]
    dtype: str

    @property
    def is_float(self) -> bool:
        return "float" in self.dtype

    @property
    def is_integer(self) -> bool:
        return "int" in self.dtype

    def __str__(self) -> str:
        return f"{self.name} [{','.join('?' if dim == DYNAMIC else str(dim) for dim in self.shape)}] {self.dtype}"

    def as_json(self) -> dict[str, Any]:
        return {"name": self.name, "shape": list(self.shape), "dtype": self.dtype}

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> Port:
        return cls(str(data["name"]), tuple(int(dim) for dim in data["shape"]), str(data["dtype"]))


@dataclass(frozen=True, slots=True)
class Signature:
    """One entry point."""

    name: str
    inputs: tuple[Port, ...]
    states: tuple[Port, ...]
    outputs: tuple[Port, ...]

    def as_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "inputs": [port.as_json() for port in self.inputs],
            "states": [port.as_json() for port in self.states],
            "outputs": [port.as_json() for port in self.outputs],
        }

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> Signature:
        ports = (tuple(Port.of(item) for item in data[key]) for key in ("inputs", "states", "outputs"))
        return cls(str(data["name"]), *ports)


def position_axis(state: Port) -> int | None:
    """The dimension of a state that counts positions, as far as its declaration tells: the last dynamic one.

    A first dimension that is dynamic beside another is the batch. A state without a dynamic dimension may be a cache of
    a fixed capacity, a ring, or no cache at all, so None says nothing about it.
    """
    dynamic = [axis for axis, dim in enumerate(state.shape) if dim == DYNAMIC]
    return dynamic[-1] if dynamic else None


def fixed_axis(state: Port) -> int | None:
    """Where a cache of fixed shape has its capacity, by the layouts in use; None when its rank fits neither.

    `[..., capacity, size]` is Apple's layout for macOS, `[..., 1, capacity]` the one for iOS.
    """
    if len(state.shape) < 3:
        return None
    return len(state.shape) - (1 if state.shape[-2] == 1 else 2)
