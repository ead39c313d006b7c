"""ONNX between PyTorch and Core ML: what a script writes with `torch.onnx.export`, and a converter reads again.

torch.onnx.export(model, (ids,), "net.onnx", input_names=["ids"], dynamic_axes={"ids": {1: "rows"}})
coremltools.converters.onnx.convert(onnx.load("net.onnx"))
"""

from __future__ import annotations

from dataclasses import dataclass

from auditor.frameworks.exports import declared_inputs
from auditor.frameworks.saved_programs import keep, kept
from auditor.frameworks.torch_export import Program, export_program
from auditor.graph_facts.declaration import Declaration, Declared, Dimension, names_of
from auditor.interpreter import Interpreter
from auditor.objects.inheritance import OBJECT
from auditor.operators import truth
from auditor.places import Site, here
from auditor.values import (
    NONE,
    Args,
    Const,
    Instance,
    Mapping,
    Native,
    NativeClass,
    Seq,
    Tensor,
    Unknown,
    Value,
    each_once,
    is_given,
    text_of,
)


@dataclass(frozen=True, slots=True, eq=False)
class _Written:
    """An exported program, the names of what goes in and comes out, and the axes that are not fixed."""

    program: Program
    inputs: Value | None
    outputs: Value | None
    axes: Value | None
    traced: bool


def _export(it: Interpreter, args: Args, site: Site | None) -> Value:
    given, keywords = args.get(1, "args") or NONE, args.kw.get("kwargs")
    if isinstance(given, Tensor):
        given = Seq("tuple", [given])
    elif isinstance(given, Seq) and given.items and isinstance(given.items[-1], Mapping):
        keywords = keywords or given.items[-1]
        given = Seq(given.kind, given.items[:-1], places=given.places, flags=given.flags)
    module, dynamic = args.get(0, "model") or NONE, args.kw.get("dynamic_shapes")
    program = export_program(it, module, given, keywords, dynamic, args.more, site)
    if not isinstance(program, Instance) or not isinstance(program.payload, Program):
        return NONE
    names = (args.kw.get("input_names"), args.kw.get("output_names"), args.kw.get("dynamic_axes"))
    traced = truth(args.kw.get("dynamo") or Const(False)) is False
    made = Instance(ONNX, payload=_Written(program.payload, *names, traced), places=here(site))
    file = args.get(2, "f")
    if is_given(file):
        keep(it, file, made)
    return made


def _load(it: Interpreter, args: Args, site: Site | None) -> Value:
    return kept(
        it, args.get(0, "f"), Unknown("an ONNX model that is read from a file", "onnx.load()", places=here(site))
    )


def _save(it: Interpreter, args: Args, site: Site | None) -> Value:
    """`onnx.save(model, file)`, and `program.save(file)`."""
    file = args.get(1, "f", "destination")
    if is_given(file) and isinstance(args.pos[0], Instance):
        keep(it, file, args.pos[0])
    return NONE


def _same(it: Interpreter, args: Args, site: Site | None) -> Value:
    return args.pos[0] if args.pos else NONE


def _simplified(it: Interpreter, args: Args, site: Site | None) -> Value:
    return Seq("tuple", [_same(it, args, site), Const(True)])


def _getattr(it: Interpreter, args: Args, site: Site | None) -> Value:
    obj, name = args.pos[0], text_of(args.pos[1]) or ""
    reason = Unknown(f"`{name}` of an ONNX model", f"ModelProto.{name}", places=here(site))
    if name == "graph" and isinstance(obj, Instance):  # whoever has it may edit it
        it.heap.touch(obj)
        obj.taint = obj.taint or Unknown("the graph of an ONNX model is at hand, and may be edited", places=here(site))
    return reason


ONNX = NativeClass("onnx.ModelProto", {"save": _save, "__getattr__": _getattr}, (OBJECT,))


def onnx_declaration(it: Interpreter, model: Value, site: Site) -> Declaration | None:
    """The conversion of an ONNX model that the script itself has exported; None when it is none."""
    found = _found(it, model)
    if found is None:
        return None
    made, written = found
    program = written.program
    names, outputs = names_of(written.inputs), names_of(written.outputs)
    inputs = []
    for n, one in enumerate(declared_inputs(program)):
        name = names[n] if isinstance(names, tuple) and n < len(names) else one.name
        axes = one.axes if program.dynamic is not None else _axes(written.axes, name)
        source = one.source if program.dynamic is not None else written.axes
        inputs.append(Declared(name, one.value, axes, source, one.name))
    more = program.more or (names if isinstance(names, Unknown) else None)
    return Declaration(
        made.taint or program.module,
        tuple(inputs),
        tuple(i.name for i in inputs) if more is None else None,
        outputs if isinstance(outputs, tuple) else None,
        (),
        None,
        more,
        site,
        core_ml=True,
        traced=dict(program.inputs) if written.traced else None,
        output_source=written.outputs,
    )


def _found(it: Interpreter, model: Value) -> tuple[Instance, _Written] | None:
    made = kept(it, model, Unknown("not written here")) if text_of(model) is not None else model
    return (made, made.payload) if isinstance(made, Instance) and isinstance(made.payload, _Written) else None


def _axes(given: Value | None, name: str) -> dict[int, Dimension] | None:
    """The axes that `dynamic_axes` says of an input, by number or with a name each; None when they are not known."""
    if not is_given(given):
        return {}
    entry = given.get(name) if isinstance(given, Mapping) else None
    if entry is None:
        return {} if isinstance(given, Mapping) and given.rest is None else None
    if isinstance(entry, Mapping) and entry.rest is None:
        numbers = [key for key, _ in entry.entries.values()]
    elif isinstance(entry, Seq) and entry.exact:
        numbers = list(each_once(entry.items))
    else:
        return None
    known = [n.value for n in numbers if isinstance(n, Const) and isinstance(n.value, int)]
    return {n: Dimension(True, source=entry) for n in known} if len(known) == len(numbers) else None


NATIVES: dict[str, Value] = {
    "torch.onnx.export": Native("torch.onnx.export", _export),
    "torch.onnx.utils.export": Native("torch.onnx.export", _export),
    "onnx.load": Native("onnx.load", _load),
    "onnx.load_model": Native("onnx.load", _load),
    "onnx.save": Native("onnx.save", _save),
    "onnx.save_model": Native("onnx.save", _save),
    "onnx.checker.check_model": Native("check_model", lambda it, args, site: NONE),
    "onnx.shape_inference.infer_shapes": Native("infer_shapes", _same),
    "onnxsim.simplify": Native("simplify", _simplified),
}
