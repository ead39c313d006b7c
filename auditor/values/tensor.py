"""Tensors and the memory that they are views of."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from auditor.dims import Dim
from auditor.values.base import NO_FLAGS, Value, serial
from auditor.values.tags import FROM, LEARNED
from auditor.values.unknown import Unknown

if TYPE_CHECKING:
    from auditor.places import Site


@dataclass(slots=True)
class Tensor(Value):
    """A tensor: its shape (None when unknown, with the reason), and where its rows were cut.

    `cuts` are the places that left one row of several; `tags` say what went into it (`argmax`, `wraps`, ...); `base`
    is the input, buffer or parameter that it is a view of; `data` is the number that all of it is, `numbers` are those
    of a short vector. `of` is the tensor that this one is a view of, where that is none of those. `pick` is what it is
    beside a mask with a single one, and `region` the part of its `base` that it is (see `torch/regions.py`). `sized`
    are the flags of the length of each axis, where its sizes have some.
    """

    shape: tuple[Dim, ...] | None
    dtype: str = ""
    reason: Unknown | None = None
    cuts: tuple[Site, ...] = ()
    tags: frozenset[str] = NO_FLAGS
    base: Storage | None = None
    data: Value | None = None
    numbers: tuple[Value, ...] = field(default=(), kw_only=True, compare=False, repr=False)
    of: Tensor | None = field(default=None, kw_only=True, compare=False, repr=False)
    pick: Pick | None = field(default=None, kw_only=True, compare=False, repr=False)
    region: Region | None = field(default=None, kw_only=True, compare=False, repr=False)
    born: int = field(default_factory=serial, kw_only=True, compare=False, repr=False)
    sized: tuple[frozenset[str], ...] = field(default=(), kw_only=True, compare=False, repr=False)

    def flags_of(self, axis: int) -> frozenset[str]:
        """The flags of the tensor, without those that the lengths of its other axes alone have."""
        if axis >= len(self.sized):
            return self.flags
        return self.flags - (NO_FLAGS.union(*self.sized) - self.sized[axis])

    @property
    def handed_on(self) -> frozenset[str]:
        """The tags of what is computed from this tensor."""
        if self.base is None:
            return self.tags
        if self.base.watched:
            return self.tags | {self.base.tag}
        return self.tags | {LEARNED} if self.base.role == "parameter" else self.tags


@dataclass(frozen=True, slots=True)
class Pick:
    """What a tensor is beside a mask with a single one (see `torch/placing.py`); views lose what is no mask.

    `numbers` from `begin` on, each `step` more than the one before (see `torch/progressions.py`; None: in no order);
    `at`, 1 where they equal a position; `rest`, its opposite; a state `held` as it is `kept` by `rest`; what is `new`
    by `at`; and the sum of both, `placed`. `mask` tells masks apart, and what holds the `same` numbers. `hot` has a
    single one for each row of the query, where the `places` say; `hots` is the sum of its rows, `rows` what it puts
    there. A `copy` of a state, or of a part of it, has taken what it was `put` since (see `torch/state_copies.py`).

    `sides`: a mask that has these numbers for keys before each row, for the one right behind it, and for those further
    behind (see `torch/mask_sides.py`); so many as `begin` says are before the first row, and `step` more of them before
    each next one; `distance`: how far rows are from keys, or (`step` -1) these from those, where the first ones are as
    far apart as `begin` says.
    """

    what: str
    mask: int = 0
    held: Storage | None = None
    begin: Dim = 0
    step: int | None = 1
    view: Tensor | None = field(default=None, compare=False, repr=False)
    put: tuple[Put, ...] = field(default=(), compare=False, repr=False)
    places: Tensor | None = field(default=None, compare=False, repr=False)
    rows: Tensor | None = field(default=None, compare=False, repr=False)
    sides: tuple[float, ...] = ()

    @property
    def seen(self) -> Pick | None:
        """What a view of the tensor is."""
        return self if self.what in ("numbers", "at", "rest", "hot", "hots", "sides", "distance") else None


@dataclass(frozen=True, slots=True, eq=False)
class Put:
    """What a copy of a state has taken: `value` at `key` of a view, which `unclear` says to be no plain write."""

    view: Tensor
    key: Value | None
    value: Value | None
    unclear: str
    site: Site | None


@dataclass(frozen=True, slots=True)
class Region:
    """A part of a storage: the first place and the length along each of its axes.

    `axes` are those of them that a view has, in its order, None for one that was put in. Along the `numbered` ones,
    rows of the query are taken by numbers that nobody knows. `member` is the number of a storage where one stands for
    many.
    """

    extents: tuple[tuple[Dim, Dim], ...]
    axes: tuple[int | None, ...]
    numbered: tuple[int, ...] = ()
    member: Dim | None = None


@dataclass(slots=True, eq=False)
class Storage:
    """The memory of an input, buffer or parameter: what an in-place write reaches.

    What is computed from a `watched` one carries its tag. `read`: something was computed from it since `forward` began.
    `each`: a round of a loop of unknown length has made it, so that it stands for one of each round.
    """

    name: str
    role: str = ""  # input | buffer | parameter | attribute (a tensor that is no buffer)
    watched: bool = False
    shape: tuple[Dim, ...] | None = None
    read: bool = False
    each: bool = False

    @property
    def tag(self) -> str:
        return FROM + self.name
