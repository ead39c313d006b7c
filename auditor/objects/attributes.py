"""Attributes that are read, of every kind of value."""

from __future__ import annotations

from auditor import methods, operators
from auditor.importing import module_attribute
from auditor.interpreter import Interpreter, RaiseSignal
from auditor.joins import guarded, join_all, union_of
from auditor.objects.assignment import rewire
from auditor.objects.inheritance import OBJECT, class_lookup, mro, unread_base
from auditor.places import Site, here
from auditor.torch.modules import is_module
from auditor.values import (
    NONE,
    Args,
    Bound,
    Class,
    Const,
    External,
    ExternalObject,
    Function,
    Instance,
    Mapping,
    Module,
    Native,
    NativeClass,
    Num,
    Pattern,
    Seq,
    Super,
    Tensor,
    Union,
    Unknown,
    Value,
    text_of,
)
from auditor.values.absence import Absent, maybe_absent, options_present
from auditor.views import attribute_view


def get_attribute(it: Interpreter, obj: Value, name: str, site: Site | None) -> Value:
    """`obj.name`. Raises `RaiseSignal` when there surely is no such attribute."""
    match obj:
        case Instance():
            return _instance_attribute(it, obj, name, site)
        case Unknown():
            return obj.child(f".{name}")
        case External():
            return it.loader.external(f"{obj.dotted}.{name}", obj.places or here(site))
        case Tensor():
            return it.meaning.tensor_attribute(it, obj, name, site)
        case Union():
            return _union_attribute(it, obj, name, site)
        case Super():
            return _super_attribute(it, obj, name, site)
        case Class():
            return _class_attribute(it, obj, name, site)
        case Module():
            return module_attribute(it, obj, name, site)
        case ExternalObject():
            found = obj.children.get(name)
            if found is None:
                found = obj.children[name] = _external_attribute(it, obj, name)
            return found
        case NativeClass():
            return _native_class_attribute(obj, name, site)
        case Bound(function=External(dotted=dotted)):
            return Bound(External(f"{dotted}.{name}", places=obj.places), obj.receiver)
        case Bound(function=f):
            return obj.receiver if name == "__self__" else f if name == "__func__" else get_attribute(it, f, name, site)
        case Function():
            return _function_attribute(it, obj, name, site)
        case Native():
            return _native_attribute(obj, name)
        case Const() | Pattern() | Num() | Seq() | Mapping():
            return methods.attribute(it, obj, name, site)
    return operators.unknown_from("an attribute of a value that is not known", "", obj, name=name)


def _external_attribute(it: Interpreter, obj: ExternalObject, name: str) -> Value:
    """A method of an object that holds a module keeps its name, so that the tables can say what it does."""
    dotted = f"{obj.dotted}().{name}"
    if obj.dotted in it.loader.natives:
        return Bound(External(dotted, places=obj.places), obj)
    return Unknown(f"`{obj.dotted}` cannot be read", dotted, places=obj.places, flags=obj.flags)


def _union_attribute(it: Interpreter, obj: Union, name: str, site: Site | None) -> Value:
    out: list[Value] = []
    missing: RaiseSignal | None = None
    for o in obj.options:
        try:
            out.append(get_attribute(it, o, name, site))
        except RaiseSignal as error:
            missing = error
    if not out:
        raise missing or RaiseSignal("AttributeError")
    found = (
        join_all(out)
        if not all(isinstance(o, (Bound, Native, Function)) for o in out) or len(out) == 1
        else union_of(out)
    )
    if obj.guard is None or missing is not None:
        return found
    test, *ways = obj.guard
    own = [a for way in ways for o, a in zip(obj.options, out, strict=True) if o is way]
    return guarded(found, test, *own) if len(own) == 2 else found


def bound(it: Interpreter, found: Value, obj: Value, cls: Value, site: Site | None) -> Value:
    """A class attribute as seen through an instance."""
    if isinstance(found, Function):
        if found.kind == "property":
            return it.call(found, Args([obj]), site)
        if found.kind == "staticmethod":
            return found
        return Bound(found, cls if found.kind == "classmethod" else obj)
    if isinstance(found, Native):
        return Bound(found, obj)
    return found


def _instance_attribute(it: Interpreter, obj: Instance, name: str, site: Site | None) -> Value:
    own = obj.attrs.get(name)
    if type(own) is Union and it.assumed.made:
        own = it.assumed.chosen(own)
        own = None if isinstance(own, Absent) else own
    if own is not None and (type(own) is not Union or not maybe_absent(own)):
        return it.tag(own, obj.flags) if obj.flags and "_value_" in obj.attrs else own
    found, sure = class_lookup(obj.cls, name)
    if found is not None:
        value = bound(it, found, obj, obj.cls, site)
        if obj.taint is not None and not isinstance(found, (Function, Native)) and own is None:
            return _hidden(obj, name, value)
        return value if own is None else join_all([value, *options_present(own)])
    if own is not None:
        return join_all(options_present(own))
    if name == "__class__":
        return obj.cls
    if name == "__dict__":
        return attribute_view(obj, obj.attrs, Unknown("attributes that were not read"))
    getter, _ = class_lookup(obj.cls, "__getattr__")
    if getter is not None:
        return it.call(getter, Args([obj, Const(name)]), site)
    if obj.taint is not None:
        return obj.taint.child(f".{name}")
    if not sure:
        base = unread_base(obj.cls)
        value = _of_unread_base(base, name, site)
        it.heap.touch(obj)
        obj.attrs[name] = value
        return value
    raise RaiseSignal("AttributeError", Unknown(f"no attribute `{name}`", places=here(site)))


def _hidden(obj: Instance, name: str, value: Value) -> Value:
    """An attribute of the class of an object that has attributes nobody knows: one of them may hide it."""
    assert obj.taint is not None
    return value if is_module(obj) else join_all([value, obj.taint.child(f".{name}")])


def _of_unread_base(base: Value | None, name: str, site: Site | None) -> Unknown:
    dotted = (
        base.dotted
        if isinstance(base, External)
        else base.name
        if isinstance(base, (Unknown, NativeClass))
        else "a base class"
    )
    reason = (
        base.reason
        if isinstance(base, Unknown)
        else f"`{name}` of the class `{dotted}`, whose source is not among those read, is not known"
    )
    places = base.places if base is not None and base.places else here(site)
    return Unknown(reason, f"{dotted}.{name}", places=places)


def _super_attribute(it: Interpreter, obj: Super, name: str, site: Site | None) -> Value:
    cls = _class_of(obj.receiver)
    if cls is None:
        return Unknown("super() of a value that is not known", name, places=here(site))
    found, sure = class_lookup(cls, name, after=obj.owner)
    if found is not None:
        return bound(it, found, obj.receiver, cls, site)
    if name == "__init__" and not sure:
        return Native("init", lambda it, args, site: NONE)
    if name in ("__init__", "__post_init__", "__init_subclass__", "__enter__", "__exit__"):
        return Native("object.__init__", lambda it, args, site: NONE)
    if name == "__setattr__":
        return Bound(Native("object.__setattr__", _set_raw), obj.receiver)
    if not sure:
        return _of_unread_base(unread_base(cls), name, site)
    raise RaiseSignal("AttributeError")


def _class_of(value: Value) -> Value | None:
    return value.cls if isinstance(value, Instance) else value if isinstance(value, (Class, NativeClass)) else None


def _class_attribute(it: Interpreter, obj: Class, name: str, site: Site | None) -> Value:
    if name in ("__name__", "__qualname__"):
        return Const(obj.name)
    if name == "__module__":
        return Unknown("the module of a class", "__module__", "str")
    if name == "__mro__":
        return Seq("tuple", list(mro(obj)))
    if name == "__bases__":
        return Seq("tuple", list(obj.bases))
    found, sure = class_lookup(obj, name)
    if found is None:
        if sure:
            raise RaiseSignal("AttributeError")
        return _of_unread_base(unread_base(obj), name, site)
    if isinstance(found, Function):
        return Bound(found, obj) if found.kind == "classmethod" else found
    if isinstance(found, Native) and found.name.rsplit(".", 1)[-1].startswith("from_"):
        return Bound(found, obj)
    return found


def _native_class_attribute(obj: NativeClass, name: str, site: Site | None) -> Value:
    if name == "__name__":
        return Const(obj.name.rsplit(".", 1)[-1])
    found, _ = class_lookup(obj, name)
    if found is not None:
        return Bound(found, obj) if isinstance(found, Native) and name.startswith("from_") else found
    if obj is OBJECT and name == "__setattr__":
        return Native("setattr", _set_raw)
    return Unknown(f"`{obj.name}.{name}` is not known", f"{obj.name}.{name}", places=here(site))


def _native_attribute(obj: Native, name: str) -> Value:
    match obj.name:
        case "dict" | "list" | "set" as kind if name in methods.UNBOUND[kind]:
            return Native(name, methods.UNBOUND[kind][name])
        case "dict" if name == "fromkeys":
            return Native("dict.fromkeys", methods.from_keys)
    if name == "default":
        return obj  # an overload of `torch.ops`
    return Const(obj.name) if name == "__name__" else Unknown(f"`{obj.name}.{name}` is not known", name)


def _function_attribute(it: Interpreter, obj: Function, name: str, site: Site | None) -> Value:
    if name == "__kwdefaults__":  # a dict, through which the script may change them
        rewire(it, obj, name, site)
    if name == "__globals__":
        return attribute_view(it.loader.module_of(obj.env), it.loader.module_of(obj.env).env.names)
    if name in ("__name__", "__qualname__"):
        return Const(obj.name)
    if name in obj.attributes:
        return obj.attributes[name]
    if name == "__wrapped__":
        return obj
    return Unknown(f"an attribute of the function `{obj.name}`", f"{obj.name}.{name}")


def _set_raw(it: Interpreter, args: Args, site: Site | None) -> Value:
    """`object.__setattr__(obj, name, value)`, past what the class of `obj` does about it."""
    obj, name = args.pos[0], text_of(args.pos[1])
    if not isinstance(obj, Instance) or name is None or "*" in name:
        return it.call(it.loader.builtins["setattr"], args, site)
    it.heap.touch(obj)
    obj.attrs[name] = args.pos[2]
    return NONE
