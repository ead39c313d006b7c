"""How loops run: unrolled over what is known, to a fixed point over what is not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import libcst as cst

from auditor.containers.lengths import length
from auditor.containers.reading import repetition
from auditor.heap import Contents, current
from auditor.interpreter import BREAK, CONTINUE, MAX_UNROLL, Interpreter, RaiseSignal, Signal
from auditor.joined_contents import join_contents
from auditor.loop_names import NOTHING, Loop, LoopNames, loop_names
from auditor.modules import ModuleSource
from auditor.rounds import Parts
from auditor.sameness import same
from auditor.values import (
    Env,
    Instance,
    Seq,
    Star,
    Unknown,
    Value,
    as_dim,
)
from auditor.widening import same_content, widen, widen_value


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
    outer, known, taken = len(it.heap.pending), len(it.assumed.made), len(it.ways)
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
        del it.ways[taken:]
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
        alone = alone and not it.rounds.is_shared(parts) and not _kept_before(parts, unseen)
        done = _run_round(it, items, body, alone)
        it.rounds.add(parts, done.reached)
        kept = bool(parts) and any(_keeps(parts, o, c, unseen) for o, c in done.changed.values() if not _grew(o, c))
        if kept:
            it.rounds.share(parts)
        if done.failed is not None:
            return _leave(it, done, done.failed)
        own = {} if done.mixed else {k: (o, c) for k, (o, c) in done.changed.items() if _is_part(parts, o)}
        stable, replaced = _widen(it, items, {k: v for k, v in done.changed.items() if k not in own}, unseen, attempt)
        if (stable and not (kept and alone)) or attempt == _ROUNDS - 1:  # kept: the next round may have two elements
            it.heap.join([{}, own], join_contents)
            it.heap.apply(replaced)
            return _end(it, done)
    return None


@dataclass(slots=True)
class _Round:
    """What one round came to: its signal or the error that ended it, and the contents that it `changed`.

    `early` are the worlds that left it before, `reached` what was found by a number. `mixed`: several elements may be
    in play.
    """

    signal: Signal
    failed: RaiseSignal | None
    changed: Contents
    early: list[tuple[Signal, Contents]]
    reached: list[Value]
    mixed: bool


def _run_round(it: Interpreter, items: list[Value], body: Callable[[Value], Signal], alone: bool) -> _Round:
    """Run the body for each item, and undo what it did. `alone`: no element but that of the round is in play."""
    mark = len(it.heap.pending)
    it.heap.open()
    signal: Signal = None
    failed: RaiseSignal | None = None
    inner, outer = it.assumed.inside(items), it.assumed
    if not alone:
        inner.mix()
    it.assumed = inner
    it.unknown_loops += 1
    taken = len(it.ways)
    number = it.rounds.begin(taken)
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
        del it.ways[taken:]
        it.assumed = outer
    worlds = it.heap.release(mark)
    frame = it.heap.frames.pop()
    changed = current(frame)
    it.heap.undo(frame)
    return _Round(signal, failed, changed, [(s, {**changed, **c}) for s, c in worlds[:-1]], inner.reached, inner.mixed)


def _widen(
    it: Interpreter, items: list[Value], changed: Contents, unseen: Unseen, attempt: int
) -> tuple[bool, Contents]:
    """Make the state stand for any number of rounds: (whether the next one would find it as this one, lists apart).

    Those lists have their item replaced in each round, under another index in the next one.
    """
    stable = True
    replaced: Contents = {}
    for key, (obj, content) in changed.items():
        items_now = _replaced(it, obj, content, items)
        if items_now is not None:
            replaced[key] = (obj, items_now)
            continue
        old = obj.snapshot()
        new = widen(obj, old, content, attempt)
        if same_content(obj, old, new):
            continue
        if obj is unseen.env and attempt == 0:
            new |= {n: widen_value(old[n], new[n]) for n in unseen.names.counters if n in old and n in new}
        it.heap.touch(obj)
        obj.restore(new)
        stable = stable and unseen.alike(obj, old, new)
    return stable, replaced


def _leave(it: Interpreter, done: _Round, error: RaiseSignal) -> Signal:
    """A round that ends with an error: the loop goes on without one, or as the worlds do that left it before."""
    if not done.early:
        raise error
    on: list[tuple[Signal, Contents]] = [(None, {}), *((None, c) for s, c in done.early if s == BREAK)]
    return it.merge(on + [(s, c) for s, c in done.early if s != BREAK], ())


def _end(it: Interpreter, done: _Round) -> Signal:
    """The end of the loop at its fixed point, which stands for any number of rounds, none included."""
    if done.signal == BREAK or any(s == BREAK for s, _ in done.early):
        it.broke = {True, False}
    ends: list[tuple[Signal, Contents]] = [(None, {})]
    if done.signal is not None and done.signal != BREAK:
        ends.append((done.signal, done.changed))
    return it.merge(ends + [(None if s == BREAK else s, c) for s, c in done.early], ())


def _is_part(parts: Parts, obj: Any) -> bool:
    """Whether another element comes in the next round, which is as this one was."""
    return isinstance(obj, Instance) and parts.holds(obj)


def _kept_before(parts: Parts, unseen: Unseen) -> bool:
    """Whether a name that the loop can read, and does not bind anew, already has an element of the list or a part."""
    if not parts or unseen.env is None:
        return False
    return any(_keeps(parts, env, env.names, unseen) for env in unseen.env.scopes())


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
