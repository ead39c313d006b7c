"""A wrong `eligible` is the worst thing that can be printed: most of these tests try to get one."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from rules import registry, verdict
from rules.examples import (
    CALL,
    DENSE,
    HYBRID,
    KEYS,
    PINNED,
    TOWER,
    VALUES,
    at,
    kind,
    kv,
    logits,
    mark,
    query,
    state,
    states,
)
from rules.facts import Fact, GraphFacts, Kind, Kv, Logits, Mark, Query, Role, State, Trait
from rules.rule import Breach, Rule, Severity
from rules.verdict import Verdict, judge


def missing(reason: str = "import of `somewhere` was not found") -> Fact[Any]:
    return Fact.unknown(reason, CALL, at(7, "from somewhere import thing"))


# One fact of an eligible graph made unknown: never eligible, and the reason says which and where.
UNKNOWN = {
    "unknown-kind": replace(DENSE, kind=missing()),
    "unknown-states": replace(DENSE, states=missing()),
    "unknown-state-role": replace(DENSE, states=states(KEYS, State("cacheB", Role.UNKNOWN, (at(7),), "no hint"))),
    "unknown-query": replace(DENSE, query=missing()),
    "unknown-logits": replace(DENSE, logits=missing()),
    "unknown-kv": replace(DENSE, kv=missing()),
}

# One fact made bad: out, or unresolved for a fixed window.
BAD = {
    "not-a-decoder": replace(DENSE, kind=kind(Kind.OTHER)),
    "hybrid-state": HYBRID,
    "kv-as-io": replace(DENSE, kv=kv(Kv.IO)),
    "no-logits": replace(DENSE, logits=logits(Logits.NONE)),
    "static-query": PINNED,
    "last-token-only": replace(DENSE, logits=logits(Logits.LAST)),
    "fixed-window": replace(DENSE, query=query(8, 64)),
    "row-kernel": replace(DENSE, marks=mark(Trait.ROW_KERNEL, "")),
    "ring-cache": replace(DENSE, marks=mark(Trait.RING_CACHE, "")),
    "baked-length": replace(DENSE, marks=mark(Trait.BAKED_LENGTH, "")),
}

# Facts that are all known, break no rule, and cannot be true together.
INCONSISTENT = {
    "cache in no state": replace(DENSE, kv=kv(Kv.NONE)),
    "state cache without states": replace(DENSE, states=states()),
    "state cache in a counter": replace(DENSE, states=states(state("position", Role.COUNTER))),
    "a range with widths": replace(DENSE, query=Fact(Query(True, (4,)), (CALL,))),
    "neither range nor widths": replace(DENSE, query=Fact(Query(False), (CALL,))),
}


def test_dense_is_eligible() -> None:
    judged = judge(DENSE)
    assert judged.verdict is Verdict.ELIGIBLE
    assert judged.reasons == ()
    assert judged.says() == "eligible"


@pytest.mark.parametrize("rule", UNKNOWN)
def test_one_unknown_fact(rule: str) -> None:
    judged = judge(UNKNOWN[rule])
    assert judged.verdict is Verdict.UNRESOLVED
    assert [reason.rule for reason in judged.reasons] == [rule]
    reason = judged.reasons[0]
    assert reason.severity is Severity.WARNING
    assert reason.primary is not None
    assert reason.primary.line == 7
    assert "no hint" in reason.message or "`somewhere`" in reason.message


@pytest.mark.parametrize("rule", BAD)
def test_one_bad_fact(rule: str) -> None:
    judged = judge(BAD[rule])
    assert judged.broken == (rule,)
    assert judged.verdict is (Verdict.UNRESOLVED if rule == "fixed-window" else Verdict.OUT)
    assert judged.says() == f"{judged.verdict} by {rule}"


@pytest.mark.parametrize("facts", INCONSISTENT.values(), ids=INCONSISTENT)
def test_facts_that_do_not_fit_together(facts: GraphFacts) -> None:
    judged = judge(facts)
    assert judged.verdict is Verdict.UNRESOLVED
    assert {reason.rule for reason in judged.reasons} == {"inconsistent-facts"}


def _field(unknown: str) -> str:
    return {"unknown-state-role": "states"}.get(unknown, unknown.removeprefix("unknown-"))


# The same fact cannot be bad and unknown.
PAIRS = [
    (bad, unknown)
    for bad, unknown in itertools.product(BAD, UNKNOWN)
    if getattr(BAD[bad], _field(unknown)) == getattr(DENSE, _field(unknown))
]


@pytest.mark.parametrize(("bad", "unknown"), PAIRS)
def test_a_broken_rule_counts_although_another_fact_is_unknown(bad: str, unknown: str) -> None:
    field = _field(unknown)
    judged = judge(replace(BAD[bad], **{field: getattr(UNKNOWN[unknown], field)}))
    assert judged.verdict is (Verdict.UNRESOLVED if bad == "fixed-window" else Verdict.OUT)
    assert judged.broken == (bad,)
    assert [item.rule for item in judged.unresolved] == [unknown]
    assert [item.rule for item in judged.reasons] == ([bad, unknown] if bad == "fixed-window" else [bad])


def test_all_broken_rules_are_listed_in_the_designs_order() -> None:
    facts = replace(
        HYBRID,
        kv=kv(Kv.IO),
        query=query(1),
        logits=logits(Logits.LAST),
        marks=mark(Trait.BAKED_LENGTH, "") + mark(Trait.RING_CACHE, "") + mark(Trait.ROW_KERNEL, ""),
    )
    assert judge(facts).broken == (
        "hybrid-state",
        "kv-as-io",
        "static-query",
        "last-token-only",
        "row-kernel",
        "ring-cache",
        "baked-length",
    )


def test_the_primary_reason_of_an_out_graph_is_one_that_makes_it_out() -> None:
    judged = judge(replace(DENSE, query=query(4), marks=mark(Trait.ROW_KERNEL, "")))
    assert judged.verdict is Verdict.OUT
    assert judged.broken == ("row-kernel", "fixed-window")


def test_nothing_else_is_asked_of_what_is_no_decoder() -> None:
    judged = judge(replace(TOWER, marks=mark(Trait.WORKLOAD, "speech")))
    assert judged.broken == ("not-a-decoder",)
    assert judged.advice == ()


def test_hybrid_names_the_states_with_their_roles() -> None:
    message = judge(HYBRID).reasons[0].message
    assert "`convState` is no KV cache" in message
    assert "keyCache (kv-key), valueCache (kv-value), convState (conv)" in message


def test_a_recurrent_state_decides_although_another_role_is_unknown() -> None:
    facts = replace(DENSE, states=states(state("rec", Role.RECURRENT), state("x", Role.UNKNOWN)))
    assert judge(facts).says() == "out by hybrid-state"


def test_static_query_names_the_flag_and_the_line() -> None:
    facts = replace(DENSE, query=query(1, line=55, flag="--static-ids"))
    message = judge(facts).reasons[0].message
    assert message == "the query is pinned to S=1; `--static-ids` decides it (export_model.py:55)"


def test_static_query_names_the_literal_line() -> None:
    finding = judge(PINNED).reasons[0]
    assert "export_model.py:30" in finding.message
    assert "torch.zeros((1, 1))" in finding.message
    assert "--" not in finding.message


def test_fixed_window_lists_the_widths() -> None:
    assert "8, 16, 64" in judge(replace(DENSE, query=query(64, 8, 16))).reasons[0].message


def test_hybrid_cap_and_moe_are_advice() -> None:
    judged = judge(replace(HYBRID, marks=mark(Trait.MOE, "")))
    assert [item.rule for item in judged.advice] == ["moe", "hybrid-cap"]
    assert judge(replace(DENSE, marks=mark(Trait.MOE, ""))).verdict is Verdict.ELIGIBLE


def _crash(facts: GraphFacts) -> Breach | None:
    raise RuntimeError("boom")


def test_a_crashing_rule_is_a_result(monkeypatch: pytest.MonkeyPatch) -> None:
    real = registry.verdict_rules()
    rigged = tuple(replace(item, breach=_crash) if item.id == "row-kernel" else item for item in real)
    monkeypatch.setattr(verdict, "verdict_rules", lambda: rigged)
    judged = judge(DENSE)
    assert judged.says() == "unresolved by rule-crash"
    assert "`row-kernel` failed (RuntimeError: boom)" in judged.reasons[0].message
    assert judge(PINNED).says() == "out by static-query"


def test_a_crashing_advice_changes_no_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    rigged: tuple[Rule, ...] = tuple(replace(item, breach=_crash) for item in registry.advice_rules())
    monkeypatch.setattr(verdict, "advice_rules", lambda: rigged)
    assert judge(DENSE).verdict is Verdict.ELIGIBLE


def _everything() -> Iterator[tuple[GraphFacts, bool, bool]]:
    """Every combination of fact values: (facts, may be eligible, must be out)."""
    pair = (KEYS, VALUES)
    held: list[tuple[Fact[tuple[State, ...]], bool, bool]] = [
        (states(*pair), True, False),
        (states(state("kv", Role.KV_UNIFIED)), True, False),
        (states(state("a", Role.MLA_LATENT), state("n", Role.COUNTER)), True, False),
        (states(state("n", Role.COUNTER)), False, False),
        (states(), False, False),
        (states(*pair, state("c", Role.CONV)), False, True),
        (states(state("r", Role.RECURRENT)), False, True),
        (states(*pair, state("x", Role.UNKNOWN)), False, False),
        (Fact.unknown("?"), False, False),
    ]
    kinds: list[tuple[Fact[Kind], bool, bool]] = [
        (kind(Kind.DECODER), True, False),
        (kind(Kind.OTHER), False, True),
        (Fact.unknown("?"), False, False),
    ]
    queries: list[tuple[Fact[Query], bool, bool]] = [
        (query(), True, False),
        (query(1), False, True),
        (query(4), False, False),
        (query(1, 8), False, False),
        (Fact(Query(True, (1,))), False, False),
        (Fact(Query(False)), False, False),
        (Fact.unknown("?"), False, False),
    ]
    rows: list[tuple[Fact[Logits], bool, bool]] = [
        (logits(Logits.ALL), True, False),
        (logits(Logits.LAST), False, True),
        (logits(Logits.NONE), False, True),
        (Fact.unknown("?"), False, False),
    ]
    caches: list[tuple[Fact[Kv], bool, bool]] = [
        (kv(Kv.STATE), True, False),
        (kv(Kv.IO), False, True),
        (kv(Kv.NONE), False, False),
        (Fact.unknown("?"), False, False),
    ]
    marks: list[tuple[tuple[Mark, ...], bool, bool]] = [
        ((), True, False),
        (mark(Trait.MOE, "") + mark(Trait.UNWRITTEN_STATE, ""), True, False),
        (mark(Trait.ROW_KERNEL, ""), False, True),
        (mark(Trait.RING_CACHE, ""), False, True),
        (mark(Trait.BAKED_LENGTH, ""), False, True),
    ]
    for choice in itertools.product(kinds, held, queries, rows, caches, marks):
        values, good, bad = zip(*choice, strict=True)
        yield GraphFacts(*values), all(good), any(bad)


def test_eligible_only_where_everything_is_known_and_good() -> None:
    wrong = []
    for facts, good, bad in _everything():
        stateless = facts.states.value == () and facts.kv.value is Kv.NONE
        expected = Verdict.OUT if bad or stateless else Verdict.ELIGIBLE if good else Verdict.UNRESOLVED
        judged = judge(facts)
        if judged.verdict is not expected or (judged.verdict is Verdict.ELIGIBLE) is bool(judged.reasons):
            wrong.append((facts, expected, judged.says()))
    assert wrong == []
