"""How far two computations of the same rows may differ, by the coarsest type on the way.

The bounds are relative to the largest |logit|. On Apple's CPU interpreter right graphs give 0.0 when the order of
summation is the same, up to 2e-6 (fp32) and 1.4e-2 (fp16) when it is not; a device's fp16 run gave 0.0078 absolute.
Wrong masks gave 0.15 and more. bfloat16 has three bits less than fp16, so its bounds are wider.

Entries that an exporter suppresses (padding of the vocabulary at -1e4, or at the type's lowest number) are no part of
that scale, nor is an offset that all logits of a row share: against 65504 every delta is small, and every other choice
a near tie.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from probes.backend import Array, Rows

    Numbers = npt.NDArray[np.float64]
    Which = npt.NDArray[np.bool]


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

    `relative` is max |delta| / max |logit|, both over the entries that could be chosen. `flips` are rows whose argmax
    differs, with the gap between the two candidates in the first set, relative to the same scale. `gap` is the smallest
    top-2 gap of any row. `finite` is False when a value is not a number, and then `relative` is infinite.
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


_NEVER = 500.0
"""A logit so far below the largest of its row is never chosen, whatever the temperature."""


def compare(first: Rows, second: Rows) -> Difference:
    """Compare rows [n, vocabulary] that should be the same; ValueError when their shapes differ."""
    import numpy as np

    left, right, finite = _numbers(first, second)
    kept = ~(_suppressed(left) & _suppressed(right))
    scale = max(_scale(left, kept), _scale(right, kept), 1e-30)
    absolute = float(np.abs(left - right).max(where=kept, initial=0.0)) if finite else float("inf")
    best, other = left.argmax(axis=1), right.argmax(axis=1)
    flips = tuple(
        (int(row), float(left[row, best[row]] - left[row, other[row]]) / scale) for row in np.nonzero(best != other)[0]
    )
    top = np.partition(left, -2, axis=1)[:, -2:] if left.shape[1] > 1 else np.zeros((len(left), 2))
    gap = float((top[:, 1] - top[:, 0]).min()) / scale
    return Difference(len(left), absolute, absolute / scale, flips, gap, finite)


def compare_states(first: Array, second: Array) -> Difference:
    """Compare two copies of a state, relative to its largest value; it has no rows to choose from, so no `flips`."""
    import numpy as np

    left, right, finite = _numbers(first, second)
    scale = max(float(np.abs(left).max(initial=0.0)), float(np.abs(right).max(initial=0.0)), 1e-30)
    absolute = float(np.abs(left - right).max(initial=0.0)) if finite else float("inf")
    return Difference(1, absolute, absolute / scale, (), 0.0, finite)


def _numbers(first: Array, second: Array) -> tuple[Numbers, Numbers, bool]:
    """Both in float64 with finite numbers alone, and whether they came so."""
    import numpy as np

    if first.shape != second.shape:
        raise ValueError(f"shape {first.shape} against {second.shape}")
    finite = bool(np.isfinite(first).all() and np.isfinite(second).all())
    left, right = (np.nan_to_num(one.astype(np.float64), posinf=1e38, neginf=-1e38) for one in (first, second))
    return left, right, finite


def _suppressed(rows: Numbers) -> Which:
    below: Which = rows < rows.max(axis=1, keepdims=True) - _NEVER
    return below


def _scale(rows: Numbers, kept: Which) -> float:
    """The largest |logit| of the kept, or less where all logits of a row share an offset, which chooses nothing."""
    import numpy as np

    middle = np.nanmedian(np.where(kept, rows, np.nan), axis=1, keepdims=True)
    largest, spread = (float(np.abs(values).max(where=kept, initial=0.0)) for values in (rows, rows - middle))
    return min(largest, spread)
