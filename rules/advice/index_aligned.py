"""`index-aligned-enumerations`: enumerated inputs are combined by index, not freely."""

from __future__ import annotations

from dataclasses import replace

from rules.examples import DENSE, mark
from rules.facts import GraphFacts, Trait
from rules.rule import Breach, Confidence, Example, Rule, Severity


def _breach(facts: GraphFacts) -> Breach | None:
    seen = facts.mark(Trait.INDEX_ALIGNED)
    if seen is None:
        return None
    detail = f" ({seen.detail})" if seen.detail else ""
    return Breach(
        f"enumerated inputs are aligned by index: only the i-th shapes of all inputs go together{detail}", seen.evidence
    )


RULE = Rule(
    id="index-aligned-enumerations",
    order=40,
    severity=Severity.NOTE,
    confidence=Confidence.HIGH,
    summary="Enumerated inputs are combined by index, not freely.",
    explanation="""\
When several inputs are enumerated, the runtime accepts the combination of their i-th shapes and no other. A
verifier that picks the query's width has to find the mask and the positions of that very width at the same
index.""",
    breach=_breach,
    valid=(Example("one enumerated input", DENSE),),
    invalid=(
        Example(
            "ids and mask enumerated", replace(DENSE, marks=mark(Trait.INDEX_ALIGNED, "ids and mask of 3 shapes each"))
        ),
    ),
)
