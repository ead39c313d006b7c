"""What a `class` statement makes: bases, body, hooks, decorators."""

from __future__ import annotations

from dataclasses import replace

import libcst as cst

from auditor.calls.decorators import keeps
from auditor.interpreter import Frame, Interpreter
from auditor.objects.inheritance import class_lookup, mro
from auditor.syntax import spelled
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
    Union,
    Unknown,
    Value,
)


def make_class(it: Interpreter, node: cst.ClassDef, frame: Frame) -> Value:
    """What a `class` statement binds: the class as its hooks and decorators leave it."""
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
