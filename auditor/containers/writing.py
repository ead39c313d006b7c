"""Items that are set and deleted."""

from __future__ import annotations

from functools import partial

from auditor.calls.graph_edits import edited
from auditor.containers.entries import put
from auditor.containers.iteration import iterate
from auditor.containers.reading import get_item, known_index, repetition, slice_of
from auditor.interpreter import Interpreter
from auditor.joins import union
from auditor.places import Site
from auditor.sameness import same
from auditor.torch import progressions, rows, state_copies
from auditor.torch.keys import covers, is_whole, wraps_at
from auditor.torch.ops.writes import filled_in
from auditor.values import (
    NO_FLAGS,
    Args,
    External,
    Function,
    Instance,
    Mapping,
    NativeClass,
    Seq,
    Star,
    Tensor,
    Union,
    Unknown,
    Value,
    key_of,
    text_of,
)
from auditor.values.tags import MOVED


def set_item(it: Interpreter, obj: Value, key: Value, value: Value, site: Site) -> None:
    """`obj[key] = value`."""
    match obj:
        case Union():
            for o in obj.options:
                if isinstance(o, (Mapping, Seq)):
                    it.fork([partial(set_item, it, o, key, value, site), lambda: None])
                else:
                    set_item(it, o, key, value, site)
        case Mapping():
            it.heap.touch(obj)
            put(obj, key, value)
        case Seq():
            it.heap.touch(obj)
            _set_in_sequence(it, obj, key, value, site)
        case Unknown():
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
    else:
        obj.pick = None
    if obj.base is None:
        copy = state_copies.taking(it.events, obj, key, value, "", site)
        filled_in(rows.root(obj), value)
        filled_in(obj, value)
        if it.events is not None:
            part = get_item(it, obj, key, site)
            comes_round = frozenset({MOVED}) if wraps_at(key) else NO_FLAGS
            held = progressions.numbers(obj)
            rows.overwritten(it, obj, part if isinstance(part, Tensor) else obj, comes_round)
            if held is not None and not isinstance(key, Tensor):
                progressions.assigned(obj, held, value, covers(key) or is_whole(key))
            obj.pick = obj.pick or copy


def _set_in_sequence(it: Interpreter, obj: Seq, key: Value, value: Value, site: Site) -> None:
    if (index := known_index(obj, key)) is not None:
        obj.items[index] = value
    elif isinstance(key, Seq) and key.kind == "slice":
        _set_slice(it, obj, key, value, site)
    elif (repeated := repetition(obj)) is not None and isinstance(key, Unknown) and key.below is not None:
        before = repeated.items
        if repeated.replaced is not None and repeated.replaced[0] is key:
            before = repeated.replaced[2]
        obj.items = [Star((*before, value), repeated.count, (key, value, before))]
    else:
        obj.items = [union([i, value]) if not isinstance(i, Star) else _with(i, value) for i in obj.items]


def _with(repeated: Star, value: Value) -> Star:
    """One of the repeated items is `value` now."""
    known = any(same(i, value) for i in repeated.items)
    return repeated if known else Star((*repeated.items, value), repeated.count)


def _set_slice(it: Interpreter, obj: Seq, key: Seq, value: Value, site: Site) -> None:
    bounds = slice_of(key, len(obj.items))
    new = iterate(it, value, site)
    if bounds is not None and obj.exact and new.exact:
        obj.items[bounds] = new.items
    else:
        obj.rest = obj.rest or Unknown("items written through a slice that is not known", places=(site,))


def delete_item(it: Interpreter, obj: Value, key: Value, site: Site) -> None:
    """`del obj[key]`."""
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
        if (index := known_index(obj, key)) is not None:
            del obj.items[index]
        elif isinstance(key, Seq) and (bounds := slice_of(key, len(obj.items))) is not None and obj.exact:
            del obj.items[bounds]
        else:
            obj.rest = obj.rest or Unknown("an item was deleted at a position that is not known", places=(site,))
