"""Stand-ins for `torch.export`, `torch.jit`, coreai_torch and coremltools: they record what they are told."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tests.auditor.generator.recorder import RECORDER, Recorded
from tests.auditor.generator.tensors import Tensor

# -- torch ------------------------------------------------------------------------------------------------------


@dataclass
class Dim:
    name: str
    min: int = 1
    max: int = 1 << 20


@dataclass
class Program:
    module: Any
    inputs: dict[str, Tensor]
    dynamic: Any

    def run_decompositions(self, *_: Any) -> Program:
        return self


def parameters(module: Any) -> list[str]:
    code = type(module).forward.__code__
    return list(code.co_varnames[1 : code.co_argcount])


def export(module: Any, args: Any = (), kwargs: Any = None, *, dynamic_shapes: Any = None, strict: bool = True) -> Any:
    inputs = dict(zip(parameters(module), args or (), strict=False)) | dict(kwargs or {})
    return Program(module, inputs, dynamic_shapes)


@dataclass
class Traced:
    module: Any
    examples: list[Tensor]


def trace(module: Any, examples: Any, **_: Any) -> Traced:
    return Traced(module, list(examples) if isinstance(examples, (tuple, list)) else [examples])


# -- coreai_torch -----------------------------------------------------------------------------------------------


class TorchConverter:
    def add_exported_program(
        self, program: Program, input_names: Any = (), output_names: Any = (), state_names: Any = (), **_: Any
    ) -> TorchConverter:
        dynamic = program.dynamic or {}
        inputs, fixed = {}, {}
        for n, (name, value) in enumerate(program.inputs.items()):
            entry = dynamic[n] if isinstance(dynamic, (tuple, list)) else dynamic.get(name)
            axes = {a: d.name for a, d in (entry or {}).items() if isinstance(d, Dim)}
            inputs[name], fixed[name] = (value, axes), value.now
        states = list(state_names or ())
        RECORDER.exports.append(Recorded(program.module, inputs, fixed, states, list(output_names), False))
        return self

    def to_coreai(self) -> TorchConverter:
        return self

    def save_asset(self, path: Any) -> None:
        return None


# -- coremltools ------------------------------------------------------------------------------------------------


@dataclass(eq=False)
class RangeDim:
    lower_bound: int = 1
    upper_bound: int = -1
    default: int | None = None
    symbol: str | None = None


@dataclass
class EnumeratedShapes:
    shapes: Any
    default: Any = None


@dataclass
class TensorType:
    name: str | None = None
    shape: Any = None
    dtype: Any = None


@dataclass
class StateType:
    wrapped_type: TensorType
    name: str | None = None


@dataclass
class Model:
    saved: list[str] = field(default_factory=list)

    def save(self, path: Any) -> None:
        self.saved.append(str(path))


def convert(model: Traced, inputs: Any = (), outputs: Any = (), states: Any = (), **_: Any) -> Model:
    declared, fixed = {}, {}
    for parameter, given, example in zip(parameters(model.module), inputs, model.examples, strict=False):
        shape = given.shape.shapes if isinstance(given.shape, EnumeratedShapes) else given.shape
        axes, static = {}, []
        if isinstance(given.shape, EnumeratedShapes):
            axes, static = {n: f"enumerated{n}" for n in range(len(shape[0])) if len({s[n] for s in shape}) > 1}, []
        else:
            for n, d in enumerate(shape):
                ranged = isinstance(d, RangeDim) and d.lower_bound != d.upper_bound
                if ranged:
                    axes[n] = f"range{id(d)}"
                static.append(1 if ranged else d.lower_bound if isinstance(d, RangeDim) else int(d))
        declared[parameter], fixed[parameter] = (example, axes), tuple(static)
    names = [s.name for s in states or ()]
    RECORDER.exports.append(Recorded(model.module, declared, fixed, names, [o.name for o in outputs or ()], True))
    return Model()
