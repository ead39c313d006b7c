"""`kv-as-io`: the cache travels as ordinary inputs and outputs."""

from __future__ import annotations

from dataclasses import replace

from rules.examples import DENSE, KEYS, VALUES, kv, states
from rules.facts import Fact, GraphFacts, Kv, Role, State
from rules.rule import Breach, Example, Rule, Severity


def _breach(facts: GraphFacts) -> Breach | None:
    if facts.kv.value is not Kv.IO:
        return None
    return Breach("the KV cache travels as ordinary inputs and outputs, not as states", facts.kv.evidence)


def _lift(facts: GraphFacts) -> GraphFacts:
    held = facts.states
    if held.value == ():
        held = Fact((State("cache", Role.KV_UNIFIED),), held.evidence)
    return replace(facts, kv=Fact(Kv.STATE, facts.kv.evidence), states=held)


RULE = Rule(
    id="kv-as-io",
    order=30,
    severity=Severity.ERROR,
    summary="The KV cache travels as ordinary inputs and outputs.",
    explanation="""\
A cache that goes in and comes out as tensors is copied at every forward, and the runtime's decode loops,
which advance a position over states, do not drive it. Per-layer f-string names (`past_key_values_{i}_key`,
`k_{i}`) are the usual form; one stacked tensor is another.""",
    fix="declare the cache as states of the graph instead of inputs and outputs ({place})",
    breach=_breach,
    lift=_lift,
    valid=(Example("a cache declared as states", DENSE),),
    invalid=(
        Example("per-layer cache tensors among the inputs and outputs", replace(DENSE, states=states(), kv=kv(Kv.IO))),
        Example(
            "inputs that the reader knows for keys and values",
            replace(DENSE, states=states(KEYS, VALUES), kv=kv(Kv.IO)),
        ),
    ),
)
