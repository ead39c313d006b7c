"""What calling a class gives: `__new__`, `__init__`, the fields of a dataclass."""

from __future__ import annotations

from auditor.interpreter import Interpreter, RaiseSignal
from auditor.joins import union
from auditor.objects.classes import METACLASS
from auditor.objects.inheritance import class_lookup, fields_of, mro, unread_base
from auditor.places import Site, here
from auditor.roles import words
from auditor.values import Args, Class, Const, Function, Instance, Native, NativeClass, Unknown, Value


def instantiate(it: Interpreter, cls: Class | NativeClass, args: Args, site: Site | None) -> Value:
    """What a call of a class gives. Where options have chosen the class, all that it makes depends on them."""
    if not cls.flags:
        return _made(it, cls, args, site)
    saved, it.conditions = it.conditions, it.conditions | cls.flags
    try:
        return _made(it, cls, args, site)
    finally:
        it.conditions = saved


def _made(it: Interpreter, cls: Class | NativeClass, args: Args, site: Site | None) -> Value:
    new, _ = class_lookup(cls, "__new__")
    if isinstance(new, Native):
        made = it.call(new, Args([cls, *args.pos], args.kw, args.more), site)
        if isinstance(cls, Class) and isinstance(made, Instance) and made.cls in mro(cls)[1:]:
            made.cls = cls  # a class of the sources that derives from one of ours
            init, _ = class_lookup(cls, "__init__")
            if init is not None:
                it.call(init, Args([made, *args.pos], args.kw, args.more), site)
        return made
    obj = Instance(cls, places=here(site), flags=it.conditions)
    if isinstance(new, Function):
        obj.taint = Unknown(f"`__new__` of `{cls.name}` is not evaluated", places=here(site))
    else:
        obj.taint = next((c for c in mro(cls) if isinstance(c, Unknown) and c.name == METACLASS), None)
    filled = _filled_by(cls)
    if filled is not None:
        _fill_fields(it, obj, filled, args, site)
        for name in list(obj.attrs) if filled is not cls else ():
            found = class_lookup(cls, name)[0]
            if isinstance(found, Function) and found.kind == "property":
                it.set(obj, name, obj.attrs.pop(name), site)
        post, _ = class_lookup(cls, "__post_init__")
        if post is not None:
            it.call(post, Args([obj]), site)
        return obj
    init, _ = class_lookup(cls, "__init__")
    if init is not None:
        it.call(init, Args([obj, *args.pos], args.kw, args.more), site)
    else:
        base = unread_base(cls)
        if base is not None and not isinstance(base, NativeClass):
            obj.payload = args
    return obj


def _filled_by(cls: Class | NativeClass) -> Class | None:
    """The class whose generated `__init__` runs: that of a base, where a class that derives from it has none."""
    for c in mro(cls):
        if not isinstance(c, Class) or "__init__" in c.env.names:
            return None
        if c.dataclass_fields:
            return c
    return None


def _decides_rows(name: str) -> bool:
    """Whether a setting says by its name how many rows come out (`last_only`, `logits_to_keep`).

    Data that is not at hand and is spread over a class of settings mostly has what its defaults say; these decide a
    verdict by themselves, so that a default is not enough.
    """
    said = set(words(name))
    return "last" in said or {"logits", "keep"} <= said


def _fill_fields(it: Interpreter, obj: Instance, cls: Class, args: Args, site: Site | None) -> None:
    fields = fields_of(cls)
    positional = list(args.pos)
    if not fields.keys() >= args.kw.keys() and args.more is None and all(isinstance(c, Class) for c in mro(cls)):
        extra = sorted(args.kw.keys() - fields.keys())
        raise RaiseSignal("TypeError", Unknown(f"`{cls.name}` has no field `{extra[0]}`", places=here(site)))
    for name, default in fields.items():
        open_ = args.more is not None and not positional and name not in args.kw and _decides_rows(name)
        spec = default.payload if isinstance(default, Instance) and isinstance(default.payload, Args) else None
        if positional and not (spec and isinstance(i := spec.kw.get("init"), Const) and i.value is False):
            obj.attrs[name] = positional.pop(0)
        elif name in args.kw:
            obj.attrs[name] = args.kw[name]
        elif spec is not None:
            if "default" in spec.kw:
                obj.attrs[name] = spec.kw["default"]
            elif "default_factory" in spec.kw:
                obj.attrs[name] = it.call(spec.kw["default_factory"], Args(), site)
        elif default is not None:
            obj.attrs[name] = default
        else:
            reason = f"nothing says what `{name}` of `{cls.name}` is"
            obj.attrs[name] = args.more.child(f".{name}") if args.more else Unknown(reason, name, places=here(site))
        if open_ and args.more is not None and default is not None and name in obj.attrs:
            obj.attrs[name] = union([args.more.child(f".{name}"), obj.attrs[name]])
