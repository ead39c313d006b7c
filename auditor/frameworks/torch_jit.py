"""`torch.jit`: which module was traced, and with which example inputs."""

from __future__ import annotations

from collections.abc import Mapping as AbcMapping

from auditor.calls.unread import unread
from auditor.frameworks.forward_inputs import bind_inputs
from auditor.frameworks.saved_programs import keep, kept
from auditor.interpreter import Interpreter
from auditor.places import Site, here
from auditor.torch.modules import TRACED_WITH, is_module, kept_module
from auditor.values import (
    NONE,
    Args,
    Class,
    Const,
    Function,
    Instance,
    Mapping,
    Native,
    Seq,
    Tensor,
    Unknown,
    Value,
    merge_flags,
)

_SCRIPTED = "(scripted)"


def _trace(it: Interpreter, args: Args, site: Site | None) -> Value:
    positional, keywords = args.get(1, "example_inputs"), args.kw.get("example_kwarg_inputs")
    return _recorded(it, args, positional or NONE, keywords or NONE, site)


def _trace_module(it: Interpreter, args: Args, site: Site | None) -> Value:
    inputs = args.get(1, "inputs")
    found = inputs.get("forward") if isinstance(inputs, Mapping) else None
    if isinstance(inputs, Mapping) and found is None:
        what = Unknown("another method than `forward` is traced", "trace_module()", places=here(site))
        return unread(it, what, args, site)
    return _recorded(it, args, found or NONE, NONE, site)


def _recorded(it: Interpreter, args: Args, positional: Value, keywords: Value, site: Site | None) -> Value:
    """The module that was traced is the one that was given, and remembers its example inputs."""
    module = kept_module(Args(args.pos[:1], {k: v for k, v in args.kw.items() if k in ("func", "mod")}))
    if module is None:
        given = args.get(0, "func", "mod")
        if isinstance(given, Unknown):
            return unread(it, given, args, site)
        what = Unknown("a function is traced that is no module", "torch.jit.trace", places=here(site))
        return unread(it, what, args, site)
    it.captured += 1
    for one in getattr(module, "options", (module,)):
        if isinstance(one, Instance):
            it.heap.touch(one)
            one.attrs[TRACED_WITH] = Seq("tuple", [positional, keywords])
            one.attrs.pop(_SCRIPTED, None)
    return module


def _script(it: Interpreter, args: Args, site: Site | None) -> Value:
    """A scripted module is compiled: its lengths stay lengths."""
    module = kept_module(args)
    if module is None:
        given = args.get(0, "obj")
        return given if isinstance(given, (Function, Class)) else unread(it, _not_read(args, site), args, site)
    for one in getattr(module, "options", (module,)):
        if isinstance(one, Instance) and TRACED_WITH not in one.attrs:
            it.heap.touch(one)
            one.attrs[_SCRIPTED] = Const(True)
    return module


def _not_read(args: Args, site: Site | None) -> Unknown:
    return Unknown("what is scripted cannot be read", "script", places=here(site), flags=merge_flags(args.pos))


def traced_with(it: Interpreter, module: Value, site: Site) -> AbcMapping[str, Value] | None:
    """The example inputs of a traced module by parameter, where they are known; None for a scripted module.

    A converter gets a traced module where nothing else is seen.
    """
    if not isinstance(module, Instance) or not is_module(module):
        return {}
    if isinstance(module.attrs.get(_SCRIPTED), Const):
        return None
    example = module.attrs.get(TRACED_WITH)
    if not isinstance(example, Seq):
        return {}
    positional, keywords = example.items
    if isinstance(positional, Tensor):
        positional = Seq("tuple", [positional])
    return dict(bind_inputs(it, module, positional, keywords, site)[0])


def _save(it: Interpreter, args: Args, site: Site | None) -> Value:
    """`torch.jit.save(module, file)`: the same script may load it again before it converts it."""
    module, file = args.get(0, "m"), args.get(1, "f")
    if file is not None and isinstance(module, Instance) and is_module(module):
        keep(it, file, module)
    return NONE


def _load(it: Interpreter, args: Args, site: Site | None) -> Value:
    what = Unknown("a traced module that is read from a file", "torch.jit.load()", places=here(site))
    return kept(it, args.get(0, "f"), what)


NATIVES: dict[str, Value] = {
    "torch.jit.save": Native("torch.jit.save", _save),
    "torch.jit.load": Native("torch.jit.load", _load),
    "torch.jit.trace": Native("torch.jit.trace", _trace),
    "torch.jit.trace_module": Native("torch.jit.trace_module", _trace_module),
    "torch.jit.script": Native("torch.jit.script", _script),
}
