"""Answers that may be unknown (None), put together by Kleene's logic of three values."""

from __future__ import annotations

from collections.abc import Iterable


def every(answers: Iterable[bool | None]) -> bool | None:
    """`and`: one no is enough."""
    seen = set(answers)
    return False if False in seen else None if None in seen else True


def some(answers: Iterable[bool | None]) -> bool | None:
    """`or`: one yes is enough."""
    seen = set(answers)
    return True if True in seen else None if None in seen else False


def negated(answer: bool | None) -> bool | None:
    """`not`."""
    return None if answer is None else not answer


def common(answers: Iterable[bool | None]) -> bool | None:
    """What all of them are; None when they differ, or there is none."""
    seen = set(answers)
    return seen.pop() if len(seen) == 1 else None
