"""Names: where one is looked up, and `:=`, which binds one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import libcst as cst

from auditor.expressions.lookups import would_raise
from auditor.interpreter import Frame, Interpreter, RaiseSignal
from auditor.statements.assignments import assign
from auditor.values import Const, Env, Union, Unknown, Value
from auditor.values.absence import Deleted


def lookup(it: Interpreter, name: str, frame: Frame, node: Any) -> Value:
    """The value of a name: in its scopes, in its module, of Python itself; else an unknown that says so."""
    env: Env | None = frame.env
    while env is not None:
        if env.redirect and name in env.redirect:
            env = env.redirect[name]
        found = env.names.get(name)
        if found is not None:
            if env.module is not None and env.module.noted:
                it.loader.keeper.recall(it, env.module, name)
            if type(found) is Union and it.assumed.made:
                found = it.assumed.chosen(found)
            return found if type(found) is not Deleted else _deleted(it, found, frame, node)
        if env.module is not None:
            found = it.loader.name_in(it, env.module, name)
            if found is not None:
                return found
        env = env.parent
    builtin = it.loader.builtins.get(name)
    if builtin is not None:
        return builtin
    return Unknown(
        f"the name `{name}` is not defined anywhere that was read", name, places=(frame.statement.site(node),)
    )


def _deleted(it: Interpreter, found: Deleted, frame: Frame, node: Any) -> Value:
    return would_raise(it, RaiseSignal("NameError", found), frame.statement.site(node))


_CONSTANTS = {"None": None, "True": True, "False": False}


def name(it: Interpreter, node: cst.Name, frame: Frame) -> Value:
    env = frame.env
    if env.module is None and not env.redirect:  # what most names are: locals, with one value
        local = env.names.get(node.value)
        if local is not None and type(local) is not Union and type(local) is not Deleted:
            return local
    if node.value in _CONSTANTS:
        found = it.literals.get(id(node))
        if found is None:
            found = it.literals[id(node)] = Const(_CONSTANTS[node.value], places=(frame.statement.site(node),))
        return found
    return lookup(it, node.value, frame, node)


def named(it: Interpreter, node: cst.NamedExpr, frame: Frame) -> Value:
    value = it.eval(node.value, frame)
    env = frame.env
    while env.parent is not None and env.redirect.get("") is not None:
        env = env.parent
    assign(it, node.target, value, replace(frame, env=env))
    return value
