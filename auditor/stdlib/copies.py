"""`copy`: a copy of a value, of its surface or of all that it holds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from auditor.interpreter import Handler
from auditor.values import Bound, Instance, Mapping, Native, Seq, Star, Tensor, Test, Union, Unknown, Value
from auditor.values.absence import Absent, Deleted


def copied(value: Value, deep: bool, seen: dict[int, Value] | None = None) -> Value:
    """`copy.copy` or `copy.deepcopy`."""
    seen = {} if seen is None else seen
    if id(value) in seen:
        return seen[id(value)]

    def inner(v: Value) -> Value:
        return copied(v, True, seen) if deep else v

    match value:
        case Seq():
            out: Value = Seq(value.kind, [], value.rest, places=value.places, flags=value.flags)
            seen[id(value)] = out
            assert isinstance(out, Seq)
            out.items = [inner(i) for i in value.items]
            return out
        case Star(items=items):
            return Star(tuple(inner(i) for i in items), value.count)
        case Union() if deep:
            either = replace(value, options=tuple(inner(o) for o in value.options))
            seen[id(value)] = either
            if value.guard is not None:
                test, when, otherwise = value.guard
                either.guard = (inner(test), inner(when), inner(otherwise))
            either.test = _asked(value.test, inner)
            return either
        case Bound() if deep:
            return replace(value, receiver=inner(value.receiver))
        case Mapping():
            new = Mapping({}, value.rest, value.missing, places=value.places, flags=value.flags)
            seen[id(value)] = new
            new.entries = {k: (n, inner(v)) for k, (n, v) in value.entries.items()}
            return new
        case Instance():
            copy = Instance(value.cls, {}, value.payload, value.taint, places=value.places, flags=value.flags)
            copy.born = value.born  # a copy of the element of a list belongs to that list's rounds
            seen[id(value)] = copy
            copy.attrs = {n: inner(v) for n, v in value.attrs.items()}
            if isinstance(value.payload, (Seq, Mapping)):
                copy.payload = inner(value.payload)
            return copy
        case Absent() | Deleted():
            return value
        case Unknown():
            twin = value.twin()
            seen[id(value)] = twin
            twin.test = _asked(value.test, inner)
            return twin
        case Tensor():
            return value
    return value


def _asked(test: Test | None, inner: Callable[[Value], Value]) -> Test | None:
    return None if test is None else (test[0], inner(test[1]), test[2])


def _copy(deep: bool) -> Handler:
    return lambda it, args, site: copied(args.pos[0], deep)


NATIVES: dict[str, Value] = {
    "copy.copy": Native("copy", _copy(False)),
    "copy.deepcopy": Native("deepcopy", _copy(True)),
}
