"""A model in several packages: an embedding, chunks of layers, a head. One verdict for each, and one for the set.

No package of a set can verify drafts by itself, and the set can only as well as its weakest part: every query has to be
dynamic, every state a cache, and the head has to see all rows. Nothing of a set is run.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from probes.facts import facts_of
from probes.gates.gate import Outcome
from probes.ports import Ports, ports
from probes.signature import DYNAMIC, Port, Signature
from rules.as_json import finding_as_json
from rules.facts import Fact, GraphFacts, Kind, Kv, Mark, Place, Query, Trait
from rules.verdict import Verdict, judge

_NUMBERS = re.compile(r"(\d+)")
NOT_RUN = "one package of a set: the packages of a set are inspected, not run"


@dataclass(frozen=True, slots=True)
class Part:
    """One package of a set, with one of its functions."""

    name: str
    signature: Signature
    facts: GraphFacts

    @property
    def ports(self) -> Ports:
        return ports(self.signature)

    @property
    def hidden_in(self) -> Port | None:
        return self.ports.embeds

    @property
    def hidden_out(self) -> Port | None:
        """The hidden states that come out, where no logits and no chosen token do."""
        if self.ports.logits or self.ports.choice:
            return None
        return next((port for port in self.signature.outputs if port.is_float and len(port.shape) >= 3), None)

    @property
    def role(self) -> str:
        """`whole`, `embedding`, `first chunk`, `chunk`, `last chunk`, `head`, or empty for a part of nothing."""
        starts, ends = self.ports.tokens is not None, bool(self.ports.logits or self.ports.choice)
        if starts and ends:
            return "whole"
        if starts and self.hidden_out:
            return "first chunk" if self.signature.states else "embedding"
        if self.hidden_in and ends:
            return "last chunk" if self.signature.states else "head"
        return "chunk" if self.hidden_in and self.hidden_out else ""


def combined(reports: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """The report's keys that tell of the set: its `verdict`, and `set` with the chains that the packages form.

    `reports` has the report of each package by its name.
    """
    functions = _functions(reports)
    chains = []
    for function in functions:
        parts = [_part(name, report, function) for name, report in reports.items()]
        known = [part for part in parts if part is not None]
        chains.append(_chain(function, known, len(reports)))
    out = bool(chains) and all(chain["verdict"] == Verdict.OUT for chain in chains)
    refused = any(report["status"] == "refused" for report in reports.values())
    verdict = Outcome.REFUTED if out and not refused else Outcome.PARTIAL
    return {"verdict": str(verdict), "set": chains}


def _functions(reports: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """The functions that all packages have; one of a single function goes with every one of the others'."""
    several = [
        {graph["name"] for graph in report["graphs"]} for report in reports.values() if len(report["graphs"]) > 1
    ]
    return sorted(set.intersection(*several)) if several else ["main"]


def _part(name: str, report: Mapping[str, Any], function: str) -> Part | None:
    graphs = report["graphs"]
    graph = graphs[0] if len(graphs) == 1 else next((one for one in graphs if one["name"] == function), None)
    if graph is None:
        return None
    signature = Signature.of(graph["signature"])
    marks = [
        Mark(Trait(mark["trait"]), mark["detail"], (Place(name, 0, "program"),)) for mark in graph["facts"]["marks"]
    ]
    return Part(name, signature, facts_of(signature, name, report["files"].get("vocab"), marks))


def _chain(function: str, parts: Sequence[Part], count: int) -> dict[str, Any]:
    ordered = _ordered(parts)
    roles = {part.name: part.role for part in parts}
    base = {"function": function, "roles": roles}
    why = _why_no_chain(ordered, count)
    if why:
        return {
            **base,
            "order": [],
            "verdict": None,
            "reasons": [],
            "statement": f"no set: {why}; each is judged alone",
        }
    judgement = judge(_facts(ordered))
    order = [part.name for part in ordered]
    words = f": {judgement.primary.message}" if judgement.primary else ""
    return {
        **base,
        "order": order,
        "verdict": str(judgement.verdict),
        "reasons": [finding_as_json(finding) for finding in judgement.reasons],
        "statement": f"as a set ({' -> '.join(order)}): {judgement.says()}{words}",
    }


_PLACES = {"embedding": 0, "first chunk": 0, "chunk": 1, "last chunk": 2, "head": 3}


def _ordered(parts: Sequence[Part]) -> list[Part]:
    """By role, chunks by the numbers in their names."""

    def key(part: Part) -> tuple[int, list[tuple[int, str]]]:
        pieces = [(int(piece), "") if piece.isdigit() else (0, piece) for piece in _NUMBERS.split(part.name)]
        return _PLACES.get(part.role, 9), pieces

    return sorted(parts, key=key)


def _why_no_chain(parts: Sequence[Part], count: int) -> str:
    if len(parts) != count:
        return "a package could not be read, or lacks this function"
    odd = [part.name for part in parts if part.role in ("", "whole")]
    if odd:
        return f"{', '.join(odd)} neither takes nor gives hidden states"
    if parts[0].role not in ("embedding", "first chunk"):
        return "no package takes token ids"
    if parts[-1].role not in ("last chunk", "head"):
        return "no package gives logits or tokens"
    for first, second in pairwise(parts):
        given, taken = first.hidden_out, second.hidden_in
        if given is None or taken is None:
            return f"{first.name} gives nothing that {second.name} takes"
        if given.shape[-1] != taken.shape[-1] and DYNAMIC not in (given.shape[-1], taken.shape[-1]):
            return f"{first.name} gives {given}, and {second.name} takes {taken}"
    return ""


def _facts(parts: Sequence[Part]) -> GraphFacts:
    """The facts of the whole: all states, the widths that all take, the rows that each passes on."""
    states = tuple(state for part in parts for state in part.facts.states.value or ())
    places = tuple(place for part in parts for place in part.facts.states.evidence)
    cached = next((part.facts.kv for part in parts if part.facts.kv.value not in (None, Kv.NONE)), None)
    doubtful = next((part.facts.kv for part in parts if part.facts.kv.value is None), None)
    kv = cached or doubtful or parts[0].facts.kv
    query = _query(parts)
    kind = Fact(Kind.OTHER if kv.value is Kv.NONE else Kind.DECODER, parts[0].facts.query.evidence)
    marks = tuple(mark for part in parts for mark in part.facts.marks)
    logits = next((fact for fact in (_passes(part) for part in parts[:-1]) if fact), parts[-1].facts.logits)
    return GraphFacts(kind, Fact(states, places), query, logits, kv, marks)


def _query(parts: Sequence[Part]) -> Fact[Query]:
    """Dynamic if every part's is, else the widths that all parts take."""
    evidence = tuple(place for part in parts for place in part.facts.query.evidence)
    unknown = next((part.facts.query for part in parts if part.facts.query.value is None), None)
    if unknown:
        return unknown
    fixed = [
        (part, part.facts.query) for part in parts if part.facts.query.value and not part.facts.query.value.dynamic
    ]
    if not fixed:
        return Fact(Query(True), evidence)
    common = set.intersection(*(set(fact.value.widths) for _, fact in fixed if fact.value))
    deciding = tuple(place for _, fact in fixed for place in fact.evidence)
    if not common:
        return Fact.unknown("the packages have no query width in common", *deciding)
    return Fact(Query(False, tuple(sorted(common))), deciding)


def _passes(part: Part) -> Fact[Any] | None:
    """An unknown number of rows, where a part does not show that it passes on as many as it takes; None if it does."""
    port, width = part.hidden_out, part.ports.query_width
    rows = port.shape[-2] if port else None
    if rows == width:
        return None
    return Fact.unknown(f"{part.name} gives {port} for a query of {width}", Place(part.name, 0, str(port)))
