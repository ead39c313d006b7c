"""How fast this machine is: limits in seconds are those of one that parses a public model zoo with LibCST in 5.4 s."""

from __future__ import annotations

import time
from functools import cache

_REFERENCE = 0.025
"""Seconds of CPU time that `_work` takes on that machine."""


@cache
def slower() -> float:
    """By which factor this machine is slower than the one that limits are given for; at least 1."""
    return max(1.0, min(_work() for _ in range(5)) / _REFERENCE)


def _work() -> float:
    start = time.process_time()
    texts: dict[int, str] = {}
    for number in range(400_000):
        texts[number & 1023] = str(number)
    return time.process_time() - start
