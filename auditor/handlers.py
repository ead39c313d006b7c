"""What many functions of libraries come to, as far as anybody follows them."""

from __future__ import annotations

from auditor.interpreter import ExitSignal, Interpreter
from auditor.places import Site, here
from auditor.values import NONE, Args, Unknown, Value


def nothing(it: Interpreter, args: Args, site: Site | None) -> Value:
    return NONE


def itself(it: Interpreter, args: Args, site: Site | None) -> Value:
    """A method that gives the object that it is called on, or a function that gives its only argument."""
    return args.pos[0]


def first_argument(it: Interpreter, args: Args, site: Site | None) -> Value:
    return args.pos[0] if args.pos else NONE


def leaves(it: Interpreter, args: Args, site: Site | None) -> Value:
    """Ends the process."""
    raise ExitSignal("SystemExit", Unknown("the status of an exit", "status", places=here(site)))
