"""`no-logits`: what comes out is not logits."""

from __future__ import annotations

from dataclasses import replace

from rules.examples import DENSE, logits
from rules.facts import GraphFacts, Logits
from rules.rule import Breach, Example, Rule, Severity


def _breach(facts: GraphFacts) -> Breach | None:
    if facts.logits.value is not Logits.NONE:
        return None
    return Breach(
        "the graph gives no logits (hidden states, chosen tokens, or a head elsewhere)", facts.logits.evidence
    )


RULE = Rule(
    id="no-logits",
    order=40,
    severity=Severity.ERROR,
    summary="The graph gives no logits: hidden states, a chosen token, or a head in another package.",
    explanation="""\
Verification compares the model's own choice at every drafted position with the draft. That needs `[1, S,
vocab]` out of the graph that ran the drafts. A graph that ends in hidden states, in an argmax, a top-k or a
sampled token, or whose head ships in another package, does not give it. Logits that are split over several
vocabulary chunks are still logits.

No flag or single line is promised here: adding a head, or undoing a fused choice, changes what the runtime
receives.""",
    breach=_breach,
    valid=(Example("a head over every position", DENSE),),
    invalid=(
        Example("a chunk that ends in hidden states", replace(DENSE, logits=logits(Logits.NONE, 22, "hidden states"))),
        Example(
            "an argmax inside the graph", replace(DENSE, logits=logits(Logits.NONE, 23, "argmax over the vocabulary"))
        ),
    ),
)
