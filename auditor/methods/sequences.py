"""Methods of lists, tuples, sets and deques."""

from __future__ import annotations

from auditor import operators
from auditor.builtins.folds import sorted_items
from auditor.containers.entries import unique
from auditor.containers.iteration import iterate
from auditor.interpreter import Handler, Interpreter, RaiseSignal
from auditor.methods.items import ITEMS
from auditor.places import Site, here
from auditor.values import NONE, Args, Const, Seq, Star, Unknown, Value, key_of


def _seq(args: Args) -> Seq:
    obj = args.pos[0]
    assert isinstance(obj, Seq)
    return obj


def _append(it: Interpreter, args: Args, site: Site | None) -> Value:
    obj = _seq(args)
    it.heap.touch(obj)
    value = it.tag(args.pos[1])
    if obj.kind == "set":
        _join_members(obj, [value])
    else:
        obj.items.append(value)
    return NONE


def _join_members(obj: Seq, new: list[Value]) -> None:
    """Put into a set what it does not have; of what is not known, it may have it."""
    obj.items, unsure = unique([*obj.items, *new])
    obj.rest = obj.rest or unsure


def _extend(it: Interpreter, args: Args, site: Site | None) -> Value:
    obj = _seq(args)
    assert site is not None
    for other in args.pos[1:]:
        more = iterate(it, other, site)
        it.heap.touch(obj)
        new = [it.tag(v) for v in more.items]
        if obj.kind == "set":
            _join_members(obj, new)
        else:
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
        obj.rest = obj.rest or Unknown("an item was inserted at a position that is not known", places=here(site))
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
    obj.rest = obj.rest or Unknown("an item was removed from a sequence that is not known", places=here(site))
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
    obj.rest = obj.rest or Unknown("an item was removed that is not known", places=here(site))
    return NONE


def _index(it: Interpreter, args: Args, site: Site | None) -> Value:
    obj = _seq(args)
    if len(args.pos) > 2:
        return operators.unknown_from("the position of an item in a part of a list", "int", *args.pos, name="index")
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
    obj = _seq(args)
    it.heap.touch(obj)
    obj.restore(([], None))
    return NONE


def _copy(it: Interpreter, args: Args, site: Site | None) -> Value:
    obj = _seq(args)
    return Seq(obj.kind, list(obj.items), obj.rest, places=obj.places, flags=obj.flags)


def _reverse(it: Interpreter, args: Args, site: Site | None) -> Value:
    obj = _seq(args)
    it.heap.touch(obj)
    obj.items.reverse()
    return NONE


def _sort(it: Interpreter, args: Args, site: Site | None) -> Value:
    obj = _seq(args)
    it.heap.touch(obj)
    obj.items = sorted_items(it, obj, args, site)
    return NONE


def _set_operation(op: str) -> Handler:
    def method(it: Interpreter, args: Args, site: Site | None) -> Value:
        assert site is not None
        out: Value = args.pos[0]
        for other in args.pos[1:]:
            out = operators.binary(op, out, Seq("set", iterate(it, other, site).items))
        return out

    return method


def _subset(it: Interpreter, args: Args, site: Site | None) -> Value:
    a, b = args.pos[0], args.pos[1]
    if isinstance(a, Seq) and isinstance(b, Seq) and a.exact and b.exact:
        mine, keys = ({key_of(i) for i in s.items} for s in (a, b))
        if None not in mine | keys:
            return Const(mine <= keys)
    return operators.unknown_from("a subset test on a set that is not known", "bool", a, b)


METHODS: dict[str, Handler] = {
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
METHODS |= ITEMS
