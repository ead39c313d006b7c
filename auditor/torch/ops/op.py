"""What an operation on tensors is: a function of the arguments of a call, whichever spelling called it."""

from __future__ import annotations

from collections.abc import Callable

from auditor.interpreter import Interpreter
from auditor.places import Site
from auditor.torch.tensors import as_tensor, is_scalar
from auditor.values import Args, Tensor, Union, Value

Op = Callable[[Interpreter, Args, "Site | None"], Value]


def first(args: Args, *names: str) -> Tensor:
    """The tensor that the operation works on; a value that is no tensor counts as one of unknown shape."""
    value = args.get(0, "input", "self", "x", *names)
    found = as_tensor(value) if value is not None else None
    return found if found is not None else Tensor(() if value is not None and is_scalar(value) else None)


def lifted(op: Op) -> Op:
    """`op`, tried on each option when its first argument is one of several values."""

    def run(it: Interpreter, args: Args, site: Site | None) -> Value:
        if args.pos and isinstance(args.pos[0], Union):
            rest = args.pos[1:]
            return it.each(args.pos[0], lambda o: op(it, Args([o, *rest], args.kw, args.more), site))
        return op(it, args, site)

    return run
