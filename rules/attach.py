"""Which model of a scan a probe, or a table of costs, belongs to: as named, as compared, else by the bundle's name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rules.join import JoinError, bundle_names, candidates, fits
from rules.models import base_name

Data = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Given:
    """A report that was given beside the scan: its data, the name of its file, and what was written after `#`."""

    data: Data
    source: str
    identifier: str = ""


def probe_graphs(scan: Data, probe: Given, owners: Mapping[str, str]) -> list[tuple[str, str]]:
    """Pairs of the probe's graph and the scan's; empty when the scan has no such bundle."""
    data = probe.data
    known = {graph["id"] for graph in scan["graphs"]}
    names = [str(graph["name"]) for graph in data["graphs"]] or [""]
    if probe.identifier:
        if probe.identifier not in known and probe.identifier not in {model["id"] for model in scan["models"]}:
            raise JoinError(f"{probe.source}: the scan has no graph or model {probe.identifier!r}")
        pairs = _by_name(scan, probe, names, owners)
        # Whoever names a model says what the bundle is, whatever its entry point is called.
        primaries = {model["id"]: model["primary"] for model in scan["models"]}
        chosen = primaries.get(probe.identifier, probe.identifier)
        return pairs or [(str(data["decode_graph"] or names[0]), chosen)]
    against = data.get("against")
    if against:
        pairs = [(str(item["graph"]), str(item["scan_graph"])) for item in against.get("graphs", ())]
        for _, graph in pairs:
            if graph not in known:
                raise JoinError(
                    f"{probe.source}: it was compared with the graph {graph!r}, which this scan does not have; give "
                    f"the scan that it was compared with, or name a model: {probe.source}#MODEL-ID"
                )
        return pairs
    return _by_name(scan, probe, names, owners)


def _by_name(scan: Data, probe: Given, names: Sequence[str], owners: Mapping[str, str]) -> list[tuple[str, str]]:
    primaries = {model["primary"] for model in scan["models"]}
    pairs = []
    for name in names:
        found = [graph["id"] for graph in candidates(scan, bundle_names(probe.data), name or None, probe.identifier)]
        models = {owners[graph] for graph in found if graph in owners}
        if len(models) > 1:
            raise JoinError(ambiguous(probe, sorted(models)))
        chosen = [graph for graph in found if graph in primaries] or found
        pairs += [(name, graph) for graph in chosen[:1]]
    return pairs


def ambiguous(given: Given, models: Sequence[str]) -> str:
    """What to say where several models fit."""
    return (
        f"{given.source}: several models of the scan fit ({', '.join(models[:6])}); name the one that was meant: "
        f"{given.source}#MODEL-ID"
    )


def table_model(scan: Data, plan: Given, table: Data) -> str:
    """The model whose costs a plan's table holds: as named, else by the bundle in its label; empty when none is."""
    if plan.identifier:
        owners = {graph: model["id"] for model in scan["models"] for graph in model["graphs"]}
        named = {model["id"] for model in scan["models"]}
        found = plan.identifier if plan.identifier in named else owners.get(plan.identifier, "")
        if not found:
            raise JoinError(f"{plan.source}: the scan has no graph or model {plan.identifier!r}")
        return found
    name = base_name(str(table["label"]).partition(":")[0])
    bundles = {model["id"]: base_name(model["bundle"]) for model in scan["models"]}
    fitting = [model for model, bundle in bundles.items() if bundle == name]
    fitting = fitting or [model for model, bundle in bundles.items() if fits(bundle, name)]
    if len(fitting) > 1:
        raise JoinError(ambiguous(plan, fitting))
    return fitting[0] if fitting else ""
