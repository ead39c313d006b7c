"""One position that goes into all rows of the query: what was written for one token at a time, made longer.

    cos, sin = self.cos[position], self.sin[position]     # one number goes in, so this is one row of each table
    q = q * cos + rotate_half(q) * sin                    # all rows of the query are turned as if they stood there

One tensor for all rows is right for a speaker or a temperature. It has to be a position, then: a length, what comes
out of a sine, or an input that is named like one or that says elsewhere where rows of a cache lie. Numbers that are
told apart row by row before they meet the rows (a start plus a range) are right, and so is a slope for each key, of
which the softmax does not see where it begins. What a linear layer makes of a position is a modulation.

    cos, sin = self.cos[:rows], self.sin[:rows]           # no number at all: rows stand at 0, 1, ... in every call

Rows that have the same positions in every call, whatever the cache holds by then, are wrong in the same way.
"""

from __future__ import annotations

from collections.abc import Sequence

from auditor import dims
from auditor.dims import Dim
from auditor.roles import role_by_name, words
from auditor.values import NO_FLAGS, Num, Pick, Seq, Tensor, Unknown, Value
from auditor.values.tags import CALL, COUNTED, FROM, HANDED_ON, INPUT, LENGTH, LOOKED, ONE, ROWWISE, SPAN, TOKENS

OF = "at:"
"""How the tag of an input that is one number begins."""
NUMBERS = ("int", "uint", "bool")
_PLACES = frozenset({"pos", "position", "positions"})
_ANGLES = frozenset({"cos", "sin", "rope", "rotary"})


def given(name: str, shape: Sequence[Dim], dtype: str) -> frozenset[str]:
    """What an input of the graph that is no query says of positions by its shape and name."""
    said = set(words(name))
    named = not said.isdisjoint(_PLACES | _ANGLES)
    vector = named and not dtype.startswith(NUMBERS) and sum(d != 1 for d in shape) <= 1
    if vector or single(shape):
        return frozenset({ONE, OF + name, *((LENGTH,) if named else ())})
    return NO_FLAGS


def numbered(t: Tensor, name: str) -> None:
    """Say which numbers `t`, whole numbers that go in, has: those of the query's rows, or of all tokens, or one."""
    long = [d for d in t.shape or () if d != 1]
    if not long:
        t.pick = Pick("numbers", begin=dims.symbol(dims.Atom("item")), step=0)
    elif len(long) == 1 and isinstance(long[0], dims.Poly) and not _PLACES.isdisjoint(words(name)):
        t.pick = Pick("numbers", begin=dims.symbol(dims.Atom("item")) if dims.is_query(long[0]) else 0)


def single(shape: Sequence[Dim]) -> bool:
    """Whether there is one number, or one for each item of a batch."""
    return all(d == 1 for d in shape[1:]) and (len(shape) > 1 or all(d == 1 for d in shape))


def counter(t: Tensor, name: str) -> Tensor:
    """Mark `t`, a buffer, when it is one whole number: it may count positions."""
    if t.shape is not None and single(t.shape) and t.dtype.startswith(NUMBERS):
        t.tags = t.tags | {ONE, OF + name}
    return t


def of_length(made: Tensor, *numbers: Value | None) -> Tensor:
    """Mark `made`, which has the same content in all rows, when one of these numbers in it differs between calls."""
    if any(map(differs, numbers)):
        made.tags = made.tags | {ONE, LENGTH}
        if any(map(is_of_a_call, numbers)):
            made.tags = made.tags | {CALL}
    return made


def is_of_a_call(number: Value | None) -> bool:
    """Whether a number comes of the lengths of the inputs."""
    said = number.dim if isinstance(number, Num) else number if isinstance(number, Unknown) else None
    return said is not None and (said.query or said.flexible)


def differs(number: Value | None) -> bool:
    """Whether a number comes of the lengths of the inputs, or of what is in them."""
    if isinstance(number, Num):
        d = number.dim
        return d.query or d.flexible or any(a.read for a in d.atoms)
    return isinstance(number, Unknown) and number.kind in ("int", "float") and (number.query or number.flexible)


def taken(made: Tensor, table: Tensor, *numbers: Value | None) -> Tensor:
    """`made` is one row of a table, at one of these numbers, or one of the numbers that go in."""
    if INPUT in table.tags and table.dtype.startswith(NUMBERS):
        return counted(made, table)
    if INPUT in table.tags or holds_rows(table) or (table.base is not None and table.base.watched):
        return made
    return looked_up(of_length(made, *numbers))


def looked_up(made: Tensor) -> Tensor:
    """Mark `made`, which comes out of a table, when one position or numbers of rows say from where."""
    if not made.tags.isdisjoint(ROWWISE):
        made.tags = made.tags | {LOOKED}
    return made


def first_of_all(made: Tensor, given: Tensor, first: bool) -> Tensor:
    """Mark `made`, as many as the query has of numbers that go in for all tokens: those of the query are the last."""
    if first and INPUT in given.tags and _is_of_all(given):
        made.tags = made.tags | {COUNTED}
    return made


def _is_of_all(t: Tensor) -> bool:
    """Whether whole numbers go in for all tokens, those that a cache holds among them: the first stand at 0, 1, ..."""
    whole = t.dtype.startswith(NUMBERS) and TOKENS not in t.tags and not is_cache(t)
    return whole and any(dims.is_flexible(d) and not is_rows(d) for d in t.shape or ())


def counted(made: Tensor, t: Tensor) -> Tensor:
    """`made`, a number of whole numbers or of a mask that go in along an axis whose length differs between calls."""
    lengths = [d for d in t.shape or () if isinstance(d, dims.Poly) and d.flexible]
    if not lengths or INPUT not in t.tags or TOKENS in t.tags or made.shape is None or not single(made.shape):
        return made
    numbers = t.dtype.startswith(NUMBERS) or not any(d.query for d in lengths)
    if numbers and not is_cache(t):
        made.tags = made.tags | {ONE, LENGTH, CALL}
    return made


def spanned(made: Tensor, table: Tensor, bounds: Seq) -> Tensor:
    """`made` is cut out of a table by tensors: one row, where no number of rows is between its begin and its end."""
    start, stop = bounds.items[:2]
    if not isinstance(start, Tensor) or not isinstance(stop, Tensor) or is_cache(table) or holds_rows(table):
        return made
    alike = inputs(start) == inputs(stop) and not {SPAN} & (start.tags ^ stop.tags)
    if alike and ONE in start.tags and ONE in stop.tags:
        made.tags = made.tags | start.tags & HANDED_ON | inputs(start) | {LOOKED}
    return made


def inputs(t: Tensor) -> frozenset[str]:
    """The tags of the single numbers that went into a tensor."""
    return frozenset(tag for tag in t.tags if tag.startswith(OF))


def is_cache(t: Tensor) -> bool:
    """Whether a tensor is, or comes out of, a cache by its name."""
    held = [t.base.name] if t.base is not None else []
    held += [tag.removeprefix(FROM) for tag in t.tags if tag.startswith(FROM)]
    return any(role_by_name(name).is_kv for name in held)


def holds_rows(t: Tensor) -> bool:
    """Whether a tensor has what the model computes for each row of the query; numbers are no such thing."""
    computed = INPUT in t.tags and not t.dtype.startswith(NUMBERS)
    return computed and t.shape is not None and any(map(is_rows, t.shape))


def is_rows(d: Dim) -> bool:
    """Whether an axis is that of the rows, or that of the rows and others in one."""
    if not isinstance(d, dims.Poly) or len(d.terms) != 1:
        return False
    return any(a.query and a.flexible and a.made is None for a in d.terms[0][0])
