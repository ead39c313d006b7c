"""Where a scan of the export script and the shipped bundle disagree.

The graph of the scan is found by the bundle's base name (an unknown part of it is `*`) and the entry point; the
identifier of a graph or a model after `#` chooses one. Where several graphs fit and their facts differ, none is chosen.
"""

from __future__ import annotations

import fnmatch
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

_FACTS = ("kind", "query", "logits", "kv")
_SUFFIXES = (".aimodel", ".mlpackage", ".mlmodelc")


class JoinError(Exception):
    """The scan cannot be read, or it has no graph for the bundle, or several; the message says what to do."""


def load(text: str) -> tuple[dict[str, Any], str]:
    """A scan report and the identifier after `#` (empty without)."""
    name, _, identifier = text.partition("#") if not Path(text).is_file() else (text, "", "")
    path = Path(name)
    try:
        data = json.loads(path.read_text("utf-8"))
    except OSError as error:
        raise JoinError(f"{path}: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise JoinError(f"{path}: not valid JSON ({error})") from None
    if not isinstance(data, dict) or data.get("schema") != "spec-audit.scan/1":
        raise JoinError(f"{path}: not a report of `spec-audit scan --format json` (schema spec-audit.scan/1)")
    return data, identifier


def compare(report: Mapping[str, Any], scan: Mapping[str, Any], identifier: str = "") -> dict[str, Any]:
    """The disagreements of every entry point that the scan knows; JoinError when nothing or too much fits."""
    names = {_base(str(report["bundle"])), str(report.get("files", {}).get("name", ""))} - {""}
    pairs = []
    unmatched = []
    for graph in report["graphs"]:
        candidates = _candidates(scan, names, str(graph["name"]), identifier)
        if not candidates:
            unmatched.append(graph["name"])
            continue
        pairs.append((graph, _one(candidates, str(graph["name"]))))
    if not pairs:
        what = f"identifier {identifier!r}" if identifier else f"bundle {' or '.join(sorted(names))}"
        raise JoinError(f"the scan has no graph for {what}; name one with --against FILE#GRAPH-ID")
    return {
        "root": scan.get("root"),
        "graphs": [
            {
                "graph": graph["name"],
                "scan_graph": found["id"],
                "script": found.get("script"),
                "scan_verdict": found.get("verdict"),
                "disagreements": disagreements(found["facts"], graph["facts"]),
            }
            for graph, found in pairs
        ],
        "unmatched": unmatched,
    }


def _base(bundle: str) -> str:
    name = PurePosixPath(bundle.rstrip("/")).name
    return next((name[: -len(suffix)] for suffix in _SUFFIXES if name.endswith(suffix)), name)


def _candidates(
    scan: Mapping[str, Any], names: Iterable[str], entry_point: str, identifier: str
) -> list[Mapping[str, Any]]:
    graphs = [graph for graph in scan.get("graphs", []) if graph.get("graph") in (entry_point, "*", "")]
    if identifier:
        model = next((model for model in scan.get("models", []) if model.get("id") == identifier), None)
        wanted = {identifier, *(model["graphs"] if model else ())}
        return [graph for graph in graphs if graph["id"] in wanted]
    shipped = {
        graph_id: _base(str(model.get("bundle") or ""))
        for model in scan.get("models", [])
        for graph_id in model.get("graphs", [])
    }
    fitting = [
        graph
        for graph in graphs
        if any(_fits(_base(str(graph.get("bundle") or "")), name) or shipped.get(graph["id"]) == name for name in names)
    ]
    exact = [graph for graph in fitting if _base(str(graph.get("bundle") or "")) in names]
    fitting = exact or fitting
    # What a recipe ships is what was run; a variant is what might have been.
    for kind in ("recipe", "default"):
        chosen = [graph for graph in fitting if graph["invocation"]["kind"] == kind]
        if chosen:
            return chosen
    return fitting


def _fits(pattern: str, name: str) -> bool:
    """Whether a base name of the scan stands for `name`; one that is unknown altogether (`*`) stands for nothing."""
    return bool(pattern.strip("*")) and fnmatch.fnmatchcase(name, pattern.replace("[", "[[]").replace("?", "[?]"))


def _one(candidates: Sequence[Mapping[str, Any]], entry_point: str) -> Mapping[str, Any]:
    """The only candidate, or the first of several whose facts are the same."""
    if len({json.dumps(_plain(graph["facts"]), sort_keys=True) for graph in candidates}) > 1:
        listed = ", ".join(str(graph["id"]) for graph in candidates[:6])
        raise JoinError(
            f"{entry_point}: several graphs of the scan fit ({listed}); choose one with --against FILE#GRAPH-ID"
        )
    return candidates[0]


def _plain(facts: Mapping[str, Any]) -> dict[str, Any]:
    """The values alone: two runs of one script differ in their evidence."""
    states = facts.get("states")
    plain = {key: facts[key]["value"] for key in _FACTS}
    return plain | {"states": None if states is None else sorted(_roles(states).items())}


def disagreements(script: Mapping[str, Any], bundle: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Facts that both sides know and that differ. What one side does not know is no disagreement."""
    found = []
    for key in _FACTS:
        said, is_ = script[key]["value"], bundle[key]["value"]
        if said is None or is_ is None or said == is_:
            continue
        found.append(
            {
                "fact": key,
                "script": said,
                "bundle": is_,
                "message": f"the script says {key} {said}, the bundle has {is_}",
                "evidence": script[key]["evidence"],
            }
        )
    if script["states"] is not None and bundle["states"] is not None:
        found.extend(_state_disagreements(script, bundle))
    return found


def _state_disagreements(script: Mapping[str, Any], bundle: Mapping[str, Any]) -> list[dict[str, Any]]:
    said, has = _roles(script["states"]), _roles(bundle["states"])
    messages = [
        f"the script declares state {name} ({said[name]}), the bundle has none" for name in sorted(said.keys() - has)
    ]
    messages += [
        f"the bundle has state {name} ({has[name]}), the script declares none" for name in sorted(has.keys() - said)
    ]
    messages += [
        f"state {name}: the script says {said[name]}, the bundle looks like {has[name]}"
        for name in sorted(said.keys() & has)
        if said[name] != has[name]
        and "unknown" not in (said[name], has[name])
        and not _both_cache(said[name], has[name])
    ]
    evidence = script.get("states_evidence", [])
    return [
        {"fact": "states", "script": said, "bundle": has, "message": message, "evidence": evidence}
        for message in messages
    ]


def _roles(states: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    return {str(state["name"]): str(state["role"]) for state in states}


def _both_cache(left: str, right: str) -> bool:
    """Whether both roles are of a position-indexed cache: a name tells keys from latents no better than that."""
    return all(role.startswith("kv-") or role == "mla-latent" for role in (left, right))
