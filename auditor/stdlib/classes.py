"""What makes classes: `dataclasses`, `enum`, `types`, `abc`, `typing` and `collections.namedtuple`."""

from __future__ import annotations

from auditor import operators
from auditor.containers.iteration import iterate
from auditor.containers.reading import get_item
from auditor.interpreter import Interpreter
from auditor.objects.inheritance import OBJECT
from auditor.places import Site, here
from auditor.values import (
    NONE,
    Args,
    Bound,
    Class,
    Const,
    Env,
    Function,
    Instance,
    Mapping,
    Native,
    NativeClass,
    Seq,
    Unknown,
    Value,
    text_of,
)


def _dataclass(it: Interpreter, args: Args, site: Site | None) -> Value:
    def mark(it: Interpreter, inner: Args, site: Site | None) -> Value:
        cls = inner.pos[0]
        if isinstance(cls, Class):
            cls.dataclass_fields = True
        return cls

    return mark(it, args, site) if args.pos else Native("dataclass", mark)


FIELD = NativeClass("dataclasses.Field")


def _field(it: Interpreter, args: Args, site: Site | None) -> Value:
    return Instance(FIELD, payload=args)


def replaced(it: Interpreter, args: Args, site: Site | None) -> Value:
    obj = args.pos[0]
    if isinstance(obj, Instance):
        return Instance(obj.cls, {**obj.attrs, **args.kw}, obj.payload, obj.taint, places=obj.places, flags=obj.flags)
    return operators.unknown_from("replace() of a value that is not known", "", obj)


def _asdict(it: Interpreter, args: Args, site: Site | None) -> Value:
    obj = args.pos[0]
    if isinstance(obj, Instance):
        return Mapping({("str", n): (Const(n), v) for n, v in obj.attrs.items()})
    return operators.unknown_from("asdict() of a value that is not known", "dict", obj)


def _namespace(it: Interpreter, args: Args, site: Site | None) -> Value:
    return Instance(NAMESPACE, dict(args.kw), taint=args.more, places=here(site))


NAMESPACE = NativeClass(
    "types.SimpleNamespace",
    {"__new__": lambda it, args, site: _namespace(it, Args([], args.kw, args.more), site)},
    (OBJECT,),
    closed=True,
)


def _method_type(it: Interpreter, args: Args, site: Site | None) -> Value:
    return Bound(args.pos[0], args.pos[1])


def _enum_class(it: Interpreter, args: Args, site: Site | None) -> Value:
    """Members become instances with `name` and `value`; a plain string or number member still reads as itself."""
    cls = args.pos[0]
    if isinstance(cls, Class):
        for name, value in list(cls.env.names.items()):
            if not name.startswith("_") and not isinstance(value, (Function, Class, Native)):
                cls.env.names[name] = Instance(cls, {"name": Const(name), "value": value, "_value_": value})
    return NONE


def _enum_call(it: Interpreter, args: Args, site: Site | None) -> Value:
    cls, value = args.pos[0], args.pos[1] if len(args.pos) > 1 else NONE
    if isinstance(cls, Class):
        for member in cls.env.names.values():
            if not isinstance(member, Instance) or member.cls is not cls:
                continue
            if operators.truth(operators.compare("==", member.attrs["value"], value)):
                return it.tag(member, value.flags)
    return operators.unknown_from("a member of an enumeration that is not known", "", value)


ENUM = NativeClass("enum.Enum", {"__init_subclass__": _enum_class, "__new__": _enum_call}, (OBJECT,), closed=True)


def _typevar(it: Interpreter, args: Args, site: Site | None) -> Value:
    return Unknown("a type variable", text_of(args.pos[0]) or "T")


def _cast(it: Interpreter, args: Args, site: Site | None) -> Value:
    return args.pos[1]


def _namedtuple(it: Interpreter, args: Args, site: Site | None) -> Value:
    assert site is not None
    fields = args.pos[1]
    text = text_of(fields)
    names = text.replace(",", " ").split() if text else [text_of(i) or "?" for i in iterate(it, fields, site).items]
    env = Env({"__annotations__": Mapping({("str", n): (Const(n), Const("object")) for n in names})})
    return Class(text_of(args.pos[0]) or "?", (NAMED_TUPLE,), env, site=site, dataclass_fields=True)


def _named_tuple_iter(it: Interpreter, args: Args, site: Site | None) -> Value:
    obj = args.pos[0]
    return (
        Seq("tuple", list(obj.attrs.values()))
        if isinstance(obj, Instance)
        else operators.unknown_from("items", "", obj)
    )


def _named_tuple_item(it: Interpreter, args: Args, site: Site | None) -> Value:
    assert site is not None
    return get_item(it, _named_tuple_iter(it, args, site), args.pos[1], site)


def _named_tuple_class(it: Interpreter, args: Args, site: Site | None) -> Value:
    if isinstance(args.pos[0], Class):
        args.pos[0].dataclass_fields = True
    return NONE


NAMED_TUPLE = NativeClass(
    "typing.NamedTuple",
    {
        "__init_subclass__": _named_tuple_class,
        "__iter__": _named_tuple_iter,
        "__getitem__": _named_tuple_item,
        "_replace": replaced,
        "_asdict": _asdict,
    },
    (OBJECT,),
    closed=True,
)


NATIVES: dict[str, Value] = {
    "abc.abstractproperty": Native(
        "abstractproperty", lambda it, args, site: it.call(it.loader.builtins["property"], args, site)
    ),
    "abc.ABC": NativeClass("abc.ABC", bases=(OBJECT,), closed=True),
    "typing.Generic": NativeClass("typing.Generic", bases=(OBJECT,), closed=True),
    "typing.Protocol": NativeClass("typing.Protocol", bases=(OBJECT,), closed=True),
    "typing.NamedTuple": NAMED_TUPLE,
    "typing.TypedDict": NativeClass("typing.TypedDict", bases=(OBJECT,), closed=True),
    "collections.namedtuple": Native("namedtuple", _namedtuple),
    "typing.TypeVar": Native("TypeVar", _typevar),
    "typing.cast": Native("cast", _cast),
    "typing.TYPE_CHECKING": Const(False),
    "dataclasses.dataclass": Native("dataclass", _dataclass),
    "dataclasses.field": Native("field", _field),
    "dataclasses.replace": Native("replace", replaced),
    "dataclasses.asdict": Native("asdict", _asdict),
    "types.SimpleNamespace": NAMESPACE,
    "types.MethodType": Native("MethodType", _method_type),
    "enum.Enum": ENUM,
    **{f"enum.{n}": NativeClass(f"enum.{n}", bases=(ENUM,), closed=True) for n in ("StrEnum", "IntEnum", "IntFlag")},
    "enum.auto": Native("auto", lambda it, args, site: Unknown("the value of an enumeration member", "auto()", "int")),
}
