"""The backend `reference`: an ML Program evaluated op by op, on any system. It says what a program means.

No device computes like this, so its scope is *program*: a graph that fails here is wrong everywhere, and one that holds
may still be executed wrongly. It has no timings.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from probes.backend import BackendError, Inspection, OpenOptions, Session
from probes.coreml.inspection import inspect, limit_memory, read
from probes.coreml.package import SPEC_LIMIT, PackageError, inside, locate, read_bytes
from probes.coreml.session import DeclaredSession
from probes.coreml.spec import parse
from probes.coreml.weights import blobs, in_weights
from probes.signature import Signature

if TYPE_CHECKING:
    from probes.backend import Array, Rows

WEIGHT_LIMIT = 2**30
"""Weights of more bytes are refused unless the caller raises it: as float32 they take about four times their size."""
_ROOM = 3 * 2**30


class Reference:
    """coremltools is imported when a graph is opened, not before."""

    scope = "program"

    def __init__(self) -> None:
        self._programs: dict[str, Any] = {}

    def inspect(self, path: str) -> Inspection:
        return inspect(path)

    def open(self, path: str, graph: str, options: OpenOptions) -> Session:
        model = read(Path(path))
        signature = next((one for one in model.signatures if one.name == graph), None)
        if signature is None:
            names = ", ".join(one.name for one in model.signatures)
            raise BackendError(f"no function is called {graph!r}; there are: {names}")
        if path not in self._programs:
            self._programs[path] = load(Path(path), options.weight_limit or WEIGHT_LIMIT)
        from probes.coreml.evaluator import Evaluator

        return ReferenceSession(Evaluator(self._programs[path].functions[graph]), signature, options)

    def environment(self) -> dict[str, Any]:
        from importlib.metadata import version

        packages = {name: version(name) for name in ("coremltools", "numpy")}
        return {"packages": packages, "runtime": "evaluated in float32 from the program; no device"}

    def close(self) -> None:
        self._programs.clear()


def load(path: Path, limit: int) -> Any:
    """The program with its weights, as coremltools reads it; `BackendError` when that cannot or must not be done."""
    try:
        package = locate(path)
        if package.spec is None:
            raise BackendError("a compiled model cannot be evaluated; give the .mlpackage that it was compiled from")
        spec = parse(read_bytes(package.root, package.spec, SPEC_LIMIT), package.spec.name)
        if spec.WhichOneof("Type") != "mlProgram":
            raise BackendError(f"the model is a {spec.WhichOneof('Type')}: the reference evaluates ML Programs only")
        weights = package.weights
        size = 0
        if weights is not None and (weights.exists() or weights.is_symlink()):
            folder = inside(package.root, weights, package.spec)
            size = sum(inside(package.root, item, folder).stat().st_size for item in sorted(folder.iterdir()))
        for name in sorted({name for name, _ in blobs(spec)}):
            if not in_weights(name):
                raise PackageError(f"{package.spec.name}: its weights in {name!r} leave the package; not followed")
    except PackageError as error:
        raise BackendError(str(error)) from None
    if size > limit:
        raise BackendError(
            f"the weights are {size / 1e9:.1f} GB, and evaluating them takes about four times that in memory: "
            f"--weight-limit {-(-size // 10**9)} does it all the same"
        )
    if "SPEC_AUDIT_SCRATCH" in os.environ:
        # Only in the child, which does nothing else.
        limit_memory(6 * size + _ROOM)
    for function in spec.mlProgram.functions.values():
        function.attributes.clear()
        for block in function.block_specializations.values():
            block.attributes.clear()
    spec.mlProgram.docString = ""
    return _load(spec, str(weights or ""))


def _load(spec: Any, weights: str) -> Any:
    import logging

    logging.getLogger("coremltools").setLevel(logging.ERROR)
    from coremltools.converters.mil.frontend.milproto.load import load as load_program

    try:
        return load_program(spec, spec.specificationVersion, weights)
    except MemoryError:
        raise
    except Exception as error:
        text = " ".join(str(error).split())[:300]
        raise BackendError(f"coremltools cannot load the program ({type(error).__name__}: {text})") from None


class ReferenceSession(DeclaredSession):
    """One function with its states, which are kept as float32 at the precision of their type."""

    def __init__(self, evaluator: Any, signature: Signature, options: OpenOptions) -> None:
        super().__init__(signature, options)
        self._evaluator = evaluator
        self._states: dict[str, Any] = {}
        self.reset()

    def forward(self, tokens: Sequence[int], position: int) -> Rows:
        return self._rows(self._evaluator.run(self._inputs(tokens, position), self._states))

    def states(self) -> dict[str, Array]:
        types = {port.name: port.dtype for port in self.signature.states}
        return {name: array.astype(types[name]) for name, array in self._states.items()}

    def reset(self, states: Mapping[str, Array] | None = None) -> None:
        import numpy as np

        fresh = self._fresh(states)
        self._states = {
            name: one.astype(np.float32) if one.dtype.kind == "f" else one.copy() for name, one in fresh.items()
        }
