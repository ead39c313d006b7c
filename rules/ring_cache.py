"""`ring-cache`: the cache wraps around."""

from __future__ import annotations

from dataclasses import replace

from rules.examples import DENSE, mark
from rules.facts import GraphFacts, Trait
from rules.rule import Breach, Example, Rule, Severity


def _breach(facts: GraphFacts) -> Breach | None:
    seen = facts.mark(Trait.RING_CACHE)
    if seen is None:
        return None
    detail = f": {seen.detail}" if seen.detail else ""
    return Breach(f"the cache wraps, so a rejected draft overwrites rows that are still read{detail}", seen.evidence)


RULE = Rule(
    id="ring-cache",
    order=90,
    severity=Severity.ERROR,
    summary="The cache wraps, so stale rows can be read.",
    explanation="""\
A cache of W rows that is written at `position % W` reuses the oldest row for the newest token. A rejected
draft has then already destroyed a row that the right token would have read, and *do not advance* does not
bring it back. It shows only past the window: a test on four tokens passes. A window *mask* over a linear
cache is safe.

The cache has to be long enough for the context, with the window as a mask; that is more than one line.""",
    breach=_breach,
    valid=(Example("a window mask over a linear cache", DENSE),),
    invalid=(
        Example(
            "a write index taken modulo the window",
            replace(DENSE, marks=mark(Trait.RING_CACHE, "written at `position % window`")),
        ),
    ),
)
