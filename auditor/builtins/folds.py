"""Built-in functions that order what is in a sequence, or make one value of it."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

from auditor import dims, operators
from auditor.containers.iteration import iterate
from auditor.expressions.operations import binary
from auditor.interpreter import Interpreter, RaiseSignal
from auditor.loops import mapped
from auditor.places import Site
from auditor.values import FALSE, Args, Const, Seq, Star, Value, as_dim, each_once, number


def _fold(pick: Callable[..., Any], name: str) -> Callable[[Interpreter, Args, Site | None], Value]:
    def fold(it: Interpreter, args: Args, site: Site | None) -> Value:
        assert site is not None
        source = Seq("list", list(args.pos)) if len(args.pos) > 1 else iterate(it, args.pos[0], site)
        items, exact = source.items, source.exact
        keys = _keys(it, source, args, site).items
        if exact and items and "key" in args.kw and all(isinstance(k, Const) and k.value is not None for k in keys):
            plain = [k.value for k in keys if isinstance(k, Const)]
            try:
                first: int = pick(range(len(items)), key=plain.__getitem__)
                return items[first]
            except TypeError:
                pass
        if exact and items and all(isinstance(i, Const) for i in items) and "key" not in args.kw:
            try:
                return operators.derived(pick(i.value for i in items if isinstance(i, Const)), *items)
            except TypeError:
                pass
        if exact and not items:
            if "default" in args.kw:
                return args.kw["default"]
            raise RaiseSignal("ValueError")
        found = [d for d in (as_dim(i) for i in items) if d is not None]
        if exact and it.events is not None and len(found) == len(items) and "key" not in args.kw:
            picked: Value | None = it.events.least(list(items), name)
            if picked is not None:
                return picked
        if exact and len(found) == len(items) == 2 and "key" not in args.kw:
            less = dims.less(found[0], found[1])
            if less is not None:
                return items[0] if less == (name == "min") else items[1]
            return number(dims.opaque(name, found[0], found[1]), items)
        kind = "int" if any(as_dim(i) is not None for i in items) else ""
        return operators.unknown_from(f"{name}() of values that are not known", kind, *items, name=name)

    return fold


def _sum(it: Interpreter, args: Args, site: Site | None) -> Value:
    assert site is not None
    source = iterate(it, args.pos[0], site)
    total: Value = args.get(1, "start") or Const(0)
    if not source.exact:
        kind = "int" if all(as_dim(v) is not None for v in each_once(source.items)) else ""
        return operators.unknown_from(
            "a sum over a sequence of unknown length", kind, source, *source.items, name="sum"
        )
    for i in source.items:
        total = binary(it, "+", total, i, site)
    return total


def _any(wanted: bool) -> Callable[[Interpreter, Args, Site | None], Value]:
    def test(it: Interpreter, args: Args, site: Site | None) -> Value:
        assert site is not None
        source = iterate(it, args.pos[0], site)
        seen = [operators.truth(v) for v in each_once(source.items)]
        if wanted in seen and not any(isinstance(i, Star) for i in source.items):
            return operators.derived(wanted, *source.items)
        if source.exact and None not in seen:
            return operators.derived(not wanted, *source.items) if wanted not in seen else Const(wanted)
        return operators.unknown_from("any() or all() over values that are not known", "bool", *source.items)

    return test


def _keys(it: Interpreter, source: Seq, args: Args, site: Site | None) -> Seq:
    """What `key=` gives for each item, called whether or not it can tell an order; without one, the items."""
    key = args.kw.get("key")
    if key is None or isinstance(key, Const):
        return source
    return mapped(it, source, lambda item: it.call(key, Args([item]), site))


def sorted_items(it: Interpreter, source: Seq, args: Args, site: Site | None) -> list[Value]:
    """The items in order; one repetition of them all where nobody knows which order that is."""
    keys, backwards = _keys(it, source, args, site), operators.truth(args.kw.get("reverse", FALSE))
    if not source.exact or len(source.items) < 2:
        return list(source.items)
    order = _order([_sort_key(k) for k in keys.items], backwards) if backwards is not None and keys.exact else None
    return [Star(tuple(source.items), len(source.items))] if order is None else [source.items[n] for n in order]


def _order(keys: list[tuple[list[Any], bool]], backwards: bool) -> list[int] | None:
    """The positions in the order of the keys; None where what is known of them does not decide it."""
    try:
        order = sorted(range(len(keys)), key=lambda n: keys[n][0], reverse=backwards)
    except TypeError:
        return None
    for (a, all_of_a), (b, all_of_b) in pairwise(keys[n] for n in order):
        if not (all_of_a and all_of_b) and a[: len(b)] == b[: len(a)]:
            return None
    return order


def _sort_key(v: Value) -> tuple[list[Any], bool]:
    """What is known of a key, from its beginning, and whether that is all of it."""
    if isinstance(v, Const):
        return [v.value], True
    if not isinstance(v, Seq) or not v.exact or v.kind not in ("list", "tuple"):
        return [], False
    out: list[Any] = []
    for i in v.items:
        part, whole = _sort_key(i)
        if not whole:
            return out, False
        out.append(part)
    return out, True


def _sorted(it: Interpreter, args: Args, site: Site | None) -> Value:
    assert site is not None
    source = iterate(it, args.pos[0], site)
    return Seq("list", sorted_items(it, source, args, site), source.rest, places=source.places, flags=source.flags)


def _reversed(it: Interpreter, args: Args, site: Site | None) -> Value:
    assert site is not None
    source = iterate(it, args.pos[0], site)
    return Seq("list", list(reversed(source.items)), source.rest, places=source.places, flags=source.flags)


FUNCTIONS: dict[str, Callable[..., Value]] = {
    "min": _fold(min, "min"),
    "max": _fold(max, "max"),
    "sum": _sum,
    "any": _any(True),
    "all": _any(False),
    "sorted": _sorted,
    "reversed": _reversed,
}
