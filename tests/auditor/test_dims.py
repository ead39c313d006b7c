"""Symbolic dimensions: the arithmetic is that of integers, and what is told of an order holds for every number."""

from __future__ import annotations

import itertools
import random

import pytest

from auditor import dims
from auditor.dims import Atom, Dim, Poly
from tests.auditor.symbolic import H, N, Q, h, n, q, value


def worlds(most: int = 4) -> list[dict[Atom, int]]:
    """All assignments with each atom between its minimum and a few more."""
    atoms = (Q, H, N)
    ranges = [range(a.minimum, a.minimum + most) for a in atoms]
    return [dict(zip(atoms, numbers, strict=True)) for numbers in itertools.product(*ranges)]


def some(seed: int, terms: int = 3) -> Dim:
    """A small polynomial over the three atoms; an integer now and then."""
    choose = random.Random(seed)
    out: Dim = choose.randint(-3, 3)
    for _ in range(choose.randint(0, terms)):
        factors = choose.choices([q, h, n], k=choose.randint(1, 2))
        out = dims.add(out, dims.mul(choose.choice([-2, -1, 1, 2, 3]), dims.product(factors)))
    return out


SEEDS = range(60)


@pytest.mark.parametrize("seed", SEEDS)
def test_arithmetic_is_that_of_integers(seed: int) -> None:
    a, b = some(seed), some(seed + 1000)
    for w in worlds():
        x, y = value(a, w), value(b, w)
        assert value(dims.add(a, b), w) == x + y
        assert value(dims.sub(a, b), w) == x - y
        assert value(dims.mul(a, b), w) == x * y
        assert value(dims.neg(a), w) == -x


@pytest.mark.parametrize("seed", SEEDS)
def test_equal_polynomials_are_equal_objects(seed: int) -> None:
    a, b, c = some(seed), some(seed + 1000), some(seed + 2000)
    assert dims.add(a, b) == dims.add(b, a)
    assert dims.mul(a, b) == dims.mul(b, a)
    assert dims.mul(a, dims.add(b, c)) == dims.add(dims.mul(a, b), dims.mul(a, c))
    assert dims.sub(dims.add(a, b), b) == a
    assert dims.sub(a, a) == 0
    assert dims.product([a, b, c]) == dims.mul(a, dims.mul(b, c))


@pytest.mark.parametrize("seed", SEEDS)
def test_a_number_is_never_a_polynomial(seed: int) -> None:
    a, b = some(seed), some(seed + 1000)
    for d in (a, dims.add(a, b), dims.mul(a, b), dims.sub(a, a), dims.mul(a, 0)):
        if isinstance(d, Poly):
            assert any(monomial for monomial, _ in d.terms)
            assert all(factor for _, factor in d.terms)


@pytest.mark.parametrize("seed", SEEDS)
def test_exact_div_undoes_mul(seed: int) -> None:
    a, b = some(seed), some(seed + 1000, terms=2)
    if b != 0:
        assert dims.exact_div(dims.mul(a, b), b) == a


@pytest.mark.parametrize("seed", SEEDS)
def test_what_exact_div_gives_is_the_quotient(seed: int) -> None:
    a, b = some(seed), some(seed + 1000, terms=1)
    quotient = dims.exact_div(a, b)
    if quotient is not None:
        assert dims.mul(quotient, b) == a


@pytest.mark.parametrize(
    ("a", "b", "quotient"),
    [
        (6, 3, 2),
        (7, 3, None),
        (0, 5, 0),
        (5, 0, None),
        (q, 0, None),
        (0, q, 0),
        (q, 1, q),
        (q, q, 1),
        (q, h, None),
        (q, 2, None),
        (dims.mul(64, q), 16, dims.mul(4, q)),
        (dims.mul(64, q), 48, None),
        (dims.product([8, q, h]), dims.mul(2, h), dims.mul(4, q)),
        (dims.mul(q, dims.add(h, 1)), dims.add(h, 1), q),
        (dims.add(q, 1), q, None),
        (8, q, None),
    ],
)
def test_exact_div(a: Dim, b: Dim, quotient: Dim | None) -> None:
    assert dims.exact_div(a, b) == quotient


_LESS = [
    # (a, b, whether a < b): q is 1 at least, h is 0, n is 2
    (1, 2, True),
    (2, 2, False),
    (3, 2, False),
    (0, q, True),
    (1, q, None),
    (q, 1, False),
    (q, 2, None),
    (q, dims.add(q, 1), True),
    (q, q, False),
    (dims.add(q, 1), q, False),
    (0, h, None),
    (-1, h, True),
    (h, 0, False),
    (1, n, True),
    (2, n, None),
    (n, 2, False),
    (3, dims.mul(2, n), True),
    (1, dims.mul(q, n), True),
    (2, dims.mul(q, n), None),
    (0, dims.mul(q, h), None),
    (q, h, None),
    (h, q, None),
    (dims.neg(q), 0, True),
    (dims.neg(h), 0, None),
    (dims.neg(h), 1, True),
    (dims.sub(q, n), 0, None),
]


@pytest.mark.parametrize(("a", "b", "answer"), _LESS)
def test_less(a: Dim, b: Dim, answer: bool | None) -> None:
    assert dims.less(a, b) is answer


@pytest.mark.parametrize("seed", range(200))
def test_what_is_told_of_an_order_holds_for_every_number(seed: int) -> None:
    a, b = some(seed), some(seed + 1000)
    less, equal = dims.less(a, b), dims.equal(a, b)
    for w in worlds():
        x, y = value(a, w), value(b, w)
        assert less is None or less is (x < y)
        assert equal is None or equal is (x == y)


@pytest.mark.parametrize(
    ("a", "b", "answer"),
    [
        (2, 2, True),
        (2, 3, False),
        (q, q, True),
        (q, 0, False),
        (q, 1, None),
        (h, 0, None),
        (n, 1, False),
        (q, h, None),
        (q, dims.add(q, 2), False),
        (dims.mul(2, q), dims.add(q, q), True),
        (dims.add(q, h), q, None),
    ],
)
def test_equal(a: Dim, b: Dim, answer: bool | None) -> None:
    assert dims.equal(a, b) is answer
    assert dims.equal(b, a) is answer


def test_atoms_of_one_name_are_different_numbers() -> None:
    first, second = dims.symbol(Atom("x")), dims.symbol(Atom("x"))
    assert first != second
    assert dims.equal(first, second) is None


def test_the_same_operation_on_the_same_dimensions_is_the_same_number() -> None:
    assert dims.floordiv(q, 2) == dims.floordiv(q, 2)
    assert dims.floordiv(q, 2) != dims.floordiv(h, 2)
    assert dims.mod(q, 2) == dims.mod(q, 2)
    assert dims.floordiv(dims.mul(6, q), 3) == dims.mul(2, q)
    assert dims.floordiv(7, 2) == 3
    assert dims.mod(7, 4) == 3


@pytest.mark.parametrize("d", [dims.floordiv(q, 2), dims.mod(q, 8), dims.either(q, 4), dims.opaque("max", 1, q)])
def test_what_is_computed_from_the_query_depends_on_it(d: Dim) -> None:
    assert dims.depends_on_query(d)
    assert dims.depends_on_query(dims.add(d, 1))
    assert not dims.depends_on_query(dims.sub(d, d))


def test_a_modulo_is_remembered() -> None:
    wrapped = dims.mod(h, 8)
    assert isinstance(wrapped, Poly)
    assert wrapped.wraps
    later = dims.opaque("max", dims.add(wrapped, 1), 3)
    assert later.wraps
    assert not h.wraps


def test_either() -> None:
    assert dims.either(4, 4) == 4
    assert dims.either(q, q) == q
    assert dims.either(4, h) == dims.either(h, 4)
    assert not isinstance(dims.either(1, 2), int)
    assert not dims.depends_on_query(dims.either(4, h))


def test_division_and_modulo_by_zero_are_numbers_nobody_knows() -> None:
    assert isinstance(dims.floordiv(4, 0), Poly)
    assert isinstance(dims.mod(4, 0), Poly)


@pytest.mark.parametrize(
    ("d", "text"),
    [(q, "q"), (dims.mul(2, q), "2*q"), (dims.sub(q, 1), "-1+q"), (dims.mul(q, h), "q*h"), (dims.neg(q), "-1*q")],
)
def test_text(d: Dim, text: str) -> None:
    assert str(d) == text
