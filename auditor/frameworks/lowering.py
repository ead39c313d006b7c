"""What a script adds to coremltools itself: lowerings of PyTorch's operators, and passes over the program.

Both may change what a graph computes, whatever `forward` says. A lowering that replaces one of coremltools' own is read
for the operations that it builds; what a pass of the script's own does is not followed.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from auditor import operators
from auditor.containers.iteration import iterate
from auditor.frameworks.tables import tables
from auditor.interpreter import Frame, Interpreter
from auditor.loader import LOWERING_SET
from auditor.objects.inheritance import OBJECT
from auditor.places import Site, here
from auditor.roles import words
from auditor.syntax import parts
from auditor.values import (
    NONE,
    Args,
    Const,
    External,
    Function,
    Instance,
    Mapping,
    Native,
    NativeClass,
    Seq,
    Unknown,
    Value,
    text_of,
)

_TORCH = "coremltools.converters.mil.frontend.torch"
_OPS = f"{_TORCH}.ops"
_KEEPING = """
abs acos add asin atan cast ceil clip concat const cos elu equal erf exp exp2 expand fill floor gelu greater identity
inverse layer leaky less log logical maximum minimum mod mul not pow prelu range real relu reshape rsqrt scaled select
shape sigmoid sign silu sin softmax softplus softsign sqrt square squeeze stack sub tan tanh threshold tile transpose
"""
_ROW_BY_ROW = frozenset(_KEEPING.split())
"""First words of the operations of MIL that give each row of the query what that row has given."""
_IDENTITIES = """
alias assert clone contiguous copy detach dropout float format half identity int lift memory noop prim to type
"""
_MAY_BUILD_NOTHING = frozenset(_IDENTITIES.split())
"""Words of PyTorch's operators that may give back what they receive."""


def _registered(it: Interpreter, args: Args, site: Site | None) -> Value:
    """`@register_torch_op`, with or without arguments."""
    function = args.get(0, "_func")
    if isinstance(function, Function):
        return function
    override = operators.truth(args.kw["override"]) if "override" in args.kw else False
    alias = args.kw.get("torch_alias", NONE)

    def decorate(it: Interpreter, inner: Args, where: Site | None) -> Value:
        function = inner.pos[0]
        if override is not False:
            _replaced(it, function, _names(alias), site)
        return function

    return Native("register_torch_op", decorate)


def _names(alias: Value) -> list[str]:
    return [text_of(v) or "" for v in (alias.items if isinstance(alias, Seq) else [alias])]


def _replaced(it: Interpreter, function: Value, alias: list[str], site: Site | None) -> None:
    name = function.name if isinstance(function, Function) else ""
    own = {w for n in (name, *alias) for w in words(n)} | ({"matmul"} if "attention" in name else set())
    site = site or (function.site if isinstance(function, Function) else None)
    found = list(_built(it, function, set())) if isinstance(function, Function) else ["what cannot be read"]
    bad = [f"`{m}`" for m in found if not (said := words(m)) or (said[0] not in _ROW_BY_ROW and own.isdisjoint(said))]
    if not found and own.isdisjoint(_MAY_BUILD_NOTHING):
        bad = ["nothing that is seen"]
    if bad:
        reason = f"the lowering of `{alias[0] or name}` is replaced by one that builds {bad[0]}"
        it.poison = it.poison or Unknown(reason, "register_torch_op", places=here(site))


def _built(it: Interpreter, function: Function, seen: set[int]) -> Iterator[str]:
    """The operations that a function builds, by itself, by a function that it names or by another lowering."""
    if id(function.node) in seen or function.site is None:
        return
    seen.add(id(function.node))
    frame = Frame(function.env, function.site.statement, it.loader.module_of(function.env))
    todo = [function.node.body]
    while todo:
        node = todo.pop()
        todo += parts(node)
        if isinstance(node, cst.Attribute) and isinstance(node.value, cst.Name):
            owner = it.eval(node.value, frame)
            dotted = owner.dotted if isinstance(owner, External) else ""
            if dotted.endswith("Builder") or (dotted == _OPS and not node.attr.value.startswith("_")):
                yield node.attr.value
        elif isinstance(node, cst.Call) and isinstance(node.func, cst.Name):
            called = it.eval(node.func, frame)
            if isinstance(called, Function):
                yield from _built(it, called, seen)
            elif isinstance(called, External) and called.dotted.startswith(f"{_OPS}.") and "._" not in called.dotted:
                yield called.dotted.rpartition(".")[2]


def _set_by_name(it: Interpreter, args: Args, site: Site | None) -> Value:
    """`_TORCH_OPS_REGISTRY.set_func_by_name(function, name)` and `register_func(function, torch_alias, override)`."""
    function, alias = args.get(0, "func"), args.get(1, "name", "torch_alias") or NONE
    if function is not None:
        _replaced(it, function, _names(alias), site)
    return NONE


def _updated(it: Interpreter, args: Args, site: Site | None) -> Value:
    """`_TORCH_OPS_REGISTRY.name_to_func_mapping.update({name: function})`."""
    given = args.pos[0] if args.pos else NONE
    entries = list(given.entries.values()) if isinstance(given, Mapping) else []
    for name, function in [*entries, *((Const(n), f) for n, f in args.kw.items())]:
        _replaced(it, function, _names(name), site)
    return NONE


def _added(it: Interpreter, args: Args, site: Site | None) -> Value:
    """`append_pass(name)` and `insert_pass(index, name)`."""
    given = args.kw.get("pass_name") or args.pos[-1]
    _known(it, given, site)
    return NONE


def _known(it: Interpreter, given: Value, site: Site | None) -> None:
    name = text_of(given)
    if name not in tables().passes:
        reason = f"`{name or 'a pass'}` is no pass of coremltools: what it makes of the program is not followed"
        it.poison = it.poison or Unknown(reason, "pass", places=here(site))


def _pipeline(it: Interpreter, args: Args, site: Site | None) -> Value:
    """`PassPipeline(pass_names)`."""
    given = args.get(1, "pass_names")
    if given is not None and site is not None:
        _all(it, given, site)
    return Instance(PIPELINE, places=here(site))


def _all(it: Interpreter, given: Value, site: Site) -> None:
    source = iterate(it, given, site)
    for name in (*source.items, *((source.rest,) if source.rest is not None else ())):
        _known(it, name, site)


def _set(it: Interpreter, args: Args, site: Site | None) -> Value:
    """`pipeline.passes = [...]`."""
    if text_of(args.pos[1]) == "passes" and site is not None:
        _all(it, args.pos[2], site)
    return NONE


def _quiet(it: Interpreter, args: Args, site: Site | None) -> Value:
    """Passes that are left out, and options of passes, change nothing that a fact reads."""
    return Native("method", lambda it, inner, site: Seq("list", []))


PIPELINE = NativeClass(
    "coremltools.PassPipeline",
    {"__new__": _pipeline, "append_pass": _added, "insert_pass": _added, "__setattr__": _set, "__getattr__": _quiet},
    (OBJECT,),
)
_NAMED = ("DEFAULT", "EMPTY", "CLEANUP", "DEFAULT_PALETTIZATION", "DEFAULT_PRUNING")
PIPELINE.attributes.update({name: Instance(PIPELINE) for name in _NAMED})


def _own_pass(it: Interpreter, args: Args, site: Site | None) -> Value:
    """`@register_pass(namespace, override=False)`: one that replaces a pass of coremltools runs without being named."""
    if "override" in args.kw and operators.truth(args.kw["override"]) is not False:
        reason = "a pass of coremltools is replaced: what the script's own makes of the program is not followed"
        it.poison = it.poison or Unknown(reason, "register_pass", places=here(site))
    return Native("register_pass", lambda it, inner, site: inner.pos[0])


NATIVES: dict[str, Value] = {
    **{
        f"{space}.register_torch_op": Native("register_torch_op", _registered)
        for space in ("coremltools.converters.mil", _TORCH, f"{_TORCH}.ops", f"{_TORCH}.torch_op_registry")
    },
    **{
        f"{_TORCH}.torch_op_registry._TORCH_OPS_REGISTRY.{name}": Native(name, _set_by_name)
        for name in ("set_func_by_name", "register_func")
    },
    f"{_TORCH}.torch_op_registry._TORCH_OPS_REGISTRY.name_to_func_mapping.update": Native("update", _updated),
    LOWERING_SET: Native("lowering", _set_by_name),
    "coremltools.PassPipeline": PIPELINE,
    "coremltools.converters.mil.mil.passes.pass_pipeline.PassPipeline": PIPELINE,
    "coremltools.converters.mil.mil.passes.pass_registry.register_pass": Native("register_pass", _own_pass),
}
