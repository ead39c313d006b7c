"""What changes or makes functions, classes and modules.

`functools`, `contextlib`, `copy`, `dataclasses`, `enum`, `types`, `typing`, `importlib`, `asyncio`, ...
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from auditor import methods, operators
from auditor.containers import iterate
from auditor.expressions import format_value
from auditor.interpreter import ExitSignal, Handler, Interpreter
from auditor.joins import Absent, Deleted
from auditor.objects import OBJECT, rewire
from auditor.places import Site
from auditor.values import (
    NONE,
    Args,
    Bound,
    Class,
    Const,
    Env,
    ExternalObject,
    Function,
    Instance,
    Mapping,
    Native,
    NativeClass,
    Seq,
    Star,
    Tensor,
    Test,
    Union,
    Unknown,
    Value,
    text_of,
)


def _partial(it: Interpreter, args: Args, site: Site | None) -> Value:
    function, *given = args.pos
    keywords = dict(args.kw)

    def run(it: Interpreter, more: Args, site: Site | None) -> Value:
        return it.call(function, Args([*given, *more.pos], {**keywords, **more.kw}, more.more or args.more), site)

    return Native("partial", run)


def _wraps(it: Interpreter, args: Args, site: Site | None) -> Value:
    return Native("wraps", lambda it, inner, site: inner.pos[0])


def _first(it: Interpreter, args: Args, site: Site | None) -> Value:
    """A decorator that keeps the function, with or without arguments."""
    if args.pos and isinstance(args.pos[0], (Function, Class, Bound, Native)):
        return args.pos[0]
    return Native("decorator", lambda it, inner, site: inner.pos[0])


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


def _replace(it: Interpreter, args: Args, site: Site | None) -> Value:
    obj = args.pos[0]
    if isinstance(obj, Instance):
        return Instance(obj.cls, {**obj.attrs, **args.kw}, obj.payload, obj.taint, places=obj.places, flags=obj.flags)
    return operators.unknown_from("replace() of a value that is not known", "", obj)


def _asdict(it: Interpreter, args: Args, site: Site | None) -> Value:
    obj = args.pos[0]
    if isinstance(obj, Instance):
        return Mapping({("str", n): (Const(n), v) for n, v in obj.attrs.items()})
    return operators.unknown_from("asdict() of a value that is not known", "dict", obj)


def copied(value: Value, deep: bool, seen: dict[int, Value] | None = None) -> Value:
    """`copy.copy` or `copy.deepcopy`."""
    seen = {} if seen is None else seen
    if id(value) in seen:
        return seen[id(value)]

    def inner(v: Value) -> Value:
        return copied(v, True, seen) if deep else v

    match value:
        case Seq():
            out: Value = Seq(value.kind, [], value.rest, places=value.places, flags=value.flags)
            seen[id(value)] = out
            assert isinstance(out, Seq)
            out.items = [inner(i) for i in value.items]
            return out
        case Star(items=items):
            return Star(tuple(inner(i) for i in items), value.count)
        case Union() if deep:
            either = replace(value, options=tuple(inner(o) for o in value.options))
            seen[id(value)] = either
            if value.guard is not None:
                test, when, otherwise = value.guard
                either.guard = (inner(test), inner(when), inner(otherwise))
            either.test = _asked(value.test, inner)
            return either
        case Bound() if deep:
            return replace(value, receiver=inner(value.receiver))
        case Mapping():
            new = Mapping({}, value.rest, value.missing, places=value.places, flags=value.flags)
            seen[id(value)] = new
            new.entries = {k: (n, inner(v)) for k, (n, v) in value.entries.items()}
            return new
        case Instance():
            copy = Instance(value.cls, {}, value.payload, value.taint, places=value.places, flags=value.flags)
            copy.born = value.born  # a copy of the element of a list belongs to that list's rounds
            seen[id(value)] = copy
            copy.attrs = {n: inner(v) for n, v in value.attrs.items()}
            if isinstance(value.payload, (Seq, Mapping)):
                copy.payload = inner(value.payload)
            return copy
        case Absent() | Deleted():
            return value
        case Unknown():
            twin = Unknown(
                value.reason,
                value.name,
                value.kind,
                dict(value.children),
                value.atom,
                value.query,
                dict(value.assigned),
                places=value.places,
                flags=value.flags,
                flexible=value.flexible,
                of=value.of,
            )
            seen[id(value)] = twin
            twin.test = _asked(value.test, inner)
            return twin
        case Tensor():
            return value
    return value


def _asked(test: Test | None, inner: Callable[[Value], Value]) -> Test | None:
    return None if test is None else (test[0], inner(test[1]), test[2])


def _copy(deep: bool) -> Handler:
    return lambda it, args, site: copied(args.pos[0], deep)


def _reduce(it: Interpreter, args: Args, site: Site | None) -> Value:
    assert site is not None
    source = iterate(it, args.pos[1], site)
    items = list(source.items)
    if not source.exact:
        return operators.unknown_from("reduce() over a sequence of unknown length", "", source)
    total = args.pos[2] if len(args.pos) > 2 else items.pop(0)
    for i in items:
        total = it.call(args.pos[0], Args([total, i]), site)
    return total


def _nullcontext(it: Interpreter, args: Args, site: Site | None) -> Value:
    return args.pos[0] if args.pos else NONE


def _namespace(it: Interpreter, args: Args, site: Site | None) -> Value:
    return Instance(NAMESPACE, dict(args.kw), places=(site,) if site else ())


NAMESPACE = NativeClass(
    "types.SimpleNamespace", {"__new__": lambda it, args, site: _namespace(it, Args([], args.kw), site)}
)


def _method_type(it: Interpreter, args: Args, site: Site | None) -> Value:
    return Bound(args.pos[0], args.pos[1])


# -- enum -------------------------------------------------------------------------------------------------------


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
                return member
    return operators.unknown_from("a member of an enumeration that is not known", "", value)


ENUM = NativeClass("enum.Enum", {"__init_subclass__": _enum_class, "__new__": _enum_call}, (OBJECT,), closed=True)


# -- modules ----------------------------------------------------------------------------------------------------


def _import_module(it: Interpreter, args: Args, site: Site | None) -> Value:
    name = text_of(args.pos[0])
    if name is None or "*" in name or site is None:
        return Unknown(
            "a module whose name is not known is imported", "import_module()", places=(site,) if site else ()
        )
    return it.loader.import_module(it, name, None, site)


SPEC = NativeClass("importlib.machinery.ModuleSpec")


def _spec_from_file(it: Interpreter, args: Args, site: Site | None) -> Value:
    path = args.get(1, "location")
    loader = Instance(SPEC, {"exec_module": Native("exec_module", lambda it, args, site: NONE)})
    return Instance(
        SPEC, {"loader": loader, "name": args.pos[0]}, payload=format_value(path, "", None) if path is not None else "*"
    )


def _module_from_spec(it: Interpreter, args: Args, site: Site | None) -> Value:
    from auditor.loader import FILE_PREFIX
    from auditor.modules import SyntaxProblem
    from auditor.sources import Unreadable

    spec = args.pos[0]
    path = spec.payload if isinstance(spec, Instance) and isinstance(spec.payload, str) else "*"
    if path.startswith(FILE_PREFIX) and "*" not in path and it.loader.sources.exists(path[len(FILE_PREFIX) :]):
        try:
            return it.loader.library_module(path[len(FILE_PREFIX) :])
        except (Unreadable, SyntaxProblem) as error:
            return Unknown(f"the module at {path} could not be read: {error}", places=(site,) if site else ())
    return Unknown(f"the module at `{path}` is not among the sources", "module", places=(site,) if site else ())


def _run(it: Interpreter, args: Args, site: Site | None) -> Value:
    return args.pos[0] if args.pos else NONE


def _all_values(it: Interpreter, args: Args, site: Site | None) -> Value:
    return Seq("list", list(args.pos), args.more)


def _signature(it: Interpreter, args: Args, site: Site | None) -> Value:
    f = args.pos[0]
    while isinstance(f, Bound):
        f = f.function
    if not isinstance(f, Function):
        return operators.unknown_from("the signature of a function that was not read", "", f, name="signature")
    p = f.node.params
    names = [x.name.value for x in (*p.posonly_params, *p.params, *p.kwonly_params)]
    if isinstance(args.pos[0], Bound) and names:
        names = names[1:]
    entries: dict[tuple[str, object], tuple[Value, Value]] = {
        ("str", n): (Const(n), Instance(PARAMETER, {"name": Const(n)})) for n in names
    }
    return Instance(PARAMETER, {"parameters": Mapping(entries)})


PARAMETER = NativeClass("inspect.Parameter")


def _chain(it: Interpreter, args: Args, site: Site | None) -> Value:
    assert site is not None
    parts = [iterate(it, a, site) for a in args.pos]
    rest = next((p.rest for p in parts if p.rest is not None), None)
    return Seq("list", [i for p in parts for i in p.items], rest)


def _chain_iterable(it: Interpreter, args: Args, site: Site | None) -> Value:
    assert site is not None
    return _chain(it, Args(iterate(it, args.pos[0], site).items), site)


def _product(it: Interpreter, args: Args, site: Site | None) -> Value:
    assert site is not None
    rows: list[list[Value]] = [[]]
    for a in args.pos:
        source = iterate(it, a, site)
        if not source.exact or len(rows) * max(1, len(source.items)) > 256:
            return Seq("list", [], Unknown("a product of sequences of unknown length", places=(site,)))
        rows = [[*r, i] for r in rows for i in source.items]
    return Seq("list", [Seq("tuple", r) for r in rows])


def _raise_exit(it: Interpreter, args: Args, site: Site | None) -> Value:
    raise ExitSignal("SystemExit")


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
    from auditor.containers import get_item

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
        "_replace": _replace,
        "_asdict": _asdict,
    },
    (OBJECT,),
    closed=True,
)


def _identity_decorators(*names: str) -> dict[str, Value]:
    return {n: Native(n, _first) for n in names}


def _suppress(it: Interpreter, args: Args, site: Site | None) -> Value:
    return ExternalObject("contextlib.suppress", args)


def _islice(it: Interpreter, args: Args, site: Site | None) -> Value:
    assert site is not None
    source = iterate(it, args.pos[0], site)
    bounds: list[Any] = [a.value if isinstance(a, Const) else ... for a in args.pos[1:]]
    head = next((n for n, i in enumerate(source.items) if isinstance(i, Star)), len(source.items))
    last = bounds[0] if len(bounds) == 1 else bounds[1] if len(bounds) > 1 else None
    if ... not in bounds and (source.exact or (isinstance(last, int) and last <= head)):
        return Seq("list", source.items[slice(*bounds)])
    return Seq("list", [], operators.unknown_from("a part of a sequence that is not known", "", source))


_ENDLESS = 64
"""Items that are written down of a sequence without end."""


def _endless(items: list[Value], site: Site | None) -> Value:
    rest = Unknown("an item of a sequence without end", places=(site,) if site else ())
    return Seq("iterator", items, rest)


def _count(it: Interpreter, args: Args, site: Site | None) -> Value:
    value, step = args.get(0, "start") or Const(0), args.get(1, "step") or Const(1)
    items: list[Value] = []
    for _ in range(_ENDLESS):
        items.append(value)
        value = operators.binary("+", value, step)
    return _endless(items, site)


def _cycle(it: Interpreter, args: Args, site: Site | None) -> Value:
    assert site is not None
    source = iterate(it, args.pos[0], site)
    if not source.exact or not source.items:
        return _endless([], site)
    return _endless([source.items[n % len(source.items)] for n in range(_ENDLESS)], site)


def _repeat(it: Interpreter, args: Args, site: Site | None) -> Value:
    times = args.get(1, "times")
    if times is None:
        return _endless([args.pos[0]] * _ENDLESS, site)
    return operators.binary("*", Seq("list", [args.pos[0]]), times)


def _operator(op: str) -> Handler:
    def run(it: Interpreter, args: Args, site: Site | None) -> Value:
        from auditor.expressions import binary

        assert site is not None
        return binary(it, op, args.pos[0], args.pos[1], site)

    return run


def _itemgetter(it: Interpreter, args: Args, site: Site | None) -> Value:
    from auditor.containers import get_item

    keys = list(args.pos)

    def pick(it: Interpreter, inner: Args, site: Site | None) -> Value:
        assert site is not None
        found = [get_item(it, inner.pos[0], k, site) for k in keys]
        return found[0] if len(found) == 1 else Seq("tuple", found)

    return Native("itemgetter", pick)


def _attrgetter(it: Interpreter, args: Args, site: Site | None) -> Value:
    path = text_of(args.pos[0]) or "?"

    def pick(it: Interpreter, inner: Args, site: Site | None) -> Value:
        value = inner.pos[0]
        for part in path.split("."):
            value = it.get(value, part, site)
        return value

    return Native("attrgetter", pick)


def _reference(value: Value) -> Value:
    return Native("weakref", lambda it, args, site: value)


def _dispatched(it: Interpreter, args: Args, site: Site | None) -> Value:
    """A function that is one of several by the type of its argument: which one is not followed."""
    function = args.pos[0]
    if not isinstance(function, Function):
        return function

    def register(it: Interpreter, more: Args, site: Site | None) -> Value:
        rewire(it, function, "register", site)
        given = more.pos[-1]
        return given if isinstance(given, Function) else Native("register", lambda it, inner, site: inner.pos[0])

    function.attributes["register"] = Native("register", register)
    return function


NATIVES: dict[str, Value] = {
    "contextlib.suppress": Native("suppress", _suppress),
    "itertools.islice": Native("islice", _islice),
    "itertools.count": Native("count", _count),
    "itertools.cycle": Native("cycle", _cycle),
    "itertools.repeat": Native("repeat", _repeat),
    "operator.mul": Native("mul", _operator("*")),
    "operator.add": Native("add", _operator("+")),
    "operator.sub": Native("sub", _operator("-")),
    "operator.or_": Native("or_", _operator("|")),
    "operator.itemgetter": Native("itemgetter", _itemgetter),
    "operator.attrgetter": Native("attrgetter", _attrgetter),
    "functools.partial": Native("partial", _partial),
    "functools.wraps": Native("wraps", _wraps),
    "functools.reduce": Native("reduce", _reduce),
    **_identity_decorators(
        "functools.lru_cache",
        "functools.cache",
        "functools.total_ordering",
        "typing.overload",
        "typing.final",
        "typing.runtime_checkable",
        "typing.no_type_check",
        "typing.override",
        "abc.abstractmethod",
        "atexit.register",
    ),
    "functools.cached_property": Native(
        "cached_property", lambda it, args, site: it.call(it.loader.builtins["property"], args, site)
    ),
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
    "dataclasses.replace": Native("replace", _replace),
    "dataclasses.asdict": Native("asdict", _asdict),
    "copy.copy": Native("copy", _copy(False)),
    "copy.deepcopy": Native("deepcopy", _copy(True)),
    "contextlib.nullcontext": Native("nullcontext", _nullcontext),
    "types.SimpleNamespace": NAMESPACE,
    "types.MethodType": Native("MethodType", _method_type),
    "enum.Enum": ENUM,
    **{f"enum.{n}": NativeClass(f"enum.{n}", bases=(ENUM,), closed=True) for n in ("StrEnum", "IntEnum", "IntFlag")},
    "weakref.ref": Native("ref", lambda it, args, site: _reference(args.pos[0])),
    "weakref.proxy": Native("proxy", lambda it, args, site: args.pos[0]),
    "functools.singledispatch": Native("singledispatch", _dispatched),
    "functools.singledispatchmethod": Native("singledispatchmethod", _dispatched),
    "operator.setitem": Native("setitem", methods.ITEMS["__setitem__"]),
    "operator.delitem": Native("delitem", methods.ITEMS["__delitem__"]),
    "operator.getitem": Native("getitem", methods.ITEMS["__getitem__"]),
    "operator.contains": Native("contains", methods.ITEMS["__contains__"]),
    "operator.mod": Native("mod", _operator("%")),
    "operator.floordiv": Native("floordiv", _operator("//")),
    "operator.truediv": Native("truediv", _operator("/")),
    "operator.matmul": Native("matmul", _operator("@")),
    "enum.auto": Native("auto", lambda it, args, site: Unknown("the value of an enumeration member", "auto()", "int")),
    "importlib.import_module": Native("import_module", _import_module),
    "importlib.util.spec_from_file_location": Native("spec_from_file_location", _spec_from_file),
    "importlib.util.module_from_spec": Native("module_from_spec", _module_from_spec),
    "importlib.machinery.SourceFileLoader": Native(
        "SourceFileLoader",
        lambda it, args, site: Instance(
            SPEC,
            {
                "load_module": Native(
                    "load_module", lambda it, a, s: _module_from_spec(it, Args([_spec_from_file(it, args, s)]), s)
                )
            },
        ),
    ),
    "asyncio.run": Native("asyncio.run", _run),
    "asyncio.get_event_loop": Native(
        "get_event_loop",
        lambda it, args, site: Instance(NAMESPACE, {"run_until_complete": Native("run_until_complete", _run)}),
    ),
    "asyncio.new_event_loop": Native(
        "new_event_loop",
        lambda it, args, site: Instance(NAMESPACE, {"run_until_complete": Native("run_until_complete", _run)}),
    ),
    "asyncio.gather": Native("gather", _all_values),
    "inspect.signature": Native("signature", _signature),
    "inspect.isawaitable": Native("isawaitable", lambda it, args, site: Const(False)),
    "inspect.iscoroutine": Native("iscoroutine", lambda it, args, site: Const(False)),
    "itertools.chain": Native("chain", _chain),
    "itertools.chain.from_iterable": Native("chain.from_iterable", _chain_iterable),
    "itertools.product": Native("product", _product),
    "sys.exit": Native("exit", _raise_exit),
    "os._exit": Native("_exit", _raise_exit),
}
