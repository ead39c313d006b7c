"""The longest suffix of the text that occurred before, by a suffix automaton grown token by token.

Source: A. Blumer et al., The smallest automaton recognizing the subwords of a text (1985). The suffix link of the
state of the whole text stands for its longest suffix that ends elsewhere as well, so no search is needed; growing is
constant time per token, amortised.
"""

from __future__ import annotations

from collections.abc import Sequence

from probes.ab.drafters.drafter import Draft, copied


class LongestSuffix:
    """Drafts where the match has at least `least` tokens."""

    def __init__(self, least: int = 2) -> None:
        if least < 1:
            raise ValueError(f"a match of {least} tokens: 1 at least was expected")
        self._least = least
        self._text: list[int] = []
        self._next: list[dict[int, int]] = [{}]
        self._link = [-1]
        self._length = [0]
        self._seen = [-1]
        self._last = 0
        self._match = 0
        self._start = 0

    def remember(self, tokens: Sequence[int]) -> None:
        pass

    def extend(self, tokens: Sequence[int]) -> None:
        for token in tokens:
            self._grow(token)

    def _grow(self, token: int) -> None:
        end = len(self._text)
        self._text.append(token)
        state, walk = self._new(self._length[self._last] + 1, {}, -1, end), self._last
        while walk >= 0 and token not in self._next[walk]:
            self._next[walk][token] = state
            walk = self._link[walk]
        if walk < 0:
            self._link[state] = 0
        else:
            self._link[state] = self._split(walk, token)
        self._last = state
        longest = self._link[state]
        self._match, self._start = self._length[longest], self._seen[longest] + 1
        # The latest end at which this state was the longest match; older ones say less of what comes next.
        self._seen[longest] = end

    def _split(self, walk: int, token: int) -> int:
        """The state of the strings of `walk` followed by `token`, cloned where its longest string is longer."""
        found = self._next[walk][token]
        if self._length[found] == self._length[walk] + 1:
            return found
        clone = self._new(self._length[walk] + 1, dict(self._next[found]), self._link[found], self._seen[found])
        while walk >= 0 and self._next[walk].get(token) == found:
            self._next[walk][token] = clone
            walk = self._link[walk]
        self._link[found] = clone
        return clone

    def _new(self, length: int, following: dict[int, int], link: int, seen: int) -> int:
        self._length.append(length)
        self._next.append(following)
        self._link.append(link)
        self._seen.append(seen)
        return len(self._length) - 1

    def draft(self, limit: int) -> Draft:
        if self._match < self._least or limit <= 0:
            return Draft()
        return Draft(copied(self._text, self._start, limit), self._match)
