"""`second-bundle`: the fix is a second export, not a runtime flag."""

from __future__ import annotations

from dataclasses import replace

from rules.examples import DENSE, HYBRID, PINNED, kv, logits, query
from rules.facts import GraphFacts, Kind, Kv, Logits
from rules.hybrid_state import fixed_states
from rules.rule import Breach, Example, Rule, Severity


def _breach(facts: GraphFacts) -> Breach | None:
    """The verdict keeps this advice only where a fix is known (`rules.fixes`)."""
    if facts.kind.value is Kind.OTHER or fixed_states(facts):
        return None
    query_fixed = facts.query.value is not None and not facts.query.value.dynamic
    if query_fixed:
        what, evidence = "query width", facts.query.evidence
    elif facts.logits.value is Logits.LAST:
        what, evidence = "output rows", facts.logits.evidence
    elif facts.kv.value is Kv.IO:
        what, evidence = "inputs and outputs", facts.kv.evidence
    else:
        return None
    return Breach(f"the {what} of a bundle cannot be changed at run time: the fix is a second export", evidence)


RULE = Rule(
    id="second-bundle",
    order=60,
    severity=Severity.NOTE,
    summary="The fix is a second export, not a runtime flag.",
    explanation="""\
The query's width, the rows that come out and the way the cache travels are fixed when a bundle is exported. A
flag of the export script does not touch the bundle that is already shipped: the fix is a second bundle beside
it (the first may still be what another runner wants), with its size on disk and its own tests.

Given only where a fix is known.""",
    breach=_breach,
    valid=(
        Example("a graph that is eligible as it is", DENSE),
        Example("a hybrid, which no export repairs", replace(HYBRID, query=query(1))),
    ),
    invalid=(
        Example("a query pinned to S=1", PINNED),
        Example("a last-token slice", replace(DENSE, logits=logits(Logits.LAST))),
        Example("a cache among the inputs and outputs", replace(DENSE, kv=kv(Kv.IO))),
    ),
)
