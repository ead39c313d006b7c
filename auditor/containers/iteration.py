"""The items of a value, one after the other."""

from __future__ import annotations

from auditor import operators
from auditor.interpreter import Interpreter
from auditor.joins import join_all
from auditor.objects.inheritance import class_lookup
from auditor.places import Site
from auditor.torch import regions
from auditor.values import (
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
    altered,
    merge_places,
    number,
)
from auditor.values.absence import maybe_absent, options_present


def iterate(it: Interpreter, value: Value, site: Site) -> Seq:
    """The items of a value, as a sequence that may have unknown parts."""
    match value:
        case Seq():
            return value
        case Mapping():
            keys = [k if not maybe_absent(v) else Star((k,)) for k, v in value.entries.values()]
            return Seq("list", keys, value.rest, flags=value.flags)
        case Const(value=str() as s):
            return Seq("list", [Const(c, places=value.places) for c in s[:512]], flags=value.flags)
        case Tensor():
            if it.events is not None and value.shape:
                it.events.bakes(number(value.shape[0]), site, "a loop over a tensor")
            return _rows(value, site)
        case Instance(payload=Seq() as inner):
            return iterate(it, inner, site)
        case Instance(payload=Mapping() as inner):
            return iterate(it, inner, site)
        case Union():
            return _iterate_union(it, value, site)
        case Instance() if class_lookup(value.cls, "__iter__")[0] is not None:
            made = it.call(it.get(value, "__iter__", site), Args(), site)
            if not isinstance(made, Instance) or isinstance(made.payload, (Seq, Mapping)):
                return iterate(it, made, site)
            what = Unknown("what the `__next__` of an iterator gives", places=(site,), flags=value.flags)
            return Seq("list", [], what, flags=value.flags)
    kind = "data" if isinstance(value, Unknown) and value.kind == "data" else ""
    rest = operators.unknown_from("items of a value that is not known", kind, value, name=_name_of(value))
    if not rest.places:
        rest.places = (site,)
    return Seq("list", [], rest, flags=value.flags)


def _name_of(value: Value) -> str:
    return value.name if isinstance(value, Unknown) else ""


def _iterate_union(it: Interpreter, value: Union, site: Site) -> Seq:
    parts = [iterate(it, o, site) for o in options_present(value)]
    if parts and all(p.exact and len(p.items) == len(parts[0].items) for p in parts):
        return Seq("list", [join_all(i) for i in zip(*(p.items for p in parts), strict=True)], flags=value.flags)
    shortest = min(parts, key=lambda p: len(p.items)) if parts else Seq("list", [])
    rest = Unknown("items of one of several values", places=merge_places((site,), value.places), flags=value.flags)
    head: list[Value] = []
    for i, item in enumerate(shortest.items):
        found = [p.items[i] for p in parts]
        if all(p.exact for p in parts):
            head.append(join_all([item, *found]))
        elif not all(map(_is_part, found)):
            break
        elif any(isinstance(f, Star) for f in found):
            head.append(Star(tuple(v for f in found for v in (f.items if isinstance(f, Star) else (f,)))))
            break
        else:
            head.append(join_all([item, *found]))
    return Seq("list", head, rest, flags=value.flags)


def _is_part(item: Value) -> bool:
    """Whether an item is an object, by itself or with its name: a part of a module that a loop may change."""
    inner = item.items if isinstance(item, (Star, Seq)) else (item,)
    return any(isinstance(v, Instance) for i in inner for v in (i.items if isinstance(i, Seq) else (i,)))


def _rows(value: Tensor, site: Site) -> Seq:
    if value.shape and isinstance(value.shape[0], int) and value.shape[0] <= 64:
        row = Tensor(
            value.shape[1:],
            value.dtype,
            tags=value.tags,
            cuts=value.cuts,
            base=value.base,
            places=value.places,
            of=value if value.base is None else None,
        )
        if value.base is None or not value.base.watched:
            return Seq("list", [row] * value.shape[0])
        return Seq("list", [altered(row, region=regions.taken(value, 0, n)) for n in range(value.shape[0])])
    shape = value.shape[1:] if value.shape else None
    row = Tensor(
        shape, value.dtype, value.reason, tags=value.tags, cuts=value.cuts, base=value.base, places=value.places
    )
    return Seq("list", [Star((row,))])
