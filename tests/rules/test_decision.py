from __future__ import annotations

import itertools

import pytest

from rules.decision import USABLE, Decision, decide
from rules.fixes import FixedBy
from rules.verdict import Verdict

ELIGIBLE, OUT, UNRESOLVED = Verdict.ELIGIBLE, Verdict.OUT, Verdict.UNRESOLVED
DEVICE, INTERPRETER = ("confirmed", "device"), ("confirmed", "interpreter")
REFUTED, PARTIAL = ("refuted", "interpreter"), ("partial", "device")


@pytest.mark.parametrize(
    ("verdict", "probes", "decision"),
    [
        (ELIGIBLE, [], Decision.UNPROBED),
        (ELIGIBLE, [DEVICE], Decision.CONFIRMED),
        (ELIGIBLE, [INTERPRETER], Decision.CONFIRMED_ELSEWHERE),
        (ELIGIBLE, [("confirmed", "program")], Decision.CONFIRMED_ELSEWHERE),
        (ELIGIBLE, [("confirmed", "")], Decision.CONFIRMED_ELSEWHERE),
        (ELIGIBLE, [PARTIAL], Decision.PARTLY),
        (ELIGIBLE, [INTERPRETER, DEVICE], Decision.CONFIRMED),
        (ELIGIBLE, [PARTIAL, DEVICE], Decision.CONFIRMED),
        (ELIGIBLE, [DEVICE, REFUTED], Decision.REFUTED),
        (UNRESOLVED, [], Decision.UNRESOLVED),
        (UNRESOLVED, [PARTIAL], Decision.UNRESOLVED),
        (UNRESOLVED, [DEVICE], Decision.SETTLED),
        (UNRESOLVED, [REFUTED], Decision.REFUTED),
        (OUT, [DEVICE], Decision.CONTRADICTED),
        (OUT, [REFUTED], Decision.OUT),
        (OUT, [DEVICE, REFUTED], Decision.OUT),
    ],
)
def test_decisions(verdict: Verdict, probes: list[tuple[str, str]], decision: Decision) -> None:
    assert decide(verdict, FixedBy.NONE, (), probes) is decision


def test_what_is_out_is_told_by_its_fix() -> None:
    assert decide(OUT, FixedBy.FLAG, ["static-query"], []) is Decision.FLAG
    assert decide(OUT, FixedBy.LINE, ["static-query"], []) is Decision.LINE
    assert decide(OUT, FixedBy.SECOND_BUNDLE, ["static-query"], []) is Decision.SECOND_BUNDLE
    assert decide(OUT, FixedBy.NONE, ["not-a-decoder"], []) is Decision.NO_DECODER


def test_nothing_that_a_probe_refutes_or_the_source_rules_out_is_usable() -> None:
    scopes = ("device", "interpreter", "program", "")
    seen = [(said, scope) for said in ("confirmed", "partial", "refuted") for scope in scopes]
    for verdict, fixed_by, probes in itertools.product(Verdict, FixedBy, itertools.product(seen, seen)):
        decision = decide(verdict, fixed_by, (), probes)
        if verdict is OUT or any(said == "refuted" for said, _ in probes):
            assert decision not in USABLE
        if decision is Decision.CONFIRMED:
            assert verdict is ELIGIBLE
            assert ("confirmed", "device") in probes
