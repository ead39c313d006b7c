"""`unittest.mock`: a patch sets an attribute, and puts the old value back."""

from __future__ import annotations

from auditor.interpreter import Interpreter
from auditor.objects.inheritance import OBJECT
from auditor.places import Site, here
from auditor.values import NONE, Args, Instance, Native, NativeClass, Unknown, Value, text_of


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


PATCH = NativeClass(
    "unittest.mock._patch",
    {"__enter__": _patched, "__exit__": _unpatched, "start": _patched, "stop": _unpatched},
    (OBJECT,),
)
MOCK = NativeClass("unittest.mock.patch", {"__new__": _patch}, (OBJECT,))
MOCK.attributes["object"] = Native("patch.object", _patch_object)

NATIVES: dict[str, Value] = {
    "unittest.mock.patch": MOCK,
    "unittest.mock.patch.object": Native("patch.object", _patch_object),
}
