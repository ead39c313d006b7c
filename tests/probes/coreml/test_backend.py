"""The macOS backend up to the call: what it asks of coremltools, and that coremltools takes such calls."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import recording
from click.testing import CliRunner
from packages import quiet
from recording import RUNTIME, called

from auditor.cli import cli
from probes import report
from probes.backend import BackendError, OpenOptions
from probes.coreml import backend as module
from probes.coreml.backend import CoreML
from probes.facts import facts_of
from probes.gates import NAMES, gate
from probes.gates.bench import Bench, BenchOptions
from probes.probe import staircase_of
from probes.sweep import Schedule, sweep
from probes.verify_cost import judged


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    recording.CALLS.clear()
    with quiet():
        yield
    recording.CompiledMLModel.break_rows = False


def opened(path: Path, keep: Path, graph: str = "main", **options: Any) -> Any:
    return CoreML(RUNTIME).open(str(path), graph, OpenOptions(0, keep=str(keep), **options))


PAIRS = {
    "models.CompiledMLModel.__init__": recording.CompiledMLModel.__init__,
    "models.CompiledMLModel.predict": recording.CompiledMLModel.predict,
    "models.CompiledMLModel.make_state": recording.CompiledMLModel.make_state,
    "models.model.MLState.__init__": recording.MLState.__init__,
    "models.model.MLState.read_state": recording.MLState.read_state,
    "models.model.MLState.write_state": recording.MLState.write_state,
    "models.utils.compile_model": recording.compile_model,
    "models.compute_plan.MLComputePlan.load_from_path": recording.MLComputePlan.load_from_path,
    "models.compute_plan.MLComputePlan.get_compute_device_usage_for_mlprogram_operation": (
        recording.MLComputePlan.get_compute_device_usage_for_mlprogram_operation
    ),
}


def _real(name: str) -> Any:
    import coremltools

    found: Any = coremltools
    for part in name.split("."):
        found = getattr(found, part)
    return found


@pytest.mark.parametrize("name", PAIRS)
def test_the_stand_in_has_the_signatures_of_coremltools(name: str) -> None:
    ours, theirs = inspect.signature(PAIRS[name]), inspect.signature(_real(name))
    assert list(ours.parameters) == list(theirs.parameters)
    for key, parameter in theirs.parameters.items():
        mine = ours.parameters[key]
        assert mine.kind is parameter.kind, key
        given, real = mine.default, parameter.default
        assert getattr(given, "name", given) == getattr(real, "name", real), key


@pytest.mark.parametrize("name", ["ComputeUnit", "ReshapeFrequency", "SpecializationStrategy"])
def test_the_enumerations_are_those_of_coremltools(name: str) -> None:
    assert {one.name: one.value for one in getattr(recording, name)} == {one.name: one.value for one in _real(name)}


def test_the_devices_of_the_plan_are_called_as_in_coremltools() -> None:
    import coremltools.models.compute_device as devices

    assert all(hasattr(devices, name) for name in module._DEVICES)
    fields = _real("models.compute_plan.MLComputePlanDeviceUsage").__dataclass_fields__
    assert "preferred_compute_device" in fields
    assert "operations" in _real("models.compute_plan.MLModelStructureProgramBlock").__dataclass_fields__
    assert "block" in _real("models.compute_plan.MLModelStructureProgramFunction").__dataclass_fields__


@pytest.mark.parametrize("name", ["dense", "position", "enumerated", "unified"])
def test_all_gates_pass_on_a_right_runtime(package: Callable[[str], Path], tmp_path: Path, name: str) -> None:
    session = opened(package(name), tmp_path)
    bench = Bench(session, BenchOptions(width=8))
    assert {one: str(gate(one).run(bench).verdict) for one in NAMES} == dict.fromkeys(NAMES, "confirmed")


def test_a_hybrid_fails_rewind_here_too(package: Callable[[str], Path], tmp_path: Path) -> None:
    bench = Bench(opened(package("hybrid"), tmp_path), BenchOptions(width=8))
    assert gate("rewind").run(bench).verdict == "refuted"


def test_a_runtime_that_returns_wrong_rows_is_refuted(package: Callable[[str], Path], tmp_path: Path) -> None:
    recording.CompiledMLModel.break_rows = True
    bench = Bench(opened(package("dense"), tmp_path), BenchOptions(width=8))
    assert gate("rows").run(bench).verdict == "refuted"


def test_compiled_once_and_loaded_for_the_unit(package: Callable[[str], Path], tmp_path: Path) -> None:
    path = package("dense")
    opened(path, tmp_path, compute_unit="neural-engine")
    # Another process of the same probe finds the compiled model.
    opened(path, tmp_path, compute_unit="gpu")
    (compiled,) = called("compile_model")
    assert compiled == {"model": str(path), "destination_path": str(tmp_path / "dense.mlmodelc")}
    first, second = called("CompiledMLModel")
    assert (first["compute_units"].name, second["compute_units"].name) == ("CPU_AND_NE", "CPU_AND_GPU")
    assert first["path"] == str(tmp_path / "dense.mlmodelc")
    assert first["function_name"] is None
    assert first["optimization_hints"] == {
        "reshapeFrequency": recording.ReshapeFrequency.Frequent,
        "specializationStrategy": recording.SpecializationStrategy.FastPrediction,
    }


def test_functions_are_loaded_by_name(package: Callable[[str], Path], tmp_path: Path) -> None:
    opened(package("several"), tmp_path, "prefill")
    assert called("CompiledMLModel")[0]["function_name"] == "prefill"
    with pytest.raises(BackendError, match="no function is called 'main'; there are: decode, prefill"):
        opened(package("several"), tmp_path)


def test_a_compiled_model_is_loaded_as_it_is(package: Callable[[str], Path], tmp_path: Path) -> None:
    assert CoreML(RUNTIME)._compile("x.mlmodelc", "") == "x.mlmodelc"
    assert called("compile_model") == []


def test_predictions_get_float32_and_int32_and_a_state(package: Callable[[str], Path], tmp_path: Path) -> None:
    """Half-precision arrays would be cast to float32 inside the prediction, within the timed part."""
    session = opened(package("dense"), tmp_path)
    session.forward([1, 2], 0)
    (call,) = called("predict")
    assert call == {"types": {"input_ids": np.dtype("int32"), "causal_mask": np.dtype("float32")}, "state": True}
    assert session.seconds > 0


def test_inputs_are_made_once(package: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    session = opened(package("dense"), tmp_path)
    first = session._prepared([1, 2], 5)
    assert session._prepared([1, 2], 5) is first
    assert session._prepared([1, 3], 5) is not first


def test_a_reset_is_a_new_state_with_what_was_kept(package: Callable[[str], Path], tmp_path: Path) -> None:
    session = opened(package("dense"), tmp_path)
    session.forward([1, 2, 3], 0)
    kept = session.states()
    assert [one["name"] for one in called("read_state")] == ["k_cache", "v_cache"]
    assert all(array.dtype == np.float16 for array in kept.values())
    first = session.forward([4], 3)
    session.reset(kept)
    assert len(called("make_state")) == 2
    assert [(one["name"], one["dtype"]) for one in called("write_state")] == [
        ("k_cache", np.float16), ("v_cache", np.float16),
    ]  # fmt: skip
    assert (session.forward([4], 3) == first).all()


def test_a_padded_row_is_noticed(package: Callable[[str], Path], tmp_path: Path) -> None:
    session = opened(package("dense"), tmp_path)
    original = session._model.predict
    session._model.predict = lambda data, state: {
        "logits": np.pad(original(data, state)["logits"], [(0, 0), (0, 0), (0, 32)])
    }
    with pytest.raises(RuntimeError, match="came out with 128 columns: padded, or another model"):
        session.forward([1], 0)


def test_values_that_are_no_numbers_fail_the_shape(package: Callable[[str], Path], tmp_path: Path) -> None:
    session = opened(package("dense"), tmp_path)
    original = session._model.predict
    session._model.predict = lambda data, state: {"logits": original(data, state)["logits"] * np.nan}
    found = gate("shape").run(Bench(session, BenchOptions(width=2)))
    assert (found.verdict, "values that are no numbers" in found.reason) == ("refuted", True)


@pytest.mark.parametrize("scale", [1.2, float("nan")])
def test_a_soak_finds_what_changes_with_time(package: Callable[[str], Path], tmp_path: Path, scale: float) -> None:
    session = opened(package("dense"), tmp_path)
    assert gate("soak").run(Bench(session, BenchOptions(width=2, soak=30))).verdict == "confirmed"
    original, calls = session._model.predict, iter(range(10_000))

    def tiring(data: Any, state: Any) -> Any:
        return {"logits": original(data, state)["logits"] * (scale if next(calls) > 60 else 1)}

    session._model.predict = tiring
    found = gate("soak").run(Bench(session, BenchOptions(width=2, soak=60)))
    assert found.verdict == "refuted"
    assert "differs from the first of its width" in found.reason


def test_placement(package: Callable[[str], Path], tmp_path: Path) -> None:
    options = OpenOptions(0, keep=str(tmp_path), compute_unit="neural-engine")
    assert CoreML(RUNTIME).placement(str(package("dense")), "main", options) == {"neural-engine": 1, "cpu": 1}
    (call,) = called("load_from_path")
    assert call["compute_units"].name == "CPU_AND_NE"


def test_the_floor_is_a_model_of_the_same_ports(package: Callable[[str], Path], tmp_path: Path) -> None:
    session = opened(package("dense"), tmp_path)
    floor = session.floor([1, 4])
    assert set(floor) == {"1", "4"}
    assert all(0 < ms < 1000 for ms in floor.values())
    from probes.coreml.inspection import read

    (null,) = read(tmp_path / "null.mlpackage").signatures
    assert null.inputs == session.signature.inputs
    assert [port.shape for port in null.outputs] == [(1, -1, 96)]
    assert null.states == ()
    assert [one["state"] for one in called("predict")][-1] is False


@pytest.mark.parametrize("name", ["position", "enumerated", "window16", "kv_io"])
def test_the_null_model_of_other_ports(package: Callable[[str], Path], tmp_path: Path, name: str) -> None:
    from probes.coreml.inspection import read
    from probes.coreml.null_model import build

    (signature,) = read(package(name)).signatures
    (null,) = read(build(signature, tmp_path / "null.mlpackage")).signatures
    assert null.inputs == signature.inputs
    assert [(port.name, port.shape) for port in null.outputs] == [(port.name, port.shape) for port in signature.outputs]


def test_a_sweep_becomes_a_table_that_the_plan_reads(package: Callable[[str], Path], tmp_path: Path) -> None:
    session = opened(package("dense"), tmp_path)
    raw = sweep(session, Schedule(widths=[1, 2, 3, 4], context=16, repeats=4))
    cost = judged({**raw, "floor_ms": {"1": 0.1}}, "device", 1000)
    cost = {**cost, "status": "ok", "reasons": [], "staircase": staircase_of(cost)}
    assert cost["floor_ms"] == {"1": 0.1}
    facts = facts_of(session.signature, "dense.mlpackage")
    graph = report.graph("main", facts, [], [cost], bundle="dense.mlpackage")
    whole = report.document(
        bundle="dense.mlpackage", backend="coreml", scope="device", graphs=[graph], decode="main", environment={},
        settings={},
    )  # fmt: skip
    (tmp_path / "report.json").write_text(json.dumps(whole))
    result = CliRunner().invoke(cli, ["plan", str(tmp_path / "report.json"), "--format", "json"])
    (table,) = json.loads(result.stdout)["tables"]
    assert (table["scope"], [point["s"] for point in table["points"]]) == ("device", [1, 2, 3, 4])


def test_elsewhere_it_inspects_and_does_not_open(
    package: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module.sys, "platform", "linux")
    elsewhere = CoreML()
    assert elsewhere.scope == "program"
    assert elsewhere.inspect(str(package("dense"))).not_executable.startswith("Core ML runs on macOS only")
    with pytest.raises(BackendError, match="Core ML runs on macOS only"):
        elsewhere.open(str(package("dense")), "main", OpenOptions(0))
    assert CoreML(RUNTIME).scope == "device"
    assert CoreML(RUNTIME).inspect(str(package("dense"))).not_executable == ""
