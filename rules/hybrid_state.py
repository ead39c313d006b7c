"""`hybrid-state`: a state is not a position-indexed KV cache."""

from __future__ import annotations

from dataclasses import replace

from rules.examples import DENSE, HYBRID, KEYS, VALUES, state, states
from rules.facts import GraphFacts, Role, State
from rules.rule import Breach, Example, Rule, Severity


def fixed_states(facts: GraphFacts) -> tuple[State, ...]:
    """The states that are known not to rewind."""
    return tuple(state for state in facts.states.value or () if state.role.rewinds is False)


def _breach(facts: GraphFacts) -> Breach | None:
    guilty = fixed_states(facts)
    if not guilty:
        return None
    names = ", ".join(f"`{state.name}`" for state in guilty)
    listed = ", ".join(f"{state.name} ({state.role})" for state in facts.states.value or ())
    verb = "is no KV cache and cannot" if len(guilty) == 1 else "are no KV cache and cannot"
    evidence = facts.states.evidence + tuple(place for state in guilty for place in state.evidence)
    return Breach(f"{names} {verb} be rewound; states: {listed}", evidence)


RULE = Rule(
    id="hybrid-state",
    order=20,
    severity=Severity.ERROR,
    summary="A state is not a position-indexed KV cache, so rejected drafts cannot be undone.",
    explanation="""\
On a KV cache a rollback is *do not advance*: the rows past the accepted prefix are stale, never read, and
overwritten by the next forward. A convolution, SSM, linear-attention or RWKV state is one value that every
token updates. It cannot be rewound; it needs a snapshot before each verification and a re-anchoring pass
after a rejection, which caps the gain.

Counting states is not a test. RWKV has two and neither is KV; some exporters have one unified state and it is
KV; the latents of multi-head latent attention rewind like KV; a convolution state can also hide in plain
inputs and outputs.

No flag and no line repairs this: it is the architecture.""",
    breach=_breach,
    valid=(
        Example("a key cache and a value cache", DENSE),
        Example(
            "one state that holds keys and values", replace(DENSE, states=states(state("kvCache", Role.KV_UNIFIED)))
        ),
        Example(
            "the two halves of a latent-attention cache",
            replace(DENSE, states=states(state("kvCacheA", Role.MLA_LATENT), state("kvCacheB", Role.MLA_LATENT))),
        ),
        Example(
            "a KV cache and the write position",
            replace(DENSE, states=states(KEYS, VALUES, state("position", Role.COUNTER))),
        ),
    ),
    invalid=(
        Example("a KV cache and a convolution state", HYBRID),
        Example(
            "a recurrent model whose two states are both no cache",
            replace(DENSE, states=states(state("recState", Role.RECURRENT), state("shiftState", Role.RECURRENT))),
        ),
    ),
)
