"""Values as numbers, keys and texts."""

from __future__ import annotations

from collections.abc import Iterable

from auditor.dims import Dim, Poly
from auditor.values.base import Value, origins
from auditor.values.containers import Key, Seq, Star
from auditor.values.objects import Class, External, ExternalObject, Instance
from auditor.values.scalars import Const, Num, Pattern
from auditor.values.unknown import Union, Unknown


def number(dim: Dim, like: Iterable[Value] = ()) -> Value:
    """A dimension as a value, with the places and flags of what it was computed from."""
    places, flags = origins(like)
    return Num(dim, places=places, flags=flags) if isinstance(dim, Poly) else Const(dim, places=places, flags=flags)


def as_dim(v: Value) -> Dim | None:
    """The value as a dimension; None when it is no number."""
    if isinstance(v, Const):
        if isinstance(v.value, bool):
            return int(v.value)
        if isinstance(v.value, int):
            return v.value
        return int(v.value) if isinstance(v.value, float) and v.value.is_integer() else None
    if isinstance(v, Num):
        return v.dim
    if isinstance(v, Unknown) and v.kind in ("", "int", "float", "data"):
        return v.dim
    return None


def as_data(v: Value) -> Value:
    """The value; for a name of an unread module, or an object of a library, data that nobody knows."""
    if isinstance(v, External):
        return v.unread or v
    if not isinstance(v, ExternalObject):
        return v
    return Unknown(f"what `{v.dotted}(...)` holds is not known", v.dotted, places=v.places, flags=v.flags)


def key_of(v: Value) -> Key | None:
    """A hashable key for a value used as a dict key or set member; None when it is unknown."""
    match v:
        case Const(value=x) if isinstance(x, (int, float)) and not isinstance(x, bool):
            return ("num", x)
        case Const(value=x):
            return (type(x).__name__, x)
        case Pattern(text=t):
            return ("pattern", t)
        case Num(dim=d):
            return ("dim", d)
        case Seq(kind="tuple", items=items, rest=None):
            keys = tuple(key_of(i) for i in items)
            return None if any(k is None for k in keys) else ("tuple", keys)
        case External(dotted=d):
            return ("external", d)
        case Unknown() | Union() | Star():
            return None
        case Instance(cls=Class() as cls) if any("__eq__" in c.env.names for c in _classes(cls)):
            return None
        case Instance(cls=Class(dataclass_fields=True) as cls, attrs=attrs):
            keys = tuple(key_of(a) for a in attrs.values())
            return None if any(k is None for k in keys) else ("data", (id(cls), keys))
        case _:
            return ("id", id(v))


def _classes(cls: Class) -> list[Class]:
    """A class and those of the sources that it derives from."""
    return [c for c in cls.mro_cache or (cls, *cls.bases) if isinstance(c, Class)]


def text_of(v: Value) -> str | None:
    """The string of a value, with `*` for unknown parts; None when it is no string."""
    if isinstance(v, Const) and isinstance(v.value, str):
        return v.value
    return v.text if isinstance(v, Pattern) else None
