"""How many tokens a round gives, from what is known of a drafter's acceptance.

A round drafts K tokens and verifies them with one forward of S = K+1; it gives the accepted prefix and one token more.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol


class Acceptance(Protocol):
    """`tokens(k)` is the mean number of tokens a round with `k` drafts gives; None where the data do not reach."""

    def tokens(self, k: int) -> float | None: ...

    def as_json(self) -> dict[str, Any]: ...


@dataclass(frozen=True, slots=True)
class Rate:
    """Every draft is accepted with one probability, given that those before it were: 1 + a + ... + a^K."""

    rate: float

    def tokens(self, k: int) -> float | None:
        return sum(self.rate**power for power in range(k + 1))

    def as_json(self) -> dict[str, Any]:
        return {"kind": "rate", "rate": self.rate}


@dataclass(frozen=True, slots=True)
class PerPosition:
    """The i-th draft is accepted with rate i, given that those before it were."""

    rates: tuple[float, ...]

    def tokens(self, k: int) -> float | None:
        if k > len(self.rates):
            return None
        total = chain = 1.0
        for rate in self.rates[:k]:
            chain *= rate
            total += chain
        return total

    def as_json(self) -> dict[str, Any]:
        return {"kind": "per-position", "rates": list(self.rates)}


@dataclass(frozen=True, slots=True)
class Records:
    """Rounds as they were: (drafted, accepted). A shorter draft would have got the shorter of its length and that.

    A round whose draft was cut at `drafted` and wholly accepted does not say what a longer one would have got, so only
    drafts up to the shortest fully accepted length are predicted.
    """

    rounds: tuple[tuple[int, int], ...]

    def tokens(self, k: int) -> float | None:
        if any(accepted == drafted < k and drafted > 0 for drafted, accepted in self.rounds):
            return None
        return 1 + sum(min(k, accepted) for _, accepted in self.rounds) / len(self.rounds)

    def as_json(self) -> dict[str, Any]:
        return {"kind": "records", "rounds": len(self.rounds)}


def parse(text: str) -> Acceptance:
    """A rate (`0.7`), rates by position (`0.8,0.6,0.5`), or a JSON file of a rate, rates, or records.

    Records are `{"records": [[drafted, accepted], ...]}`, objects with these keys, or
    `{"k": 7, "accepted": [3, 0, ...]}` for rounds of one draft length. ValueError says what is wrong.
    """
    path = Path(text)
    if not path.is_file():
        numbers = [_probability(part) for part in text.split(",")]
        return Rate(numbers[0]) if len(numbers) == 1 else PerPosition(tuple(numbers))
    try:
        data = json.loads(path.read_text("utf-8"))
    except ValueError as error:
        raise ValueError(f"{text}: not valid JSON ({error})") from None
    if isinstance(data, dict) and isinstance(data.get("accepted"), list):
        data = [(data.get("k"), accepted) for accepted in data["accepted"]]
    elif isinstance(data, dict):
        data = next((data[key] for key in ("records", "rates", "rate") if key in data), None)
    if isinstance(data, int | float):
        return Rate(_probability(data))
    if isinstance(data, list) and data and all(isinstance(item, int | float) for item in data):
        return PerPosition(tuple(_probability(item) for item in data))
    if isinstance(data, list) and data:
        return Records(tuple(_round(item) for item in data))
    raise ValueError(f"{text}: a rate, a list of rates, or a list of [drafted, accepted] was expected")


def _probability(value: Any) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise ValueError(f"{value!r} is neither a number nor a file") from None
    if not 0 <= number <= 1:
        raise ValueError(f"{value} is no acceptance rate: it must lie in 0..1")
    return number


def _round(item: Any) -> tuple[int, int]:
    pair: Sequence[Any] = (item.get("drafted"), item.get("accepted")) if isinstance(item, dict) else item
    try:
        drafted, accepted = (int(value) for value in pair)
    except (TypeError, ValueError):
        raise ValueError(f"{item!r} is no record of a round: [drafted, accepted] was expected") from None
    if not 0 <= accepted <= drafted:
        raise ValueError(f"{item!r}: accepted must lie in 0..drafted")
    return drafted, accepted
