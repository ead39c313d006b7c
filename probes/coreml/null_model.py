"""A package with the ports of a function and nothing behind them, to time what a call costs by itself."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

from probes.ports import ports
from probes.signature import DYNAMIC, Port, Signature


def build(signature: Signature, path: Path) -> Path:
    """Write the package for `signature`: outputs of its shapes, filled with zeros; no states. Needs coremltools."""
    import coremltools as ct
    from coremltools.converters.mil import Builder as mb
    from coremltools.converters.mil.mil import Function, Program, get_new_symbol, types

    kinds = {"float16": types.fp16, "float32": types.fp32, "int32": types.int32}
    query = ports(signature).query
    symbols = {
        port.name: [get_new_symbol() if dim == DYNAMIC else dim for dim in port.shape] for port in signature.inputs
    }
    placeholders = {
        port.name: mb.placeholder(tuple(symbols[port.name]), kinds[port.dtype]) for port in signature.inputs
    }
    with Function(placeholders, opset_version=ct.target.iOS18) as function:
        shape = mb.shape(x=function.inputs[query.name]) if query is not None else None
        axis = len(query.shape) - 1 if query is not None else 0
        outputs = []
        for port in signature.outputs:
            parts = [
                mb.slice_by_index(x=shape, begin=[axis], end=[axis + 1])
                if dim == DYNAMIC and shape is not None
                else [dim]
                for dim in port.shape
            ]
            filled = mb.fill(shape=mb.concat(values=parts, axis=0), value=0.0)
            outputs.append(mb.cast(x=filled, dtype=_word(port.dtype), name=port.name))
        function.set_outputs(outputs)
    program = Program()
    program.add_function("main", function)
    function.set_input_types(tuple(_input_type(ct, port) for port in signature.inputs))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = ct.convert(
            program,
            convert_to="mlprogram",
            minimum_deployment_target=ct.target.iOS18,
            compute_precision=ct.precision.FLOAT32,
            skip_model_load=True,
        )
    model.save(str(path))
    return path


def _word(dtype: str) -> str:
    return {"float16": "fp16", "float32": "fp32"}.get(dtype, dtype)


def _input_type(ct: Any, port: Port) -> Any:
    import numpy as np

    if port.shapes:
        shape = ct.EnumeratedShapes([list(one) for one in port.shapes])
    else:
        shape = ct.Shape([_dimension(ct, port, axis) for axis in range(len(port.shape))])
    return ct.TensorType(port.name, shape, dtype=np.dtype(port.dtype).type)


def _dimension(ct: Any, port: Port, axis: int) -> Any:
    if port.shape[axis] != DYNAMIC:
        return port.shape[axis]
    low, high = port.bounds[axis] if port.bounds else (1, 2048)
    return ct.RangeDim(low, high if high > 0 else 2048, default=port.default[axis] if port.default else low)
