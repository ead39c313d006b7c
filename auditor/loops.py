"""How loops run: unrolled over what is known, to a fixed point over what is not."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import reduce
from typing import Any

import libcst as cst

from auditor import operators
from auditor.containers.lengths import length
from auditor.containers.reading import repetition
from auditor.heap import Contents
from auditor.interpreter import BREAK, CONTINUE, MAX_UNROLL, Interpreter, RaiseSignal, Signal
from auditor.joins import Absent, congruent, join_contents, same, union
from auditor.loop_names import NOTHING, Loop, LoopNames, loop_names
from auditor.modules import ModuleSource
from auditor.rounds import Parts
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
    as_dim,
    merge_places,
    origins,
)


@dataclass(frozen=True, slots=True)
class Unseen:
    """What the body of `loop` changes and cannot see: names of the scope `env`, and what a comprehension makes.

    `code` is the function that a statement's loop stands in, or its module.
    """

    loop: Loop | cst.CompFor | None = None
    env: Env | None = None
    code: cst.FunctionDef | cst.Lambda | ModuleSource | None = None
    made: Value | None = None

    @property
    def names(self) -> LoopNames:
        if self.code is not None and (type(self.loop) is cst.For or type(self.loop) is cst.While):
            return loop_names(self.loop, self.code)
        return NOTHING

    def alike(self, obj: Any, old: Any, new: Any) -> bool:
        """Whether the next round would find `new` as it found `old`."""
        if isinstance(obj, Env):
            # local names that a round binds before it reads them change nothing for the next one
            local = obj is self.env and isinstance(self.code, cst.FunctionDef)
            carried = self.names.carried if local else old
            return all(n in new and same(v, new[n]) for n, v in old.items() if n in carried)
        return obj is self.made or (
            self.env is not None and any(self.env.names.get(n) is obj for n in self.names.filled)
        )


ALL_SEEN = Unseen()


def loop(it: Interpreter, source: Seq, body: Callable[[Value], Signal], unseen: Unseen = ALL_SEEN) -> Signal:
    """Run `body` for every item: unrolled where the items are known, to a fixed point where their number is not."""
    outer, known = len(it.heap.pending), len(it.assumed.made)
    items = list(source.items)
    if len(items) > MAX_UNROLL:
        return repeat(it, items[:1] or [Unknown("an item of a long sequence")], body, unseen)
    for item in items:
        if it.exhausted is not None:
            break
        if isinstance(item, Star):
            signal = repeat(it, list(item.items), body, unseen)
            if signal is not None:
                return signal
            continue
        mark = len(it.heap.pending)
        signal = it.settle(mark, body(item), (CONTINUE,))
        it.assumed.cut(known)
        if signal == BREAK:
            return left(it, outer, True)
        if signal is not None:
            return it.settle(outer, signal, (BREAK,))
    if len(source.items) > len(items):
        it.heap.touch(source)
        source.rest = source.rest or Unknown("a list that grows under its own loop", places=source.places)
    if source.rest is not None:
        signal = repeat(it, [source.rest.child("[]")], body, unseen)
        if signal is not None:
            return signal
    return left(it, outer, False)


def mapped(
    it: Interpreter, source: Seq, function: Callable[[Value], Value], keep: Callable[[Value], Value] | None = None
) -> Seq:
    """`[function(item) for item in source if keep(item)]`, without a scope of its own."""
    out = Seq("list", [], flags=source.flags)

    def body(item: Value) -> Signal:
        test = it.truth(keep(item)) if keep is not None else True
        if test is None:
            return it.fork([lambda: add(item), lambda: None])
        return add(item) if test else None

    def add(item: Value) -> Signal:
        value = function(item)
        it.heap.touch(out)
        out.items.append(value)
        return None

    loop(it, source, body, Unseen(made=out))
    return out


def left(it: Interpreter, outer: int, surely: bool) -> Signal:
    """End a loop; `it.broke` says whether its worlds left by `break` (True), maybe (True and False), or not (empty)."""
    some = any(p.signal == BREAK for p in it.heap.pending[outer:])
    it.broke = {True} if surely else {True, False} if some or it.broke else set()
    return it.settle(outer, BREAK if surely else None, (BREAK,))


_ROUNDS = 4


def repeat(it: Interpreter, items: list[Value], body: Callable[[Value], Signal], unseen: Unseen = ALL_SEEN) -> Signal:
    """A loop of unknown length: run the body until it gives back the state it received; what keeps changing widens."""
    met = it.sinks.mark()
    parts, alone = Parts(), True
    it.rounds.add(parts, items)
    for attempt in range(_ROUNDS):
        it.sinks.rollback(met)
        mark = len(it.heap.pending)
        it.heap.open()
        signal: Signal = None
        failed: RaiseSignal | None = None
        it.unknown_loops += 1
        alone = alone and not it.rounds.is_shared(parts) and not _kept_before(parts, unseen)
        inner, outer = it.assumed.inside(items), it.assumed
        if not alone:
            inner.mix()
        it.assumed = inner
        number = it.rounds.begin()
        try:
            for item in items:
                signal = it.settle(len(it.heap.pending), body(item), (CONTINUE,))
                inner.cut(len(outer.made))
                if signal is not None:
                    break
        except RaiseSignal as error:
            failed = error
        finally:
            it.unknown_loops -= 1
            it.rounds.end(number)
            it.assumed = outer
        worlds = it.heap.release(mark)
        frame = it.heap.frames.pop()
        now = {key: (obj, obj.snapshot()) for key, (obj, _) in frame.items()}
        early = [(s, {**now, **c}) for s, c in worlds[:-1]]
        it.heap.undo(frame)
        it.rounds.add(parts, inner.reached)
        kept = bool(parts) and any(_keeps(parts, o, c, unseen) for o, c in now.values() if not _grew(o, c))
        if kept:
            it.rounds.share(parts)
        if failed is not None:
            if not early:
                raise failed
            leaving = [(s, c) for s, c in early if s != BREAK]
            on = [{}, *(c for s, c in early if s == BREAK)]
            return it._merge([(None, c) for c in on] + leaving, ())
        stable = not (kept and alone)  # the next round may have two elements
        own: Contents = {}
        replaced: Contents = {}
        for key, (obj, content) in now.items():
            if isinstance(obj, Instance) and not inner.mixed and parts.holds(obj):
                own[key] = (obj, content)  # another element in the next round: it is as this one was
                continue
            items_now = _replaced(it, obj, content, items)
            if items_now is not None:
                replaced[key] = (obj, items_now)  # under another index in the next round
                continue
            old = obj.snapshot()
            new = widen(obj, old, content, attempt)
            if _same_content(obj, old, new):
                continue
            if obj is unseen.env and attempt == 0:
                new |= {n: _widen_value(old[n], new[n]) for n in unseen.names.counters if n in old and n in new}
            it.heap.touch(obj)
            obj.restore(new)
            stable = stable and unseen.alike(obj, old, new)
        if stable or attempt == _ROUNDS - 1:
            if signal == BREAK or any(s == BREAK for s, _ in early):
                it.broke = {True, False}
            it.heap.join([{}, own], join_contents)
            it.heap.apply(replaced)
            # the state is the fixed point: it stands for any number of rounds, none included
            ends: list[tuple[Signal, Any]] = [(None, {})]
            if signal is not None and signal != BREAK:
                ends.append((signal, now))
            ends += [(None if s == BREAK else s, c) for s, c in early]
            return it._merge(ends, ())
    return None


def _kept_before(parts: Parts, unseen: Unseen) -> bool:
    """Whether a name that the loop can read, and does not bind anew, already has an element of the list or a part."""
    env = unseen.env if parts else None
    while env is not None and env.module is None:
        if _keeps(parts, env, env.names, unseen):
            return True
        env = env.parent
    return False


def _replaced(it: Interpreter, obj: Any, content: Any, items: list[Value]) -> tuple[list[Value], None] | None:
    """The content of a list behind a loop that replaces the item under its index in each round; None if it does not."""
    if not isinstance(obj, Seq) or len(content[0]) != 1 or content[1] is not None:
        return None
    star, before = content[0][0], repetition(obj)
    if not isinstance(star, Star) or star.replaced is None or before is None:
        return None
    index, value, others = star.replaced
    given = [i.items[0] if isinstance(i, Seq) and i.items else i for i in items]
    if not any(index is g for g in given) or not isinstance(index, Unknown) or before.items != others:
        return None
    everywhere = index.below is not None and index.below == as_dim(length(it, obj, None))
    return [Star((value,) if everywhere else (*others, value), before.count)], None


def _grew(obj: Any, content: Any) -> bool:
    """Whether a round has added to a list and no more: of unknown length then, it tells when it gives an element."""
    return isinstance(obj, Seq) and all(a is b for a, b in zip(obj.items, content[0], strict=False))


def _keeps(parts: Parts, obj: Any, content: Any, unseen: Unseen) -> bool:
    """Whether an object keeps an element or a part; a scope, under a name that a round may read before it binds it."""
    return parts.in_content(obj, content, unseen.names.carried if unseen.env is obj else None)


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
            each = [i for g in grown for i in (g.items if isinstance(g, Star) else (g,))]
            if not attempt or not old[0]:
                return [*old[0], *(Star((i,)) for i in each)], new[1]
            seen = [i for o in old[0] if isinstance(o, Star) for i in o.items]
            fresh = [i for i in each if not any(congruent(i, s) for s in seen)]
            if not fresh:
                return old
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
        return [_widen_value(a, b) for a, b in zip(old[0], joined[0], strict=True)], joined[1]
    if isinstance(obj, Mapping):
        entries = {k: (v[0], _widen_value(old[0][k][1], v[1]) if k in old[0] else v[1]) for k, v in joined[0].items()}
        return entries, joined[1]
    names, before = (joined[0], old[0]) if isinstance(obj, Instance) else (joined, old)
    wide = {n: _widen_value(before[n], v) if n in before else v for n, v in names.items()}
    return (wide, joined[1], joined[2]) if isinstance(obj, Instance) else wide


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
    return reduce(_widen_value, values)


def _widen_value(old: Value, new: Value) -> Value:
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


def _same_content(obj: Any, a: Any, b: Any) -> bool:
    match obj:
        case Env() | Unknown():
            return a.keys() == b.keys() and all(same(a[n], b[n]) for n in a)
        case Instance():
            return _same_content(Env(), a[0], b[0]) and a[2] is b[2]
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
