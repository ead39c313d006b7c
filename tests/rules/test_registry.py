from __future__ import annotations

from typing import Any

import pytest

from rules.facts import GraphFacts
from rules.registry import advice_rules, all_rules, rule, verdict_rules
from rules.rule import Confidence, Example, Rule, Severity

RULES = {item.id: item for item in all_rules()}


def test_rules_stand_in_the_order_of_the_design() -> None:
    assert [item.id for item in verdict_rules()] == [
        "not-a-decoder",
        "hybrid-state",
        "kv-as-io",
        "no-logits",
        "static-query",
        "last-token-only",
        "fixed-window",
        "row-kernel",
        "ring-cache",
        "baked-length",
    ]
    assert [item.id for item in advice_rules()] == [
        "moe",
        "workload",
        "mixed-flexibility",
        "index-aligned-enumerations",
        "unwritten-state",
        "second-bundle",
        "hybrid-cap",
    ]


def test_only_fixed_window_leaves_the_verdict_open() -> None:
    assert [item.id for item in verdict_rules() if item.severity is Severity.WARNING] == ["fixed-window"]


def test_unknown_rule() -> None:
    with pytest.raises(KeyError):
        rule("no-such-rule")


def _examples(kind: str) -> list[Any]:
    return [
        pytest.param(item, example, id=f"{item.id}: {example.title}")
        for item in all_rules()
        for example in getattr(item, kind)
    ]


@pytest.mark.parametrize(("item", "example"), _examples("valid"))
def test_valid_example(item: Rule, example: Example) -> None:
    assert item.check(example.facts) is None


@pytest.mark.parametrize(("item", "example"), _examples("invalid"))
def test_invalid_example(item: Rule, example: Example) -> None:
    finding = item.check(example.facts)
    assert finding is not None
    assert (finding.rule, finding.severity, finding.confidence) == (item.id, item.severity, item.confidence)
    assert finding.message
    assert finding.evidence
    assert "{" not in finding.fix


@pytest.mark.parametrize("item", all_rules(), ids=lambda item: item.id)
def test_rule_has_examples_of_both_kinds(item: Rule) -> None:
    assert item.valid
    assert item.invalid
    assert item.summary.endswith(".")


@pytest.mark.parametrize("item", all_rules(), ids=lambda item: item.id)
def test_lift_lifts(item: Rule) -> None:
    """What a rule says its line would change must at least satisfy the rule itself."""
    for example in item.invalid if item.lift else ():
        assert item.lift is not None
        assert item.check(item.lift(example.facts)) is None
    assert (item.lift is None) is (item.fix == "")


def test_a_finding_without_a_place_has_low_confidence() -> None:
    facts = RULES["static-query"].invalid[0].facts
    bare = GraphFacts(facts.kind, facts.states, type(facts.query)(facts.query.value), facts.logits, facts.kv)
    finding = RULES["static-query"].check(bare)
    assert finding is not None
    assert finding.confidence is Confidence.LOW
    assert finding.primary is None
