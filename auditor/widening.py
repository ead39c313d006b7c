"""What a loop of unknown length makes of a content: from one round to any number of them.

In the first rounds what differs is joined; what a later round still changes is widened to a value that stands for all.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from typing import Any

from auditor import operators
from auditor.joined_contents import join_contents
from auditor.joins import union
from auditor.sameness import congruent, same
from auditor.torch.nn.module import is_module
from auditor.values import (
    Const,
    Env,
    Instance,
    Mapping,
    Num,
    Seq,
    Star,
    Tensor,
    Union,
    Unknown,
    Value,
    each_once,
    merge_places,
    origins,
)
from auditor.values.absence import Absent


def widen(obj: Any, old: Any, new: Any, attempt: int) -> Any:
    """The content after any number of rounds, given the content before and after one."""
    if (
        isinstance(obj, Seq)
        and len(new[0]) > len(old[0])
        and all(same(a, b) for a, b in zip(old[0], new[0], strict=False))
    ):
        grown = tuple(new[0][len(old[0]) :])
        # in its first round a loop has not met its own items: those of the list are of an earlier loop
        if any(isinstance(g, Star) for g in grown) or (attempt and any(isinstance(o, Star) for o in old[0])):
            each = each_once(grown)
            if not attempt or not old[0]:
                return [*old[0], *(Star((i,)) for i in each)], new[1]
            seen = [i for o in old[0] if isinstance(o, Star) for i in o.items]
            fresh = [i for i in each if not any(congruent(i, s) for s in seen)]
            if not fresh:
                return old
            if attempt == 1 and all(map(_is_part, fresh)):
                # made by a number that counts on: what it is in any round is known from the second one on
                return [*old[0], *(Star((i,)) for i in fresh)], new[1]
            return old[0], new[1] or Unknown(
                "items appended in a loop of unknown length", places=merge_places(*(f.places for f in fresh))
            )
        return [*old[0], Star(grown)], new[1]
    joined = join_contents(obj, [old, new])
    if attempt == 0:
        return joined
    if isinstance(obj, Seq):
        if len(joined[0]) != len(old[0]):
            return joined
        return [widen_value(a, b) for a, b in zip(old[0], joined[0], strict=True)], joined[1]
    if isinstance(obj, Mapping):
        entries = {k: (v[0], widen_value(old[0][k][1], v[1]) if k in old[0] else v[1]) for k, v in joined[0].items()}
        return entries, joined[1]
    names, before = (joined[0], old[0]) if isinstance(obj, Instance) else (joined, old)
    wide = {n: widen_value(before[n], v) if n in before else v for n, v in names.items()}
    return (wide, joined[1], joined[2]) if isinstance(obj, Instance) else wide


def _is_part(v: Value) -> bool:
    """Whether a value is a module, or one of several."""
    return all(map(_is_part, v.options)) if isinstance(v, Union) else is_module(v)


def _of_one_form(options: list[Value]) -> Value | None:
    """One value for those of several rounds: tuples of one length, dicts with the same keys; None for anything else."""
    absent = [o for o in options if isinstance(o, Absent)]
    made = [o for o in options if not isinstance(o, Absent)]
    if not made:
        return None
    first = made[0]
    whole: Value
    if isinstance(first, Seq):
        tuples = [o for o in made if isinstance(o, Seq) and o.kind == "tuple" and o.exact]
        if len(tuples) < len(made) or len({len(t.items) for t in tuples}) > 1:
            return None
        whole = Seq("tuple", [_all_rounds(i) for i in zip(*(t.items for t in tuples), strict=True)])
    elif isinstance(first, Mapping):
        dicts = [
            o for o in made if isinstance(o, Mapping) and o.rest is None and o.entries.keys() == first.entries.keys()
        ]
        if len(dicts) < len(made):
            return None
        whole = Mapping({k: (n, _all_rounds(d.entries[k][1] for d in dicts)) for k, (n, _) in first.entries.items()})
    else:
        return None
    if congruent(first, whole):
        whole = first
    else:
        whole.places, whole.flags = origins(made)
    return union([whole, *absent[:1]]) if absent else whole


def _all_rounds(values: Iterable[Value]) -> Value:
    return reduce(widen_value, values)


def widen_value(old: Value, new: Value) -> Value:
    """One value for that before a round and that after it, so that a later round finds no third."""
    if same(old, new):
        return old
    before = old.options if isinstance(old, Union) else (old,)
    after = new.options if isinstance(new, Union) else (new,)
    if all(any(congruent(a, b) for b in before) for a in after):
        return old  # the objects that the next round makes anew
    alike = _of_one_form([*before, *after])
    if alike is not None:
        return alike if alike is not before[0] else old
    reason = "changes in a loop of unknown length"
    sources = (old, new)
    if isinstance(old, Tensor) and isinstance(new, Tensor):
        return Tensor(None, old.dtype, Unknown(f"the shape {reason}", places=new.places), old.cuts, old.tags | new.tags)
    kind = (
        "int"
        if all(isinstance(s, (Num, Unknown)) or (isinstance(s, Const) and isinstance(s.value, int)) for s in sources)
        else ""
    )
    return operators.unknown_from(reason, kind, *sources, name="(loop)")


def same_content(obj: Any, a: Any, b: Any) -> bool:
    """Whether nothing tells two contents of an object apart (see `sameness.same`)."""
    match obj:
        case Env() | Unknown():
            return a.keys() == b.keys() and all(same(a[n], b[n]) for n in a)
        case Instance():
            return same_content(Env(), a[0], b[0]) and a[2] is b[2]
        case Mapping():
            return (
                a[0].keys() == b[0].keys()
                and all(same(a[0][k][1], b[0][k][1]) for k in a[0])
                and (a[1] is None) == (b[1] is None)
            )
        case Seq():
            return (
                len(a[0]) == len(b[0])
                and all(same(x, y) for x, y in zip(a[0], b[0], strict=True))
                and (a[1] is None) == (b[1] is None)
            )
    return bool(a == b)
