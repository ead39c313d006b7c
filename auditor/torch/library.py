"""Operators that a program adds to PyTorch (`torch.library`): a call by `torch.ops` runs their Python function.

An operator without one (a kernel in C++ or Metal, or a shape function alone) stays a call that nobody can read.
"""

from __future__ import annotations

from auditor.handlers import itself, nothing
from auditor.interpreter import Interpreter
from auditor.objects.inheritance import OBJECT
from auditor.places import Site
from auditor.values import NONE, Args, Instance, Native, NativeClass, Unknown, Value, is_given, text_of

_NO_RESULT = ("Meta", "Autograd")
"""Dispatch keys whose functions give shapes, or gradients, instead of what the operator computes."""
_BUILT_IN = ("aten", "prims")


def _library(it: Interpreter, args: Args, site: Site | None) -> Value:
    return Instance(LIBRARY, {"ns": args.get(0, "ns") or NONE})


def _impl(it: Interpreter, args: Args, site: Site | None) -> Value:
    """`impl(lib, name, dispatch_key)` and `impl("space::name", types)`, as decorators or with the function."""
    first = args.pos[0] if args.pos else args.get(0, "lib", "qualname") or NONE
    if isinstance(first, Instance) and first.cls is LIBRARY:
        name, key = args.get(1, "name", "op_name"), args.get(2, "dispatch_key")
        return _decorator(it, _full(first.attrs["ns"], name), key, None, site)
    return _decorator(it, text_of(first), args.get(1, "types"), args.get(2, "func"), site)


def _method_impl(it: Interpreter, args: Args, site: Site | None) -> Value:
    """`lib.impl(name, function, dispatch_key)`."""
    lib, name, function = args.pos[0], args.get(1, "op_name"), args.get(2, "fn")
    assert isinstance(lib, Instance)
    return _decorator(it, _full(lib.attrs["ns"], name), args.get(3, "dispatch_key"), function, site)


def _custom_op(it: Interpreter, args: Args, site: Site | None) -> Value:
    """`custom_op("space::name", mutates_args=...)`."""
    return _decorator(it, text_of(args.pos[0]), args.kw.get("device_types"), args.get(1, "fn"), site)


def _full(space: Value, name: Value | None) -> str | None:
    one, other = text_of(space), text_of(name) if name is not None else None
    if one is None or other is None:
        return None
    return other if "::" in other else f"{one}::{other}"


def _decorator(
    it: Interpreter, name: str | None, key: Value | None, function: Value | None, site: Site | None
) -> Value:
    kinds = text_of(key) if key is not None else ""
    computes = kinds is not None and not kinds.startswith(_NO_RESULT)

    def register(it: Interpreter, args: Args, site: Site | None) -> Value:
        if name is not None and "*" not in name and computes:
            _define(it, name, args.pos[0], site)
        return args.pos[0]

    if is_given(function):
        return register(it, Args([function]), site)
    return Native("register", register)


def _define(it: Interpreter, name: str, function: Value, site: Site | None) -> None:
    """Register under every way to spell the operator."""
    if site is None:
        return
    space, _, rest = name.partition("::")
    op, _, overload = rest.partition(".")
    if space in _BUILT_IN:
        it.poison = it.poison or Unknown(f"the operator `{name}`, which layers use, is replaced", places=(site,))
        return
    names = [f"torch.ops.{space}.{op}", f"torch.ops.{space}.{op}.{overload or 'default'}"]
    for dotted in names:
        it.loader.define_operator(dotted, function, site.path)


def _keep(it: Interpreter, args: Args, site: Site | None) -> Value:
    """A decorator that registers something else than what the operator computes."""
    return Native("keep", itself)


LIBRARY = NativeClass(
    "torch.library.Library", {"define": nothing, "impl": _method_impl, "_register_fake": nothing}, (OBJECT,)
)

NATIVES: dict[str, Value] = {
    "torch.library.Library": Native("Library", _library),
    "torch.library.define": Native("define", nothing),
    "torch.library.impl": Native("impl", _impl),
    "torch.library.custom_op": Native("custom_op", _custom_op),
    "torch.library.register_fake": Native("register_fake", _keep),
    "torch.library.impl_abstract": Native("impl_abstract", _keep),
}
