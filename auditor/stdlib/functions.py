"""What makes or wraps functions: `functools`, `operator`, `inspect`, `weakref`, and decorators that keep them."""

from __future__ import annotations

from auditor import methods, operators
from auditor.containers.iteration import iterate
from auditor.containers.reading import get_item
from auditor.expressions.operations import binary
from auditor.handlers import itself
from auditor.interpreter import Handler, Interpreter
from auditor.loops import mapped
from auditor.objects.assignment import rewire
from auditor.places import Site
from auditor.values import (
    NONE,
    Args,
    Bound,
    Class,
    Const,
    Function,
    Instance,
    Mapping,
    Native,
    NativeClass,
    Seq,
    Star,
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


def _kept(it: Interpreter, args: Args, site: Site | None) -> Value:
    """A decorator that has a function keep its results, with or without arguments."""
    if not args.pos or not isinstance(args.pos[0], Function):
        return Native("decorator", lambda it, inner, site: _kept(it, inner, site) if inner.pos else NONE)
    args.pos[0].kept = Mapping()
    return args.pos[0]


def _kept_property(it: Interpreter, args: Args, site: Site | None) -> Value:
    return it.call(it.loader.builtins["property"], Args([_kept(it, args, site)]), site)


def _reduce(it: Interpreter, args: Args, site: Site | None) -> Value:
    assert site is not None
    source = iterate(it, args.pos[1], site)
    first = [] if len(args.pos) > 2 else [i for i in source.items[:1] if not isinstance(i, Star)]
    unknown = operators.unknown_from("reduce() over a sequence of unknown length", "", source)
    total = Seq("list", [*args.pos[2:3], *first, unknown][:1])

    def add(item: Value) -> Value:
        value = it.call(args.pos[0], Args([total.items[0], item]), site)
        it.heap.touch(total)
        total.items[0] = value
        return value

    mapped(it, Seq("list", source.items[len(first) :], source.rest), add)
    return total.items[0]


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


def _identity_decorators(*names: str) -> dict[str, Value]:
    return {n: Native(n, _first) for n in names}


def _operator(op: str) -> Handler:
    def run(it: Interpreter, args: Args, site: Site | None) -> Value:
        assert site is not None
        return binary(it, op, args.pos[0], args.pos[1], site)

    return run


def _itemgetter(it: Interpreter, args: Args, site: Site | None) -> Value:
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
        "functools.total_ordering",
        "typing.overload",
        "typing.final",
        "typing.runtime_checkable",
        "typing.no_type_check",
        "typing.override",
        "abc.abstractmethod",
        "atexit.register",
    ),
    "functools.cache": Native("cache", _kept),
    "functools.lru_cache": Native("lru_cache", _kept),
    "functools.cached_property": Native("cached_property", _kept_property),
    "weakref.ref": Native("ref", lambda it, args, site: _reference(args.pos[0])),
    "weakref.proxy": Native("proxy", itself),
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
    "inspect.signature": Native("signature", _signature),
    "inspect.isawaitable": Native("isawaitable", lambda it, args, site: Const(False)),
    "inspect.iscoroutine": Native("iscoroutine", lambda it, args, site: Const(False)),
}
