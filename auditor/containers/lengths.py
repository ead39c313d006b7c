"""Lengths, and numbers that must be known."""

from __future__ import annotations

from auditor import operators
from auditor.interpreter import Interpreter, RaiseSignal
from auditor.joins import union
from auditor.memo import by_identity
from auditor.places import Site
from auditor.values import Args, Const, Instance, Mapping, Seq, Tensor, Union, Unknown, Value, as_dim, is_given, number
from auditor.values.absence import maybe_absent


def length(it: Interpreter, value: Value, site: Site | None) -> Value:
    """`len(value)`."""
    match value:
        case Union():
            return union(length(it, o, site) for o in value.options)
        case Seq():
            if value.exact:
                return Const(len(value.items), places=value.places, flags=value.flags)
            count = value.count
            if count is not None:
                return number(count, (value,))
            return _length_by(value.items[0] if value.items else value.rest, value)
        case Mapping():
            if value.rest is not None:
                return value.rest.child(".len", "int")
            maybe = list(filter(maybe_absent, value.values()))
            if maybe:
                return operators.unknown_from("the length of a dict whose entries depend", "int", *maybe, name="len")
            return Const(len(value.entries), places=value.places, flags=value.flags)
        case Const(value=str() | bytes() as s):
            return operators.derived(len(s), value)
        case Tensor(shape=shape):
            if shape:
                return number(shape[0], (value,))
        case Instance(payload=(Seq() | Mapping()) as inner):
            return length(it, inner, site)
        case Instance():
            try:
                return it.call(it.get(value, "__len__", site), Args(), site)
            except RaiseSignal:
                pass
        case Unknown():
            return value.child(".len", "int")
    return operators.unknown_from("the length of a value that is not known", "int", value)


@by_identity
def _length_by(first: Value | None, value: Seq) -> Unknown:
    """A length that nobody knows: the same for sequences that begin with the same item."""
    return Unknown("the length of a sequence of unknown length", "len", "int", places=value.places)


def integer(value: Value | None, default: int | None = None) -> int | None:
    """A concrete integer argument; `default` when it was not given."""
    d = as_dim(value) if value is not None else None
    if isinstance(d, int):
        return d
    return None if is_given(value) else default
