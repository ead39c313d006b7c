"""`mixed-flexibility`: inputs of different flexibility, which Core ML refuses at load."""

from __future__ import annotations

from dataclasses import replace

from rules.examples import DENSE, mark
from rules.facts import GraphFacts, Trait
from rules.rule import Breach, Confidence, Example, Rule, Severity


def _breach(facts: GraphFacts) -> Breach | None:
    seen = facts.mark(Trait.MIXED_FLEXIBILITY)
    if seen is None:
        return None
    detail = f" ({seen.detail})" if seen.detail else ""
    return Breach(f"inputs mix kinds of flexibility, which Core ML refuses at load{detail}", seen.evidence)


RULE = Rule(
    id="mixed-flexibility",
    order=30,
    severity=Severity.NOTE,
    confidence=Confidence.HIGH,
    summary="Inputs of different flexibility, which Core ML refuses at load.",
    explanation="""\
Core ML loads a model whose inputs are all ranged or all enumerated. Enumerated on one input and ranged on
another, or ranged beside fixed in a model with states, converts without an error and is refused by the
runtime.""",
    breach=_breach,
    valid=(Example("every flexible input ranged", DENSE),),
    invalid=(
        Example(
            "`RangeDim` on the ids, `EnumeratedShapes` on the mask",
            replace(DENSE, marks=mark(Trait.MIXED_FLEXIBILITY, "ranged ids, enumerated mask")),
        ),
    ),
)
