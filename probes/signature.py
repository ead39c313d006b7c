"""What a runtime says about one entry point: its inputs, states and outputs, before anything is run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

DYNAMIC = -1


@dataclass(frozen=True, slots=True)
class Port:
    """A named tensor. A dynamic dimension is -1; `dtype` is the name that numpy uses (`float16`, `int32`).

    Where a format declares them: `bounds` has the smallest and largest size of each dimension (-1: no largest),
    `shapes` the enumerated shapes in their order, `default` the shape without a choice. Each is empty otherwise.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    bounds: tuple[tuple[int, int], ...] = ()
    shapes: tuple[tuple[int, ...], ...] = ()
    default: tuple[int, ...] = ()

    @classmethod
    def ranged(cls, name: str, dtype: str, bounds: Sequence[tuple[int, int]], default: Sequence[int] = ()) -> Port:
        """A port with a range for each dimension; one whose ends are the same is fixed."""
        shape = tuple(low if low == high else DYNAMIC for low, high in bounds)
        if DYNAMIC not in shape:
            return cls(name, shape, dtype)
        return cls(name, shape, dtype, tuple(bounds), (), tuple(default))

    @classmethod
    def enumerated(cls, name: str, dtype: str, shapes: Sequence[Sequence[int]], default: Sequence[int] = ()) -> Port:
        """A port of a few shapes; a dimension in which they differ is dynamic."""
        listed = tuple(tuple(map(int, shape)) for shape in shapes)
        if len({len(shape) for shape in listed}) != 1:
            return cls(name, tuple(default), dtype)
        if len(set(listed)) == 1:
            return cls(name, listed[0], dtype)
        shape = tuple(dims[0] if len(set(dims)) == 1 else DYNAMIC for dims in zip(*listed, strict=True))
        return cls(name, shape, dtype, (), listed, tuple(default))

    @property
    def is_float(self) -> bool:
        return "float" in self.dtype

    @property
    def is_integer(self) -> bool:
        return "int" in self.dtype

    def sizes(self, axis: int) -> tuple[int, ...]:
        """The sizes that an enumeration allows in a dimension, ascending; empty when there is no enumeration."""
        return tuple(sorted({shape[axis] for shape in self.shapes}))

    def most(self, axis: int) -> int | None:
        """The largest size that a dimension may have; None when there is no limit, or none is declared."""
        if self.shapes:
            return self.sizes(axis)[-1]
        if self.bounds:
            return None if self.bounds[axis][1] < 0 else self.bounds[axis][1]
        return None if self.shape[axis] == DYNAMIC else self.shape[axis]

    def __str__(self) -> str:
        return f"{self.name} [{','.join(self._shown(axis) for axis in range(len(self.shape)))}] {self.dtype}"

    def _shown(self, axis: int) -> str:
        if self.shape[axis] != DYNAMIC:
            return str(self.shape[axis])
        if self.shapes:
            return "|".join(map(str, self.sizes(axis)))
        if self.bounds:
            low, high = self.bounds[axis]
            return f"{low}..{high if high >= 0 else '?'}"
        return "?"

    def as_json(self) -> dict[str, Any]:
        found: dict[str, Any] = {"name": self.name, "shape": list(self.shape), "dtype": self.dtype}
        for key in ("bounds", "shapes"):
            if getattr(self, key):
                found[key] = [list(item) for item in getattr(self, key)]
        if self.default:
            found["default"] = list(self.default)
        return found

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> Port:
        bounds = tuple((int(low), int(high)) for low, high in data.get("bounds", ()))
        shapes = tuple(tuple(map(int, shape)) for shape in data.get("shapes", ()))
        shape, default = tuple(map(int, data["shape"])), tuple(map(int, data.get("default", ())))
        return cls(str(data["name"]), shape, str(data["dtype"]), bounds, shapes, default)


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
