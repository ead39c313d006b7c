"""An ML Program as the probe reads it, from the protobuf or from MIL text: ports and operations, no values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from probes.signature import DYNAMIC, Port, Signature

WRITES = frozenset({"write_state", "coreml_update_state"})
READS = frozenset({"read_state", "coreml_update_state"})
_PICKS = frozenset({"slice_by_index", "slice_by_size", "gather", "gather_along_axis", "gather_nd"})
_BOUNDS = ("begin", "end", "size", "indices")
_SHAPES_ONLY = frozenset({"const", "shape", "range_1d", "read_state", "slice_update"})


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation: the names that go into each parameter, and what comes out. Nested blocks are flattened."""

    kind: str
    inputs: Mapping[str, tuple[str, ...]]
    outputs: tuple[Port, ...]

    def first(self, parameter: str) -> str:
        names = self.inputs.get(parameter, ())
        return names[0] if names else ""


@dataclass(frozen=True, slots=True)
class Function:
    """A function of a program; `results` are the names of the values that it returns."""

    name: str
    opset: str
    inputs: tuple[Port, ...]
    operations: tuple[Operation, ...]
    results: tuple[str, ...]
    states: tuple[Port, ...] = ()

    def values(self) -> dict[str, Port]:
        """Every value by its name."""
        found = {port.name: port for port in (*self.inputs, *self.states)}
        found |= {port.name: port for operation in self.operations for port in operation.outputs}
        return found

    def writes(self) -> Counter[str]:
        """How many operations write each state."""
        return Counter(_state(op) for op in self.operations if op.kind in WRITES)

    def reads(self) -> Counter[str]:
        """How many operations read each state."""
        return Counter(_state(op) for op in self.operations if op.kind in READS)

    def float_types(self) -> list[str]:
        """The types of floating point that operations compute in, constants left out."""
        found = {
            port.dtype
            for op in self.operations
            if op.kind not in ("const", "cast") and not op.kind.startswith("constexpr")
            for port in op.outputs
            if port.is_float
        }
        return sorted(found)

    def compressed(self) -> Counter[str]:
        """The operations that unpack compressed weights."""
        return Counter(op.kind for op in self.operations if op.kind.startswith("constexpr"))

    def vocabulary(self, tokens: str) -> int | None:
        """The rows of the table that the token ids look up; None where no lookup of them is seen."""
        values = self.values()
        carry = {tokens}
        for op in self.operations:
            if op.kind == "gather" and op.first("indices") in carry:
                table = values.get(op.first("x"))
                return table.shape[0] if table and len(table.shape) == 2 and table.shape[0] > 1 else None
            if op.kind in ("cast", "identity", "select", "add", "greater_equal", "expand_dims", "squeeze", "reshape"):
                carry |= {port.name for port in op.outputs if any(n in carry for v in op.inputs.values() for n in v)}
        return None

    def computed_rows(self, tokens: str, result: str) -> str:
        """The operation that picks rows by computed bounds on the way from the tokens to `result`; empty if none does.

        Its output has a dynamic length like that of the query, and may have one row all the same (`x[:, n-1:n]`).
        """
        values = self.values()
        constant = {port.name for op in self.operations if op.kind == "const" for port in op.outputs}
        carried = {tokens}
        picks: dict[str, str] = {}
        makers: dict[str, Operation] = {}
        for op in self.operations:
            makers |= {port.name: op for port in op.outputs}
            if op.kind in _SHAPES_ONLY or op.kind in WRITES or op.kind in READS:
                continue
            if any(name in carried for names in op.inputs.values() for name in names):
                carried |= {port.name for port in op.outputs}
            bounds = [name for key in _BOUNDS for name in op.inputs.get(key, ())]
            source = values.get(op.first("x"))
            by_values = op.kind in _PICKS and any(name not in constant for name in bounds)
            if (
                by_values
                and source is not None
                and source.name in carried
                and DYNAMIC in source.shape
                and source.is_float
            ):
                picks |= {port.name: f"{op.kind} `{port.name}`" for port in op.outputs}
        reached, queue = set(), [result]
        while queue:
            name = queue.pop()
            if name in reached or name not in makers:
                continue
            if name in picks:
                return picks[name]
            reached.add(name)
            queue.extend(one for names in makers[name].inputs.values() for one in names)
        return ""

    def baked(self, rows: int) -> str:
        """The first operation that makes a fixed `rows` out of a dynamic length, in words; empty if none does."""
        values = self.values()
        for op in self.operations:
            if op.kind in _SHAPES_ONLY or not op.outputs:
                continue
            out = op.outputs[0]
            came = [values[name] for names in op.inputs.values() for name in names if name in values]
            loses = any(DYNAMIC in port.shape for port in came) and DYNAMIC not in out.shape
            if loses and rows in out.shape and any(port.is_float for port in came):
                return f"{op.kind} `{out.name}` gives {list(out.shape)}"
        return ""


def _state(operation: Operation) -> str:
    return operation.first("input") or operation.first("state")


@dataclass(frozen=True, slots=True)
class Model:
    """What a package holds. `kind` is the name that the format gives it (`mlProgram`, `neuralNetwork`, ...).

    `functions` is empty where the program was not read, with the reason in `unseen`. `about` are facts for the report.
    `blobs` are its constants that lie in files: the file, as the program names it, and the offset.
    """

    kind: str
    version: int
    signatures: tuple[Signature, ...]
    functions: Mapping[str, Function] = field(default_factory=dict)
    default: str = ""
    about: Mapping[str, Any] = field(default_factory=dict)
    unseen: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    blobs: tuple[tuple[str, int], ...] = ()

    def __iter__(self) -> Iterator[tuple[Signature, Function | None]]:
        return ((signature, self.functions.get(signature.name)) for signature in self.signatures)


def with_program(described: Signature, function: Function) -> Signature:
    """The signature as described, with the output shapes of the program, which is what will be run.

    A description leaves out the shape of every output that is dynamic.
    """
    values = function.values()
    outputs = []
    for port, result in zip(described.outputs, function.results, strict=False):
        seen = values.get(port.name) or values.get(result)
        outputs.append(Port(port.name, seen.shape, seen.dtype) if seen and seen.shape else port)
    outputs += described.outputs[len(outputs) :]
    return Signature(described.name, described.inputs, described.states, tuple(outputs))
