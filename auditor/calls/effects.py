"""What a call that nobody can read may have changed of what it was given."""

from __future__ import annotations

from collections.abc import Iterable

from auditor.interpreter import Interpreter
from auditor.joins import union
from auditor.objects.inheritance import mro
from auditor.roles import words
from auditor.syntax import names
from auditor.torch.modules import MODULE, is_module, walk
from auditor.values import (
    Args,
    Bound,
    Class,
    Const,
    External,
    Function,
    Instance,
    Mapping,
    Native,
    NativeClass,
    Num,
    Pattern,
    Seq,
    Star,
    Tensor,
    Union,
    Unknown,
    Value,
)

_PROGRAMS = ("torch.export.ExportedProgram", "coreai", "coremltools.models", "onnx")
"""Classes of ours whose objects are a graph: code that nobody can read may edit one."""

HANDED = "(handed)"
"""The method of a class of ours that is told when code that may change one of its objects receives it, and why."""
_READS = frozenset(
    {"get", "print", "dump", "show", "count", "write", "save", "log", "info", "debug", "validate", "check", "compare"}
    | {"visualize", "describe", "str", "summarize", "list", "inspect", "verify", "is", "has", "num", "assert", "test"}
)
"""Words with which the name of a function begins that changes nothing of what it is given."""


def hand(it: Interpreter, name: str, args: Args, cause: Unknown) -> None:
    """Tell the objects that a function nobody can read receives, unless it only reads them by its name."""
    for v in args.all():
        if isinstance(v, Instance) and isinstance(v.cls, NativeClass) and HANDED in v.cls.methods:
            said = words(name.removesuffix("()").rpartition(".")[2])
            if not said or said[0] not in _READS:
                v.cls.methods[HANDED](it, Args([v, cause]), None)


_MOST_TAINTED = 2_000
_HOLDING_NOTHING = frozenset({Const, Num, Pattern, Tensor, Unknown, External, Native})


def taint(it: Interpreter, args: Args, cause: Unknown) -> None:
    """Mark the modules among the arguments as changed by a call that nobody can read."""
    for v in args.all():
        _taint(it, v, cause, set())


def _taint(it: Interpreter, v: Value, cause: Unknown, seen: set[int]) -> None:
    if type(v) in _HOLDING_NOTHING or id(v) in seen or len(seen) > _MOST_TAINTED:
        return
    seen.add(id(v))
    if isinstance(v, Instance) and is_module(v):
        for _, m in list(walk(v)):
            if m.taint is None:
                it.heap.touch(m)
                m.taint = cause
    elif isinstance(v, Class) and MODULE in mro(v):
        it.poison = it.poison or cause  # it may have another `forward` now
    elif isinstance(v, Instance):
        if isinstance(v.cls, NativeClass) and v.cls.name.startswith(_PROGRAMS) and v.taint is None:
            it.heap.touch(v)
            v.taint = cause
        if hasattr(v.payload, "changed"):
            v.payload.changed(cause)
        for i in list(v.attrs.values()):
            _taint(it, i, cause, seen)
    else:
        for i in _reached(v):
            _taint(it, i, cause, seen)


def _reached(v: Value) -> Iterable[Value]:
    """What a call can reach through a value that it is given: the items of a container, the names of a function."""
    match v:
        case Seq(items=items) | Star(items=items) | Union(options=items):
            return items
        case Mapping():
            return v.values()
        case Bound():
            return (v.receiver,)
        case Function():  # should the call run it
            return [value for scope in v.env.scopes() for value in scope.names.values()]
    return ()


def spoil(it: Interpreter, args: Args, cause: Unknown) -> None:
    """Dicts and lists that a call that nobody can read may reach, by itself or by a function that it may call."""
    for v in args.all():
        _spoil(it, v, cause)
        for inner in _reached(v) if isinstance(v, Function) else ():
            _spoil(it, inner, cause)


_CHANGES = frozenset({"adjust", "apply", "configure", "merge", "override", "overrides", "set", "tune", "update"})


def spoil_settings(it: Interpreter, dotted: str, args: Args, cause: Unknown) -> None:
    """Objects of the sources that go into a call that nobody can read and that says that it changes what it is given.

    One that loads, logs or builds something (most of them) leaves settings as they are; modules are marked elsewhere.
    """
    if _CHANGES.isdisjoint(words(dotted.rpartition(".")[2])):
        return
    for v in args.all():
        if isinstance(v, Instance) and isinstance(v.cls, Class) and not is_module(v):
            it.heap.touch(v)
            v.attrs = {k: union([x, cause]) for k, x in v.attrs.items()}


def _spoil(it: Interpreter, v: Value, cause: Unknown) -> None:
    if isinstance(v, Mapping):
        it.heap.touch(v)
        v.entries = {k: (n, union([x, cause])) for k, (n, x) in v.entries.items()}
        v.rest = v.rest or cause
    elif isinstance(v, Seq) and v.kind in ("list", "set", "deque"):
        it.heap.touch(v)
        v.items = [union([x, cause]) if not isinstance(x, Star) else x for x in v.items]
        v.rest = v.rest or cause


def handed(it: Interpreter, args: Args, cause: Unknown) -> None:
    """Functions that were handed to code that may run them: what they reach may have changed since."""
    for v in args.all():
        function = v.function if isinstance(v, Bound) else v
        if isinstance(v, Bound) and isinstance(function, Native) and isinstance(v.receiver, (Mapping, Seq)):
            spoil(it, Args([v.receiver]), cause)
        if not isinstance(function, Function):
            continue
        if isinstance(v, Bound):
            _taint(it, v.receiver, cause, set())
        said = names(function.node)
        for scope in function.env.scopes():
            reached = Args([value for name, value in scope.names.items() if name in said])
            taint(it, reached, cause)
            spoil(it, reached, cause)
