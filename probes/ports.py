"""Which port is which: token ids, positions, embeddings, logits; told by name, type and shape."""

from __future__ import annotations

import enum
import re
from dataclasses import dataclass

from probes.signature import DYNAMIC, Port, Signature

_TOKENS = re.compile(r"^(input_?ids|token_?ids|tokens?|ids|input_?tokens?|in_?tokens?)$", re.IGNORECASE)
_POSITION = re.compile(r"(pos|offset|in_?step|^start|cache_?len|past_?len|seq_?start)", re.IGNORECASE)
_MASK = re.compile(r"mask", re.IGNORECASE)
_EMBEDS = re.compile(r"(embed|hidden|transformer_?input)", re.IGNORECASE)
_LOGITS = re.compile(r"logit", re.IGNORECASE)
_CHOICE = re.compile(r"(argmax|token|next|sampled|top_?k|ids)", re.IGNORECASE)


class Positions(enum.StrEnum):
    """How a graph is told where the query starts."""

    RANGE = "range"
    """`[1, offset + S]`, all positions from 0: the graph derives the offset from the two lengths."""
    ROWS = "rows"
    """`[1, S]`, the position of each row."""
    START = "start"
    """One number, the offset."""
    NONE = "none"
    """Nothing: the graph has no position, or keeps it in a counter."""


@dataclass(frozen=True, slots=True)
class Ports:
    """The ports that a decode step uses. `others` are inputs that nobody here knows how to fill.

    A `mask` is [.., S, E] or [.., E]: which of E cached positions each row of the query sees.
    """

    tokens: Port | None
    embeds: Port | None
    position: Port | None
    logits: tuple[Port, ...]
    choice: Port | None
    others: tuple[Port, ...]
    mask: Port | None = None

    @property
    def enumerated(self) -> tuple[int, ...]:
        """The query widths that an enumeration allows; empty without one."""
        port = self.query
        if port is None or not port.shapes or self.query_width != DYNAMIC:
            return ()
        return port.sizes(-1 if self.tokens else -2)

    @property
    def query(self) -> Port | None:
        return self.tokens or self.embeds

    @property
    def query_width(self) -> int | None:
        """The query dimension, -1 when dynamic; None without a query."""
        if self.tokens:
            return self.tokens.shape[-1] if self.tokens.shape else 1
        if self.embeds and len(self.embeds.shape) >= 2:
            return self.embeds.shape[-2]
        return None


def ports(signature: Signature, vocab: int | None = None) -> Ports:
    """Sort the ports of `signature`; `vocab` (from a bundle's metadata) tells logits from hidden states."""
    integers = [port for port in signature.inputs if port.is_integer]
    tokens = next((port for port in integers if _TOKENS.match(port.name)), None)
    if tokens is None:
        rest = [port for port in integers if not _POSITION.search(port.name) and "mask" not in port.name.lower()]
        tokens = rest[0] if len(rest) == 1 and len(rest[0].shape) in (1, 2) else None
    embeds = next(
        (port for port in signature.inputs if port.is_float and len(port.shape) >= 3 and _EMBEDS.search(port.name)),
        None,
    )
    position = next((port for port in integers if port is not tokens and _POSITION.search(port.name)), None)
    mask = _mask(signature, tokens) if tokens else None
    known = {port for port in (tokens, position, mask, None if tokens else embeds) if port}
    return Ports(
        tokens=tokens,
        embeds=None if tokens else embeds,
        position=position,
        logits=_logits(signature, vocab),
        choice=next((port for port in signature.outputs if port.is_integer and _CHOICE.search(port.name)), None),
        others=tuple(port for port in signature.inputs if port not in known),
        mask=mask,
    )


def _mask(signature: Signature, tokens: Port) -> Port | None:
    """A mask over rows and cached positions: 0 or -inf if it is a float, 1 or 0 if it is an integer.

    A float without rows is left alone: nothing tells what it wants.
    """
    width = tokens.shape[-1] if tokens.shape else 1
    for port in signature.inputs:
        if not _MASK.search(port.name) or len(port.shape) < 2:
            continue
        if port.is_float and len(port.shape) > 2 and port.shape[-2] == width:
            return port
        if port.is_integer and (len(port.shape) == 2 or port.shape[-2] == width):
            return port
    return None


def _logits(signature: Signature, vocab: int | None) -> tuple[Port, ...]:
    floats = [port for port in signature.outputs if port.is_float and port.shape]
    named = tuple(port for port in floats if _LOGITS.search(port.name))
    if named:
        return named
    return tuple(port for port in floats if vocab and port.shape[-1] == vocab)


def most_rows(signature: Signature) -> int | None:
    """The widest query that the declared range allows; None without a limit."""
    port = ports(signature).query
    if port is None or not port.bounds:
        return None
    return port.most(len(port.shape) - (1 if port.is_integer else 2))


def guess_positions(found: Ports) -> Positions:
    """The convention that the shapes allow; a dynamic `[1, ?]` beside a dynamic query is taken for the whole range.

    That is what Apple's exporter emits. Nothing in a signature tells it from one position a row, so the command has an
    option for it.
    """
    port, width = found.position, found.query_width
    if port is None:
        return Positions.NONE
    last = port.shape[-1] if port.shape else 1
    if len(port.shape) == 2 and last == DYNAMIC:
        return Positions.RANGE
    if len(port.shape) == 1 and last == DYNAMIC:
        return Positions.ROWS
    return Positions.ROWS if last == width and last != 1 else Positions.START
