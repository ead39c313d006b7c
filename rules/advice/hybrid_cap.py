"""`hybrid-cap`: what a hybrid can still gain."""

from __future__ import annotations

from rules.examples import DENSE, HYBRID
from rules.facts import GraphFacts, Kind
from rules.hybrid_state import fixed_states
from rules.rule import Breach, Confidence, Example, Rule, Severity


def _breach(facts: GraphFacts) -> Breach | None:
    guilty = fixed_states(facts)
    if facts.kind.value is Kind.OTHER or not guilty:
        return None
    evidence = tuple(place for state in guilty for place in state.evidence) or facts.states.evidence
    return Breach("a hybrid needs snapshot and re-anchor, which leaves a gain of at most 1.2-1.3x", evidence)


RULE = Rule(
    id="hybrid-cap",
    order=70,
    severity=Severity.NOTE,
    confidence=Confidence.MEDIUM,
    summary="A hybrid can gain at most 1.2-1.3x, by snapshot and re-anchor.",
    explanation="""\
A state that does not rewind can be copied before each verification and restored after a rejection; the
accepted tokens then have to be fed again. Published runs of that scheme had a verify cost of about 1.67
forwards and a gain of at most 1.2-1.3x.""",
    breach=_breach,
    valid=(Example("a dense decoder", DENSE),),
    invalid=(Example("a KV cache and a convolution state", HYBRID),),
)
