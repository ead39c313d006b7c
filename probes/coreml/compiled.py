"""A `.mlmodelc` without a runtime: `metadata.json` describes its ports, `model.mil` holds the program.

The rows of `metadata.json` are strings throughout (`"[1, 16]"`, `"0"`). Two layouts are known for several functions,
so both are accepted; a state's row may lack its shape, and the program has it then.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from probes.coreml import mil_text
from probes.coreml.package import Package, PackageError, read_bytes, read_json
from probes.coreml.program import Function, Model, with_program
from probes.coreml.spec import program_facts
from probes.coreml.weights import Blob, blobs_in_text
from probes.signature import Port, Signature

_FORMATTED = re.compile(r"\((\w+) (\d+(?: × \d+)*)\)")


def read(package: Package) -> Model:
    """The model of a compiled package."""
    assert package.metadata is not None
    data = read_json(package.root, package.metadata)
    row = data[0] if isinstance(data, list) and data else data
    if not isinstance(row, dict):
        raise PackageError(f"{package.metadata}: describes no model; compile or download it again")
    kind = str(_mapping(row.get("modelType")).get("name", "")).removeprefix("MLModelType_") or "unknown"
    functions, unseen, blobs = _program(package, kind)
    described = tuple(_signatures(row, functions))
    if not any(one.inputs or one.outputs for one in described):
        raise PackageError(f"{package.metadata}: names no inputs and no outputs; compile or download it again")
    about: dict[str, Any] = {"kind": kind, "specification_version": _number(row.get("specificationVersion"))}
    about |= program_facts(functions.values()) if functions else _told(row)
    about["default_function"] = row.get("defaultFunctionName")
    about["provenance"] = {
        str(key).rpartition(".")[2]: str(value)[:200]
        for key, value in sorted(_mapping(row.get("userDefinedMetadata")).items())
    }
    return Model(
        kind,
        about["specification_version"],
        described,
        functions,
        str(row.get("defaultFunctionName") or ""),
        about,
        unseen,
        blobs=blobs,
    )


def _program(package: Package, kind: str) -> tuple[dict[str, Function], tuple[str, ...], tuple[Blob, ...]]:
    if package.mil is None:
        why = f"the model is a {kind}, not an ML Program" if kind != "mlProgram" else "model.mil is missing"
        return {}, (f"{why}: rows of dynamic outputs, and which states are written, were not seen",), ()
    text = read_bytes(package.root, package.mil, mil_text.LIMIT).decode("utf-8", "replace")
    found, blobs = mil_text.functions(text), tuple(blobs_in_text(text))
    if not found:
        return {}, ("model.mil holds no function that can be read: its operations were not seen",), blobs
    return found, (), blobs


def _signatures(row: Mapping[str, Any], functions: Mapping[str, Function]) -> Iterable[Signature]:
    listed = row.get("functions")
    several: list[Mapping[str, Any]] = []
    if isinstance(listed, list):
        several = [one for one in listed if isinstance(one, dict)]
    for one in several or [row]:
        name = str(one.get("name") or "main") if several else _only(functions)
        signature = Signature(
            name,
            _ports(one.get("inputSchema")),
            _ports(one.get("stateSchema")),
            _ports(one.get("outputSchema")),
        )
        function = functions.get(name)
        yield signature if function is None else with_program(_with_states(signature, function), function)


def _only(functions: Mapping[str, Function]) -> str:
    return next(iter(functions)) if len(functions) == 1 else "main"


def _with_states(signature: Signature, function: Function) -> Signature:
    """The program's states where the description has none of them, or not their shapes."""
    told = {port.name: port for port in signature.states}
    states = [told[port.name] if told.get(port.name) and told[port.name].shape else port for port in function.states]
    states += [port for port in signature.states if all(port.name != one.name for one in states)]
    names = {port.name for port in states}
    inputs = tuple(port for port in signature.inputs if port.name not in names)
    return Signature(signature.name, inputs, tuple(states), signature.outputs)


def _ports(rows: Any) -> tuple[Port, ...]:
    return tuple(_port(row) for row in rows if isinstance(row, dict)) if isinstance(rows, list) else ()


def _port(row: Mapping[str, Any]) -> Port:
    name, dtype = str(row.get("name", "")), str(row.get("dataType", "unknown")).lower()
    default = _list(row.get("shape"))
    if not default and (match := _FORMATTED.search(str(row.get("formattedType", "")))):
        dtype, default = match[1].lower(), [int(dim) for dim in match[2].split(" × ")]
    enumerated = _list(row.get("enumeratedShapes"))
    if enumerated and all(isinstance(shape, list) for shape in enumerated):
        return Port.enumerated(name, dtype, enumerated, default)
    ranges = _list(row.get("shapeRange"))
    if ranges and all(isinstance(pair, list) and len(pair) == 2 for pair in ranges):
        return Port.ranged(name, dtype, [(pair[0], pair[1]) for pair in ranges], default)
    return Port(name, tuple(default), dtype)


def _list(text: Any) -> list[Any]:
    """A list of numbers, or of lists of numbers, written as a string; empty for anything else."""
    try:
        found = json.loads(text) if isinstance(text, str) and len(text) < 100_000 else text
    except (ValueError, RecursionError):
        return []
    flat = (
        [item for part in found for item in (part if isinstance(part, list) else [part])]
        if isinstance(found, list)
        else []
    )
    return found if flat and all(isinstance(item, int) and not isinstance(item, bool) for item in flat) else []


def _told(row: Mapping[str, Any]) -> dict[str, Any]:
    histogram = _mapping(row.get("mlProgramOperationTypeHistogram"))
    opsets = sorted({str(name).partition(".")[0] for name in histogram if "." in str(name)})
    return {"opset": opsets, "precision": [str(row.get("computePrecision", "unknown"))], "compression": {}}


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _number(value: Any) -> int:
    return value if isinstance(value, int) else int(value) if isinstance(value, str) and value.isdigit() else 0
