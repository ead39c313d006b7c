"""Functions that nobody can read, and that export by what they are given: dynamic shapes and the names of a graph.

    program = export_with_kernels(model, example, dynamic_shapes={...}, state_names=(...), output_names=("logits",))

What goes in and how wide it is, the call itself says, and which states there are. What becomes of the module it does
not, so that logits are never known of such a graph.
"""

from __future__ import annotations

from auditor.frameworks.coreai_torch import PROGRAM
from auditor.frameworks.exports import Staged, exported
from auditor.frameworks.torch_export import export_program
from auditor.interpreter import Interpreter
from auditor.loader import GIVEN_SHAPES
from auditor.places import Site, here
from auditor.roles import words
from auditor.values import Args, Const, Instance, Mapping, Native, Unknown, Value

_SAYS_SO = frozenset({"export", "exports", "convert", "converts", "lower", "lowers", "coreai"})
_ELSEWHERE = frozenset({"onnx", "tflite", "litert", "openvino", "tensorrt", "trt", "qnn", "qualcomm", "gguf", "tf"})
"""What is exported to none of Apple's frameworks."""
_NAMES = ("input_names", "output_names", "state_names")
_KEYWORDS = ("reference_inputs", "example_inputs", "sample_inputs", "example_kwargs", "kwargs")
_POSITIONAL = ("example_args", "args")


def _given_shapes(it: Interpreter, args: Args, site: Site | None) -> Value:
    """`args.pos` has the function, which nobody can read, before what it is given; it comes back if it is no such."""
    function, *given = args.pos
    if not isinstance(function, Unknown) or site is None or not _exports(function.name, args):
        return function
    cause = Unknown(function.reason, places=function.places)
    program = export_program(it, cause, *_examples(given, args.kw), args.kw["dynamic_shapes"], args.more, site)
    names: dict[str, Value] = {n: args.kw[n] for n in _NAMES if n in args.kw}
    names["entrypoint_name"] = args.kw.get("entrypoint_name", Const("main"))
    export = exported(it, Args([cause], names, args.more), program, site)
    return Instance(PROGRAM, payload=Staged([export]), taint=cause, places=here(site))


def _exports(name: str, args: Args) -> bool:
    """Whether a function exports, by its own name and those of its arguments."""
    said, home = words(name.rpartition(".")[2]), words(name)
    exports = not _SAYS_SO.isdisjoint(said) and _ELSEWHERE.isdisjoint(home)
    return exports and not args.kw.keys().isdisjoint(_NAMES)


def _examples(given: list[Value], named: dict[str, Value]) -> tuple[Value | None, Value | None]:
    """The example inputs, by position and by name: named as such, or the argument behind the module."""
    keywords = next((named[n] for n in _KEYWORDS if n in named), None)
    positional = next((named[n] for n in _POSITIONAL if n in named), None)
    if keywords is None and positional is None and len(given) > 1:
        return (None, given[1]) if isinstance(given[1], Mapping) else (given[1], None)
    return (positional, keywords) if positional is not None or isinstance(keywords, Mapping) else (keywords, None)


NATIVES: dict[str, Value] = {GIVEN_SHAPES: Native("exporter", _given_shapes)}
