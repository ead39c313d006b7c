"""What a Core ML model shows beyond a signature: how its flexible inputs fit together, and what its program does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from probes.coreml.program import Function
from probes.ports import ports
from probes.signature import DYNAMIC, Port, Signature
from rules.facts import Trait


def seen(signature: Signature, function: Function | None) -> dict[str, Any]:
    """The `programs` entry of one function: marks (trait, detail), notes, the vocabulary size, and `rows_by`."""
    marks = list(_flexibility(signature))
    notes: list[str] = []
    found: dict[str, Any] = {"vocab": None, "rows_by": ""}
    if function is not None:
        marks += _unwritten(signature, function)
        notes += _unread(signature, function)
        tokens = ports(signature).tokens
        found["vocab"] = function.vocabulary(tokens.name) if tokens else None
        marks += _baked(signature, function, found["vocab"])
        logits = ports(signature, found["vocab"]).logits
        if tokens and logits:
            found["rows_by"] = function.computed_rows(tokens.name, logits[0].name)
    return {**found, "marks": marks, "notes": notes}


def _flexibility(signature: Signature) -> list[tuple[str, str]]:
    """What Core ML makes of several flexible inputs."""
    enumerated = [port for port in signature.inputs if port.shapes]
    ranged = [port for port in signature.inputs if port.bounds]
    fixed = [port for port in signature.inputs if not port.shapes and not port.bounds]
    marks = []
    if enumerated and ranged:
        marks.append((str(Trait.MIXED_FLEXIBILITY), f"enumerated {_names(enumerated)}, ranged {_names(ranged)}"))
    elif ranged and fixed and signature.states:
        detail = f"ranged {_names(ranged)}, fixed {_names(fixed)}, in a model with states"
        marks.append((str(Trait.MIXED_FLEXIBILITY), detail))
    if len(enumerated) > 1:
        marks.append((str(Trait.INDEX_ALIGNED), aligned(enumerated)))
    return marks


def aligned(enumerated: Sequence[Port]) -> str:
    """The combinations that the runtime accepts, as tuples of shapes by index."""
    counts = {port.name: len(port.shapes) for port in enumerated}
    if len(set(counts.values())) != 1:
        listed = ", ".join(f"{name} has {count}" for name, count in counts.items())
        return f"{listed} shapes, so not every one has a partner"
    tuples = [
        " with ".join(str(list(shape)) for shape in shapes)
        for shapes in zip(*(p.shapes for p in enumerated), strict=True)
    ]
    shown = "; ".join(tuples[:8]) + (f"; and {len(tuples) - 8} more" if len(tuples) > 8 else "")
    return f"{' with '.join(counts)}: {shown}"


def _names(found: Sequence[Port]) -> str:
    return ", ".join(port.name for port in found)


def _unwritten(signature: Signature, function: Function) -> list[tuple[str, str]]:
    writes, reads = function.writes(), function.reads()
    never = [port.name for port in signature.states if not writes[port.name]]
    if not never:
        return []
    what = "; ".join(f"{name} is {'read only' if reads[name] else 'neither read nor written'}" for name in never)
    return [(str(Trait.UNWRITTEN_STATE), what)]


def _unread(signature: Signature, function: Function) -> list[str]:
    reads, writes = function.reads(), function.writes()
    return [
        f"state {port.name} is written and never read"
        for port in signature.states
        if writes[port.name] and not reads[port.name]
    ]


def _baked(signature: Signature, function: Function, vocab: int | None) -> list[tuple[str, str]]:
    """The operation that made the rows constant while the query is flexible."""
    found = ports(signature, vocab)
    if found.query_width != DYNAMIC or not found.logits:
        return []
    shape = found.logits[0].shape
    rows = shape[-2] if len(shape) >= 2 else 1
    if rows in (DYNAMIC, 1):
        return []
    where = function.baked(rows)
    return [(str(Trait.BAKED_LENGTH), f"{rows} rows whatever S is" + (f", for {where}" if where else ""))]
