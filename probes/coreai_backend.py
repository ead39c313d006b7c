"""Execution of an `.aimodel` with coreai-core: the system's Core AI on macOS 27, Apple's CPU interpreter elsewhere."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from probes.backend import BackendError, CapacityError, Inspection, OpenOptions, Session
from probes.bundles import INSTALL
from probes.feed import feed, state_shape, widths
from probes.ports import ports
from probes.roles import role_of
from probes.signature import DYNAMIC, Port, Signature, fixed_axis, position_axis

if TYPE_CHECKING:
    from probes.backend import Array, Rows

_ORDER = ("float64", "float32", "float16", "bfloat16", "float8e4m3fn", "float8e5m2")


class CoreAI:
    """`scope` is `device` only where the operating system's own runtime executes."""

    def __init__(self) -> None:
        try:
            import coreai.runtime as runtime
        except ImportError as error:
            raise BackendError(f"coreai-core is not installed ({error}); {INSTALL}") from None
        self._runtime: Any = runtime
        self._loop = asyncio.new_event_loop()
        self._open: dict[str, tuple[Any, Any]] = {}
        system = sys.platform == "darwin" and bool(getattr(runtime, "_use_os_coreai", False))
        self.scope = "device" if system else "interpreter"

    def inspect(self, path: str) -> Inspection:
        from probes.inspect_coreai import inspect

        return inspect(path)

    def open(self, path: str, graph: str, options: OpenOptions) -> Session:
        model = self._model(path, options)
        if graph not in model.function_names:
            raise BackendError(f"no entry point is called {graph!r}; there are: {', '.join(model.function_names)}")
        function = model.load_function(graph)
        return CoreAISession(self._runtime, self._loop, function, signature_of(graph, function.desc), options)

    def _model(self, path: str, options: OpenOptions) -> Any:
        if path not in self._open:
            from coreai.authoring import AIModelAsset

            manager = AIModelAsset.load(path).executable(**self._specialization(options))
            self._open[path] = (manager, self._loop.run_until_complete(manager.__aenter__()))
        return self._open[path][1]

    def _specialization(self, options: OpenOptions) -> dict[str, Any]:
        """The compute unit, where the runtime takes one (macOS 27): `cpu`, `gpu` or `neural-engine`."""
        if not options.compute_unit or self.scope != "device":
            return {}
        kinds = self._runtime.ComputeUnitKind
        made = {"cpu": kinds.cpu, "gpu": kinds.gpu, "neural-engine": kinds.neural_engine}[options.compute_unit]()
        chosen = self._runtime.SpecializationOptions.from_preferred_compute_unit_kind(made)
        return {"specialization_options": chosen}

    def environment(self) -> dict[str, Any]:
        from importlib.metadata import PackageNotFoundError, version

        found = {}
        for package in ("coreai-core", "numpy"):
            try:
                found[package] = version(package)
            except PackageNotFoundError:
                found[package] = "unknown"
        return {"packages": found, "runtime": "operating system" if self.scope == "device" else "CPU interpreter"}

    def close(self) -> None:
        for manager, _ in self._open.values():
            self._loop.run_until_complete(manager.__aexit__(None, None, None))
        self._open.clear()


def signature_of(name: str, descriptor: Any) -> Signature:
    """The signature that the loaded function declares; it decides what is fed."""
    return Signature(
        name,
        tuple(_port(key, descriptor.input_descriptor(key)) for key in descriptor.input_names),
        tuple(_port(key, descriptor.state_descriptor(key)) for key in descriptor.state_names),
        tuple(_port(key, descriptor.output_descriptor(key)) for key in descriptor.output_names),
    )


def _port(name: str, descriptor: Any) -> Port:
    shape = tuple(DYNAMIC if dim is None or dim < 0 else int(dim) for dim in descriptor.shape)
    return Port(name, shape, str(descriptor.dtype).lower())


def numpy_dtype(name: str) -> Any:
    """The numpy type of a runtime's type name; ml_dtypes has those that numpy lacks."""
    import numpy as np

    if name in ("bfloat16", "float8e4m3fn", "float8e5m2"):
        import ml_dtypes

        return getattr(ml_dtypes, {"float8e4m3fn": "float8_e4m3fn", "float8e5m2": "float8_e5m2"}.get(name, name))
    return np.dtype(name)


class CoreAISession:
    """One entry point. The runtime mutates the arrays of `_states` in place."""

    def __init__(self, runtime: Any, loop: Any, function: Any, signature: Signature, options: OpenOptions) -> None:
        found = ports(signature, options.vocab)
        self.signature = signature
        self.widths = widths(found)
        self.seconds = 0.0
        self._feed = feed(signature, found, options.positions, options.vocab)
        self.vocab = self._feed.vocab
        self.positions = self._feed.convention
        self._logits = found.logits
        self._array = runtime.NDArray
        self._loop = loop
        self._function = function
        self._shapes = {port.name: state_shape(port, options.capacity) for port in signature.states}
        self._types = {port.name: numpy_dtype(port.dtype) for port in signature.states}
        self.capacity = self._capacity(signature, options.capacity)
        types = [port.dtype for port in (*found.logits, *signature.states) if port.is_float]
        self.precision = max(types, key=lambda name: _ORDER.index(name) if name in _ORDER else len(_ORDER))
        self._limited = True
        self._states: dict[str, Any] = {}
        self.reset()

    @staticmethod
    def _capacity(signature: Signature, growing: int) -> int | None:
        """Rows of the shortest cache: `growing` where it is ours to choose, the declared length where it is fixed."""
        rows = []
        for port in signature.states:
            if position_axis(port) is not None:
                rows.append(growing)
            elif role_of(port)[0].is_kv and (axis := fixed_axis(port)) is not None:
                rows.append(port.shape[axis])
        return min(rows, default=None)

    def overflow(self, allowed: bool) -> None:
        self._limited = not allowed

    def forward(self, tokens: Sequence[int], position: int) -> Rows:
        import numpy as np

        parts = [np.asarray(part, np.float32) for part in self.raw(tokens, position)]
        joined = parts[0] if len(parts) == 1 else np.concatenate(parts, axis=-1)
        return joined.reshape(-1, joined.shape[-1])

    def raw(self, tokens: Sequence[int], position: int) -> Sequence[Array]:
        """As `forward`, with the logits as the runtime left them: neither converted nor copied."""
        import numpy as np

        if not tokens:
            raise ValueError("a forward needs at least one token")
        if self.widths is not None and len(tokens) not in self.widths:
            raise ValueError(f"the graph takes {self.widths} tokens, not {len(tokens)}")
        end = position + len(tokens)
        if self._limited and self.capacity is not None and end > self.capacity:
            raise CapacityError(f"positions {position}..{end - 1} do not fit a cache of {self.capacity} rows")
        inputs = {name: self._array(value) for name, value in self._feed.inputs(tokens, position).items()}
        if self._feed.counter is not None:
            port = self._feed.counter
            self._states[port.name] = self._array(np.full(self._shapes[port.name], position, self._types[port.name]))
        started = time.perf_counter()
        outputs = self._loop.run_until_complete(self._function(inputs, state=self._states))
        self.seconds = time.perf_counter() - started
        return [outputs[port.name].numpy() for port in self._logits]

    def states(self) -> dict[str, Array]:
        return {name: value.numpy().copy() for name, value in self._states.items()}

    def reset(self, states: Mapping[str, Array] | None = None) -> None:
        import numpy as np

        if states is None:
            fresh = {name: np.zeros(shape, self._types[name]) for name, shape in self._shapes.items()}
        else:
            fresh = {name: np.ascontiguousarray(states[name], self._types[name]) for name in self._shapes}
            for name, shape in self._shapes.items():
                if fresh[name].shape != shape:
                    raise ValueError(f"state {name} has shape {fresh[name].shape}, not {shape}")
        self._states = {name: self._array(value) for name, value in fresh.items()}
