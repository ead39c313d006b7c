"""Attributes, classes and instances."""

from __future__ import annotations

from dataclasses import replace

import libcst as cst

from auditor import methods, operators
from auditor.interpreter import Frame, Interpreter, RaiseSignal
from auditor.joins import Absent, guarded, join_all, union, union_of
from auditor.places import Site
from auditor.roles import words
from auditor.syntax import spelled
from auditor.values import (
    NONE,
    Args,
    Bound,
    Class,
    Const,
    Env,
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
from auditor.views import attribute_view

OBJECT = NativeClass("object", closed=True)


# -- classes ----------------------------------------------------------------------------------------------------


def make_class(it: Interpreter, node: cst.ClassDef, frame: Frame) -> Value:
    bases: list[Value] = []
    for b in node.bases:
        base = it.eval(b.value, frame)
        if isinstance(base, Union):
            base = Unknown(f"a base of `{node.name.value}` is one of several classes", places=base.places)
        bases.append(base)
    bases += _metaclass(it, node, frame)
    env = Env({"__class_scope__": NONE, "__annotations__": Mapping()}, parent=frame.env)
    cls = Class(node.name.value, tuple(bases), env, node, frame.statement.site(node))
    inner = replace(frame, env=env)
    it.run_block(node.body.body, inner)
    for name, v in list(env.names.items()):
        if isinstance(v, Function) and v.owner is None:
            v.owner = cls
        elif isinstance(v, Instance) and isinstance(hook := class_lookup(v.cls, "__set_name__")[0], Function):
            it.call(hook, Args([v, cls, Const(name)]), cls.site)
    out: Value = cls
    hook, _ = class_lookup(cls, "__init_subclass__", after=cls)
    if isinstance(hook, Function):
        keywords = {k.keyword.value: it.eval(k.value, frame) for k in node.keywords if k.keyword is not None}
        keywords.pop("metaclass", None)
        it.call(hook, Args([cls], keywords), cls.site)
    for base in mro(cls):
        if isinstance(base, NativeClass) and "__init_subclass__" in base.methods:
            base.methods["__init_subclass__"](it, Args([cls]), cls.site)
    for decorator in reversed(node.decorators):
        value = it.eval(decorator.decorator, frame)
        if isinstance(value, (Function, Bound, Native)):
            result = it.call(value, Args([out]), frame.statement.site(decorator))
            out = out if isinstance(result, Unknown) else result
        else:
            _replaces_methods(it, cls, decorator, frame)
    return out


def _replaces_methods(it: Interpreter, cls: Class, decorator: cst.Decorator, frame: Frame) -> None:
    """A decorator that nobody can read may replace any method of the class."""
    from auditor.calls import keeps

    expr = decorator.decorator
    target = expr.func if isinstance(expr, cst.Call) else expr
    if keeps(it.eval(target, frame)):
        return
    name, site = spelled(target), frame.statement.site(decorator)
    for method in cls.env.names.values():
        if isinstance(method, Function):
            method.wrapped = Unknown(f"the decorator `{name}` of `{cls.name}` cannot be read", name, places=(site,))


METACLASS = "(metaclass)"


def _metaclass(it: Interpreter, node: cst.ClassDef, frame: Frame) -> list[Value]:
    """A metaclass of the sources may change anything: the class has a part that was not read."""
    given = next((k.value for k in node.keywords if k.keyword is not None and k.keyword.value == "metaclass"), None)
    if given is None or not isinstance(it.eval(given, frame), Class):
        return []
    what = f"the metaclass of `{node.name.value}` is not evaluated"
    return [Unknown(what, METACLASS, places=(frame.statement.site(node),))]


def mro(cls: Value) -> tuple[Value, ...]:
    """The method resolution order; bases that are no classes of ours (externals, unknowns) stay in it."""
    if not isinstance(cls, (Class, NativeClass)):
        return (cls,)
    if cls.mro_cache is not None:
        return cls.mro_cache
    sequences = [list(mro(b)) for b in cls.bases] + [list(cls.bases)]
    out: list[Value] = [cls]
    while sequences := [s for s in sequences if s]:
        head = next(
            (s[0] for s in sequences if not any(any(s[0] is x for x in t[1:]) for t in sequences)), sequences[0][0]
        )
        out.append(head)
        sequences = [[x for x in s if x is not head] if head in s else s for s in sequences]
    result = tuple(out)
    cls.mro_cache = result
    return result


def class_lookup(cls: Value, name: str, after: Value | None = None) -> tuple[Value | None, bool]:
    """(attribute, sure): what the MRO (behind `after`) has under `name`, and whether every class before it was read."""
    order = (cls.mro_cache if isinstance(cls, (Class, NativeClass)) else None) or mro(cls)
    if after is not None:
        start = next((i for i, c in enumerate(order) if c is after), -1)
        order = order[start + 1 :]
    sure = True
    for c in order:
        if isinstance(c, Class):
            if name in c.env.names and name != "__class_scope__":
                return c.env.names[name], sure
        elif isinstance(c, NativeClass):
            if name in c.methods:
                return Native(f"{c.name}.{name}", c.methods[name]), sure
            if name in c.attributes:
                return c.attributes[name], sure
            sure = sure and c.closed
        else:
            sure = False
    return None, sure


def unread_base(cls: Value) -> Value | None:
    """The first base that is no class whose source or meaning is known."""
    return next(
        (c for c in mro(cls) if not isinstance(c, Class) and not (isinstance(c, NativeClass) and c.closed)), None
    )


def instantiate(it: Interpreter, cls: Class | NativeClass, args: Args, site: Site | None) -> Value:
    new, _ = class_lookup(cls, "__new__")
    if isinstance(new, Native):
        made = it.call(new, Args([cls, *args.pos], args.kw, args.more), site)
        if isinstance(cls, Class) and isinstance(made, Instance) and made.cls in mro(cls)[1:]:
            made.cls = cls  # a class of the sources that derives from one of ours
            init, _ = class_lookup(cls, "__init__")
            if init is not None:
                it.call(init, Args([made, *args.pos], args.kw, args.more), site)
        return made
    obj = Instance(cls, places=(site,) if site else (), flags=it.conditions)
    if isinstance(new, Function):
        obj.taint = Unknown(f"`__new__` of `{cls.name}` is not evaluated", places=(site,) if site else ())
    else:
        obj.taint = next((c for c in mro(cls) if isinstance(c, Unknown) and c.name == METACLASS), None)
    if isinstance(cls, Class) and cls.dataclass_fields and "__init__" not in cls.env.names:
        _fill_fields(it, obj, cls, args, site)
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


def fields_of(cls: Class) -> dict[str, Value | None]:
    """Annotated names with their defaults, bases first."""
    out: dict[str, Value | None] = {}
    for c in reversed(mro(cls)):
        if isinstance(c, Class) and isinstance(names := c.env.names.get("__annotations__"), Mapping):
            for key, annotation in names.entries.values():
                name = text_of(key)
                if name and "ClassVar" not in (text_of(annotation) or ""):
                    out[name] = c.env.names.get(name)
    return out


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
            obj.attrs[name] = (
                args.more.child(f".{name}") if args.more else Unknown(reason, name, places=(site,) if site else ())
            )
        if open_ and args.more is not None and default is not None and name in obj.attrs:
            obj.attrs[name] = union([args.more.child(f".{name}"), obj.attrs[name]])


def make_super(it: Interpreter, owner: Value, receiver: Value | None) -> Value:
    return Super(owner, receiver if receiver is not None else NONE)


def class_of(value: Value) -> Value | None:
    return value.cls if isinstance(value, Instance) else value if isinstance(value, (Class, NativeClass)) else None


_KINDS = {
    "str": (Const, str),
    "int": (Const, int),
    "float": (Const, float),
    "bool": (Const, bool),
    "bytes": (Const, bytes),
}


def is_instance(it: Interpreter, value: Value, cls: Value) -> bool | None:
    """`isinstance(value, cls)`, or None when it is unknown."""
    if isinstance(cls, Seq):
        seen = [is_instance(it, value, c) for c in cls.items]
        return True if True in seen else None if None in seen or cls.rest else False
    if isinstance(value, Union):
        answers = {is_instance(it, o, cls) for o in value.options}
        return answers.pop() if len(answers) == 1 else None
    name = (
        cls.name if isinstance(cls, (NativeClass, Class, Native)) else cls.dotted if isinstance(cls, External) else ""
    )
    name = name.removeprefix("builtins.")
    match value:
        case Unknown(kind=kind):
            return (
                (name == kind or (kind == "bool" and name == "int"))
                if value.typed and name in (*_KINDS, "list", "dict", "tuple")
                else None
            )
        case Const(value=x):
            if name in _KINDS:
                return isinstance(x, _KINDS[name][1])
            return False if name != "object" and "Unknown" not in type(cls).__name__ else None
        case Num():
            return name in ("int", "object") or name.endswith(("SymInt", "Integral"))
        case Pattern():
            return name in ("str", "object")
        case Seq(kind=kind):
            return name.rsplit(".", 1)[-1] in (
                kind,
                "Sequence" if kind in ("list", "tuple") else "Set",
                "Iterable",
                "Collection",
                "object",
            )
        case Mapping():
            return name.rsplit(".", 1)[-1] in ("dict", "Mapping", "MutableMapping", "OrderedDict", "object")
        case Tensor():
            return name.rsplit(".", 1)[-1] in ("Tensor", "object", "Parameter", "ndarray")
        case Function() | Bound() | Native():
            return name.rsplit(".", 1)[-1] in ("Callable", "FunctionType", "MethodType", "object")
        case Class() | NativeClass():
            return name in ("type", "object")
        case Instance(cls=own):
            order = mro(own)
            if any(c is cls for c in order):
                return True
            if isinstance(cls, External):
                if any(isinstance(c, External) and c.dotted == cls.dotted for c in order):
                    return True
                return None if any(isinstance(c, (External, Unknown)) for c in order) else False
            if isinstance(cls, (Class, NativeClass)):
                return (
                    None
                    if any(isinstance(c, (External, Unknown)) for c in order) and isinstance(cls, NativeClass)
                    else False
                )
    return None


# -- attributes -------------------------------------------------------------------------------------------------


def get_attribute(it: Interpreter, obj: Value, name: str, site: Site | None) -> Value:
    match obj:
        case Instance():
            return _instance_attribute(it, obj, name, site)
        case Unknown():
            return obj.child(f".{name}")
        case External():
            return it.loader.external(f"{obj.dotted}.{name}", obj.places or ((site,) if site else ()))
        case Tensor():
            return it.meaning.tensor_attribute(it, obj, name, site)
        case Union():
            return _union_attribute(it, obj, name, site)
        case Super():
            return _super_attribute(it, obj, name, site)
        case Class():
            return _class_attribute(it, obj, name, site)
        case Module():
            return it.loader.module_attribute(it, obj, name, site)
        case ExternalObject():
            found = obj.children.get(name)
            if found is None:
                found = obj.children[name] = _external_attribute(it, obj, name)
            return found
        case NativeClass():
            if name == "__name__":
                return Const(obj.name.rsplit(".", 1)[-1])
            found_, _ = class_lookup(obj, name)
            if found_ is not None:
                if isinstance(found_, Native) and name.startswith("from_"):
                    return Bound(found_, obj)
                return found_
            if obj is OBJECT and name == "__setattr__":
                return Native("setattr", _set_raw)
            return Unknown(f"`{obj.name}.{name}` is not known", f"{obj.name}.{name}", places=(site,) if site else ())
        case Bound(function=External(dotted=dotted)):
            return Bound(External(f"{dotted}.{name}", places=obj.places), obj.receiver)
        case Bound(function=f):
            return obj.receiver if name == "__self__" else f if name == "__func__" else get_attribute(it, f, name, site)
        case Function():
            if name == "__kwdefaults__":  # a dict, through which the script may change them
                rewire(it, obj, name, site)
            if name == "__globals__":
                return attribute_view(it.loader.module_of(obj.env), it.loader.module_of(obj.env).env.names)
            return _function_attribute(obj, name)
        case Native(name="dict" | "list" | "set" as kind) if name in methods.UNBOUND[kind]:
            return Native(name, methods.UNBOUND[kind][name])
        case Native(name="dict") if name == "fromkeys":
            return Native("dict.fromkeys", lambda it, args, site: methods.from_keys(it, args, site))
        case Native() if name == "default":
            return obj  # an overload of `torch.ops`
        case Native():
            return Const(obj.name) if name == "__name__" else Unknown(f"`{obj.name}.{name}` is not known", name)
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
    if own is not None and not (isinstance(own, Union) and any(isinstance(o, Absent) for o in own.options)):
        return own
    found, sure = class_lookup(obj.cls, name)
    if found is not None:
        value = bound(it, found, obj, obj.cls, site)
        if obj.taint is not None and not isinstance(found, (Function, Native)) and own is None:
            return _hidden(obj, name, value)
        if own is not None and isinstance(own, Union):
            return join_all([value, *(o for o in own.options if not isinstance(o, Absent))])
        return value
    if own is not None and isinstance(own, Union):
        return join_all(o for o in own.options if not isinstance(o, Absent))
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
    raise RaiseSignal("AttributeError", Unknown(f"no attribute `{name}`", places=(site,) if site else ()))


def _hidden(obj: Instance, name: str, value: Value) -> Value:
    """An attribute of the class of an object that has attributes nobody knows: one of them may hide it."""
    from auditor.torch.modules import is_module

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
    places = base.places if base is not None and base.places else ((site,) if site else ())
    return Unknown(reason, f"{dotted}.{name}", places=places)


def _super_attribute(it: Interpreter, obj: Super, name: str, site: Site | None) -> Value:
    cls = class_of(obj.receiver)
    if cls is None:
        return Unknown("super() of a value that is not known", name, places=(site,) if site else ())
    found, sure = class_lookup(cls, name, after=obj.owner)
    if found is not None:
        return bound(it, found, obj.receiver, cls, site)
    if name == "__init__" and not sure:
        return Native("init", lambda it, args, site: NONE)
    if name in ("__init__", "__post_init__", "__init_subclass__", "__enter__", "__exit__"):
        return Native("object.__init__", lambda it, args, site: NONE)
    if name == "__setattr__":
        receiver = obj.receiver

        def assign(it: Interpreter, args: Args, site: Site | None) -> Value:
            if isinstance(receiver, Instance) and (key := text_of(args.pos[0])):
                it.heap.touch(receiver)
                receiver.attrs[key] = args.pos[1]
            return NONE

        return Native("object.__setattr__", assign)
    if not sure:
        return _of_unread_base(unread_base(cls), name, site)
    raise RaiseSignal("AttributeError")


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


_INSIDES = frozenset({"__code__", "__defaults__", "__kwdefaults__", "__globals__", "__closure__", "__wrapped__"})


def rewire(it: Interpreter, function: Function, name: str, site: Site | None) -> None:
    """From now on nobody knows what a call of the function gives."""
    reason = f"`{name}` of `{function.name}` is changed"
    it.rewired[id(function)] = (function, Unknown(reason, function.name, "unread", places=(site,) if site else ()))


def _function_attribute(obj: Function, name: str) -> Value:
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
    if not isinstance(obj, Instance) or name is None:
        return it.call(it.loader.builtins["setattr"], args, site)
    it.heap.touch(obj)
    obj.attrs[name] = args.pos[2]
    return NONE


def set_attribute(it: Interpreter, obj: Value, name: str, value: Value, site: Site | None) -> None:
    """`obj.name = value`."""
    match obj:
        case Union():
            for o in obj.options:

                def write(o: Value = o) -> None:
                    set_attribute(it, o, name, value, site)

                it.fork([lambda w=write: w(), lambda: None])  # type: ignore[misc]
        case Instance() if name == "__class__":
            it.heap.touch(obj)
            obj.taint = Unknown("the class of the object is replaced", places=(site,) if site else ())
        case NativeClass():
            it.poison = Unknown(f"`{obj.name}.{name}` is replaced", places=(site,) if site else ())
        case Instance():
            found, _ = class_lookup(obj.cls, name)
            if isinstance(found, Function) and found.kind == "property" and found.setter is not None:
                it.call(found.setter, Args([obj, value]), site)
                return
            setter, _ = class_lookup(obj.cls, "__setattr__")
            if isinstance(setter, Native):
                it.call(setter, Args([obj, Const(name), value]), site)
                return
            it.heap.touch(obj)
            obj.attrs[name] = value
        case Class():
            if name == "__bases__":
                it.poison = Unknown(f"the bases of `{obj.name}` are replaced", places=(site,) if site else ())
            it.heap.touch(obj.env)
            obj.env.names[name] = value
        case Module():
            it.loader.keeper.patch(obj, name)
            it.heap.touch(obj.env)
            obj.env.names[name] = value
        case Unknown():
            from auditor.calls import edited

            edited(it, obj, site)
            it.heap.touch(obj)
            obj.assigned[f".{name}"] = value
        case Function():
            if name in _INSIDES:
                rewire(it, obj, name, site)
            if not it.loader.keeper.depth:
                it.attributed.setdefault(id(obj), (obj, dict(obj.attributes)))
            obj.attributes[name] = value
        case Bound(function=Function() as f):
            set_attribute(it, f, name, value, site)
        case Tensor() if name == "data":
            if it.events is not None and site is not None:
                it.events.written(obj, site, None, value)
            elif isinstance(value, Tensor) and value.shape is not None:
                obj.shape = value.shape
        case Native() if name in _INSIDES:
            it.poison = it.poison or Unknown(f"`{name}` of `{obj.name}` is set", places=(site,) if site else ())
        case External():
            it.loader.patch_external(it, f"{obj.dotted}.{name}", value)
