"""What a session of a Core ML function is, whoever computes: inputs within the declaration, rows, capacity."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from probes.backend import CapacityError, OpenOptions
from probes.coreml.declared import check, longest
from probes.feed import feed, widths
from probes.ports import ports
from probes.signature import Signature

if TYPE_CHECKING:
    from probes.backend import Array, Rows


class DeclaredSession:
    """The half of a session that the description decides. States have a fixed shape in Core ML."""

    def __init__(self, signature: Signature, options: OpenOptions) -> None:
        found = ports(signature, options.vocab)
        self.signature = signature
        self.widths = widths(found)
        self.seconds = 0.0
        self._feed = feed(signature, found, options.positions, options.vocab)
        self.vocab = self._feed.vocab
        self.positions = self._feed.convention
        self.capacity = longest(signature, found)
        types = [port.dtype for port in (*found.logits, *signature.states) if port.is_float]
        self.precision = "float16" if "float16" in types else max(types, default="float32")
        self._logits = found.logits
        self._limited = True

    def overflow(self, allowed: bool) -> None:
        self._limited = not allowed

    def _inputs(self, tokens: Sequence[int], position: int) -> dict[str, Array]:
        """The arrays for a forward, floats as float32: a half-precision array is cast inside a prediction."""
        import numpy as np

        if not tokens:
            raise ValueError("a forward needs at least one token")
        end = position + len(tokens)
        if self._limited and self.capacity is not None and end > self.capacity:
            raise CapacityError(f"positions {position}..{end - 1} do not fit a cache of {self.capacity} rows")
        inputs = self._feed.inputs(tokens, position)
        check(self.signature, inputs)
        return {name: one.astype(np.float32) if one.dtype.kind == "f" else one for name, one in inputs.items()}

    def _rows(self, outputs: Mapping[str, Any]) -> Rows:
        """The logits [rows, vocabulary]; RuntimeError where they do not have the declared width."""
        import numpy as np

        parts = []
        for port in self._logits:
            part = np.asarray(outputs[port.name], np.float32)
            if part.shape[-1] != port.shape[-1] > 0:
                raise RuntimeError(f"{port} came out with {part.shape[-1]} columns: padded, or another model")
            parts.append(part)
        joined = parts[0] if len(parts) == 1 else np.concatenate(parts, axis=-1)
        return joined.reshape(-1, joined.shape[-1])

    def _fresh(self, states: Mapping[str, Array] | None) -> dict[str, Array]:
        """Zero states, or `states`, checked against the declaration."""
        import numpy as np

        found = {}
        for port in self.signature.states:
            given = np.zeros(port.shape, port.dtype) if states is None else states[port.name]
            if given.shape != port.shape:
                raise ValueError(f"state {port.name} has shape {given.shape}, not {port.shape}")
            found[port.name] = given
        return found
