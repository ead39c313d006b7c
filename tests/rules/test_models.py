from __future__ import annotations

from dataclasses import replace

import pytest

from rules.examples import DENSE, HYBRID, PINNED, TOWER, query
from rules.facts import Graph, InvocationKind
from rules.fixes import FixedBy, judge_graph
from rules.models import Model, base_name, models
from rules.verdict import Verdict
from tests.rules.graphs import change, graph

RECIPE = "models/x/recipe.toml#x"


def found(*graphs: Graph) -> tuple[Model, ...]:
    return models([judge_graph(item) for item in graphs])


@pytest.mark.parametrize(
    ("bundle", "name"),
    [
        ("out/decoder.aimodel", "decoder"),
        ("out/decoder.mlpackage/", "decoder"),
        ("decoder.mlmodelc", "decoder"),
        ("gpu/qwen2.5_1.5b_decode", "qwen2.5_1.5b_decode"),
        ("*", "*"),
        ("", ""),
    ],
)
def test_base_name(bundle: str, name: str) -> None:
    assert base_name(bundle) == name


def test_all_steps_of_a_recipe_are_one_model() -> None:
    (model,) = found(
        graph(TOWER, recipe=f"{RECIPE}/step0", bundle="vision.aimodel", shipped="vision"),
        graph(PINNED, recipe=f"{RECIPE}/step1", bundle="decode.aimodel", shipped="decode", family="Qwen"),
    )
    assert model.id == model.recipe == RECIPE
    assert model.verdict is Verdict.OUT
    assert len(model.graphs) == 2
    assert (model.bundle, model.family) == ("decode", "Qwen")
    assert model.fixed_by is FixedBy.LINE


def test_the_shipped_bundle_decides_not_the_best() -> None:
    twin = graph(DENSE, recipe=RECIPE, bundle="out/x.aimodel", shipped="gpu/x_s1")
    shipped = graph(PINNED, recipe=RECIPE, bundle="out/x_s1.aimodel", shipped="gpu/x_s1")
    (model,) = found(twin, shipped)
    assert model.verdict is Verdict.OUT
    assert model.primary == shipped.id
    assert model.fixed_by is FixedBy.SECOND_BUNDLE
    assert model.fix == "ship `x`: the same run exports it, and it is eligible"


def test_without_a_bundle_of_that_name_the_best_graph_decides() -> None:
    (model,) = found(
        graph(PINNED, recipe=RECIPE, bundle="out/x_s1.aimodel", shipped="decoder"),
        graph(DENSE, recipe=RECIPE, bundle="out/x.aimodel", shipped="decoder"),
    )
    assert model.verdict is Verdict.ELIGIBLE
    assert model.bundle == "decoder"


def test_a_partly_known_bundle_name_counts() -> None:
    (model,) = found(
        graph(DENSE, recipe=RECIPE, bundle="out/*.aimodel", shipped="gpu/x_s1"),
        graph(PINNED, recipe=RECIPE, bundle="out/*_s1.aimodel", shipped="gpu/x_s1"),
    )
    assert model.verdict is Verdict.OUT
    assert model.fixed_by is FixedBy.SECOND_BUNDLE
    assert "`*`" not in model.fix


def test_a_bundle_name_is_no_pattern_beyond_its_star() -> None:
    (model,) = found(
        graph(PINNED, recipe=RECIPE, bundle="out/x[1]*", shipped="x[1]_int8"),
        graph(DENSE, recipe=RECIPE, bundle="out/y", shipped="x[1]_int8"),
    )
    assert model.verdict is Verdict.OUT


def test_a_step_whose_bundle_is_unknown_is_not_left_out() -> None:
    (model,) = found(
        graph(TOWER, recipe=f"{RECIPE}/step0", bundle="vision", shipped="vision"),
        graph(HYBRID, recipe=f"{RECIPE}/step1", bundle="*", shipped="decode"),
    )
    assert model.verdict is Verdict.OUT
    assert model.primary.endswith("*|main")


def test_best_is_eligible_then_unresolved_then_a_decoder_that_is_out() -> None:
    window = replace(DENSE, query=query(8))
    best = [graph(DENSE, name="a"), graph(window, name="b"), graph(HYBRID, name="c"), graph(TOWER, name="d")]
    for index, item in enumerate(best):
        (model,) = found(*reversed(best[index:]))
        assert model.primary == item.id


def test_a_script_is_a_model_only_without_recipes() -> None:
    listed = found(
        graph(PINNED, script="a.py"),
        graph(DENSE, script="a.py", recipe=RECIPE),
        graph(HYBRID, script="b.py"),
    )
    assert [model.id for model in listed] == ["b.py", RECIPE]
    assert listed[0].recipe == ""


def test_a_variant_does_not_decide_for_the_default_run() -> None:
    (model,) = found(
        graph(PINNED, changes=(change("pass --dynamic", DENSE),)),
        graph(DENSE, kind=InvocationKind.VARIANT, argv=("--dynamic",)),
    )
    assert model.verdict is Verdict.OUT
    assert (model.fixed_by, model.fix) == (FixedBy.FLAG, "pass `--dynamic`")


def test_a_script_with_variants_only() -> None:
    (model,) = found(graph(DENSE, kind=InvocationKind.VARIANT, argv=("--model", "a")))
    assert model.verdict is Verdict.ELIGIBLE
