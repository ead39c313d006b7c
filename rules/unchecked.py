"""What nobody looked at. Silence is never a pass, so a report says it of every model."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from rules.costs import Cost, sweeps
from rules.models import base_name, may_be
from rules.speedups import Measured

Data = Mapping[str, Any]


def unchecked(
    model: Data,
    primary: Data,
    deciding: Sequence[Data],
    probes: Sequence[Data],
    costs: Sequence[Cost],
    runs: Sequence[Measured],
) -> tuple[str, ...]:
    """One sentence for each thing that was not checked of a model; `deciding` are the probes of what ships."""
    rules = {reason["rule"] for reason in primary["reasons"]}
    if model["verdict"] == "out" and not probes:
        known = "it is no decoder" if "not-a-decoder" in rules else "its source rules it out"
        return (f"No bundle was opened or run: {known}, so there is nothing to confirm.",)
    return tuple(dict.fromkeys((*_of_recipe(model, primary), *_sentences(model, deciding, probes, costs, runs))))


def _of_recipe(model: Data, primary: Data) -> Iterator[str]:
    """A bundle that was renamed after the run: the best graph of the run was judged, and that may be another one."""
    written = primary["bundle"]
    if model["recipe"] and len(model["graphs"]) > 1 and written and not may_be(written, model["bundle"]):
        yield (
            f"The recipe names {model['bundle']}, and its run writes {base_name(written)} and others: which of them "
            "ships is not known, and the best one is judged."
        )


def _sentences(
    model: Data, deciding: Sequence[Data], probes: Sequence[Data], costs: Sequence[Cost], runs: Sequence[Measured]
) -> Iterator[str]:
    if not deciding:
        bundle = model["bundle"] or "the bundle"
        yield f"No probe of {bundle} was given: whether the shipped file is what the script exports is not known."
        if probes:
            yield "The probes below ran other bundles or entry points of this model, not the one that ships."
    for probe in deciding:
        yield from _of_probe(probe)
    devices = [probe for probe in deciding if probe["scope"] == "device" and probe["status"] != "refused"]
    if deciding and not devices:
        yield "Nothing was run on a device: correctness there and every cost of a device are not known."
    swept = [cost for probe in deciding for graph in probe["graphs"] for cost, _ in sweeps(graph)]
    timed = [sweep for sweep in swept if sweep["status"] == "ok"]
    if not timed and not any(cost.status == "ok" for cost in costs):
        yield "The cost of a verify pass was not measured, so no draft length is recommended."
    elif len({sweep["context"] for sweep in timed}) == 1:
        context = timed[0]["context"]
        yield f"Costs were measured at one context length ({context} tokens); longer ones may move the steps."
    if not any(run.counts for run in runs):
        spoiled = any(run.left_out for run in runs)
        what = "No valid run" if spoiled else "No run"
        yield f"{what} with drafts was timed against one without: the speed-up on a workload is not measured."
    skipped: dict[tuple[str, str], list[str]] = {}
    for run in runs:
        if run.not_run:
            skipped.setdefault((f"{run.drafter} {run.policy}", run.not_run), []).append(run.workload)
    for (what, why), workloads in skipped.items():
        yield f"{what} was not run on {', '.join(dict.fromkeys(workloads))}: {why}."


def _of_probe(probe: Data) -> Iterator[str]:
    if probe["status"] == "refused":
        why = "; ".join(probe["reasons"]) or "no reason given"
        yield f"The probe of {probe['bundle']} did not come to its end: {why}."
    for graph in probe["graphs"]:
        if graph["not_run"]:
            yield f"Entry point {graph['name']} was not run: {graph['not_run']}."
        yield from (
            f"Gate {gate['gate']} of {graph['name']} did not run: {gate['reason']}."
            for gate in graph["gates"]
            if not gate["ran"]
        )
        yield from _of_costs(graph)
        record = graph.get("ab") or {}
        yield from (f"The runs with drafts of {graph['name']}: {reason}." for reason in record.get("reasons", ()))


def _of_costs(graph: Data) -> Iterable[str]:
    for cost, during in sweeps(graph):
        if cost["status"] != "ok":
            why = "; ".join(cost["reasons"])
            where = f" ({during})" if during else ""
            yield f"The costs of {graph['name']} at context {cost['context']}{where} were refused: {why}."
        elif (cost.get("plausibility") or {}).get("judged") is False:
            why = cost["plausibility"].get("why_not") or "no reason given"
            yield f"Whether the times of {graph['name']} are plausible was not judged: {why}."
