"""The facts of one exported graph: what both the static pass and the probe produce, and all that a rule may read.

Every fact carries its *evidence*: the chain of places from the export call back to the constant, flag or slice that
decides it. A fact that could not be established is `None` with a `reason`; a missing value is never a pass.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeVar


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """A line of a source file (`path` relative to the audited root, `/` as separator; `line` counts from 1).

    A probe cites the bundle as `path` with line 0: a bundle has no lines.
    """

    path: str
    line: int
    note: str = ""

    def __str__(self) -> str:
        return f"{self.path}:{self.line}" if self.line else self.path


class Role(enum.StrEnum):
    """What a state holds. Roles up to `MLA_LATENT` are position-indexed: rewinding is *do not advance*."""

    KV_KEY = "kv-key"
    KV_VALUE = "kv-value"
    KV_UNIFIED = "kv-unified"
    MLA_LATENT = "mla-latent"
    CONV = "conv"
    RECURRENT = "recurrent"
    COUNTER = "counter"
    UNKNOWN = "unknown"

    @property
    def is_kv(self) -> bool:
        return self in _KV

    @property
    def rewinds(self) -> bool | None:
        """Whether stale rows of this state are harmless; `None` when the role is unknown.

        A counter (the write position) is set by the caller of the next forward, so it rewinds.
        """
        if self is Role.UNKNOWN:
            return None
        return self in _KV or self is Role.COUNTER


_KV = frozenset({Role.KV_KEY, Role.KV_VALUE, Role.KV_UNIFIED, Role.MLA_LATENT})


class Kind(enum.StrEnum):
    """What a graph computes: an autoregressive token graph, or anything else."""

    DECODER = "decoder"
    OTHER = "other"


class Logits(enum.StrEnum):
    """Which rows of the query come out as logits. `NONE`: hidden states, an argmax, or a head elsewhere."""

    ALL = "all"
    LAST = "last"
    NONE = "none"


class Kv(enum.StrEnum):
    """How the KV cache travels: as states, as ordinary inputs and outputs, or not at all."""

    STATE = "state"
    IO = "io"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Query:
    """The query dimension: `dynamic` (a range), or the fixed widths it is pinned to.

    `widths` is empty when dynamic, `(n,)` when static, longer when enumerated.
    """

    dynamic: bool
    widths: tuple[int, ...] = ()

    @property
    def single(self) -> bool:
        """Whether one position goes in, and no other number."""
        return not self.dynamic and set(self.widths) == {1}

    def __str__(self) -> str:
        if self.dynamic:
            return "dynamic"
        if len(self.widths) == 1:
            return f"static:{self.widths[0]}"
        return f"enumerated:[{','.join(map(str, self.widths))}]"


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Fact(Generic[T]):
    """A value with the places that decide it, or `None` with the reason why it is unknown.

    A `reason` beside a value says why it holds for the one width of this graph and may not for a longer query.
    `flags` are the command-line options (as typed, `--static-ids`) that the value depends on.
    """

    value: T | None
    evidence: tuple[Place, ...] = ()
    reason: str = ""
    flags: frozenset[str] = frozenset()

    @property
    def known(self) -> bool:
        return self.value is not None

    @classmethod
    def unknown(cls, reason: str, *evidence: Place, flags: frozenset[str] = frozenset()) -> Fact[T]:
        return cls(None, evidence, reason, flags)


@dataclass(frozen=True, slots=True)
class State:
    """One state of a graph, under the name the runtime sees.

    `shape` has one entry a dimension: a number, or a symbol (`-1` where only *dynamic* is known). It is empty when the
    shape is unknown. `reason` says why the role is unknown or unusual; of keys and values, why they are such for the
    one width of this graph and may not be for a longer query.
    """

    name: str
    role: Role
    evidence: tuple[Place, ...] = ()
    reason: str = ""
    shape: tuple[str, ...] = ()


class Trait(enum.StrEnum):
    """What else a rule or an advice reads: seen in the graph, or (absent) not seen."""

    ROW_KERNEL = "row-kernel"
    RING_CACHE = "ring-cache"
    BAKED_LENGTH = "baked-length"
    MOE = "moe"
    WORKLOAD = "workload"
    MIXED_FLEXIBILITY = "mixed-flexibility"
    INDEX_ALIGNED = "index-aligned-enumerations"
    UNWRITTEN_STATE = "unwritten-state"


@dataclass(frozen=True, slots=True)
class Mark:
    """A trait that was seen, with its evidence; `detail` completes the rule's message."""

    trait: Trait
    detail: str = ""
    evidence: tuple[Place, ...] = ()


@dataclass(frozen=True, slots=True)
class GraphFacts:
    """Everything known about one exported graph.

    `states` is a fact about the *list*: when it is unknown there may be states that nobody saw.
    """

    kind: Fact[Kind]
    states: Fact[tuple[State, ...]]
    query: Fact[Query]
    logits: Fact[Logits]
    kv: Fact[Kv]
    marks: tuple[Mark, ...] = ()

    @classmethod
    def unknown(cls, reason: str, *places: Place) -> GraphFacts:
        """The facts of a graph of which nothing is known."""
        return cls(
            Fact[Kind].unknown(reason, *places),
            Fact[tuple[State, ...]].unknown(reason, *places),
            Fact[Query].unknown(reason, *places),
            Fact[Logits].unknown(reason, *places),
            Fact[Kv].unknown(reason, *places),
        )

    def each(self, made: Callable[[str, Fact[Any]], Fact[Any]]) -> GraphFacts:
        """These, with what is `made` of the name and the fact of each of `states`, `query`, `logits` and `kv`."""
        return replace(
            self,
            states=made("states", self.states),
            query=made("query", self.query),
            logits=made("logits", self.logits),
            kv=made("kv", self.kv),
        )

    def mark(self, trait: Trait) -> Mark | None:
        """The first mark of `trait`, or None when it was not seen."""
        return next((m for m in self.marks if m.trait is trait), None)

    @property
    def flags(self) -> frozenset[str]:
        """All options that any fact depends on."""
        return frozenset().union(*(f.flags for f in (self.kind, self.states, self.query, self.logits, self.kv)))


class InvocationKind(enum.StrEnum):
    """The default command line, the one that a recipe records, or one with another value of an option."""

    DEFAULT = "default"
    RECIPE = "recipe"
    VARIANT = "variant"


@dataclass(frozen=True, slots=True)
class Invocation:
    """One way a script is run. `recipe` is `<recipe file>#<table>[/step<i>]`, else empty."""

    kind: InvocationKind
    argv: tuple[str, ...] = ()
    recipe: str = ""


@dataclass(frozen=True, slots=True)
class Change:
    """The same graph with one option changed, re-evaluated: a counterfactual.

    `text` is an instruction (`drop --static-ids`, `pass --dynamic`, `use --mode fp16`); `facts` is None when the
    changed run exports no such graph.
    """

    text: str
    flag: str
    argv: tuple[str, ...]
    facts: GraphFacts | None


@dataclass(frozen=True, slots=True)
class Graph:
    """One exported entry point of one invocation. `bundle` is the file or folder that the run writes (`*` = unknown).

    `shipped` is the bundle that the recipe names. `family` is the model class. `also` names entry points exported in
    the same bundle or run with facts of their own (for `second-bundle`). `by` is set where `script` only defines the
    exporter: the one script of the tree whose run gives the graph, and whose model it belongs to.
    """

    id: str
    script: str
    line: int
    graph: str
    bundle: str
    invocation: Invocation
    facts: GraphFacts
    changes: tuple[Change, ...] = field(default=())
    shipped: str = ""
    family: str = ""
    by: str = ""


class FileStatus(enum.StrEnum):
    """What became of a file: it reaches an export call, it reaches none, it was left out, it could not be read."""

    EXPORTS = "exports"
    NO_EXPORT = "no-export"
    SKIPPED = "skipped"
    ERROR = "error"


@dataclass(frozen=True, slots=True, order=True)
class FileResult:
    """A file that was looked at: its path from the audited root, and for what was left out or failed the reason."""

    path: str
    status: FileStatus
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Scan:
    """What the static pass hands to the rules: every file looked at, every graph found."""

    root: str
    files: tuple[FileResult, ...]
    graphs: tuple[Graph, ...]
    warnings: tuple[str, ...] = ()
