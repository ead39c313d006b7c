"""What is computed once for each object: nodes of syntax trees and values have no hash of their own that tells."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar

Of = TypeVar("Of")
More = ParamSpec("More")
Result = TypeVar("Result")


def by_identity(function: Callable[Concatenate[Of, More], Result]) -> Callable[Concatenate[Of, More], Result]:
    """`function`, called once for each object that is its first argument.

    The objects are kept for as long as the process lasts, so that no other one can have the same `id`.
    """
    known: dict[int, tuple[Of, Result]] = {}

    @wraps(function)
    def ask(of: Of, /, *more: More.args, **named: More.kwargs) -> Result:
        found = known.get(id(of))
        if found is None:
            found = known[id(of)] = (of, function(of, *more, **named))
        return found[1]

    return ask
