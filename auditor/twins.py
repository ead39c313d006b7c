"""One graph in two runs: which options could make a difference to it, and whether they did."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from auditor.run import Result
from auditor.sinks import Export
from rules.facts import Fact, GraphFacts, Kv, Logits, Trait


def deciding_flags(facts: GraphFacts) -> frozenset[str]:
    """The options that could make the graph eligible: those of the facts that stand in the way.

    One of those that hangs on no option leaves none.
    """
    states = facts.states.value
    if states is not None and any(s.role.rewinds is False for s in states):
        return facts.states.flags
    if facts.mark(Trait.ROW_KERNEL) or facts.mark(Trait.RING_CACHE) or facts.mark(Trait.BAKED_LENGTH):
        return facts.flags
    fine = {
        "states": states is not None and all(s.role.rewinds for s in states),
        "query": facts.query.value is not None and facts.query.value.dynamic,
        "logits": facts.logits.value is Logits.ALL,
        "kv": facts.kv.value is Kv.STATE,
    }
    in_the_way = [f for name, f in _FACTS.items() if not fine[name]]
    if any(not pick(facts).flags and pick(facts).value is not None for pick in in_the_way):
        return frozenset()
    return frozenset().union(*(pick(facts).flags for pick in in_the_way))


def named_flags(facts: GraphFacts) -> frozenset[str]:
    """The options that a finding names as deciding: each has to be seen to make a difference."""
    pinned = facts.query.value
    return facts.query.flags if pinned is not None and pinned.single else frozenset()


_FACTS: dict[str, Callable[[GraphFacts], Fact[Any]]] = {
    "states": lambda f: f.states,
    "query": lambda f: f.query,
    "logits": lambda f: f.logits,
    "kv": lambda f: f.kv,
}


def line_in(export: Export, script: str) -> int:
    """The line of the script that leads to the export call."""
    inner = next((s for s in (export.site, *reversed(export.stack)) if s.path == script), export.site)
    return inner.line


def numbered(exports: Iterable[Export], script: str) -> Iterator[tuple[Export, int]]:
    """Each export with its turn, from 1, among those of the same name that one line of the script leads to."""
    turns: Counter[tuple[int, str]] = Counter()
    for export in exports:
        like = line_in(export, script), export.name
        turns[like] += 1
        yield export, turns[like]


def twin(export: Export, turn: int, script: str, other: Result) -> Export | None:
    """The same graph in another run: same place, same name, same turn (see `numbered`); the last of fewer turns."""
    where = line_in(export, script)
    alike = [e for e in other.exports if e.name == export.name and line_in(e, script) == where]
    if turn <= len(alike):
        return alike[turn - 1]
    return alike[-1] if alike else None


def differing(exports: Sequence[Export], script: str, flag: str, before: Result) -> list[Export]:
    """The exports of a run with one option changed: what differs from the run `before` depends on that option."""
    out = []
    for export, turn in numbered(exports, script):
        other = twin(export, turn, script, before)
        facts = export.facts if other is None else _marked(export.facts, other.facts, flag)
        out.append(replace(export, facts=facts))
    return out


def _marked(facts: GraphFacts, before: GraphFacts, flag: str) -> GraphFacts:
    def with_flag(name: str, fact: Fact[Any]) -> Fact[Any]:
        changed = _said(fact) != _said(_FACTS[name](before))
        return replace(fact, flags=fact.flags | {flag}) if changed else fact

    return facts.each(with_flag)


def key(facts: GraphFacts) -> tuple[object, ...]:
    """What a verdict is made from: facts with one key are alike, whatever their evidence."""
    states = facts.states.value
    roles = tuple((s.name, s.role) for s in states) if states is not None else None
    return (
        facts.kind.value,
        roles,
        facts.query.value,
        facts.logits.value,
        facts.kv.value,
        tuple(m.trait for m in facts.marks),
    )


def without_idle(facts: GraphFacts, tried: Mapping[str, Sequence[GraphFacts]]) -> GraphFacts:
    """The facts without the options of which no change made a difference to them.

    `tried` holds by option what its changes gave: the facts of the same graph, or those of the decoders of a run that
    has no such graph. An option that only chooses which graph is exported decides nothing about it.
    """

    def left(name: str, fact: Fact[Any]) -> Fact[Any]:
        idle = {f for f, others in tried.items() if all(_said(_FACTS[name](o)) == _said(fact) for o in others)}
        return replace(fact, flags=fact.flags - idle) if idle & fact.flags else fact

    return facts.each(left)


def _said(fact: Fact[Any]) -> object:
    """What a fact says, without its evidence."""
    value = fact.value
    return tuple((s.name, s.role) for s in value) if isinstance(value, tuple) else value
