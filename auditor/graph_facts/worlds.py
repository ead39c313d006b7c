"""The facts of a graph that is one of several."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

from auditor.places import Site
from auditor.torch.pretrained import CHECKPOINT
from auditor.values import Unknown, Value
from rules.facts import Fact, GraphFacts

T = TypeVar("T")


def merged(worlds: Sequence[GraphFacts], site: Site, chosen_by: Sequence[Value] = ()) -> GraphFacts:
    """The facts of a graph that is one of several: what all agree on is known, the rest is not.

    `chosen_by` are the values of a checkpoint's configuration that looked something up on the way.
    """
    first, *others = worlds
    keys = sorted({v.name for v in chosen_by if isinstance(v, Unknown) and v.name})
    chooser = f": {', '.join(keys)} decides (give the config.json with --checkpoints)" if keys else ""
    for other in others:
        same = {s.name: s.role for s in first.states.value or ()} == {s.name: s.role for s in other.states.value or ()}
        first = GraphFacts(
            _agreed(first.kind, other.kind, site, chooser),
            first.states
            if same and first.states.value is not None
            else _agreed(first.states, other.states, site, chooser),
            _agreed(first.query, other.query, site, chooser),
            _agreed(first.logits, other.logits, site, chooser),
            _agreed(first.kv, other.kv, site, chooser),
            tuple({m.trait: m for m in (*first.marks, *other.marks)}.values()),
        )
    if first.logits.reason == CHECKPOINT and keys:
        reason = f"{CHECKPOINT}: {', '.join(keys)} (give it with --checkpoints)"
        first = replace(first, logits=replace(first.logits, reason=reason))
    cited = tuple(
        dict.fromkeys(
            p.place("the checkpoint says") for v in chosen_by for p in v.places if p.path.endswith("config.json")
        )
    )
    return replace(first, logits=replace(first.logits, evidence=(*first.logits.evidence, *cited))) if cited else first


def _agreed(a: Fact[T], b: Fact[T], site: Site, chooser: str) -> Fact[T]:
    if a.value is None or b.value is None:
        return a if a.value is None else b
    if a.value == b.value:
        return a
    places = tuple(dict.fromkeys((site.place("export call"), *a.evidence[1:], *b.evidence[1:])))
    reason = f"the exported module is one of several, and they differ in this{chooser}"
    return Fact.unknown(reason, *places, flags=a.flags | b.flags)
