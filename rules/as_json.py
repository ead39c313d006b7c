"""Facts and findings as plain data, the same in a scan's report and in a probe's, so that the two can be compared."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rules.facts import Fact, GraphFacts, Place, State
from rules.rule import Finding


def facts_as_json(facts: GraphFacts) -> dict[str, Any]:
    """A fact that is unknown is null."""
    held = facts.states
    return {
        "kind": _fact(facts.kind),
        "states": None if held.value is None else [_state(state) for state in held.value],
        "states_evidence": _places(held.evidence),
        "states_reason": held.reason,
        "query": _fact(facts.query),
        "logits": _fact(facts.logits),
        "kv": _fact(facts.kv),
        "marks": [
            {"trait": str(mark.trait), "detail": mark.detail, "evidence": _places(mark.evidence)}
            for mark in facts.marks
        ],
    }


def _fact(fact: Fact[Any]) -> dict[str, Any]:
    return {
        "value": None if fact.value is None else str(fact.value),
        "evidence": _places(fact.evidence),
        "reason": fact.reason,
        "flags": sorted(fact.flags),
    }


def _state(state: State) -> dict[str, Any]:
    return {
        "name": state.name,
        "role": str(state.role),
        "shape": list(state.shape),
        "evidence": _places(state.evidence),
        "reason": state.reason,
    }


def finding_as_json(finding: Finding) -> dict[str, Any]:
    """Without its fix: only a scan has one."""
    return {
        "rule": finding.rule,
        "message": finding.message,
        "severity": str(finding.severity),
        "confidence": str(finding.confidence),
        "evidence": _places(finding.evidence),
    }


def _places(places: Iterable[Place]) -> list[dict[str, Any]]:
    return [{"path": place.path, "line": place.line, "note": place.note} for place in places]
