"""Symbolic numbers for tests: a query, one that may be 0, one that is 2 or more; and what they come to."""

from __future__ import annotations

from collections.abc import Mapping

from auditor import dims
from auditor.dims import Atom, Dim

Q = Atom("q", query=True)
H = Atom("h", minimum=0)
N = Atom("n", minimum=2)
q, h, n = (dims.symbol(a) for a in (Q, H, N))


def value(d: Dim, numbers: Mapping[Atom, int]) -> int:
    """The dimension where its atoms have these values."""
    if isinstance(d, int):
        return d
    total = 0
    for monomial, factor in d.terms:
        for atom in monomial:
            factor *= numbers[atom]
        total += factor
    return total
