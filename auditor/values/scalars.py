"""Scalars of Python, known, in part or as a polynomial."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeGuard

from auditor.dims import Dim, Poly
from auditor.values.base import Value


@dataclass(slots=True)
class Const(Value):
    """A Python scalar: None, bool, int, float, complex, str, bytes or Ellipsis."""

    value: Any


@dataclass(slots=True)
class Pattern(Value):
    """A string with unknown parts: `text` has a `*` for each of them, and `number` stands for the only one."""

    text: str
    number: Dim | None = None


@dataclass(slots=True)
class Num(Value):
    """An integer that is known as a polynomial only."""

    dim: Poly


NONE = Const(None)
TRUE = Const(True)
FALSE = Const(False)


def is_none(v: Value | None) -> bool:
    """Whether there is a value, and it is surely `None`."""
    return type(v) is Const and v.value is None


def is_given(v: Value | None) -> TypeGuard[Value]:
    """Whether a call has an argument that is not `None`."""
    return v is not None and not (type(v) is Const and v.value is None)
