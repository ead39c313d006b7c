"""A suffix tree of bounded depth with frequencies, over the prompt, the output so far and earlier outputs.

A draft follows the most frequent continuation from the node of the longest matching suffix.
"""

from __future__ import annotations

from collections.abc import Sequence

from probes.ab.drafters.drafter import Draft


class _Node:
    __slots__ = ("count", "following", "seen")

    def __init__(self) -> None:
        self.count = 0
        self.seen = 0
        self.following: dict[int, _Node] = {}


class SuffixTree:
    """Strings of up to `depth` tokens are counted; a match has at least `least` and at most `depth` - 1 of them."""

    def __init__(self, least: int = 2, depth: int = 16) -> None:
        if not 1 <= least < depth:
            raise ValueError(f"a match of {least} tokens in a tree of depth {depth}: 1 <= least < depth was expected")
        self._least = least
        self._depth = depth
        self._root = _Node()
        self._open: list[_Node] = []
        self._tail: list[int] = []
        self._clock = 0

    def remember(self, tokens: Sequence[int]) -> None:
        self.extend(tokens)
        self._open, self._tail = [], []

    def extend(self, tokens: Sequence[int]) -> None:
        for token in tokens:
            self._clock += 1
            grown = []
            for node in (self._root, *self._open[: self._depth - 1]):
                child = node.following.get(token)
                if child is None:
                    child = node.following[token] = _Node()
                child.count += 1
                child.seen = self._clock
                grown.append(child)
            self._open = grown
            self._tail = [*self._tail[-self._depth + 2 :], token]

    def draft(self, limit: int) -> Draft:
        found = self._longest(self._tail)
        if found is None:
            return Draft()
        node, match = found
        drafted: list[int] = []
        while len(drafted) < limit:
            if not node.following:
                again = self._longest([*self._tail, *drafted][-self._depth + 1 :])
                if again is None:
                    break
                node = again[0]
            token, node = max(node.following.items(), key=lambda item: (item[1].count, item[1].seen))
            drafted.append(token)
        return Draft(tuple(drafted), match) if drafted else Draft()

    def _longest(self, tail: Sequence[int]) -> tuple[_Node, int] | None:
        """The node of the longest suffix of `tail` that something followed."""
        for start in range(len(tail) - self._least + 1):
            node: _Node | None = self._root
            for token in tail[start:]:
                node = node.following.get(token) if node else None
            if node is not None and node.following:
                return node, len(tail) - start
        return None
