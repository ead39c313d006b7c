"""How far two computations of the same rows may differ, by the coarsest type on the way.

The bounds are relative to the largest |logit|. On Apple's CPU interpreter right graphs give 0.0 when the order of
summation is the same, up to 2e-6 (fp32) and 1.4e-2 (fp16) when it is not; a device's fp16 run gave 0.0078 absolute.
Wrong masks gave 0.15 and more. bfloat16 has three bits less than fp16, so its bounds are wider.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from probes.backend import Rows


@dataclass(frozen=True, slots=True)
class Tolerance:
    """Up to `accept` two results are the same; beyond `refuse` they are not; between, nobody should rely on it."""

    precision: str
    accept: float
    refuse: float

    def as_json(self) -> dict[str, Any]:
        return {"precision": self.precision, "accept": self.accept, "refuse": self.refuse}


_BOUNDS = {"float64": (1e-4, 1e-3), "float32": (1e-4, 1e-3), "float16": (2e-2, 5e-2), "bfloat16": (5e-2, 1e-1)}


def tolerance(precision: str) -> Tolerance:
    """The bounds for a type; an eight-bit type gets those of bfloat16."""
    return Tolerance(precision, *_BOUNDS.get(precision, _BOUNDS["bfloat16"]))


@dataclass(frozen=True, slots=True)
class Difference:
    """Two sets of rows compared.

    `relative` is max |delta| / max |logit|. `flips` are rows whose argmax differs, with the gap between the two
    candidates in the first set, relative to the same scale. `gap` is the smallest top-2 gap of any row. `finite` is
    False when a value is not a number, and then `relative` is infinite.
    """

    rows: int
    absolute: float
    relative: float
    flips: tuple[tuple[int, float], ...]
    gap: float
    finite: bool

    @property
    def equal(self) -> int:
        """Rows with the same argmax."""
        return self.rows - len(self.flips)

    def as_json(self) -> dict[str, Any]:
        return {
            "rows": self.rows,
            "argmax_equal": self.equal,
            "max_delta": self.absolute if self.finite else None,
            "max_delta_relative": self.relative if self.finite else None,
            "top2_gap_relative": self.gap,
            "finite": self.finite,
            "flips": [{"row": row, "gap_relative": gap} for row, gap in self.flips],
        }


def compare(first: Rows, second: Rows) -> Difference:
    """Compare rows [n, vocabulary] that should be the same; ValueError when their shapes differ."""
    import numpy as np

    if first.shape != second.shape:
        raise ValueError(f"rows of shape {first.shape} against {second.shape}")
    finite = bool(np.isfinite(first).all() and np.isfinite(second).all())
    left, right = np.nan_to_num(first.astype(np.float64)), np.nan_to_num(second.astype(np.float64))
    scale = max(float(np.abs(left).max()), float(np.abs(right).max()), 1e-30)
    absolute = float(np.abs(left - right).max()) if finite else float("inf")
    best, other = left.argmax(axis=1), right.argmax(axis=1)
    flips = tuple(
        (int(row), float(left[row, best[row]] - left[row, other[row]]) / scale) for row in np.nonzero(best != other)[0]
    )
    top = np.partition(left, -2, axis=1)[:, -2:] if left.shape[1] > 1 else np.zeros((len(left), 2))
    gap = float((top[:, 1] - top[:, 0]).min()) / scale
    return Difference(len(left), absolute, absolute / scale, flips, gap, finite)
