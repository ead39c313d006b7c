"""`workload`: the task's output does not repeat its prompt: prompt lookup finds nothing."""

from __future__ import annotations

from dataclasses import replace

from rules.examples import DENSE, mark
from rules.facts import GraphFacts, Kind, Trait
from rules.rule import Breach, Confidence, Example, Rule, Severity


def _breach(facts: GraphFacts) -> Breach | None:
    seen = facts.mark(Trait.WORKLOAD)
    if seen is None or facts.kind.value is Kind.OTHER:
        return None
    detail = f" ({seen.detail})" if seen.detail else ""
    return Breach(
        f"the output of this task is not in its prompt: prompt lookup finds little to draft{detail}", seen.evidence
    )


RULE = Rule(
    id="workload",
    order=20,
    severity=Severity.NOTE,
    confidence=Confidence.MEDIUM,
    summary="The task's output does not repeat its prompt: prompt lookup finds nothing.",
    explanation="""\
A prompt-lookup drafter copies what the context already holds. Text that is recognised from an image or from
sound (OCR, ASR), and speech tokens (TTS), are not in the prompt. The graph may be able to verify; this
drafter will have little to offer. Another drafter may.""",
    breach=_breach,
    valid=(Example("a chat model", DENSE),),
    invalid=(Example("a speech-token decoder", replace(DENSE, marks=mark(Trait.WORKLOAD, "speech synthesis"))),),
)
