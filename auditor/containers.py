"""Items of containers: iteration, subscripts, slices and unpacking."""

from __future__ import annotations

from typing import Any

from auditor import operators
from auditor.assumptions import way_to
from auditor.interpreter import Interpreter, RaiseSignal
from auditor.joins import Absent, join_all, maybe_absent, same, union
from auditor.objects.inheritance import class_lookup
from auditor.places import Site
from auditor.values import (
    NO_FLAGS,
    NONE,
    Args,
    Class,
    Const,
    External,
    ExternalObject,
    Function,
    Instance,
    Key,
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
    key_of,
    merge_places,
    number,
    text_of,
)


def make_slice(lower: Value, upper: Value, step: Value, site: Site | None = None) -> Seq:
    return Seq("slice", [lower, upper, step], places=(site,) if site else ())


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
    parts = [iterate(it, o, site) for o in value.options if not isinstance(o, Absent)]
    if parts and all(p.exact and len(p.items) == len(parts[0].items) for p in parts):
        return Seq("list", [join_all(i) for i in zip(*(p.items for p in parts), strict=True)], flags=value.flags)
    shortest = min(parts, key=lambda p: len(p.items)) if parts else Seq("list", [])
    rest = Unknown("items of one of several values", places=merge_places((site,), value.places), flags=value.flags)
    head = []
    for i, item in enumerate(shortest.items):
        if all(p.exact and len(p.items) > i for p in parts):
            head.append(join_all([item, *(p.items[i] for p in parts)]))
    return Seq("list", head, rest, flags=value.flags)


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
        return Seq("list", [row] * value.shape[0])
    shape = value.shape[1:] if value.shape else None
    row = Tensor(
        shape, value.dtype, value.reason, tags=value.tags, cuts=value.cuts, base=value.base, places=value.places
    )
    return Seq("list", [Star((row,))])


def get_item(it: Interpreter, obj: Value, key: Value, site: Site) -> Value:
    """`obj[key]`."""
    match obj:
        case Union():
            return it.each(obj, lambda o: get_item(it, o, key, site))
        case Seq():
            return _sequence_item(it, obj, key, site)
        case Mapping():
            return _mapping_item(it, obj, key, site)
        case Tensor():
            from auditor.torch.indexing import index_tensor

            return index_tensor(it, obj, key, site)
        case Const(value=str()) | Pattern():
            return _text_item(obj, key)
        case Instance(payload=(Seq() | Mapping()) as inner):
            return get_item(it, inner, key, site)
        case Instance():
            return it.call(it.get(obj, "__getitem__", site), Args([key]), site)
        case Unknown():
            from auditor.torch import last_row

            k = key_of(key)
            it.may_raise("KeyError")
            part = (
                obj.child(f"[{k[1]!r}]", number=_atoms(k))
                if k
                else operators.unknown_from(
                    obj.reason, "data" if obj.kind == "data" else "", obj, key, name=f"{obj.name}[?]"
                )
            )
            return last_row.taken(it, obj, key, part, site) if it.events is not None else part
        case ExternalObject():
            return it.get(obj, "__getitem__()", site)
        case External(dotted="sys.modules") if (loaded := it.loader.loaded(it, text_of(key) or "")) is not None:
            return loaded
        case External(dotted=dotted) if not dotted.rsplit(".", 1)[-1][:1].isupper():
            it.may_raise("KeyError")
            return Unknown(
                f"`{dotted}[...]` is known at run time only",
                f"{dotted}[]",
                "str" if dotted == "os.environ" else "",
                places=(site,),
            )
        case Class() | NativeClass() | External() | Native():
            return obj  # a generic alias: list[int], Sequence[str]
    return operators.unknown_from("an item of a value that has none", "", obj)


def _atoms(key: Key) -> str:
    """Which numbers go into a key: those of two loops may have the same name."""
    return " ".join(str(a.number) for a in sorted(key[1].atoms, key=lambda a: a.number)) if key[0] == "dim" else ""


def _bounds(key: Seq, length: int) -> slice | None:
    parts: list[int | None] = []
    for p in key.items:
        if isinstance(p, Const) and (p.value is None or isinstance(p.value, int)):
            parts.append(p.value)
        else:
            return None
    return slice(*parts) if parts[2] != 0 else None


def _sequence_item(it: Interpreter, obj: Seq, key: Value, site: Site) -> Value:
    if isinstance(key, Seq) and key.kind == "slice":
        bounds = _bounds(key, len(obj.items))
        if bounds is not None and obj.exact:
            return Seq(obj.kind, obj.items[bounds], places=obj.places, flags=obj.flags)
        return Seq(obj.kind, [Star((o,)) for o in _distinct(obj)], obj.rest, places=obj.places, flags=obj.flags)
    if isinstance(key, Const) and isinstance(key.value, int):
        if obj.exact:
            if -len(obj.items) <= key.value < len(obj.items):
                return obj.items[key.value]
            raise RaiseSignal("IndexError")
        head = next((n for n, i in enumerate(obj.items) if isinstance(i, Star)), len(obj.items))
        if 0 <= key.value < head:
            return obj.items[key.value]
        if key.value < 0 and obj.rest is None:
            tail = next((n for n, i in enumerate(reversed(obj.items)) if isinstance(i, Star)), len(obj.items))
            if -key.value <= tail:
                return obj.items[key.value]
    if isinstance(key, Const) and isinstance(key.value, str):
        raise RaiseSignal("TypeError")
    repeated = repetition(obj)
    if repeated is not None and repeated.replaced is not None and repeated.replaced[0] is key:
        return repeated.replaced[1]
    options = _distinct(obj)
    if obj.rest is not None or not options:
        return operators.unknown_from("an item of a sequence that is not known", "", obj.rest or obj, key)
    found = union(options)
    if not obj.exact:
        it.assumed.hand_out((found,), way_to(key))
    return found


def repetition(obj: Seq) -> Star | None:
    """The items of a sequence that is nothing but a repetition of unknown length."""
    found = obj.items[0] if len(obj.items) == 1 and obj.rest is None else None
    return found if isinstance(found, Star) else None


def _distinct(obj: Seq) -> list[Value]:
    out: list[Value] = []
    for i in obj.items:
        for v in i.items if isinstance(i, Star) else (i,):
            if all(v is not o for o in out):
                out.append(v)
    return out


def _mapping_item(it: Interpreter, obj: Mapping, key: Value, site: Site) -> Value:
    if isinstance(key, Union):
        nobodys = next((k for k in key.options if isinstance(k, Unknown)), None) if it.choices.taken else None
        if nobodys is not None and it.choices.took(found := _mapping_item(it, obj, nobodys, site)):
            return found
        return it.each(key, lambda k: _mapping_item(it, obj, k, site))
    k = key_of(key)
    entry = obj.entries.get(k) if k is not None else None
    if _chooses(key):
        it.chosen_by.append(key)
    if entry is not None:
        if it.maybe_raised and maybe_absent(entry[1]):
            it.may_raise("KeyError")
        return drop_absent(entry[1])
    surely = (
        k is not None and k[0] in ("str", "num", "NoneType", "bool", "tuple", "external", "id") and obj.rest is None
    )
    if surely and not any(name[0] in ("pattern", "dim") for name in obj.entries):
        if obj.missing is not None:
            return _made_entry(it, obj, key, site)
        raise RaiseSignal("KeyError", key)
    if obj.rest is not None and k is not None:
        return obj.rest.child(f"[{k[1]!r}]")
    if obj.entries and obj.rest is None:
        candidates = [
            v for n, (kv, v) in obj.entries.items() if operators.truth(operators.compare("==", kv, key)) is not False
        ]
        if candidates:
            return it.choices.choose(candidates, site) or union(drop_absent(c) for c in candidates)
    return operators.unknown_from("an item under a key that is not known", "", key, obj.rest or obj)


def _made_entry(it: Interpreter, obj: Mapping, key: Value, site: Site) -> Value:
    """An entry that a `defaultdict` makes when it is looked up; a `Counter` gives zero and keeps nothing."""
    from auditor.expressions import put

    assert obj.missing is not None
    made = it.call(obj.missing, Args(), site)
    if not (isinstance(obj.missing, Native) and obj.missing.name == ZERO):
        it.heap.touch(obj)
        put(obj, key, made, site)
    return made


ZERO = "Counter.__missing__"


def _chooses(key: Value) -> bool:
    """Whether a look-up is decided by the configuration of a checkpoint: its data, at hand or not."""
    if isinstance(key, Unknown):
        return key.kind == "data"
    return any(p.path.endswith("config.json") for p in key.places)


def drop_absent(value: Value) -> Value:
    """A value read where it must exist: the worlds without it would raise."""
    if isinstance(value, Union) and any(isinstance(o, Absent) for o in value.options):
        return union(o for o in value.options if not isinstance(o, Absent))
    return value


def _text_item(obj: Value, key: Value) -> Value:
    text = text_of(obj)
    if isinstance(obj, Const) and text is not None:
        if isinstance(key, Const) and isinstance(key.value, int) and -len(text) <= key.value < len(text):
            return operators.derived(text[key.value], obj, key)
        if isinstance(key, Seq) and key.kind == "slice":
            bounds = _bounds(key, len(text))
            if bounds is not None:
                return operators.derived(text[bounds], obj)
    return operators.pattern("*", obj, key)


def set_item(it: Interpreter, obj: Value, key: Value, value: Value, site: Site) -> None:
    """`obj[key] = value`."""
    match obj:
        case Union():
            for o in obj.options:
                if isinstance(o, (Mapping, Seq)) and len(obj.options) > 1:
                    it.fork([lambda o=o: _set_and_go_on(it, o, key, value, site), lambda: None])  # type: ignore[misc]
                else:
                    set_item(it, o, key, value, site)
        case Mapping():
            from auditor.expressions import put

            it.heap.touch(obj)
            put(obj, key, value, site)
        case Seq():
            it.heap.touch(obj)
            if (
                isinstance(key, Const)
                and isinstance(key.value, int)
                and obj.exact
                and -len(obj.items) <= key.value < len(obj.items)
            ):
                obj.items[key.value] = value
            elif isinstance(key, Seq) and key.kind == "slice":
                _set_slice(it, obj, key, value, site)
            elif (repeated := repetition(obj)) is not None and isinstance(key, Unknown) and key.below is not None:
                before = repeated.items
                if repeated.replaced is not None and repeated.replaced[0] is key:
                    before = repeated.replaced[2]
                obj.items = [Star((*before, value), repeated.count, (key, value, before))]
            else:
                obj.items = [union([i, value]) if not isinstance(i, Star) else _with(i, value) for i in obj.items]
        case Unknown():
            from auditor.calls import edited

            edited(it, obj, site)
            if isinstance(value, Function):
                it.heap.touch(obj)
                obj.assigned[f"[{getattr(key, 'dotted', None) or text_of(key) or '*'}]"] = value
        case External(dotted="sys.modules") if it.loader.source_named(it, text_of(key) or "") is not None:
            it.poison = Unknown(f"the module `{text_of(key)}` is replaced", places=(site,))
        case External(dotted=dotted):
            it.loader.patch_external(it, f"{dotted}[{text_of(key) or ''}]", value)
        case Tensor():
            _write_tensor(it, obj, key, value, site)
        case Instance(cls=NativeClass(methods=methods)) if "__setitem__" in methods:
            it.call(it.get(obj, "__setitem__", site), Args([key, value]), site)
        case Instance(payload=(Seq() | Mapping()) as inner):
            set_item(it, inner, key, value, site)
        case Instance():
            it.call(it.get(obj, "__setitem__", site), Args([key, value]), site)


def _write_tensor(it: Interpreter, obj: Tensor, key: Value, value: Value, site: Site) -> None:
    if it.events is not None:
        it.events.written(obj, site, key, value)
    if obj.base is None:
        from auditor.torch import rows
        from auditor.torch.events import wraps_at
        from auditor.torch.ops.writes import filled_in

        filled_in(rows.root(obj), value)
        filled_in(obj, value)
        if it.events is not None:
            part = get_item(it, obj, key, site)
            comes_round = frozenset({"moved"}) if wraps_at(key) else NO_FLAGS
            rows.overwritten(it, obj, part if isinstance(part, Tensor) else obj, comes_round)


def _with(repeated: Star, value: Value) -> Star:
    """One of the repeated items is `value` now."""
    known = any(same(i, value) for i in repeated.items)
    return repeated if known else Star((*repeated.items, value), repeated.count)


def _set_and_go_on(it: Interpreter, obj: Value, key: Value, value: Value, site: Site) -> None:
    set_item(it, obj, key, value, site)


def _set_slice(it: Interpreter, obj: Seq, key: Seq, value: Value, site: Site) -> None:
    bounds = _bounds(key, len(obj.items))
    new = iterate(it, value, site)
    if bounds is not None and obj.exact and new.exact:
        obj.items[bounds] = new.items
    else:
        obj.rest = obj.rest or Unknown("items written through a slice that is not known", places=(site,))


def delete_item(it: Interpreter, obj: Value, key: Value, site: Site) -> None:
    if isinstance(obj, Instance) and isinstance(obj.cls, NativeClass) and "__delitem__" in obj.cls.methods:
        it.call(it.get(obj, "__delitem__", site), Args([key]), site)
        return
    if isinstance(obj, Instance) and isinstance(obj.payload, (Seq, Mapping)):
        obj = obj.payload
    if isinstance(obj, Mapping):
        k = key_of(key)
        it.heap.touch(obj)
        if k is not None:
            obj.entries.pop(k, None)
        else:
            obj.rest = obj.rest or Unknown("an entry was deleted under a key that is not known", places=(site,))
    elif isinstance(obj, Seq):
        it.heap.touch(obj)
        if (
            isinstance(key, Const)
            and isinstance(key.value, int)
            and obj.exact
            and -len(obj.items) <= key.value < len(obj.items)
        ):
            del obj.items[key.value]
        elif isinstance(key, Seq) and (bounds := _bounds(key, len(obj.items))) is not None and obj.exact:
            del obj.items[bounds]
        else:
            obj.rest = obj.rest or Unknown("an item was deleted at a position that is not known", places=(site,))


def unpack(it: Interpreter, value: Value, count: int, starred: int | None, site: Site) -> list[Value]:
    """The values for `count` targets, of which the one at `starred` takes a list."""
    if isinstance(value, Union):
        given = [_unpacked(it, o, count, starred, site) for o in value.options]
        fitting = [one for one in given if one is not None]
        if not fitting:
            raise RaiseSignal("ValueError")
        if len(fitting) < len(given):
            it.may_raise("ValueError")  # what goes on are the runs whose value has as many items
        return [join_all(same) for same in zip(*fitting, strict=True)]
    if isinstance(value, (Unknown, ExternalObject)):
        parts: list[Value] = []
        for i in range(count):
            parts.append(value.child(f"[{i}]") if isinstance(value, Unknown) else get_item(it, value, Const(i), site))
        return parts
    source = iterate(it, value, site)
    if source.exact and starred is None and len(source.items) == count:
        return source.items
    if source.exact and starred is not None and len(source.items) >= count - 1:
        after = count - starred - 1
        end = len(source.items) - after
        middle = Seq("list", source.items[starred:end])
        return [*source.items[:starred], middle, *source.items[end:]]
    if source.exact and starred is None:
        raise RaiseSignal("ValueError")
    if starred is not None:
        head = source.items[:starred] if not any(isinstance(i, Star) for i in source.items[:starred]) else []
        filler = Unknown("an item of a sequence of unknown length", places=(site,))
        out: list[Value] = [*head, *[filler] * (starred - len(head))]
        out.append(Seq("list", source.items[len(head) :], source.rest))
        return out + [filler.child(f"[{i}]") for i in range(count - len(out))]
    return [_sequence_item(it, source, Const(i), site) for i in range(count)]


def _unpacked(it: Interpreter, value: Value, count: int, starred: int | None, site: Site) -> list[Value] | None:
    """The values for the targets; None when it has more items, or fewer."""
    try:
        return unpack(it, value, count, starred, site)
    except RaiseSignal as error:
        if error.kind != "ValueError":
            raise
        return None


def length(it: Interpreter, value: Value, site: Site | None) -> Value:
    """`len(value)`."""
    match value:
        case Union():
            return union(length(it, o, site) for o in value.options)
        case Seq():
            if value.exact:
                return Const(len(value.items), places=value.places, flags=value.flags)
            count = value.count
            return number(count, (value,)) if count is not None else _memo_length(value)
        case Mapping():
            if value.rest is not None:
                return value.rest.child(".len", "int")
            maybe = [v for _, v in value.entries.values() if maybe_absent(v)]
            if maybe:
                return operators.unknown_from("the length of a dict whose entries depend", "int", *maybe, name="len")
            return Const(len(value.entries), places=value.places, flags=value.flags)
        case Const(value=str() | bytes() as s):
            return operators.derived(len(s), value)
        case Tensor(shape=shape):
            if shape:
                return number(shape[0], (value,))
        case Instance(payload=(Seq() | Mapping()) as inner):
            return length(it, inner, site)
        case Instance():
            try:
                return it.call(it.get(value, "__len__", site), Args(), site)
            except RaiseSignal:
                pass
        case Unknown():
            return value.child(".len", "int")
    return operators.unknown_from("the length of a value that is not known", "int", value)


_lengths: dict[int, tuple[Any, Unknown]] = {}


def _memo_length(value: Seq) -> Value:
    first = value.items[0] if value.items else value.rest
    found = _lengths.get(id(first))
    if found is None or found[0] is not first:
        found = _lengths[id(first)] = (
            first,
            Unknown("the length of a sequence of unknown length", "len", "int", places=value.places),
        )
    return found[1]


def integer(value: Value | None, default: int | None = None) -> int | None:
    """A concrete integer argument; `default` when it was not given."""
    if value is None or (isinstance(value, Const) and value.value is None):
        return default
    d = as_dim(value)
    return d if isinstance(d, int) else None


__all__ = ["NONE", "Num", "get_item", "integer", "iterate", "length", "make_slice", "set_item", "unpack"]
