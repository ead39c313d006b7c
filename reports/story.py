"""One model's story, from a scan's plain data: what decides its verdict, and what would change it."""

from __future__ import annotations

import difflib
import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from reports.wording import plain
from rules.expect import matches


class Unknown(Exception):
    """No model, or more than one, goes by that name."""


def story(scan: Mapping[str, Any], name: str) -> str:
    """The story as text. `name` is an identifier, a recipe's table, or a pattern that fits one model."""
    model = _model(scan["models"], name)
    graphs = {graph["id"]: graph for graph in scan["graphs"]}
    return "\n".join(plain(line) for line in _lines(model, graphs)) + "\n"


def _model(models: Sequence[Mapping[str, Any]], name: str) -> Mapping[str, Any]:
    exact = [model for model in models if model["id"] == name]
    found = exact or [model for model in models if matches(name, model["id"])]
    if len(found) == 1:
        return found[0]
    if found:
        raise Unknown(f"{name!r} fits {len(found)} models: {', '.join(model['id'] for model in found[:5])}; name one")
    names = [part for model in models for part in (model["id"], model["id"].rpartition("#")[2])]
    close = difflib.get_close_matches(name, names, n=1)
    listed = ", ".join(str(model["id"]) for model in models[:5]) or "none"
    raise Unknown(
        f"no model is called {name!r}; " + (f"did you mean {close[0]!r}?" if close else f"there are: {listed}")
    )


def _lines(model: Mapping[str, Any], graphs: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    graph = graphs[model["primary"]]
    reasons = graph["reasons"]
    by = f", by {reasons[0]['rule']}" if reasons else ""
    yield f"{model['id']} is {model['verdict']}{by}."
    yield ""
    yield f"It is judged by graph {graph['graph']} of {graph['bundle'] or 'an unknown bundle'}."
    run = shlex.join([graph["script"], *map(str, graph["invocation"]["argv"])])
    yield f"It comes from {run}, line {graph['line']}."
    yield ""
    yield "What was established:"
    yield from _facts(graph["facts"])
    for reason in reasons:
        yield ""
        yield f"{reason['rule']}: {reason['message']}"
        yield from _places(reason["evidence"])
        if reason.get("waived"):
            yield f"  waived: {reason['waived']} (the verdict stays)"
    yield ""
    yield from _ways_out(model, graph)
    for advice in graph["advice"]:
        yield f"Advice {advice['rule']}: {advice['message']}"
    for identifier in model["graphs"]:
        if identifier != model["primary"]:
            yield f"Also of this model: {identifier} is {graphs[identifier]['verdict']}."


def _facts(facts: Mapping[str, Any]) -> Iterator[str]:
    states = facts["states"]
    shown = "unknown" if states is None else ", ".join(f"{s['name']} ({s['role']})" for s in states) or "none"
    yield f"  states: {shown}"
    yield from _places(facts["states_evidence"], "    ")
    for key in ("query", "logits", "kv"):
        fact = facts[key]
        yield f"  {key}: {fact.get('value') or 'unknown: ' + str(fact.get('reason') or 'no reason was recorded')}"
        yield from _places(fact["evidence"], "    ")


def _places(evidence: Sequence[Mapping[str, Any]], indent: str = "  ") -> Iterator[str]:
    for place in evidence:
        where = f"{place['path']}:{place['line']}" if place["line"] else place["path"]
        yield f"{indent}{where}  {place.get('note', '')}".rstrip()


def _ways_out(model: Mapping[str, Any], graph: Mapping[str, Any]) -> Iterator[str]:
    if model["verdict"] == "eligible":
        yield "Nothing has to change. A probe of the bundle confirms it, and says which draft length pays."
        return
    fix = model.get("fix") or next((reason.get("fix") for reason in graph["reasons"] if reason.get("fix")), "")
    yield f"What would change it: {fix}." if fix else "Nothing is known that would change it."
    for change in graph.get("changes", ()):
        says = change.get("verdict") or "no longer exported"
        because = f" by {', '.join(change['reasons'])}" if change.get("reasons") else ""
        yield f"  tried: {change.get('text')}: {says}{because}"
