"""Models that transformers itself makes ready for `torch.export`: with a static cache, whose tensors are buffers.

    program = convert_and_export_with_cache(model)                                       # one token at a time
    program = TorchExportableModuleForDecoderOnlyLM(model).export(ids, positions, dynamic_shapes)

Which layers hold all rows, and which a window that slides, the configuration of the model says to that cache: which
rows a write leaves is not known, so that such a graph is never eligible.
"""

from __future__ import annotations

from auditor.frameworks.torch_export import export_program
from auditor.interpreter import Interpreter
from auditor.places import Site, here
from auditor.torch.modules import MODULE
from auditor.values import (
    NONE,
    Args,
    Const,
    ExternalObject,
    Instance,
    Mapping,
    Native,
    NativeClass,
    Storage,
    Tensor,
    Unknown,
    Value,
    is_given,
)

_HOME = "transformers.integrations.executorch"
_NAMES = ("TorchExportableModuleWithStaticCache", "TorchExportableModuleWithHybridCache")
_ANY_INPUTS = "TorchExportableModuleForDecoderOnlyLM"
_CACHE = ("key_cache", "value_cache")
_KEPT = "is kept by a cache of transformers, some layers of which may hold a window only"


def _new(it: Interpreter, args: Args, site: Site | None) -> Value:
    obj = Instance(MODEL, {"model": args.get(1, "model") or NONE}, places=here(site))
    for name in _CACHE:
        what = Unknown("the static cache of a Hugging Face model", name, "data", places=here(site))
        obj.attrs[name] = Tensor(None, reason=what, base=Storage(name, "buffer", watched=True), places=here(site))
    return obj


def _forward(it: Interpreter, args: Args, site: Site | None) -> Value:
    obj = args.pos[0]
    assert isinstance(obj, Instance)
    cache = ExternalObject("transformers.StaticCache", Args(), places=obj.places)
    given = {"input_ids": args.get(1, "input_ids") or NONE, "inputs_embeds": args.kw.get("inputs_embeds", NONE)}
    given["cache_position"] = args.kw.get("cache_position") or (args.pos[-1] if len(args.pos) > 2 else NONE)
    found = it.call(obj.attrs["model"], Args([], {**given, "past_key_values": cache}), site)
    if it.events is not None and site is not None:
        for name in _CACHE:
            kept = obj.attrs[name]
            assert isinstance(kept, Tensor)
            it.events.written(kept, site, None, unclear=_KEPT)
    return it.get(found, "logits", site)


def _export(it: Interpreter, args: Args, site: Site | None) -> Value:
    """`model.export(input_ids=None, ..., dynamic_shapes=None)`: by default, one token goes in."""
    inputs = {n: args.kw[n] for n in ("input_ids", "inputs_embeds", "cache_position") if is_given(args.kw.get(n))}
    if len(args.pos) > 1:
        inputs = {"input_ids": args.pos[1], **inputs, **dict(zip(("cache_position",), args.pos[2:], strict=False))}
    return _exported(it, args.pos[0], inputs, args, site)


def _convert(it: Interpreter, args: Args, site: Site | None) -> Value:
    """`convert_and_export_with_cache(model, example_input_ids, example_cache_position, dynamic_shapes)`."""
    ids, positions = args.get(1, "example_input_ids"), args.get(2, "example_cache_position")
    pairs = (("input_ids", ids), ("cache_position", positions))
    given = {name: value for name, value in pairs if value is not None and is_given(value)}
    return _exported(it, _new(it, Args([NONE, *args.pos[:1]], args.kw), site), given, args, site)


def _exported(it: Interpreter, model: Value, given: dict[str, Value], args: Args, site: Site | None) -> Value:
    one = {
        "input_ids": Tensor((1, 1), "int64", places=here(site)),
        "cache_position": Tensor((1,), "int64", places=here(site)),
    }
    if "inputs_embeds" in given:
        one.pop("input_ids")
    inputs = Mapping({("str", n): (Const(n), v) for n, v in {**one, **given}.items()})
    dynamic = args.get(3, "dynamic_shapes")
    return export_program(it, model, None, inputs, dynamic, args.more, site)


MODEL = NativeClass(f"{_HOME}.Exportable", {"__new__": _new, "forward": _forward, "export": _export}, (MODULE,))

NATIVES: dict[str, Value] = {
    **{f"{home}.{name}": MODEL for home in (_HOME, "transformers.integrations") for name in (*_NAMES, _ANY_INPUTS)},
    f"{_HOME}.convert_and_export_with_cache": Native("convert_and_export_with_cache", _convert),
    "transformers.integrations.convert_and_export_with_cache": Native("convert_and_export_with_cache", _convert),
}
