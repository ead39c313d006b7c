"""What a drafter is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Draft:
    """Tokens that may come next, and the length of the match that they rest on (0: nothing was found)."""

    tokens: tuple[int, ...] = ()
    match: int = 0


class Drafter(Protocol):
    """Sees every token of the text once, in order, and never the future. A drafter serves one text."""

    def remember(self, tokens: Sequence[int]) -> None:
        """An earlier output, before the text begins; a drafter that looks at its own text only forgets it."""
        ...

    def extend(self, tokens: Sequence[int]) -> None:
        """The prompt, then the tokens as they are emitted."""
        ...

    def draft(self, limit: int) -> Draft:
        """At most `limit` tokens to follow the text so far."""
        ...


def copied(text: Sequence[int], start: int, limit: int) -> tuple[int, ...]:
    """`limit` tokens of `text` from `start`; past its end the copy goes on with what it has copied, as in LZ77."""
    period = len(text) - start
    return tuple(text[start + index % period] for index in range(limit)) if period > 0 else ()
