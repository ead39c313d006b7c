"""Decorators, and which of them leave a function as it is."""

from __future__ import annotations

import sys

import libcst as cst

from auditor.calls.functions import make_function
from auditor.interpreter import Frame, Interpreter
from auditor.syntax import spelled
from auditor.values import Args, Bound, Class, External, Function, Instance, Native, NativeClass, Unknown, Value


def make_decorated(it: Interpreter, node: cst.FunctionDef, frame: Frame) -> Value:
    """What a `def` binds: the function as its decorators leave it."""
    function: Value = make_function(it, node, node.name.value, frame)
    for decorator in reversed(node.decorators):
        function = _decorate(it, decorator, function, frame)
    return function


def _decorate(it: Interpreter, decorator: cst.Decorator, function: Value, frame: Frame) -> Value:
    expr = decorator.decorator
    target = expr.func if isinstance(expr, cst.Call) else expr
    if isinstance(target, cst.Attribute) and target.attr.value in ("setter", "getter", "deleter"):
        current = frame.env.names.get(getattr(target.value, "value", ""))
        if target.attr.value == "setter" and isinstance(current, Function) and isinstance(function, Function):
            current.setter = function
            return current
        return current or function
    value = it.eval(expr, frame)
    site = frame.statement.site(decorator)
    if isinstance(value, (Function, Bound, Class, Native, NativeClass, Instance)):
        result = it.call(value, Args([function]), site)
        return function if isinstance(result, Unknown) and isinstance(value, (Native, NativeClass)) else result
    if isinstance(function, Function) and not keeps(it.eval(target, frame)):
        name = spelled(target)
        reason = f"the decorator `{name}` of `{function.name}` cannot be read"
        function.wrapped = Unknown(reason, name, places=(site,))
    return function


_KEEPING = frozenset(sys.stdlib_module_names) | {
    "torch",
    "numpy",
    "transformers",
    "executorch",
    "coremltools",
    "coreai_torch",
    "coreai",
    "coreai_opt",
    "jaxtyping",
    "beartype",
    "typeguard",
    "typing_extensions",
    "deprecated",
    "deprecation",
    "numba",
    "pytest",
    "click",
    "typer",
    "fire",
    "hydra",
    "absl",
    "tqdm",
}
"""Packages whose decorators leave what a function computes as it is."""


def keeps(decorator: Value) -> bool:
    """Whether a decorator without source is known, or says by its name, that it gives the function back."""
    if not isinstance(decorator, (External, Unknown)):
        return True
    name = decorator.dotted if isinstance(decorator, External) else decorator.name
    return name.split(".")[0] in _KEEPING or "regist" in name.rpartition(".")[2].lower()
