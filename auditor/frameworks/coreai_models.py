"""coreai-models without its source: its export calls, its cache helper and its constants.

With the source (`--library`) none of this is asked: the functions themselves are evaluated.
"""

from __future__ import annotations

from auditor.containers.iteration import iterate
from auditor.frameworks.coreai_torch import PROGRAM
from auditor.frameworks.exports import Staged, exported
from auditor.frameworks.tables import tables
from auditor.frameworks.torch_export import export_program
from auditor.interpreter import Interpreter
from auditor.objects.inheritance import OBJECT
from auditor.places import Site, here
from auditor.sinks import Export
from auditor.torch.tensors import size
from auditor.values import NONE, Args, Const, Instance, Mapping, Native, NativeClass, Seq, Tensor, Value

_NAMES = (
    "model",
    "reference_inputs",
    "dynamic_shapes",
    "input_names",
    "output_names",
    "state_names",
    "externalize_modules",
)


def _export_to_coreai(it: Interpreter, args: Args, site: Site | None) -> Value:
    """`export_to_coreai(model, reference_inputs, ...)`: one entry point named `main`."""
    given = dict(zip(_NAMES, args.pos, strict=False)) | args.kw
    return Instance(PROGRAM, payload=Staged(_entry(it, given, Const("main"), args, site)))


def _multifunction(it: Interpreter, args: Args, site: Site | None) -> Value:
    """`export_to_coreai_multifunction(model, entries)`: one entry point for each (name, spec)."""
    model, entries = args.get(0, "model") or NONE, args.get(1, "entries") or NONE
    staged = Staged()
    if site is not None:
        for entry in iterate(it, entries, site).items:
            if isinstance(entry, Seq) and len(entry.items) == 2 and isinstance(spec := entry.items[1], Mapping):
                given = {str(k.value): v for k, v in spec.entries.values() if isinstance(k, Const)}
                staged.exports += _entry(it, {**given, "model": model}, entry.items[0], args, site)
    return Instance(PROGRAM, payload=staged)


def _entry(it: Interpreter, given: dict[str, Value], name: Value, args: Args, site: Site | None) -> list[Export]:
    program = export_program(
        it, given.get("model", NONE), NONE, given.get("reference_inputs"), given.get("dynamic_shapes"), args.more, site
    )
    names: dict[str, Value] = {"entrypoint_name": name}
    names.update((k, given[k]) for k in ("input_names", "output_names", "state_names") if k in given)
    call = Args([NONE], names, args.more)
    return [exported(it, call, program, site)]


def _create(it: Interpreter, args: Args, site: Site | None) -> Value:
    """`KVCache.create_cache_tensors(config)`: two tensors [layers, 1, kv heads, length, head width]."""
    config = args.pos[-1] if args.pos else NONE
    shape = []
    for name in ("num_hidden_layers", "", "num_key_value_heads", "max_position_embeddings", "head_dim"):
        shape.append(size(it.get(config, name, site)) if name else 1)
    known = tuple(s for s in shape if s is not None)
    one = Tensor(known if len(known) == len(shape) else None, "float16", places=here(site))
    return Seq("tuple", [one, one])


KV_CACHE = NativeClass(
    "coreai_models.primitives.macos.cache.KVCache",
    {"create_cache_tensors": _create, "seq_len_dim": lambda it, args, site: Const(3)},
    (OBJECT,),
)

NATIVES: dict[str, Value] = {
    "coreai_models.export.macos.export_to_coreai": Native("export_to_coreai", _export_to_coreai),
    "coreai_models.export.macos.export_to_coreai_multifunction": Native(
        "export_to_coreai_multifunction", _multifunction
    ),
    "coreai_models.primitives.macos.cache.KVCache": KV_CACHE,
    **{name: Const(value) for name, value in tables().constants.items()},
}
