"""Speed-ups, predicted from costs and acceptance, and measured off against on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

Data = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Predicted:
    """What a plan expects of one K under the acceptance that it was given."""

    label: str
    scope: str
    k: int
    c_v: float
    tokens_per_round: float
    tokens_per_second: float
    speedup: float


@dataclass(frozen=True, slots=True)
class Measured:
    """A run of the loop with drafts against the same run without. None: not measured, or not stated."""

    workload: str
    k: str
    scope: str
    tokens_per_forward: float | None = None
    tokens_per_second: float | None = None
    speedup: float | None = None
    low: float | None = None
    high: float | None = None
    lossless: bool | None = None
    budget: int | None = None
    predicted: float | None = None
    left_out: str = ""


def predicted(table: Data) -> Iterator[Predicted]:
    """The predictions of a plan's table, K=0 (no drafts) left out."""
    for row in table["predictions"]:
        if row["k"]:
            yield Predicted(
                str(table["label"]),
                str(table["scope"]),
                row["k"],
                row["c_v"],
                row["tokens_per_round"],
                row["tokens_per_second"],
                row["speedup"],
            )


def measured(holder: Data, scope: str = "") -> Iterator[Measured]:
    """The A/B record of a probe's graph or of a plan's table; nothing where there is none."""
    record = holder.get("ab")
    if not isinstance(record, Mapping):
        return
    where = str(record.get("scope") or scope or holder.get("scope") or "")
    if "on_tps" in record:
        yield Measured(
            str(record.get("workload") or holder.get("label") or ""),
            "",
            where,
            tokens_per_second=_number(record.get("on_tps")),
            speedup=_number(record.get("speedup")),
            lossless=_flag(record.get("lossless")),
        )


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _flag(value: Any) -> bool | None:
    return value if isinstance(value, bool) else None
