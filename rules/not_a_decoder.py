"""`not-a-decoder`: the graph generates no tokens one after the other."""

from __future__ import annotations

from dataclasses import replace

from rules.examples import DENSE, TOWER, kv, states
from rules.facts import GraphFacts, Kind, Kv
from rules.rule import Breach, Example, Rule, Severity


def _breach(facts: GraphFacts) -> Breach | None:
    if facts.states.value == () and facts.kv.value is Kv.NONE:
        told = facts.kind if facts.kind.value is Kind.OTHER else facts.kv
        return Breach(
            "no state and no cache goes in or out: the graph computes its whole input every time",
            told.evidence or facts.states.evidence,
        )
    if facts.kind.value is Kind.OTHER:
        return Breach("the graph is no autoregressive token decoder", facts.kind.evidence)
    return None


RULE = Rule(
    id="not-a-decoder",
    order=10,
    severity=Severity.ERROR,
    summary="The graph is no autoregressive token decoder.",
    explanation="""\
Speculative decoding verifies drafted tokens against the tokens that a decoder would have produced. An
encoder, a vision or audio tower, a vocoder, a diffusion step, a classifier, an embedding or a head on its own
produces none. Neither does a language model without a cache in this sense: it computes the whole sequence
every time, so there is no decode step to save.

The other rules ask how a decoder decodes; of such a graph they are not asked.""",
    breach=_breach,
    final=True,
    valid=(
        Example("a decoder with a KV cache", DENSE),
        Example(
            "a decoder whose cache travels as inputs and outputs (another rule's business)",
            replace(DENSE, states=states(), kv=kv(Kv.IO)),
        ),
    ),
    invalid=(
        Example("a vision tower", TOWER),
        Example("an encoder that streams, with a cache of frames", replace(TOWER, kv=kv(Kv.IO))),
        Example(
            "a causal language model exported without a cache, on its full sequence",
            replace(DENSE, states=states(), kv=kv(Kv.NONE)),
        ),
    ),
)
