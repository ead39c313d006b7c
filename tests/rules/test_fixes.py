from __future__ import annotations

from dataclasses import replace

from rules.examples import DENSE, HYBRID, PINNED, kind, kv, logits, mark, query, states
from rules.facts import Change, Fact, Kind, Kv, Logits, Trait
from rules.fixes import FixedBy, Judged, judge_graph
from rules.verdict import Verdict
from tests.rules.graphs import change, graph

BY_FLAG = replace(DENSE, query=query(1, flag="--static-ids"))
KERNEL = mark(Trait.ROW_KERNEL, "")


def _advice(judged: Judged) -> list[str]:
    return [item.rule for item in judged.judgement.advice]


def test_a_flag_that_makes_it_eligible_is_the_fix() -> None:
    judged = judge_graph(graph(BY_FLAG, changes=(change("drop --static-ids", DENSE),)))
    assert judged.judgement.verdict is Verdict.OUT
    assert judged.fixed_by is FixedBy.FLAG
    assert judged.fix == "drop `--static-ids`"
    assert _advice(judged) == ["second-bundle"]


def test_several_flags_are_named_smallest_change_first() -> None:
    changes = (change("use --mode fp16", DENSE), change("pass --dynamic", DENSE), change("drop --static-ids", DENSE))
    fix = judge_graph(graph(BY_FLAG, changes=changes)).fix
    assert fix == "drop `--static-ids`, or pass `--dynamic`, or use `--mode fp16`"


def test_dropping_a_flag_is_no_fix_when_a_kernel_stays() -> None:
    judged = judge_graph(
        graph(replace(BY_FLAG, marks=KERNEL), changes=(change("drop --static-ids", replace(DENSE, marks=KERNEL)),))
    )
    assert judged.fixed_by is FixedBy.NONE
    assert judged.judgement.broken == ("static-query", "row-kernel")
    assert judged.fix == "dropping `--static-ids` is no fix: without it the graph is out by `row-kernel`"
    assert _advice(judged) == []


def test_no_line_is_promised_when_a_flag_has_shown_what_is_behind_it() -> None:
    """The kernel is seen only in the graph without the flag."""
    judged = judge_graph(graph(BY_FLAG, changes=(change("drop --static-ids", replace(DENSE, marks=KERNEL)),)))
    assert judged.judgement.broken == ("static-query",)
    assert judged.fixed_by is FixedBy.NONE
    assert "is no fix" in judged.fix


def test_a_change_that_only_reaches_unresolved_is_no_fix() -> None:
    unknown = replace(DENSE, logits=Fact.unknown("the head was not found"))
    judged = judge_graph(graph(BY_FLAG, changes=(change("pass --dynamic", unknown),)))
    assert judged.fixed_by is FixedBy.NONE
    assert judged.fix == "passing `--dynamic` is no fix: with it the graph is unresolved by `unknown-logits`"


def test_changes_that_give_no_such_graph_or_no_decoder_say_nothing() -> None:
    changes = (change("pass --skip-decoder", None), change("use --part vision", replace(DENSE, kind=kind(Kind.OTHER))))
    judged = judge_graph(graph(PINNED, changes=changes))
    assert judged.fixed_by is FixedBy.LINE
    assert "no fix" not in judged.fix


def test_a_literal_is_fixed_at_its_line() -> None:
    judged = judge_graph(graph(PINNED))
    assert judged.fixed_by is FixedBy.LINE
    assert judged.fix == "export the query dimension as dynamic instead of 1 (export_model.py:30)"
    assert _advice(judged) == ["second-bundle"]


def test_a_line_that_leaves_a_kernel_is_no_fix() -> None:
    judged = judge_graph(graph(replace(PINNED, marks=KERNEL)))
    assert judged.fixed_by is FixedBy.NONE
    assert judged.fix.endswith("that alone is no fix: the graph is then out by `row-kernel`")


def test_a_line_is_no_promise_while_a_fact_is_unknown() -> None:
    judged = judge_graph(graph(replace(PINNED, logits=Fact.unknown("the head was not found"))))
    assert judged.fixed_by is FixedBy.NONE
    assert judged.fix.endswith("that alone is no fix: the graph is then unresolved by `unknown-logits`")


def test_two_lines_fix_two_rules() -> None:
    judged = judge_graph(graph(replace(PINNED, logits=logits(Logits.LAST, 21, "logits[:, -1]"))))
    assert judged.fixed_by is FixedBy.LINE
    assert [finding.fix for finding in judged.judgement.findings] == [
        "export the query dimension as dynamic instead of 1 (export_model.py:30)",
        "keep every position: drop the selection (export_model.py:21)",
    ]


def test_other_line_fixes() -> None:
    for facts in (
        replace(DENSE, query=query(8)),
        replace(DENSE, logits=logits(Logits.LAST)),
        replace(DENSE, kv=kv(Kv.IO)),
        replace(DENSE, kv=kv(Kv.IO), states=states()),
        replace(DENSE, marks=mark(Trait.BAKED_LENGTH, "")),
    ):
        assert judge_graph(graph(facts)).fixed_by is FixedBy.LINE


def test_a_hybrid_has_no_fix() -> None:
    judged = judge_graph(graph(replace(HYBRID, query=query(1))))
    assert judged.fixed_by is FixedBy.NONE
    assert judged.fix == ""
    assert judged.judgement.findings[1].fix.endswith("the graph is then out by `hybrid-state`")
    assert _advice(judged) == ["hybrid-cap"]


def test_a_fixed_window_can_be_fixed_by_a_flag() -> None:
    facts = replace(DENSE, query=query(16, flag="--no-dynamic-sequence"))
    judged = judge_graph(graph(facts, changes=(change("drop --no-dynamic-sequence", DENSE),)))
    assert judged.judgement.verdict is Verdict.UNRESOLVED
    assert (judged.fixed_by, judged.fix) == (FixedBy.FLAG, "drop `--no-dynamic-sequence`")


def test_an_eligible_graph_needs_no_fix() -> None:
    judged = judge_graph(graph(DENSE, changes=(change("pass --static-ids", BY_FLAG),)))
    assert (judged.fixed_by, judged.fix) == (FixedBy.NONE, "")
    assert judged.outcomes[0].judgement is not None
    assert judged.outcomes[0].judgement.says() == "out by static-query"


def test_a_change_in_other_words_names_its_flag() -> None:
    judged = judge_graph(graph(BY_FLAG, changes=(Change("--static-ids off", "--static-ids", (), DENSE),)))
    assert judged.fix == "change `--static-ids`"
