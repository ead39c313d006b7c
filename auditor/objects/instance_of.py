"""`isinstance`."""

from __future__ import annotations

from auditor.interpreter import Interpreter
from auditor.objects.inheritance import mro
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

_KINDS = {
    "str": (Const, str),
    "int": (Const, int),
    "float": (Const, float),
    "bool": (Const, bool),
    "bytes": (Const, bytes),
}


def is_instance(it: Interpreter, value: Value, cls: Value) -> bool | None:
    """`isinstance(value, cls)`, or None when it is unknown."""
    if isinstance(cls, Seq):
        seen = [is_instance(it, value, c) for c in cls.items]
        return True if True in seen else None if None in seen or cls.rest else False
    if isinstance(value, Union):
        answers = {is_instance(it, o, cls) for o in value.options}
        return answers.pop() if len(answers) == 1 else None
    name = (
        cls.name if isinstance(cls, (NativeClass, Class, Native)) else cls.dotted if isinstance(cls, External) else ""
    )
    name = name.removeprefix("builtins.")
    match value:
        case Unknown(kind=kind):
            return (
                (name == kind or (kind == "bool" and name == "int"))
                if value.typed and name in (*_KINDS, "list", "dict", "tuple")
                else None
            )
        case Const(value=x):
            if name in _KINDS:
                return isinstance(x, _KINDS[name][1])
            return False if name != "object" and "Unknown" not in type(cls).__name__ else None
        case Num():
            return name in ("int", "object") or name.endswith(("SymInt", "Integral"))
        case Pattern():
            return name in ("str", "object")
        case Seq(kind=kind):
            return name.rsplit(".", 1)[-1] in (
                kind,
                "Sequence" if kind in ("list", "tuple") else "Set",
                "Iterable",
                "Collection",
                "object",
            )
        case Mapping():
            return name.rsplit(".", 1)[-1] in ("dict", "Mapping", "MutableMapping", "OrderedDict", "object")
        case Tensor():
            return name.rsplit(".", 1)[-1] in ("Tensor", "object", "Parameter", "ndarray")
        case Function() | Bound() | Native():
            return name.rsplit(".", 1)[-1] in ("Callable", "FunctionType", "MethodType", "object")
        case Class() | NativeClass():
            return name in ("type", "object")
        case Instance(cls=own):
            order = mro(own)
            if any(c is cls for c in order):
                return True
            if isinstance(cls, External):
                if any(isinstance(c, External) and c.dotted == cls.dotted for c in order):
                    return True
                return None if any(isinstance(c, (External, Unknown)) for c in order) else False
            if isinstance(cls, (Class, NativeClass)):
                return (
                    None
                    if any(isinstance(c, (External, Unknown)) for c in order) and isinstance(cls, NativeClass)
                    else False
                )
    return None
