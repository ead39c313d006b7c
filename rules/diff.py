"""What changed between two scans, from their plain data: who became eligible, who lost it, and by which change."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rules.models import base_name
from rules.verdict import Verdict
from rules.version import NAME, VERSION

SCHEMA = "spec-audit.diff/1"
_FACTS = ("kind", "query", "logits", "kv")
_ELIGIBLE = str(Verdict.ELIGIBLE)


def diff(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """The models whose verdict or deciding facts differ. A model that was eligible and is gone has lost it."""
    pairs = _pairs(old["models"], new["models"])
    graphs = [{graph["id"]: graph for graph in scan["graphs"]} for scan in (old, new)]
    models = [item for before, after in pairs if (item := _compared(before, after, graphs))]
    changes = [item["change"] for item in models]
    return {
        "schema": SCHEMA,
        "tool": {"name": NAME, "version": VERSION},
        "lost": changes.count("lost"),
        "became": changes.count("became"),
        "unchanged": len(pairs) - len(models),
        "models": sorted(models, key=lambda item: (_ORDER.index(item["change"]), item["id"])),
    }


_ORDER = ("lost", "became", "verdict", "facts", "appeared", "gone")
_Pair = tuple[Mapping[str, Any] | None, Mapping[str, Any] | None]


def _pairs(old: Sequence[Mapping[str, Any]], new: Sequence[Mapping[str, Any]]) -> list[_Pair]:
    """By identifier; a model that moved is recognised by its bundle's name where that is the only one on both sides."""
    after = {model["id"]: model for model in new}
    before = {model["id"]: model for model in old}
    pairs: list[_Pair] = [(model, after[name]) for name, model in before.items() if name in after]
    gone = [model for name, model in before.items() if name not in after]
    fresh = [model for name, model in after.items() if name not in before]
    for model in gone:
        name = base_name(model["bundle"])
        twins = [other for other in fresh if base_name(other["bundle"]) == name]
        rivals = [other for other in gone if base_name(other["bundle"]) == name]
        moved = twins[0] if name.strip("*") and "*" not in name and len(twins) == len(rivals) == 1 else None
        pairs.append((model, moved))
        fresh = [other for other in fresh if other is not moved]
    return [*pairs, *((None, model) for model in fresh)]


def _compared(
    before: Mapping[str, Any] | None, after: Mapping[str, Any] | None, graphs: Sequence[Mapping[str, Any]]
) -> dict[str, Any] | None:
    here = after or before
    assert here is not None
    was, now = (model["verdict"] if model else None for model in (before, after))
    changes: list[dict[str, Any]] = []
    if before and after:
        changes = list(_changes(graphs[0][before["primary"]], graphs[1][after["primary"]]))
        if before["id"] != after["id"]:
            changes.insert(0, _change("identifier", before["id"], after["id"], []))
    if was == _ELIGIBLE and now != _ELIGIBLE:
        change = "lost"
    elif now == _ELIGIBLE and was != _ELIGIBLE:
        change = "became"
    elif before is None or after is None:
        change = "appeared" if after else "gone"
    elif was != now:
        change = "verdict"
    elif changes:
        change = "facts"
    else:
        return None
    return {"id": here["id"], "change": change, "old": was, "new": now, "by": changes}


def _changes(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """What differs in what decides: rules, facts, and the run itself. Lines that moved are no change."""
    rules = [[reason["rule"] for reason in graph["reasons"]] for graph in (old, new)]
    for reason in new["reasons"]:
        if reason["rule"] not in rules[0]:
            yield _change(f"rule {reason['rule']}", "kept", reason["message"], reason["evidence"])
    for rule in rules[0]:
        if rule not in rules[1]:
            yield _change(f"rule {rule}", "broken", "kept", [])
    for key in _FACTS:
        was, now = old["facts"][key].get("value"), new["facts"][key].get("value")
        if was != now:
            yield _change(key, _word(was), _word(now), new["facts"][key]["evidence"])
    held = [_states(graph["facts"]["states"]) for graph in (old, new)]
    if held[0] != held[1]:
        yield _change("states", held[0], held[1], new["facts"]["states_evidence"])
    runs = [[graph["script"], *map(str, graph["invocation"]["argv"])] for graph in (old, new)]
    if runs[0] != runs[1]:
        yield _change("run", " ".join(runs[0]), " ".join(runs[1]), [])
    if old["bundle"] != new["bundle"]:
        yield _change("bundle", old["bundle"], new["bundle"], [])


def _change(what: str, old: str, new: str, evidence: Sequence[Any]) -> dict[str, Any]:
    return {"what": what, "old": old, "new": new, "evidence": list(evidence)}


def _word(value: Any) -> str:
    return "unknown" if value is None else str(value)


def _states(states: Sequence[Mapping[str, Any]] | None) -> str:
    if states is None:
        return "unknown"
    return ", ".join(f"{state['name']} ({state['role']})" for state in states) or "none"
