"""The built-in classes of exceptions."""

from __future__ import annotations

import builtins

from auditor import operators
from auditor.builtins.text import as_text
from auditor.interpreter import Interpreter
from auditor.objects.inheritance import OBJECT
from auditor.places import Site
from auditor.values import NONE, Args, Instance, NativeClass, Seq, Value

_EXCEPTIONS = """
BaseException Exception ArithmeticError AssertionError AttributeError EOFError FileExistsError FileNotFoundError
ImportError IndexError IOError KeyError KeyboardInterrupt LookupError MemoryError ModuleNotFoundError NameError
NotImplementedError OSError OverflowError PermissionError RecursionError RuntimeError StopIteration SyntaxError
SystemExit TimeoutError TypeError UnicodeDecodeError ValueError Warning UserWarning DeprecationWarning FutureWarning
RuntimeWarning ZeroDivisionError
"""


def _exception_made(it: Interpreter, args: Args, site: Site | None) -> Value:
    obj = args.pos[0]
    if isinstance(obj, Instance):
        obj.attrs["args"] = Seq("tuple", args.pos[1:], args.more)
    return NONE


def _exception_text(it: Interpreter, args: Args, site: Site | None) -> Value:
    obj = args.pos[0]
    given = obj.attrs.get("args") if isinstance(obj, Instance) else None
    if isinstance(given, Seq) and given.exact and len(given.items) < 2:
        return as_text(it, Args(given.items), site)
    return operators.pattern("*", *([given] if given is not None else []))


def _exception(cls: type, names: dict[str, Value]) -> Value:
    """A class of exceptions with those that it derives from."""
    if cls is object:
        return OBJECT
    found = names.get(cls.__name__)
    if found is None:
        bases = tuple(_exception(b, names) for b in cls.__bases__)
        methods = {"__init__": _exception_made, "__str__": _exception_text} if cls is BaseException else {}
        found = names[cls.__name__] = NativeClass(cls.__name__, dict(methods), bases, closed=True)
    return found


def exception_classes() -> dict[str, Value]:
    """The classes of exceptions that Python finds without an import, and those that they derive from."""
    names: dict[str, Value] = {}
    for n in _EXCEPTIONS.split():
        names[n] = _exception(getattr(builtins, n), names)
    return names
