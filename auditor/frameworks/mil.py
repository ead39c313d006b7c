"""Core ML programs written op by op (`@mb.program`): inputs and states by their specifications.

What such a program computes is not followed, so that its logits stay unknown.
"""

from __future__ import annotations

from dataclasses import dataclass

from auditor.containers.iteration import iterate
from auditor.frameworks.forward_inputs import parameter_names
from auditor.frameworks.records import record
from auditor.graph_facts.declaration import Declared
from auditor.interpreter import Interpreter
from auditor.objects.inheritance import OBJECT
from auditor.places import Site, here
from auditor.torch.tensors import size
from auditor.values import NONE, Args, Function, Instance, Native, NativeClass, Seq, Tensor, Unknown, Value


@dataclass(frozen=True, slots=True)
class Specified:
    """The parameters of a program, and their specifications in the same order."""

    names: tuple[str, ...]
    specs: Seq


def _forward(it: Interpreter, args: Args, site: Site | None) -> Value:
    places = args.pos[0].places or here(site)
    return Unknown("what a program computes that is written op by op is not followed", "mb.program", places=places)


PROGRAM = NativeClass("coremltools.Program", {"forward": _forward}, (OBJECT,))
TENSOR = record("coremltools.TensorSpec", "shape", "dtype")
STATE = record("coremltools.StateTensorSpec", "shape", "dtype")


def _program(it: Interpreter, args: Args, site: Site | None) -> Value:
    """`mb.program(input_specs=[...])`, a decorator."""
    given = args.get(0, "input_specs") or NONE

    def decorate(it: Interpreter, inner: Args, where: Site | None) -> Value:
        function = inner.get(0, "main_block")
        names = tuple(parameter_names(function)) if isinstance(function, Function) else ()
        places = here(site)
        specs = iterate(it, given, site) if site is not None else Seq("list", [], Unknown("unread specifications"))
        return Instance(PROGRAM, payload=Specified(names, specs), places=places)

    return Native("mb.program", decorate)


def specified(it: Interpreter, program: Instance, site: Site) -> tuple[list[Declared], tuple[str, ...], Unknown | None]:
    """(inputs, names of the states, further inputs that are not known) of a program."""
    found = program.payload
    assert isinstance(found, Specified)
    inputs: list[Declared] = []
    states: list[str] = []
    for n, spec in enumerate(found.specs.items):
        name = found.names[n] if n < len(found.names) else f"arg{n}"
        if isinstance(spec, Instance) and spec.cls is STATE:
            states.append(name)
        else:
            inputs.append(Declared(name, _tensor(it, spec, site), {}, spec, name))
    return inputs, tuple(states), found.specs.rest


def _tensor(it: Interpreter, spec: Value, site: Site) -> Value:
    shape = spec.attrs.get("shape") if isinstance(spec, Instance) and spec.cls is TENSOR else None
    source = iterate(it, shape, site) if shape is not None else None
    sizes = [size(d) for d in source.items] if source is not None and source.exact else [None]
    known = [d for d in sizes if d is not None]
    if len(known) != len(sizes):
        return Tensor(None, reason=Unknown("a specification with a dimension that is not known", places=spec.places))
    assert isinstance(spec, Instance)
    dtype = getattr(spec.attrs.get("dtype"), "dotted", "") or "float32"
    return Tensor(tuple(known), dtype.rsplit(".", 1)[-1], places=spec.places)


def _stablehlo(it: Interpreter, args: Args, site: Site | None) -> Value:
    what = "the program comes from StableHLO, and what its JAX function computes is not followed"
    return Unknown(what, "stablehlo_coreml.convert()", places=here(site))


_BUILDERS = ("coremltools.converters.mil.Builder", "coremltools.converters.mil.mil.Builder")

NATIVES: dict[str, Value] = {
    "stablehlo_coreml.convert": Native("stablehlo_coreml.convert", _stablehlo),
    "stablehlo_coreml.converter.convert": Native("stablehlo_coreml.convert", _stablehlo),
} | {
    name: value
    for builder in _BUILDERS
    for name, value in (
        (f"{builder}.program", Native("mb.program", _program)),
        (f"{builder}.TensorSpec", TENSOR),
        (f"{builder}.StateTensorSpec", STATE),
    )
}
