"""coreai-torch: `TorchConverter`, the programs it makes, composite layers and Metal kernels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from auditor import dims
from auditor.containers.iteration import iterate
from auditor.expressions.text import format_value
from auditor.frameworks import gathering
from auditor.frameworks.gathering import gather_matmul
from auditor.frameworks.tables import tables
from auditor.frameworks.torch_export import Program, dynamic_dims, dynamic_entry
from auditor.graph_facts.compute import compute
from auditor.graph_facts.declaration import Declaration, Declared, Dimension, names_given, names_of
from auditor.graph_facts.evidence import why
from auditor.graph_facts.worlds import merged
from auditor.interpreter import Interpreter
from auditor.joins import Absent
from auditor.objects.inheritance import OBJECT
from auditor.operators import truth
from auditor.places import Site
from auditor.roles import is_cache_name, query_rank
from auditor.sinks import Export
from auditor.torch.layers import Forward, Shaper, attribute, layer
from auditor.torch.ops.products import attended
from auditor.torch.rows import blended
from auditor.torch.tensors import as_tensor, result, size, sizes, unknown_tensor
from auditor.values import (
    FALSE,
    NONE,
    Args,
    Class,
    Const,
    ExternalObject,
    Function,
    Instance,
    Mapping,
    Native,
    NativeClass,
    Seq,
    Star,
    Tensor,
    Union,
    Unknown,
    Value,
    text_of,
)
from auditor.values.tags import ONE_ROW
from rules.facts import Fact, GraphFacts, Query


@dataclass(slots=True, eq=False)
class Staged:
    """The exports of one converter or program."""

    exports: list[Export] = field(default_factory=list)

    def changed(self, cause: Unknown) -> None:
        """Code that nobody can read has received what holds these exports, before it was saved."""
        for export in self.exports:
            if not export.bundle:
                reason, places = why(cause, export.site)
                export.facts = replace(export.facts, logits=Fact.unknown(reason, *places))


def _new(it: Interpreter, args: Args, site: Site | None) -> Value:
    return Instance(CONVERTER, payload=Staged(), places=(site,) if site else ())


def _add_exported_program(it: Interpreter, args: Args, site: Site | None) -> Value:
    program = args.get(1, "exported_program") or NONE
    return _stage(it, args, program, site)


def _add_pytorch_module(it: Interpreter, args: Args, site: Site | None) -> Value:
    model, function = args.get(1, "model") or NONE, args.kw.get("export_fn")
    if function is None:
        program: Value = Unknown("the module is exported without an `export_fn`", places=(site,) if site else ())
    else:
        program = it.call(function, Args([model]), site)
    return _stage(it, args, program, site)


def _stage(it: Interpreter, args: Args, program: Value, site: Site | None) -> Value:
    converter = args.pos[0]
    export = exported(it, args, program, site)
    if isinstance(converter, Instance) and isinstance(converter.payload, Staged):
        converter.payload.exports.append(export)
    return converter


def exported(it: Interpreter, args: Args, program: Value, site: Site | None) -> Export:
    """Record one entry point; `args.kw` holds the names that the converter call gives."""
    assert site is not None
    options = program.options if isinstance(program, Union) else (program,)
    declarations = [declare(args, one, site) for option in options for one in _each_set(option)]
    facts = merged([compute(it, d) for d in declarations], site, it.chosen_by)
    name = text_of(args.kw.get("entrypoint_name", Const("main"))) or "*"
    modules = [d.module for d in declarations]
    export = Export(site, tuple(it.stack), name, facts, family_of(modules), it.conditions)
    export.inputs, export.outputs = names_given(declarations)
    export.home = it.choices.home(modules)
    it.sinks.export(export)
    return export


def _each_set(program: Value) -> list[Value]:
    """The program once for each set of example inputs that it may have been exported with."""
    if not isinstance(program, Instance) or not isinstance(program.payload, Program):
        return [program]
    return [
        Instance(program.cls, program.attrs, p, program.taint, places=program.places) for p in program.payload.each()
    ]


def _first_cache(names: Value | None) -> Value | None:
    """The first name of a cache among the input names: its place says where it was declared."""
    items = names.items if isinstance(names, Seq) else []
    flat = [v for i in items for v in (i.items if isinstance(i, Star) else (i,))]
    return next((v for v in flat if is_cache_name(text_of(v) or "")), names)


def family_of(modules: Sequence[Value]) -> str:
    """The name of the model class; empty when it is one of several."""
    names = {m.cls.name if isinstance(m, Instance) and isinstance(m.cls, (Class, NativeClass)) else "" for m in modules}
    return names.pop() if len(names) == 1 else ""


def declare(args: Args, program: Value, site: Site) -> Declaration:
    """The converter call as a declaration."""
    input_names, output_names = names_of(args.kw.get("input_names")), names_of(args.kw.get("output_names"))
    state_source = args.kw.get("state_names")
    state_names = names_of(state_source)
    if args.more is not None and state_source is None:
        state_names = args.more
    if isinstance(program, Instance) and isinstance(program.payload, Program):
        p = program.payload
        converter = args.pos[0] if args.pos else None
        changed = program.taint or (converter.taint if isinstance(converter, Instance) else None)
        inputs, module, more = tuple(declared_inputs(p)), changed or p.module, p.more
    else:
        inputs, module = (), program
        more = (
            program
            if isinstance(program, Unknown)
            else Unknown("the exported program is not known", places=program.places)
        )
    known_inputs = input_names if isinstance(input_names, tuple) else None
    known_outputs = output_names if isinstance(output_names, tuple) else None
    return Declaration(
        module,
        inputs,
        known_inputs,
        known_outputs,
        state_names,
        state_source,
        more,
        site,
        _first_cache(args.kw.get("input_names")),
        output_source=args.kw.get("output_names"),
    )


def declared_inputs(p: Program) -> list[Declared]:
    out = []
    for n, (name, value) in enumerate(p.inputs):
        entry = dynamic_entry(p, name, n)
        found = dynamic_dims(entry)
        axes = None
        if found is not None:
            axes = {axis: Dimension(True, label=_label(v), source=v) for axis, v in found.items()}
        source = entry if entry is not None else p.dynamic
        out.append(Declared(name, value, axes, source))
    return out


def _label(v: Value) -> str:
    return text_of(v.attrs["name"]) or "" if isinstance(v, Instance) and "name" in v.attrs else ""


def _register_lowering(it: Interpreter, args: Args, site: Site | None) -> Value:
    """`register_torch_lowering("aten::linear.default", allow_override=True)`: layers do another thing."""
    converter, name = args.pos[0], text_of(args.get(1, "qualified_name") or NONE)
    override = args.get(2, "allow_override")
    if override is not None and truth(override) is not False and (name or "aten::").startswith("aten::"):
        cause = Unknown(f"the lowering of `{name or '?'}` is replaced", places=(site,) if site else ())
        it.poison = it.poison or cause
        if isinstance(converter, Instance) and isinstance(converter.payload, Staged):
            converter.payload.changed(cause)
    return Native("register", lambda it, inner, site: inner.pos[0])


def _to_coreai(it: Interpreter, args: Args, site: Site | None) -> Value:
    converter = args.pos[0]
    staged = converter.payload if isinstance(converter, Instance) else None
    changed = converter.taint if isinstance(converter, Instance) else None
    return Instance(PROGRAM, payload=staged, taint=changed, places=(site,) if site else ())


def _from_mlir(it: Interpreter, args: Args, site: Site | None) -> Value:
    return Instance(PROGRAM, payload=_authored(it, site), places=(site,) if site else ())


def _author(it: Interpreter, args: Args, site: Site | None) -> Value:
    """`AIProgram(module)`."""
    obj = args.pos[0]
    assert isinstance(obj, Instance)
    it.heap.touch(obj)
    obj.payload = _authored(it, site)
    return NONE


def _authored(it: Interpreter, site: Site | None) -> Staged:
    """A program that no converter made has a graph of operations that nobody has followed."""
    staged = Staged()
    if site is not None:
        facts = GraphFacts.unknown(
            "the program is authored operation by operation, which is not followed", site.place()
        )
        staged.exports.append(Export(site, tuple(it.stack), "*", facts, "", it.conditions))
        it.sinks.export(staged.exports[0])
    return staged


def _save(it: Interpreter, args: Args, site: Site | None) -> Value:
    program, path = args.pos[0], args.get(1, "path", "asset_path")
    if isinstance(program, Instance) and isinstance(program.payload, Staged) and path is not None:
        text = format_value(path, "", None)
        for export in program.payload.exports:
            export.bundle = export.bundle or text
            export.flags = export.flags | path.flags
    return NONE


def _static_shapes(it: Interpreter, args: Args, site: Site | None) -> Value:
    """`set_static_shape_config(entrypoint, {label: {input: shape}})`: the graph is compiled for these shapes only."""
    program, name, given = args.pos[0], text_of(args.get(1, "entrypoint") or NONE), args.get(2, "config")
    if isinstance(program, Instance) and isinstance(program.payload, Staged) and given is not None and site is not None:
        for export in program.payload.exports:
            if export.name == (name or export.name):
                export.facts = replace(export.facts, query=_pinned(it, export.facts.query, given, site))
    return NONE


def _pinned(it: Interpreter, query: Fact[Query], given: Value, site: Site) -> Fact[Query]:
    """The query of a graph that is compiled for a set of shapes: their widths, or unknown."""
    place = site.place("compiled for these shapes only")
    places = tuple(dict.fromkeys((*query.evidence, place, *(p.place() for p in given.places))))
    widths: set[int] = set()
    configs = given.values() if isinstance(given, Mapping) else []
    # one that only some rounds of a loop have made counts: the graph is compiled for no other
    for config in (c for v in configs for c in (v.options if isinstance(v, Union) else (v,)) if type(c) is not Absent):
        entries = [(text_of(k) or "", v) for k, v in config.entries.values()] if isinstance(config, Mapping) else []
        ranked = sorted((query_rank(n), n, v) for n, v in entries if query_rank(n) < 1000 and not is_cache_name(n))
        shape = [size(d) for d in iterate(it, ranked[0][2], site).items] if ranked else []
        width = shape[min(1, len(shape) - 1)] if shape else None
        if not isinstance(width, int):
            widths = set()
            break
        widths.add(width)
    if not widths:
        return Fact.unknown("the graph is compiled for static shapes that are not known", *places, flags=query.flags)
    return Fact(Query(False, tuple(sorted(widths))), places, flags=query.flags)


def _self(it: Interpreter, args: Args, site: Site | None) -> Value:
    return args.pos[0]


def _quiet(it: Interpreter, args: Args, site: Site | None) -> Value:
    """Any other method of a converter or program changes nothing that a fact reads, unless it is given code."""
    obj, name = args.pos[0], text_of(args.pos[1])

    def call(it: Interpreter, inner: Args, site: Site | None) -> Value:
        code = (v.cls if isinstance(v, Instance) else v for v in inner.all())
        if any(isinstance(c, (Function, Class)) for c in code) and isinstance(obj, Instance):
            cause = Unknown(f"`{name}` is given code of the script", places=(site,) if site else ())
            it.heap.touch(obj)
            obj.taint = obj.taint or cause
            if isinstance(obj.payload, Staged):
                obj.payload.changed(cause)
        return NONE

    return Native("method", call)


CONVERTER = NativeClass(
    "coreai_torch.TorchConverter",
    {
        "__new__": _new,
        "add_exported_program": _add_exported_program,
        "add_pytorch_module": _add_pytorch_module,
        "to_coreai": _to_coreai,
        "register_torch_lowering": _register_lowering,
        "__getattr__": _quiet,
    },
    (OBJECT,),
)
PROGRAM = NativeClass(
    "coreai.authoring.AIProgram",
    {
        "__init__": _author,
        "_from_mlir_module": _from_mlir,
        "save_asset": _save,
        "save": _save,
        "set_static_shape_config": _static_shapes,
        "__getattr__": _quiet,
    },
    (OBJECT,),
)


# -- kernels ----------------------------------------------------------------------------------------------------


def _kernel(it: Interpreter, args: Args, site: Site | None) -> Value:
    """A custom kernel: its results have the shapes that the call says, whatever goes in."""
    given = args.kw.get("result_shapes")
    inputs = [t for t in (as_tensor(a) for a in args.pos[1:]) if t is not None]
    if given is None or site is None:
        return unknown_tensor("a kernel call without result shapes", site, *inputs)
    outputs: list[Value] = []
    rows = room = False
    for shape in iterate(it, given, site).items:
        target = sizes(it, [shape], site)
        made = result(tuple(target) if target is not None else None, *inputs, site=site)
        if target is None:
            made = unknown_tensor("a kernel whose result shape is not known", site, *inputs)
        rows = rows or target is None or any(map(dims.depends_on_query, target))
        holds = target is not None and _holds_rows(target, inputs)
        room = room or holds
        outputs.append(blended(made, site, holds))  # that there is room for the rows does not say that they are filled
    takes_rows = any(t.shape is not None and any(dims.depends_on_query(d) for d in t.shape) for t in inputs)
    squeezed = any(ONE_ROW in t.tags or t.cuts for t in inputs)
    if it.events is not None and not rows and (squeezed or (takes_rows and not room)):
        name = text_of(_kernel_name(args.pos[0])) or "a kernel"
        it.events.row_kernels.append((site, f"`{name}` gives the same rows whatever S is"))
    if len(outputs) == 1:
        return outputs[0]
    return Seq("tuple", outputs)


def _holds_rows(target: Sequence[dims.Dim], inputs: Sequence[Tensor]) -> bool:
    """Whether a result of fixed size has room for several rows in the place where an input has those of the query.

    A kernel's results cannot have a flexible size: one that fills a buffer, of which the rows are cut out, is no kernel
    for one row. Some axis before the rows has to agree, so that the place is not found by chance.
    """
    for t in inputs:
        if t.shape is None or len(t.shape) != len(target):
            continue
        axes = [n for n, d in enumerate(t.shape) if dims.depends_on_query(d)]
        if len(axes) == 1 and 0 < axes[0] < len(target) - 1 and t.shape[: axes[0]] == tuple(target[: axes[0]]):
            size = target[axes[0]]
            return isinstance(size, int) and size > 1
    return False


def _kernel_name(kernel: Value) -> Value:
    return kernel.attrs.get("name", NONE) if isinstance(kernel, Instance) else NONE


def _kernel_init(it: Interpreter, args: Args, site: Site | None) -> Value:
    obj = args.pos[0]
    assert isinstance(obj, Instance)
    name = args.get(1, "name")
    if name is not None:
        obj.attrs["name"] = name
    return NONE


KERNEL = NativeClass(
    "coreai_torch.TorchMetalKernel", {"__init__": _kernel_init, "__call__": _kernel, "__getattr__": _quiet}, (OBJECT,)
)


# -- composite layers -------------------------------------------------------------------------------------------


def _layers() -> dict[str, Value]:
    out: dict[str, Value] = {}
    for spec in tables().layers:
        made = layer(spec["name"].rsplit(".", 1)[-1], spec.get("parameters", ""), _forward(spec), _weights(spec))
        made.name = spec["name"]
        out[spec["name"]] = made
    for spec in tables().layers:
        for attribute_name, part in spec.get("parts", {}).items():
            owner, cls = out[spec["name"]], out[part]
            if isinstance(owner, NativeClass):
                owner.attributes[attribute_name] = Instance(cls)
    return out


def _weights(spec: dict[str, Any]) -> Shaper | None:
    declared = spec.get("weights")
    if not declared:
        return None

    def shapes(obj: Instance) -> dict[str, tuple[dims.Dim, ...] | None]:
        out: dict[str, tuple[dims.Dim, ...] | None] = {}
        for name, parameters in declared.items():
            found = [attribute(obj, p) for p in parameters]
            out[name] = None if None in found else tuple(f for f in found if f is not None)
        return out

    return shapes


def _forward(spec: dict[str, Any]) -> Forward:
    def forward(it: Interpreter, obj: Instance, args: Args, site: Site | None) -> Value:
        if "attention" in spec:
            return attended(it, args, truth(obj.attrs.get("is_causal", FALSE)) is not False, site)
        if "gather_matmul" in spec:
            return gather_matmul(it, obj, args, site)
        if "returns" in spec:
            return Seq("tuple", [_like(args, r["like"], site) for r in spec["returns"]])
        return _like(args, spec["like"], site)

    return forward


_POSITIONS = {"query": 0, "key": 1, "value": 2, "g": 3, "beta": 4, "initial_state": 5}


def _like(args: Args, name: str, site: Site | None) -> Value:
    value = args.kw.get(name) or args.get(_POSITIONS.get(name, 0))
    t = as_tensor(value) if value is not None else None
    return (
        result(t.shape, *args.pos, *args.kw.values(), site=None)
        if t is not None
        else unknown_tensor(f"no `{name}`", site)
    )


NATIVES: dict[str, Value] = {
    "coreai_torch.TorchConverter": CONVERTER,
    "coreai_torch.converter.TorchConverter": CONVERTER,
    "coreai.authoring.AIProgram": PROGRAM,
    "coreai_torch.TorchMetalKernel": KERNEL,
    **_layers(),
    **gathering.NATIVES,
}
__all__ = ["NATIVES", "ExternalObject", "Mapping"]
