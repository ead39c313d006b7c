"""Methods of dicts and counters."""

from __future__ import annotations

from auditor import operators
from auditor.containers.entries import put, update_mapping
from auditor.containers.iteration import iterate
from auditor.containers.reading import ZERO, get_item
from auditor.interpreter import Handler, Interpreter, RaiseSignal
from auditor.joins import join_all, present, union
from auditor.methods.items import ITEMS
from auditor.places import Site, here
from auditor.values import NONE, TRUE, Args, Const, Mapping, Native, Seq, Star, Unknown, Value, key_of
from auditor.values.absence import maybe_absent, options_present


def _map(args: Args) -> Mapping:
    obj = args.pos[0]
    assert isinstance(obj, Mapping)
    return obj


def _get(it: Interpreter, args: Args, site: Site | None) -> Value:
    obj, default = _map(args), args.get(2, "default") or NONE
    k = key_of(args.pos[1])
    found = obj.entries.get(k) if k is not None else None
    if obj.missing is not None:
        obj = Mapping(obj.entries, obj.rest)  # `get` makes nothing
    if found is not None:
        value = found[1]
        return join_all([default, *options_present(value)]) if maybe_absent(value) else value
    assert site is not None
    try:
        return union([get_item(it, obj, args.pos[1], site), default])
    except RaiseSignal:
        return default


def _maybe(entry: Value, item: Value) -> Value:
    """What an iteration gives of an entry: zero or one times when it is there on some ways only."""
    return Star((item,)) if maybe_absent(entry) else item


def _items(it: Interpreter, args: Args, site: Site | None) -> Value:
    obj = _map(args)
    rest = None
    if obj.rest is not None:
        rest = obj.rest.child(".items")
    rows = [_maybe(v, Seq("tuple", [k, present(v)])) for k, v in obj.entries.values()]
    return Seq("list", rows, rest, flags=obj.flags)  # type: ignore[arg-type]


def _keys(it: Interpreter, args: Args, site: Site | None) -> Value:
    obj = _map(args)
    names = [_maybe(v, k) for k, v in obj.entries.values()]
    return Seq("list", names, obj.rest, places=obj.places, flags=obj.flags)


def _values(it: Interpreter, args: Args, site: Site | None) -> Value:
    obj = _map(args)
    values = [_maybe(v, present(v)) for v in obj.values()]
    return Seq("list", values, obj.rest, places=obj.places, flags=obj.flags)


def _pop_key(it: Interpreter, args: Args, site: Site | None) -> Value:
    obj = _map(args)
    it.heap.touch(obj)
    k = key_of(args.pos[1])
    found = obj.entries.pop(k, None) if k is not None else None
    default = args.get(2, "default")
    if found is not None:
        if not maybe_absent(found[1]):
            return found[1]
        return union([present(found[1]), default]) if default is not None else present(found[1])
    if obj.rest is not None or k is None:
        value = (
            obj.rest.child(f"[{k[1]!r}]")
            if obj.rest is not None and k
            else operators.unknown_from("a popped item", "", args.pos[1])
        )
        return union([value, default]) if default is not None else value
    if default is None:
        raise RaiseSignal("KeyError")
    return default


def _popitem(it: Interpreter, args: Args, site: Site | None) -> Value:
    obj, from_the_end = _map(args), operators.truth(args.get(1, "last") or TRUE)
    it.heap.touch(obj)
    if obj.rest is None and from_the_end is not None and not any(map(maybe_absent, obj.values())):
        if not obj.entries:
            raise RaiseSignal("KeyError")
        name, value = obj.entries.pop(next(reversed(obj.entries) if from_the_end else iter(obj.entries)))
        return Seq("tuple", [name, value])
    obj.rest = operators.unknown_from("an item was taken out of a dict", "", obj)
    return obj.rest.child("[popitem]")


def _update(it: Interpreter, args: Args, site: Site | None) -> Value:
    obj = _map(args)
    it.heap.touch(obj)
    if isinstance(obj.missing, Native) and obj.missing.name == ZERO:
        obj.rest = obj.rest or Unknown("counts that were added", places=here(site))
        return NONE
    for other in args.pos[1:]:
        update_mapping(it, obj, other)
    for name, value in args.kw.items():
        put(obj, Const(name), it.tag(value))
    if args.more is not None:
        obj.rest = obj.rest or args.more
    return NONE


def _setdefault(it: Interpreter, args: Args, site: Site | None) -> Value:
    obj = _map(args)
    k = key_of(args.pos[1])
    if k is not None and k in obj.entries:
        found = obj.entries[k][1]
        if not maybe_absent(found):
            return found
        it.heap.touch(obj)
        obj.entries[k] = (obj.entries[k][0], union([*options_present(found), args.get(2, "default") or NONE]))
        return obj.entries[k][1]
    it.heap.touch(obj)
    default = args.get(2, "default") or NONE
    put(obj, args.pos[1], default)
    return default


def _most_common(it: Interpreter, args: Args, site: Site | None) -> Value:
    obj, most = _map(args), args.get(1, "n")
    counts = [v.value if isinstance(v, Const) else None for _, v in obj.entries.values()]
    if obj.rest is not None or None in counts or not (most is None or isinstance(most, Const)):
        return operators.unknown_from("counts that are not known", "list", *([obj.rest] if obj.rest else []))
    rows = sorted(obj.entries.values(), key=lambda kv: -getattr(kv[1], "value", 0))
    return Seq("list", [Seq("tuple", [k, v]) for k, v in rows[: most.value if most is not None else None]])


def _move_to_end(it: Interpreter, args: Args, site: Site | None) -> Value:
    obj = _map(args)
    it.heap.touch(obj)
    k = key_of(args.pos[1])
    last = args.get(2, "last")
    if k is None or k not in obj.entries or (last is not None and operators.truth(last) is None):
        obj.rest = obj.rest or operators.unknown_from("an entry was moved that is not known", "", args.pos[1])
        return NONE
    entry = obj.entries.pop(k)
    front = last is not None and not operators.truth(last)
    obj.entries = {k: entry, **obj.entries} if front else {**obj.entries, k: entry}
    return NONE


def _fromkeys(it: Interpreter, args: Args, site: Site | None) -> Value:
    assert site is not None
    value = args.get(2, "value") or NONE
    source = iterate(it, args.pos[1], site)
    out = Mapping(rest=source.rest)
    for i in source.items:
        k = key_of(i)
        if k is not None:
            out.entries[k] = (i, value)
    return out


def _clear(it: Interpreter, args: Args, site: Site | None) -> Value:
    obj = _map(args)
    it.heap.touch(obj)
    obj.restore(({}, None))
    return NONE


def _copy(it: Interpreter, args: Args, site: Site | None) -> Value:
    obj = _map(args)
    return Mapping(dict(obj.entries), obj.rest, obj.missing, places=obj.places, flags=obj.flags)


METHODS: dict[str, Handler] = {
    "get": _get,
    "items": _items,
    "keys": _keys,
    "values": _values,
    "pop": _pop_key,
    "popitem": _popitem,
    "update": _update,
    "setdefault": _setdefault,
    "copy": _copy,
    "clear": _clear,
    "fromkeys": _fromkeys,
    "move_to_end": _move_to_end,
    "most_common": _most_common,
}
METHODS |= ITEMS


def from_keys(it: Interpreter, args: Args, site: Site | None) -> Value:
    """`dict.fromkeys(keys, value)`."""
    return _fromkeys(it, Args([Mapping(), *args.pos], args.kw), site)
