"""What a probe is asked to do."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from probes.ab.options import AbOptions
from probes.ports import Positions

BLOCK = 32
"""Cache lengths are rounded up to this: some graphs read their cache in blocks."""


class Mode(enum.StrEnum):
    """`ROWS` runs the gates, `VERIFY_COST` the sweep, `ALL` both, `AB` the gates and the speculative loop;
    each inspects first."""

    INSPECT = "inspect"
    ROWS = "rows"
    VERIFY_COST = "verify-cost"
    ALL = "all"
    AB = "ab"

    @property
    def gates(self) -> bool:
        return self in (Mode.ROWS, Mode.ALL, Mode.AB)

    @property
    def sweeps(self) -> bool:
        return self in (Mode.VERIFY_COST, Mode.ALL)


@dataclass(frozen=True, slots=True)
class ProbeOptions:
    """`capacity` 0 and `bandwidth` 0 mean: choose, look up. `bandwidth` is in GB/s. `seconds` limits each step.

    `weight_limit` (bytes; 0: the backend's own) is what the reference evaluates at most. `soak` is a number
    of forwards; 0: no such gate.
    """

    mode: Mode = Mode.ALL
    backend: str = ""
    widths: tuple[int, ...] = tuple(range(1, 17))
    contexts: tuple[int, ...] = (128,)
    capacity: int = 0
    repeats: int = 10
    seed: int = 0
    prefix: int = 40
    positions: Positions | None = None
    graph: str = ""
    seconds: float = 300.0
    bandwidth: float = 0.0
    compute_unit: str = ""
    weight_limit: int = 0
    soak: int = 0
    ab: AbOptions | None = None

    @property
    def widest(self) -> int:
        return max(self.widths)

    def gate_capacity(self, window: int = 0) -> int:
        """Rows that the gates need: prefix, junk and right tokens, and slack."""
        return self.capacity or _rounded(max(self.prefix, window + 8) + 2 * self.widest + 16)

    def sweep_capacity(self) -> int:
        """Rows for the longest context; one length for all contexts, so that it is not what differs."""
        return self.capacity or _rounded(max(self.contexts) + self.widest)

    def ab_capacity(self) -> int:
        """Rows for the longest prompt and budget, and the widest query of the sweep beside them."""
        assert self.ab is not None
        longest = max((len(one.tokens) for one in self.ab.workloads), default=0)
        return self.capacity or _rounded(longest + max(self.ab.budgets) + self.widest)


def _rounded(rows: int) -> int:
    return -(-rows // BLOCK) * BLOCK


def parse_widths(text: str) -> tuple[int, ...]:
    """`1..16`, `1,2,4,8` or both mixed; ascending, from 1 to 256. ValueError says what is wrong."""
    found: set[int] = set()
    for part in text.split(","):
        first, dots, last = part.strip().partition("..")
        try:
            low, high = int(first), int(last if dots else first)
        except ValueError:
            raise ValueError(f"{part.strip()!r} is no S: 1..16 or 1,2,4 was expected") from None
        if not 1 <= low <= high <= 256:
            raise ValueError(f"{part.strip()!r}: S must ascend within 1..256")
        found |= set(range(low, high + 1))
    return tuple(sorted(found))
