"""Prompt lookup: the continuation of the latest earlier occurrence of the last n tokens, the longest n first."""

from __future__ import annotations

from collections.abc import Sequence

from probes.ab.drafters.drafter import Draft, copied


class NGram:
    """n from `most` down to `least`. An index of every n-gram makes a draft `most - least + 1` look-ups."""

    def __init__(self, least: int = 2, most: int = 5) -> None:
        if not 1 <= least <= most:
            raise ValueError(f"n-grams of {least} to {most} tokens: 1 <= least <= most was expected")
        self._sizes = range(most, least - 1, -1)
        self._text: list[int] = []
        self._after: dict[tuple[int, ...], int] = {}

    def remember(self, tokens: Sequence[int]) -> None:
        pass

    def extend(self, tokens: Sequence[int]) -> None:
        text = self._text
        for token in tokens:
            # A gram is indexed when its continuation is known, so the end of the text never finds itself.
            for size in self._sizes:
                if size <= len(text):
                    self._after[tuple(text[-size:])] = len(text)
            text.append(token)

    def draft(self, limit: int) -> Draft:
        for size in self._sizes:
            if limit > 0 and size <= len(self._text):
                start = self._after.get(tuple(self._text[-size:]))
                if start is not None:
                    return Draft(copied(self._text, start, limit), size)
        return Draft()
