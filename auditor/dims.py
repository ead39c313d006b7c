"""Symbolic dimensions: integer polynomials over atoms, exact where a shape computation is exact.

A dimension is an `int` or a `Poly`. An `Atom` stands for a number nobody knows before run time: the query length, a
value of the configuration, or the result of an operation that is not polynomial. `Atom.query` says whether the number
can depend on the query length; a dimension with such an atom is never taken for a constant.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

_ids = itertools.count()


@dataclass(frozen=True, slots=True, eq=False)
class Atom:
    """A number without a value. Two atoms are equal only when they are the same object.

    `traced`: whatever the dimension was when the model was traced, for every later call. `flexible`: an axis of an
    input goes into it, so that it differs from call to call. `made`: the operation and its operands, when it has any.
    `counted`: a loop that is the same in every call counts its rounds (its layers, say) with it, from 0 on, of which
    there are as many as `below` where that is known. `chosen`: a condition, a bound or the model's own values have
    chosen it.
    """

    name: str
    query: bool = False
    wraps: bool = False
    minimum: int = 1
    traced: bool = False
    flexible: bool = False
    made: tuple[str, Dim, Dim] | None = field(default=None, repr=False)
    counted: bool = False
    below: Dim | None = field(default=None, repr=False)
    chosen: bool = False
    number: int = field(default_factory=lambda: next(_ids))

    @property
    def read(self) -> bool:
        """Whether it was read off a tensor: any number that the model computes, or that goes in."""
        return self.name == "item"


Monomial = tuple[Atom, ...]


@dataclass(frozen=True, slots=True)
class Poly:
    """A sum of monomials with integer coefficients, in a canonical order; never a plain integer."""

    terms: tuple[tuple[Monomial, int], ...]

    @property
    def query(self) -> bool:
        """Whether the value can depend on the query length."""
        for m, _ in self.terms:
            for a in m:
                if a.query:
                    return True
        return False

    @property
    def wraps(self) -> bool:
        """Whether a modulo went into the value."""
        return any(a.wraps for m, _ in self.terms for a in m)

    @property
    def flexible(self) -> bool:
        """Whether the value differs from call to call, with the shapes of the inputs."""
        for m, _ in self.terms:
            for a in m:
                if a.flexible:
                    return True
        return False

    @property
    def counted(self) -> bool:
        """Whether nothing but rounds that are counted went into the value: it is a constant of the graph."""
        return all(a.counted for m, _ in self.terms for a in m)

    @property
    def traced(self) -> bool:
        """Whether the value is a constant of the trace in part."""
        return any(a.traced for m, _ in self.terms for a in m)

    @property
    def remainder(self) -> bool:
        """Whether this is a remainder, by a modulo or spelled as `a - a // n * n`."""
        quotients = ([a for a in m if a.name.startswith("div(")] for m, c in self.terms if c < 0)
        return self.wraps or any(q and not any(a.counted for a in q) for q in quotients)

    @property
    def atoms(self) -> frozenset[Atom]:
        """All that the value depends on."""
        return frozenset(a for m, _ in self.terms for a in m)

    def __str__(self) -> str:
        def term(m: Monomial, c: int) -> str:
            names = "*".join(a.name for a in m)
            return str(c) if not m else names if c == 1 else f"{c}*{names}"

        return "+".join(term(m, c) for m, c in self.terms).replace("+-", "-")

    __repr__ = __str__


Dim = int | Poly

_EMPTY: Monomial = ()
_LONGEST = 400
_memo: dict[tuple[str, Dim, Dim], Atom] = {}


def symbol(atom: Atom) -> Poly:
    """The number that an atom is, as a polynomial."""
    return Poly((((atom,), 1),))


def _normal(terms: dict[Monomial, int]) -> Dim:
    kept = {m: c for m, c in terms.items() if c}
    if not kept:
        return 0
    if len(kept) == 1:
        ((m, c),) = kept.items()
        return Poly(((m, c),)) if m else c
    return Poly(tuple(sorted(kept.items(), key=lambda t: [a.number for a in t[0]])))


def _terms(d: Dim) -> tuple[tuple[Monomial, int], ...]:
    return d.terms if isinstance(d, Poly) else ((_EMPTY, d),)


def counts_from(d: Dim, whole: Dim) -> bool:
    """Whether a dimension is `whole`, and something else more or less."""
    return set(_terms(whole)) <= set(_terms(d))


def add(a: Dim, b: Dim) -> Dim:
    """`a + b`, an integer where all symbols cancel, as is the result of every operation here."""
    if isinstance(a, int) and isinstance(b, int):
        return a + b
    out = dict(_terms(a))
    for m, c in _terms(b):
        out[m] = out.get(m, 0) + c
    return _normal(out)


def neg(a: Dim) -> Dim:
    """`-a`."""
    return mul(a, -1)


def sub(a: Dim, b: Dim) -> Dim:
    """`a - b`."""
    return add(a, neg(b))


def mul(a: Dim, b: Dim) -> Dim:
    """`a * b`."""
    if isinstance(a, int) and isinstance(b, int):
        return a * b
    if a == 1 or b == 1:
        return b if a == 1 else a
    out: dict[Monomial, int] = {}
    for (m, c), (n, d) in itertools.product(_terms(a), _terms(b)):
        key = tuple(sorted(m + n, key=lambda x: x.number)) if m and n else m or n
        out[key] = out.get(key, 0) + c * d
    return _normal(out)


def product(dims: Iterable[Dim]) -> Dim:
    """The number of elements of a shape; 1 for none."""
    out: Dim = 1
    for d in dims:
        out = mul(out, d)
    return out


def exact_div(a: Dim, b: Dim) -> Dim | None:
    """`a / b` when the division of polynomials leaves no remainder, else None."""
    if b == 0:
        return None
    if a == 0 or b == 1:
        return a
    if a == b:
        return 1
    if isinstance(a, int) and isinstance(b, int):
        return a // b if a % b == 0 else None
    divisor = _terms(b)
    rest = dict(_terms(a))
    quotient: dict[Monomial, int] = {}
    lead, lead_c = max(divisor, key=_order)
    for _ in range(32):
        if not rest:
            return _normal(quotient)
        m, c = max(rest.items(), key=_order)
        q = _monomial_div(m, lead)
        if q is None or c % lead_c:
            return None
        quotient[q] = quotient.get(q, 0) + c // lead_c
        for n, d in divisor:
            key = tuple(sorted(q + n, key=lambda x: x.number))
            rest[key] = rest.get(key, 0) - c // lead_c * d
            if not rest[key]:
                del rest[key]
    return None


def _order(term: tuple[Monomial, int]) -> tuple[int, list[int]]:
    return len(term[0]), [a.number for a in term[0]]


def _monomial_div(m: Monomial, n: Monomial) -> Monomial | None:
    left = list(m)
    for a in n:
        if a not in left:
            return None
        left.remove(a)
    return tuple(left)


def opaque(op: str, a: Dim, b: Dim = 0) -> Poly:
    """The memoized result of a non-polynomial operation: equal operands give the equal dimension."""
    atom = _memo.get((op, a, b))
    if atom is None:
        query = any(isinstance(d, Poly) and d.query for d in (a, b))
        counted = (isinstance(a, int) or a.counted) and not (isinstance(b, Poly) and differs(b))
        wraps = (op == "mod" and not counted) or any(isinstance(d, Poly) and d.wraps for d in (a, b))
        name = f"{op}({a},{b})"
        name = name if len(name) <= _LONGEST else f"{op}(...)"  # names double when operations nest
        flexible = any(map(is_flexible, (a, b)))
        least = 1 if op in ("either", "reshape") else 0
        atom = _memo[(op, a, b)] = Atom(name, query, wraps, least, flexible=flexible, made=(op, a, b), counted=counted)
    return symbol(atom)


def differs(a: Poly) -> bool:
    """Whether a number may differ from call to call: an input's length or a value read from a tensor goes into it."""
    return a.query or a.flexible or a.traced or any(x.read for x in a.atoms)


def floordiv(a: Dim, b: Dim) -> Dim:
    """`a // b`: a symbol of its own where it does not come out even, and by 0 (the program would end there)."""
    if isinstance(a, int) and isinstance(b, int):
        return a // b if b else opaque("div", a, b)
    exact = exact_div(a, b)
    return opaque("div", a, b) if exact is None else exact


def mod(a: Dim, b: Dim) -> Dim:
    """`a % b`: a symbol of its own, which says that a remainder went into it, where either is not known."""
    if isinstance(a, int) and isinstance(b, int) and b:
        return a % b
    return opaque("mod", a, b)


def either(a: Dim, b: Dim) -> Dim:
    """The join of two dimensions: equal ones stay, others become one unknown number."""
    if a == b:
        return a
    first, second = sorted((a, b), key=str)
    return opaque("either", first, second)


def lengths_in(d: Dim) -> frozenset[Atom]:
    """The axes of inputs that go into a dimension, whatever was made of them on the way."""
    found: set[Atom] = set()
    for atom in d.atoms if isinstance(d, Poly) else ():
        made = atom.made[1:] if atom.made is not None else ()
        found.update(*map(lengths_in, made)) if made else found.update({atom} if atom.flexible else ())
    return frozenset(found)


def is_query(d: Dim) -> bool:
    """Whether a dimension is the query length itself: as many rows as go in, and none that a cache kept."""
    if not isinstance(d, Poly) or len(d.terms) != 1:
        return False
    atoms, count = d.terms[0]
    return count == 1 and len(atoms) == 1 and atoms[0].query and atoms[0].made is None


def depends_on_query(d: Dim) -> bool:
    """Whether a dimension differs with the number of tokens that go in."""
    return isinstance(d, Poly) and d.query


def is_flexible(d: Dim) -> bool:
    """Whether a dimension differs from call to call, with the shapes of the inputs: those of the query or a cache."""
    return isinstance(d, Poly) and d.flexible


def less(a: Dim, b: Dim) -> bool | None:
    """`a < b` for every value of the atoms (each at least its `minimum`), or None when that cannot be told."""
    d = sub(b, a)
    if isinstance(d, int):
        return d > 0
    least = 0
    for m, c in d.terms:
        bound = c
        for atom in m:
            bound *= atom.minimum
        least += bound
    rest = [c for m, c in d.terms if m]
    if all(c > 0 for c in rest) and least > 0:
        return True
    if all(c < 0 for c in rest) and least <= 0:
        return False
    return None


def equal(a: Dim, b: Dim) -> bool | None:
    """`a == b` for every value of the atoms, or None when that cannot be told."""
    if a == b:
        return True
    if less(a, b) or less(b, a):
        return False
    return None


def alternatives(d: Dim) -> Iterator[Dim]:
    """What a dimension that is one of several may be; any other is itself."""
    atom = d.terms[0][0][0] if isinstance(d, Poly) and len(d.terms) == 1 and len(d.terms[0][0]) == 1 else None
    if atom is not None and atom.made is not None and atom.made[0] == "either":
        yield from alternatives(atom.made[1])
        yield from alternatives(atom.made[2])
    else:
        yield d


def options(d: Dim) -> Iterator[Dim]:
    """What a dimension that is the larger or the smaller of two may be; any other is itself."""
    atom = d.terms[0][0][0] if isinstance(d, Poly) and len(d.terms) == 1 and len(d.terms[0][0]) == 1 else None
    if atom is not None and atom.made is not None and atom.made[0] in ("max", "min"):
        yield from options(atom.made[1])
        yield from options(atom.made[2])
    else:
        yield d


def at(d: Dim, values: Mapping[Atom, int]) -> int | None:
    """The dimension when its atoms have these values; None when one has none."""
    if isinstance(d, int):
        return d
    total = 0
    for m, c in d.terms:
        for atom in m:
            value = values.get(atom)
            if value is None and atom.made is not None:
                value = _made_at(atom.made, values)
            if value is None:
                return None
            c *= value
        total += c
    return total


def _made_at(made: tuple[str, Dim, Dim], values: Mapping[Atom, int]) -> int | None:
    op, a, b = made
    x, y = at(a, values), at(b, values)
    if x is None or y is None:
        return None
    match op:
        case "div" if y:
            return x // y
        case "mod" if y:
            return x % y
        case "min":
            return min(x, y)
        case "max":
            return max(x, y)
    return None
