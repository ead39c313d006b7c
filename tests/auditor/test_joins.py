"""Where worlds meet: what counts as the same value, and what stands for one of two."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from auditor import dims, joins
from auditor.dims import Atom
from auditor.joined_contents import join_contents
from auditor.joins import join, join_all, merge_unknowns, union
from auditor.sameness import congruent, same
from auditor.values import (
    MAX_OPTIONS,
    NONE,
    Bound,
    Const,
    Env,
    External,
    Instance,
    Mapping,
    Native,
    NativeClass,
    Num,
    Pattern,
    Seq,
    Star,
    Storage,
    Tensor,
    Union,
    Unknown,
    Value,
)
from auditor.values.absence import Absent

Q, H = dims.symbol(Atom("q", query=True)), dims.symbol(Atom("h"))
A, B = NativeClass("A"), NativeClass("B")
READ = Unknown("is read from a file", "config")


def mapping(**entries: Value) -> Mapping:
    return Mapping({("str", n): (Const(n), v) for n, v in entries.items()})


def examples() -> list[Value]:
    """Values of every kind, no two of them the same."""
    return [
        NONE,
        Const(True),
        Const(1),
        Const(1.0),
        Const("1"),
        Const(b"1"),
        Pattern("a*"),
        Pattern("a*b"),
        Num(Q),  # type: ignore[arg-type]
        Num(H),  # type: ignore[arg-type]
        Seq("list", []),
        Seq("tuple", []),
        Seq("list", [Const(1)]),
        Seq("tuple", [Const(1)]),
        Seq("list", [Const(2)]),
        Seq("list", [Star((Const(1),))]),
        Seq("list", [Const(1)], READ),
        Mapping(),
        mapping(a=Const(1)),
        mapping(a=Const(2)),
        mapping(b=Const(1)),
        Instance(A),
        Instance(B),
        Instance(A, {"x": Const(1)}),
        Instance(A, {"x": Const(2)}),
        Instance(A, {}, "payload"),
        External("torch.float16"),
        External("torch.float32"),
        Tensor((1, Q)),
        Tensor((1, H)),
        Tensor((1, Q), "int32"),
        Tensor((1, Q), tags=frozenset({"argmax"})),
        Tensor((1, Q), base=Storage("x")),
        Tensor(None),
        Unknown("is read from a file", "config.a"),
        Unknown("is read from a file", "config.b"),
        Unknown("is typed in", "config.a"),
    ]


def names(value: Value) -> str:
    return repr(value)


def test_each_example_is_the_same_as_its_like_only() -> None:
    for (i, a), (j, b) in itertools.product(enumerate(examples()), enumerate(examples())):
        alike = i == j and not (isinstance(a, Tensor) and a.base is not None)
        assert same(a, b) is alike, (a, b)


def test_unknowns_without_a_name_are_never_the_same() -> None:
    assert not same(Unknown("?"), Unknown("?"))
    nameless = Unknown("?")
    assert same(nameless, nameless)


def test_places_and_flags_do_not_tell_values_apart() -> None:
    assert same(Const(1, flags=frozenset({"--x"})), Const(1))


def test_same_gives_up_on_deep_nesting() -> None:
    def nested(depth: int) -> Value:
        out: Value = Const(1)
        for _ in range(depth):
            out = Seq("list", [out])
        return out

    assert same(nested(3), nested(3))
    assert not same(nested(40), nested(40))


@pytest.mark.parametrize("value", examples(), ids=names)
def test_join_with_itself(value: Value) -> None:
    assert join(value, value) is value


@pytest.mark.parametrize("number", range(len(examples())))
def test_join_with_its_like(number: int) -> None:
    a, b = examples()[number], examples()[number]
    if not (isinstance(a, Tensor) and a.base is not None):
        assert join(a, b) is a


def test_join_is_the_same_either_way_round() -> None:
    for a, b in itertools.combinations(examples(), 2):
        one, other = join(a, b), join(b, a)
        if isinstance(one, Union):
            assert isinstance(other, Union)
            assert len(one.options) == len(other.options)
            assert all(any(same(x, y) for y in other.options) for x in one.options)
        else:
            assert type(one) is type(other)
            assert congruent(one, other) or isinstance(one, Unknown)


def test_a_join_keeps_both_or_knows_less() -> None:
    """Nothing that either value may be is lost: a join is one of the two only when that is a tensor without a shape."""
    for a, b in itertools.combinations(examples(), 2):
        joined = join(a, b)
        match joined:
            case Union(options=options):
                assert all(any(same(v, o) for o in options) for v in (a, b))
            case Unknown():
                assert isinstance(a, Unknown)
                assert isinstance(b, Unknown)
            case Num():
                assert joined.dim not in (Q, H)
            case Tensor():
                assert joined.shape is None or joined.dtype == "" or joined.tags >= a.tags | b.tags  # type: ignore[union-attr]
            case Seq():
                assert joined.kind == "tuple"
            case _:
                pytest.fail(f"{a} and {b} became {joined}")


def test_flags_of_equal_values() -> None:
    plain, flagged = Const(1), Const(1, flags=frozenset({"--x"}))
    assert join(plain, flagged).flags == {"--x"}
    assert join(flagged, plain).flags == {"--x"}


def test_flags_of_a_union_are_those_of_its_options() -> None:
    assert join(Const("a", flags=frozenset({"--x"})), Const("b", flags=frozenset({"--y"}))).flags == {"--x", "--y"}


def test_numbers_join_to_one_unless_all_are_constants() -> None:
    assert isinstance(join(Const(1), Const(2)), Union)
    joined = join(Const(1), Num(Q))  # type: ignore[arg-type]
    assert isinstance(joined, Num)
    assert joined.dim.query
    unknown = join(Const(1), Unknown("is read from a file", "n", "int"))
    assert isinstance(unknown, Num)
    assert not unknown.dim.query


def test_tuples_of_one_length_are_joined_item_by_item() -> None:
    joined = join(Seq("tuple", [Const(1), Const("a")]), Seq("tuple", [Const(1), Const("b")]))
    assert isinstance(joined, Seq)
    assert joined.items[0] == Const(1)
    assert isinstance(joined.items[1], Union)
    assert isinstance(join(Seq("tuple", [NONE]), Seq("tuple", [])), Union)


def test_lists_stay_apart() -> None:
    """Two lists are two objects: one that is neither of them would hide what is appended later."""
    a, b = Seq("list", [Const(1)]), Seq("list", [Const(2)])
    joined = join(a, b)
    assert isinstance(joined, Union)
    assert joined.options[0] is a
    assert joined.options[1] is b


def test_tensors_of_one_rank_join_axis_by_axis() -> None:
    a = Tensor((1, Q, 64), "float16", tags=frozenset({"x"}))
    b = Tensor((1, 1, 64), "float32", tags=frozenset({"y"}))
    joined = join(a, b)
    assert isinstance(joined, Tensor)
    assert joined.shape is not None
    assert (joined.shape[0], joined.shape[2], joined.dtype, joined.tags) == (1, 64, "", {"x", "y"})
    assert joined.shape[1] not in (1, Q)
    assert dims.depends_on_query(joined.shape[1])
    assert isinstance(join(Tensor((1,)), Tensor((1, 1))), Union)
    unknown = Tensor(None, reason=READ)
    assert join(a, unknown) is unknown
    assert join(unknown, a) is unknown


@pytest.mark.parametrize("count", range(1, MAX_OPTIONS + 3))
def test_a_union_of_too_many_values_is_unknown(count: int) -> None:
    found = union(Const(str(n)) for n in range(count))
    if count == 1:
        assert found == Const("0")
    elif count <= MAX_OPTIONS:
        assert isinstance(found, Union)
        assert [o.value for o in found.options if isinstance(o, Const)] == [str(n) for n in range(count)]
    else:
        assert isinstance(found, Unknown)


def test_unions_are_flat_and_distinct() -> None:
    inner = union([Const("a"), Const("b")])
    found = union([inner, Const("b"), union([Const("c"), Const("a")])])
    assert isinstance(found, Union)
    assert [o.value for o in found.options if isinstance(o, Const)] == ["a", "b", "c"]


def test_a_union_has_one_unknown_at_most() -> None:
    found = union([Const("a"), Unknown("first", "x"), Unknown("second", "y")])
    assert isinstance(found, Union)
    assert sum(isinstance(o, Unknown) for o in found.options) == 1


def test_joining_two_unknowns_again_gives_the_same_one() -> None:
    a, b = Unknown("first", "x", "int"), Unknown("second", "longer", "int")
    joined = merge_unknowns(a, b)
    assert merge_unknowns(b, a) is joined
    assert merge_unknowns(joined, b) is joined
    assert merge_unknowns(a, joined) is joined
    assert (joined.name, joined.kind) == ("x", "int")
    assert joined.child(".y") is joined.child(".y")
    assert merge_unknowns(a, Unknown("third", "z", "str")).kind == ""


@pytest.mark.parametrize(
    ("kinds", "kind"),
    [
        (("int", "int"), "int"),
        (("unread", "int"), "unread"),
        (("data", "int"), "data"),
        (("float", "int"), "float"),
        (("", "int"), ""),
        (("str", "int"), ""),
    ],
)
def test_kind_of_merged_unknowns(kinds: tuple[str, str], kind: str) -> None:
    assert merge_unknowns(*(Unknown("?", k, k) for k in kinds)).kind == kind


def test_a_query_stays_one() -> None:
    assert merge_unknowns(Unknown("a", "a", query=True), Unknown("b", "b")).query


def test_join_of_nothing_is_refused() -> None:
    with pytest.raises(AssertionError, match="nothing"):
        join_all([])


# -- congruent ---------------------------------------------------------------------------------------------------------


def layer(width: int, atom: Atom) -> Instance:
    """What a loop body makes anew in each round: a layer with a weight and a back link."""
    weight = Tensor((width, dims.symbol(atom)), base=Storage("weight", "parameter"))
    obj = Instance(A, {"weight": weight, "names": Seq("list", [Const("a")])})
    obj.attrs["self"] = obj
    obj.attrs["forward"] = Bound(Native("forward", lambda it, args, site: NONE), obj)
    return obj


def test_objects_made_alike_are_congruent() -> None:
    a, b = layer(4, Atom("n")), layer(4, Atom("n"))
    b.attrs["forward"] = Bound(a.attrs["forward"].function, b)  # type: ignore[attr-defined]
    assert congruent(a, b)
    assert not same(a, b)


@pytest.mark.parametrize("name", ["weight", "names", "self", "forward", "more"])
def test_one_difference_is_enough(name: str) -> None:
    a, b = layer(4, Atom("n")), layer(4, Atom("n"))
    b.attrs["forward"] = Bound(a.attrs["forward"].function, b)  # type: ignore[attr-defined]
    b.attrs[name] = Const("another")
    assert not congruent(a, b)


def test_congruence_is_coarser_than_sameness() -> None:
    for a, b in itertools.product(examples(), examples()):
        if same(a, b):
            assert congruent(a, b), (a, b)
    assert not congruent(layer(4, Atom("n")), layer(8, Atom("n")))
    assert not congruent(layer(4, Atom("n")), layer(4, Atom("m")))


# -- contents ----------------------------------------------------------------------------------------------------------


def test_a_name_that_one_way_does_not_bind() -> None:
    joined = join_contents(Env(), [{"x": Const("a")}, {"x": Const("a"), "y": Const("b")}])
    assert joined == {"x": Const("a"), "y": Const("b")}


def test_an_attribute_that_one_way_does_not_set() -> None:
    attrs, payload, taint = join_contents(Instance(A), [({}, None, None), ({"x": Const("a")}, "p", READ)])
    assert isinstance(attrs["x"], Union)
    assert attrs["x"].options[0] == Const("a")
    assert isinstance(attrs["x"].options[1], Absent)
    assert (payload, taint) == ("p", READ)


def test_mutable_values_are_equal_to_themselves_only() -> None:
    for make in (lambda: Seq("list", []), Mapping, lambda: Instance(A), lambda: Unknown("x")):
        assert make() != make()
    assert not same(Instance(A, {}, Seq("list", [Const(1)])), Instance(A, {}, Seq("list", [Const(2)])))
    assert same(Instance(A, {}, Seq("list", [Const(1)])), Instance(A, {}, Seq("list", [Const(1)])))


def test_what_an_object_holds_on_two_ways() -> None:
    one, two = Seq("list", [Const(1)]), Seq("list", [Const(2)])
    _, payload, taint = join_contents(Instance(A), [({}, one, None), ({}, two, None)])
    assert same(payload, Seq("list", [join(Const(1), Const(2))]))
    assert taint is None
    assert join_contents(Instance(A), [({}, one, None), ({}, one, None)])[1:] == (one, None)
    for other in (None, "p", Mapping()):
        assert join_contents(Instance(A), [({}, one, None), ({}, other, None)])[2] is not None
    assert join_contents(Instance(A), [({}, "p", None), ({}, "p", None)])[1:] == ("p", None)


def test_a_key_that_one_way_does_not_set() -> None:
    one, two = mapping(a=Const("x")), mapping(a=Const("y"), b=Const("z"))
    entries, rest = join_contents(Mapping(), [one.snapshot(), two.snapshot()])
    assert isinstance(entries["str", "a"][1], Union)
    assert any(isinstance(o, Absent) for o in entries["str", "b"][1].options)
    assert rest is None


def test_lists_of_one_length_are_joined_item_by_item() -> None:
    items, rest = join_contents(Seq("list", []), [([Const("a"), NONE], None), ([Const("b"), NONE], None)])
    assert isinstance(items[0], Union)
    assert items[1] is NONE
    assert rest is None


def test_items_that_one_way_appends() -> None:
    items, rest = join_contents(Seq("list", []), [([NONE], None), ([NONE, Const("a", flags=frozenset({"--x"}))], None)])
    assert items == [NONE]
    assert isinstance(rest, Unknown)
    assert rest.flags == {"--x"}


def test_repeated_items_that_one_way_appends_stay_repeated() -> None:
    star = Star((Const("a"),))
    assert join_contents(Seq("list", []), [([NONE], None), ([NONE, star], None)]) == ([NONE, star], None)


def test_contents_of_a_stranger_are_refused() -> None:
    with pytest.raises(TypeError):
        join_contents(NONE, [1, 2])


def test_data_that_is_taken_apart_and_joined_again_stays_small() -> None:
    from auditor import joins

    before = len(joins._merged)
    found = Unknown("data of a file", "data", "data")
    for n in range(16):
        part = found.child(f"[{n}]")
        assert isinstance(part, Unknown)
        found = joins.merge_unknowns(found, part)
    assert len(joins._merged) - before < 2_000


def test_what_is_no_longer_kept_apart_is_not_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    """A list of thousands, an item of which is taken at an unknown place, would cost the square of it."""
    asked: list[None] = []
    compare = joins.same

    def counted(*values: Any) -> bool:
        asked.append(None)
        return compare(*values)

    monkeypatch.setattr(joins, "same", counted)
    made = joins.union([Const(n, flags=frozenset({f"--{n}"})) for n in range(3_000)])
    assert isinstance(made, Unknown)
    assert len(made.flags) == 3_000
    assert len(asked) < 100
