"""Classes that are made of annotated fields, as `attrs` and `pydantic` make them: like those of `dataclasses`."""

from __future__ import annotations

import re

from auditor import operators
from auditor.containers.entries import put
from auditor.interpreter import Interpreter
from auditor.objects.inheritance import OBJECT, fields_of, mro
from auditor.places import Site, here
from auditor.stdlib.classes import FIELD, replaced
from auditor.values import NONE, Args, Class, Const, Instance, Mapping, Native, NativeClass, Unknown, Value


def _attrs(it: Interpreter, args: Args, site: Site | None) -> Value:
    """`@attrs.define`, `@attr.s(auto_attribs=True)`: fields are those that are annotated, or set to `attr.ib()`."""

    def mark(it: Interpreter, inner: Args, site: Site | None) -> Value:
        cls = inner.pos[0]
        fields = cls.env.names.get("__annotations__") if isinstance(cls, Class) else None
        if isinstance(cls, Class) and isinstance(fields, Mapping):
            for name, value in cls.env.names.items():
                if isinstance(value, Instance) and value.cls is FIELD and fields.get(name) is None:
                    put(fields, Const(name), Const("object"))
            cls.dataclass_fields = True
            if (after := cls.env.names.get("__attrs_post_init__")) is not None:
                cls.env.names["__post_init__"] = after
        return cls

    return mark(it, args, site) if args.pos else Native("define", mark)


_ELSEWHERE = frozenset({"converter", "alias", "validation_alias", "on_setattr"})
"""What makes the value of a field another one than it is given, or takes it under another name."""


def _field(*positional: str) -> Native:
    """`attr.ib(default)`, `Field(default)`: what `dataclasses.field` is, with the default at a position, too."""

    def run(it: Interpreter, args: Args, site: Site | None) -> Value:
        given = {**dict(zip(positional, args.pos, strict=False)), **args.kw}
        if "factory" in given:
            given["default_factory"] = given.pop("factory")
        default = given.get("default")
        if isinstance(default, Const) and default.value is ...:
            del given["default"]
        if not _ELSEWHERE.isdisjoint(given):
            return Unknown("a field whose values a function makes", "field", places=here(site))
        return Instance(FIELD, payload=Args([], given))

    return Native("field", run)


def _factory(it: Interpreter, args: Args, site: Site | None) -> Value:
    return Unknown("a default that is made for each object", "Factory", places=here(site))


_CHANGES = re.compile(r"[Vv]alidator|model_post_init|computed_field|model_config|\bclass Config\b|\balias")
"""What may change the values that a model of pydantic is given, or what it takes."""


def _model(it: Interpreter, args: Args, site: Site | None) -> Value:
    """A subclass of pydantic's `BaseModel`: it is made of its annotations, where nothing of it changes them."""
    cls = args.pos[0]
    if isinstance(cls, Class):
        above = all(c.dataclass_fields for c in mro(cls)[1:] if isinstance(c, Class))
        text = cls.site.statement.text if cls.site is not None else ""
        cls.dataclass_fields = above and "__init__" not in cls.env.names and _CHANGES.search(text) is None
        if not cls.dataclass_fields:
            _hide(cls)
    return NONE


def _hide(cls: Class) -> None:
    """What the fields of a class are is not known: their defaults stand in it, and may not be what its objects have."""
    places = (cls.site,) if cls.site is not None else ()
    cause = Unknown(f"`{cls.name}` changes what it is given", "BaseModel", places=places)
    cls.bases, cls.mro_cache = (*cls.bases, cause), None
    for name in fields_of(cls):
        cls.env.names[name] = cause.child(f".{name}")


def _dump(it: Interpreter, args: Args, site: Site | None) -> Value:
    obj = args.pos[0]
    if isinstance(obj, Instance) and len(args.pos) == 1 and not args.kw:
        return Mapping({("str", n): (Const(n), v) for n, v in obj.attrs.items()})
    return operators.unknown_from("the data of a model that is not known", "dict", obj)


def _unread(it: Interpreter, args: Args, site: Site | None) -> Value:
    return Unknown("what a method of a model gives", "BaseModel", places=here(site))


_METHODS = (
    "model_copy copy model_dump_json json model_validate model_validate_json parse_obj parse_raw parse_file construct "
    "model_construct model_json_schema schema schema_json model_rebuild from_orm"
)
_ATTRIBUTES = "model_fields model_fields_set model_extra model_computed_fields __fields__ __fields_set__"
BASE_MODEL = NativeClass(
    "pydantic.BaseModel",
    {**dict.fromkeys(_METHODS.split(), _unread), "__init_subclass__": _model, "model_dump": _dump, "dict": _dump},
    (OBJECT,),
    {name: Unknown(f"`{name}` of a model", name) for name in _ATTRIBUTES.split()},
    closed=True,
)
_DEFINE = Native("define", _attrs)
NATIVES: dict[str, Value] = {
    **{f"attr.{n}": _DEFINE for n in ("s", "attrs", "define", "frozen", "mutable", "dataclass")},
    **{f"attrs.{n}": _DEFINE for n in ("define", "frozen", "mutable")},
    **{f"attr.{n}": _field("default") for n in ("ib", "attrib", "field")},
    "attrs.field": _field(),
    **{f"{module}.evolve": Native("evolve", replaced) for module in ("attr", "attrs")},
    **{f"{module}.Factory": Native("Factory", _factory) for module in ("attr", "attrs")},
    "pydantic.BaseModel": BASE_MODEL,
    "pydantic.Field": _field("default"),
}
