"""Recording stand-ins for torch, coreai_torch, coremltools and numpy: enough to run a generated script to its export.

Lengths and tensors are in `lengths` and `tensors`, what scripts call in `layers` and `exporters`, what they exported in
`recorder`. Here they are put in the libraries' place while a script runs.
"""

from __future__ import annotations

import io
import sys
import types
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from typing import Any

from tests.auditor.generator.exporters import (
    Dim,
    EnumeratedShapes,
    RangeDim,
    StateType,
    TensorType,
    TorchConverter,
    convert,
    export,
    trace,
)
from tests.auditor.generator.layers import (
    Embedding,
    LayerNorm,
    Linear,
    Module,
    ModuleList,
    Sequential,
    attention,
    cat,
    stack,
)
from tests.auditor.generator.recorder import RECORDER, Recorded
from tests.auditor.generator.tensors import Tensor, constant


def _made(module_name: str, **names: Any) -> types.ModuleType:
    made = types.ModuleType(module_name)
    vars(made).update(names)
    return made


@contextmanager
def no_grad() -> Iterator[None]:
    yield


def modules() -> dict[str, types.ModuleType]:
    """The stand-ins by the names under which scripts import them."""

    def zeros(*sizes: Any, dtype: str = "float32") -> Tensor:
        return constant(sizes[0] if len(sizes) == 1 and isinstance(sizes[0], (tuple, list)) else sizes, dtype)

    def arange(stop: int, dtype: str = "int64") -> Tensor:
        return constant((stop,), dtype)

    types_ = {t: t for t in ("int32", "int64", "float16", "float32", "bool")}
    functional = _made("torch.nn.functional", scaled_dot_product_attention=attention)
    nn = _made(
        "torch.nn",
        Module=Module,
        Linear=Linear,
        Embedding=Embedding,
        LayerNorm=LayerNorm,
        ModuleList=ModuleList,
        Sequential=Sequential,
        functional=functional,
    )
    exporting = _made("torch.export", export=export, Dim=Dim)
    jit = _made("torch.jit", trace=trace)
    torch = _made("torch", nn=nn, export=exporting, jit=jit, Tensor=Tensor, **types_)
    vars(torch).update(zeros=zeros, ones=zeros, randn=zeros, arange=arange, cat=cat, stack=stack, no_grad=no_grad)
    vars(torch).update(
        argmax=lambda t, dim=-1: t.argmax(dim), tensor=lambda data, dtype="int64": constant((len(data),), dtype)
    )
    vars(torch).update(index_select=lambda t, dim, index: t.index_select(dim, index))
    coreml = _made(
        "coremltools",
        convert=convert,
        RangeDim=RangeDim,
        EnumeratedShapes=EnumeratedShapes,
        TensorType=TensorType,
        StateType=StateType,
        target=types.SimpleNamespace(iOS18="iOS18"),
        precision=types.SimpleNamespace(FLOAT16="fp16"),
    )
    return {
        "torch": torch,
        "torch.nn": nn,
        "torch.nn.functional": functional,
        "torch.export": exporting,
        "torch.jit": jit,
        "coreai_torch": _made("coreai_torch", TorchConverter=TorchConverter),
        "coremltools": coreml,
        "numpy": _made("numpy", **types_),
    }


STAND_INS = modules()


def run(script: str) -> list[Recorded]:
    """Execute the script in this process, with the stand-ins in place of the libraries: what it exported."""
    saved = {n: sys.modules.get(n) for n in STAND_INS}
    arguments = sys.argv
    RECORDER.__init__()  # type: ignore[misc]
    sys.modules.update(STAND_INS)
    sys.argv = ["export.py"]
    try:
        module = types.ModuleType("__main__")
        before, sys.modules["__main__"] = sys.modules["__main__"], module
        try:
            with redirect_stdout(io.StringIO()):
                exec(compile(script, "export.py", "exec"), module.__dict__)
        finally:
            sys.modules["__main__"] = before
    finally:
        sys.argv = arguments
        for name, old in saved.items():
            if old is None:
                sys.modules.pop(name, None)
            else:
                sys.modules[name] = old
    return RECORDER.exports
