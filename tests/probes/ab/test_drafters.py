"""Drafters against their definitions."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from probes.ab.drafters import NAMES, Match, make
from probes.ab.drafters.drafter import copied
from probes.ab.drafters.recorded import read


def longest(text: Sequence[int]) -> int:
    """The longest suffix that ends earlier as well, by trying all."""
    return max(
        n for n in range(len(text)) if any(text[end - n : end] == text[len(text) - n :] for end in range(n, len(text)))
    )


def text_of(seed: int, length: int = 60) -> list[int]:
    dice = random.Random(seed)
    return [dice.randrange(3) for _ in range(length)]


@pytest.mark.parametrize("seed", range(20))
def test_suffix_finds_the_longest_match_after_every_token(seed: int) -> None:
    text, drafter = text_of(seed), make("suffix", Match(1, 1))
    for index, token in enumerate(text):
        drafter.extend([token])
        seen = text[: index + 1]
        draft = drafter.draft(4)
        assert draft.match == longest(seen)
        if draft.match:
            start = len(seen) - draft.match
            places = [end for end in range(draft.match, len(seen)) if seen[end - draft.match : end] == seen[start:]]
            assert draft.tokens in [copied(seen, end, 4) for end in places]


@pytest.mark.parametrize("seed", range(20))
def test_ngram_takes_the_longest_and_then_the_latest(seed: int) -> None:
    text, drafter = text_of(seed), make("ngram", Match(2, 4))
    for index, token in enumerate(text):
        drafter.extend([token])
        seen = text[: index + 1]
        sizes = [
            n for n in (4, 3, 2) if n < len(seen) and any(seen[e - n : e] == seen[-n:] for e in range(n, len(seen)))
        ]
        draft = drafter.draft(3)
        assert draft.match == (sizes[0] if sizes else 0)
        if sizes:
            n = sizes[0]
            end = max(e for e in range(n, len(seen)) if seen[e - n : e] == seen[-n:])
            assert draft.tokens == copied(seen, end, 3)


def test_tree_follows_the_more_frequent_continuation() -> None:
    drafter = make("tree")
    drafter.extend([1, 2, 3, 9, 1, 2, 3, 8, 1, 2, 4, 7, 1, 2])
    draft = drafter.draft(1)
    assert (draft.tokens, draft.match) == ((3,), 2)
    assert make("ngram").draft(4).tokens == ()


def test_only_the_tree_remembers_earlier_outputs() -> None:
    for name in NAMES:
        drafter = make(name)
        drafter.remember([5, 6, 7, 8, 9])
        drafter.extend([1, 5, 6])
        assert drafter.draft(3).tokens == ((7, 8, 9) if name == "tree" else ())
    joined = make("tree")
    joined.remember([5, 6])
    joined.extend([7, 1, 6, 7])
    # 6 7 spans two texts, so it never occurred.
    assert joined.draft(2).tokens == ()


@pytest.mark.parametrize("name", NAMES)
def test_limits(name: str) -> None:
    drafter = make(name, Match(1, 3))
    assert drafter.draft(4).tokens == ()
    drafter.extend([1, 2, 1, 2, 1, 2])
    assert drafter.draft(0).tokens == ()
    assert drafter.draft(5).tokens == (1, 2, 1, 2, 1)
    strict = make(name, Match(3, 3))
    strict.extend([1, 2, 9, 1, 2])
    assert strict.draft(4).tokens == ()


def test_growing_the_automaton_is_linear() -> None:
    dice = random.Random(1)
    text = [dice.randrange(50) for _ in range(60_000)]

    def cost(count: int) -> float:
        started = time.process_time()
        make("suffix").extend(text[:count])
        return time.process_time() - started

    assert min(cost(60_000) for _ in range(2)) < 12 * min(cost(15_000) for _ in range(3))


def test_names(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="there are: ngram, suffix, tree"):
        make("oracle")
    with pytest.raises(ValueError, match="least <= most"):
        make("ngram", Match(4, 2))
    with pytest.raises(ValueError, match="1 at least"):
        make("suffix", Match(0, 2))


def test_recorded_files(tmp_path: Path) -> None:
    file = tmp_path / "drafts.json"
    file.write_text(json.dumps({"drafts": {"3": [7, 8]}}))
    drafter = read(file)
    drafter.extend([1, 2, 3])
    assert drafter.draft(9).tokens == (7, 8)
    assert drafter.draft(1).tokens == (7,)
    for wrong in ("[", "[]", '{"drafts": {"x": [1]}}', '{"drafts": {"3": ["a"]}}', '{"drafts": {"3": [-1]}}'):
        file.write_text(wrong)
        with pytest.raises(ValueError, match=str(file)):
            read(file)
    with pytest.raises(ValueError, match="No such file"):
        read(tmp_path / "none.json")
