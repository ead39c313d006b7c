"""The facts of a graph from its signature: the same words as the scan, and *unknown* where a signature says nothing."""

from __future__ import annotations

import re
from collections.abc import Iterable

from probes.ports import Ports, ports
from probes.roles import role_named, state_of
from probes.signature import DYNAMIC, Port, Signature
from rules.facts import Fact, GraphFacts, Kind, Kv, Logits, Mark, Place, Query, State, Trait

_CACHE = re.compile("cache|key|past", re.IGNORECASE)
ONE_ROW = "the query has one position, so its one row of logits does not tell all from last"


def facts_of(signature: Signature, bundle: str, vocab: int | None = None, marks: Iterable[Mark] = ()) -> GraphFacts:
    """Facts of one entry point; each cites `bundle` and the port that shows it.

    `vocab` is the vocabulary size that the bundle's metadata names. `marks` are traits seen in the program itself.
    """
    found = ports(signature, vocab)
    states = tuple(state_of(port, bundle) for port in signature.states)
    kv = _kv(signature, states, bundle)
    seen = list(marks)
    if all(mark.trait is not Trait.BAKED_LENGTH for mark in seen):
        seen += _baked(found, bundle)
    return GraphFacts(
        kind=_kind(signature, found, kv, bundle),
        states=Fact(states, tuple(place for state in states for place in state.evidence) or (_at(bundle, "no state"),)),
        query=_query(found, bundle),
        logits=_rows(signature, found, bundle),
        kv=kv,
        marks=tuple(seen),
    )


def _at(bundle: str, *shown: object) -> Place:
    return Place(bundle, 0, ", ".join(str(item) for item in shown))


def _kind(signature: Signature, found: Ports, kv: Fact[Kv], bundle: str) -> Fact[Kind]:
    if found.query is None:
        return Fact(Kind.OTHER, (_at(bundle, "no token ids and no embeddings go in", *signature.inputs),))
    if not signature.states and kv.value is Kv.NONE:
        return Fact(Kind.OTHER, (_at(bundle, "no state and no cache goes in or out", *signature.inputs),))
    return Fact(Kind.DECODER, (_at(bundle, found.query),))


def _query(found: Ports, bundle: str) -> Fact[Query]:
    port, width = found.query, found.query_width
    if port is None or width is None:
        return Fact.unknown("no port looks like a query", _at(bundle))
    widths = found.enumerated
    if widths:
        return Fact(Query(False, widths), (_at(bundle, port),))
    return Fact(Query(True) if width == DYNAMIC else Query(False, (width,)), (_at(bundle, port),))


def _rows(signature: Signature, found: Ports, bundle: str) -> Fact[Logits]:
    width = found.query_width
    if not found.logits:
        if found.choice is not None:
            return Fact(Logits.NONE, (_at(bundle, found.choice),))
        hidden = [port for port in signature.outputs if port.is_float and "hidden" in port.name.lower()]
        if hidden or not signature.outputs:
            return Fact(Logits.NONE, (_at(bundle, *hidden),))
        shown = ", ".join(str(port) for port in signature.outputs)
        return Fact.unknown(f"no output is named logits, and no vocabulary size tells: {shown}", _at(bundle))
    port = found.logits[0]
    rows = row_dimension(port)
    if rows == DYNAMIC and width == DYNAMIC:
        return Fact(Logits.ALL, (_at(bundle, port),))
    if rows in (1, DYNAMIC) and width == 1:
        return Fact.unknown(ONE_ROW, _at(bundle, port))
    if rows == 1:
        return Fact(Logits.LAST, (_at(bundle, port),))
    if rows == width:
        return Fact(Logits.ALL, (_at(bundle, port),))
    given, asked = ("a dynamic number of" if count == DYNAMIC else str(count) for count in (rows, width))
    return Fact.unknown(f"{port} has {given} rows for a query of {asked} positions", _at(bundle, port))


def row_dimension(port: Port) -> int:
    """The rows that an output declares: the dimension before the vocabulary, 1 where there is none."""
    return port.shape[-2] if len(port.shape) >= 2 else 1


def _baked(found: Ports, bundle: str) -> list[Mark]:
    """Rows that stay constant while the query is dynamic: the trace's length went into the graph."""
    if found.query_width != DYNAMIC or not found.logits:
        return []
    rows = row_dimension(found.logits[0])
    if rows in (DYNAMIC, 1):
        return []
    return [Mark(Trait.BAKED_LENGTH, f"{rows} rows whatever S is", (_at(bundle, found.logits[0]),))]


def _kv(signature: Signature, states: tuple[State, ...], bundle: str) -> Fact[Kv]:
    cached = [port for state, port in zip(states, signature.states, strict=True) if state.role.is_kv]
    if cached:
        return Fact(Kv.STATE, (_at(bundle, *cached),))
    pairs = _cache_pairs(signature)
    if pairs:
        return Fact(Kv.IO, (_at(bundle, *pairs[:2]),))
    if any(state.role.rewinds is None for state in states):
        return Fact.unknown("a state of unknown role may hold keys and values", _at(bundle, *signature.states))
    return Fact(Kv.NONE, (_at(bundle, *signature.states),))


def _cache_pairs(signature: Signature) -> list[Port]:
    """Inputs of rank 3 or more that come out again with the same type, and a shape that may have grown."""
    taken: list[Port] = []
    for port in signature.inputs:
        if not port.is_float or len(port.shape) < 3:
            continue
        twin = next((out for out in signature.outputs if out not in taken and _grows(port, out)), None)
        if twin is not None and (_CACHE.search(port.name) or role_named(port.name).is_kv):
            taken.append(twin)
    return taken


def _grows(before: Port, after: Port) -> bool:
    if before.dtype != after.dtype or len(before.shape) != len(after.shape):
        return False
    return sum(a != b for a, b in zip(before.shape, after.shape, strict=True)) <= 1
