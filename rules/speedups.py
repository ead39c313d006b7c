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
    """The A/B record of a probe's graph or of a plan's table; nothing where there is none.

    Records come from the probe and from runners on other systems, so names are taken as they are found: a list of rows,
    or of workloads that hold rows, or one row. What a record does not state stays None.
    """
    record = holder.get("ab")
    if isinstance(record, list):
        record = {"rows": record}
    if not isinstance(record, Mapping):
        return
    where = str(record.get("scope") or scope or holder.get("scope") or "")
    given = {"workload": str(holder["label"])} if "label" in holder else {}
    yield from _rows(record, given, where)


_NESTED = ("workloads", "rows", "arms", "runs", "results", "cells", "pairs", "policies")
_NAMES = {
    "workload": ("workload", "split", "task"),
    "k": ("k", "K", "policy", "draft_length", "name", "label"),
    "tokens_per_forward": ("tokens_per_forward", "tpf"),
    "tokens_per_second": ("tokens_per_second", "on_tps", "tps", "on_tokens_per_second"),
    "speedup": ("speedup", "speed_up"),
    "low": ("speedup_low", "low"),
    "high": ("speedup_high", "high"),
    "interval": ("speedup_interval", "interval", "ci"),
    "lossless": ("lossless",),
    "budget": ("budget", "token_budget", "max_tokens"),
    "predicted": ("predicted", "predicted_speedup"),
    "left_out": ("left_out", "excluded", "refused"),
}


def _rows(record: Data, above: Data, scope: str) -> Iterator[Measured]:
    """The rows of a record. Its workload and budget hold for the rows inside it; a total does not."""
    said: dict[str, Any] = {**above, **_said(record)}
    inner = _inner(record)
    if inner:
        passed: dict[str, Any] = {key: said[key] for key in ("workload", "budget") if key in said}
        for item in inner:
            named = {"workload": item["name"]} if _inner(item) and isinstance(item.get("name"), str) else {}
            yield from _rows(item, {**passed, **named}, scope)
    elif any(said.get(key) is not None for key in ("speedup", "tokens_per_second", "tokens_per_forward", "left_out")):
        yield _row(said, scope)


def _inner(record: Data) -> list[Data]:
    return [item for key in _NESTED for item in _items(record.get(key))]


def _items(value: Any) -> list[Data]:
    if isinstance(value, Mapping) and value and all(isinstance(item, Mapping) for item in value.values()):
        return [{"name": name, **item} for name, item in value.items()]
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []


def _said(record: Data) -> dict[str, Any]:
    return {key: record[name] for key, names in _NAMES.items() for name in reversed(names) if name in record}


def _row(said: Data, scope: str) -> Measured:
    speedup, interval = said.get("speedup"), said.get("interval")
    low, high = said.get("low"), said.get("high")
    if isinstance(speedup, Mapping):
        inner = speedup
        speedup = next((inner[key] for key in ("value", "median", "speedup", "ratio") if key in inner), None)
        low, high, interval = inner.get("low", low), inner.get("high", high), inner.get("interval", interval)
    if isinstance(interval, list) and len(interval) == 2:
        low, high = interval
    predicted = said.get("predicted")
    if isinstance(predicted, Mapping):
        predicted = predicted.get("speedup")
    left_out = said.get("left_out")
    return Measured(
        str(said.get("workload") or ""),
        "" if said.get("k") is None or said.get("k") == said.get("workload") else str(said["k"]),
        scope,
        _number(said.get("tokens_per_forward")),
        _number(said.get("tokens_per_second")),
        _number(speedup),
        _number(low),
        _number(high),
        _flag(said.get("lossless")),
        budget if isinstance(budget := said.get("budget"), int) else None,
        _number(predicted),
        left_out if isinstance(left_out, str) else "yes" if left_out is True else "",
    )


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _flag(value: Any) -> bool | None:
    return value if isinstance(value, bool) else None
