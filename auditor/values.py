"""The values that the evaluator computes with: concrete where the script is concrete, abstract elsewhere.

Every value keeps the `places` that made it and the command-line `flags` it depends on. Containers, instances and
environments are mutable and journaled by `auditor.heap`; everything else is immutable.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeGuard, TypeVar

from auditor.dims import Atom, Dim, Poly, add, symbol

if TYPE_CHECKING:
    from auditor.places import Site

Copied = TypeVar("Copied")
NO_FLAGS: frozenset[str] = frozenset()

serial = itertools.count().__next__
"""Numbers mutable values and journal frames in the order of their making (see `Heap.touch`)."""
MAX_PLACES = 6
MAX_OPTIONS = 8


@dataclass(slots=True, eq=False)
class Value:
    """Base of all values.

    It has no equality of its own: the mutable kinds would inherit it, and any two of one place would be equal.
    """

    places: tuple[Site, ...] = field(default=(), kw_only=True)
    flags: frozenset[str] = field(default=NO_FLAGS, kw_only=True)


Test = tuple[str, Value, Any]
"""A question about a value: (`==` or `!=`, the value, a constant) or (`not`, the value, None)."""


@dataclass(slots=True)
class Const(Value):
    """A Python scalar: None, bool, int, float, complex, str, bytes or Ellipsis."""

    value: Any


@dataclass(slots=True)
class Pattern(Value):
    """A string with unknown parts: `text` has a `*` for each of them."""

    text: str


@dataclass(slots=True)
class Num(Value):
    """An integer that is known as a polynomial only."""

    dim: Poly


@dataclass(slots=True, eq=False)
class Unknown(Value):
    """A value that nobody knows before the script runs, and why.

    `kind` is the Python type when that much is known (`int`, `str`, `bool`, `float`, `list`, `dict`), `data` for plain
    data out of a file or a checkpoint, `unread` for what a call gave that nobody can read, else empty. `name` is how a
    reader would call it (`config.hidden_size`). Attributes and items of an unknown are memoized, so that the same
    access gives the same unknown. `query` and `flexible` say of a number what they say of an `Atom`. `test` is what a
    condition asks of another value, `of` the unknown that an attribute belongs to. An index that a loop gives every
    number below a length has that as `below`.
    """

    reason: str
    name: str = ""
    kind: str = ""
    children: dict[str, Value] = field(default_factory=dict, repr=False)
    atom: Atom | None = field(default=None, repr=False)
    query: bool = False
    assigned: dict[str, Value] = field(default_factory=dict, repr=False)
    flexible: bool = field(default=False, kw_only=True)
    test: Test | None = field(default=None, kw_only=True, repr=False)
    of: Unknown | None = field(default=None, kw_only=True, repr=False)
    below: Dim | None = field(default=None, kw_only=True, repr=False)
    born: int = field(default_factory=serial, kw_only=True, repr=False)

    def snapshot(self) -> dict[str, Value]:
        return dict(self.assigned)

    def restore(self, content: dict[str, Value]) -> None:
        self.assigned = dict(content)

    def child(self, key: str, kind: str = "", number: str = "") -> Value:
        """The attribute or item under a key; `number` tells apart keys that are spelled alike."""
        at = key + number
        found = (self.assigned.get(at) if self.assigned else None) or self.children.get(at)
        if found is None:
            kind = kind or ("data" if self.kind in ("data", "dict") else "")
            found = Unknown(
                self.reason,
                f"{self.name}{key}",
                kind,
                places=self.places,
                flags=self.flags,
                query=self.query,
                flexible=self.flexible,
                of=self,
            )
            self.children[at] = found
        return found

    def twin(self, cls: type[Unknown] | None = None) -> Unknown:
        """The same unknown as an object of its own, of another class if that is given."""
        return (cls or Unknown)(
            self.reason,
            self.name,
            self.kind,
            dict(self.children),
            self.atom,
            self.query,
            dict(self.assigned),
            places=self.places,
            flags=self.flags,
            flexible=self.flexible,
            of=self.of,
        )

    @property
    def typed(self) -> bool:
        """Whether the value is surely of the type `kind`, and so not None."""
        return self.kind not in ("", "data", "unread")

    @property
    def dim(self) -> Poly:
        if self.atom is None:
            self.atom = Atom(self.name or "?", self.query, minimum=0, flexible=self.flexible)
        return symbol(self.atom)


@dataclass(slots=True)
class Star(Value):
    """Zero or more repetitions of `items` inside a sequence: what a loop of unknown length appends.

    `count` is how many items they make up together, when that is known as a polynomial. `replaced`: in this round of a
    loop (index, value, the items before it), the one under the index is the value, and some others may be by now.
    """

    items: tuple[Value, ...]
    count: Dim | None = None
    replaced: tuple[Value, Value, tuple[Value, ...]] | None = field(default=None, repr=False)


@dataclass(slots=True, eq=False)
class Seq(Value):
    """A list, tuple, set, frozenset or deque. `rest` is set when more items may follow that nobody knows."""

    kind: str
    items: list[Value]
    rest: Unknown | None = None
    born: int = field(default_factory=serial, kw_only=True, repr=False)

    def snapshot(self) -> tuple[list[Value], Unknown | None]:
        return list(self.items), self.rest

    def restore(self, content: tuple[list[Value], Unknown | None]) -> None:
        self.items, self.rest = list(content[0]), content[1]

    @property
    def exact(self) -> bool:
        """Whether every item is known to be there, exactly once."""
        return self.rest is None and not any(isinstance(i, Star) for i in self.items)

    @property
    def count(self) -> Dim | None:
        """How many items there are; None when that is not known."""
        if self.rest is not None:
            return None
        total: Dim = 0
        for i in self.items:
            more = i.count if isinstance(i, Star) else 1
            if more is None:
                return None
            total = add(total, more)
        return total


Key = tuple[str, Any]


@dataclass(slots=True, eq=False)
class Mapping(Value):
    """A dict: `entries` maps a hashable key to (key value, value). `rest` is set when there may be more entries.

    `missing` is called for an entry that is not there: the factory of a `defaultdict`, the zero of a `Counter`.
    """

    entries: dict[Key, tuple[Value, Value]] = field(default_factory=dict)
    rest: Unknown | None = None
    missing: Value | None = None
    born: int = field(default_factory=serial, kw_only=True, repr=False)

    def snapshot(self) -> tuple[dict[Key, tuple[Value, Value]], Unknown | None]:
        return dict(self.entries), self.rest

    def restore(self, content: tuple[dict[Key, tuple[Value, Value]], Unknown | None]) -> None:
        self.entries, self.rest = dict(content[0]), content[1]

    def get(self, name: str) -> Value | None:
        found = self.entries.get(("str", name))
        return found[1] if found else None


@dataclass(slots=True, eq=False)
class Env:
    """Names of one scope. `parent` is the enclosing scope that lookups continue in."""

    names: dict[str, Value] = field(default_factory=dict)
    parent: Env | None = None
    module: Module | None = None
    redirect: dict[str, Env] = field(default_factory=dict)
    born: int = field(default_factory=serial, kw_only=True, repr=False)

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
    is_async: bool = False
    setter: Function | None = None
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
    """Something of a library whose source nobody gave: a dotted name."""

    dotted: str


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


@dataclass(slots=True, eq=False)
class Union(Value):
    """One of a few values, and nobody knows which. Never nested, never of one option.

    `guard` is a condition with the values where it is true and where it is false, when the two ways of a branch made
    it; `test` is what the union asks of another value, when it is a condition itself. `cause` is the unknown that
    decides, where a branch on one made the union.
    """

    options: tuple[Value, ...]
    guard: tuple[Value, Value, Value] | None = field(default=None, repr=False)
    test: Test | None = field(default=None, repr=False)
    cause: Unknown | None = field(default=None, kw_only=True, repr=False)


@dataclass(slots=True)
class Tensor(Value):
    """A tensor: its shape (None when unknown, with the reason), and where its rows were cut.

    `cuts` are the places that left one row of several; `tags` say what went into it (`argmax`, `wraps`, ...); `base`
    is the input, buffer or parameter that it is a view of; `data` is a small known content. `of` is the tensor that
    this one is a view of, where that is none of those. `pick` is what it is beside a mask with a single one.
    """

    shape: tuple[Dim, ...] | None
    dtype: str = ""
    reason: Unknown | None = None
    cuts: tuple[Site, ...] = ()
    tags: frozenset[str] = NO_FLAGS
    base: Storage | None = None
    data: Value | None = None
    of: Tensor | None = field(default=None, kw_only=True, compare=False, repr=False)
    pick: Pick | None = field(default=None, kw_only=True, compare=False, repr=False)
    born: int = field(default_factory=serial, kw_only=True, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Pick:
    """What a tensor is beside a mask with a single one (see `torch/placing.py`); views lose what is no mask.

    `numbers` that are all different; `at`, 1 where they equal a position; `rest`, its opposite; a state `held` as it is
    `kept` by `rest`; what is `new` by `at`; and the sum of both, `placed`. `mask` tells masks apart.
    """

    what: str
    mask: int = 0
    held: Storage | None = None

    @property
    def seen(self) -> Pick | None:
        """What a view of the tensor is."""
        return self if self.what in ("numbers", "at", "rest") else None


@dataclass(slots=True, eq=False)
class Storage:
    """The memory of an input, buffer or parameter: what an in-place write reaches.

    What is computed from a `watched` one carries its tag.
    """

    name: str
    role: str = ""  # input | buffer | parameter | attribute (a tensor that is no buffer)
    watched: bool = False
    shape: tuple[Dim, ...] | None = None

    @property
    def tag(self) -> str:
        return f"from:{self.name}"


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


NONE = Const(None)
TRUE = Const(True)
FALSE = Const(False)


def is_none(v: Value | None) -> bool:
    """Whether there is a value, and it is surely `None`."""
    return type(v) is Const and v.value is None


def is_given(v: Value | None) -> TypeGuard[Value]:
    """Whether a call has an argument that is not `None`."""
    return v is not None and not (type(v) is Const and v.value is None)


def merge_places(*groups: Iterable[Site]) -> tuple[Site, ...]:
    """The first few distinct places, in order."""
    out: tuple[Site, ...] = ()
    for g in groups:
        if not g or g is out:
            continue
        if not out:
            out = g if type(g) is tuple else tuple(g)
            continue
        for p in g:
            if p not in out:
                out = (*out, p)
        if len(out) >= MAX_PLACES:
            return out[:MAX_PLACES]
    return out


def merge_flags(values: Iterable[Value]) -> frozenset[str]:
    out = NO_FLAGS
    for v in values:
        if v.flags:
            out = out | v.flags
    return out


def origins(values: Iterable[Value]) -> tuple[tuple[Site, ...], frozenset[str]]:
    """The places (see `merge_places`) and the flags of what is computed from these values."""
    places: tuple[Site, ...] = ()
    flags = NO_FLAGS
    for v in values:
        if v.places and v.places is not places:
            places = merge_places(places, v.places) if places else v.places
        if v.flags:
            flags = flags | v.flags
    return places, flags


def altered(value: Copied, **fields: Any) -> Copied:
    """`dataclasses.replace` for the classes of values, which have slots, and without a slow call of `__init__`."""
    kind = type(value)
    slots = _slots.get(kind)
    if slots is None:
        slots = _slots[kind] = tuple(f.name for f in dataclasses.fields(value))  # type: ignore[arg-type]
    made = object.__new__(kind)
    for name in slots:
        setattr(made, name, fields[name] if name in fields else getattr(value, name))
    return made


_slots: dict[type, tuple[str, ...]] = {}


def number(dim: Dim, like: Iterable[Value] = ()) -> Value:
    """A dimension as a value, with the places and flags of what it was computed from."""
    places, flags = origins(like)
    return Num(dim, places=places, flags=flags) if isinstance(dim, Poly) else Const(dim, places=places, flags=flags)


def as_dim(v: Value) -> Dim | None:
    """The value as a dimension; None when it is no number."""
    if isinstance(v, Const):
        if isinstance(v.value, bool):
            return int(v.value)
        if isinstance(v.value, int):
            return v.value
        return int(v.value) if isinstance(v.value, float) and v.value.is_integer() else None
    if isinstance(v, Num):
        return v.dim
    if isinstance(v, Unknown) and v.kind in ("", "int", "float", "data"):
        return v.dim
    return None


def key_of(v: Value) -> Key | None:
    """A hashable key for a value used as a dict key or set member; None when it is unknown."""
    match v:
        case Const(value=x) if isinstance(x, (int, float)) and not isinstance(x, bool):
            return ("num", x)
        case Const(value=x):
            return (type(x).__name__, x)
        case Pattern(text=t):
            return ("pattern", t)
        case Num(dim=d):
            return ("dim", d)
        case Seq(kind="tuple", items=items, rest=None):
            keys = tuple(key_of(i) for i in items)
            return None if any(k is None for k in keys) else ("tuple", keys)
        case External(dotted=d):
            return ("external", d)
        case Unknown() | Union() | Star():
            return None
        case _:
            return ("id", id(v))


def text_of(v: Value) -> str | None:
    """The string of a value, with `*` for unknown parts; None when it is no string."""
    if isinstance(v, Const) and isinstance(v.value, str):
        return v.value
    return v.text if isinstance(v, Pattern) else None
