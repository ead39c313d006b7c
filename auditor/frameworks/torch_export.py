"""`torch.export`: dimensions, dynamic shapes, exported programs."""

from __future__ import annotations

from dataclasses import dataclass, replace

import libcst as cst

from auditor import operators
from auditor.answers import common
from auditor.containers.iteration import iterate
from auditor.expressions.text import format_value
from auditor.interpreter import Interpreter, RaiseSignal
from auditor.joins import options_present
from auditor.objects.inheritance import OBJECT
from auditor.places import Site, here
from auditor.stdlib.copies import copied
from auditor.values import (
    MAX_OPTIONS,
    NONE,
    Args,
    Bound,
    Const,
    ExternalObject,
    Function,
    Instance,
    Mapping,
    Native,
    NativeClass,
    Num,
    Seq,
    Union,
    Unknown,
    Value,
    is_given,
    is_none,
    merge_flags,
    text_of,
)


def _dim(it: Interpreter, args: Args, site: Site | None) -> Value:
    given = args.pos[1:]
    attrs = dict(zip(("name", "min", "max"), given, strict=False)) | args.kw
    return Instance(DIM, attrs, places=here(site), flags=merge_flags(args.all()))


def _derived(it: Interpreter, args: Args, site: Site | None) -> Value:
    obj = args.pos[0]
    return obj if isinstance(obj, Instance) else NONE


DIM = NativeClass(
    "torch.export.Dim",
    {
        "__new__": _dim,
        **dict.fromkeys(("__mul__", "__rmul__", "__add__", "__radd__", "__sub__", "__truediv__"), _derived),
    },
    (OBJECT,),
)
_HINT = Instance(DIM, {"name": Const("AUTO")})
DIM.attributes.update({"AUTO": _HINT, "DYNAMIC": _HINT, "STATIC": NONE})


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
    sets = [bind_inputs(it, module, p, k, site) for p in _options(positional) for k in _options(keywords)]
    it.captured += 1
    traced = copied(module, deep=True)  # what the script does to the module from now on is not in the program
    program = Program(traced, tuple(inputs), dynamic, more or unknown, site)
    if more is not None and 1 < len(sets) <= MAX_OPTIONS:
        program = replace(program, sets=tuple((tuple(one), rest or unknown) for one, rest in sets))
    return Instance(EXPORTED, {}, program, places=here(site))


def _options(given: Value | None) -> tuple[Value | None, ...]:
    return given.options if isinstance(given, Union) else (given,)


def forward_of(it: Interpreter, module: Value, site: Site | None) -> Function | None:
    """The `forward` of a module, when it is a function of the sources."""
    if not isinstance(module, Instance):
        return None
    try:
        found = it.get(module, "forward", site)
    except RaiseSignal:
        return None
    while isinstance(found, Bound):
        found = found.function
    return found if isinstance(found, Function) else None


def parameter_names(function: Function | None) -> list[str]:
    if function is None:
        return []
    p = function.node.params
    names = [x.name.value for x in (*p.posonly_params, *p.params, *p.kwonly_params)]
    return names[1:] if function.owner is not None and names else names


def called(function: Function | None, name: str) -> str:
    """What a reader calls an input: one of `*past` is `past_0`, `past_1`, ... by its place among them."""
    rest = function.node.params.star_arg if function is not None else None
    if not isinstance(rest, cst.Param) or not name.startswith("arg") or not name[3:].isdigit():
        return name
    return f"{rest.name.value}_{int(name[3:]) - len(parameter_names(function))}"


def bind_inputs(
    it: Interpreter, module: Value, positional: Value | None, keywords: Value | None, site: Site | None
) -> tuple[list[tuple[str, Value]], Unknown | None]:
    """(inputs by forward parameter, unknown further inputs)."""
    names = parameter_names(forward_of(it, module, site))
    out: list[tuple[str, Value]] = []
    more: Unknown | None = None
    if is_given(positional) and site is not None:
        source = iterate(it, positional, site)
        more = source.rest
        for n, v in enumerate(source.items):
            out.append((names[n] if n < len(names) else f"arg{n}", v))
    if isinstance(keywords, Union):
        given = [o for o in keywords.options if not is_none(o)]
        keywords = given[0] if len(given) == 1 else Unknown("one of several sets of inputs", places=keywords.places)
    if isinstance(keywords, Mapping):
        for key, v in keywords.entries.values():
            out.append((text_of(key) or "*", v))
        more = more or keywords.rest
    elif is_given(keywords):
        more = more or operators.unknown_from("the example inputs are not known", "dict", keywords)
    return out, more


def _same(it: Interpreter, args: Args, site: Site | None) -> Value:
    return args.pos[0]


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
    return Unknown(f"`{name}` of an exported program", f"ExportedProgram.{name}", places=here(site))


EXPORTED = NativeClass(
    "torch.export.ExportedProgram",
    {"run_decompositions": _decomposed, "module": _module, "__getattr__": _getattr},
    (OBJECT,),
)


def dynamic_entry(program: Program, name: str, position: int) -> Value | None:
    """The dynamic-shapes entry of one input: None when there is none (a static input)."""
    dynamic = program.dynamic
    if isinstance(dynamic, Union):
        dynamic = Unknown("the dynamic shapes are one of several", places=dynamic.places, flags=dynamic.flags)
    match dynamic:
        case None:
            return None
        case Mapping():
            found = dynamic.get(name)
            if found is not None:
                return found
            nested = dynamic.get("args") or dynamic.get("kwargs")
            if isinstance(nested, Mapping):
                return nested.get(name)
            return dynamic.rest
        case Seq(exact=True):
            return dynamic.items[position] if position < len(dynamic.items) else None
        case Seq() | Unknown() | ExternalObject() | Instance():
            return operators.unknown_from("the dynamic shapes are not known", "", dynamic)
    return None


def dynamic_dims(entry: Value | None) -> dict[int, Value] | None:
    """Axis -> dimension of one entry: {} when static, None when it is not known which axes are dynamic."""
    match entry:
        case None | Const(value=None):
            return {}
        case Mapping(rest=None):
            out: dict[int, Value] = {}
            for key, v in entry.entries.values():
                if not isinstance(key, Const) or not isinstance(key.value, int):
                    return None
                out[key.value] = v
            return _dynamic_of(out)
        case Seq(exact=True):
            return _dynamic_of(dict(enumerate(entry.items)))
    return None


def _dynamic_of(axes: dict[int, Value]) -> dict[int, Value] | None:
    """The axes that are dynamic; None when that is not known of one."""
    told = {n: _is_dynamic(v) for n, v in axes.items()}
    return None if None in told.values() else {n: v for n, v in axes.items() if told[n]}


def _is_dynamic(v: Value) -> bool | None:
    match v:
        case Const(value=None | int()):
            return False
        case Union(options=options):
            return common([_is_dynamic(o) for o in options])
        case Unknown() | Num():
            return None
        case Instance(attrs={"max": most}):
            return _leaves_room(most)
    return True


def _leaves_room(most: Value) -> bool | None:
    """Whether a dimension of at most `most` can be more than 1: what a checkpoint or an option says is taken to be."""
    match most:
        case Const(value=1):
            return False
        case Union():
            return common([_leaves_room(o) for o in options_present(most)])
        case Unknown(kind=kind) if kind != "data":
            return None
    return True


def _save(it: Interpreter, args: Args, site: Site | None) -> Value:
    """`torch.export.save(program, file)`: a later phase of the same script may load it."""
    program, file = args.get(0, "ep"), args.get(1, "f")
    if file is not None and isinstance(program, Instance) and isinstance(program.payload, Program):
        keep(it, file, program)
    return NONE


def _load(it: Interpreter, args: Args, site: Site | None) -> Value:
    what = Unknown("a program that is read from a file", "torch.export.load()", places=here(site))
    return kept(it, args.get(0, "f"), what)


def keep(it: Interpreter, file: Value, program: Instance) -> None:
    """A program or a traced module is saved. Of two under a name with unknown parts, nobody knows which is which."""
    name = _file(it, file)
    old = it.loader.programs.get(name, program)
    lost = Unknown(f"one of several programs saved as `{name[1]}`", places=file.places)
    it.loader.programs[name] = program if old is program or "*" not in name[1] else lost


def kept(it: Interpreter, file: Value | None, what: Unknown) -> Value:
    """What the script has saved under a name; `what` when it was not this script."""
    return it.loader.programs.get(_file(it, file), what) if file is not None else what


def _file(it: Interpreter, file: Value) -> tuple[str, str]:
    script = it.stack[0].path if it.stack else ""
    return script, format_value(file, "", None)


def _dims(it: Interpreter, args: Args, site: Site | None) -> Value:
    return Seq("tuple", [_dim(it, Args([DIM, a], args.kw), site) for a in args.pos])


NATIVES: dict[str, Value] = {
    "torch.export.Dim": DIM,
    "torch.export.dynamic_shapes.Dim": DIM,
    "torch.export.dims": Native("dims", _dims),
    "torch.export.export": Native("torch.export.export", _export),
    "torch.export.export_for_training": Native("torch.export.export", _export),
    "torch.export.draft_export": Native("torch.export.export", _export),
    "torch.export._trace._export": Native("torch.export.export", _export),
    "torch._export.export": Native("torch.export.export", _export),
    "torch.export.ExportedProgram": EXPORTED,
    "torch.export.save": Native("torch.export.save", _save),
    "torch.export.load": Native("torch.export.load", _load),
}
