"""What keeps a graph `unresolved`: facts that are unknown, and facts that contradict each other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from rules.facts import Fact, GraphFacts, Kv, State
from rules.rule import Confidence, Finding, Severity

FIX = (
    "give the source that was not found with --library, or the checkpoint's config.json with --checkpoints; "
    "else read the cited line"
)


@dataclass(frozen=True, slots=True)
class Reason:
    """One way of being unresolved, for `explain`."""

    id: str
    summary: str


REASONS = (
    Reason("unknown-kind", "Whether the graph is an autoregressive token decoder could not be established."),
    Reason("unknown-states", "The list of states could not be established: there may be states that nobody saw."),
    Reason("unknown-state-role", "What a state holds could not be established."),
    Reason("unknown-query", "The widths that the query accepts could not be established."),
    Reason("unknown-logits", "Which rows come out as logits could not be established."),
    Reason("unknown-kv", "How the KV cache travels could not be established."),
    Reason("inconsistent-facts", "Facts that were established separately do not fit together."),
    Reason("rule-crash", "A rule failed on this graph, so it was not judged by it."),
)


def unknowns(facts: GraphFacts) -> tuple[Finding, ...]:
    """Everything that stands between `facts` and `eligible` without being a broken rule, in a fixed order."""
    return tuple(_missing(facts)) or tuple(_contradictions(facts))


def _missing(facts: GraphFacts) -> Iterator[Finding]:
    yield from _fact("kind", facts.kind)
    yield from _fact("states", facts.states)
    yield from (_role(state, facts.states) for state in facts.states.value or () if state.role.rewinds is None)
    yield from _fact("query", facts.query)
    yield from _fact("logits", facts.logits)
    yield from _fact("kv", facts.kv)


def _fact(name: str, fact: Fact[Any]) -> Iterator[Finding]:
    if not fact.known:
        reason = fact.reason or "no reason was recorded"
        yield _finding(f"unknown-{name}", f"{name} unknown: {reason}", fact)


def _role(state: State, states: Fact[tuple[State, ...]]) -> Finding:
    reason = state.reason or "nothing shows what it holds"
    evidence = state.evidence or states.evidence
    return _finding("unknown-state-role", f"role of state `{state.name}` unknown: {reason}", Fact(None, evidence))


def _contradictions(facts: GraphFacts) -> Iterator[Finding]:
    """A graph that breaks no rule and has no unknown fact must look like a decoder with KV states, or it is refused."""
    states, query = facts.states.value or (), facts.query.value
    if facts.kv.value is Kv.STATE and not any(state.role.is_kv for state in states):
        yield _finding(
            "inconsistent-facts", "the cache is said to be a state, and no state holds keys or values", facts.kv
        )
    if facts.kv.value is Kv.NONE:
        yield _finding("inconsistent-facts", "there are states, and the cache is said to be in none of them", facts.kv)
    if query is not None and query.dynamic is bool(query.widths):
        yield _finding("inconsistent-facts", "the query is neither a range nor a list of widths", facts.query)


def _finding(rule: str, message: str, fact: Fact[Any]) -> Finding:
    evidence = tuple(dict.fromkeys(fact.evidence))
    return Finding(rule, message, Severity.WARNING, Confidence.HIGH if evidence else Confidence.LOW, evidence, FIX)
