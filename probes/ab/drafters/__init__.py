"""Drafters, one small file each: what the next tokens may be, from the tokens so far."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from probes.ab.drafters.drafter import Drafter

NAMES = ("ngram", "suffix", "tree")
RECORDED = "recorded:"


@dataclass(frozen=True, slots=True)
class Match:
    """How long a suffix of the text has to be found again, and up to which length an n-gram drafter looks."""

    least: int = 2
    most: int = 5


def make(name: str, match: Match | None = None) -> Drafter:
    """The drafter called `name`, empty; `recorded:FILE` replays drafts. ValueError says which there are."""
    found = match or Match()
    if name == "ngram":
        from probes.ab.drafters.ngram import NGram

        return NGram(found.least, found.most)
    if name == "suffix":
        from probes.ab.drafters.suffix import LongestSuffix

        return LongestSuffix(found.least)
    if name == "tree":
        from probes.ab.drafters.tree import SuffixTree

        return SuffixTree(found.least)
    if name.startswith(RECORDED) and name != RECORDED:
        from probes.ab.drafters.recorded import read

        return read(Path(name.removeprefix(RECORDED)))
    raise ValueError(f"no drafter is called {name!r}; there are: {', '.join(NAMES)}, recorded:FILE")
