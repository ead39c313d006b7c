"""The reference evaluates programs rightly, finds what is wrong with wrong ones, and says what it cannot do."""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jsonschema
import numpy as np
import pytest
from click.testing import CliRunner

from probes.backend import BackendError, CapacityError, OpenOptions
from probes.cli import probe
from probes.coreml import operations
from probes.coreml.reference import Reference
from probes.ports import Positions

SCHEMA = json.loads(files("reports").joinpath("schemas/probe-1.schema.json").read_text())
TOKENS = [int(token) for token in np.random.default_rng(5).integers(0, 96, 30)]


def opened(path: Path, **options: Any) -> Any:
    from packages import quiet

    with quiet():
        return Reference().open(str(path), "main", OpenOptions(0, **options))


@pytest.mark.parametrize("name", ["dense", "position", "both", "unified", "hybrid", "one_a_row"])
@pytest.mark.parametrize("widths", [(1,) * 30, (16, 8, 6), (3, 1, 10, 16)])
def test_rows_are_those_of_numpy(package: Callable[[str], Path], name: str, widths: tuple[int, ...]) -> None:
    """Within 1e-2 of the scale: weights and states are fp16, the truth is float64."""
    import numpy_decoder
    from built_decoders import Decoder
    from packages import RECIPES

    session = opened(package(name), positions=Positions.ROWS if name == "one_a_row" else None)
    rows, start = [], 0
    for width in widths:
        rows.append(session.forward(TOKENS[start : start + width], start))
        start += width
    truth = numpy_decoder.logits(Decoder(**RECIPES[name]), TOKENS)
    found = np.concatenate(rows)
    assert found.shape == truth.shape == (30, 96)
    delta = np.abs(found - truth).max() / np.abs(truth).max()
    assert delta < 1e-2
    assert (found.argmax(axis=1) == truth.argmax(axis=1)).all()


@pytest.mark.parametrize(("form", "within"), [("int8", 0.05), ("int4", 0.5), ("palette", 0.6), ("pruned", 0.7)])
def test_compressed_weights_are_unpacked(package: Callable[[str], Path], form: str, within: float) -> None:
    """Near the uncompressed decoder, and not the same."""
    plain = opened(package("dense")).forward(TOKENS[:16], 0)
    packed = opened(package(form)).forward(TOKENS[:16], 0)
    delta = np.abs(plain - packed).max() / np.abs(plain).max()
    assert 1e-4 < delta < within


def graphs(path: Path, *arguments: str) -> dict[str, Any]:
    result = CliRunner().invoke(
        probe, [str(path), "--backend", "reference", "--sweep-s", "1..8", "--format", "json", *arguments]
    )
    report: dict[str, Any] = json.loads(result.stdout)
    jsonschema.validate(report, SCHEMA)
    assert report["scope"] == "program"
    return report


@pytest.mark.parametrize("name", ["dense", "position", "one_a_row", "unified", "int4", "computed_all"])
def test_right_programs_are_confirmed(package: Callable[[str], Path], name: str) -> None:
    report = graphs(package(name))
    (graph,) = report["graphs"]
    assert report["verdict"] == "confirmed", graph["why"]
    rows = graph["gates"][1]["numbers"]
    assert (rows["argmax_equal"], rows["rows"]) == (35, 35)
    assert rows["widths"]["8"]["argmax_equal"] == 8
    assert rows["max_delta_relative"] < 1e-4


REFUTED = {
    "hybrid": ["rule hybrid-state", "gate rewind"],
    "unwritten": ["gate history"],
    "wrong_mask": ["gate rows", "gate state"],
    "wrong_mask_position": ["gate rows", "gate state"],
    "last_token": ["rule last-token-only", "gate shape"],
    "computed": ["gate shape"],
    "static": ["rule static-query"],
    "token_out": ["rule no-logits"],
    "kv_io": ["rule kv-as-io"],
    "baked": ["rule baked-length"],
}


@pytest.mark.parametrize("name", REFUTED)
def test_wrong_programs_are_refuted_for_their_reason(package: Callable[[str], Path], name: str) -> None:
    report = graphs(package(name))
    (graph,) = report["graphs"]
    assert report["verdict"] == "refuted"
    assert [reason.partition(":")[0] for reason in graph["why"]] == REFUTED[name]


def test_a_baked_length_is_named_with_its_operation_when_run(package: Callable[[str], Path]) -> None:
    (graph,) = graphs(package("baked"))["graphs"]
    assert all("reshape `split_q0` of x [1, 8, 32]" in gate["reason"] for gate in graph["gates"])
    session = opened(package("baked"))
    assert session.forward(TOKENS[:5], 0).shape == (5, 96)
    with pytest.raises(ValueError, match=r"reshape `split_q0` of x \[1, 1, 32\]"):
        session.forward(TOKENS[:1], 5)


@pytest.mark.parametrize("name", ["enumerated", "window16"])
def test_fixed_widths_pass_the_gates_and_stay_partial(package: Callable[[str], Path], name: str) -> None:
    (graph,) = graphs(package(name))["graphs"]
    assert {gate["verdict"] for gate in graph["gates"]} == {"confirmed"}
    assert graph["verdict"] == "partial"
    assert graph["why"][0].startswith("fixed-window")


def test_functions_share_the_program(package: Callable[[str], Path]) -> None:
    report = graphs(package("several"))
    assert {graph["name"]: graph["verdict"] for graph in report["graphs"]} == {
        "decode": "refuted",
        "prefill": "partial",
    }


def test_declared_ranges_are_enforced(package: Callable[[str], Path]) -> None:
    session = opened(package("dense"))
    with pytest.raises(ValueError, match=r"input_ids of shape \[1, 17\] is not declared"):
        session.forward([1] * 17, 0)
    with pytest.raises(CapacityError, match="do not fit a cache of 96 rows"):
        session.forward([1] * 4, 94)
    session.overflow(True)
    with pytest.raises(ValueError, match=r"causal_mask of shape \[1, 1, 4, 98\] is not declared"):
        session.forward([1] * 4, 94)
    with pytest.raises(ValueError, match="outside"):
        session.forward([96], 0)


def test_enumerated_shapes_go_together_by_index(package: Callable[[str], Path]) -> None:
    from probes.coreml.declared import check
    from probes.signature import Port, Signature

    ids = Port.enumerated("ids", "int32", [(1, 1), (1, 4)])
    mask = Port.enumerated("mask", "float16", [(1, 1, 1, 8), (1, 1, 4, 16)])
    whole = Signature("main", (ids, mask), (), ())
    check(whole, {"ids": np.zeros((1, 4)), "mask": np.zeros((1, 1, 4, 16))})
    with pytest.raises(ValueError, match="go together by index"):
        check(whole, {"ids": np.zeros((1, 4)), "mask": np.zeros((1, 1, 1, 8))})
    session = opened(package("enumerated"))
    assert session.widths == (1, 2, 4, 8)
    with pytest.raises(ValueError, match=r"input_ids of shape \[1, 3\] is not declared"):
        session.forward([1, 2, 3], 0)


def test_states_are_kept_at_their_type_and_given_back(package: Callable[[str], Path]) -> None:
    session = opened(package("dense"))
    session.forward(TOKENS[:8], 0)
    kept = session.states()
    assert {name: (array.dtype, array.shape) for name, array in kept.items()} == {
        "k_cache": (np.float16, (2, 2, 96, 8)),
        "v_cache": (np.float16, (2, 2, 96, 8)),
    }
    assert np.abs(kept["k_cache"][:, :, :8]).min(axis=(0, 1, 3)).shape == (8,)
    assert not kept["k_cache"][:, :, 8:].any()
    first = session.forward(TOKENS[8:9], 8)
    session.reset(kept)
    assert (session.forward(TOKENS[8:9], 8) == first).all()
    session.reset()
    assert not session.states()["v_cache"].any()
    with pytest.raises(ValueError, match="has shape"):
        session.reset({name: array[:1] for name, array in kept.items()})


def test_values_are_dropped_after_their_last_use(package: Callable[[str], Path]) -> None:
    """At most a few are alive at once, whatever the length of the program."""
    from probes.coreml import evaluator

    session = opened(package("dense"))
    alive: list[int] = []
    original = evaluator.Evaluator._evaluate

    def counted(self: Any, step: Any, values: Any, states: Any) -> Any:
        alive.append(len(values))
        return original(self, step, values, states)

    evaluator.Evaluator._evaluate = counted  # type: ignore[method-assign]
    try:
        session.forward(TOKENS[:4], 0)
    finally:
        evaluator.Evaluator._evaluate = original  # type: ignore[method-assign]
    assert len(alive) > 90
    assert max(alive) < 20


def test_an_operation_without_an_evaluator_is_named(tmp_path: Path) -> None:
    import built_decoders as built
    from coremltools.converters.mil import Builder as mb
    from packages import quiet

    class Strange(built._Body):
        def feed_forward(self, x: Any, layer: int) -> Any:
            return mb.instance_norm(x=x, name=f"strange{layer}")

    body, built._Body = built._Body, Strange
    try:
        with quiet():
            path = built.build(tmp_path / "strange.mlpackage")
    finally:
        built._Body = body
    (graph,) = graphs(path)["graphs"]
    said = "the reference has no evaluator for instance_norm (`strange0` and 1 more): unsupported"
    assert all(said in gate["reason"] for gate in graph["gates"])
    # It says nothing of the program: not refuted.
    assert graph["verdict"] == "partial"


def test_weights_beyond_the_limit_are_refused_unless_forced(package: Callable[[str], Path]) -> None:
    with pytest.raises(BackendError, match="--weight-limit 1 does it all the same"):
        opened(package("dense"), weight_limit=1000)
    assert opened(package("dense"), weight_limit=10**9).vocab == 96


def test_what_is_no_ml_program_and_what_is_compiled(tmp_path: Path) -> None:
    from probes.coreml.proto import model_class

    spec = model_class()()
    spec.specificationVersion = 4
    spec.neuralNetwork.layers.add().name = "x"
    (tmp_path / "x.mlmodel").write_bytes(spec.SerializeToString())
    with pytest.raises(BackendError, match="the model is a neuralNetwork: the reference evaluates ML Programs only"):
        opened(tmp_path / "x.mlmodel")


def test_a_function_that_is_not_there(package: Callable[[str], Path]) -> None:
    with pytest.raises(BackendError, match="no function is called 'other'; there are: main"):
        Reference().open(str(package("dense")), "other", OpenOptions(0))


def test_verify_cost_alone_times_nothing(package: Callable[[str], Path]) -> None:
    (graph,) = graphs(package("dense"), "--mode", "verify-cost")["graphs"]
    assert graph["verify_cost"] == []
    assert any("its times say nothing of any device" in note for note in graph["notes"])


def test_soak(package: Callable[[str], Path]) -> None:
    (graph,) = graphs(package("dense"), "--mode", "rows", "--soak", "20")["graphs"]
    gates = {gate["gate"]: gate for gate in graph["gates"]}
    assert list(gates)[-2:] == ["soak", "repeat"]
    assert gates["soak"]["verdict"] == "confirmed"
    assert gates["soak"]["numbers"]["forwards"] == 20


def _given(**values: Any) -> Any:
    return SimpleNamespace(**{key: None if one is None else SimpleNamespace(val=one) for key, one in values.items()})


@pytest.mark.parametrize("groups", [1, 2, 4])
@pytest.mark.parametrize("pad", ["valid", "same", "same_lower", "custom"])
@pytest.mark.parametrize(("stride", "dilation"), [(1, 1), (2, 1), (1, 2)])
def test_convolution_is_the_sum_it_stands_for(groups: int, pad: str, stride: int, dilation: int) -> None:
    dice = np.random.default_rng(0)
    x, weight = dice.standard_normal((1, 4, 9)), dice.standard_normal((8, 4 // groups, 3))
    bias = dice.standard_normal(8)
    op = _given(
        x=x, weight=weight, bias=bias, strides=np.array([stride]), dilations=np.array([dilation]),
        groups=groups, pad_type=pad, pad=np.array([2, 1]),
    )  # fmt: skip
    extent = 2 * dilation + 1
    total = max((-(-9 // stride) - 1) * stride + extent - 9, 0)
    sides = {
        "valid": (0, 0), "same": (total // 2, total - total // 2), "same_lower": (total - total // 2, total // 2),
        "custom": (2, 1),
    }[pad]  # fmt: skip
    padded = np.pad(x, [(0, 0), (0, 0), sides])
    length = (padded.shape[2] - extent) // stride + 1
    truth = np.zeros((1, 8, length))
    for out in range(8):
        group = out // (8 // groups)
        for at in range(length):
            seen = padded[
                0, group * (4 // groups) : (group + 1) * (4 // groups), at * stride : at * stride + extent : dilation
            ]
            truth[0, out, at] = (seen * weight[out]).sum() + bias[out]
    assert np.allclose(operations.conv(op), truth, atol=1e-5)


def test_convolution_over_two_dimensions() -> None:
    dice = np.random.default_rng(0)
    x, weight = dice.standard_normal((1, 2, 5, 6)), dice.standard_normal((3, 2, 2, 3))
    op = _given(x=x, weight=weight, bias=None, strides=None, dilations=None, groups=None, pad_type=None, pad=None)
    found = operations.conv(op)
    assert found.shape == (1, 3, 4, 4)
    assert np.isclose(found[0, 1, 2, 3], (x[0, :, 2:4, 3:6] * weight[1]).sum(), atol=1e-5)


def test_the_other_operations_by_hand() -> None:
    x = np.array([-2.0, 0.0, 3.0])
    assert np.allclose(operations.silu(_given(x=x)), x / (1 + np.exp(-x)))
    table = np.arange(12).reshape(3, 4)
    found = operations.gather_nd(_given(x=table, indices=np.array([[0, 1], [2, 3]]), batch_dims=None))
    assert found.tolist() == [1, 11]
    hot = operations.one_hot(_given(indices=np.array([2, 0]), one_hot_vector_size=3, axis=-1, on_value=5, off_value=1))
    assert hot.tolist() == [[1, 1, 5], [5, 1, 1]]
    with pytest.raises(ValueError, match="batch dimensions"):
        operations.gather_nd(_given(x=table, indices=np.array([[0]]), batch_dims=1))
