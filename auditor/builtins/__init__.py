"""Python's built-in functions, on abstract values: one file a family, each with its `FUNCTIONS`."""

from __future__ import annotations

from auditor.builtins import attributes, classes, folds, numbers, sequences, system, text
from auditor.builtins.exceptions import exception_classes
from auditor.objects.inheritance import OBJECT
from auditor.values import FALSE, NONE, TRUE, Const, Native, Value

_FUNCTIONS = {
    **numbers.FUNCTIONS,
    **text.FUNCTIONS,
    **sequences.FUNCTIONS,
    **folds.FUNCTIONS,
    **attributes.FUNCTIONS,
    **classes.FUNCTIONS,
    **system.FUNCTIONS,
}


def builtin_names() -> dict[str, Value]:
    """Everything that Python finds without an import."""
    names: dict[str, Value] = {n: Native(n, f) for n, f in _FUNCTIONS.items()}
    names |= exception_classes()
    names["object"] = OBJECT
    names["NotImplemented"] = Const(NotImplemented)
    names["True"], names["False"], names["None"] = TRUE, FALSE, NONE
    names["__debug__"] = TRUE
    names["Ellipsis"] = Const(...)
    return names
