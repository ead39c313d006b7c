"""Facts of small graphs, from which the examples of the rules are made."""

from __future__ import annotations

from dataclasses import replace

from rules.facts import Fact, GraphFacts, Kind, Kv, Logits, Mark, Place, Query, Role, State, Trait

SCRIPT = "export_model.py"
"""The script that all examples cite."""


def at(line: int, note: str = "") -> Place:
    """A line of the examples' script."""
    return Place(SCRIPT, line, note)


CALL = at(40, "export call")


def state(name: str, role: Role, line: int = 12) -> State:
    return State(name, role, (at(line, f"{name} is declared"),))


KEYS = state("keyCache", Role.KV_KEY)
VALUES = state("valueCache", Role.KV_VALUE, 13)


def states(*items: State) -> Fact[tuple[State, ...]]:
    return Fact(items, (CALL, at(12, "state names")))


def query(*widths: int, line: int = 30, note: str = "dynamic_shapes", flag: str = "") -> Fact[Query]:
    """A query pinned to `widths`, or a dynamic one without any."""
    flags = frozenset({flag} if flag else ())
    return Fact(Query(not widths, widths), (CALL, at(line, note)), flags=flags)


def logits(value: Logits, line: int = 22, note: str = "the head") -> Fact[Logits]:
    return Fact(value, (CALL, at(line, note)))


def kv(value: Kv) -> Fact[Kv]:
    return Fact(value, (CALL, at(12, "the cache")))


def kind(value: Kind) -> Fact[Kind]:
    return Fact(value, (CALL,))


def mark(trait: Trait, detail: str, line: int = 25, note: str = "") -> tuple[Mark, ...]:
    return (Mark(trait, detail, (CALL, at(line, note or trait))),)


DENSE = GraphFacts(
    kind=kind(Kind.DECODER),
    states=states(KEYS, VALUES),
    query=query(),
    logits=logits(Logits.ALL),
    kv=kv(Kv.STATE),
)
"""A dense decoder that can verify drafts: KV states, a dynamic query, logits of every position."""

TOWER = GraphFacts(
    kind=kind(Kind.OTHER),
    states=states(),
    query=query(1),
    logits=logits(Logits.NONE),
    kv=kv(Kv.NONE),
)
"""A vision tower."""

PINNED = replace(DENSE, query=query(1, note="torch.zeros((1, 1)) with dynamic_shapes None"))
"""A dense decoder pinned to one position by a literal."""

HYBRID = replace(DENSE, states=states(KEYS, VALUES, state("convState", Role.CONV, 14)))
"""A decoder that keeps a short convolution's state beside its KV cache."""
