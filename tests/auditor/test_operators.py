"""Operators and comparisons: Python's own on what is known, and never a wrong answer on what is not."""

from __future__ import annotations

import itertools
import re
from typing import Any

import pytest

from auditor import dims, operators
from auditor.dims import Dim
from auditor.operators import BINARY, COMPARE, UNARY, binary, compare, contains, identical, truth, unary
from auditor.values import (
    NONE,
    TRUE,
    Class,
    Const,
    Env,
    External,
    Mapping,
    Num,
    Pattern,
    Seq,
    Star,
    Tensor,
    Union,
    Unknown,
    Value,
    number,
)
from tests.auditor.symbolic import H, N, Q, h, n, q, value

SCALARS = [None, True, False, 0, 1, -3, 7, 2.5, "", "a", "ab", "a%sb", b"a", 1 << 40]


def plain(value: Value) -> Any:
    """The Python value of a known one; `...` for an unknown."""
    match value:
        case Const(value=x):
            return x
        case Seq(kind=kind, items=items) if value.exact:
            return {"list": list, "tuple": tuple, "set": set}[kind](map(plain, items))
    return ...


def test_binary_operators_are_pythons() -> None:
    for op, x, y in itertools.product(BINARY, SCALARS, SCALARS):
        if op in ("**", "<<") and (1 << 40) in (x, y):
            continue
        if op == "*" and (1 << 40) in (x, y) and (isinstance(x, (str, bytes)) or isinstance(y, (str, bytes))):
            continue
        result = binary(op, Const(x), Const(y))
        try:
            expected = BINARY[op](x, y)
        except Exception:
            assert isinstance(result, Unknown), (op, x, y)
        else:
            assert isinstance(result, Const)
            assert (type(result.value), result.value) == (type(expected), expected), (op, x, y)


def test_unary_operators_are_pythons() -> None:
    for op, x in itertools.product(UNARY, SCALARS):
        result = unary(op, Const(x))
        try:
            expected = UNARY[op](x)
        except TypeError:
            assert isinstance(result, Unknown)
        else:
            assert plain(result) == expected
    for x in SCALARS:
        assert plain(unary("not", Const(x))) is (not x)


def test_comparisons_are_pythons() -> None:
    for op, x, y in itertools.product(COMPARE, SCALARS, SCALARS):
        result = compare(op, Const(x), Const(y))
        try:
            expected = COMPARE[op](x, y)
        except TypeError:
            assert isinstance(result, Unknown), (op, x, y)
        else:
            assert plain(result) is expected, (op, x, y)


@pytest.mark.parametrize(
    ("op", "x", "y"),
    [("**", 2, 100), ("**", 1 << 40, 3), ("<<", 1, 10_000), ("*", "ab", 1_000_000), ("*", b"a", 1 << 40)],
)
def test_what_is_too_large_is_not_computed(op: str, x: Any, y: Any) -> None:
    assert isinstance(binary(op, Const(x), Const(y)), Unknown)


def test_a_long_list_is_a_repetition() -> None:
    found = binary("*", Seq("list", [NONE]), Const(1 << 40))
    assert isinstance(found, Seq)
    assert [type(i) for i in found.items] == [Star]


@pytest.mark.parametrize(
    ("op", "x", "y"),
    [
        ("+", [1, 2], [3]),
        ("+", (1,), (2, 3)),
        ("*", [1, 2], 3),
        ("*", 2, (1,)),
        ("*", [1], 0),
        ("*", [1], -1),
        ("|", {1, 2}, {2, 3}),
        ("&", {1, 2}, {2, 3}),
        ("-", {1, 2}, {2, 3}),
    ],
)
def test_containers(op: str, x: Any, y: Any) -> None:
    def made(v: Any) -> Value:
        return Seq(type(v).__name__, [Const(i) for i in v]) if isinstance(v, (list, tuple, set)) else Const(v)

    assert plain(binary(op, made(x), made(y))) == BINARY[op](x, y)


def test_merged_dicts() -> None:
    a = Mapping({("str", "x"): (Const("x"), Const(1)), ("str", "y"): (Const("y"), Const(1))})
    b = Mapping({("str", "y"): (Const("y"), Const(2))}, Unknown("?"))
    merged = binary("|", a, b)
    assert isinstance(merged, Mapping)
    assert {k[1]: plain(v) for k, (_, v) in merged.entries.items()} == {"x": 1, "y": 2}
    assert merged.rest is b.rest


def test_each_option_of_a_union() -> None:
    either = Union((Const(1), Const(4)))
    sums = binary("+", either, Const(1))
    assert isinstance(sums, Union)
    assert [plain(o) for o in sums.options] == [2, 5]
    assert plain(compare("<", either, Const(9))) is True
    assert isinstance(compare("<", either, Const(2)), Union)
    assert plain(compare("<", Const(9), either)) is False
    assert truth(Union((Const(0), Const(1)))) is None
    assert truth(Union((Const(2), Const("a")))) is True


def test_flags_go_along() -> None:
    a, b = Const(2, flags=frozenset({"--a"})), Const(3, flags=frozenset({"--b"}))
    for result in (binary("+", a, b), compare("<", a, b), binary("+", a, Unknown("?", flags=frozenset({"--b"})))):
        assert result.flags == {"--a", "--b"}


# -- numbers that nobody knows -----------------------------------------------------------------------------------------

DIMS: list[Dim] = [0, 1, 2, q, h, n, dims.add(q, 1), dims.mul(2, q), dims.mul(q, n), dims.sub(n, 2), dims.neg(q)]


WORLDS = [{Q: a, H: b, N: c} for a in (1, 2, 5) for b in (0, 1, 4) for c in (2, 3, 6)]


@pytest.mark.parametrize("op", COMPARE)
def test_what_a_comparison_tells_holds_for_every_number(op: str) -> None:
    for x, y in itertools.product(DIMS, DIMS):
        told = plain(compare(op, number(x), number(y)))
        if told is not ...:
            assert all(COMPARE[op](value(x, w), value(y, w)) is told for w in WORLDS), (op, x, y)


@pytest.mark.parametrize(
    ("op", "x", "y", "told"),
    [
        (">", q, 0, True),
        (">=", q, 1, True),
        (">", q, 1, None),
        ("==", q, 1, None),
        ("!=", q, 0, True),
        ("==", q, q, True),
        ("<", q, dims.add(q, 1), True),
        ("<=", q, q, True),
        ("<", h, 0, False),
        (">", h, 0, None),
        (">=", n, 2, True),
        ("==", n, 1, False),
        ("==", q, h, None),
    ],
)
def test_comparisons_of_symbolic_numbers(op: str, x: Dim, y: Dim, told: bool | None) -> None:
    result = compare(op, number(x), number(y))
    assert plain(result) is (... if told is None else told)
    if told is None:
        assert isinstance(result, Unknown)
        assert result.query is any(map(dims.depends_on_query, (x, y)))


@pytest.mark.parametrize("op", ["+", "-", "*", "//", "/", "%"])
def test_arithmetic_on_symbolic_numbers(op: str) -> None:
    for x, y in itertools.product(DIMS, DIMS):
        if isinstance(x, int) and isinstance(y, int):
            continue
        found = binary(op, number(x), number(y))
        match found:
            case Const() | Num():
                d = found.dim if isinstance(found, Num) else found.value
                known = isinstance(d, int) or d.atoms <= {Q, H, N}
                for w in WORLDS if known else ():
                    if value(y, w) or op in "+-*":
                        assert value(d, w) == BINARY[op](value(x, w), value(y, w)), (op, x, y)
            case Unknown():
                assert op == "/"
            case _:
                pytest.fail(f"{x} {op} {y} became {found}")


def test_the_query_goes_along() -> None:
    for op in ("+", "-", "*", "//", "%"):
        assert operators.depends_on_query(binary(op, number(q), Const(3)))
        assert operators.depends_on_query(binary(op, Const(3), number(q)))
    assert operators.depends_on_query(binary("/", number(q), Const(3)))
    assert not operators.depends_on_query(binary("-", number(q), number(q)))
    assert not operators.depends_on_query(binary("+", number(h), Const(1)))


def test_truth_of_a_symbolic_number() -> None:
    assert truth(number(q)) is True
    assert truth(number(h)) is None
    assert truth(number(n)) is True
    assert truth(number(dims.sub(q, 1))) is None


# -- texts with unknown parts ------------------------------------------------------------------------------------------

FILLINGS = ["", "a", "b", "ab", "ba"]
PATTERNS = ["*", "a*", "*b", "a*b", "*a*", "ab*", "b*b", "a*a", "a*b*"]
TEXTS = ["", "a", "b", "ab", "ba", "aab", "bb", "aba"]


def text(t: str) -> Value:
    return Pattern(t) if "*" in t else Const(t)


def strings(t: str) -> list[str]:
    """Some of the strings that a text with `*` for unknown parts may be."""
    parts = t.split("*")
    return [
        "".join(itertools.chain(*itertools.zip_longest(parts, filling, fillvalue="")))
        for filling in itertools.product(FILLINGS, repeat=len(parts) - 1)
    ]


def matches(t: str, found: str) -> bool:
    return re.fullmatch(".*".join(map(re.escape, t.split("*"))), found) is not None


@pytest.mark.parametrize("op", ["==", "!=", "in", "not in"])
def test_what_is_told_of_texts_holds_for_all_they_may_be(op: str) -> None:
    python = {**COMPARE, "in": lambda a, b: a in b, "not in": lambda a, b: a not in b}[op]
    told_something = False
    for s, t in itertools.product([*PATTERNS, *TEXTS], repeat=2):
        told = plain(compare(op, text(s), text(t)))
        if told is ...:
            continue
        told_something |= "*" in s + t
        assert all(python(x, y) is told for x in strings(s) for y in strings(t)), (s, op, t)
    assert told_something


@pytest.mark.parametrize(
    ("s", "t", "told"),
    [
        ("a*", "b", False),
        ("a*", "b*", False),
        ("*a", "*b", False),
        ("a*", "ab", None),
        ("a*", "*b", None),
        ("*", "a", None),
    ],
)
def test_equality_of_texts(s: str, t: str, told: bool | None) -> None:
    for a, b in ((s, t), (t, s)):
        assert plain(compare("==", text(a), text(b))) is (... if told is None else told)


@pytest.mark.parametrize(
    ("container", "item", "told"),
    [("int8*", "int", True), ("int8*", "lin", None), ("a*b", "ab", None), ("abc", "bc", True), ("abc", "d", False)],
)
def test_a_text_in_a_text(container: str, item: str, told: bool | None) -> None:
    assert contains(text(container), text(item)) is told


def test_a_sum_of_texts_holds_all_it_may_be() -> None:
    for s, t in itertools.product([*PATTERNS, *TEXTS], repeat=2):
        found = binary("+", text(s), text(t))
        assert isinstance(found, (Const, Pattern))
        whole = found.text if isinstance(found, Pattern) else found.value
        assert "**" not in whole
        assert all(matches(whole, x + y) for x in strings(s) for y in strings(t))


def test_a_text_and_something_unknown() -> None:
    assert binary("+", Const("a-"), Unknown("?", "x", "str")) == Pattern("a-*")
    assert binary("+", Unknown("?", "x", "str"), Const(".aimodel")) == Pattern("*.aimodel")
    assert isinstance(binary("+", Const("a"), Seq("list", [])), Unknown)


@pytest.mark.parametrize(
    ("template", "arguments", "pattern"),
    [
        ("%s.aimodel", ("model",), "*.aimodel"),
        ("model_%d_%02x", (3, 255), "model_*_*"),
        ("%d%%", (3,), "*%"),
        ("%-8.3f|", (3.5,), "*|"),
        ("%(name)s!", ({"name": "x"},), "*!"),
        ("%s%s", ("a", "b"), "*"),
    ],
)
def test_percent_formatting(template: str, arguments: tuple[Any, ...], pattern: str) -> None:
    found = binary("%", Const(template), Unknown("?", "x"))
    assert isinstance(found, Pattern)
    assert found.text == pattern
    given = arguments[0] if isinstance(arguments[0], dict) else arguments
    assert matches(pattern, template % given)


# -- identity, truth and membership ------------------------------------------------------------------------------------


def test_identity() -> None:
    a, b = Class("A", (), Env()), Class("B", (), Env())
    assert identical(NONE, Const(None)) is True
    assert identical(NONE, Const(0)) is False
    assert identical(TRUE, Const(1)) is False
    assert identical(a, a) is True
    assert identical(a, b) is False
    assert identical(NONE, Seq("list", [])) is False
    assert identical(NONE, Tensor(None)) is False
    assert identical(NONE, number(q)) is False
    assert identical(NONE, Unknown("?", "x")) is None
    assert identical(NONE, Unknown("?", "x", "data")) is None
    assert identical(NONE, Unknown("?", "x", "int")) is False
    assert identical(External("torch.float16"), External("torch.float16")) is True
    assert identical(External("torch.float16"), External("torch.float32")) is False
    x = Unknown("?", "x")
    assert identical(x, x) is True
    assert identical(x, Unknown("?", "y")) is None


@pytest.mark.parametrize(
    ("v", "told"),
    [
        (NONE, False),
        (Const(""), False),
        (Const("0"), True),
        (Pattern("*"), None),
        (Pattern("a*"), True),
        (Seq("list", []), False),
        (Seq("list", [NONE]), True),
        (Seq("list", [Star((NONE,))]), None),
        (Seq("list", [], Unknown("?")), None),
        (Seq("list", [Star((NONE,)), NONE]), True),
        (Mapping(), False),
        (Mapping({("str", "a"): (Const("a"), NONE)}), True),
        (Mapping({}, Unknown("?")), None),
        (Unknown("?"), None),
        (Tensor((1,)), None),
        (Class("A", (), Env()), True),
    ],
)
def test_truth(v: Value, told: bool | None) -> None:
    assert truth(v) is told
    assert plain(unary("not", v)) is (... if told is None else not told)


@pytest.mark.parametrize(
    ("container", "item", "told"),
    [
        (Seq("list", [Const(1), Const(2)]), Const(2), True),
        (Seq("list", [Const(1), Const(2)]), Const(3), False),
        (Seq("list", [Const(1)], Unknown("?")), Const(1), True),
        (Seq("list", [Const(1)], Unknown("?")), Const(3), None),
        (Seq("list", [Star((Const(1),))]), Const(1), None),
        (Seq("list", [Unknown("?", "x", "int")]), Const(1), None),
        (Seq("tuple", [Pattern("a*")]), Const("b"), False),
        (Seq("tuple", [Pattern("a*")]), Const("ab"), None),
        (Seq("list", [number(q)]), Const(0), False),
        (Seq("list", [number(q)]), Const(1), None),
        (Mapping({("str", "a"): (Const("a"), NONE)}), Const("a"), True),
        (Mapping({("str", "a"): (Const("a"), NONE)}), Const("b"), False),
        (Mapping({("str", "a"): (Const("a"), NONE)}, Unknown("?")), Const("b"), None),
        (Seq("list", [Union((Const(1), Const(2)))]), Const(1), None),
        (Seq("list", [Union((Const(1), Const(2)))]), Const(3), False),
        (Seq("list", [Const(1), Unknown("?", "x")]), Const(1), True),
        (Unknown("?", "x", "list"), Const(1), None),
    ],
)
def test_membership(container: Value, item: Value, told: bool | None) -> None:
    assert contains(container, item) is told
    assert plain(compare("not in", item, container)) is (... if told is None else not told)


@pytest.mark.parametrize(
    ("a", "b", "told"),
    [
        (Seq("list", [Const(1)]), Seq("list", [Const(1)]), True),
        (Seq("list", [Const(1)]), Seq("tuple", [Const(1)]), False),
        (Seq("list", [Const(1)]), Seq("list", [Const(1), Const(2)]), False),
        (Seq("tuple", [number(q)]), Seq("tuple", [Const(1)]), None),
        (Seq("tuple", [number(q)]), Seq("tuple", [Const(0)]), False),
        (Seq("list", [Const(1)], Unknown("?")), Seq("list", [Const(1)]), None),
        (Mapping({("str", "a"): (Const("a"), Const(1))}), Mapping({("str", "a"): (Const("a"), Const(1))}), True),
        (Mapping({("str", "a"): (Const("a"), Const(1))}), Mapping({("str", "a"): (Const("a"), Const(2))}), False),
        (Mapping({("str", "a"): (Const("a"), Const(1))}), Mapping(), False),
        (Mapping({}, Unknown("?")), Mapping(), None),
        (Const("a"), Seq("list", []), False),
        (Const("a"), NONE, False),
        (Pattern("*"), NONE, False),
        (Seq("tuple", [Pattern("a*")]), Seq("tuple", [Pattern("a*")]), None),
        (Seq("tuple", [Union((Const(1), Const(2)))]), Seq("tuple", [Const(1)]), None),
        (Seq("tuple", [Union((Const(1), Const(2)))]), Seq("tuple", [Union((Const(1), Const(2)))]), None),
        (Seq("tuple", [Union((Const(1), Const(2)))]), Seq("tuple", [Const(3)]), False),
        (Seq("list", [Seq("list", [Const(1)])]), Seq("list", [Seq("list", [Const(1)])]), True),
        (Seq("tuple", [Pattern("a*")]), Seq("tuple", [Pattern("b*")]), False),
        (
            Mapping({("str", "a"): (Const("a"), Pattern("*"))}),
            Mapping({("str", "a"): (Const("a"), Pattern("*"))}),
            None,
        ),
        (Unknown("?", "x"), Const("a"), None),
        (Tensor((1,)), Const(1), None),
    ],
)
def test_equality_of_containers(a: Value, b: Value, told: bool | None) -> None:
    assert plain(compare("==", a, b)) is (... if told is None else told)
    assert plain(compare("!=", a, b)) is (... if told is None else not told)
