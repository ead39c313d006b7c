"""Classes of a library that only keep what they are given."""

from __future__ import annotations

from collections.abc import Mapping as AbcMapping

from auditor.interpreter import Interpreter
from auditor.objects.inheritance import OBJECT
from auditor.places import Site
from auditor.values import NONE, Args, Instance, NativeClass, Seq, Value, merge_flags


def record(dotted: str, *names: str, wraps: AbcMapping[str, NativeClass] | None = None) -> NativeClass:
    """The class `dotted`, whose constructor keeps its arguments as attributes, by position or name.

    A sequence under a name in `wraps` is kept as an object of that class, whose attribute of the same name it is.
    """

    def init(it: Interpreter, args: Args, site: Site | None) -> Value:
        obj = args.pos[0]
        assert isinstance(obj, Instance)
        for name, value in zip(names, args.pos[1:], strict=False):
            obj.attrs[name] = value
        obj.attrs.update({k: v for k, v in args.kw.items() if k in names})
        if args.more is not None:
            for name in names:
                obj.attrs.setdefault(name, args.more.child(f".{name}"))
        for name, cls in (wraps or {}).items():
            given = obj.attrs.get(name)
            if isinstance(given, Seq):
                obj.attrs[name] = Instance(cls, {name: given}, places=given.places, flags=given.flags)
        obj.flags = merge_flags(args.all())
        return NONE

    return NativeClass(dotted, {"__init__": init}, (OBJECT,))
