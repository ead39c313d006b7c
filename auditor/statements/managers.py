"""`with`: entering and leaving, and managers that swallow what is raised."""

from __future__ import annotations

import libcst as cst

from auditor.interpreter import Frame, Interpreter, Signal
from auditor.places import Site
from auditor.statements.assignments import assign
from auditor.statements.exceptions import exception_name, try_
from auditor.stdlib.managers import enter, leave
from auditor.values import NONE, Args, ExternalObject, Seq, Unknown, Value


def with_(it: Interpreter, node: cst.With, frame: Frame) -> Signal:
    managers: list[Value] = []
    swallow = False
    for item in node.items:
        manager = it.eval(item.item, frame)
        managers.append(manager)
        entered = _enter(it, manager, frame.statement.site(item))
        swallow = swallow or _suppresses(manager)
        if item.asname is not None:
            assign(it, item.asname.name, entered, frame)
    captured = it.captured
    try:
        if not swallow:
            return it.run_block(node.body.body, frame)
        return _suppressing(it, node, [m.args for m in managers if isinstance(m, ExternalObject)], frame)
    finally:
        # A program that was captured inside keeps what was patched there: its facts are computed later.
        for item, manager in zip(reversed(node.items), reversed(managers), strict=True):
            if it.captured == captured:
                leave(it, manager, frame.statement.site(item))


def _suppressing(it: Interpreter, node: cst.With, given: list[Args], frame: Frame) -> Signal:
    """`with contextlib.suppress(...)`: a `try` whose only handler does nothing."""
    kinds = [cst.Element(cst.Name(exception_name(k))) for a in given for k in a.pos]
    handler = cst.ExceptHandler(body=cst.IndentedBlock([]), type=cst.Tuple(kinds))
    return try_(it, cst.Try(body=node.body, handlers=[handler]), frame)


def _enter(it: Interpreter, manager: Value, site: Site) -> Value:
    given = enter(it, manager, site)
    if given is not None:
        return given
    if isinstance(manager, Seq):
        return manager.items[0] if manager.items else NONE
    if isinstance(manager, Unknown):
        return manager.child(".__enter__()")
    return manager


def _suppresses(manager: Value) -> bool:
    return isinstance(manager, ExternalObject) and manager.dotted.endswith((".suppress", ".raises"))
