"""`math`, `json`, `collections`, `re`, `time`, ...: plain data and numbers."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any

from auditor import operators
from auditor.builtins import builtin_names
from auditor.containers.entries import put, update_mapping
from auditor.containers.iteration import iterate
from auditor.containers.reading import ZERO
from auditor.interpreter import Interpreter
from auditor.places import Site, here
from auditor.stdlib.configurations import loaded
from auditor.values import (
    NONE,
    Args,
    Const,
    Instance,
    Mapping,
    Native,
    Num,
    Seq,
    Star,
    Unknown,
    Value,
    is_given,
    key_of,
    text_of,
)


def _math(name: str, function: Callable[..., Any]) -> Native:
    def run(it: Interpreter, args: Args, site: Site | None) -> Value:
        if args.kw:
            return operators.unknown_from(f"math.{name} with arguments by name", "float", *args.all(), name=name)
        if all(isinstance(a, Const) for a in args.pos):
            try:
                return operators.derived(function(*(a.value for a in args.pos if isinstance(a, Const))), *args.pos)
            except (ValueError, TypeError, OverflowError):
                pass
        kind = "int" if name in ("ceil", "floor", "gcd", "lcm", "prod") else "float"
        if name == "prod" and isinstance(args.pos[0], Seq):
            total: Value = Const(1)
            for i in args.pos[0].items:
                total = operators.binary("*", total, i)
            return total
        if it.events is not None:
            baked: Value | None = it.events.bakes(Seq("tuple", args.pos), site, f"math.{name}()")
            if baked is not None:
                return baked
        if name in ("fmod", "remainder") and len(args.pos) == 2:
            return operators.binary("%", args.pos[0], args.pos[1])
        if name in ("ceil", "floor") and isinstance(args.pos[0], Num):
            return args.pos[0]
        return operators.unknown_from(f"math.{name} of a number that is not known", kind, *args.pos, name=name)

    return Native(name, run)


def plain_value(data: Any, depth: int = 0, site: Site | None = None) -> Value:
    """Plain Python data (from JSON, TOML, YAML) as a value."""
    places = here(site)
    if depth > 32:
        return Unknown("data nested too deeply", places=places)
    if isinstance(data, dict):
        out = Mapping(places=places)
        for k, v in data.items():
            key = Const(k)
            out.entries[key_of(key) or ("str", str(k))] = (key, plain_value(v, depth + 1, site))
        return out
    if isinstance(data, (list, tuple)):
        return Seq("list", [plain_value(v, depth + 1, site) for v in data], places=places)
    return Const(data, places=places)


def _json_loads(it: Interpreter, args: Args, site: Site | None) -> Value:
    """`json.load` and `json.loads`; a hook makes of each object what it likes, from the inner ones outwards."""
    found, hook = (
        _json(it, Args(args.pos[:1] or [args.kw.get("s", args.kw.get("fp", NONE))]), site),
        args.kw.get("object_hook"),
    )
    if args.more is not None or not _PLAINLY.issuperset(args.kw):
        return operators.unknown_from("JSON that is read by functions of the script", "dict", found, name="json")
    return found if hook is None or hook is NONE else _hooked(it, found, hook, site)


_PLAINLY = frozenset({"s", "fp", "object_hook", "strict"})


def _hooked(it: Interpreter, value: Value, hook: Value, site: Site | None) -> Value:
    if isinstance(value, Seq):
        items = [_hooked(it, i, hook, site) for i in value.items]
        return Seq(value.kind, items, value.rest, places=value.places, flags=value.flags)
    if not isinstance(value, Mapping):
        return value
    entries = {k: (name, _hooked(it, v, hook, site)) for k, (name, v) in value.entries.items()}
    inner = Mapping(entries, value.rest, places=value.places, flags=value.flags)
    return it.call(hook, Args([inner]), site)


def _json(it: Interpreter, args: Args, site: Site | None) -> Value:
    text = args.pos[0]
    document = loaded(it, text, site)
    if document is not None:
        return document
    if isinstance(text, Instance) and "name" in text.attrs:
        found = it.loader.checkpoints.data(text_of(text.attrs["name"]) or "*")
        if found is not None:
            return found
    if isinstance(text, Const) and isinstance(text.value, str):
        try:
            return plain_value(json.loads(text.value), site=site)
        except ValueError:
            pass
    return operators.unknown_from("JSON that is read at run time", "dict", text, name="json")


def _ordered_dict(it: Interpreter, args: Args, site: Site | None) -> Value:
    return it.call(it.loader.builtins["dict"], args, site)


def _defaultdict(it: Interpreter, args: Args, site: Site | None) -> Value:
    made = Mapping(places=here(site))
    for a in args.pos[1:]:
        update_mapping(it, made, a)
    for name, value in args.kw.items():
        put(made, Const(name), value)
    factory = args.pos[0] if args.pos else NONE
    made.missing = None if isinstance(factory, Const) else factory
    return made


def _counter(it: Interpreter, args: Args, site: Site | None) -> Value:
    made = Mapping(missing=Native(ZERO, lambda it, args, site: Const(0)), places=here(site))
    for a in args.pos:
        if isinstance(a, Mapping):
            update_mapping(it, made, a)
            continue
        assert site is not None
        source = iterate(it, a, site)
        for i in source.items:
            k = key_of(i)
            if k is None or isinstance(i, Star):
                made.rest = made.rest or operators.unknown_from("counts of items that are not known", "int", i)
                continue
            old = made.entries.get(k)
            made.entries[k] = (i, operators.binary("+", old[1] if old else Const(0), Const(1)))
        made.rest = made.rest or source.rest
    for name, value in args.kw.items():
        put(made, Const(name), value)
    return made


def _deque(it: Interpreter, args: Args, site: Site | None) -> Value:
    made, most = it.call(it.loader.builtins["list"], Args(args.pos[:1]), site), args.get(1, "maxlen")
    if is_given(most):  # the first items go when others come, and nothing here keeps count
        return operators.unknown_from("a deque of bounded length", "", made, most)
    return Seq("deque", made.items, made.rest) if isinstance(made, Seq) else made


def _time(it: Interpreter, args: Args, site: Site | None) -> Value:
    return Unknown("the time is known at run time only", "time", "float", places=here(site))


_NAMES = builtin_names()

NATIVES: dict[str, Value] = {
    **{
        f"math.{n}": _math(n, getattr(math, n))
        for n in (
            "sqrt",
            "ceil",
            "floor",
            "log",
            "log2",
            "exp",
            "pow",
            "prod",
            "gcd",
            "cos",
            "sin",
            "isqrt",
            "fmod",
            "remainder",
        )
    },
    "math.pi": Const(math.pi),
    "math.inf": Const(math.inf),
    "json.loads": Native("json.loads", _json_loads),
    "json.load": Native("json.load", _json_loads),
    "collections.OrderedDict": Native("collections.OrderedDict", _ordered_dict),
    "collections.defaultdict": Native("defaultdict", _defaultdict),
    "collections.Counter": Native("Counter", _counter),
    "collections.deque": Native("deque", _deque),
    "time.time": Native("time", _time),
    "time.perf_counter": Native("perf_counter", _time),
    "time.monotonic": Native("monotonic", _time),
    "builtins.print": _NAMES["print"],
}
