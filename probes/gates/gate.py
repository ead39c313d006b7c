"""What a gate is, what it is given, and what it answers."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from probes.tolerance import Difference, Tolerance

if TYPE_CHECKING:
    from probes.gates.bench import Bench


class Outcome(enum.StrEnum):
    """A gate's verdict, and the probe's. `PARTIAL`: not run, or nothing that one should rely on."""

    CONFIRMED = "confirmed"
    REFUTED = "refuted"
    PARTIAL = "partial"


@dataclass(frozen=True, slots=True)
class GateResult:
    """The answer of one gate: the verdict, one sentence why, and the numbers that show it.

    `ran` is False when nothing was compared. `observed` are traits that the run itself showed (`ring-cache`,
    `unwritten-state`, `baked-length`) with a detail.
    """

    gate: str
    verdict: Outcome
    reason: str
    numbers: Mapping[str, Any] = field(default_factory=dict)
    tolerance: Tolerance | None = None
    ran: bool = True
    observed: Mapping[str, str] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        return {
            "gate": self.gate,
            "verdict": str(self.verdict),
            "ran": self.ran,
            "reason": self.reason,
            "thresholds": self.tolerance.as_json() if self.tolerance else None,
            "numbers": dict(self.numbers),
            "observed": dict(self.observed),
        }

    @classmethod
    def not_run(cls, gate: str, reason: str) -> GateResult:
        return cls(gate, Outcome.PARTIAL, reason, ran=False)


class Gate(Protocol):
    """A module of `probes.gates` is one gate: its name, its question, and how it is run on an opened graph."""

    NAME: str
    QUESTION: str

    def run(self, bench: Bench) -> GateResult: ...


def graded(difference: Difference, tolerance: Tolerance) -> Outcome:
    """The verdict of a comparison. A differing argmax within the tolerance is a near tie, not a defect."""
    if not difference.finite or difference.relative > tolerance.refuse:
        return Outcome.REFUTED
    return Outcome.CONFIRMED if difference.relative <= tolerance.accept else Outcome.PARTIAL


_STILL = 1e-6


def still(noise: Difference) -> float:
    """Up to this share of the scale nothing has moved; `noise` is what the very same forwards differ by, run twice."""
    return max(_STILL, 4 * noise.relative) if noise.finite else _STILL


def worst(outcomes: list[Outcome]) -> Outcome:
    """The worst of several verdicts: refuted, then partial."""
    return next((one for one in (Outcome.REFUTED, Outcome.PARTIAL) if one in outcomes), Outcome.CONFIRMED)


def shown(difference: Difference) -> str:
    """A difference in words: `delta 0.213 of the scale, argmax 8 of 8`."""
    if not difference.finite:
        return "not a number came out"
    return f"delta {difference.relative:.3g} of the scale, argmax {difference.equal} of {difference.rows}"
