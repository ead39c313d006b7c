"""The program of a compiled model: `model.mil` is text, one operation a line.

Read line by line with plain searches, so that the time is proportional to the size whatever the lines hold. What does
not look like a function or an operation is passed over; `Function.results` being empty tells that an end was missing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from probes.coreml.program import Function, Operation
from probes.signature import DYNAMIC, Port

LIMIT = 256 * 2**20
"""A program larger than this is not read as text."""

_FUNCTION = re.compile(r"\s*func ([\w.-]+)<(\w+)>\(")
_TYPES = {"fp16": "float16", "fp32": "float32", "fp64": "float64", "bf16": "bfloat16"}
_TENSOR = re.compile(r"(?P<state>state<)?tensor<(?P<dtype>\w+), \[(?P<dims>[^\]<>]*)\]>+ (?P<name>[\w.-]+)")
_SCALAR = re.compile(r"(\w+) ([\w.-]+)")
_NAME = re.compile(r"[\w.-]+")


def functions(text: str) -> dict[str, Function]:
    """Every function of the program."""
    found: dict[str, Function] = {}
    current: _Open | None = None
    for line in text.splitlines():
        match = _FUNCTION.match(line)
        if match:
            current = _Open(match[1], match[2], line[match.end() :])
            continue
        if current is None:
            continue
        stripped = line.strip()
        if stripped.startswith("} -> (") and current.depth == 0:
            found[current.name] = current.close(stripped)
            current = None
            continue
        current.line(stripped)
    return found


class _Open:
    """A function whose end has not come yet."""

    def __init__(self, name: str, opset: str, rest: str) -> None:
        self.name = name
        self.opset = opset
        self.depth = 0
        parameters = rest.partition(") [")[0] if ") [" in rest else rest.rpartition(")")[0]
        ports = [(match["state"], _port(match)) for match in _TENSOR.finditer(parameters)]
        self.inputs = tuple(port for state, port in ports if not state)
        self.states = tuple(port for state, port in ports if state)
        self.operations: list[Operation] = []

    def line(self, line: str) -> None:
        # A block inside an operation ends with its own `} -> (...)`.
        if line.endswith("{"):
            self.depth += 1
        elif line.startswith("}"):
            self.depth -= 1
        operation = _operation(line)
        if operation is not None:
            self.operations.append(operation)

    def close(self, line: str) -> Function:
        results = tuple(_NAME.findall(line.removeprefix("} -> (").partition(")")[0]))
        return Function(self.name, self.opset, self.inputs, tuple(self.operations), results, self.states)


def _port(match: re.Match[str]) -> Port:
    dims = [part.strip() for part in match["dims"].split(",") if part.strip()]
    shape = tuple(int(dim) if dim.isdigit() else DYNAMIC for dim in dims)
    return Port(match["name"], shape, _TYPES.get(match["dtype"], match["dtype"]))


def _operation(line: str) -> Operation | None:
    left, equals, right = line.partition(" = ")
    if not equals or "(" in left:
        left, right = "", line
    kind, bracket, rest = right.partition("(")
    if not bracket or not _NAME.fullmatch(kind):
        return None
    arguments = rest.partition(")[")[0]
    return Operation(kind, dict(_arguments(arguments)), tuple(_outputs(left)))


def _outputs(left: str) -> Iterator[Port]:
    tensors = [_port(match) for match in _TENSOR.finditer(left)]
    if tensors:
        yield from tensors
    elif match := _SCALAR.fullmatch(left.strip()):
        yield Port(match[2], (), _TYPES.get(match[1], match[1]))


def _arguments(text: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """`x = a, values = (b, c)` as names by parameter."""
    for piece in re.split(r", (?=\w+ = )", text):
        key, equals, value = piece.partition(" = ")
        if equals:
            yield key.strip(), tuple(_NAME.findall(value))
