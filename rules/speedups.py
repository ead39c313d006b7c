"""Speed-ups, predicted from costs and acceptance, and measured off against on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

Data = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Predicted:
    """What a plan expects of one draft length: of a workload whose rounds were recorded (`label` and `budget` say
    which), or of the acceptance that the plan was given. `cost` is the mean c_v of a round; `best` the plan's choice.
    """

    label: str
    scope: str
    policy: str
    cost: float
    tokens_per_round: float
    speedup: float
    budget: int | None = None
    best: bool = False


@dataclass(frozen=True, slots=True)
class Measured:
    """A run of the loop with drafts against the same run without. None: not measured, or not stated.

    `policy` says how many tokens are drafted (`K=2`, adaptive), `alone` whether a run that was not lossless is so when
    it is run again by itself; `left_out` is why the figures do not count, `not_run` why there are none. `host` is the
    share of the time outside the forwards, `effect` what the interval says: gains, loses or even.
    """

    workload: str
    policy: str
    scope: str
    drafter: str = ""
    tokens_per_forward: float | None = None
    tokens_per_second: float | None = None
    speedup: float | None = None
    low: float | None = None
    high: float | None = None
    lossless: bool | None = None
    alone: bool | None = None
    budget: int | None = None
    predicted: float | None = None
    left_out: str = ""
    host: float | None = None
    effect: str = ""
    not_run: str = ""

    @property
    def counts(self) -> bool:
        return not self.left_out and not self.not_run


def predicted(table: Data) -> Iterator[Predicted]:
    """The predictions of a plan's table, K=0 (no drafts) left out."""
    for row in table["predictions"]:
        if row["k"]:
            yield Predicted(
                str(table["label"]),
                str(table["scope"]),
                f"K={row['k']}",
                row["c_v"],
                row["tokens_per_round"],
                row["speedup"],
            )


def chosen(workload: Data) -> Iterator[Predicted]:
    """The policies of a plan's workload, as it orders them: recorded rounds on a table of costs."""
    for row in workload["policies"]:
        yield Predicted(
            f"{workload['workload']}, {workload['drafter']}",
            str(workload.get("scope") or ""),
            str(row["policy"]),
            row["mean_c_v"],
            row["tokens_per_forward"],
            row["speedup"],
            workload["budget"],
            row["policy"] == workload["best"],
        )


def measured(graph: Data, scope: str) -> Iterator[Measured]:
    """The rows of a probe's A/B record, by workload; nothing where there is none."""
    for workload in (graph.get("ab") or {}).get("workloads", ()):
        for row in workload["rows"]:
            low, high = row.get("interval") or (None, None)
            spoiled = "; ".join(row["spoiled"]) or "spoiled"
            yield Measured(
                str(workload["name"]),
                str(row["policy"]),
                scope,
                str(row["drafter"]),
                row["tokens_per_forward"],
                row["tokens_per_second"],
                row["speedup"],
                low,
                high,
                row["lossless"],
                (row.get("rerun") or {}).get("lossless"),
                workload["budget"],
                row["predicted"],
                spoiled if row["status"] != "valid" else "",
                row["host"]["share"],
                str(row["effect"]),
            )
        for row in workload["not_run"]:
            yield Measured(
                str(workload["name"]),
                str(row["policy"]),
                scope,
                str(row["drafter"]),
                budget=workload["budget"],
                not_run=str(row["reason"]),
            )


def recorded(table: Data) -> Iterator[Measured]:
    """The A/B record of a plan's table, as it was measured elsewhere; nothing where there is none."""
    record = table.get("ab")
    if record:
        yield Measured(
            str(table["label"]),
            "",
            str(table["scope"]),
            tokens_per_second=record.get("on_tps"),
            speedup=record.get("speedup"),
            lossless=record.get("lossless"),
        )
