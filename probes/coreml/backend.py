"""Execution of a `.mlpackage` or `.mlmodelc` by Core ML, which is on macOS only. Elsewhere this backend inspects.

A package is compiled once for all children of a probe; a function is loaded from the compiled model for one compute
unit. `coremltools` is the way in, and `runtime` is its module, so that a test can put a stand-in in its place.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from probes.backend import BackendError, Inspection, OpenOptions, Session
from probes.coreml.inspection import inspect, read
from probes.coreml.proto import INSTALL
from probes.coreml.session import DeclaredSession
from probes.signature import DYNAMIC, Signature

if TYPE_CHECKING:
    from probes.backend import Array, Rows

ELSEWHERE = "Core ML runs on macOS only; `--backend reference` evaluates the program on any system"
UNITS = {"": "ALL", "cpu": "CPU_ONLY", "gpu": "CPU_AND_GPU", "neural-engine": "CPU_AND_NE"}
_DEVICES = {
    "MLCPUComputeDevice": "cpu",
    "MLGPUComputeDevice": "gpu",
    "MLNeuralEngineComputeDevice": "neural-engine",
}
_FLOOR_CALLS = 20


class CoreML:
    """`scope` is `device` where Core ML is; an inspection elsewhere tells of the program."""

    def __init__(self, runtime: Any = None) -> None:
        self._runtime = runtime
        self._runs = runtime is not None or sys.platform == "darwin"
        self.scope = "device" if self._runs else "program"
        self._compiled: dict[str, str] = {}

    def inspect(self, path: str) -> Inspection:
        found = inspect(path)
        return found if self._runs else replace(found, not_executable=ELSEWHERE)

    def open(self, path: str, graph: str, options: OpenOptions) -> Session:
        if not self._runs:
            raise BackendError(ELSEWHERE)
        model = read(Path(path))
        signature = next((one for one in model.signatures if one.name == graph), None)
        if signature is None:
            names = ", ".join(one.name for one in model.signatures)
            raise BackendError(f"no function is called {graph!r}; there are: {names}")
        runtime = self._ct()
        # A lone function is loaded without a name: Core ML knows names only where there are several.
        name = graph if len(model.signatures) > 1 else None
        loaded = self._load(runtime, self._compile(path, options.keep), signature, name, options)
        return CoreMLSession(loaded, signature, options, lambda: self._null(signature, options))

    def placement(self, path: str, graph: str, options: OpenOptions) -> dict[str, int]:
        """How many operations of `graph` the system means to run on each device."""
        runtime = self._ct()
        plan = runtime.models.compute_plan.MLComputePlan.load_from_path(
            self._compile(path, options.keep), compute_units=self._unit(options)
        )
        program = plan.model_structure.program
        if program is None:
            return {}
        functions = program.functions
        function = functions.get(graph) or (next(iter(functions.values())) if len(functions) == 1 else None)
        found: dict[str, int] = {}
        for operation in function.block.operations if function else ():
            usage = plan.get_compute_device_usage_for_mlprogram_operation(operation)
            if usage is not None:
                kind = type(usage.preferred_compute_device).__name__
                device = _DEVICES.get(kind, kind)
                found[device] = found.get(device, 0) + 1
        return found

    def environment(self) -> dict[str, Any]:
        from importlib.metadata import PackageNotFoundError, version

        found = {}
        for package in ("coremltools", "numpy") if self._runs else ("coremltools",):
            try:
                found[package] = version(package)
            except PackageNotFoundError:
                found[package] = "unknown"
        return {"packages": found, "runtime": "Core ML of the operating system" if self._runs else "none: inspection"}

    def close(self) -> None:
        self._compiled.clear()

    def _ct(self) -> Any:
        if self._runtime is None:
            try:
                import coremltools
            except ImportError as error:
                raise BackendError(f"coremltools is not installed ({error}); {INSTALL}") from None
            self._runtime = coremltools
        return self._runtime

    def _compile(self, path: str, keep: str) -> str:
        """The compiled model of a package: made once, and kept for the next child where `keep` names a folder."""
        if path.endswith(".mlmodelc"):
            return path
        if path not in self._compiled:
            target = Path(keep) / f"{Path(path).stem}.mlmodelc" if keep else None
            if target is not None and target.exists():
                self._compiled[path] = str(target)
            else:
                made = self._ct().models.utils.compile_model(path, str(target) if target else None)
                self._compiled[path] = str(made)
        return self._compiled[path]

    def _unit(self, options: OpenOptions) -> Any:
        return getattr(self._ct().ComputeUnit, UNITS[options.compute_unit])

    def _load(self, runtime: Any, path: str, signature: Signature, name: str | None, options: OpenOptions) -> Any:
        flexible = any(DYNAMIC in port.shape for port in signature.inputs)
        frequency = runtime.ReshapeFrequency.Frequent if flexible else runtime.ReshapeFrequency.Infrequent
        hints = {
            "reshapeFrequency": frequency,
            "specializationStrategy": runtime.SpecializationStrategy.FastPrediction,
        }
        return runtime.models.CompiledMLModel(
            path, compute_units=self._unit(options), function_name=name, optimization_hints=hints
        )

    def _null(self, signature: Signature, options: OpenOptions) -> Any:
        """A loaded model of the same inputs and outputs that computes nothing: what a call costs by itself."""
        from probes.coreml.null_model import build

        folder = Path(options.keep or ".")
        package = build(signature, folder / "null.mlpackage")
        return self._load(self._ct(), self._compile(str(package), options.keep), signature, None, options)


class CoreMLSession(DeclaredSession):
    """One function loaded by Core ML, with a state of the runtime's own."""

    def __init__(self, model: Any, signature: Signature, options: OpenOptions, null: Any = None) -> None:
        super().__init__(signature, options)
        self._model = model
        self._null = null
        self._made: dict[tuple[tuple[int, ...], int], dict[str, Array]] = {}
        self._state: Any = None
        self.reset()

    def forward(self, tokens: Sequence[int], position: int) -> Rows:
        data = dict(self._prepared(tokens, position))
        started = time.perf_counter()
        outputs = self._model.predict(data) if self._state is None else self._model.predict(data, state=self._state)
        self.seconds = time.perf_counter() - started
        return self._rows(outputs)

    def states(self) -> dict[str, Array]:
        import numpy as np

        return {
            port.name: np.array(self._state.read_state(port.name), dtype=port.dtype).reshape(port.shape)
            for port in self.signature.states
        }

    def reset(self, states: Mapping[str, Array] | None = None) -> None:
        if not self.signature.states:
            return
        self._state = self._model.make_state()
        if states is not None:
            for name, array in self._fresh(states).items():
                self._state.write_state(name, array)

    def floor(self, widths: Sequence[int]) -> dict[str, float]:
        """Milliseconds of a call that computes nothing, by S: the median of a few, after two."""
        import statistics

        if self._null is None:
            return {}
        model = self._null()
        found = {}
        for width in widths:
            data = self._prepared([0] * width, 0)
            times = []
            for _ in range(_FLOOR_CALLS + 2):
                started = time.perf_counter()
                model.predict(dict(data))
                times.append(time.perf_counter() - started)
            found[str(width)] = 1e3 * statistics.median(times[2:])
        return found

    def _prepared(self, tokens: Sequence[int], position: int) -> dict[str, Array]:
        """The inputs, made once: a sweep gives the same tokens again and again."""
        key = (tuple(tokens), position)
        if key not in self._made:
            if len(self._made) > 64:
                self._made.clear()
            self._made[key] = self._inputs(tokens, position)
        elif self._limited:
            # The capacity is asked for again: it may have been lifted when these were made.
            self._inputs(tokens, position)
        return self._made[key]
