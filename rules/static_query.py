"""`static-query`: the query is pinned to one position."""

from __future__ import annotations

from dataclasses import replace

from rules.examples import DENSE, PINNED, query
from rules.facts import Fact, GraphFacts, Query, Role
from rules.rule import Breach, Example, Rule, Severity


def _breach(facts: GraphFacts) -> Breach | None:
    pinned = facts.query.value
    if pinned is None or not pinned.single:
        return None
    where = facts.query.evidence[-1] if facts.query.evidence else None
    if facts.query.flags:
        flags = " and ".join(f"`{flag}`" for flag in sorted(facts.query.flags))
        decides = "decides" if len(facts.query.flags) == 1 else "decide"
        at = f" ({where})" if where else ""
        return Breach(f"the query is pinned to S=1; {flags} {decides} it{at}", facts.query.evidence)
    note = f": {where.note}" if where and where.note else ""
    at = f" at {where}{note}" if where else ""
    return Breach(f"the query is pinned to S=1{at}; no flag decides it", facts.query.evidence)


def dynamic_query(facts: GraphFacts) -> GraphFacts:
    """The facts of the same graph exported with a dynamic query; what held for one width is unknown then."""
    states = facts.states
    if states.value is not None:
        free = tuple(replace(s, role=Role.UNKNOWN) if s.role.is_kv and s.reason else s for s in states.value)
        states = replace(states, value=free)
    logits = replace(facts.logits, value=None) if facts.logits.value and facts.logits.reason else facts.logits
    return replace(facts, query=Fact(Query(True), facts.query.evidence), states=states, logits=logits)


RULE = Rule(
    id="static-query",
    order=50,
    severity=Severity.ERROR,
    summary="The query is pinned to S=1, so drafts cannot go in together.",
    explanation="""\
Verifying K drafts takes one forward of S = K+1 positions. A graph exported with a query of exactly one
position refuses any other. The usual pins are a flag (`--static-ids`), a literal `(1, 1)` example without
dynamic shapes, `dynamic_shapes={"input_ids": None}`, a traced `sample.shape`, or a callee's default
parameter.

Where a flag decides, the finding names it; else it names the line.""",
    fix="export the query dimension as dynamic instead of 1 ({place})",
    breach=_breach,
    lift=dynamic_query,
    valid=(
        Example("a range from 1 to the context length", DENSE),
        Example("a fixed window of eight positions (another rule's business)", replace(DENSE, query=query(8))),
    ),
    invalid=(
        Example(
            "a flag that replaces the dynamic shapes",
            replace(DENSE, query=query(1, flag="--static-ids", note="dynamic_shapes None under args.static_ids")),
        ),
        Example("a literal `(1, 1)`", PINNED),
    ),
)
