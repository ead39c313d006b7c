"""What a ship review does with a model: its verdict by the source and its probe's verdict, taken together.

A wrong `eligible` is the worst that can be said, so a probe that refutes beats every one that confirms, and what was
confirmed off a device is never called confirmed without saying where.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable

from rules.fixes import FixedBy
from rules.verdict import Verdict


class Decision(enum.StrEnum):
    """The decisions, in the order in which a review reads them."""

    CONFIRMED = "confirmed"
    CONFIRMED_ELSEWHERE = "confirmed-elsewhere"
    SETTLED = "settled"
    PARTLY = "partly-probed"
    UNPROBED = "unprobed"
    REFUTED = "refuted"
    CONTRADICTED = "contradicted"
    SECOND_BUNDLE = "second-bundle"
    FLAG = "flag"
    LINE = "line"
    OUT = "out"
    UNRESOLVED = "unresolved"
    NO_DECODER = "not-a-decoder"


USABLE = frozenset(
    {Decision.CONFIRMED, Decision.CONFIRMED_ELSEWHERE, Decision.SETTLED, Decision.PARTLY, Decision.UNPROBED}
)
"""Where nothing speaks against drafting, and a draft length may be named."""

_OUT = {
    FixedBy.SECOND_BUNDLE: Decision.SECOND_BUNDLE,
    FixedBy.FLAG: Decision.FLAG,
    FixedBy.LINE: Decision.LINE,
    FixedBy.NONE: Decision.OUT,
}


def decide(verdict: Verdict, fixed_by: FixedBy, rules: Iterable[str], probes: Iterable[tuple[str, str]]) -> Decision:
    """The decision on a model.

    `rules` are the broken rules of its primary graph; `probes` the verdict and the scope of each probe of the bundle
    that ships.
    """
    seen = list(probes)
    verdicts = {said for said, _ in seen}
    confirmed = "confirmed" in verdicts and "refuted" not in verdicts
    if verdict is Verdict.OUT:
        if confirmed:
            return Decision.CONTRADICTED
        return Decision.NO_DECODER if "not-a-decoder" in set(rules) else _OUT[fixed_by]
    if "refuted" in verdicts:
        return Decision.REFUTED
    if verdict is Verdict.UNRESOLVED:
        return Decision.SETTLED if confirmed else Decision.UNRESOLVED
    if ("confirmed", "device") in seen:
        return Decision.CONFIRMED
    if confirmed:
        return Decision.CONFIRMED_ELSEWHERE
    return Decision.PARTLY if seen else Decision.UNPROBED
