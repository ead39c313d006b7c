"""What the text of a function says of the names in a loop: with it, a loop of unknown length takes fewer rounds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import libcst as cst

from auditor.bindings import carried, globals_read, taken
from auditor.memo import by_identity
from auditor.modules import ModuleSource
from auditor.syntax import names, parts

Loop = cst.For | cst.While

_ADDING = frozenset({"append", "extend", "add", "update"})
_MAKING = frozenset({"list", "dict", "set"})


@dataclass(frozen=True, slots=True)
class LoopNames:
    """Names of the scope that a loop stands in.

    A round may read those that are `carried` before it binds them, be it through a function that sees them. `counters`
    are counted up or down in the loop, and `filled` hold a list, a set or a dict that the function makes, that is only
    added to, and that nothing can read before the loop has ended: of these, only names of a function are known.
    """

    carried: frozenset[str] = frozenset()
    counters: frozenset[str] = frozenset()
    filled: frozenset[str] = frozenset()


NOTHING = LoopNames()


@by_identity
def loop_names(loop: Loop, code: cst.FunctionDef | cst.Lambda | ModuleSource) -> LoopNames:
    """What is known of the names of a loop, which stands in a function or at the top level of a module."""
    return _read(loop, code) if isinstance(code, cst.FunctionDef) else _top(loop, code)


def _read(loop: Loop, function: cst.FunctionDef) -> LoopNames:
    uses = _Uses(loop)
    uses.read(function.params)
    uses.read(function.body)
    return LoopNames(
        frozenset(carried(loop) | uses.shared),
        frozenset(uses.counted - uses.shared),
        frozenset(uses.made - uses.seen - uses.shared),
    )


def _top(loop: Loop, code: object) -> LoopNames:
    seen = globals_read(code) if isinstance(code, ModuleSource) else names(code)
    return LoopNames(frozenset(carried(loop) | seen))


@dataclass(slots=True)
class _Uses:
    """How a function uses its names, up to the end of the outermost loop around `loop`.

    `made` are bound to something empty, `seen` are used in any way but to add to them, `counted` are counted in `loop`
    itself, and `shared` are names that inner functions take from here, and those of other scopes.
    """

    loop: Loop
    made: set[str] = field(default_factory=set)
    seen: set[str] = field(default_factory=set)
    counted: set[str] = field(default_factory=set)
    shared: set[str] = field(default_factory=set)
    keyed: set[str] = field(default_factory=set)
    depth: int = 0
    met: bool = False
    over: bool = False

    def read(self, node: Any) -> None:
        reader = _READERS.get(type(node))
        if reader is not None:
            reader(self, node)
        else:
            self._all(parts(node))

    def _scope(self, node: Any) -> None:
        self.shared |= taken(node)

    def _name(self, node: cst.Name) -> None:
        self.seen.add(node.value)

    def _value(self, node: cst.Attribute | cst.Arg) -> None:
        self.read(node.value)  # not the attribute's name, nor the keyword

    def _bound(self, node: cst.Assign | cst.AnnAssign) -> None:
        match node:
            case cst.Assign(targets=[cst.AssignTarget(target=cst.Name(value=name))], value=value) if _is_empty(value):
                self.made.add(name)
            case cst.AnnAssign(target=cst.Name(value=name), value=value) if _is_empty(value):
                self.made.add(name)
            case cst.Assign(
                targets=[cst.AssignTarget(target=cst.Subscript(value=cst.Name(value=name), slice=at))], value=value
            ):
                self._all([*at, value])
                self._keyed(name)
            case _:
                self._all(parts(node))

    def _done(self, node: cst.Expr) -> None:
        match node.value:
            case cst.Call(func=cst.Attribute(value=cst.Name(value=name), attr=cst.Name(value=how)), args=args) if (
                how in _ADDING
            ):
                self._all(args)
                if how == "update":
                    self._keyed(name)
            case _:
                self.read(node.value)

    def _keyed(self, name: str) -> None:
        """A second write by key may meet what the first has written, a round before."""
        (self.seen if name in self.keyed else self.keyed).add(name)

    def _loop(self, node: Loop) -> None:
        self.depth += 1
        if node is self.loop:
            self.met = True
            self.counted.update(_counted(node.body))
        self._all(parts(node))
        self.depth -= 1
        self.over = self.met and not self.depth

    def _all(self, nodes: Iterable[Any]) -> None:
        for node in nodes:
            if self.over:
                return
            self.read(node)


_READERS: dict[type, Callable[[_Uses, Any], None]] = {
    cst.For: _Uses._loop,
    cst.While: _Uses._loop,
    **dict.fromkeys((cst.FunctionDef, cst.Lambda, cst.ClassDef, cst.Global, cst.Nonlocal), _Uses._scope),
    cst.Name: _Uses._name,
    **dict.fromkeys((cst.Attribute, cst.Arg), _Uses._value),
    **dict.fromkeys((cst.Assign, cst.AnnAssign), _Uses._bound),
    cst.Expr: _Uses._done,
}
"""Kinds of nodes that say something by themselves; of the others, only what they hold does."""


def _is_empty(value: Any) -> bool:
    match value:
        case cst.List(elements=[]) | cst.Dict(elements=[]):
            return True
        case cst.Call(func=cst.Name(value=name), args=[]):
            return name in _MAKING
    return False


def _counted(node: Any) -> Iterator[str]:
    """Names that `+=` and `-=` change."""
    match node:
        case cst.AugAssign(target=cst.Name(value=name), operator=cst.AddAssign() | cst.SubtractAssign()):
            yield name
        case cst.BaseSmallStatement() | cst.BaseExpression():
            return
    for part in parts(node):
        yield from _counted(part)
