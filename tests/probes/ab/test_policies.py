"""Draft lengths by the rules."""

from __future__ import annotations

import pytest

from probes.ab.policies import Adaptive, ByMatch, Fixed, parse, settled


def test_adaptive_starts_at_one_and_moves_within_its_cap() -> None:
    policy, length, seen = Adaptive(7), 1, []
    for drafted, accepted in [(1, 1), (3, 3), (5, 5), (7, 7), (7, 6), (6, 0), (0, 0), (5, 5), (7, 0)]:
        length = policy.after(length, drafted, accepted)
        seen.append(length)
    assert seen == [3, 5, 7, 7, 6, 5, 5, 7, 6]
    assert policy.after(1, 1, 0) == 1
    assert Adaptive(8).after(7, 7, 7) == 8


def test_fixed_and_by_match() -> None:
    assert Fixed(3).after(3, 3, 0) == 3
    assert (ByMatch(6, 3).wants(6, 2), ByMatch(6, 3).wants(6, 3)) == (0, 6)


@pytest.mark.parametrize(
    ("text", "policy"),
    [("2", Fixed(2)), ("adaptive:7", Adaptive(7)), ("match:7:3", ByMatch(7, 3)), ("adaptive", Adaptive(0))],
)
def test_parse(text: str, policy: object) -> None:
    assert parse(text) == policy


@pytest.mark.parametrize("text", ["0", "-1", "65", "x", "adaptive:0", "adaptive:1:2", "match:3", "2:3", ""])
def test_parse_refuses(text: str) -> None:
    with pytest.raises(ValueError, match="was expected"):
        parse(text)


def test_the_staircase_settles_what_was_left_open() -> None:
    assert settled(Adaptive(0), 7) == Adaptive(7)
    assert settled(ByMatch(0, 3), 2) == ByMatch(2, 3)
    assert settled(Adaptive(0), None) is None
    assert settled(Fixed(2), None) == Fixed(2)
    assert settled(Adaptive(5), 7) == Adaptive(5)
