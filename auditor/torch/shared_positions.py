"""Where one position, or numbers of rows from 0, meet the rows of the query (see `positions.py`)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from auditor import dims
from auditor.operators import depends_on_query
from auditor.torch import progressions, row_places
from auditor.torch.positions import NUMBERS, OF, differs, holds_rows, inputs, is_cache, is_of_a_call, is_rows, of_length
from auditor.values import NO_FLAGS, Const, Num, Seq, Tensor, Value, altered
from auditor.values.tags import (
    ALIKE,
    BESIDE,
    BLENDED,
    CALL,
    COUNTED,
    HANDED_ON,
    INPUT,
    LEARNED,
    LENGTH,
    LOOKED,
    ONE,
    ROWWISE,
    SHARED,
    SPAN,
    STANDING,
    TOKENS,
    TURNED,
    At,
    Begins,
)

if TYPE_CHECKING:
    from auditor.places import Site
    from auditor.torch.events import Events


def with_number(events: Events | None, made: Tensor, a: Value, b: Value, site: Site | None) -> Tensor:
    """`made` of a tensor and a number of Python: one number for all rows, when it differs between calls."""
    t, number = (a, b) if isinstance(a, Tensor) else (b, a)
    if not isinstance(t, Tensor):
        return made
    if COUNTED in t.tags:
        made.tags = progressions.without(made.tags)
    if ONE in t.tags and depends_on_query(number):
        made.tags = made.tags | {SPAN}
    if not differs(number):
        return made
    if not _may_differ(t):
        return of_length(made, number) if INPUT not in t.tags or ONE in t.tags else made
    made.tags = made.tags - {ONE}
    if holds_rows(t):
        made.tags = made.tags | {SHARED}
        if events is not None and site is not None:
            events.shared.append((site, of_length(Tensor(()), number)))
    return made


def scaled(op: str, made: Tensor, a: Value, b: Value, site: Site | None) -> Tensor:
    """`made` is a product of what each row has and a number: by how many rows or keys there are, it is none of its own.

    Whole numbers may be where a row lies in what was made flat, but distances. What is `SHARED` is told as such.
    """
    for t, number in ((a, b), (b, a)):
        of_a_call = CALL in number.tags if isinstance(number, Tensor) else is_of_a_call(number)
        if not of_a_call or not isinstance(t, Tensor) or SHARED in made.tags:
            continue
        distance = t.pick is not None and bool(t.pick.sides)
        if made.dtype.startswith(NUMBERS) and op != "/" and not distance:
            continue
        of_positions = LEARNED not in t.tags and (BESIDE in t.tags or INPUT not in t.tags)
        single = not isinstance(number, Tensor) or (ONE in number.tags and of_positions)
        if single and t.tags.isdisjoint(ROWWISE) and _may_differ(t):
            made.tags = made.tags | At.of(BLENDED, site)
    return made


def relative(made: Tensor, a: Value, b: Value) -> Tensor:
    """`made` is a difference: of positions and where the call begins, it is the numbers of the rows within the call."""
    for positions, number in ((a, b), (b, a)):
        if isinstance(positions, Tensor) and _are_positions(positions) and _is_of_the_call(number):
            made.tags = made.tags | {COUNTED}
    return made


def _are_positions(t: Tensor) -> bool:
    """Whether whole numbers go in for each row of the query that are no tokens."""
    whole = t.dtype.startswith(("int", "uint")) and INPUT in t.tags and TOKENS not in t.tags
    return whole and t.tags.isdisjoint(ROWWISE) and any(map(is_rows, t.shape or ()))


def _is_of_the_call(number: Value) -> bool:
    """Whether a number says where the rows of a call stand: what they are counted from, or one of their positions.

    A number that goes in by itself may be the same in all calls, as that of the places left empty in front.
    """
    if isinstance(number, Tensor):
        return {ONE, LENGTH} <= number.tags and not inputs(number) and number.dtype.startswith(("int", "uint"))
    return isinstance(number, Num) and dims.depends_on_query(number.dim)


def numbered(events: Events | None, *operands: Value | None) -> None:
    """Note a comparison with numbers that are all different: what is compared with them is a position."""
    if events is not None and any(map(_all_differ, operands)):
        places(events, Seq("tuple", [o for o in operands if isinstance(o, Tensor)]))


def _all_differ(value: Value | None) -> bool:
    pick = value.pick if isinstance(value, Tensor) else None
    return pick is not None and not pick.sides and pick.step != 0


def carried(tags: frozenset[str], sources: Sequence[Tensor]) -> frozenset[str]:
    """The tags of a tensor that is computed from all of the sources, some of which are `ONE` or `COUNTED`."""
    ours: list[Tensor] = []
    others: list[Tensor] = []
    said = NO_FLAGS
    for s in sources:
        own = s.tags & HANDED_ON
        if not own.isdisjoint(ROWWISE):
            ours.append(s)
        elif not _is_of_tokens(s):
            others.append(s)
        said = said | own
    tells_apart = _may_differ if ONE in said else _is_given
    if not said >= ROWWISE and not any(map(tells_apart, others)) and not any(map(is_cache, others)):
        return tags | said
    left = frozenset(t for t in tags if not t.startswith(OF) and type(t) is not Begins)
    return left | {SHARED} if any(map(_turns, ours)) and any(map(holds_rows, others)) else left


def _is_of_tokens(t: Tensor) -> bool:
    """Whether a tensor is computed from the tokens alone, which do not say where they stand."""
    return TOKENS in t.tags and BESIDE not in t.tags and t.dtype.startswith(NUMBERS)


def _is_given(t: Tensor) -> bool:
    """Whether a tensor may say more of rows than their numbers within the call."""
    return INPUT in t.tags or _may_differ(t)


def _may_differ(t: Tensor) -> bool:
    """Whether a tensor may have rows of the query that are not alike."""
    if t.shape is None:
        return t.reason is None or t.reason.kind != "data"
    return ALIKE not in t.tags and any(map(is_rows, t.shape))


def _turns(t: Tensor) -> bool:
    """Whether a tensor that is `ONE` changes each row by its position; a slope for each key changes none of them."""
    last = t.shape[-1] if t.shape else 1
    keys = dims.is_flexible(last)
    turns = COUNTED in t.tags or not t.dtype.startswith(NUMBERS)
    return turns and (not keys or not t.tags.isdisjoint((LOOKED, TURNED)))


def chosen(made: Tensor, choices: Sequence[Value | None]) -> Tensor:
    """`made` is one of these or the other: whatever chooses, it is none of the rows' positions where neither is."""
    counted = [c for c in choices if isinstance(c, Tensor) and COUNTED in c.tags]
    others = [c for c in choices if not (isinstance(c, Tensor) and COUNTED in c.tags)]
    if not counted or not all(map(row_places.from_a_fixed_row, counted)) or not all(map(_is_a_constant, others)):
        return made
    said = frozenset(t for c in counted for t in c.tags if type(t) is Begins or t in HANDED_ON)
    made.tags = made.tags - {ONE} | said
    return made


def _is_a_constant(value: Value | None) -> bool:
    return isinstance(value.data if isinstance(value, Tensor) else value, Const)


def compared(made: Tensor, operands: Iterable[Value]) -> Tensor:
    """`made` is a comparison, which is judged as a mask."""
    was = any(isinstance(o, Tensor) and SHARED in o.tags for o in operands)
    made.tags = progressions.without(made.tags) - (STANDING if was else STANDING | {SHARED})
    return made


def meets(events: Events | None, made: Tensor, sources: Iterable[Value], site: Site | None) -> None:
    """Note where `made`, which is `SHARED`, became so, if it did not come in as such."""
    if events is None or site is None or not made.tags.isdisjoint(ROWWISE):
        return
    for s in sources:
        if isinstance(s, Tensor) and not s.tags.isdisjoint(ROWWISE) and _turns(s):
            events.shared.append((site, s))


def stands_at(events: Events | None, made: Tensor, position: Value | None, site: Site | None) -> Tensor:
    """`made` has the rows of the query, and a model whose source is not read was told that they stand at a position."""
    if events is None or site is None or not isinstance(position, Tensor):
        return made
    if ALIKE in position.tags:
        position = altered(position, tags=position.tags | {ONE})
    if position.tags.isdisjoint(ROWWISE):
        return made
    events.shared.append((site, altered(position, tags=position.tags | {TURNED})))
    made.tags = made.tags | {SHARED}
    return made


def biased(events: Events | None, made: Tensor, mask: Tensor, site: Site | None) -> Tensor:
    """`made` is what attention gives, whose scores a mask was added to that has the numbers of rows in it."""
    if events is not None and site is not None and COUNTED in mask.tags and _turns(mask):
        events.shared.append((site, mask))
        made.tags = made.tags | {SHARED}
    return made


def places(events: Events | None, key: Value | None) -> None:
    """Note that `key` says where rows lie: what goes into it are positions."""
    if events is None:
        return
    for i in key.items if isinstance(key, Seq) else (key,):
        if isinstance(i, Tensor) and ONE in i.tags:
            events.placing.update(inputs(i))
        elif isinstance(i, Seq):
            places(events, i)


def told(t: Tensor) -> str:
    """What is wrong with rows of the query that a tensor goes into; its inputs and counters are the position."""
    if COUNTED in t.tags:
        return row_places.told(t.tags)
    names = sorted(f"`{tag.removeprefix(OF)}`" for tag in inputs(t))
    said = f" ({', '.join(names)})" if names else ""
    return f"one position{said} goes into all rows of the query, and each has its own"


def found(events: Events) -> tuple[Site, Tensor] | None:
    """Where a tensor that surely comes of one position, or of none, met all rows of the query, and that tensor."""
    placing = events.placing | {OF + w.storage.name for w in events.writes}
    for site, t in events.shared:
        if COUNTED in t.tags and row_places.are_right(t.tags, events):
            continue
        if not t.tags.isdisjoint((LENGTH, TURNED, COUNTED)) or not placing.isdisjoint(t.tags):
            return site, t
    return None
