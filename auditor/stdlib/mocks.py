"""`unittest.mock`: a patch sets an attribute, and puts the old value back."""

from __future__ import annotations

from auditor.interpreter import Interpreter
from auditor.objects.inheritance import OBJECT
from auditor.places import Site, here
from auditor.values import FALSE, NONE, Args, Instance, Mapping, Native, NativeClass, Unknown, Value, text_of


def _patch_object(it: Interpreter, args: Args, site: Site | None) -> Value:
    """`mock.patch.object(target, attribute, new)`."""
    target, name, new = args.get(0, "target"), args.get(1, "attribute"), args.get(2, "new")
    return Instance(PATCH, payload=(target, text_of(name) if name is not None else None, new))


def _patch(it: Interpreter, args: Args, site: Site | None) -> Value:
    return Instance(PATCH, payload=(None, None, None))


def _patched(it: Interpreter, args: Args, site: Site | None) -> Value:
    patch = args.pos[0]
    assert isinstance(patch, Instance)
    target, name, new = patch.payload
    if not (isinstance(target, Value) and isinstance(name, str) and isinstance(new, Value)):
        it.poison = Unknown("something is replaced by a mock", "mock.patch", places=here(site))
        return it.poison
    patch.attrs["(old)"] = it.get(target, name, site)
    it.set(target, name, new, site)
    return new


def _unpatched(it: Interpreter, args: Args, site: Site | None) -> Value:
    patch = args.pos[0]
    assert isinstance(patch, Instance)
    target, name, _ = patch.payload
    old = patch.attrs.get("(old)")
    if old is not None:
        it.set(target, name, old, site)
    return NONE


def _patch_dict(it: Interpreter, args: Args, site: Site | None) -> Value:
    """`mock.patch.dict(target, values, clear=False, **more)`."""
    return Instance(ENTRIES, payload=(args.get(0, "in_dict"), args))


def _entered(it: Interpreter, args: Args, site: Site | None) -> Value:
    patch = args.pos[0]
    assert isinstance(patch, Instance)
    target, given = patch.payload
    if not isinstance(target, Mapping):
        if text_of(target) is not None:
            it.poison = it.poison or Unknown("entries are replaced by a mock", "mock.patch.dict", places=here(site))
        return NONE
    patch.attrs["(old)"] = Mapping(dict(target.entries), target.rest)
    if given.kw.get("clear", FALSE) != FALSE:
        it.call(it.get(target, "clear", site), Args(), site)
    values = [v for v in (given.get(1, "values"),) if v is not None]
    more = {k: v for k, v in given.kw.items() if k not in ("in_dict", "values", "clear")}
    it.call(it.get(target, "update", site), Args(values, more), site)
    return target


def _left(it: Interpreter, args: Args, site: Site | None) -> Value:
    patch = args.pos[0]
    assert isinstance(patch, Instance)
    target, old = patch.payload[0], patch.attrs.get("(old)")
    if isinstance(target, Mapping) and isinstance(old, Mapping):
        it.heap.touch(target)
        target.entries, target.rest = dict(old.entries), old.rest
    return NONE


ENTRIES = NativeClass(
    "unittest.mock._patch_dict",
    {"__enter__": _entered, "__exit__": _left, "start": _entered, "stop": _left},
    (OBJECT,),
)
PATCH = NativeClass(
    "unittest.mock._patch",
    {"__enter__": _patched, "__exit__": _unpatched, "start": _patched, "stop": _unpatched},
    (OBJECT,),
)
MOCK = NativeClass("unittest.mock.patch", {"__new__": _patch}, (OBJECT,))
MOCK.attributes["object"] = Native("patch.object", _patch_object)
MOCK.attributes["dict"] = Native("patch.dict", _patch_dict)

NATIVES: dict[str, Value] = {
    "unittest.mock.patch": MOCK,
    "unittest.mock.patch.object": Native("patch.object", _patch_object),
    "unittest.mock.patch.dict": Native("patch.dict", _patch_dict),
}
