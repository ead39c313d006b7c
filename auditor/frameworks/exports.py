"""What a call of a converter exports: its declaration, and the facts of each entry point."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from auditor.frameworks.dynamic_shapes import dynamic_dims, dynamic_entry
from auditor.frameworks.torch_export import Program
from auditor.graph_facts.compute import compute
from auditor.graph_facts.declaration import Declaration, Declared, names_given, names_of
from auditor.graph_facts.evidence import why
from auditor.graph_facts.worlds import merged
from auditor.interpreter import Interpreter
from auditor.places import Site
from auditor.roles import is_cache_name
from auditor.sinks import Export
from auditor.values import (
    Args,
    Class,
    Const,
    Instance,
    NativeClass,
    Seq,
    Tensor,
    Union,
    Unknown,
    Value,
    each_once,
    merge_flags,
    text_of,
)
from rules.facts import Fact


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
    export.under = merge_flags(modules)
    it.export(export)
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
    return next((v for v in each_once(items) if is_cache_name(text_of(v) or "")), names)


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
        if isinstance(input_names, tuple) and [i.name for i in inputs] == [f"arg{n}" for n in range(len(input_names))]:
            inputs = tuple(replace(i, name=name) for i, name in zip(inputs, input_names, strict=True))
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
        entry = dynamic_entry(p.dynamic, name, n)
        rank = len(value.shape) if isinstance(value, Tensor) and value.shape is not None else None
        source = entry if entry is not None else p.dynamic
        out.append(Declared(name, value, dynamic_dims(entry, rank), source))
    return out
