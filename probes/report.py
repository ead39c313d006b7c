"""The probe's report as plain data, `spec-audit.probe/1`: a frozen contract, to which keys may be added.

Facts have the shape they have in a scan's report, so that the two can be laid side by side.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from probes.gates.gate import Outcome
from probes.gates.shape import NAME as SHAPE
from probes.subject import ROWS_BY
from rules.as_json import facts_as_json, finding_as_json
from rules.facts import Fact, GraphFacts, Kind, Logits, Mark, Place, Trait
from rules.verdict import Judgement, Verdict, judge
from rules.version import NAME, VERSION

SCHEMA = "spec-audit.probe/1"
_PREFERRED = ("main", "decode")


def graph(
    name: str,
    facts: GraphFacts,
    gates: Sequence[Mapping[str, Any]],
    verify_cost: Sequence[Mapping[str, Any]],
    *,
    bundle: str,
    not_run: str = "",
    notes: Sequence[str] = (),
    signature: Mapping[str, Any] | None = None,
    ab: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """One entry point. What the gates observed joins its facts before they are judged; `not_run` is why none ran."""
    seen = with_observed(facts, gates, bundle)
    judgement = judge(seen)
    verdict, why = verdict_of(judgement, gates, not_run)
    if ab and ab["not_lossless"]:
        why = [*(why if verdict is Outcome.REFUTED else ()), *(f"ab: {reason}" for reason in ab["not_lossless"])]
        verdict = Outcome.REFUTED
    return {
        "name": name,
        "verdict": str(verdict),
        "why": why,
        "facts": facts_as_json(seen),
        "judgement": {
            "verdict": str(judgement.verdict),
            "reasons": [finding_as_json(finding) for finding in judgement.reasons],
            "advice": [finding_as_json(finding) for finding in judgement.advice],
        },
        "gates": [dict(gate) for gate in gates],
        "verify_cost": [dict(cost) for cost in verify_cost],
        "steps": steps(verify_cost),
        "ab": dict(ab) if ab else None,
        "not_run": not_run,
        "notes": list(notes),
        "signature": dict(signature or {}),
    }


def with_observed(facts: GraphFacts, gates: Sequence[Mapping[str, Any]], bundle: str) -> GraphFacts:
    """`facts` with the traits that the run showed, and the rows that the gate `shape` counted if nothing else told."""
    counted = next((gate for gate in gates if gate["gate"] == SHAPE and gate["verdict"] == Outcome.CONFIRMED), None)
    if counted and facts.logits.value is None and facts.logits.reason.startswith(ROWS_BY):
        facts = replace(facts, logits=Fact(Logits.ALL, (*facts.logits.evidence, Place(bundle, 0, f"gate {SHAPE}"))))
    marks = [
        Mark(Trait(trait), str(detail), (Place(bundle, 0, f"gate {gate['gate']}"),))
        for gate in gates
        for trait, detail in gate["observed"].items()
    ]
    known = {mark.trait for mark in facts.marks}
    return replace(facts, marks=(*facts.marks, *(mark for mark in marks if mark.trait not in known)))


def verdict_of(judgement: Judgement, gates: Sequence[Mapping[str, Any]], not_run: str) -> tuple[Outcome, list[str]]:
    """Refuted if a rule or a gate refutes; confirmed if all of both agree; else partial, and what is missing."""
    refuted = [f"rule {finding.rule}: {finding.message}" for finding in judgement.findings]
    broken = refuted if judgement.verdict is Verdict.OUT else []
    broken += [f"gate {gate['gate']}: {gate['reason']}" for gate in gates if gate["verdict"] == Outcome.REFUTED]
    if broken:
        return Outcome.REFUTED, broken
    missing = [f"gate {gate['gate']}: {gate['reason']}" for gate in gates if gate["verdict"] != Outcome.CONFIRMED]
    if judgement.verdict is not Verdict.ELIGIBLE:
        missing = [f"{finding.rule}: {finding.message}" for finding in judgement.reasons] + missing
    if not gates:
        missing.append(f"no gate was run: {not_run or 'inspection only'}")
    return (Outcome.PARTIAL, missing) if missing else (Outcome.CONFIRMED, [])


def steps(costs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Where the steps stand in each context that was measured, and whether that is the same S (None: one context)."""
    tops = {
        str(cost["context"]): [plateau["last"] for plateau in cost["staircase"]["plateaus"] if plateau["end_seen"]]
        for cost in costs
        if cost["status"] == "ok"
    }
    same = all(found == next(iter(tops.values())) for found in tops.values()) if len(tops) > 1 else None
    return {"same": same, "tops": tops}


def document(
    *,
    bundle: str,
    backend: str,
    scope: str,
    graphs: Sequence[Mapping[str, Any]],
    decode: str,
    environment: Mapping[str, Any],
    settings: Mapping[str, Any],
    reasons: Sequence[str] = (),
    refused: bool = False,
    notes: Sequence[str] = (),
    files: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """The whole report. Its verdict is that of the graph `decode`; `refused` when the bundle could not be probed."""
    chosen = next((item for item in graphs if item["name"] == decode), None)
    return {
        "schema": SCHEMA,
        "tool": {"name": NAME, "version": VERSION},
        "bundle": bundle,
        "backend": backend,
        "status": "refused" if refused else "ok",
        "reasons": list(reasons),
        "verdict": chosen["verdict"] if chosen and not refused else str(Outcome.PARTIAL),
        "scope": scope,
        "decode_graph": decode or None,
        "graphs": [dict(item) for item in graphs],
        "against": None,
        "notes": list(notes),
        "files": dict(files or {}),
        "settings": dict(settings),
        "environment": dict(environment),
    }


def decode_graph(graphs: Sequence[Mapping[str, Any]], named: Sequence[str], asked: str = "") -> str:
    """The entry point whose verdict is the bundle's: the one asked for, the best of those that the metadata names as
    the decoder's, else the best decoder; `main` and `decode` first among equals."""
    if asked:
        return asked
    decoders = [item for item in graphs if item["facts"]["kind"]["value"] == Kind.DECODER]
    wanted = [item for item in decoders if item["name"] in named] or decoders
    ranks = {str(Outcome.CONFIRMED): 0, str(Outcome.PARTIAL): 1, str(Outcome.REFUTED): 2}

    def rank(item: Mapping[str, Any]) -> tuple[int, int, str]:
        name = str(item["name"])
        return ranks[item["verdict"]], _PREFERRED.index(name) if name in _PREFERRED else len(_PREFERRED), name

    return str(min(wanted, key=rank)["name"]) if wanted else (str(graphs[0]["name"]) if graphs else "")
