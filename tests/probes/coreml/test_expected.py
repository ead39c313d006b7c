"""A failure on a device is split: is the program wrong, or what runs it?"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import recording
from packages import quiet

from probes import expected
from probes.child import _Worker, said
from probes.coreml.backend import CoreML
from probes.coreml.reference import Reference
from probes.options import ProbeOptions
from probes.probe import probe
from probes.supervisor import Run, StepResult


@pytest.fixture(autouse=True)
def mac(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The whole probe with a stand-in for Core ML: children become calls in this process."""
    recording.CALLS.clear()

    def supervise(request: Mapping[str, Any], steps: Sequence[Mapping[str, Any]], *_: Any) -> Run:
        backend = CoreML(recording.RUNTIME) if request["backend"] == "coreml" else Reference()
        run = Run(scope=backend.scope, environment=backend.environment())
        worker = _Worker(backend, request, lambda event: None)
        for step in steps:
            try:
                run.results[step["id"]] = StepResult(worker.run(step))
            except Exception as error:
                run.results[step["id"]] = StepResult(failure=said(error))
        return run

    monkeypatch.setattr("probes.probe.supervise", supervise)
    with quiet():
        yield
    recording.CompiledMLModel.break_rows = False


OPTIONS = ProbeOptions(widths=(1, 2, 3, 4), repeats=3, contexts=(16,))


def test_a_right_runtime_is_confirmed_on_the_device(package: Callable[[str], Path]) -> None:
    report = probe(package("dense"), OPTIONS)
    (graph,) = report["graphs"]
    assert (report["scope"], report["verdict"]) == ("device", "confirmed"), graph["why"]
    assert "the program gives the same argmax at 40 of 40 positions of the prompt" in graph["notes"]
    assert "operations are placed on: 1 cpu, 1 neural-engine" in graph["notes"]
    (cost,) = graph["verify_cost"]
    assert [point["s"] for point in cost["points"]] == [1, 2, 3, 4]
    assert set(cost["floor_ms"]) == {"1", "2", "3", "4"}
    # The package and the null model: each compiled once, in a folder that is gone.
    targets = [call["destination_path"] for call in recording.called("compile_model")]
    assert [Path(target).name for target in targets] == ["dense.mlmodelc", "null.mlmodelc"]
    assert not any(Path(target).exists() for target in targets)


def test_a_wrong_runtime_is_told_from_a_wrong_program(package: Callable[[str], Path]) -> None:
    recording.CompiledMLModel.break_rows = True
    (graph,) = probe(package("dense"), OPTIONS)["graphs"]
    rows = next(gate for gate in graph["gates"] if gate["gate"] == "rows")
    assert rows["verdict"] == "refuted"
    assert rows["reason"].endswith("; the program itself passes, so the runtime is wrong")
    assert rows["program"]["verdict"] == "confirmed"
    assert graph["verdict"] == "refuted"


def test_a_wrong_program_is_told_as_that(package: Callable[[str], Path]) -> None:
    (graph,) = probe(package("wrong_mask"), OPTIONS)["graphs"]
    rows = next(gate for gate in graph["gates"] if gate["gate"] == "rows")
    assert rows["reason"].endswith("; the program itself fails as well")
    assert rows["program"]["verdict"] == "refuted"


def test_a_program_that_cannot_be_evaluated_splits_nothing() -> None:
    gates = [
        {"gate": "rows", "verdict": "refuted", "reason": "delta 1", "numbers": {}},
        {"gate": "state", "verdict": "confirmed", "reason": "", "numbers": {}},
        {"gate": "repeat", "verdict": "confirmed", "reason": "", "numbers": {"argmax": [1, 2, 3]}},
    ]
    assert expected.wanted(gates) == ["rows", "repeat"]
    found, notes = expected.split(gates, {}, {"rows": "no evaluator for lstm"})
    assert found == gates
    assert notes == ["gate rows: the program was not evaluated: no evaluator for lstm"]
    said = {"repeat": {"verdict": "confirmed", "reason": "", "numbers": {"argmax": [1, 9, 3]}}}
    found, notes = expected.split(gates, said, {})
    assert notes == ["the program gives the same argmax at 2 of 3 positions of the prompt"]
