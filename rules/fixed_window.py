"""`fixed-window`: the query has one fixed width above 1, or an enumeration of widths."""

from __future__ import annotations

from dataclasses import replace

from rules.examples import DENSE, PINNED, query
from rules.facts import GraphFacts
from rules.rule import Breach, Example, Rule, Severity
from rules.static_query import dynamic_query


def _breach(facts: GraphFacts) -> Breach | None:
    fixed = facts.query.value
    if fixed is None or fixed.dynamic or not fixed.widths or fixed.single:
        return None
    widths = sorted(set(fixed.widths))
    listed = ", ".join(map(str, widths))
    what, which = ("widths", "one of these") if len(widths) > 1 else ("width", "that")
    message = f"the query has the fixed {what} {listed}: only a verifier of {which} can use it"
    return Breach(message, facts.query.evidence)


RULE = Rule(
    id="fixed-window",
    order=70,
    severity=Severity.WARNING,
    summary="The query has one fixed width N > 1, or an enumeration of widths.",
    explanation="""\
Such a graph can verify, but only drafts of exactly K = N-1 tokens (shorter ones padded), for each width N
that it was exported with. Whether a verifier of that width exists and pays is not in the script, so the
verdict is *unresolved* and the widths are listed.""",
    fix="export the query dimension as dynamic, or write the verifier for the fixed width ({place})",
    breach=_breach,
    lift=dynamic_query,
    valid=(
        Example("a range", DENSE),
        Example("a single position (another rule's business)", PINNED),
    ),
    invalid=(
        Example("a prefill chunk of 64", replace(DENSE, query=query(64, note="torch.zeros((1, 64))"))),
        Example("enumerated shapes", replace(DENSE, query=query(8, 16, 64, note="EnumeratedShapes"))),
        Example("an enumeration that holds 1", replace(DENSE, query=query(1, 16))),
    ),
)
