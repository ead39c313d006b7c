"""`itertools`: sequences out of sequences, and those without end."""

from __future__ import annotations

from typing import Any

from auditor import operators
from auditor.containers.iteration import iterate
from auditor.interpreter import Interpreter
from auditor.loops import mapped
from auditor.places import Site, here
from auditor.values import Args, Const, Native, Seq, Star, Unknown, Value


def _chain(it: Interpreter, args: Args, site: Site | None) -> Value:
    assert site is not None
    parts = [iterate(it, a, site) for a in args.pos]
    rest = next((p.rest for p in parts if p.rest is not None), None)
    return Seq("list", [i for p in parts for i in p.items], rest)


def _chain_iterable(it: Interpreter, args: Args, site: Site | None) -> Value:
    assert site is not None
    return _chain(it, Args(iterate(it, args.pos[0], site).items), site)


def _product(it: Interpreter, args: Args, site: Site | None) -> Value:
    assert site is not None
    rows: list[list[Value]] = [[]]
    for a in args.pos:
        source = iterate(it, a, site)
        if not source.exact or len(rows) * max(1, len(source.items)) > 256:
            return Seq("list", [], Unknown("a product of sequences of unknown length", places=(site,)))
        rows = [[*r, i] for r in rows for i in source.items]
    return Seq("list", [Seq("tuple", r) for r in rows])


def _islice(it: Interpreter, args: Args, site: Site | None) -> Value:
    assert site is not None
    source = iterate(it, args.pos[0], site)
    bounds: list[Any] = [a.value if isinstance(a, Const) else ... for a in args.pos[1:]]
    head = next((n for n, i in enumerate(source.items) if isinstance(i, Star)), len(source.items))
    last = bounds[0] if len(bounds) == 1 else bounds[1] if len(bounds) > 1 else None
    if ... not in bounds and (source.exact or (isinstance(last, int) and last <= head)):
        return Seq("list", source.items[slice(*bounds)])
    return Seq("list", [], operators.unknown_from("a part of a sequence that is not known", "", source))


_ENDLESS = 64
"""Items that are written down of a sequence without end."""


def _endless(items: list[Value], site: Site | None) -> Value:
    rest = Unknown("an item of a sequence without end", places=here(site))
    return Seq("iterator", items, rest)


def _count(it: Interpreter, args: Args, site: Site | None) -> Value:
    value, step = args.get(0, "start") or Const(0), args.get(1, "step") or Const(1)
    items: list[Value] = []
    for _ in range(_ENDLESS):
        items.append(value)
        value = operators.binary("+", value, step)
    return _endless(items, site)


def _cycle(it: Interpreter, args: Args, site: Site | None) -> Value:
    assert site is not None
    source = iterate(it, args.pos[0], site)
    if not source.exact or not source.items:
        return _endless([], site)
    return _endless([source.items[n % len(source.items)] for n in range(_ENDLESS)], site)


def _repeat(it: Interpreter, args: Args, site: Site | None) -> Value:
    times = args.get(1, "times")
    if times is None:
        return _endless([args.pos[0]] * _ENDLESS, site)
    return operators.binary("*", Seq("list", [args.pos[0]]), times)


def starmap(it: Interpreter, args: Args, site: Site | None) -> Value:
    """`itertools.starmap(function, rows)`, and what a pool has of that name."""
    assert site is not None
    function, at = args.pos[0], site

    def called(row: Value) -> Value:
        given = iterate(it, row, at)
        known = [i for i in given.items if not isinstance(i, Star)]
        more = given.rest or (None if given.exact else Unknown("arguments of unknown number", places=(at,)))
        return it.call(function, Args(known, {}, more), at)

    return mapped(it, iterate(it, args.pos[1], site), called)


NATIVES: dict[str, Value] = {
    "itertools.starmap": Native("starmap", starmap),
    "itertools.islice": Native("islice", _islice),
    "itertools.count": Native("count", _count),
    "itertools.cycle": Native("cycle", _cycle),
    "itertools.repeat": Native("repeat", _repeat),
    "itertools.chain": Native("chain", _chain),
    "itertools.chain.from_iterable": Native("chain.from_iterable", _chain_iterable),
    "itertools.product": Native("product", _product),
}
