"""Built-in functions on classes: what an object is, and the kinds of methods."""

from __future__ import annotations

from collections.abc import Callable

from auditor import operators
from auditor.interpreter import Interpreter
from auditor.joins import union
from auditor.objects.instance_of import is_instance, is_subclass
from auditor.places import Site
from auditor.values import (
    FALSE,
    TRUE,
    Args,
    Bound,
    Class,
    Const,
    Env,
    External,
    Function,
    Instance,
    Mapping,
    Native,
    NativeClass,
    Num,
    Pattern,
    Seq,
    Tensor,
    Union,
    Unknown,
    Value,
    text_of,
)


def _isinstance(it: Interpreter, args: Args, site: Site | None) -> Value:
    known = is_instance(it, args.pos[0], args.pos[1])
    if known is None:
        return operators.unknown_from("isinstance() of a value that is not known", "bool", args.pos[0])
    return Const(known)


def _issubclass(it: Interpreter, args: Args, site: Site | None) -> Value:
    known = is_subclass(args.pos[0], args.pos[1])
    if known is None:
        return operators.unknown_from("issubclass() of a class that is not known", "bool", *args.pos)
    return Const(known)


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
    if isinstance(obj, Union):
        return union(_type(it, Args([o]), site) for o in obj.options)
    if isinstance(obj, Const):
        return it.loader.builtins.get(type(obj.value).__name__, Unknown("a type"))
    if isinstance(obj, Seq):
        return it.loader.builtins.get(obj.kind, Unknown("a type"))
    if isinstance(obj, Mapping):
        return it.loader.builtins["dict"]
    return operators.unknown_from("type() of a value that is not known", "", obj)


def _callable(it: Interpreter, args: Args, site: Site | None) -> Value:
    v = args.pos[0]
    if isinstance(v, (Function, Bound, Native, Class, NativeClass, External)):
        return TRUE
    if isinstance(v, (Const, Seq, Mapping, Num, Pattern)):
        return FALSE
    return operators.unknown_from("callable() of a value that is not known", "bool", v)


def _descriptor(kind: str) -> Callable[[Interpreter, Args, Site | None], Value]:
    def decorate(it: Interpreter, args: Args, site: Site | None) -> Value:
        f = args.pos[0]
        if isinstance(f, Function):
            f.kind = kind
            setter = args.get(1, "fset")
            f.setter = setter if kind == "property" and isinstance(setter, Function) else f.setter
        return f

    return decorate


def _id(it: Interpreter, args: Args, site: Site | None) -> Value:
    value = args.pos[0]
    if isinstance(value, (Instance, Class, Function, Seq, Mapping, Tensor)):
        return Const(id(value))
    return operators.unknown_from("the address of a value", "int", value, name="id")


FUNCTIONS: dict[str, Callable[..., Value]] = {
    "isinstance": _isinstance,
    "issubclass": _issubclass,
    "type": _type,
    "callable": _callable,
    "super": lambda it, args, site: Unknown("super() outside a method"),
    "property": _descriptor("property"),
    "classmethod": _descriptor("classmethod"),
    "staticmethod": _descriptor("staticmethod"),
    "id": _id,
    "hash": _id,
}
