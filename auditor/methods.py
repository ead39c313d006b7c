"""Methods of Python's own types: strings, numbers, lists, tuples, sets and dicts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from auditor import operators
from auditor.interpreter import Interpreter, RaiseSignal
from auditor.joins import Absent, join_all, maybe_absent, present, union
from auditor.places import Site
from auditor.values import (
    NONE,
    Args,
    Bound,
    Const,
    Mapping,
    Native,
    Num,
    Pattern,
    Seq,
    Star,
    Union,
    Unknown,
    Value,
    key_of,
    merge_places,
    text_of,
)


def attribute(it: Interpreter, obj: Value, name: str, site: Site | None) -> Value:
    """Attribute `name` of a value of a built-in type."""
    if isinstance(obj, Const) and obj.value is None:
        if name in ("__class__", "__doc__"):
            return NONE
        raise RaiseSignal("AttributeError")
    if isinstance(obj, Seq):
        table: dict[str, Callable[..., Value]] = _SEQUENCE
    elif isinstance(obj, Mapping):
        table = _MAPPING
    elif isinstance(obj, Pattern) or (isinstance(obj, Const) and isinstance(obj.value, str)):
        table = {}
        if hasattr(str, name):
            return Bound(Native(f"str.{name}", _text_method(name)), obj)
    else:
        table = {}
        if isinstance(obj, Const):
            return _scalar_attribute(obj, name)
        if isinstance(obj, Num) and name in ("real", "numerator"):
            return obj
        if isinstance(obj, Num) and name in ("item", "tolist") and it.events is not None:
            return Native(name, lambda it, args, s: it.events.bakes(obj, s, f"{name}()") or obj)
    if name in table:
        return Bound(Native(name, table[name]), obj)
    if name == "__class__":
        return Native(
            obj.kind if isinstance(obj, Seq) else "dict" if isinstance(obj, Mapping) else "str", lambda it, a, s: NONE
        )
    if isinstance(obj, Seq) and obj.kind == "slice" and name in ("start", "stop", "step"):
        return obj.items[("start", "stop", "step").index(name)]
    if isinstance(obj, (Num, Pattern)):
        return operators.unknown_from("an attribute of a value that is not known", "", obj, name=name)
    raise RaiseSignal("AttributeError")


def _scalar_attribute(obj: Const, name: str) -> Value:
    if not hasattr(obj.value, name):
        raise RaiseSignal("AttributeError")
    found = getattr(obj.value, name)
    if not callable(found):
        return Const(found)

    def method(it: Interpreter, args: Args, site: Site | None) -> Value:
        if all(isinstance(a, Const) for a in args.pos[1:]):
            result = found(*(a.value for a in args.pos[1:] if isinstance(a, Const)))
            return Const(result) if isinstance(result, (int, float, str, bytes, bool, type(None))) else _wrap(result)
        return operators.unknown_from("a method with arguments that are not known", "", *args.pos)

    return Bound(Native(name, method), obj)


def _wrap(result: Any) -> Value:
    if isinstance(result, (list, tuple)):
        return Seq("list" if isinstance(result, list) else "tuple", [_wrap(r) for r in result])
    return (
        Const(result)
        if isinstance(result, (int, float, str, bytes, bool, type(None)))
        else Unknown("a value of a built-in method")
    )


_PREDICATES = (
    "startswith",
    "endswith",
    "isdigit",
    "isalpha",
    "islower",
    "isupper",
    "isalnum",
    "isidentifier",
    "isspace",
    "isnumeric",
)
_LISTS = ("split", "rsplit", "splitlines")


_WIDEST = 10_000


def _text_method(name: str) -> Callable[[Interpreter, Args, Site | None], Value]:
    def method(it: Interpreter, args: Args, site: Site | None) -> Value:
        receiver, *rest = args.pos
        if name == "join":
            return _join_text(it, receiver, rest[0], site)
        if name == "format":
            return _format(receiver, args)
        plain = _plain([*rest, *args.kw.values()])
        text = text_of(receiver)
        if plain is not None and any(isinstance(p, int) and abs(p) > _WIDEST for p in plain):
            plain = None  # a text that is padded too wide to be made
        if isinstance(receiver, Const) and plain is not None and text is not None and len(text) < 100_000:
            count = len(rest)
            kw = dict(zip(args.kw, plain[count:], strict=True))
            try:
                result = getattr(receiver.value, name)(*plain[:count], **kw)
            except (TypeError, ValueError, LookupError):
                return operators.unknown_from(f"str.{name} raises", "str", receiver)
            value = _wrap(result)
            value.places, value.flags = merge_places(receiver.places), receiver.flags
            for v in value.items if isinstance(value, Seq) else ():
                v.places, v.flags = receiver.places, receiver.flags
            return value
        return _unknown_text(name, receiver, rest)

    return method


def _plain(values: list[Value]) -> list[Any] | None:
    out: list[Any] = []
    for v in values:
        if isinstance(v, Const):
            out.append(v.value)
        elif isinstance(v, Seq) and v.kind == "tuple" and all(isinstance(i, Const) for i in v.items):
            out.append(tuple(i.value for i in v.items if isinstance(i, Const)))
        else:
            return None
    return out


def _unknown_text(name: str, receiver: Value, rest: list[Value]) -> Value:
    text = text_of(receiver) or "*"
    if name in _PREDICATES:
        return _predicate(name, text, receiver, rest)
    if name in ("count", "find", "rfind", "index", "rindex"):
        return operators.unknown_from("a position in a text that is not known", "int", receiver, *rest, name=name)
    if name in _LISTS:
        return Seq("list", [Star((operators.pattern("*", receiver),))], flags=receiver.flags)
    if name in ("partition", "rpartition"):
        return Seq("tuple", [operators.pattern("*", receiver) for _ in range(3)], flags=receiver.flags)
    if name == "encode":
        return operators.unknown_from("bytes of a text that is not known", "bytes", receiver)
    if name in ("lower", "upper", "strip", "lstrip", "rstrip", "casefold"):
        return operators.pattern(getattr(text, name)(), receiver, *rest)
    if name == "replace" and len(rest) >= 2 and (plain := _plain(rest)) is not None and "*" not in str(plain[0]):
        return operators.pattern(text.replace(str(plain[0]), str(plain[1])), receiver, *rest)
    return operators.pattern("*", receiver, *rest)


def _predicate(name: str, text: str, receiver: Value, rest: list[Value]) -> Value:
    unknown = operators.unknown_from("a test of a text that is not known", "bool", receiver, *rest)
    plain = _plain(rest)
    if name not in ("startswith", "endswith") or plain is None:
        return unknown
    wanted = plain[0] if isinstance(plain[0], tuple) else (plain[0],)
    fixed = text.split("*")[0 if name == "startswith" else -1]
    if any(getattr(fixed, name)(w) for w in wanted):
        return operators.derived(True, receiver)
    if all(len(w) <= len(fixed) for w in wanted):
        return operators.derived(False, receiver)
    return unknown


def _join_text(it: Interpreter, separator: Value, items: Value, site: Site | None) -> Value:
    from auditor.containers import iterate

    assert site is not None
    source = iterate(it, items, site)
    sep = text_of(separator)
    texts = [text_of(i) if not isinstance(i, Star) else "*" for i in source.items]
    if source.rest is not None or sep is None:
        return operators.pattern("*", separator, items)
    return operators.pattern(sep.join(t if t is not None else "*" for t in texts), separator, items, *source.items)


def _format(receiver: Value, args: Args) -> Value:
    template = text_of(receiver)
    plain = _plain(args.pos[1:])
    named = _plain(list(args.kw.values()))
    if isinstance(receiver, Const) and plain is not None and named is not None:
        try:
            return operators.derived(
                receiver.value.format(*plain, **dict(zip(args.kw, named, strict=True))), receiver, *args.all()
            )
        except (KeyError, IndexError, ValueError):
            pass
    out, depth = "", 0
    for c in template or "*":
        if c == "{":
            depth += 1
            out += "*" if depth == 1 else ""
        elif c == "}":
            depth = max(0, depth - 1)
        elif not depth:
            out += c
    return operators.pattern(out, receiver, *args.all())


# -- sequences --------------------------------------------------------------------------------------------------


def _seq(args: Args) -> Seq:
    obj = args.pos[0]
    assert isinstance(obj, Seq)
    return obj


def _append(it: Interpreter, args: Args, site: Site | None) -> Value:
    obj = _seq(args)
    it.heap.touch(obj)
    value = it.tag(args.pos[1])
    if obj.kind == "set" and any(key_of(i) == key_of(value) for i in obj.items):
        return NONE
    obj.items.append(value)
    return NONE


def _extend(it: Interpreter, args: Args, site: Site | None) -> Value:
    from auditor.containers import iterate

    obj = _seq(args)
    assert site is not None
    for other in args.pos[1:]:
        more = iterate(it, other, site)
        it.heap.touch(obj)
        new = [it.tag(v) for v in more.items]
        if obj.kind == "set":
            mine = {key_of(i) for i in obj.items}
            new = [v for v in new if key_of(v) not in mine]
        obj.items += new
        obj.rest = obj.rest or more.rest
    return NONE


def _insert(it: Interpreter, args: Args, site: Site | None) -> Value:
    obj = _seq(args)
    it.heap.touch(obj)
    where = args.pos[1]
    if isinstance(where, Const) and isinstance(where.value, int) and obj.exact:
        obj.items.insert(where.value, it.tag(args.pos[2]))
    else:
        obj.rest = obj.rest or Unknown(
            "an item was inserted at a position that is not known", places=(site,) if site else ()
        )
    return NONE


def _pop(it: Interpreter, args: Args, site: Site | None) -> Value:
    obj = _seq(args)
    it.heap.touch(obj)
    where = args.pos[1] if len(args.pos) > 1 else Const(-1)
    if obj.kind == "deque" and len(args.pos) == 1:
        where = Const(-1)
    if obj.exact and isinstance(where, Const) and isinstance(where.value, int):
        if -len(obj.items) <= where.value < len(obj.items):
            return obj.items.pop(where.value)
        raise RaiseSignal("IndexError")
    obj.rest = obj.rest or Unknown(
        "an item was removed from a sequence that is not known", places=(site,) if site else ()
    )
    return obj.rest.child("[pop]")


def _remove(it: Interpreter, args: Args, site: Site | None) -> Value:
    obj = _seq(args)
    it.heap.touch(obj)
    for n, i in enumerate(obj.items):
        same = operators.truth(operators.compare("==", i, args.pos[1]))
        if same:
            del obj.items[n]
            return NONE
        if same is None:
            break
    else:
        if obj.exact and obj.kind != "set":
            raise RaiseSignal("ValueError")
        return NONE
    obj.rest = obj.rest or Unknown("an item was removed that is not known", places=(site,) if site else ())
    return NONE


def _index(it: Interpreter, args: Args, site: Site | None) -> Value:
    obj = _seq(args)
    for n, i in enumerate(obj.items):
        same = None if isinstance(i, Star) else operators.truth(operators.compare("==", i, args.pos[1]))
        if same:
            return operators.derived(n, i)
        if same is None:
            return operators.unknown_from("the position of an item that is not known", "int", i, name="index")
    raise RaiseSignal("ValueError")


def _count(it: Interpreter, args: Args, site: Site | None) -> Value:
    obj = _seq(args)
    seen = [operators.truth(operators.compare("==", i, args.pos[1])) for i in obj.items if not isinstance(i, Star)]
    if obj.exact and None not in seen:
        return Const(seen.count(True))
    return operators.unknown_from("a count in a sequence that is not known", "int", obj, name="count")


def _clear(it: Interpreter, args: Args, site: Site | None) -> Value:
    obj = args.pos[0]
    assert isinstance(obj, (Seq, Mapping))
    it.heap.touch(obj)
    obj.restore(([], None) if isinstance(obj, Seq) else ({}, None))  # type: ignore[arg-type]
    return NONE


def _copy(it: Interpreter, args: Args, site: Site | None) -> Value:
    obj = args.pos[0]
    if isinstance(obj, Mapping):
        return Mapping(dict(obj.entries), obj.rest, obj.missing, places=obj.places, flags=obj.flags)
    assert isinstance(obj, Seq)
    return Seq(obj.kind, list(obj.items), obj.rest, places=obj.places, flags=obj.flags)


def _reverse(it: Interpreter, args: Args, site: Site | None) -> Value:
    obj = _seq(args)
    it.heap.touch(obj)
    obj.items.reverse()
    return NONE


def _sort(it: Interpreter, args: Args, site: Site | None) -> Value:
    from auditor.builtins.folds import sorted_items

    obj = _seq(args)
    it.heap.touch(obj)
    obj.items = sorted_items(it, obj, args, site)
    return NONE


def _set_operation(op: str) -> Callable[[Interpreter, Args, Site | None], Value]:
    def method(it: Interpreter, args: Args, site: Site | None) -> Value:
        from auditor.containers import iterate

        assert site is not None
        out: Value = args.pos[0]
        for other in args.pos[1:]:
            out = operators.binary(op, out, Seq("set", iterate(it, other, site).items))
        return out

    return method


def _subset(it: Interpreter, args: Args, site: Site | None) -> Value:
    a, b = args.pos[0], args.pos[1]
    if isinstance(a, Seq) and isinstance(b, Seq) and a.exact and b.exact:
        keys = {key_of(i) for i in b.items}
        return Const(all(key_of(i) in keys for i in a.items))
    return operators.unknown_from("a subset test on a set that is not known", "bool", a, b)


# -- dicts ------------------------------------------------------------------------------------------------------


def _map(args: Args) -> Mapping:
    obj = args.pos[0]
    assert isinstance(obj, Mapping)
    return obj


def _get(it: Interpreter, args: Args, site: Site | None) -> Value:
    from auditor.containers import get_item

    obj, default = _map(args), args.get(2, "default") or NONE
    k = key_of(args.pos[1])
    found = obj.entries.get(k) if k is not None else None
    if obj.missing is not None:
        obj = Mapping(obj.entries, obj.rest)  # `get` makes nothing
    if found is not None:
        value = found[1]
        if isinstance(value, Union) and any(isinstance(o, Absent) for o in value.options):
            return join_all([default, *(o for o in value.options if not isinstance(o, Absent))])
        return value
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
    values = [_maybe(v, present(v)) for _, v in obj.entries.values()]
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
    obj = _map(args)
    it.heap.touch(obj)
    if obj.rest is None and not any(maybe_absent(v) for _, v in obj.entries.values()):
        if not obj.entries:
            raise RaiseSignal("KeyError")
        last = next(reversed(obj.entries))
        name, value = obj.entries.pop(last)
        return Seq("tuple", [name, value])
    obj.rest = operators.unknown_from("an item was taken out of a dict", "", obj)
    return obj.rest.child("[popitem]")


def _update(it: Interpreter, args: Args, site: Site | None) -> Value:
    from auditor.containers import ZERO
    from auditor.expressions import put, update_mapping

    obj = _map(args)
    it.heap.touch(obj)
    if isinstance(obj.missing, Native) and obj.missing.name == ZERO:
        obj.rest = obj.rest or Unknown("counts that were added", places=(site,) if site else ())
        return NONE
    for other in args.pos[1:]:
        update_mapping(it, obj, other)
    for name, value in args.kw.items():
        put(obj, Const(name), it.tag(value), site)
    if args.more is not None:
        obj.rest = obj.rest or args.more
    return NONE


def _setdefault(it: Interpreter, args: Args, site: Site | None) -> Value:
    from auditor.expressions import put

    obj = _map(args)
    k = key_of(args.pos[1])
    if k is not None and k in obj.entries:
        found = obj.entries[k][1]
        if not (isinstance(found, Union) and any(isinstance(o, Absent) for o in found.options)):
            return found
        it.heap.touch(obj)
        there = [o for o in found.options if not isinstance(o, Absent)]
        obj.entries[k] = (obj.entries[k][0], union([*there, args.get(2, "default") or NONE]))
        return obj.entries[k][1]
    it.heap.touch(obj)
    default = args.get(2, "default") or NONE
    put(obj, args.pos[1], default, site)
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
    from auditor.containers import iterate

    assert site is not None
    value = args.get(2, "value") or NONE
    source = iterate(it, args.pos[1], site)
    out = Mapping(rest=source.rest)
    for i in source.items:
        k = key_of(i)
        if k is not None:
            out.entries[k] = (i, value)
    return out


_SEQUENCE: dict[str, Callable[..., Value]] = {
    "append": _append,
    "add": _append,
    "extend": _extend,
    "update": _extend,
    "insert": _insert,
    "pop": _pop,
    "popleft": lambda it, args, site: _pop(it, Args([args.pos[0], Const(0)]), site),
    "appendleft": lambda it, args, site: _insert(it, Args([args.pos[0], Const(0), args.pos[1]]), site),
    "remove": _remove,
    "discard": _remove,
    "index": _index,
    "count": _count,
    "clear": _clear,
    "copy": _copy,
    "reverse": _reverse,
    "sort": _sort,
    "union": _set_operation("|"),
    "intersection": _set_operation("&"),
    "difference": _set_operation("-"),
    "issubset": _subset,
    "issuperset": lambda it, args, site: _subset(it, Args([args.pos[1], args.pos[0]]), site),
    "numel": lambda it, args, site: operators.unknown_from("a number of elements", "int", args.pos[0]),
}
_MAPPING: dict[str, Callable[..., Value]] = {
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


def _set_item(it: Interpreter, args: Args, site: Site | None) -> Value:
    from auditor.containers import set_item

    assert site is not None
    set_item(it, args.pos[0], args.pos[1], it.tag(args.pos[2]), site)
    return NONE


def _get_item(it: Interpreter, args: Args, site: Site | None) -> Value:
    from auditor.containers import get_item

    assert site is not None
    return get_item(it, args.pos[0], args.pos[1], site)


def _delete_item(it: Interpreter, args: Args, site: Site | None) -> Value:
    from auditor.containers import delete_item

    assert site is not None
    delete_item(it, args.pos[0], args.pos[1], site)
    return NONE


ITEMS: dict[str, Callable[..., Value]] = {
    "__setitem__": _set_item,
    "__getitem__": _get_item,
    "__delitem__": _delete_item,
    "__contains__": lambda it, args, site: operators.compare("in", args.pos[1], args.pos[0]),
}
_SEQUENCE |= ITEMS
_MAPPING |= ITEMS
UNBOUND: dict[str, dict[str, Callable[..., Value]]] = {
    "dict": {n: f for n, f in _MAPPING.items() if n != "fromkeys"},
    "list": _SEQUENCE,
    "set": _SEQUENCE,
}
"""What `dict.update` and the like are: the object comes first."""


def from_keys(it: Interpreter, args: Args, site: Site | None) -> Value:
    """`dict.fromkeys(keys, value)`."""
    return _fromkeys(it, Args([Mapping(), *args.pos], args.kw), site)
