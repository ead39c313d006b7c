"""What nobody knows before the script runs: anything at all, or one of a few values."""

from __future__ import annotations

from dataclasses import dataclass, field

from auditor.dims import Atom, Dim, Poly, symbol
from auditor.values.base import Test, Value, serial

MAX_OPTIONS = 8


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
