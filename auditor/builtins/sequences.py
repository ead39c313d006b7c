"""Built-in functions that make containers and go through them."""

from __future__ import annotations

from collections.abc import Callable

from auditor import dims, operators
from auditor.builtins.numbers import traced_constant
from auditor.containers.entries import unique, update_mapping
from auditor.containers.iteration import iterate
from auditor.containers.lengths import length
from auditor.containers.unpacking import unpack
from auditor.interpreter import Interpreter, RaiseSignal
from auditor.joins import union
from auditor.loops import mapped
from auditor.places import Site, here
from auditor.values import (
    NONE,
    Args,
    Const,
    Instance,
    Mapping,
    Seq,
    Star,
    Tensor,
    Union,
    Unknown,
    Value,
    as_dim,
    each_once,
    merge_flags,
    origins,
)
from auditor.values.absence import options_present


def _sequence(kind: str) -> Callable[[Interpreter, Args, Site | None], Value]:
    def make(it: Interpreter, args: Args, site: Site | None) -> Value:
        if not args.pos:
            return Seq(kind, [], places=here(site))
        assert site is not None
        if (
            isinstance(args.pos[0], Union)
            and kind in ("list", "tuple")
            and (kept := _each_length(it, args, kind, site))
        ):
            return kept
        source = iterate(it, args.pos[0], site)
        items, unsure = unique(source.items) if kind in ("set", "frozenset") else (list(source.items), None)
        return Seq(kind, items, source.rest or unsure, places=source.places or (site,), flags=source.flags)

    return make


def _each_length(it: Interpreter, args: Args, kind: str, site: Site) -> Value | None:
    """The list or tuple of each option, when they are known and of different lengths: joined, they would not be."""
    given = args.pos[0]
    parts = [iterate(it, o, site) for o in options_present(given)] if isinstance(given, Union) else []
    if not all(p.exact for p in parts) or len({len(p.items) for p in parts}) < 2:
        return None
    return union(Seq(kind, list(p.items), places=p.places or (site,), flags=given.flags | p.flags) for p in parts)


def _dict(it: Interpreter, args: Args, site: Site | None) -> Value:
    out = Mapping(places=here(site))
    for a in args.pos:
        update_mapping(it, out, a.payload if isinstance(a, Instance) and isinstance(a.payload, Mapping) else a)
        out.flags = out.flags | a.flags
    for name, value in args.kw.items():
        out.entries[("str", name)] = (Const(name), value)
    if args.more is not None:
        out.rest = out.rest or args.more
    return out


def _slice(it: Interpreter, args: Args, site: Site | None) -> Value:
    given = [*args.pos, NONE, NONE]
    bounds = [NONE, args.pos[0], NONE] if len(args.pos) == 1 else given[:3]
    return Seq("slice", list(bounds), places=here(site))


MAX_RANGE = 12
"""A longer range counts as one of unknown length: layers are alike; one that is not shows as a branch on its index."""

MAX_COUNT = 4096
"""Of a list with more items, how many they are is not followed."""


def _range(it: Interpreter, args: Args, site: Site | None) -> Value:
    bounds = [as_dim(traced_constant(it, a, site, "range()") or a) for a in args.pos]
    if all(isinstance(b, int) for b in bounds):
        numbers = range(*[b for b in bounds if isinstance(b, int)])
        places, flags = origins(args.pos)
        if len(numbers) <= MAX_RANGE:
            return Seq("list", [Const(n, places=places, flags=flags) for n in numbers], places=places, flags=flags)
    index = Unknown("an index of a loop of unknown length", "index", "int", places=here(site))
    index.flags = merge_flags(args.pos)
    index.query = any(isinstance(b, dims.Poly) and b.query for b in bounds)
    if len(bounds) == 1:
        index.below = bounds[0] if isinstance(bounds[0], (int, dims.Poly)) else None
    if not any(isinstance(b, dims.Poly) and dims.differs(b) for b in bounds):
        index.atom = dims.Atom(index.name, minimum=0, counted=True, below=index.below)
    count = None if isinstance(index.below, int) and index.below > MAX_COUNT else index.below
    return Seq("list", [Star((index,), count)], places=here(site), flags=index.flags)


def _enumerate(it: Interpreter, args: Args, site: Site | None) -> Value:
    assert site is not None
    source = iterate(it, args.pos[0], site)
    start = args.get(1, "start")
    first = start.value if isinstance(start, Const) and isinstance(start.value, int) else 0
    counted = start is None or isinstance(start, Const)
    out: list[Value] = []
    for n, i in enumerate(source.items):
        if isinstance(i, Star):
            index = Unknown("an index of a loop of unknown length", "index", "int", places=here(site))
            if len(source.items) == 1 and source.rest is None and first == 0:
                index.below = as_dim(length(it, args.pos[0], site))
            rows = any(isinstance(v, Tensor) for v in i.items)  # of a tensor: their numbers are positions
            if not rows and counted:
                index.atom = dims.Atom(index.name, minimum=0, counted=True, below=index.below)
            out.append(Star(tuple(Seq("tuple", [index, v]) for v in i.items)))
        elif any(isinstance(o, Star) for o in out):
            out.append(Seq("tuple", [Unknown("an index behind a loop of unknown length", "index", "int"), i]))
        else:
            position = operators.binary("+", start, Const(n)) if start is not None else Const(n)
            out.append(Seq("tuple", [position, i]))
    if source.rest is not None and counted and _was_there(it, args.pos[0]):
        index = Unknown("an index of a loop over what is known at run time only", "index", "int", places=here(site))
        index.atom = dims.Atom(index.name, minimum=first + len(out), counted=True)
        return Seq("list", [*out, Star((Seq("tuple", [index, source.rest.child("[]")]),))], flags=source.flags)
    return Seq("list", out, source.rest, flags=source.flags)


def _was_there(it: Interpreter, value: Value) -> bool:
    """Whether an unknown value is a part of something that was there before `forward` ran: no rows of what goes in."""
    whole = value
    while isinstance(whole, Unknown) and whole.of is not None:
        whole = whole.of
    return isinstance(whole, Unknown) and (it.events is None or whole.born < it.events.started)


def _zip(it: Interpreter, args: Args, site: Site | None) -> Value:
    assert site is not None
    sources = [iterate(it, a, site) for a in args.pos]
    flags = merge_flags(sources)
    if all(s.exact for s in sources):
        return Seq("list", [Seq("tuple", list(t)) for t in zip(*(s.items for s in sources), strict=False)], flags=flags)
    exact = [s for s in sources if s.exact]
    if exact:
        count = min(len(s.items) for s in exact)
        rows: list[Value] = [
            Seq("tuple", [s.items[n] if s.exact else _any_item(s, n, site) for s in sources]) for n in range(count)
        ]
        return Seq("list", rows, flags=flags)
    return Seq("list", [Star((Seq("tuple", [_any_item(s, 0, site) for s in sources]),))], flags=flags)


def _any_item(source: Seq, position: int, site: Site) -> Value:
    head = source.items[: position + 1]
    if len(head) > position and not any(isinstance(i, Star) for i in head):
        return head[position]
    options = each_once(source.items)
    if source.rest is not None or not options:
        return (
            source.rest.child(f"[{position}]")
            if source.rest
            else Unknown("an item of an empty sequence", places=(site,))
        )
    return union(options)


def _len(it: Interpreter, args: Args, site: Site | None) -> Value:
    found = length(it, args.pos[0], site)
    return traced_constant(it, found, site, "len()") or found


def _iter(it: Interpreter, args: Args, site: Site | None) -> Value:
    assert site is not None
    source = iterate(it, args.pos[0], site)
    return Seq("iterator", list(source.items), source.rest, flags=source.flags)


def _next(it: Interpreter, args: Args, site: Site | None) -> Value:
    assert site is not None
    source = iterate(it, args.pos[0], site)
    if source.items and not isinstance(source.items[0], Star):
        first = source.items[0]
        if isinstance(args.pos[0], Seq) and args.pos[0].kind == "iterator":
            it.heap.touch(args.pos[0])
            args.pos[0].items.pop(0)
        return first
    default = args.get(1, "default")
    if source.exact:
        if default is None:
            raise RaiseSignal("StopIteration")
        return default
    options = each_once(source.items)
    if source.rest is not None:
        options.append(source.rest.child("[0]"))
    return union([*options, default] if default is not None else options)


def _map(it: Interpreter, args: Args, site: Site | None) -> Value:
    assert site is not None
    function, *sources = args.pos
    if len(sources) == 1:
        return mapped(it, iterate(it, sources[0], site), lambda item: it.call(function, Args([item]), site))
    rows = iterate(it, _zip(it, Args(sources), site), site)
    return mapped(it, rows, lambda row: it.call(function, Args(unpack(it, row, len(sources), None, site)), site))


def _filter(it: Interpreter, args: Args, site: Site | None) -> Value:
    assert site is not None
    function, source = args.pos[0], iterate(it, args.pos[1], site)
    if isinstance(function, Const):
        return mapped(it, source, lambda item: item, lambda item: item)
    return mapped(it, source, lambda item: item, lambda item: it.call(function, Args([item]), site))


FUNCTIONS: dict[str, Callable[..., Value]] = {
    "list": _sequence("list"),
    "tuple": _sequence("tuple"),
    "set": _sequence("set"),
    "frozenset": _sequence("frozenset"),
    "dict": _dict,
    "slice": _slice,
    "range": _range,
    "enumerate": _enumerate,
    "zip": _zip,
    "len": _len,
    "iter": _iter,
    "next": _next,
    "map": _map,
    "filter": _filter,
}
