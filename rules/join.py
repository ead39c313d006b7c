"""Which graph of a scan a shipped bundle is: by the bundle's base name and the entry point.

An unknown part of a base name is `*`. The identifier of a graph or a model chooses one where several fit; where several
fit and nothing chooses, none is taken.
"""

from __future__ import annotations

import fnmatch
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rules.models import base_name

FACTS = ("kind", "query", "logits", "kv")
"""The facts that have one value; `states` is a list beside them."""


class JoinError(Exception):
    """A report cannot be read or joined: nothing fits, or too much does. The message says what to do."""


def bundle_names(probe: Mapping[str, Any]) -> frozenset[str]:
    """The base names that a probe's bundle goes by: its file's, and the one in its metadata."""
    files = probe.get("files") or {}
    return frozenset({base_name(str(probe["bundle"])), str(files.get("name", ""))} - {""})


def candidates(
    scan: Mapping[str, Any], names: Iterable[str], entry_point: str | None, identifier: str = ""
) -> list[Mapping[str, Any]]:
    """The graphs of a scan report that may be `entry_point` of a bundle (any entry point: None).

    With an `identifier`, that graph or the graphs of that model. Else by base name: exact names before partly known
    ones, and what a recipe ships before what might have been run.
    """
    wanted = set(names)
    graphs = [
        graph for graph in scan.get("graphs", []) if entry_point is None or graph.get("graph") in (entry_point, "*", "")
    ]
    if identifier:
        model = next((model for model in scan.get("models", []) if model.get("id") == identifier), None)
        chosen = {identifier, *(model["graphs"] if model else ())}
        return [graph for graph in graphs if graph["id"] in chosen]
    graphs = [graph for graph in graphs if not graph.get("by")]  # the graph of a run, listed once more
    shipped = {
        graph_id: base_name(str(model.get("bundle") or ""))
        for model in scan.get("models", [])
        for graph_id in model.get("graphs", [])
    }
    fitting = [
        graph
        for graph in graphs
        if any(
            fits(base_name(str(graph.get("bundle") or "")), name) or shipped.get(graph["id"]) == name for name in wanted
        )
    ]
    exact = [graph for graph in fitting if base_name(str(graph.get("bundle") or "")) in wanted]
    fitting = exact or fitting
    for kind in ("recipe", "default"):
        of_kind = [graph for graph in fitting if graph["invocation"]["kind"] == kind]
        if of_kind:
            return of_kind
    return fitting


def fits(pattern: str, name: str) -> bool:
    """Whether a base name of the scan stands for `name`; one that is unknown altogether (`*`) stands for nothing."""
    return bool(pattern.strip("*")) and fnmatch.fnmatchcase(name, pattern.replace("[", "[[]").replace("?", "[?]"))


def same_facts(graphs: Sequence[Mapping[str, Any]]) -> bool:
    """Whether graphs differ in nothing that is compared; two runs of one script differ in their evidence."""
    return len({json.dumps(_plain(graph["facts"]), sort_keys=True) for graph in graphs}) <= 1


def _plain(facts: Mapping[str, Any]) -> dict[str, Any]:
    states = facts.get("states")
    plain = {key: facts[key]["value"] for key in FACTS}
    return plain | {"states": None if states is None else sorted(roles(states).items())}


def roles(states: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """What each state holds, by its name."""
    return {str(state["name"]): str(state["role"]) for state in states}
