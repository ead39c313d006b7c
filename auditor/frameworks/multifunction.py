"""`MultiFunctionDescriptor` and `save_multifunction`: several saved models become the functions of one bundle."""

from __future__ import annotations

from dataclasses import replace

from auditor.expressions.text import format_value
from auditor.interpreter import Interpreter
from auditor.objects.inheritance import OBJECT
from auditor.places import Site
from auditor.values import NONE, Args, Const, Instance, Native, NativeClass, Seq, Value, is_given, text_of

_FUNCTIONS = "(functions)"


def _functions(obj: Value) -> Seq:
    assert isinstance(obj, Instance)
    found = obj.attrs.get(_FUNCTIONS)
    if not isinstance(found, Seq):
        found = obj.attrs[_FUNCTIONS] = Seq("list", [])
    return found


def _init(it: Interpreter, args: Args, site: Site | None) -> Value:
    _functions(args.pos[0])
    path = args.get(1, "model_path")
    if is_given(path):
        _add(it, Args([args.pos[0], path]), site)
    return NONE


def _add(it: Interpreter, args: Args, site: Site | None) -> Value:
    """`add_function(model_path, src_function_name, target_function_name)`; without names, `add_model`."""
    listed = _functions(args.pos[0])
    path = args.get(1, "model_path") or NONE
    names = [args.get(2, "src_function_name") or NONE, args.get(3, "target_function_name") or NONE]
    it.heap.touch(listed)
    listed.items.append(Seq("tuple", [path, *names]))
    return NONE


def _remove(it: Interpreter, args: Args, site: Site | None) -> Value:
    listed, name = _functions(args.pos[0]), text_of(args.get(1, "function_name") or NONE)
    it.heap.touch(listed)
    listed.items = [row for row in listed.items if not (isinstance(row, Seq) and text_of(row.items[2]) == name)]
    return NONE


def _save(it: Interpreter, args: Args, site: Site | None) -> Value:
    """The graphs of the models that go in are functions of the bundle that comes out.

    A model whose path is not told from another's keeps its function's name; of one that no export call of the run has
    saved, nothing is known here.
    """
    described, written = args.get(0, "desc"), args.get(1, "destination_path")
    if not isinstance(described, Instance) or described.cls is not DESCRIPTOR or written is None:
        return NONE
    bundle = format_value(written, "", None)
    rows = [list(row.items) for row in _functions(described).items if isinstance(row, Seq)]
    paths = [format_value(row[0], "", None) for row in rows]
    before = [
        (export, {export.bundle} | (export.copies if export.bundle in export.copies else frozenset()), export.name)
        for export in it.sinks.exports
    ]
    taken: set[int] = set()
    for (_, source, target), path in zip(rows, paths, strict=True):
        for export, saved, name in before:
            if path not in saved or (isinstance(source, Const) and source.value not in (None, name)):
                continue
            told = text_of(target) if paths.count(path) == 1 or "*" not in path else None
            function = name if told is None or "*" in told else told
            if id(export) in taken:  # the same model under a second name
                it.sinks.export(replace(export, name=function, bundle=bundle))
                continue
            taken.add(id(export))
            export.bundle, export.name = bundle, function
    made = frozenset().union(*(saved for _, saved, _ in before))
    for path in dict.fromkeys(paths):
        if path not in made:
            where = f"{site.path}:{site.line}: " if site is not None else ""
            message = f"{where}`{bundle}` is put together from `{path}`, which no export call of this run has made"
            it.sinks.problem(message, site)
    return NONE


DESCRIPTOR = NativeClass(
    "coremltools.utils.MultiFunctionDescriptor",
    {"__init__": _init, "add_function": _add, "add_model": _add, "remove_function": _remove},
    (OBJECT,),
)

NATIVES: dict[str, Value] = {
    f"coremltools.{home}.{name}": value
    for home in ("utils", "models.utils")
    for name, value in (
        ("MultiFunctionDescriptor", DESCRIPTOR),
        ("save_multifunction", Native("save_multifunction", _save)),
    )
}
