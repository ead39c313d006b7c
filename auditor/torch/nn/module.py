"""What a module is, and the modules among the arguments of a call."""

from __future__ import annotations

from auditor.objects.inheritance import OBJECT, mro
from auditor.values import Args, Const, ExternalObject, Instance, NativeClass, Union, Unknown, Value

MODULE = NativeClass("torch.nn.Module", {}, (OBJECT,), {"training": Const(False)}, closed=True)
"""Its methods are those of the other files here; `auditor.torch.modules` puts them in."""


def self_of(args: Args) -> Instance:
    obj = args.pos[0]
    assert isinstance(obj, Instance)
    return obj


def is_module(v: Value) -> bool:
    return isinstance(v, Instance) and MODULE in mro(v.cls)


def kept_module(args: Args) -> Value | None:
    """The first argument that is a module, or one of several values of which one is, or an object that holds one."""
    for v in args.all():
        if find_module(Args([v])) is not None:
            return v if not isinstance(v, ExternalObject) else find_module(Args([v]))
    return None


def unknown_module(args: Args) -> Unknown | None:
    """The first argument of a call that takes a module, or of the object that it belongs to, when nobody knows it."""
    head = args.pos[0] if args.pos else None
    while isinstance(head, ExternalObject):
        if len(args.pos) > 1 and isinstance(args.pos[1], Unknown):
            return args.pos[1]
        args, head = head.args, head.args.pos[0] if head.args.pos else None
    return head if isinstance(head, Unknown) else None


def find_module(args: Args) -> Instance | None:
    """The first module among the arguments, or among those of an object that holds one."""
    for v in args.all():
        if isinstance(v, Instance) and is_module(v):
            return v
        if isinstance(v, Union):
            inner = find_module(Args(list(v.options)))
            if inner is not None:
                return inner
        if isinstance(v, ExternalObject):
            inner = find_module(v.args)
            if inner is not None:
                return inner
    return None
