"""`last-token-only`: only one row of the query comes out as logits."""

from __future__ import annotations

from dataclasses import replace

from rules.examples import DENSE, logits
from rules.facts import Fact, GraphFacts, Logits
from rules.rule import Breach, Example, Rule, Severity


def _breach(facts: GraphFacts) -> Breach | None:
    if facts.logits.value is not Logits.LAST:
        return None
    where = facts.logits.evidence[-1] if facts.logits.evidence else None
    note = f" ({where}{': ' if where.note else ''}{where.note})" if where else ""
    return Breach(f"one row is left of the query before the logits come out{note}", facts.logits.evidence)


def _lift(facts: GraphFacts) -> GraphFacts:
    return replace(facts, logits=Fact(Logits.ALL, facts.logits.evidence))


def _sliced(note: str) -> GraphFacts:
    return replace(DENSE, logits=logits(Logits.LAST, 21, note))


RULE = Rule(
    id="last-token-only",
    order=60,
    severity=Severity.ERROR,
    summary="A slice leaves one row of logits, so drafted positions cannot be compared.",
    explanation="""\
Prefill graphs often keep the last position only, because sampling needs no other. Verification needs them
all. The slice has many spellings: `[:, -1:, :]` before or after the norm or the head, `[:, -1]`,
`index_select`, a gather by length, a mask and a sum, `logits_to_keep=1`.""",
    fix="keep every position: drop the selection ({place})",
    breach=_breach,
    lift=_lift,
    valid=(Example("the head runs on all positions", DENSE),),
    invalid=(
        Example("`hidden = hidden[:, -1:, :]` before the head", _sliced("hidden[:, -1:, :]")),
        Example("`logits[:, -1]` after the head", _sliced("logits[:, -1]")),
        Example("`torch.index_select(hidden, 1, last)`", _sliced("index_select")),
        Example("a gather by length", _sliced("gather")),
        Example("a one-hot mask and a sum", _sliced("mask and sum")),
        Example("`logits_to_keep=1`", _sliced("logits_to_keep=1")),
    ),
)
