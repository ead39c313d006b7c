"""Python's built-in functions, on abstract values."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any

from auditor import dims, documents, families, operators
from auditor.containers import iterate, length
from auditor.expressions import format_value, unique, update_mapping
from auditor.interpreter import ExitSignal, Interpreter, RaiseSignal
from auditor.joins import Absent, join_all, union
from auditor.objects import OBJECT, class_lookup, is_instance, mro
from auditor.places import Site
from auditor.values import (
    FALSE,
    NONE,
    TRUE,
    Args,
    Bound,
    Class,
    Const,
    Env,
    External,
    ExternalObject,
    Function,
    Instance,
    Mapping,
    Native,
    NativeClass,
    Num,
    Pattern,
    Seq,
    Star,
    Tensor,
    Union,
    Unknown,
    Value,
    as_dim,
    merge_flags,
    merge_places,
    number,
    text_of,
)
from auditor.views import attribute_view, is_record, spoil_attributes


def _here(site: Site | None) -> tuple[Site, ...]:
    return (site,) if site else ()


def _print(it: Interpreter, args: Args, site: Site | None) -> Value:
    return NONE


def _baked(it: Interpreter, value: Value, site: Site | None, what: str) -> Value | None:
    """The constant that a traced `forward` makes of a number that differs from call to call; None for any other."""
    return it.events.bakes(value, site, what) if it.events is not None else None


def _len(it: Interpreter, args: Args, site: Site | None) -> Value:
    found = length(it, args.pos[0], site)
    return _baked(it, found, site, "len()") or found


MAX_RANGE = 12
"""A longer range counts as one of unknown length: layers are alike; one that is not shows as a branch on its index."""


def _range(it: Interpreter, args: Args, site: Site | None) -> Value:
    bounds = [as_dim(_baked(it, a, site, "range()") or a) for a in args.pos]
    if all(isinstance(b, int) for b in bounds):
        numbers = range(*[b for b in bounds if isinstance(b, int)])
        flags, places = merge_flags(args.pos), merge_places(*(a.places for a in args.pos))
        if len(numbers) <= MAX_RANGE:
            return Seq("list", [Const(n, places=places, flags=flags) for n in numbers], places=places, flags=flags)
    index = Unknown("an index of a loop of unknown length", "index", "int", places=_here(site))
    index.flags = merge_flags(args.pos)
    if any(isinstance(b, dims.Poly) and b.query for b in bounds):
        index.query = True
    return Seq("list", [Star((index,))], places=_here(site), flags=index.flags)


def _enumerate(it: Interpreter, args: Args, site: Site | None) -> Value:
    assert site is not None
    source = iterate(it, args.pos[0], site)
    start = args.get(1, "start")
    first = start.value if isinstance(start, Const) and isinstance(start.value, int) else 0
    out: list[Value] = []
    for n, i in enumerate(source.items):
        if isinstance(i, Star):
            index = Unknown("an index of a loop of unknown length", "index", "int", places=_here(site))
            out.append(Star(tuple(Seq("tuple", [index, v]) for v in i.items)))
        elif any(isinstance(o, Star) for o in out):
            out.append(Seq("tuple", [Unknown("an index behind a loop of unknown length", "index", "int"), i]))
        else:
            out.append(Seq("tuple", [Const(first + n), i]))
    return Seq("list", out, source.rest, flags=source.flags)


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
    options = [v for i in source.items for v in (i.items if isinstance(i, Star) else (i,))]
    if source.rest is not None or not options:
        return (
            source.rest.child(f"[{position}]")
            if source.rest
            else Unknown("an item of an empty sequence", places=(site,))
        )
    return union(options)


def _sequence(kind: str) -> Callable[[Interpreter, Args, Site | None], Value]:
    def make(it: Interpreter, args: Args, site: Site | None) -> Value:
        if not args.pos:
            return Seq(kind, [], places=_here(site))
        assert site is not None
        if (
            isinstance(args.pos[0], Union)
            and kind in ("list", "tuple")
            and (kept := _each_length(it, args, kind, site))
        ):
            return kept
        source = iterate(it, args.pos[0], site)
        items = unique(source.items) if kind in ("set", "frozenset") else list(source.items)
        return Seq(kind, items, source.rest, places=source.places or (site,), flags=source.flags)

    return make


def _each_length(it: Interpreter, args: Args, kind: str, site: Site) -> Value | None:
    """The list or tuple of each option, when they are known and of different lengths: joined, they would not be."""
    given = args.pos[0]
    parts = (
        [iterate(it, o, site) for o in given.options if not isinstance(o, Absent)] if isinstance(given, Union) else []
    )
    if not all(p.exact for p in parts) or len({len(p.items) for p in parts}) < 2:
        return None
    return union(Seq(kind, list(p.items), places=p.places or (site,), flags=given.flags | p.flags) for p in parts)


def _dict(it: Interpreter, args: Args, site: Site | None) -> Value:
    out = Mapping(places=_here(site))
    for a in args.pos:
        update_mapping(it, out, a.payload if isinstance(a, Instance) and isinstance(a.payload, Mapping) else a)
        out.flags = out.flags | a.flags
    for name, value in args.kw.items():
        out.entries[("str", name)] = (Const(name), value)
    if args.more is not None:
        out.rest = out.rest or args.more
    return out


def _no_number(name: str, value: Const, error: Exception, site: Site | None) -> RaiseSignal:
    return RaiseSignal(type(error).__name__, Unknown(f"{name}({value.value!r})", places=_here(site)))


def _int(it: Interpreter, args: Args, site: Site | None) -> Value:
    if not args.pos:
        return Const(0)
    value = args.pos[0]
    if isinstance(value, Union):
        return it.each(value, lambda o: _int(it, Args([o, *args.pos[1:]]), site))
    if isinstance(value, Const):
        try:
            base = args.pos[1].value if len(args.pos) > 1 and isinstance(args.pos[1], Const) else None
            return operators.derived(int(value.value, base) if base else int(value.value), value)
        except (TypeError, ValueError) as error:
            raise _no_number("int", value, error, site) from None
    baked = _baked(it, value, site, "int()")
    if baked is not None or isinstance(value, Num):
        return baked or value
    if isinstance(value, Tensor) and value.data is not None:
        return _int(it, Args([value.data]), site)
    if isinstance(value, Unknown):
        if value.kind not in ("int", "float", "bool"):
            it.may_raise("ValueError")
        return value if value.kind == "int" else value.child(".int", "int")
    return operators.unknown_from("int() of a value that is not known", "int", value, name="int")


def _float(it: Interpreter, args: Args, site: Site | None) -> Value:
    value = args.pos[0] if args.pos else Const(0.0)
    if isinstance(value, Union):
        return it.each(value, lambda o: _float(it, Args([o]), site))
    if isinstance(value, Const):
        try:
            return operators.derived(float(value.value), value)
        except (TypeError, ValueError) as error:
            raise _no_number("float", value, error, site) from None
    baked = _baked(it, value, site, "float()")
    if baked is not None or isinstance(value, Num):
        return baked or value
    return (
        value.child(".float", "float")
        if isinstance(value, Unknown)
        else operators.unknown_from("float() of a value that is not known", "float", value, name="float")
    )


def _str(it: Interpreter, args: Args, site: Site | None) -> Value:
    if not args.pos:
        return Const("")
    value = args.pos[0]
    if isinstance(value, Union):
        return union(_str(it, Args([o]), site) for o in value.options)
    if isinstance(value, Instance) and not isinstance(value.payload, (Const, Pattern)):
        try:
            return it.call(it.get(value, "__str__", site), Args(), site)
        except RaiseSignal:
            pass
    return operators.pattern(format_value(value, "", None), value)


def _bool(it: Interpreter, args: Args, site: Site | None) -> Value:
    if not args.pos:
        return FALSE
    known = operators.truth(args.pos[0])
    return (
        operators.derived(known, args.pos[0])
        if known is not None
        else operators.unknown_from("bool() of a value that is not known", "bool", args.pos[0])
    )


def _isinstance(it: Interpreter, args: Args, site: Site | None) -> Value:
    known = is_instance(it, args.pos[0], args.pos[1])
    return (
        Const(known)
        if known is not None
        else operators.unknown_from("isinstance() of a value that is not known", "bool", args.pos[0])
    )


def _issubclass(it: Interpreter, args: Args, site: Site | None) -> Value:
    cls, wanted = args.pos[0], args.pos[1]
    options = wanted.items if isinstance(wanted, Seq) else [wanted]
    order = mro(cls)
    if any(c is w for c in order for w in options):
        return TRUE
    if any(isinstance(c, (External, Unknown)) for c in order):
        return operators.unknown_from("issubclass() of a class whose bases were not read", "bool", cls)
    return FALSE


def _hasattr(it: Interpreter, args: Args, site: Site | None) -> Value:
    name = text_of(args.pos[1])
    if name is None or "*" in name:
        return operators.unknown_from("hasattr() with a name that is not known", "bool", args.pos[1])
    obj = args.pos[0]
    if isinstance(obj, Union):
        return union(_hasattr(it, Args([o, args.pos[1]]), site) for o in obj.options)
    if isinstance(obj, (Unknown, ExternalObject, External)) or (
        isinstance(obj, Bound) and isinstance(obj.function, External)
    ):
        if isinstance(obj, Unknown) and f".{name}" in obj.assigned:
            return TRUE
        return operators.unknown_from(f"whether a value that is not known has `{name}`", "bool", obj)
    if (
        isinstance(obj, Instance)
        and isinstance(own := obj.attrs.get(name), Union)
        and any(isinstance(o, Absent) for o in own.options)
    ):
        return operators.unknown_from(f"whether `{name}` was set", "bool", own)
    if isinstance(obj, Instance) and name not in obj.attrs and (member := families.find(obj, name)) is not None:
        return operators.unknown_from(f"whether a loop has set `{name}`", "bool", member)
    try:
        found = it.get(obj, name, site)
    except RaiseSignal:
        return FALSE
    if isinstance(found, Unknown) and isinstance(obj, Instance) and not isinstance(obj.attrs.get(name), Const):
        known, sure = class_lookup(obj.cls, name)
        if known is None and (not sure or (obj.taint is not None and name not in obj.attrs)):
            return operators.unknown_from(f"whether an object that was not read has `{name}`", "bool", found)
    return TRUE


def _getattr(it: Interpreter, args: Args, site: Site | None) -> Value:
    obj, key = args.pos[0], args.pos[1]
    default = args.get(2, "default")
    name = text_of(key)
    if isinstance(key, Union):
        return union(_getattr(it, Args([obj, k, *args.pos[2:]]), site) for k in key.options)
    if name is not None and "*" in name and isinstance(obj, Instance):
        found = families.find(obj, name)
        if found is not None:
            return found
    if name is None or "*" in name:
        return operators.unknown_from("getattr() with a name that is not known", "", key)
    if isinstance(obj, Union):
        return union(_getattr(it, Args([o, key, *args.pos[2:]]), site) for o in obj.options)
    try:
        found = it.get(obj, name, site)
    except RaiseSignal:
        if default is None:
            raise
        return default
    if default is None:
        return found
    there = _hasattr(it, Args([obj, key]), site)
    if operators.truth(there) is not None:
        return found if operators.truth(there) else default
    if isinstance(found, Unknown) and isinstance(default, Const):
        return _maybe_default(found, default)
    return join_all([found, default])


def _maybe_default(found: Unknown, default: Const) -> Value:
    """An attribute of an object from a checkpoint, or the default: one unknown for numbers, either for the rest.

    A number stays one unknown: which one it is changes no shape's structure, and a union would double every shape.
    """
    if isinstance(default.value, bool) or default.value is None or isinstance(default.value, str):
        return union([found, default])
    return found


def _setattr(it: Interpreter, args: Args, site: Site | None) -> Value:
    name = text_of(args.pos[1])
    obj = args.pos[0]
    if name is None or "*" in name:
        from auditor.calls import taint

        kind = "data" if isinstance(obj, Instance) and is_record(obj, args.pos[2]) else ""
        cause = Unknown("an attribute was set under a name that is not known", kind=kind, places=_here(site))
        taint(it, Args([obj]), cause)
        if isinstance(obj, Instance):
            spoil_attributes(it, obj, cause)
        return NONE
    it.set(obj, name, args.pos[2], site)
    return NONE


def _delattr(it: Interpreter, args: Args, site: Site | None) -> Value:
    obj, name = args.pos[0], text_of(args.pos[1])
    if isinstance(obj, Instance) and name:
        it.heap.touch(obj)
        obj.attrs.pop(name, None)
    elif isinstance(obj, Class) and name:
        it.heap.touch(obj.env)
        obj.env.names.pop(name, None)
    return NONE


def _type(it: Interpreter, args: Args, site: Site | None) -> Value:
    obj = args.pos[0]
    if len(args.pos) == 3:
        bases = args.pos[1]
        names = args.pos[2]
        env = Env({k[1]: v for k, (_, v) in names.entries.items()} if isinstance(names, Mapping) else {})
        cls = Class(text_of(args.pos[0]) or "?", tuple(bases.items) if isinstance(bases, Seq) else (), env, site=site)
        for v in env.names.values():
            if isinstance(v, Function) and v.owner is None:
                v.owner = cls
        return cls
    if isinstance(obj, Instance):
        return obj.cls
    if isinstance(obj, Const):
        return it.loader.builtins.get(type(obj.value).__name__, Unknown("a type"))
    if isinstance(obj, Seq):
        return it.loader.builtins.get(obj.kind, Unknown("a type"))
    if isinstance(obj, Mapping):
        return it.loader.builtins["dict"]
    return operators.unknown_from("type() of a value that is not known", "", obj)


def _fold(pick: Callable[..., Any], name: str) -> Callable[[Interpreter, Args, Site | None], Value]:
    def fold(it: Interpreter, args: Args, site: Site | None) -> Value:
        assert site is not None
        items = args.pos if len(args.pos) > 1 else iterate(it, args.pos[0], site).items
        exact = len(args.pos) > 1 or iterate(it, args.pos[0], site).exact
        if exact and items and "key" in args.kw:
            ranked = sorted_items(it, Seq("list", list(items)), Args([], {"key": args.kw["key"]}), site)
            keys = [it.call(args.kw["key"], Args([i]), site) for i in ranked]
            if all(isinstance(k, Const) for k in keys):
                return (
                    ranked[0]
                    if name == "min"
                    else next(
                        r
                        for r, k in zip(ranked, keys, strict=True)
                        if operators.truth(operators.compare("==", k, keys[-1]))
                    )
                )
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
        kind = (
            "int"
            if all(as_dim(v) is not None for i in source.items for v in (i.items if isinstance(i, Star) else (i,)))
            else ""
        )
        return operators.unknown_from(
            "a sum over a sequence of unknown length", kind, source, *source.items, name="sum"
        )
    from auditor.expressions import binary

    for i in source.items:
        total = binary(it, "+", total, i, site)
    return total


def _any(wanted: bool) -> Callable[[Interpreter, Args, Site | None], Value]:
    def test(it: Interpreter, args: Args, site: Site | None) -> Value:
        assert site is not None
        source = iterate(it, args.pos[0], site)
        seen = [operators.truth(v) for i in source.items for v in (i.items if isinstance(i, Star) else (i,))]
        if wanted in seen and not any(isinstance(i, Star) for i in source.items):
            return operators.derived(wanted, *source.items)
        if source.exact and None not in seen:
            return operators.derived(not wanted, *source.items) if wanted not in seen else Const(wanted)
        return operators.unknown_from("any() or all() over values that are not known", "bool", *source.items)

    return test


def sorted_items(it: Interpreter, source: Seq, args: Args, site: Site | None) -> list[Value]:
    key, reverse = args.kw.get("key"), args.kw.get("reverse")
    if not source.exact:
        return list(source.items)
    keys = [
        it.call(key, Args([i]), site) if key is not None and not (isinstance(key, Const)) else i for i in source.items
    ]
    plain = [_sort_key(k) for k in keys]
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


def _map(it: Interpreter, args: Args, site: Site | None) -> Value:
    assert site is not None
    function, *sources = args.pos
    rows = iterate(it, _zip(it, Args(sources), site), site)
    out: list[Value] = []
    for row in rows.items:
        items = row.items if isinstance(row, Star) else (row,)
        results = [it.call(function, Args(list(r.items)), site) for r in items if isinstance(r, Seq)]
        out.append(Star(tuple(results)) if isinstance(row, Star) else results[0])
    return Seq("list", out, rows.rest, flags=rows.flags)


def _filter(it: Interpreter, args: Args, site: Site | None) -> Value:
    assert site is not None
    function, source = args.pos[0], iterate(it, args.pos[1], site)
    out: list[Value] = []
    for i in source.items:
        if isinstance(i, Star):
            out.append(i)
            continue
        test = i if isinstance(function, Const) else it.call(function, Args([i]), site)
        known = operators.truth(test)
        if known is None:
            out.append(Star((i,)))
        elif known:
            out.append(i)
    return Seq("list", out, source.rest, flags=source.flags)


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
    options = [v for i in source.items for v in (i.items if isinstance(i, Star) else (i,))]
    if source.rest is not None:
        options.append(source.rest.child("[0]"))
    return union([*options, default] if default is not None else options)


def _iter(it: Interpreter, args: Args, site: Site | None) -> Value:
    assert site is not None
    source = iterate(it, args.pos[0], site)
    return Seq("iterator", list(source.items), source.rest, flags=source.flags)


def _callable(it: Interpreter, args: Args, site: Site | None) -> Value:
    v = args.pos[0]
    if isinstance(v, (Function, Bound, Native, Class, NativeClass, External)):
        return TRUE
    if isinstance(v, (Const, Seq, Mapping, Num, Pattern)):
        return FALSE
    return operators.unknown_from("callable() of a value that is not known", "bool", v)


def _abs(it: Interpreter, args: Args, site: Site | None) -> Value:
    v = args.pos[0]
    if isinstance(v, Const):
        return operators.derived(abs(v.value), v)
    return v if isinstance(v, (Num, Tensor)) else operators.unknown_from("abs() of a value that is not known", "", v)


def _round(it: Interpreter, args: Args, site: Site | None) -> Value:
    if not isinstance(args.pos[0], Tensor) and (baked := _baked(it, args.pos[0], site, "round()")) is not None:
        return baked
    if all(isinstance(a, Const) for a in args.pos):
        return operators.derived(round(*(a.value for a in args.pos if isinstance(a, Const))), *args.pos)
    return (
        args.pos[0]
        if isinstance(args.pos[0], (Num, Tensor))
        else operators.unknown_from("round()", "int", *args.pos, name="round")
    )


def _divmod(it: Interpreter, args: Args, site: Site | None) -> Value:
    return Seq("tuple", [operators.binary("//", *args.pos), operators.binary("%", *args.pos)])


def _vars(it: Interpreter, args: Args, site: Site | None) -> Value:
    obj = args.pos[0] if args.pos else None
    if isinstance(obj, Instance):
        return attribute_view(obj, obj.attrs, obj.taint)
    return Unknown("vars() of a value that is not known", "vars()", "dict", places=_here(site))


def _read_config(it: Interpreter, args: Args, site: Site | None) -> Value:
    obj = args.pos[0]
    assert isinstance(obj, Instance)
    return Instance(CONFIG_FILE, dict(obj.attrs), places=obj.places, flags=obj.flags)


CONFIG_FILE = NativeClass("file", {"read": _read_config, "close": lambda it, args, site: NONE})
"""A configuration, opened: `json.load` of it, or `json.loads` of its text, gives its data."""


def _open(it: Interpreter, args: Args, site: Site | None) -> Value:
    name = format_value(args.pos[0], "", None) if args.pos else "*"
    it.may_raise("FileNotFoundError")
    if name.endswith("config.json") and it.loader.checkpoints.text(name) is not None:
        return Instance(CONFIG_FILE, {"name": Const(name)})
    mode = text_of(args.get(1, "mode") or Const("r"))
    if mode is None or set(mode) & set("wax+*"):
        it.written.add(name)
    elif documents.find(it, name) is not None:
        return Instance(CONFIG_FILE, {"document": Const(name)}, places=_here(site), flags=args.pos[0].flags)
    return Unknown(
        f"the contents of the file `{name}` are read at run time", f"open({name})", "file", places=_here(site)
    )


def _exit(it: Interpreter, args: Args, site: Site | None) -> Value:
    raise ExitSignal("SystemExit")


def _pow(it: Interpreter, args: Args, site: Site | None) -> Value:
    return operators.binary("**", args.pos[0], args.pos[1])


def _id(it: Interpreter, args: Args, site: Site | None) -> Value:
    return Const(id(args.pos[0]))


def _slice(it: Interpreter, args: Args, site: Site | None) -> Value:
    given = [*args.pos, NONE, NONE]
    bounds = [NONE, args.pos[0], NONE] if len(args.pos) == 1 else given[:3]
    return Seq("slice", list(bounds), places=_here(site))


def _descriptor(kind: str) -> Callable[[Interpreter, Args, Site | None], Value]:
    def decorate(it: Interpreter, args: Args, site: Site | None) -> Value:
        f = args.pos[0]
        if isinstance(f, Function):
            f.kind = kind
        return f

    return decorate


def _input(it: Interpreter, args: Args, site: Site | None) -> Value:
    return Unknown("input() is typed in at run time", "input()", "str", places=_here(site))


def _exec(it: Interpreter, args: Args, site: Site | None) -> Value:
    it.poison = Unknown("code in a string is not evaluated", "exec()", places=_here(site))
    return it.poison


def _chr(it: Interpreter, args: Args, site: Site | None) -> Value:
    v = args.pos[0]
    return operators.derived(chr(v.value), v) if isinstance(v, Const) else operators.pattern("*", v)


def _ord(it: Interpreter, args: Args, site: Site | None) -> Value:
    v = args.pos[0]
    return operators.derived(ord(v.value), v) if isinstance(v, Const) else operators.unknown_from("ord()", "int", v)


def _import(it: Interpreter, args: Args, site: Site | None) -> Value:
    name = text_of(args.pos[0])
    assert site is not None
    return (
        it.loader.import_module(it, name.split(".")[0], None, site)
        if name and "*" not in name
        else Unknown("a module whose name is not known", places=(site,))
    )


_EXCEPTIONS = """
BaseException Exception ArithmeticError AssertionError AttributeError EOFError FileExistsError FileNotFoundError
ImportError IndexError IOError KeyError KeyboardInterrupt LookupError MemoryError ModuleNotFoundError NameError
NotImplementedError OSError OverflowError PermissionError RecursionError RuntimeError StopIteration SyntaxError
SystemExit TimeoutError TypeError UnicodeDecodeError ValueError Warning UserWarning DeprecationWarning FutureWarning
RuntimeWarning ZeroDivisionError
"""

_FUNCTIONS: dict[str, Callable[..., Value]] = {
    "print": _print,
    "len": _len,
    "range": _range,
    "enumerate": _enumerate,
    "zip": _zip,
    "list": _sequence("list"),
    "tuple": _sequence("tuple"),
    "set": _sequence("set"),
    "frozenset": _sequence("frozenset"),
    "dict": _dict,
    "int": _int,
    "float": _float,
    "str": _str,
    "repr": _str,
    "bool": _bool,
    "isinstance": _isinstance,
    "issubclass": _issubclass,
    "hasattr": _hasattr,
    "getattr": _getattr,
    "setattr": _setattr,
    "delattr": _delattr,
    "type": _type,
    "min": _fold(min, "min"),
    "max": _fold(max, "max"),
    "sum": _sum,
    "any": _any(True),
    "all": _any(False),
    "sorted": _sorted,
    "reversed": _reversed,
    "map": _map,
    "filter": _filter,
    "next": _next,
    "iter": _iter,
    "callable": _callable,
    "abs": _abs,
    "round": _round,
    "divmod": _divmod,
    "vars": _vars,
    "open": _open,
    "exit": _exit,
    "quit": _exit,
    "pow": _pow,
    "id": _id,
    "hash": _id,
    "slice": _slice,
    "property": _descriptor("property"),
    "classmethod": _descriptor("classmethod"),
    "staticmethod": _descriptor("staticmethod"),
    "input": _input,
    "exec": _exec,
    "eval": _exec,
    "chr": _chr,
    "ord": _ord,
    "super": lambda it, args, site: Unknown("super() outside a method"),
    "locals": lambda it, args, site: Unknown("locals() outside a function"),
    "globals": lambda it, args, site: Unknown("globals() outside a function"),
    "bytes": lambda it, args, site: Unknown("bytes", "bytes", "bytes"),
    "bytearray": lambda it, args, site: Unknown("bytes", "bytearray", "bytes"),
    "memoryview": lambda it, args, site: Unknown("bytes", "memoryview", "bytes"),
    "format": lambda it, args, site: operators.pattern("*", *args.pos),
    "hex": lambda it, args, site: operators.pattern("*", *args.pos),
    "bin": lambda it, args, site: operators.pattern("*", *args.pos),
    "dir": lambda it, args, site: Unknown("dir() of a value", "dir()", "list"),
    "complex": lambda it, args, site: Unknown("a complex number"),
    "__import__": _import,
    "breakpoint": _print,
}


def _exception_made(it: Interpreter, args: Args, site: Site | None) -> Value:
    obj = args.pos[0]
    if isinstance(obj, Instance):
        obj.attrs["args"] = Seq("tuple", args.pos[1:], args.more)
    return NONE


def _exception_text(it: Interpreter, args: Args, site: Site | None) -> Value:
    obj = args.pos[0]
    given = obj.attrs.get("args") if isinstance(obj, Instance) else None
    if isinstance(given, Seq) and given.exact and len(given.items) < 2:
        return _str(it, Args(given.items), site)
    return operators.pattern("*", *([given] if given is not None else []))


def _exception(cls: type, names: dict[str, Value]) -> Value:
    """A class of exceptions with those that it derives from."""
    if cls is object:
        return OBJECT
    found = names.get(cls.__name__)
    if found is None:
        bases = tuple(_exception(b, names) for b in cls.__bases__)
        methods = {"__init__": _exception_made, "__str__": _exception_text} if cls is BaseException else {}
        found = names[cls.__name__] = NativeClass(cls.__name__, dict(methods), bases, closed=True)
    return found


def builtin_names() -> dict[str, Value]:
    """Everything that Python finds without an import."""
    names: dict[str, Value] = {n: Native(n, f) for n, f in _FUNCTIONS.items()}
    for n in _EXCEPTIONS.split():
        names[n] = _exception(getattr(builtins, n), names)
    names["object"] = OBJECT
    names["NotImplemented"] = Const(NotImplemented)
    names["True"], names["False"], names["None"] = TRUE, FALSE, NONE
    names["__debug__"] = TRUE
    names["Ellipsis"] = Const(...)
    return names
