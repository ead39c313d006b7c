"""Values that are made of others: they keep the places and flags of what they are made of."""

from __future__ import annotations

from typing import Any

from auditor.values import Const, Num, Pattern, Unknown, Value, origins


def derived(value: Any, *sources: Value) -> Const:
    """A known value that was computed from `sources`."""
    places, flags = origins(sources)
    return Const(value, places=places, flags=flags)


def unknown_from(reason: str, kind: str, *sources: Value, name: str = "") -> Unknown:
    """An unknown computed from `sources`: the first unknown among them gives the reason."""
    first: Unknown | None = None
    query = flexible = False
    for s in sources:
        if type(s) is not Const:
            if first is None and isinstance(s, Unknown):
                first = s
            query = query or depends_on_query(s)
            flexible = flexible or is_flexible(s)
    places, flags = origins(sources)
    return Unknown(
        first.reason if first is not None else reason,
        name,
        kind,
        places=places,
        flags=flags,
        query=query,
        flexible=flexible,
    )


def depends_on_query(v: Value) -> bool:
    """Whether a value differs with the number of tokens that go in."""
    match v:
        case Num(dim=d):
            return d.query
        case Unknown(query=q):
            return q
    return False


def is_flexible(v: Value) -> bool:
    """Whether a number differs from call to call, with the shapes of the graph's inputs."""
    match v:
        case Num(dim=d):
            return d.flexible
        case Unknown(flexible=f):
            return f
    return False


def pattern(text: str, *sources: Value) -> Value:
    """A string with `*` for what is unknown."""
    while "**" in text:
        text = text.replace("**", "*")
    places, flags = origins(sources)
    return Pattern(text, places=places, flags=flags) if "*" in text else Const(text, places=places, flags=flags)
