"""Outputs that are no logits because another graph of the same run takes them: a head, or a joint, is in that one.

The converter's names join the graphs of a run: what one calls `decoder` among its outputs and another among its inputs
is handed on by the program that runs them. It is asked where `forward` could not be followed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from auditor.roles import cache_names, comes_back, is_logits_name, words
from auditor.sinks import Export
from rules.facts import Fact, Kind, Logits


def without_logits(exports: Sequence[Export]) -> None:
    """Settle the logits of decoders that were not followed and hand all they give on to another graph."""
    for export in exports:
        facts = export.facts
        if facts.kind.value is not Kind.DECODER or facts.logits.value is not None or not export.outputs:
            continue
        taker = _taker(export, exports)
        if taker is not None:
            other, name = taker
            places = (export.site.place("export call"), other.site.place(f"`{name}` goes in here"))
            export.facts = replace(facts, logits=Fact(Logits.NONE, places, flags=facts.logits.flags))


def _taker(export: Export, exports: Sequence[Export]) -> tuple[Export, str] | None:
    """The graph that takes what a graph gives beside its caches and states, and the name of it."""
    if any(map(is_logits_name, export.outputs)):
        return None
    caches = set(cache_names(export.outputs))
    given = [n for n in export.outputs if n not in caches and not comes_back(export.inputs, n)]
    others = [e for e in exports if e is not export and not set(given) & set(e.outputs)]
    takers = [next((e for e in others if any(_same_thing(n, i) for i in e.inputs)), None) for n in given]
    if not takers or None in takers:
        return None
    first = takers[0]
    return (first, given[0]) if first is not None else None


_FORM = {"output", "outputs", "out", "input", "inputs", "in", "hidden", "state", "states", "embeds", "features"}


def _same_thing(given: str, taken: str) -> bool:
    """Whether an output and an input are of the same thing: `decoder`, `decoder_output`, `decoder_hidden_states`."""
    one, other = ([w for w in words(n) if w not in _FORM] for n in (given, taken))
    return given == taken or (bool(one) and one == other)
