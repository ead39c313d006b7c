"""`baked-length`: the query is declared dynamic, but the trace's length is inside the graph."""

from __future__ import annotations

from dataclasses import replace

from rules.examples import DENSE, mark
from rules.facts import GraphFacts, Trait
from rules.rule import Breach, Example, Rule, Severity


def _breach(facts: GraphFacts) -> Breach | None:
    seen = facts.mark(Trait.BAKED_LENGTH)
    if seen is None:
        return None
    detail = f": {seen.detail}" if seen.detail else ""
    return Breach(f"the length of the trace is baked into the graph{detail}", seen.evidence)


def _lift(facts: GraphFacts) -> GraphFacts:
    return replace(facts, marks=tuple(mark for mark in facts.marks if mark.trait is not Trait.BAKED_LENGTH))


RULE = Rule(
    id="baked-length",
    order=100,
    severity=Severity.ERROR,
    summary="Declared dynamic, but a reshape or slice has the trace length in it.",
    explanation="""\
`torch.jit.trace` turns `x.shape[1]`, once it has become a Python number, into a constant. The converted graph
still declares a flexible query, and a reshape, an expand or a slice inside it has the length of the example:
the number of output rows stays the same while S varies.""",
    fix="compute the length from the tensor inside the graph instead of from the example ({place})",
    breach=_breach,
    lift=_lift,
    valid=(Example("shapes that follow the query", DENSE),),
    invalid=(
        Example(
            "a reshape to the example's length",
            replace(DENSE, marks=mark(Trait.BAKED_LENGTH, "`reshape(1, 8, -1)` while S is flexible")),
        ),
    ),
)
