"""Built-in functions that order what is in a sequence, or make one value of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from auditor import dims, operators
from auditor.containers.iteration import iterate
from auditor.expressions.operations import binary
from auditor.interpreter import Interpreter, RaiseSignal
from auditor.loops import mapped
from auditor.places import Site
from auditor.values import Args, Const, Seq, Star, Value, as_dim, each_once, number, text_of


def _fold(pick: Callable[..., Any], name: str) -> Callable[[Interpreter, Args, Site | None], Value]:
    def fold(it: Interpreter, args: Args, site: Site | None) -> Value:
        assert site is not None
        source = Seq("list", list(args.pos)) if len(args.pos) > 1 else iterate(it, args.pos[0], site)
        items, exact = source.items, source.exact
        keys = _keys(it, source, args, site).items
        if exact and items and "key" in args.kw and all(isinstance(k, Const) and k.value is not None for k in keys):
            plain = [_sort_key(k) for k in keys]
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
    keys, reverse = _keys(it, source, args, site), args.kw.get("reverse")
    if not source.exact or len(keys.items) != len(source.items):
        return list(source.items)
    plain = [_sort_key(k) for k in keys.items]
    if any(p is None for p in plain):
        return list(source.items)
    try:
        order = sorted(range(len(plain)), key=plain.__getitem__)
    except TypeError:
        return list(source.items)
    if reverse is not None and operators.truth(reverse):
        order.reverse()
    return [source.items[n] for n in order]


def _sort_key(v: Value) -> Any:
    if isinstance(v, Const):
        return v.value
    if isinstance(v, Seq) and v.exact:
        parts = [_sort_key(i) for i in v.items]
        return None if any(p is None for p in parts) else tuple(parts)
    return text_of(v)


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
