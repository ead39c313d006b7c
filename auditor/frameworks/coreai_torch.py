"""coreai-torch: `TorchConverter`, and the programs that it makes."""

from __future__ import annotations

from dataclasses import replace

from auditor.containers.iteration import iterate
from auditor.expressions.text import format_value
from auditor.frameworks.exports import Staged, exported
from auditor.frameworks.tables import tables
from auditor.interpreter import Interpreter
from auditor.objects.inheritance import OBJECT
from auditor.operators import truth
from auditor.places import Site, here
from auditor.roles import is_cache_name, query_rank
from auditor.sinks import Export
from auditor.torch.tensors import size
from auditor.values import (
    NONE,
    Args,
    Class,
    Function,
    Instance,
    Mapping,
    Native,
    NativeClass,
    Union,
    Unknown,
    Value,
    text_of,
)
from auditor.values.absence import Absent
from rules.facts import Fact, GraphFacts, Query


def _new(it: Interpreter, args: Args, site: Site | None) -> Value:
    return Instance(CONVERTER, payload=Staged(), places=here(site))


def _add_exported_program(it: Interpreter, args: Args, site: Site | None) -> Value:
    program = args.get(1, "exported_program") or NONE
    return _stage(it, args, program, site)


def _add_pytorch_module(it: Interpreter, args: Args, site: Site | None) -> Value:
    model, function = args.get(1, "model") or NONE, args.kw.get("export_fn")
    if function is None:
        program: Value = Unknown("the module is exported without an `export_fn`", places=here(site))
    else:
        program = it.call(function, Args([model]), site)
    return _stage(it, args, program, site)


def _stage(it: Interpreter, args: Args, program: Value, site: Site | None) -> Value:
    converter = args.pos[0]
    export = exported(it, args, program, site)
    if isinstance(converter, Instance) and isinstance(converter.payload, Staged):
        converter.payload.exports.append(export)
    return converter


def _register_lowering(it: Interpreter, args: Args, site: Site | None) -> Value:
    """`register_torch_lowering("aten::linear.default", allow_override=True)`: layers do another thing."""
    converter, name = args.pos[0], text_of(args.get(1, "qualified_name") or NONE)
    override = args.get(2, "allow_override")
    if override is not None and truth(override) is not False and (name or "aten::").startswith("aten::"):
        cause = Unknown(f"the lowering of `{name or '?'}` is replaced", places=here(site))
        it.poison = it.poison or cause
        if isinstance(converter, Instance) and isinstance(converter.payload, Staged):
            converter.payload.changed(cause)
    return Native("register", lambda it, inner, site: inner.pos[0])


def _to_coreai(it: Interpreter, args: Args, site: Site | None) -> Value:
    converter = args.pos[0]
    staged = converter.payload if isinstance(converter, Instance) else None
    changed = converter.taint if isinstance(converter, Instance) else None
    return Instance(PROGRAM, payload=staged, taint=changed, places=here(site))


def _from_mlir(it: Interpreter, args: Args, site: Site | None) -> Value:
    return Instance(PROGRAM, payload=_authored(it, site), places=here(site))


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
        it.export(staged.exports[0])
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


def quiet(it: Interpreter, args: Args, site: Site | None) -> Value:
    """Any other method of a converter or program changes nothing that a fact reads, unless it is given code."""
    obj, name = args.pos[0], text_of(args.pos[1])

    def call(it: Interpreter, inner: Args, site: Site | None) -> Value:
        code = (v.cls if isinstance(v, Instance) else v for v in inner.all())
        if any(isinstance(c, (Function, Class)) for c in code) and isinstance(obj, Instance):
            cause = Unknown(f"`{name}` is given code of the script", places=here(site))
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
        "__getattr__": quiet,
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
        "__getattr__": quiet,
    },
    (OBJECT,),
)


def _same_program(it: Interpreter, args: Args, site: Site | None) -> Value:
    return args.get(0, "exported_program", "program") or NONE


NATIVES: dict[str, Value] = {
    "coreai_torch.TorchConverter": CONVERTER,
    "coreai_torch.converter.TorchConverter": CONVERTER,
    "coreai.authoring.AIProgram": PROGRAM,
    **{name: Native(name, _same_program) for name in tables().keeps_program},
}
