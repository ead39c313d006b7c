"""A `Model` protobuf as a `Model` of ours: descriptions, functions, operations."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any

from probes.coreml.package import PackageError
from probes.coreml.program import Function, Model, Operation, with_program
from probes.coreml.proto import model_class
from probes.coreml.weights import blobs
from probes.signature import DYNAMIC, Port, Signature

ARRAY_TYPES = {65552: "float16", 65568: "float32", 65600: "float64", 131104: "int32", 131080: "int8"}
"""`ArrayFeatureType.ArrayDataType`, which carries the width in its low bits."""
_PROVENANCE = "com.github.apple.coremltools."


def parse(data: bytes, shown: str) -> Any:
    """The protobuf in `data`; PackageError when it is none, or nothing that describes a model."""
    model = model_class()()
    try:
        model.ParseFromString(data)
    except MemoryError:
        raise PackageError(f"{shown}: needs more memory than a model's description should; not a sound file") from None
    except Exception as error:
        raise PackageError(
            f"{shown}: not a Core ML model ({type(error).__name__}: damaged, cut short, too deeply nested, or "
            "many times larger in memory); export or download it again"
        ) from None
    if not model.specificationVersion or model.WhichOneof("Type") is None:
        raise PackageError(f"{shown}: a protobuf that describes no model; export or download it again")
    return model


def read(data: bytes, shown: str) -> Model:
    """The model that the bytes describe."""
    spec = parse(data, shown)
    kind = str(spec.WhichOneof("Type"))
    described = tuple(_signatures(spec.description))
    functions = {}
    if kind == "mlProgram":
        functions = {name: _function(name, body) for name, body in sorted(spec.mlProgram.functions.items())}
        described = tuple(with_program(one, functions[one.name]) if one.name in functions else one for one in described)
    unseen: tuple[str, ...] = () if kind == "mlProgram" else (_said(kind, spec),)
    missing = [one.name for one in described if kind == "mlProgram" and one.name not in functions]
    unseen += tuple(f"the program has no function {name!r}, which the description names" for name in missing)
    return Model(
        kind,
        int(spec.specificationVersion),
        described,
        functions,
        str(spec.description.defaultFunctionName),
        _about(spec, kind, functions),
        unseen,
        blobs=tuple(blobs(spec)) if kind == "mlProgram" else (),
    )


def _signatures(description: Any) -> Iterable[Signature]:
    if description.functions:
        for one in description.functions:
            yield Signature(one.name, _ports(one.input), _ports(one.state), _ports(one.output))
    else:
        yield Signature("main", _ports(description.input), _ports(description.state), _ports(description.output))


def _ports(features: Iterable[Any]) -> tuple[Port, ...]:
    return tuple(_port(feature) for feature in features)


def _port(feature: Any) -> Port:
    kind = feature.type.WhichOneof("Type")
    if kind == "stateType":
        array = feature.type.stateType.arrayType
    elif kind == "multiArrayType":
        array = feature.type.multiArrayType
    else:
        return Port(feature.name, (), kind or "unknown")
    dtype = ARRAY_TYPES.get(int(array.dataType), f"type {int(array.dataType)}")
    default = tuple(int(dim) for dim in array.shape)
    flexible = array.WhichOneof("ShapeFlexibility")
    if flexible == "enumeratedShapes":
        return Port.enumerated(
            feature.name, dtype, [tuple(one.shape) for one in array.enumeratedShapes.shapes], default
        )
    if flexible == "shapeRange":
        bounds = [(int(one.lowerBound), int(one.upperBound)) for one in array.shapeRange.sizeRanges]
        return Port.ranged(feature.name, dtype, bounds, default)
    return Port(feature.name, default, dtype)


def _function(name: str, body: Any) -> Function:
    block = body.block_specializations.get(body.opset)
    inputs: list[Port] = []
    states: list[Port] = []
    for value in body.inputs:
        port = _typed(value)
        (states if value.type.WhichOneof("type") == "stateType" else inputs).append(port)
    operations = tuple(_operations(block)) if block is not None else ()
    results = tuple(block.outputs) if block is not None else ()
    return Function(name, body.opset, tuple(inputs), operations, results, tuple(states))


def _operations(block: Any) -> Iterable[Operation]:
    """The operations of a block and of the blocks inside them; the parser has bounded the depth."""
    for op in block.operations:
        yield Operation(
            op.type,
            {key: tuple(one.name for one in value.arguments if one.name) for key, value in op.inputs.items()},
            tuple(_typed(value) for value in op.outputs),
        )
        for inner in op.blocks:
            yield from _operations(inner)


def _typed(value: Any) -> Port:
    found = value.type
    if found.WhichOneof("type") == "stateType":
        found = found.stateType.wrappedType
    if found.WhichOneof("type") != "tensorType":
        return Port(value.name, (), found.WhichOneof("type") or "unknown")
    tensor = found.tensorType
    dims = tuple(
        int(dim.constant.size) if dim.WhichOneof("dimension") == "constant" else DYNAMIC for dim in tensor.dimensions
    )
    return Port(value.name, dims, _tensor_types().get(int(tensor.dataType), f"type {int(tensor.dataType)}"))


@cache
def _tensor_types() -> dict[int, str]:
    """The names of `MILSpec.DataType`, in lower case."""
    found = model_class().DESCRIPTOR.file.pool.FindEnumTypeByName("CoreML.Specification.MILSpec.DataType")
    return {value.number: value.name.lower() for value in found.values}


def _about(spec: Any, kind: str, functions: dict[str, Function]) -> dict[str, Any]:
    told = spec.description.metadata
    about: dict[str, Any] = {"kind": kind, "specification_version": int(spec.specificationVersion)}
    if functions:
        about |= program_facts(functions.values())
    about["default_function"] = str(spec.description.defaultFunctionName) or None
    about["provenance"] = {
        key.removeprefix(_PROVENANCE): value for key, value in sorted(told.userDefined.items()) if len(value) < 200
    }
    for key in ("author", "license", "versionString", "shortDescription"):
        if getattr(told, key):
            about["provenance"][key] = str(getattr(told, key))[:200]
    return about


def program_facts(functions: Iterable[Function]) -> dict[str, Any]:
    """Opsets, types and compression of all functions together."""
    found = list(functions)
    compressed: dict[str, int] = {}
    for function in found:
        for name, count in function.compressed().items():
            compressed[name] = compressed.get(name, 0) + count
    return {
        "opset": sorted({function.opset for function in found}),
        "precision": sorted({name for function in found for name in function.float_types()}),
        "compression": dict(sorted(compressed.items())),
        "operations": sum(op.kind != "const" for function in found for op in function.operations),
    }


def _said(kind: str, spec: Any) -> str:
    """What a model is that is no ML Program."""
    parts = {
        "pipeline": "pipeline",
        "pipelineClassifier": "pipelineClassifier",
        "pipelineRegressor": "pipelineRegressor",
    }
    if kind in parts:
        holder = spec.pipeline if kind == "pipeline" else getattr(spec, kind).pipeline
        kinds = [str(model.WhichOneof("Type")) for model in holder.models]
        names = list(holder.names) or [f"part {index}" for index in range(len(kinds))]
        listed = ", ".join(f"{name} ({one})" for name, one in zip(names, kinds, strict=False)) or "nothing"
        return f"the model is a {kind} of {len(kinds)} models, judged by its outer ports alone: {listed}"
    if kind.startswith("neuralNetwork"):
        return f"the model is a {kind}, not an ML Program: it cannot have states, and its layers were not looked at"
    return f"the model is a {kind}, not an ML Program: only its ports were looked at"
