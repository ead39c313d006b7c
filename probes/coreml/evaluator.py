"""A function of an ML Program, evaluated with numpy: each operation by coremltools' own inference of constant values.

Floats are float32 throughout, whatever the program declares: this is what the program says, not what a device makes of
it. States are kept at their declared type, as every runtime does. Values are dropped after their last use.

`Operation.value_inference` is not public, so the versions of coremltools are bounded by this project's requirements.
"""

from __future__ import annotations

import copy
import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
from coremltools.converters.mil.mil import Operation, Var, types

from probes.backend import BackendError
from probes.coreml.operations import BY_HAND

_NUMPY_NUMBER = re.compile(r"np\.\w+\((-?[\w.]+)\)")
READ, UPDATE = "read_state", "coreml_update_state"


class EvaluationError(ValueError):
    """An operation refused its inputs; the message names it with their shapes."""


@dataclass(frozen=True, slots=True)
class _Step:
    """One operation. `constant` and `dynamic` say what goes in by parameter; `freed` is not needed after it."""

    kind: str
    operation: Any
    dynamic: Mapping[str, Any]
    results: tuple[str, ...]
    freed: tuple[str, ...]
    infer: Any


class Evaluator:
    """A function ready to be run. `BackendError` names the operations that nothing here can evaluate."""

    def __init__(self, function: Any) -> None:
        self.results = [var.name for var in function.outputs]
        operations = list(function.operations)
        _refuse_unsupported(operations)
        self._constants: dict[str, Any] = {}
        last = _last_uses(operations, self.results)
        self._steps = [
            step for index, op in enumerate(operations) if (step := self._step(op, last.get(index, ()))) is not None
        ]

    def run(self, inputs: Mapping[str, Any], states: dict[str, Any]) -> dict[str, Any]:
        """The results by name. `states` are float32 (or integer) arrays, replaced where the program writes them."""
        values: dict[str, Any] = {name: _value(name, np.asarray(array)) for name, array in inputs.items()}
        for step in self._steps:
            for name, array in zip(step.results, self._evaluate(step, values, states), strict=True):
                values[name] = _value(name, array)
            for name in step.freed:
                values.pop(name, None)
        return {name: np.asarray((values.get(name) or self._constants[name]).val) for name in self.results}

    def _evaluate(self, step: _Step, values: Mapping[str, Any], states: dict[str, Any]) -> Sequence[Any]:
        op = step.operation
        if step.kind == READ:
            return (states[op.input.name],)
        if step.kind == UPDATE:
            name = op.state.name
            value = np.asarray(self._given(step.dynamic["value"], values).val)
            if value.shape != states[name].shape:
                raise EvaluationError(f"state {name} {list(states[name].shape)} is written with {list(value.shape)}")
            states[name] = _rounded(value, op.state.dtype)
            return (states[name],)
        for parameter, names in step.dynamic.items():
            given = (
                [self._given(one, values) for one in names] if isinstance(names, tuple) else self._given(names, values)
            )
            setattr(op, parameter, given)
            op._input_vars[parameter] = given
        try:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                found = step.infer(op)
        except MemoryError:
            raise
        except Exception as error:
            why = _NUMPY_NUMBER.sub(r"\1", str(error))
            raise EvaluationError(f"{step.kind} `{op.name}` of {_shapes(op)}: {why}") from None
        finally:
            for parameter in step.dynamic:
                setattr(op, parameter, None)
                op._input_vars[parameter] = None
        several = (isinstance(found, tuple | list) and len(step.results) != 1) or isinstance(found, tuple)
        found = tuple(found) if several else (found,)
        if any(one is None for one in found):
            raise EvaluationError(f"{step.kind} `{op.name}` of {step.results}: no value came out")
        return [_plain(one) for one in found]

    def _given(self, name: str, values: Mapping[str, Any]) -> Any:
        return values[name] if name in values else self._constants[name]

    def _step(self, op: Any, freed: Sequence[str]) -> _Step | None:
        if op.op_type == "const" or op.op_type.startswith("constexpr_"):
            value = op.outputs[0].val
            value = op.materialized_val_inference() if value is None else value
            self._constants[op.outputs[0].name] = _value(op.outputs[0].name, _plain(value))
            return None
        names = {key: _names(var) for key, var in op.inputs.items() if var is not None}
        if op.op_type == READ:
            return _Step(READ, op, {}, (op.outputs[0].name,), tuple(freed), None)
        if op.op_type == UPDATE:
            return _Step(UPDATE, op, {"value": names["value"]}, (op.outputs[0].name,), tuple(freed), None)
        own = copy.copy(op)
        own._input_vars = dict(op._input_vars)
        dynamic = {}
        for parameter, name in names.items():
            if isinstance(name, str) and name in self._constants:
                setattr(own, parameter, self._constants[name])
                own._input_vars[parameter] = self._constants[name]
            else:
                dynamic[parameter] = name
        infer = BY_HAND.get(op.op_type) or (lambda one: one.value_inference())
        return _Step(op.op_type, own, dynamic, tuple(var.name for var in op.outputs), tuple(freed), infer)


def _names(var: Any) -> str | tuple[str, ...]:
    return tuple(one.name for one in var) if isinstance(var, list | tuple) else str(var.name)


def _listed(names: str | tuple[str, ...]) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else names


def _refuse_unsupported(operations: Sequence[Any]) -> None:
    bad: dict[str, list[str]] = {}
    for op in operations:
        known = op.op_type in BY_HAND or op.op_type in (READ, UPDATE, "const") or op.op_type.startswith("constexpr_")
        if op.blocks or not (known or type(op).value_inference is not Operation.value_inference):
            bad.setdefault(op.op_type, []).append(op.name)
    if bad:
        listed = ", ".join(
            f"{kind} (`{names[0]}`{f' and {len(names) - 1} more' * (len(names) > 1)})" for kind, names in bad.items()
        )
        raise BackendError(
            f"the reference has no evaluator for {listed}: unsupported, which says nothing of the program"
        )


def _last_uses(operations: Sequence[Any], results: Sequence[str]) -> dict[int, list[str]]:
    """The values that each operation is the last to use."""
    last: dict[str, int] = {}
    for index, op in enumerate(operations):
        for var in op.outputs or ():
            last[var.name] = index
        for given in op.inputs.values():
            for name in _listed(_names(given)) if given is not None else ():
                last[name] = index
    found: dict[int, list[str]] = {}
    for name, index in last.items():
        if name not in results:
            found.setdefault(index, []).append(name)
    return found


def _plain(value: Any) -> Any:
    """A value as operations take it: float32 for every float, int32 for long integers, Python's bool for a lone one."""
    if isinstance(value, str | bytes | bool) or not isinstance(value, np.ndarray | np.generic | int | float | list):
        return value
    array = np.asarray(value)
    if array.dtype.kind == "f" and array.dtype != np.float32:
        array = array.astype(np.float32)
    elif array.dtype == np.int64:
        array = array.astype(np.int32)
    if array.ndim:
        return array
    return bool(array) if array.dtype.kind == "b" else array[()]


def _rounded(array: Any, dtype: Any) -> Any:
    """`array` at the precision of a state's type, as float32."""
    declared = types.nptype_from_builtin(dtype)
    rounded = array.astype(declared)
    return rounded.astype(np.float32) if rounded.dtype.kind == "f" else rounded


def _value(name: str, value: Any) -> Any:
    """A variable of coremltools that holds `value` and belongs to no program."""
    found = Var.__new__(Var)
    found.name = name
    found._sym_type = _type(value)
    found._sym_val = SimpleNamespace(val=value)
    found._op = None
    found.op_output_idx = None
    found._child_ops = []
    found.consuming_blocks = []
    found._nonreplaceable_vars_upstream = set()
    found.is_descendant_of_const = False
    return found


def _type(value: Any) -> Any:
    if isinstance(value, np.ndarray) and value.ndim:
        return types.tensor(types.numpy_type_to_builtin_type(value.dtype), value.shape)
    if isinstance(value, str):
        return types.str
    if isinstance(value, bool):
        return types.bool
    return types.numpy_type_to_builtin_type(np.asarray(value).dtype)


def _shapes(op: Any) -> str:
    found = []
    for parameter, given in op.inputs.items():
        for var in given if isinstance(given, list | tuple) else [given]:
            if var is not None and var.rank:
                found.append(f"{parameter} {list(var.shape)}")
    return ", ".join(found) or "no tensors"
