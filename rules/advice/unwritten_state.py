"""`unwritten-state`: a state is declared but never written."""

from __future__ import annotations

from dataclasses import replace

from rules.examples import DENSE, mark
from rules.facts import GraphFacts, Trait
from rules.rule import Breach, Confidence, Example, Rule, Severity


def _breach(facts: GraphFacts) -> Breach | None:
    seen = facts.mark(Trait.UNWRITTEN_STATE)
    if seen is None:
        return None
    detail = f" ({seen.detail})" if seen.detail else ""
    return Breach(
        f"a state is declared but never written, so the history of the sequence may be lost{detail}", seen.evidence
    )


RULE = Rule(
    id="unwritten-state",
    order=50,
    severity=Severity.NOTE,
    confidence=Confidence.HIGH,
    summary="A state is declared but never written.",
    explanation="""\
A state that no operation of the graph updates stays at its initial value. The comparison of rows still
passes, for every way of feeding the tokens is equally blind to the past. Only a history gate shows it: change
an early token and a late row has to move.""",
    breach=_breach,
    valid=(Example("every state is updated", DENSE),),
    invalid=(
        Example(
            "a declared state without an update",
            replace(DENSE, marks=mark(Trait.UNWRITTEN_STATE, "`valueCache` is read only")),
        ),
    ),
)
