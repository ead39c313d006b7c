"""What an A/B run is asked to do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from probes.ab.drafters import Match


@dataclass(frozen=True, slots=True)
class Workload:
    """A prompt in tokens; `text` tells whether it was text, `source` names its file."""

    name: str
    tokens: tuple[int, ...]
    source: str


@dataclass(frozen=True, slots=True)
class AbOptions:
    """`policies` as `policies.parse` reads them; `band` in tokens per second; `retries` of spoiled rows."""

    workloads: tuple[Workload, ...]
    policies: tuple[str, ...] = ("1", "2", "4", "8", "adaptive")
    drafters: tuple[str, ...] = ("ngram",)
    match: Match = field(default_factory=Match)
    budgets: tuple[int, ...] = (256,)
    pairs: int = 1
    retries: int = 1
    band: tuple[float, float] | None = None
    stop: tuple[int, ...] = ()
    shipped_tok_s: float | None = None
    shipped_tokens: tuple[int, ...] | None = None
    force: bool = False

    def as_json(self) -> dict[str, Any]:
        return {
            "policies": list(self.policies),
            "drafters": list(self.drafters),
            "match": [self.match.least, self.match.most],
            "budgets": list(self.budgets),
            "pairs": self.pairs,
            "retries": self.retries,
            "band": list(self.band) if self.band else None,
            "stop": list(self.stop),
            "force": self.force,
            "workloads": {one.name: {"source": one.source, "tokens": len(one.tokens)} for one in self.workloads},
        }


def rows_of(options: AbOptions) -> Sequence[tuple[str, str]]:
    """(drafter, policy) of every row."""
    return [(drafter, policy) for drafter in options.drafters for policy in options.policies]
