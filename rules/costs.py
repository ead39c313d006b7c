"""The cost of a verify pass by S, whichever report it stands in, and the draft lengths that it offers."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Data = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class CostPoint:
    """c_v at one S, with its interval where there are samples; times in ms."""

    s: int
    ms: float
    c_v: float | None
    low: float | None = None
    high: float | None = None
    first_ms: float | None = None

    @property
    def finite(self) -> bool:
        """Whether a plot can show it."""
        bounds = (value for value in (self.low, self.high) if value is not None)
        return self.c_v is not None and all(math.isfinite(value) for value in (self.c_v, *bounds))


@dataclass(frozen=True, slots=True)
class Cost:
    """One sweep or one table. `status`: ok, too-coarse or refused, and then `reasons` say why."""

    label: str
    scope: str
    context: int | None
    status: str
    reasons: tuple[str, ...]
    points: tuple[CostPoint, ...]
    plateaus: tuple[Data, ...]
    avoid: tuple[int, ...]
    measure_next: tuple[int, ...]
    note: str = ""
    during: str = ""
    """The workload that a sweep of an A/B record was taken for; its context is the middle of that text."""

    @property
    def drawable(self) -> tuple[CostPoint, ...]:
        """The points that a plot can show; none of a run that was refused."""
        return () if self.status == "refused" else tuple(point for point in self.points if point.finite)


@dataclass(frozen=True, slots=True)
class DraftLength:
    """A K at the top of a plateau: what its verify pass costs, and the tokens a round that it has to beat."""

    k: int
    c_v: float | None
    bar: float | None
    scope: str
    context: int | None


def sweeps(graph: Data) -> Iterator[tuple[Data, str]]:
    """The sweeps of a probe's graph and those of its A/B record, each with the workload that it was taken for."""
    yield from ((cost, "") for cost in graph["verify_cost"])
    for bed in (graph.get("ab") or {}).get("workloads", ()):
        if bed["verify_cost"]:
            yield bed["verify_cost"], f"{bed['name']}, budget {bed['budget']}"


def costs_of_probe(probe: Data) -> Iterator[Cost]:
    """Every sweep of a probe's graphs, in its order."""
    for graph in probe["graphs"]:
        for cost, during in sweeps(graph):
            stairs = cost.get("staircase") or {}
            refused = cost["status"] != "ok"
            yield Cost(
                f"{probe['bundle']}:{graph['name']}, context {cost['context']}",
                str(cost["scope"]),
                int(cost["context"]),
                "refused" if refused else str(stairs.get("status", "ok")),
                tuple(dict.fromkeys(map(str, (*cost["reasons"], *stairs.get("reasons", ()))))),
                tuple(
                    CostPoint(
                        point["s"],
                        point["median_ms"],
                        point["c_v"],
                        point["c_v_low"],
                        point["c_v_high"],
                        point.get("first_ms"),
                    )
                    for point in cost["points"]
                ),
                () if refused else tuple(stairs.get("plateaus", ())),
                () if refused else tuple(stairs.get("avoid", ())),
                tuple(stairs.get("measure_next", ())),
                f"{cost.get('repeats', '?')} rounds over all S, seed {cost.get('seed', '?')}, "
                f"a cache of {cost.get('capacity') or '?'} rows",
                during,
            )


def costs_of_plan(tables: Iterable[Data]) -> Iterator[Cost]:
    """Every table of a plan."""
    for table in tables:
        yield Cost(
            str(table["label"]),
            str(table["scope"]),
            table.get("context"),
            str(table["status"]),
            tuple(map(str, table["reasons"])),
            tuple(CostPoint(point["s"], point["ms"], point.get("c_v")) for point in table["points"]),
            tuple(table["plateaus"]) if table["status"] == "ok" else (),
            tuple(table["avoid"]),
            tuple(table["measure_next"]),
            f"read from {table['source']}",
        )


def draft_lengths(costs: Sequence[Cost]) -> tuple[DraftLength, ...]:
    """The plateau tops that were measured on a device; on nothing else only where no device was measured."""
    found = [
        DraftLength(plateau["k"], plateau["c_v"], plateau["bar"], cost.scope, cost.context)
        for cost in costs
        if cost.status == "ok"
        for plateau in cost.plateaus
        if plateau["k"]
    ]
    device = [draft for draft in found if draft.scope == "device"]
    unique = {(draft.k, draft.scope): draft for draft in reversed(device or found)}
    return tuple(unique[key] for key in sorted(unique))
