"""Calls: their arguments, and the functions that ask for the frame they are called in."""

from __future__ import annotations

import libcst as cst

from auditor import operators
from auditor.containers.iteration import iterate
from auditor.expressions.names import itself
from auditor.interpreter import Frame, Interpreter
from auditor.joins import present, union
from auditor.places import Site
from auditor.values import (
    NONE,
    Args,
    Const,
    Function,
    Instance,
    Mapping,
    Super,
    Union,
    Unknown,
    Value,
    is_none,
    text_of,
)
from auditor.values.absence import Deleted, maybe_absent
from auditor.views import attribute_view


def call(it: Interpreter, node: cst.Call, frame: Frame) -> Value:
    function = itself(it, node.func, frame)
    args = Args()
    site = frame.statement.site(node)
    for a in node.args:
        value = it.eval(a.value, frame)
        if not a.star:
            if a.keyword is None:
                args.pos.append(value)
            else:
                args.kw[a.keyword.value] = value
        elif a.star == "*":
            more = iterate(it, value, site)
            if more.exact:
                args.pos += more.items
            else:
                args.more = more.rest or Unknown("arguments splatted from a sequence of unknown length", places=(site,))
        else:
            _splat(it, args, value, site)
    if isinstance(function, Function) and function.name == "super":
        return function
    if type(node.func) is cst.Name and node.func.value in _FRAME_CALLS:
        handled = _FRAME_CALLS[node.func.value](it, function, args, frame, site)
        if handled is not None:
            return handled
    return it.call(function, args, site)


def _splat(it: Interpreter, args: Args, value: Value, site: Site) -> None:
    if isinstance(value, Union):
        mappings = [o for o in value.options if isinstance(o, Mapping)]
        value = mappings[0] if len(mappings) == 1 and len(value.options) == 1 else value
    if isinstance(value, Instance) and isinstance(value.payload, Mapping):
        value = value.payload
    if isinstance(value, Mapping):
        for key, entry in value.entries.values():
            name = text_of(key)
            if name is not None and "*" not in name:
                args.kw[name] = entry if not maybe_absent(entry) else _maybe_given(entry, name)
            else:
                args.more = Unknown("keyword arguments under names that are not known", places=(site,))
        args.more = args.more or value.rest
    elif not is_none(value):
        args.more = operators.unknown_from("keyword arguments splatted from a dict that is not known", "dict", value)


def _maybe_given(entry: Value, name: str) -> Value:
    return union([present(entry), Unknown(f"whether `{name}` is given is not known", places=entry.places)])


def _super(it: Interpreter, function: Value, args: Args, frame: Frame, site: Site) -> Value | None:
    receiver = frame.receiver
    if args.pos:
        receiver = args.pos[1] if len(args.pos) > 1 else receiver
        return Super(args.pos[0], receiver if receiver is not None else NONE)
    if frame.function is not None and frame.function.owner is not None and receiver is not None:
        return Super(frame.function.owner, receiver)
    return Unknown("super() outside a method", places=(site,))


def _locals(it: Interpreter, function: Value, args: Args, frame: Frame, site: Site) -> Value | None:
    if frame.env is frame.module.env:
        return _globals(it, function, args, frame, site)
    names = frame.env.names
    return Mapping({("str", n): (Const(n), v) for n, v in names.items() if not isinstance(v, Deleted)})


def _vars(it: Interpreter, function: Value, args: Args, frame: Frame, site: Site) -> Value | None:
    return None if args.pos else _locals(it, function, args, frame, site)


def _globals(it: Interpreter, function: Value, args: Args, frame: Frame, site: Site) -> Value | None:
    names = frame.module.env.names
    return attribute_view(frame.module, names, Unknown("names of the module that were not read"))


_FRAME_CALLS = {"super": _super, "locals": _locals, "globals": _globals, "vars": _vars}
