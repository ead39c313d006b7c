"""Names and attributes.

A name of a module that nobody could read (`External`) stays one where it is called or asked for an attribute. Anywhere
else in a graph it stands for data that nobody knows.
"""

from __future__ import annotations

from typing import Any

import libcst as cst

from auditor.interpreter import ExitSignal, Frame, Interpreter, RaiseSignal
from auditor.places import Site
from auditor.values import Const, Env, External, Union, Unknown, Value, as_data, is_none
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
        if local is not None and type(local) not in _NOT_PLAIN:
            return local
    if node.value in _CONSTANTS:
        found = it.literals.get(id(node))
        if found is None:
            found = it.literals[id(node)] = Const(_CONSTANTS[node.value], places=(frame.statement.site(node),))
        return found
    return in_graph(it, lookup(it, node.value, frame, node))


_SEVERAL = frozenset({Union, Deleted})
_NOT_PLAIN = _SEVERAL | {External}


def attribute(it: Interpreter, node: cst.Attribute, frame: Frame) -> Value:
    found = _attribute(it, node, frame)
    return found if type(found) is not External else in_graph(it, found)


def _attribute(it: Interpreter, node: cst.Attribute, frame: Frame) -> Value:
    obj, site = itself(it, node.value, frame), frame.statement.site(node)
    try:
        return it.get(obj, node.attr.value, site)
    except RaiseSignal as error:
        if it.choices.entries and is_none(obj):
            raise  # an entry of a registry that has no class for this way
        return would_raise(it, error, site)


def itself(it: Interpreter, node: Any, frame: Frame) -> Value:
    """The value of what is called, or asked for an attribute."""
    kind = type(node)
    if kind is cst.Attribute:
        return _attribute(it, node, frame)
    if kind is not cst.Name or node.value in _CONSTANTS:
        return it.eval(node, frame)
    env = frame.env
    local = env.names.get(node.value) if env.module is None and not env.redirect else None
    return local if local is not None and type(local) not in _SEVERAL else lookup(it, node.value, frame, node)


def in_graph(it: Interpreter, found: Value) -> Value:
    """What stands in a graph for a value that is neither called nor asked for an attribute."""
    return as_data(found) if it.events is not None and type(found) is External else found


def would_raise(it: Interpreter, error: RaiseSignal, site: Site) -> Value:
    """A look-up that fails: raised where the script can catch it, else unknown, because scripts that ship do run."""
    if it.maybe_raised or isinstance(error, ExitSignal):
        raise error
    return Unknown(f"this look-up gives {error.kind} as far as it can be followed", places=(site,))
