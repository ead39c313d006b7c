"""Facts from signatures alone: the words of the scan, and *unknown* where a signature says nothing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from probes.backend import NotExecutable
from probes.facts import facts_of
from probes.feed import feed, state_shape
from probes.inspect_coreai import port, programs
from probes.ports import Positions, guess_positions, most_rows, ports
from probes.roles import FIXED, role_of
from probes.signature import Port, Signature, fixed_axis
from rules.facts import Kind, Kv, Logits, Query, Role, Trait
from rules.verdict import judge

IDS = Port("input_ids", (1, -1), "int32")
POSITIONS = Port("position_ids", (1, -1), "int32")
KEYS = Port("keyCache", (2, 1, 2, -1, 16), "float16")
VALUES = Port("valueCache", (2, 1, 2, -1, 16), "float16")
LOGITS = Port("logits", (1, -1, 256), "float16")


def signature(**changes: Any) -> Signature:
    parts: dict[str, Any] = {"inputs": (IDS, POSITIONS), "states": (KEYS, VALUES), "outputs": (LOGITS,)}
    return Signature("main", **{**parts, **changes})


def test_a_dense_decoder() -> None:
    facts = facts_of(signature(), "x.aimodel")
    assert facts.kind.value is Kind.DECODER
    assert facts.query.value == Query(True)
    assert facts.logits.value is Logits.ALL
    assert facts.kv.value is Kv.STATE
    assert [state.role for state in facts.states.value or ()] == [Role.KV_KEY, Role.KV_VALUE]
    assert judge(facts).verdict == "eligible"
    assert {place.path for place in facts.query.evidence} == {"x.aimodel"}


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        (
            {
                "inputs": (Port("input_ids", (1, 1), "int32"), POSITIONS),
                "outputs": (Port("logits", (1, 1, 256), "float16"),),
            },
            "static-query",
        ),
        (
            {
                "inputs": (Port("input_ids", (1, 4), "int32"), POSITIONS),
                "outputs": (Port("logits", (1, 4, 256), "float16"),),
            },
            "fixed-window",
        ),
        ({"outputs": (Port("logits", (1, 1, 256), "float16"),)}, "last-token-only"),
        ({"outputs": (Port("logits", (1, 5, 256), "float16"),)}, "baked-length"),
        ({"outputs": (Port("token", (1, -1), "int32"),)}, "no-logits"),
        ({"outputs": (Port("hidden_states", (1, -1, 64), "float16"),)}, "no-logits"),
        ({"states": (KEYS, VALUES, Port("convState", (2, 1, 64, 3), "float16"))}, "hybrid-state"),
        (
            {"states": (Port("recState", (2, 1, 64), "float16"), Port("shiftState", (2, 1, 64), "float16"))},
            "hybrid-state",
        ),
        ({"states": (), "inputs": (IDS, Port("attention_mask", (1, -1), "int32"))}, "not-a-decoder"),
        ({"states": (), "inputs": (Port("pixels", (1, 3, 224, 224), "float16"),)}, "not-a-decoder"),
        (
            {
                "states": (),
                "inputs": (
                    IDS,
                    Port("past_key_0", (1, 2, -1, 16), "float16"),
                    Port("past_value_0", (1, 2, -1, 16), "float16"),
                ),
                "outputs": (
                    LOGITS,
                    Port("new_key_0", (1, 2, -1, 16), "float16"),
                    Port("new_value_0", (1, 2, -1, 16), "float16"),
                ),
            },
            "kv-as-io",
        ),
    ],
)
def test_each_rule_from_a_signature(changes: dict[str, Any], rule: str) -> None:
    judgement = judge(facts_of(signature(**changes), "x.aimodel"))
    assert judgement.verdict != "eligible"
    assert rule in judgement.broken


def test_one_row_of_one_position_tells_nothing() -> None:
    changes = {
        "inputs": (Port("input_ids", (1, 1), "int32"), POSITIONS),
        "outputs": (Port("logits", (1, 1, 256), "float16"),),
    }
    facts = facts_of(signature(**changes), "x.aimodel")
    assert facts.logits.value is None
    assert "does not tell" in facts.logits.reason


def test_an_output_without_a_telling_name_needs_the_vocabulary() -> None:
    unnamed = signature(outputs=(Port("var_99", (1, -1, 256), "float16"),))
    assert facts_of(unnamed, "x").logits.value is None
    assert judge(facts_of(unnamed, "x")).verdict == "unresolved"
    assert facts_of(unnamed, "x", vocab=256).logits.value is Logits.ALL


def test_experts_are_advice() -> None:
    from rules.facts import Mark

    facts = facts_of(signature(), "x", marks=[Mark(Trait.MOE)])
    assert [finding.rule for finding in judge(facts).advice] == ["moe"]


@pytest.mark.parametrize(
    ("name", "shape", "role"),
    [
        ("keyCache", (2, 1, 2, -1, 16), Role.KV_KEY),
        ("value_cache", (2, 1, 32, 1, 512), Role.KV_VALUE),
        ("k_cache_3", (1, 2, 64, 16), Role.KV_KEY),
        ("v", (1, 2, 64, 16), Role.KV_VALUE),
        ("kvCacheA", (2, 1, 1, -1, 288), Role.MLA_LATENT),
        ("ckv_latent", (2, 1, -1, 512), Role.MLA_LATENT),
        ("kv_cache", (4, 1, 2, -1, 16), Role.KV_UNIFIED),
        ("past_key_values", (4, 1, 2, -1, 16), Role.KV_UNIFIED),
        ("convState", (2, 1, 64, 3), Role.CONV),
        ("recState", (2, 1, 64), Role.RECURRENT),
        ("ssm_state", (2, 1, 64), Role.RECURRENT),
        ("prevHsState", (1, 64), Role.RECURRENT),
        ("shiftState", (2, 1, 64), Role.RECURRENT),
        ("position", (1,), Role.COUNTER),
        ("state_0", (2, 1, 64), Role.UNKNOWN),
        ("state_0", (2, 1, -1, 64), Role.KV_UNIFIED),
        ("directKeyCache", (2, 1, 2, 64, 16), Role.KV_KEY),
    ],
)
def test_roles(name: str, shape: tuple[int, ...], role: Role) -> None:
    dtype = "int32" if role is Role.COUNTER else "float16"
    assert role_of(Port(name, shape, dtype))[0] is role


def test_a_cache_of_fixed_shape_is_ambiguous() -> None:
    assert role_of(Port("keyCache", (2, 1, 2, 16, 16), "float16")) == (Role.KV_KEY, FIXED)


@pytest.mark.parametrize(
    ("shape", "axis"), [((2, 1, 2, 64, 16), 3), ((2, 1, 32, 1, 512), 4), ((1, 2, 64, 16), 2), ((1, 64), None)]
)
def test_where_a_fixed_cache_has_its_capacity(shape: tuple[int, ...], axis: int | None) -> None:
    assert fixed_axis(Port("keyCache", shape, "float16")) == axis


def test_what_is_allocated_for_a_growing_state() -> None:
    assert state_shape(Port("keyCache", (2, -1, 2, -1, 16), "float16"), 96) == (2, 1, 2, 96, 16)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("NDArray (Float16, 2 × 1 × 2 × ? × 16)", Port("x", (2, 1, 2, -1, 16), "float16")),
        ("NDArray (Int32, 1 × ?)", Port("x", (1, -1), "int32")),
        ("NDArray (UInt16, 1)", Port("x", (1,), "uint16")),
        ("NDArray (Float32)", Port("x", (), "float32")),
        ("Image", Port("x", (), "Image")),
    ],
)
def test_words_of_the_summary(text: str, expected: Port) -> None:
    assert port("x", text) == expected


def test_windows_and_experts_are_found_in_the_graphs_that_are_reached() -> None:
    # As coreai-core 1.0.0b3 prints composites.
    def composite(name: str, op: str, attributes: str, body: str = "") -> str:
        declaration = f'#coreai.composite_declaration<"{op}" = {{input_names = ["x"], op_attrs = {{{attributes}}}}}>'
        return (
            f'  coreai.graph private noinline @{name}(%arg0: tensor<4xf32> {{coreai.name = "x"}}) -> tensor<4xf32> '
            f"attributes {{__coreai_pure__, composite_decl = {declaration}}} {{\n    {body}\n  }}\n"
        )

    def public(name: str, calls: str) -> str:
        return f"  coreai.graph @{name}(%arg0: tensor<4xf32>) {{\n    %0 = coreai.invoke @{calls}(%arg0)\n  }}\n"

    text = (
        "module {\n"
        + composite(
            "sdpa_1", "scaled_dot_product_attention", "is_causal = true, version = 1 : si64, window_size = 512 : si64"
        )
        + composite("sdpa_2", "scaled_dot_product_attention", "is_causal = true, window_size = 4096 : si64")
        + composite("experts", "switch", "", "%0 = coreai.invoke @mm(%arg0)")
        + composite("mm", "gather_mm", "num_batch_axes = 1 : si64")
        + public("main", "sdpa_1")
        + public("other", "experts")
        + "}\n"
    )
    assert programs(text, ["main", "other"]) == {
        "main": {"windows": [512], "experts": False},
        "other": {"windows": [], "experts": True},
    }


@pytest.mark.parametrize(
    ("position", "query", "convention"),
    [
        (POSITIONS, -1, Positions.RANGE),
        (POSITIONS, 1, Positions.RANGE),
        (Port("position_ids", (1, 4), "int32"), 4, Positions.ROWS),
        (Port("position_ids", (-1,), "int32"), -1, Positions.ROWS),
        (Port("in_step", (1,), "int32"), -1, Positions.START),
        (Port("offset", (), "int32"), 1, Positions.START),
        (None, -1, Positions.NONE),
    ],
)
def test_position_conventions(position: Port | None, query: int, convention: Positions) -> None:
    inputs = (Port("input_ids", (1, query), "int32"), *((position,) if position else ()))
    assert guess_positions(ports(signature(inputs=inputs))) is convention


def test_inputs_of_each_convention() -> None:
    def fed(position: Port, convention: Positions | None = None) -> Any:
        whole = signature(inputs=(IDS, position))
        return feed(whole, ports(whole), convention, None).inputs([5, 6], 3)[position.name].tolist()

    assert fed(POSITIONS) == [[0, 1, 2, 3, 4]]
    assert fed(POSITIONS, Positions.ROWS) == [[3, 4]]
    assert fed(Port("offset", (1,), "int32")) == [3]
    assert fed(Port("offset", (), "int32")) == 3


@pytest.mark.parametrize(
    ("mask", "rows", "expected"),
    [
        (Port("causal_mask", (1, 1, -1, -1), "float16"), 2, [[[[0, 0, 0, 0, -np.inf], [0, 0, 0, 0, 0]]]]),
        (Port("causal_mask", (1, 1, -1, 6), "float32"), 1, [[[[0, 0, 0, 0, -np.inf, -np.inf]]]]),
        (Port("mask", (1, -1, -1), "int32"), 2, [[[1, 1, 1, 1, 0], [1, 1, 1, 1, 1]]]),
        (Port("attention_mask", (1, -1), "int32"), 2, [[1, 1, 1, 1, 1]]),
        (Port("attention_mask", (1, 6), "int32"), 1, [[1, 1, 1, 1, 0, 0]]),
        (Port.enumerated("mask", "float16", [(1, 1, 1, 4), (1, 1, 2, 5)]), 1, [[[[0, 0, 0, 0]]]]),
    ],
)
def test_masks_of_a_step_at_position_3(mask: Port, rows: int, expected: Any) -> None:
    whole = signature(inputs=(IDS, mask))
    found = ports(whole)
    assert found.mask == mask
    fed = feed(whole, found, None, None).inputs([5] * rows, 3)[mask.name]
    assert (fed.dtype, fed.tolist()) == (mask.dtype, expected)


@pytest.mark.parametrize(
    "mask",
    [
        Port("mask", (1, -1), "float16"),
        Port("update_mask", (1, 1, 96, 1), "float16"),
        Port("bias", (1, 1, -1, -1), "float16"),
    ],
)
def test_what_is_no_mask(mask: Port) -> None:
    found = ports(signature(inputs=(IDS, mask)))
    assert (found.mask, found.others) == (None, (mask,))


def test_ranges_and_enumerations_of_ports() -> None:
    ranged = Port.ranged("x", "int32", [(1, 1), (1, -1)], [1, 4])
    assert (str(ranged), ranged.most(1), ranged.most(0)) == ("x [1,1..?] int32", None, 1)
    assert Port.ranged("x", "int32", [(1, 1), (4, 4)]) == Port("x", (1, 4), "int32")
    few = Port.enumerated("x", "int32", [(1, 8), (1, 1)])
    assert (str(few), few.shape, few.sizes(1), few.most(1)) == ("x [1,1|8] int32", (1, -1), (1, 8), 8)
    assert Port.enumerated("x", "int32", [(1, 8)]) == Port("x", (1, 8), "int32")
    assert Port.enumerated("x", "int32", [(1, 8), (8,)], [1, 8]) == Port("x", (1, 8), "int32")
    for one in (ranged, few, IDS):
        assert Port.of(one.as_json()) == one
    assert IDS.as_json() == {"name": IDS.name, "shape": list(IDS.shape), "dtype": IDS.dtype}


def test_a_range_limits_what_the_gates_ask() -> None:
    assert most_rows(signature(inputs=(Port.ranged("input_ids", "int32", [(1, 1), (1, 4)]),))) == 4
    assert most_rows(signature(inputs=(Port.ranged("input_ids", "int32", [(1, 1), (1, -1)]),))) is None
    assert most_rows(signature()) is None


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"inputs": (Port("inputs_embeds", (1, -1, 64), "float16"), POSITIONS)}, "the query is an embedding"),
        ({"inputs": (IDS, POSITIONS, Port("update_mask", (1, 1, 96, 1), "float16"))}, "what to feed to update_mask"),
        ({"outputs": (Port("token", (1, -1), "int32"),)}, "no logits"),
        ({"inputs": (Port("pixels", (1, 3, 8, 8), "float16"),)}, "no input looks like token ids"),
    ],
)
def test_what_cannot_be_fed_is_told(changes: dict[str, Any], says: str) -> None:
    whole = signature(**changes)
    with pytest.raises(NotExecutable, match=says):
        feed(whole, ports(whole), None, None)


@pytest.mark.parametrize(
    ("name", "query", "logits", "states"),
    [
        ("dense", "dynamic", "all", 2),
        ("static", "static:1", "None", 2),
        ("last_token", "dynamic", "last", 2),
        ("hybrid", "dynamic", "all", 4),
        ("ring", "dynamic", "all", 2),
    ],
)
def test_facts_of_real_bundles(bundle: Callable[[str], Path], name: str, query: str, logits: str, states: int) -> None:
    pytest.importorskip("coreai.authoring")
    from probes.inspect_coreai import inspect

    (found,) = inspect(str(bundle(name))).signatures
    facts = facts_of(found, "x")
    assert (str(facts.query.value), str(facts.logits.value), len(facts.states.value or ())) == (query, logits, states)


def test_summary_and_descriptors_agree(bundle: Callable[[str], Path]) -> None:
    coreai = pytest.importorskip("probes.coreai_backend")
    pytest.importorskip("coreai.runtime")
    from probes.backend import OpenOptions

    for name in ("dense", "dense_f16", "static", "hybrid", "ring"):
        backend = coreai.CoreAI()
        (declared,) = backend.inspect(str(bundle(name))).signatures
        assert backend.open(str(bundle(name)), "main", OpenOptions(64)).signature == declared
        backend.close()
