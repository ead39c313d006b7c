"""`row-kernel`: a custom kernel computes one row whatever the query's length is."""

from __future__ import annotations

from dataclasses import replace

from rules.examples import DENSE, PINNED, mark
from rules.facts import GraphFacts, Trait
from rules.rule import Breach, Example, Rule, Severity


def _breach(facts: GraphFacts) -> Breach | None:
    seen = facts.mark(Trait.ROW_KERNEL)
    if seen is None:
        return None
    detail = f": {seen.detail}" if seen.detail else ""
    return Breach(f"a custom kernel computes one row whatever S is{detail}", seen.evidence)


_KERNEL = mark(Trait.ROW_KERNEL, "the result shape of `matvec` does not depend on S")

RULE = Rule(
    id="row-kernel",
    order=80,
    severity=Severity.ERROR,
    summary="A custom kernel computes one row whatever S is.",
    explanation="""\
A hand-written kernel for decoding is often a matrix-vector product or a one-row attention. States, query and
logits may all look right, and the graph still cannot verify: the result shape or the row index of the kernel
call does not depend on S, so the rows past the first are wrong or missing.

It needs a kernel for S > 1, or the plain operation in its place. A fix that lifts another rule only is no fix
here.""",
    breach=_breach,
    valid=(Example("the layers of the framework", DENSE),),
    invalid=(
        Example("a matrix-vector kernel with a dynamic query", replace(DENSE, marks=_KERNEL)),
        Example("the same behind a pinned query", replace(PINNED, marks=_KERNEL)),
    ),
)
