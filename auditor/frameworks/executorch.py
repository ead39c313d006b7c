"""ExecuTorch's Core ML route: programs lowered with `CoreMLPartitioner`. States are the buffers that are written."""

from __future__ import annotations

from dataclasses import dataclass, field

from auditor.containers.iteration import iterate
from auditor.expressions.text import format_value
from auditor.frameworks.exports import Staged, exported
from auditor.handlers import itself
from auditor.interpreter import Interpreter
from auditor.objects.inheritance import OBJECT
from auditor.places import Site, here
from auditor.values import (
    NONE,
    Args,
    Class,
    Const,
    Function,
    Instance,
    Mapping,
    Native,
    NativeClass,
    Seq,
    Union,
    Unknown,
    Value,
)


@dataclass(slots=True, eq=False)
class Edge:
    """Programs by entry point, before they are lowered, and what was exported of them."""

    programs: list[tuple[Value, Value]]
    staged: Staged = field(default_factory=Staged)


def _entries(programs: Value | None) -> list[tuple[Value, Value]]:
    if isinstance(programs, Mapping):
        return list(programs.entries.values())
    return [] if programs is None else [(Const("forward"), programs)]


def _to_edge(it: Interpreter, args: Args, site: Site | None) -> Value:
    return Instance(EDGE, payload=Edge(_entries(args.get(0, "programs"))))


def _lower(it: Interpreter, args: Args, site: Site | None) -> Value:
    """`to_edge_transform_and_lower(programs, ..., partitioner)`."""
    edge = Edge(_entries(args.get(0, "programs")))
    _passes(it, args.get(1, "transform_passes"), site)
    _export(it, edge, args.get(2, "partitioner"), site)
    return Instance(EDGE, payload=edge)


def _transform(it: Interpreter, args: Args, site: Site | None) -> Value:
    """`edge.transform(passes)`, maybe of a program that was lowered before."""
    edge = args.pos[0]
    _passes(it, args.get(1, "passes"), site)
    if it.poison is not None and isinstance(edge, Instance) and isinstance(edge.payload, Edge):
        edge.payload.staged.changed(it.poison)
    return edge


def _passes(it: Interpreter, given: Value | None, site: Site | None) -> None:
    """Passes over the program: what those of the script's own make of it is not followed."""
    todo = [given] if given is not None else []
    while todo:
        value = todo.pop()
        if isinstance(value, (Seq, Union)):
            todo += value.items if isinstance(value, Seq) else value.options
        elif isinstance(value, Mapping):
            todo += value.values()
        cls = value.cls if isinstance(value, Instance) else value
        own = cls.site if isinstance(cls, (Class, Function)) else None
        if own is not None and site is not None and own.path.rpartition("/")[0] == site.path.rpartition("/")[0]:
            reason = f"what the pass `{getattr(cls, 'name', '')}` makes of the program is not followed"
            it.poison = it.poison or Unknown(reason, "pass", places=(site,))


def _to_backend(it: Interpreter, args: Args, site: Site | None) -> Value:
    edge = args.pos[0]
    if isinstance(edge, Instance) and isinstance(edge.payload, Edge):
        _export(it, edge.payload, args.get(1, "partitioner"), site)
    return edge


def _export(it: Interpreter, edge: Edge, partitioner: Value | None, site: Site | None) -> None:
    if partitioner is None or site is None or not _core_ml(it, partitioner, site):
        return
    for name, program in edge.programs:
        edge.staged.exports.append(exported(it, Args([NONE], {"entrypoint_name": name}), program, site))


def _core_ml(it: Interpreter, value: Value, site: Site) -> bool:
    """Whether a partitioner, or one of several, may be the one for Core ML."""
    if isinstance(value, Union):
        return any(_core_ml(it, o, site) for o in value.options)
    if isinstance(value, Instance):
        return value.cls is PARTITIONER
    if isinstance(value, Mapping):
        return any(_core_ml(it, v, site) for v in value.values())
    items = iterate(it, value, site).items
    return isinstance(value, Unknown) or any(_core_ml(it, i, site) for i in items)


def _save(it: Interpreter, args: Args, site: Site | None) -> Value:
    """`save_pte_program(program, name, directory)` and `program.save(path)`."""
    program, path, folder = args.get(0, "prog"), args.get(1, "model_name", "path"), args.get(2, "output_dir")
    if isinstance(program, Instance) and isinstance(program.payload, Edge) and path is not None:
        name = format_value(path, "", None)
        name = name if name.endswith((".pte", "*")) else f"{name}.pte"
        where = format_value(folder, "", None) if folder is not None else ""
        for export in program.payload.staged.exports:
            export.bundle = export.bundle or (f"{where}/{name}" if where else name)
            export.flags = export.flags | path.flags
    return path or NONE


def _getattr(it: Interpreter, args: Args, site: Site | None) -> Value:
    return Unknown("an attribute of an ExecuTorch program", "program", places=here(site))


EDGE = NativeClass(
    "executorch.exir.EdgeProgramManager",
    {
        "to_backend": _to_backend,
        "to_executorch": itself,
        "transform": _transform,
        "save": _save,
        "__getattr__": _getattr,
    },
    (OBJECT,),
)
PARTITIONER = NativeClass(
    "executorch.backends.apple.coreml.partition.CoreMLPartitioner", {"__getattr__": _getattr}, (OBJECT,)
)

_EXIR = ("executorch.exir", "executorch.exir.program", "executorch.exir.program._program")
_COREML = "executorch.backends.apple.coreml.partition"
NATIVES: dict[str, Value] = {
    **{f"{m}.{name}": Native(name, _to_edge) for m in _EXIR for name in ("to_edge", "to_edge_with_preserved_ops")},
    **{f"{m}.to_edge_transform_and_lower": Native("to_edge_transform_and_lower", _lower) for m in _EXIR},
    f"{_COREML}.CoreMLPartitioner": PARTITIONER,
    f"{_COREML}.coreml_partitioner.CoreMLPartitioner": PARTITIONER,
    "executorch.extension.export_util.utils.save_pte_program": Native("save_pte_program", _save),
}
