"""What is there on some ways through a script only."""

from __future__ import annotations

from auditor.values.base import Value
from auditor.values.unknown import Union, Unknown


class Absent(Unknown):
    """A name or key that exists in some worlds only."""


class Deleted(Unknown):
    """What is left of a name after `del`."""


def absent(value: Value) -> Absent:
    """What stands beside a value on the way on which it is not set."""
    return Absent("set on one of two ways only", places=value.places, flags=value.flags)


def maybe_absent(v: Value) -> bool:
    """Whether an entry or attribute is not there on one of the ways."""
    return isinstance(v, Union) and any(isinstance(o, Absent) for o in v.options)


def options_present(v: Value) -> list[Value]:
    """What a value may be on the ways on which it is there."""
    return [o for o in v.options if not isinstance(o, Absent)] if isinstance(v, Union) else [v]
