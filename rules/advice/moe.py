"""`moe`: the model is a mixture of experts: measure before believing in a free plateau."""

from __future__ import annotations

from dataclasses import replace

from rules.examples import DENSE, mark
from rules.facts import GraphFacts, Kind, Trait
from rules.rule import Breach, Confidence, Example, Rule, Severity


def _breach(facts: GraphFacts) -> Breach | None:
    seen = facts.mark(Trait.MOE)
    if seen is None or facts.kind.value is Kind.OTHER:
        return None
    detail = f" ({seen.detail})" if seen.detail else ""
    return Breach(
        f"every extra position wakes more experts, so the free plateau may be gone: measure first{detail}",
        seen.evidence,
    )


RULE = Rule(
    id="moe",
    order=10,
    severity=Severity.NOTE,
    confidence=Confidence.MEDIUM,
    summary="The model is a mixture of experts: measure before believing in a free plateau.",
    explanation="""\
In a dense model the weights are read once for all positions of a forward, which is why a few more cost almost
nothing. A mixture of experts reads the experts that its tokens choose: more positions, more experts, more
bytes. The plateau of the verify cost may be short or missing. Sweep it before choosing K.""",
    breach=_breach,
    valid=(Example("a dense feed-forward", DENSE),),
    invalid=(Example("a router over experts", replace(DENSE, marks=mark(Trait.MOE, "64 experts, 4 a token"))),),
)
