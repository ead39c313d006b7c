"""Scopes, modules, functions, classes and objects, of the sources and of libraries."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from auditor.values.base import Value, serial
from auditor.values.containers import Mapping
from auditor.values.unknown import Unknown

if TYPE_CHECKING:
    from auditor.places import Site


@dataclass(slots=True, eq=False)
class Env:
    """Names of one scope. `parent` is the enclosing scope that lookups continue in."""

    names: dict[str, Value] = field(default_factory=dict)
    parent: Env | None = None
    module: Module | None = None
    redirect: dict[str, Env] = field(default_factory=dict)
    born: int = field(default_factory=serial, kw_only=True, repr=False)

    def scopes(self) -> Iterator[Env]:
        """This scope and those around it that a function has: that of the module is none of them."""
        scope: Env | None = self
        while scope is not None and scope.module is None:
            yield scope
            scope = scope.parent

    def snapshot(self) -> dict[str, Value]:
        return dict(self.names)

    def restore(self, content: dict[str, Value]) -> None:
        self.names = dict(content)


@dataclass(slots=True, eq=False)
class Module(Value):
    """A module of the audited tree or of a library; names are evaluated when they are first looked up.

    `met` says, for a name, what its making met that a run which uses the name has to know of. `own` are the names that
    the present run has made for itself, and `noted` is set while a look at either is needed.
    """

    name: str
    env: Env
    source: Any  # auditor.modules.ModuleSource
    pending: set[int] = field(default_factory=set)
    met: dict[str, Met] = field(default_factory=dict)
    own: set[str] = field(default_factory=set)
    noted: bool = False


@dataclass(slots=True, eq=False)
class Met:
    """Imports without a source (name and place, by package), and modules that act when they are imported (by path)."""

    unread: dict[str, tuple[str, Site]] = field(default_factory=dict)
    imports: dict[str, Module] = field(default_factory=dict)

    def add(self, other: Met) -> None:
        for top, missing in other.unread.items():
            self.unread.setdefault(top, missing)
        for path, module in other.imports.items():
            self.imports.setdefault(path, module)


@dataclass(slots=True, eq=False)
class Function(Value):
    """A `def` or `lambda` with its closure. `defaults` maps parameter names to evaluated defaults.

    `manages`: it is a generator made a context manager. `wrapped`: a decorator that nobody can read went around it.
    `kept` are its results by the arguments, where a decorator has it keep them.
    """

    name: str
    node: Any
    env: Env
    defaults: dict[str, Value]
    owner: Class | None = None
    kind: str = "function"  # function | classmethod | staticmethod | property
    site: Site | None = None
    generator: bool = False
    manages: bool = False
    wrapped: Unknown | None = None
    setter: Function | None = None
    kept: Mapping | None = None
    attributes: dict[str, Value] = field(default_factory=dict)


@dataclass(slots=True, eq=False)
class Bound(Value):
    """A function with its first argument."""

    function: Value
    receiver: Value


@dataclass(slots=True, eq=False)
class Class(Value):
    """A class of the sources. `bases` may hold `NativeClass` and `External`."""

    name: str
    bases: tuple[Value, ...]
    env: Env
    node: Any = None
    site: Site | None = None
    dataclass_fields: bool = False
    mro_cache: tuple[Value, ...] | None = None


Method = Callable[..., Value]


@dataclass(slots=True, eq=False)
class NativeClass(Value):
    """A class of a library that this project knows: its methods are functions of ours.

    `closed` when everything a user can reach is listed; other attributes of an open one are unknown, not missing.
    """

    name: str
    methods: dict[str, Method] = field(default_factory=dict)
    bases: tuple[Value, ...] = ()
    attributes: dict[str, Value] = field(default_factory=dict)
    closed: bool = False
    mro_cache: tuple[Value, ...] | None = None


@dataclass(slots=True, eq=False)
class Instance(Value):
    """An object. `payload` holds what a native class keeps; `taint` says which unread call received it."""

    cls: Value
    attrs: dict[str, Value] = field(default_factory=dict)
    payload: Any = None
    taint: Unknown | None = None
    born: int = field(default_factory=serial, kw_only=True, repr=False)

    def snapshot(self) -> tuple[dict[str, Value], Any, Unknown | None]:
        return dict(self.attrs), self.payload, self.taint

    def restore(self, content: tuple[dict[str, Value], Any, Unknown | None]) -> None:
        self.attrs, self.payload, self.taint = dict(content[0]), content[1], content[2]


@dataclass(slots=True, eq=False)
class Native(Value):
    """A function of ours that stands for one of Python or a library."""

    name: str
    function: Method


@dataclass(slots=True, eq=False)
class External(Value):
    """Something of a library whose source nobody gave: a dotted name.

    `unread` is what it is where it is neither called nor asked for an attribute: data that nobody knows. A name of a
    library that is known by its public API has none.
    """

    dotted: str
    unread: Unknown | None = None


@dataclass(slots=True, eq=False)
class ExternalObject(Value):
    """What calling an external gave, when nothing is known of the call: the call and its arguments."""

    dotted: str
    args: Args
    children: dict[str, Value] = field(default_factory=dict)


@dataclass(slots=True, eq=False)
class Super(Value):
    """What `super()` gives: attributes of `receiver` looked up behind `owner`."""

    owner: Value
    receiver: Value


@dataclass(slots=True)
class Args:
    """The arguments of a call. `more` is set when unknown further arguments were splatted in."""

    pos: list[Value] = field(default_factory=list)
    kw: dict[str, Value] = field(default_factory=dict)
    more: Unknown | None = None

    def get(self, index: int, *names: str) -> Value | None:
        """The argument at position `index` or with one of `names`."""
        if 0 <= index < len(self.pos):
            return self.pos[index]
        for n in names:
            if n in self.kw:
                return self.kw[n]
        return None

    def all(self) -> list[Value]:
        return [*self.pos, *self.kw.values()]
