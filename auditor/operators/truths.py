"""`bool(value)`."""

from __future__ import annotations

from auditor import dims
from auditor.answers import common
from auditor.objects.inheritance import mro
from auditor.values import (
    Class,
    Const,
    External,
    ExternalObject,
    Instance,
    Mapping,
    Native,
    Num,
    Pattern,
    Seq,
    Star,
    Tensor,
    Union,
    Unknown,
    Value,
)
from auditor.values.absence import maybe_absent


def truth(v: Value) -> bool | None:
    """`bool(v)`, or None when it is unknown."""
    match v:
        case Const(value=x):
            return bool(x)
        case Pattern(text=t):
            return True if t.replace("*", "") else None
        case Num(dim=d):
            return True if dims.less(0, d) else None
        case Seq(items=items, rest=rest):
            if any(not isinstance(i, Star) for i in items):
                return True
            return None if items or rest else False
        case Mapping(entries=entries, rest=rest):
            if any(not maybe_absent(e) for _, e in entries.values()):
                return True
            return None if entries or rest else False
        case Union(options=options):
            return common([truth(o) for o in options])
        case Unknown() | Tensor() | ExternalObject() | External():
            return None
        case Instance(payload=Seq() | Mapping() as inner):
            return truth(inner)
        case Instance() if defines(v, "__bool__", "__len__"):
            return None
    return True


def defines(v: Value, *names: str) -> bool:
    """Whether a class of the script, behind an instance, has one of these methods, or extends a built-in type."""
    if not isinstance(v, Instance):
        return False
    return any(
        (isinstance(c, Class) and any(name in c.env.names for name in names)) or isinstance(c, Native)
        for c in mro(v.cls)
    )
