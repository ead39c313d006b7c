"""What a ship review reads: every model of a scan with its probes, its costs and the decision that follows.

All of it is made of reports as plain data (`spec-audit.scan/1`, `probe/1`, `plan/1`), so that a page does not depend on
whether the scan was just run or read from a file.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rules.attach import Given, ambiguous, probe_graphs, table_model
from rules.costs import Cost, DraftLength, costs_of_plan, costs_of_probe, draft_lengths
from rules.decision import USABLE, Decision, decide
from rules.disagree import disagreements
from rules.fixes import FixedBy
from rules.join import JoinError
from rules.speedups import Measured, Predicted, chosen, measured, predicted, recorded
from rules.unchecked import unchecked
from rules.verdict import Verdict

__all__ = ["Given", "JoinError", "Probed", "Review", "Reviewed", "review"]

Data = Mapping[str, Any]
Pairs = frozenset[tuple[str, str]]
"""A probe's entry point and the identifier of the scan's graph that it is."""


@dataclass(frozen=True, slots=True)
class Probed:
    """A probe beside a model. It `decides` when it ran the graph that ships; `verdict` is then of that graph."""

    data: Data
    source: str
    decides: bool
    verdict: str
    costs: tuple[Cost, ...] = ()
    measured: tuple[Measured, ...] = ()
    disagreements: tuple[Data, ...] = ()

    @property
    def says(self) -> bool:
        """Whether it says anything of the bundle: one that did not come to its end can only refute."""
        return self.data["status"] != "refused" or self.verdict == "refuted"


@dataclass(frozen=True, slots=True)
class Reviewed:
    """One model. `costs` come from plans, those of probes stand beside the probe."""

    model: Data
    primary: Data
    others: tuple[Data, ...]
    decision: Decision
    probes: tuple[Probed, ...] = ()
    costs: tuple[Cost, ...] = ()
    drafts: tuple[DraftLength, ...] = ()
    predicted: tuple[Predicted, ...] = ()
    measured: tuple[Measured, ...] = ()
    unchecked: tuple[str, ...] = ()

    @property
    def deciding(self) -> tuple[Probed, ...]:
        return tuple(probe for probe in self.probes if probe.decides)


@dataclass(frozen=True, slots=True)
class Review:
    """`groups` holds the models by decision, none empty. `strays` are probes, and `stray_costs` tables, of no model of
    this scan; `loose` the graphs that belong to no model: other ways of running a script that a recipe ships."""

    scan: Data
    groups: tuple[tuple[Decision, tuple[Reviewed, ...]], ...]
    loose: tuple[Data, ...] = ()
    strays: tuple[Probed, ...] = ()
    stray_costs: tuple[Cost, ...] = ()

    @property
    def graphs(self) -> int:
        """How many graphs the scan found; one that is listed for its exporter as well counts once."""
        return sum(not graph.get("by") for graph in self.scan["graphs"])

    @property
    def models(self) -> tuple[Reviewed, ...]:
        return tuple(model for _, models in self.groups for model in models)


def review(scan: Data, probes: Sequence[Given] = (), plans: Sequence[Given] = ()) -> Review:
    """Join everything; `JoinError` where a report may belong to several models, or is given twice."""
    owners = {graph: model["id"] for model in scan["models"] for graph in model["graphs"]}
    by_model: dict[str, list[tuple[Given, Pairs]]] = {}
    unjoined: list[Given] = []
    strays = []
    for probe in probes:
        pairs = probe_graphs(scan, probe, owners)
        found = {owners[graph] for _, graph in pairs if graph in owners}
        if len(found) > 1:
            raise JoinError(ambiguous(probe, sorted(found)))
        if found:
            joined = by_model.setdefault(found.pop(), [])
            _once(probe, [other for other, _ in joined])
            joined.append((probe, frozenset(pairs)))
        else:
            _once(probe, unjoined)
            unjoined.append(probe)
            strays.append(_probed(probe, frozenset(), "", {}))
    tables: dict[str, list[tuple[Given, Data]]] = {}
    choices: dict[str, list[Data]] = {}
    stray_tables = []
    for at, plan in enumerate(plans):
        _once(plan, [other for other in plans[:at] if other.identifier == plan.identifier])
        for table in plan.data["tables"]:
            name = table_model(scan, plan, table)
            if name:
                tables.setdefault(name, []).append((plan, table))
            else:
                stray_tables.append(table)
        for workload in plan.data.get("workloads", ()):
            name = table_model(scan, plan, {"label": workload["bundle"]})
            choices.setdefault(name, []).append(workload)
    graphs = {graph["id"]: graph for graph in scan["graphs"]}
    models = [
        _reviewed(
            model, graphs, by_model.get(model["id"], []), tables.get(model["id"], []), choices.get(model["id"], [])
        )
        for model in scan["models"]
    ]
    groups = [(decision, tuple(item for item in models if item.decision is decision)) for decision in Decision]
    return Review(
        scan,
        tuple((decision, items) for decision, items in groups if items),
        tuple(graph for graph in scan["graphs"] if graph["id"] not in owners and not graph.get("by")),
        tuple(strays),
        tuple(cost for table in stray_tables for cost in costs_of_plan([table])),
    )


def _once(given: Given, others: Sequence[Given]) -> None:
    """`JoinError` where a report is among those that stand there already: it would count as a second measurement."""
    for other in others:
        if other.data == given.data:
            again = "was given twice" if other.source == given.source else f"is the same report as {other.source}"
            raise JoinError(f"{given.source}: {again}; give it once")


def _reviewed(
    model: Data,
    graphs: Mapping[str, Data],
    probes: Iterable[tuple[Given, Pairs]],
    tables: Iterable[tuple[Given, Data]],
    choices: Iterable[Data],
) -> Reviewed:
    primary = graphs[model["primary"]]
    joined = tuple(_probed(given, pairs, model["primary"], graphs) for given, pairs in probes)
    held = [table for _, table in tables]
    own = {cost.label for probe in joined for cost in probe.costs}
    costs = tuple(cost for cost in costs_of_plan(held) if cost.label not in own)
    deciding = [probe for probe in joined if probe.decides]
    decision = decide(
        Verdict(model["verdict"]),
        FixedBy(model["fixable_by"]),
        [reason["rule"] for reason in primary["reasons"]],
        [(probe.verdict, str(probe.data["scope"])) for probe in deciding if probe.says],
    )
    usable = decision in USABLE
    drafts = draft_lengths([*(cost for probe in deciding for cost in probe.costs), *costs]) if usable else ()
    runs = (*(run for probe in deciding for run in probe.measured), *(run for table in held for run in recorded(table)))
    forecast = (
        *(row for workload in choices for row in chosen(workload)),
        *(row for table in held for row in predicted(table)),
    )
    return Reviewed(
        model,
        primary,
        tuple(graphs[name] for name in model["graphs"] if name != model["primary"]),
        decision,
        joined,
        costs,
        drafts,
        forecast,
        runs,
        unchecked(model, primary, [probe.data for probe in deciding], [probe.data for probe in joined], costs, runs),
    )


def _probed(given: Given, pairs: Pairs, primary: str, graphs: Mapping[str, Data]) -> Probed:
    data = given.data
    own = {graph["name"]: graph["facts"] for graph in data["graphs"]}
    differ = [
        found
        for name, graph in sorted(pairs)
        if name in own and graph in graphs
        for found in disagreements(graphs[graph]["facts"], own[name])
    ]
    names = {name for name, graph in pairs if graph == primary}
    verdicts = {graph["verdict"] for graph in data["graphs"] if graph["name"] in names}
    if data["status"] == "refused":
        verdict = "refuted" if "refuted" in verdicts else "partial"
    else:
        verdict = next((said for said in ("refuted", "partial", "confirmed") if said in verdicts), data["verdict"])
    return Probed(
        data,
        given.source,
        bool(names),
        verdict,
        tuple(costs_of_probe(data)),
        tuple(row for graph in data["graphs"] for row in measured(graph, str(data["scope"]))),
        tuple(differ),
    )
