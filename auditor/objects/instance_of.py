"""`isinstance` and `issubclass`: of values and classes of Python itself Python is asked."""

from __future__ import annotations

import builtins
import collections
import collections.abc
import numbers
import os
import types
import typing
from typing import Any

from auditor.answers import common, some
from auditor.interpreter import Interpreter
from auditor.objects.inheritance import OBJECT, mro
from auditor.values import (
    Bound,
    Class,
    Const,
    External,
    Function,
    Instance,
    Mapping,
    Native,
    NativeClass,
    Num,
    Pattern,
    Seq,
    Tensor,
    Union,
    Unknown,
    Value,
)

_MODULES = (builtins, collections, collections.abc, numbers, os, types, typing)
_PYTHON = {module.__name__: module for module in _MODULES}
_SAMPLES: dict[str, tuple[Any, ...]] = {
    **{t.__name__: (t(),) for t in (bool, int, float, str, bytes, list, tuple, set, frozenset, collections.deque)},
    "slice": (slice(None),),
    "iterator": (iter(()), (_ for _ in ())),
    "dict": ({}, collections.OrderedDict()),
}
"""Values of the types that a value of a kind may have."""

_NO_BUILT_IN = {"torch.nn.Module", "abc.ABC", "typing.Generic", "typing.Protocol"}


def is_instance(it: Interpreter, value: Value, cls: Value) -> bool | None:
    """`isinstance(value, cls)`, or None when it is unknown."""
    if isinstance(cls, Seq):
        answer = some(is_instance(it, value, c) for c in cls.items)
        return answer if answer or cls.rest is None else None
    if isinstance(cls, Union):
        return common(is_instance(it, value, c) for c in cls.options)
    if isinstance(value, Union):
        return common(is_instance(it, o, cls) for o in value.options)
    if isinstance(value, Instance):
        return is_subclass(value.cls, cls)
    if not isinstance(cls, (Class, NativeClass, Native, External)):
        return None
    python = _python_class(cls)
    if isinstance(value, Tensor):
        return _is_tensor(it, value, cls, python)
    samples = _samples(value)
    if python is not None:
        return common(_asked(s, python) for s in samples)
    if not samples or isinstance(value, Unknown) or _by_methods(cls, python):
        return None
    if isinstance(cls, External) and cls.dotted.endswith((".SymInt", ".Size")):
        return True if isinstance(value, Num) else None if isinstance(value, Seq) else False
    return False


def is_subclass(cls: Value, wanted: Value) -> bool | None:
    """`issubclass(cls, wanted)`, or None when it is unknown."""
    if isinstance(wanted, Seq):
        answer = some(is_subclass(cls, w) for w in wanted.items)
        return answer if answer or wanted.rest is None else None
    if isinstance(wanted, Union):
        return common(is_subclass(cls, w) for w in wanted.options)
    order, python, asked = mro(cls), _python_class(cls), _python_class(wanted)
    if asked is object or wanted in order:
        return True
    if _dotted(cls) in _MODELS and _dotted(wanted).startswith("transformers."):
        return True if _dotted(wanted).rpartition(".")[2] in _OF_ALL_MODELS else None
    if isinstance(python, type) and isinstance(asked, type):
        return issubclass(python, asked)
    if isinstance(wanted, Native) and isinstance(asked, type) and all(map(_is_plain, order)):
        return False
    if not isinstance(wanted, (Class, NativeClass, External)) or _by_methods(wanted, asked):
        return None
    if isinstance(wanted, External) and any(isinstance(c, External) and c.dotted == wanted.dotted for c in order):
        return True
    unread = any(isinstance(c, Unknown) or (isinstance(c, External) and not isinstance(wanted, Class)) for c in order)
    return None if unread else False


_MODELS = frozenset({"transformers.CausalLM", "transformers.PreTrainedModel"})
"""Models of Hugging Face, of whichever family."""
_OF_ALL_MODELS = frozenset({"PreTrainedModel", "GenerationMixin", "ModuleUtilsMixin", "PushToHubMixin"})


def _is_plain(base: Value) -> bool:
    """Whether a base is a class of the sources, or one that is no built-in type under another name."""
    return isinstance(base, Class) or base is OBJECT or (isinstance(base, NativeClass) and base.name in _NO_BUILT_IN)


def _samples(value: Value) -> tuple[Any, ...]:
    """Values of Python that stand for this one: their types are those that it may have; none when nobody knows."""
    match value:
        case Const(value=x):
            return (x,)
        case Num():
            return _SAMPLES["int"]
        case Pattern():
            return _SAMPLES["str"]
        case Seq(kind=kind):
            return _SAMPLES.get(kind, ())
        case Mapping(missing=None):
            return _SAMPLES["dict"]
        case Mapping():
            return collections.defaultdict(int), collections.Counter()
        case Unknown(kind=kind) if value.typed:
            return _SAMPLES.get(kind, ())
        case Function():
            return (is_instance,)
        case Bound():
            return (types.MethodType(is_instance, None),)
        case Native():
            return len, int  # functions and the classes of Python
        case Class() | NativeClass():
            return (object,)
    return ()


def _dotted(cls: Value) -> str:
    return cls.dotted if isinstance(cls, External) else cls.name if isinstance(cls, (Native, NativeClass)) else ""


def _python_class(cls: Value) -> Any:
    """The class of Python itself that is meant; None for any other."""
    module, _, name = _dotted(cls).rpartition(".")
    found = getattr(_PYTHON.get(module or "builtins"), name, None) if name else None
    return getattr(found, "__origin__", found)


def _asked(sample: Any, cls: Any) -> bool | None:
    try:
        return isinstance(sample, cls)
    except TypeError:
        return None  # what no value may be asked for: `typing.Any`


def _by_methods(cls: Value, python: Any) -> bool:
    """Whether a class has objects of other classes, too, by the methods that they have: `Iterable`, a protocol."""
    if python is not None:
        return not isinstance(python, type) or "__subclasshook__" in vars(python) or hasattr(python, "_is_protocol")
    return any(_dotted(c).endswith(".Protocol") for c in mro(cls))


def _is_tensor(it: Interpreter, value: Tensor, cls: Value, python: Any) -> bool | None:
    """Whether a tensor is of a class; it may be an array of numpy, but in `forward` that is not what goes in."""
    if python is not None or not isinstance(cls, External):
        return True if python is object else None if _by_methods(cls, python) else False
    name = cls.dotted.rpartition(".")[2]
    if name == "Parameter":
        return True if value.base is not None and value.base.role == "parameter" else None if value.reason else False
    if name == "ndarray":
        return True if it.events is None else None
    return True if name == "Tensor" else None if name.endswith("Tensor") else False
