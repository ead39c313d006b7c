"""Items that are read: `obj[key]`."""

from __future__ import annotations

from auditor import operators
from auditor.assumptions import way_to
from auditor.containers.entries import put
from auditor.interpreter import Interpreter, RaiseSignal
from auditor.joins import present, union
from auditor.places import Site, here
from auditor.torch import last_row, regions
from auditor.torch.indexing import index_tensor
from auditor.values import (
    Args,
    Class,
    Const,
    External,
    ExternalObject,
    Instance,
    Key,
    Mapping,
    Native,
    NativeClass,
    Pattern,
    Seq,
    Star,
    Tensor,
    Union,
    Unknown,
    Value,
    as_dim,
    each_once,
    key_of,
    text_of,
)
from auditor.values.absence import maybe_absent


def make_slice(lower: Value, upper: Value, step: Value, site: Site | None = None) -> Seq:
    """What `lower:upper:step` is as a value."""
    return Seq("slice", [lower, upper, step], places=here(site))


def get_item(it: Interpreter, obj: Value, key: Value, site: Site) -> Value:
    """`obj[key]`."""
    match obj:
        case Union():
            return it.each(obj, lambda o: get_item(it, o, key, site))
        case Seq():
            return sequence_item(it, obj, key, site)
        case Mapping():
            return _mapping_item(it, obj, key, site)
        case Tensor():
            return index_tensor(it, obj, key, site)
        case Const(value=str()) | Pattern():
            return _text_item(obj, key)
        case Instance(payload=(Seq() | Mapping()) as inner):
            return get_item(it, inner, key, site)
        case Instance():
            return it.call(it.get(obj, "__getitem__", site), Args([key]), site)
        case Unknown():
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
        case Class() if any(isinstance(v, Instance) and v.cls is obj for v in obj.env.names.values()):
            return _member(it, obj, key)
        case Class() | NativeClass() | External() | Native():
            return obj  # a generic alias: list[int], Sequence[str]
    return operators.unknown_from("an item of a value that has none", "", obj)


def _member(it: Interpreter, cls: Class, key: Value) -> Value:
    """`Mode["fast"]`: a member of an enumeration by its name. Raises `RaiseSignal` when there is none."""
    name = text_of(key)
    if name is None or "*" in name:
        it.may_raise("KeyError")
        return operators.unknown_from("a member of an enumeration that is not known", "", key)
    found = cls.env.names.get(name)
    if not isinstance(found, Instance) or found.cls is not cls:
        raise RaiseSignal("KeyError", key)
    return it.tag(found, key.flags)


def _atoms(key: Key) -> str:
    """Which numbers go into a key: those of two loops may have the same name."""
    return " ".join(str(a.number) for a in sorted(key[1].atoms, key=lambda a: a.number)) if key[0] == "dim" else ""


def slice_of(key: Seq, length: int) -> slice | None:
    """A slice of known bounds, for a sequence of `length` items; None when they are not known."""
    parts: list[int | None] = []
    for p in key.items:
        if isinstance(p, Const) and (p.value is None or isinstance(p.value, int)):
            parts.append(p.value)
        else:
            return None
    return slice(*parts) if parts[2] != 0 else None


def known_index(obj: Seq, key: Value) -> int | None:
    """The index that a key is, where every item is known and one is there; None for any other."""
    n = key.value if isinstance(key, Const) else None
    return n if isinstance(n, int) and obj.exact and -len(obj.items) <= n < len(obj.items) else None


def sequence_item(it: Interpreter, obj: Seq, key: Value, site: Site) -> Value:
    """`obj[key]` of a sequence. Raises `RaiseSignal` when there surely is no such item."""
    if isinstance(key, Seq) and key.kind == "slice":
        bounds = slice_of(key, len(obj.items))
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
        if type(found) is Tensor and found.base is not None:
            return regions.member(found, as_dim(key))
    return found


def repetition(obj: Seq) -> Star | None:
    """The items of a sequence that is nothing but a repetition of unknown length."""
    found = obj.items[0] if len(obj.items) == 1 and obj.rest is None else None
    return found if isinstance(found, Star) else None


def _distinct(obj: Seq) -> list[Value]:
    out: list[Value] = []
    for v in each_once(obj.items):
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
        return present(entry[1])
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
            return it.choices.choose(candidates, site) or union(present(c) for c in candidates)
    return operators.unknown_from("an item under a key that is not known", "", key, obj.rest or obj)


def _made_entry(it: Interpreter, obj: Mapping, key: Value, site: Site) -> Value:
    """An entry that a `defaultdict` makes when it is looked up; a `Counter` gives zero and keeps nothing."""
    assert obj.missing is not None
    made = it.call(obj.missing, Args(), site)
    if not (isinstance(obj.missing, Native) and obj.missing.name == ZERO):
        it.heap.touch(obj)
        put(obj, key, made)
    return made


ZERO = "Counter.__missing__"


def _chooses(key: Value) -> bool:
    """Whether a look-up is decided by the configuration of a checkpoint: its data, at hand or not."""
    if isinstance(key, Unknown):
        return key.kind == "data"
    return any(p.path.endswith("config.json") for p in key.places)


def _text_item(obj: Value, key: Value) -> Value:
    text = text_of(obj)
    if isinstance(obj, Const) and text is not None:
        if isinstance(key, Const) and isinstance(key.value, int) and -len(text) <= key.value < len(text):
            return operators.derived(text[key.value], obj, key)
        if isinstance(key, Seq) and key.kind == "slice":
            bounds = slice_of(key, len(text))
            if bounds is not None:
                return operators.derived(text[bounds], obj)
    return operators.pattern("*", obj, key)
