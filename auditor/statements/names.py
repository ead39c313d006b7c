"""Imports and definitions, and whose a name is: `global` and `nonlocal`."""

from __future__ import annotations

import libcst as cst

from auditor import importing
from auditor.calls.decorators import make_decorated
from auditor.interpreter import Frame, Interpreter, Signal
from auditor.objects.classes import make_class
from auditor.statements.assignments import assign
from auditor.syntax import spelled


def import_(it: Interpreter, node: cst.Import, frame: Frame) -> Signal:
    for alias in node.names:
        name = spelled(alias.name)
        site = frame.statement.site(node)
        module = importing.import_module(it, name, frame.module, site)
        if alias.asname is not None:
            assign(it, alias.asname.name, module, frame)
        else:
            top = name.split(".")[0]
            bound = importing.import_module(it, top, frame.module, site) if "." in name else module
            assign(it, cst.Name(top), bound, frame)
    return None


def import_from(it: Interpreter, node: cst.ImportFrom, frame: Frame) -> Signal:
    module = spelled(node.module) if node.module is not None else ""
    site = frame.statement.site(node)
    level = len(node.relative)
    if isinstance(node.names, cst.ImportStar):
        importing.import_star(it, module, level, frame, site)
        return None
    names = [a.name.value if isinstance(a.name, cst.Name) else "" for a in node.names]
    for alias, name in zip(node.names, names, strict=True):
        value = importing.import_from(it, module, level, name, frame.module, site, names)
        assign(it, alias.asname.name if alias.asname is not None else alias.name, value, frame)
    return None


def function(it: Interpreter, node: cst.FunctionDef, frame: Frame) -> Signal:
    value = make_decorated(it, node, frame)
    it.heap.touch(frame.env)
    env = frame.env.redirect.get(node.name.value, frame.env)
    env.names[node.name.value] = value
    return None


def class_(it: Interpreter, node: cst.ClassDef, frame: Frame) -> Signal:
    value = make_class(it, node, frame)
    env = frame.env.redirect.get(node.name.value, frame.env)
    it.heap.touch(env)
    env.names[node.name.value] = value
    return None


def global_(it: Interpreter, node: cst.Global, frame: Frame) -> Signal:
    for n in node.names:
        frame.env.redirect[n.name.value] = frame.module.env
    return None


def nonlocal_(it: Interpreter, node: cst.Nonlocal, frame: Frame) -> Signal:
    for n in node.names:
        env = frame.env.parent
        while env is not None and n.name.value not in env.names:
            env = env.parent
        if env is not None:
            frame.env.redirect[n.name.value] = env
    return None
