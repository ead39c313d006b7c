"""`torch.export`: exported programs."""

from __future__ import annotations

from dataclasses import dataclass, replace

from auditor.frameworks import dynamic_shapes
from auditor.frameworks.forward_inputs import bind_inputs, forward_of
from auditor.frameworks.saved_programs import keep, kept
from auditor.graph_facts.declaration import WRITTEN
from auditor.interpreter import Interpreter
from auditor.objects.inheritance import OBJECT
from auditor.places import Site, here
from auditor.stdlib.copies import copied
from auditor.values import (
    MAX_OPTIONS,
    NONE,
    Args,
    Function,
    Instance,
    Mapping,
    Native,
    NativeClass,
    Union,
    Unknown,
    Value,
    is_none,
    text_of,
)


@dataclass(frozen=True, slots=True, eq=False)
class Program:
    """An exported program: the module, its example inputs by forward parameter, and their dynamic dimensions.

    `dynamic` is None when no dynamic shapes were given, an `Unknown` when they are not known. `sets` holds each set of
    example inputs, with what follows unknown, when they are one of several; `inputs` has what these share.
    """

    module: Value
    inputs: tuple[tuple[str, Value], ...]
    dynamic: Value | None
    more: Unknown | None
    site: Site | None
    sets: tuple[tuple[tuple[tuple[str, Value], ...], Unknown | None], ...] = ()

    def each(self) -> list[Program]:
        """The program for each set of example inputs."""
        return [replace(self, inputs=inputs, more=more, sets=()) for inputs, more in self.sets] or [self]


def _export(it: Interpreter, args: Args, site: Site | None) -> Value:
    module = args.get(0, "mod", "model", "f") or NONE
    return it.each(module, lambda m: _export_one(it, m, args, site))


def _export_one(it: Interpreter, module: Value, args: Args, site: Site | None) -> Value:
    positional = args.get(1, "args")
    keywords = args.get(2, "kwargs")
    dynamic = args.get(3, "dynamic_shapes")
    return export_program(it, module, positional, keywords, dynamic, args.more, site)


def export_program(
    it: Interpreter,
    module: Value,
    positional: Value | None,
    keywords: Value | None,
    dynamic: Value | None,
    unknown: Unknown | None,
    site: Site | None,
) -> Value:
    """The exported program of a module on example inputs."""
    if is_none(dynamic):
        dynamic = None
    if dynamic is None and unknown is not None:
        dynamic = unknown
    inputs, more = bind_inputs(it, module, positional, keywords, site)
    if dynamic is not None and forward_of(it, module, site) is None:
        inputs = _named_by(dynamic, inputs)
    sets = [bind_inputs(it, module, p, k, site) for p in _options(positional) for k in _options(keywords)]
    it.captured += 1
    traced = copied(module, deep=True)  # what the script does to the module from now on is not in the program
    program = Program(traced, tuple(inputs), dynamic, more or unknown, site)
    if more is not None and 1 < len(sets) <= MAX_OPTIONS:
        program = replace(program, sets=tuple((tuple(one), rest or unknown) for one, rest in sets))
    return Instance(EXPORTED, {}, program, places=here(site))


def _named_by(dynamic: Value, inputs: list[tuple[str, Value]]) -> list[tuple[str, Value]]:
    """The inputs of a module that nobody can read: `dynamic_shapes` has each of its parameters as a key."""
    if not isinstance(dynamic, Mapping) or dynamic.rest is not None:
        return inputs
    keys = [text_of(key) for key, _ in dynamic.entries.values()]
    names = [key for key in keys if key is not None]
    if len(names) != len(inputs) or len(keys) != len(names):
        return inputs
    return [(name if given.startswith("arg") else given, v) for name, (given, v) in zip(names, inputs, strict=True)]


def _options(given: Value | None) -> tuple[Value | None, ...]:
    return given.options if isinstance(given, Union) else (given,)


def _decomposed(it: Interpreter, args: Args, site: Site | None) -> Value:
    """`program.run_decompositions(table)`: what a function of the script's own makes of an operator is not followed."""
    program, table = args.pos[0], args.get(1, "decomp_table")
    made = table.values() if isinstance(table, Mapping) else []
    made += list(table.assigned.values()) if isinstance(table, Unknown) else []
    own = next((v for v in made if isinstance(v, Function)), None)
    if own is not None and isinstance(program, Instance):
        places = here(site)
        it.heap.touch(program)
        program.taint = program.taint or Unknown(f"`{own.name}` says what becomes of an operator", places=places)
    return program


def _module(it: Interpreter, args: Args, site: Site | None) -> Value:
    obj = args.pos[0]
    if not (isinstance(obj, Instance) and isinstance(obj.payload, Program)):
        return NONE
    return obj.taint or obj.payload.module


def _getattr(it: Interpreter, args: Args, site: Site | None) -> Value:
    name = text_of(args.pos[1]) or ""
    if name == "graph_signature":
        return Instance(SIGNATURE, places=here(site))
    return Unknown(f"`{name}` of an exported program", f"ExportedProgram.{name}", places=here(site))


def _of_signature(it: Interpreter, args: Args, site: Site | None) -> Value:
    """A part of a signature. Names of what is mutated are those of the tensors that `forward` writes."""
    name = text_of(args.pos[1]) or ""
    what = Unknown(f"`{name}` of a program's signature", f"graph_signature.{name}", places=here(site))
    what.name = WRITTEN if name in ("buffers_to_mutate", "user_inputs_to_mutate") else what.name
    return Mapping({}, what) if what.name == WRITTEN else what


SIGNATURE = NativeClass("torch.export.ExportGraphSignature", {"__getattr__": _of_signature}, (OBJECT,))
EXPORTED = NativeClass(
    "torch.export.ExportedProgram",
    {"run_decompositions": _decomposed, "module": _module, "__getattr__": _getattr},
    (OBJECT,),
)


def _save(it: Interpreter, args: Args, site: Site | None) -> Value:
    """`torch.export.save(program, file)`: a later phase of the same script may load it."""
    program, file = args.get(0, "ep"), args.get(1, "f")
    if file is not None and isinstance(program, Instance) and isinstance(program.payload, Program):
        keep(it, file, program)
    return NONE


def _load(it: Interpreter, args: Args, site: Site | None) -> Value:
    what = Unknown("a program that is read from a file", "torch.export.load()", places=here(site))
    return kept(it, args.get(0, "f"), what)


NATIVES: dict[str, Value] = {
    **dynamic_shapes.NATIVES,
    "torch.export.export": Native("torch.export.export", _export),
    "torch.export.export_for_training": Native("torch.export.export", _export),
    "torch.export.draft_export": Native("torch.export.export", _export),
    "torch.export._trace._export": Native("torch.export.export", _export),
    "torch._export.export": Native("torch.export.export", _export),
    "torch.export.ExportedProgram": EXPORTED,
    "torch.export.save": Native("torch.export.save", _save),
    "torch.export.load": Native("torch.export.load", _load),
}
