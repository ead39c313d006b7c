from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from reports.json_report import document
from rules.audit import audit
from rules.decision import Decision
from rules.examples import DENSE, HYBRID, PINNED
from rules.facts import Graph, Scan
from rules.join import JoinError
from rules.review import Given, Review, Reviewed, review
from tests.reports.probe_sample import ab, ab_row, cost, plan_of, probe
from tests.rules.graphs import graph

RECIPE = "models/dense/recipe.toml#dense"


def scan(*graphs: Graph) -> dict[str, Any]:
    return document(audit(Scan("zoo", (), graphs)))


ONE = scan(graph(DENSE, recipe=RECIPE, bundle="out/model.aimodel"))
TWO = scan(
    graph(DENSE, recipe=RECIPE, bundle="out/model.aimodel"),
    graph(PINNED, recipe="models/other/recipe.toml#other", bundle="elsewhere/model.aimodel"),
)


def one(found: Review) -> Reviewed:
    (model,) = found.models
    return model


def given(data: dict[str, Any], identifier: str = "") -> Given:
    return Given(data, "probe.json", identifier)


def test_by_bundle_and_entry_point() -> None:
    found = one(review(ONE, [given(probe("/elsewhere/model.aimodel"))]))
    assert found.decision is Decision.CONFIRMED
    assert [draft.k for draft in found.drafts] == [2, 7]


def test_another_bundle_is_of_no_model() -> None:
    found = review(ONE, [given(probe("other.aimodel"))])
    assert one(found).decision is Decision.UNPROBED
    assert [stray.data["bundle"] for stray in found.strays] == ["other.aimodel"]


def test_another_entry_point_decides_nothing() -> None:
    found = review(ONE, [given(probe("model.aimodel", name="prefill"))])
    assert one(found).decision is Decision.UNPROBED
    assert len(found.strays) == 1


def test_a_graph_that_is_listed_for_its_exporter_too_is_one_graph() -> None:
    run = graph(DENSE, script="scripts/convert.py", bundle="out/model.aimodel")
    home = replace(run, id="source/converter.py by x", script="source/converter.py", by="scripts/convert.py")
    found = review(scan(run, home), [given(probe("/elsewhere/model.aimodel"))])
    assert one(found).decision is Decision.CONFIRMED
    assert (found.graphs, found.loose) == (1, ())


def test_two_models_of_one_bundle_are_ambiguous() -> None:
    with pytest.raises(JoinError, match=r"several models.*models/dense.*models/other.*#MODEL-ID"):
        review(TWO, [given(probe())])


def test_two_models_of_one_bundle_are_ambiguous_even_with_the_same_facts() -> None:
    twins = scan(graph(DENSE, recipe=RECIPE), graph(DENSE, recipe="models/twin/recipe.toml#twin"))
    with pytest.raises(JoinError, match="several models"):
        review(twins, [given(probe())])


def test_a_report_that_is_given_twice() -> None:
    data = probe("model.aimodel")
    with pytest.raises(JoinError, match=r"probe\.json: was given twice; give it once"):
        review(ONE, [given(data), given(data, RECIPE)])
    with pytest.raises(JoinError, match=r"copy\.json: is the same report as probe\.json; give it once"):
        review(ONE, [given(data), Given(probe("model.aimodel"), "copy.json")])
    stray = probe("other.aimodel")
    with pytest.raises(JoinError, match="given twice"):
        review(ONE, [given(stray), given(stray)])
    plan = plan_of("model.aimodel:main, context 848")
    with pytest.raises(JoinError, match="given twice"):
        review(ONE, plans=[given(plan), given(plan)])


def test_two_measurements_of_one_bundle_are_two_and_one_may_be_of_two_models() -> None:
    one_run, another = probe("model.aimodel"), probe("model.aimodel", scope="interpreter")
    assert len(one(review(ONE, [given(one_run), given(another)])).probes) == 2
    both = review(TWO, [given(one_run, RECIPE), given(one_run, "models/other/recipe.toml#other")])
    assert [len(model.probes) for model in both.models] == [1, 1]


def test_a_name_chooses() -> None:
    found = review(TWO, [given(probe(), RECIPE)])
    assert {item.model["id"]: item.decision for item in found.models} == {
        RECIPE: Decision.CONFIRMED,
        "models/other/recipe.toml#other": Decision.LINE,
    }


def test_a_name_that_is_none() -> None:
    with pytest.raises(JoinError, match="no graph or model 'nobody'"):
        review(TWO, [given(probe(), "nobody")])


def test_what_a_probe_was_compared_with_chooses() -> None:
    data = probe("renamed.aimodel")
    graph_id = ONE["graphs"][0]["id"]
    data["against"] = {"root": "zoo", "graphs": [{"graph": "main", "scan_graph": graph_id}], "unmatched": []}
    assert one(review(ONE, [given(data)])).decision is Decision.CONFIRMED


def test_compared_with_another_scan() -> None:
    data = probe()
    data["against"] = {"root": "zoo", "graphs": [{"graph": "main", "scan_graph": "gone"}], "unmatched": []}
    with pytest.raises(JoinError, match=r"'gone'.*does not have"):
        review(ONE, [given(data)])


def test_a_refuting_probe_beats_a_confirming_one_and_names_no_draft_length() -> None:
    found = one(review(ONE, [given(probe()), given(probe(scope="interpreter", said={"rewind": "refuted"}))]))
    assert found.decision is Decision.REFUTED
    assert found.drafts == ()


def test_a_refused_probe_confirms_nothing_and_can_refute() -> None:
    assert one(review(ONE, [given(probe(refused=True))])).decision is Decision.UNPROBED
    found = review(ONE, [given(probe(refused=True, said={"rows": "refuted"}))])
    assert one(found).decision is Decision.REFUTED


def test_a_probe_of_the_twin_is_not_one_of_what_ships() -> None:
    twins = scan(
        graph(PINNED, recipe=RECIPE, bundle="out/model_s1.aimodel", shipped="gpu/model_s1"),
        graph(DENSE, recipe=RECIPE, bundle="out/model.aimodel", shipped="gpu/model_s1"),
    )
    found = one(review(twins, [given(probe("model.aimodel"))]))
    assert found.decision is Decision.SECOND_BUNDLE
    assert [(item.decides, item.verdict) for item in found.probes] == [(False, "confirmed")]
    assert any("not the one that ships" in line for line in found.unchecked)


def test_a_device_outranks_the_interpreter() -> None:
    slow = cost("interpreter")
    slow["staircase"] |= {"plateaus": [dict(slow["staircase"]["plateaus"][0], last=2, k=1)]}
    both = [given(probe(scope="interpreter", costs=[slow])), given(probe())]
    assert [(draft.k, draft.scope) for draft in one(review(ONE, both)).drafts] == [(2, "device"), (7, "device")]
    only = one(review(ONE, both[:1]))
    assert [(draft.k, draft.scope) for draft in only.drafts] == [(1, "interpreter")]
    assert only.decision is Decision.CONFIRMED_ELSEWHERE


def test_a_refused_sweep_gives_no_draft_length() -> None:
    found = one(review(ONE, [given(probe(costs=[cost(status="refused")]))]))
    assert found.drafts == ()
    assert found.probes[0].costs[0].drawable == ()
    assert any("the anchors drifted" in line for line in found.unchecked)


def test_a_reason_that_sweep_and_staircase_share_is_said_once() -> None:
    refused = cost(status="refused")
    refused = {**refused, "reasons": ["contention"], "staircase": {**refused["staircase"], "reasons": ["contention"]}}
    found = one(review(ONE, [given(probe(costs=[refused]))]))
    assert found.probes[0].costs[0].reasons == ("contention",)


def test_plans_join_by_the_bundle_in_their_label() -> None:
    found = one(review(ONE, (), [given(plan_of("model.aimodel"))]))
    assert [draft.k for draft in found.drafts] == [2, 7]
    assert found.decision is Decision.UNPROBED
    assert {row.policy for row in found.predicted} >= {"K=2", "K=7"}
    assert "K=0" not in {row.policy for row in found.predicted}
    stray = review(ONE, (), [given(plan_of("phone"))])
    assert (len(stray.stray_costs), stray.models[0].costs) == (1, ())
    with pytest.raises(JoinError, match="several models"):
        review(TWO, (), [given(plan_of("model.aimodel"))])
    named = review(TWO, (), [given(plan_of("phone"), RECIPE)])
    assert [item.model["id"] for item in named.models if item.costs] == [RECIPE]


def test_a_plan_of_the_probe_is_not_drawn_twice() -> None:
    label = "model.aimodel:main, context 848"
    found = one(review(ONE, [given(probe())], [given(plan_of(label))]))
    assert (len(found.probes[0].costs), found.costs) == (1, ())
    assert found.predicted


def test_disagreements_are_found_without_having_been_compared() -> None:
    found = one(review(scan(graph(HYBRID, recipe=RECIPE)), [given(probe())]))
    assert found.decision is Decision.CONTRADICTED
    assert any("conv" in item["message"] for item in found.probes[0].disagreements)


def test_what_was_not_checked() -> None:
    (bare,) = review(ONE).models
    assert len(bare.unchecked) == 3
    assert "No probe of out/model.aimodel was given" in bare.unchecked[0]
    full = one(review(ONE, [given(probe())]))
    assert any("one context length (848 tokens)" in line for line in full.unchecked)
    assert not any("No probe" in line or "on a device" in line for line in full.unchecked)
    assert any("speed-up on a workload is not measured" in line for line in full.unchecked)
    timed = probe()
    timed["graphs"][0]["ab"] = ab(ab_row(), reasons=["chat was not run to its end"])
    assert not any("is not measured" in line for line in one(review(ONE, [given(timed)])).unchecked)
    assert any("chat was not run to its end" in line for line in one(review(ONE, [given(timed)])).unchecked)
    off = one(review(ONE, [given(probe(scope="interpreter"))]))
    assert any("Nothing was run on a device" in line for line in off.unchecked)
    still = one(review(ONE, [given(probe(not_run="inspection only", costs=[]))]))
    assert any("main was not run: inspection only" in line for line in still.unchecked)
    out = one(review(scan(graph(replace(HYBRID), recipe=RECIPE))))
    assert out.unchecked == ("No bundle was opened or run: its source rules it out, so there is nothing to confirm.",)


def test_a_bundle_that_no_graph_of_the_run_is() -> None:
    def said(shipped: str, *written: str) -> bool:
        graphs = [
            graph(DENSE if n == 0 else PINNED, recipe=RECIPE, bundle=b, shipped=shipped) for n, b in enumerate(written)
        ]
        return any("which of them ships is not known" in line for line in one(review(scan(*graphs))).unchecked)

    assert said("gpu/decoder", "out/model.aimodel", "out/model_s1.aimodel")
    assert not said("gpu/model", "out/model.aimodel", "out/model_s1.aimodel")
    assert not said("gpu/model_8", "out/*_8.aimodel", "out/model_s1.aimodel")
    assert not said("gpu/decoder", "out/model.aimodel"), "there is one only"
    assert not said("", "out/model.aimodel", "out/model_s1.aimodel")


def test_order_and_groups() -> None:
    found = review(TWO)
    assert [decision for decision, _ in found.groups] == [Decision.UNPROBED, Decision.LINE]


def test_the_choices_of_a_plan_join_by_their_bundle() -> None:
    policies = [{"policy": "K=2", "mean_c_v": 1.02, "tokens_per_forward": 1.9, "speedup": 1.86}]
    choice = {"bundle": "model.aimodel:main", "workload": "code", "budget": 256, "drafter": "ngram", "scope": "device"}
    data = plan_of("phone") | {"tables": [], "workloads": [choice | {"policies": policies, "best": "K=2"}]}
    (row,) = one(review(ONE, (), [given(data)])).predicted
    assert (row.label, row.policy, row.speedup, row.budget, row.best) == ("code, ngram", "K=2", 1.86, 256, True)
    with pytest.raises(JoinError, match="several models"):
        review(TWO, (), [given(data)])
