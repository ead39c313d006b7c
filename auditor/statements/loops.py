"""`for` and `while` with their `else`, and the clauses of comprehensions; how a loop runs is in `auditor.loops`."""

from __future__ import annotations

from collections.abc import Callable

import libcst as cst

from auditor import operators
from auditor.containers.iteration import iterate
from auditor.dims import Dim
from auditor.interpreter import BREAK, CONTINUE, MAX_UNROLL, Frame, Interpreter, RaiseSignal, Signal
from auditor.loops import Unseen, left, loop, repeat
from auditor.statements.assignments import assign
from auditor.values import NONE, Value


def for_(it: Interpreter, node: cst.For, frame: Frame) -> Signal:
    source = iterate(it, it.eval(node.iter, frame), frame.statement.site(node.iter))

    def body(item: Value) -> Signal:
        assign(it, node.target, item, frame)
        return it.run_block(node.body.body, frame)

    saved = it.conditions
    it.conditions = saved | source.flags
    it.broke = set()
    try:
        signal = _surviving(it, lambda: loop(it, source, body, _unseen(node, frame)))
    finally:
        it.conditions = saved
    return _else(it, signal, it.broke, node.orelse, frame)


def while_(it: Interpreter, node: cst.While, frame: Frame) -> Signal:
    outer = len(it.heap.pending)
    it.broke = set()
    signal = _surviving(it, lambda: _rounds(it, node, frame, outer))
    return _else(it, signal, it.broke, node.orelse, frame)


def _rounds(it: Interpreter, node: cst.While, frame: Frame, outer: int) -> Signal:
    known = len(it.assumed.made)
    for _ in range(MAX_UNROLL):
        it.assumed.cut(known)
        test = operators.truth(it.eval(node.test, frame))
        if test is False or it.exhausted is not None:
            break
        if test is None:
            signal = repeat(it, [NONE], lambda _item: it.run_block(node.body.body, frame))
            return it.settle(outer, signal, (BREAK,))
        signal = it.settle(len(it.heap.pending), it.run_block(node.body.body, frame), (CONTINUE,))
        if signal == BREAK:
            return left(it, outer, True)
        if signal is not None:
            return it.settle(outer, signal, (BREAK,))
        if len(it.heap.pending) > outer:
            # some worlds have left the loop: how often the others go round is not known
            signal = repeat(it, [NONE], lambda _item: it.run_block(node.body.body, frame))
            return it.settle(outer, signal, (BREAK,))
    else:
        # more rounds than are followed one by one: any number of them from here
        signal = repeat(it, [NONE], lambda _item: it.run_block(node.body.body, frame))
        if signal is not None:
            return it.settle(outer, signal, (BREAK,))
    return left(it, outer, False)


def _unseen(node: cst.For | cst.While, frame: Frame) -> Unseen:
    return Unseen(node, frame.env, frame.function.node if frame.function is not None else frame.module.source)


def _surviving(it: Interpreter, run_loop: Callable[[], Signal]) -> Signal:
    """A loop whose last world raises: those that left it by `break` before go on."""
    outer = len(it.heap.pending)
    try:
        return run_loop()
    except RaiseSignal:
        worlds = it.heap.release(outer)[:-1]
        if not worlds:
            raise
        return it.merge(worlds, (BREAK, CONTINUE))


def _else(it: Interpreter, signal: Signal, broke: set[bool], orelse: cst.Else | None, frame: Frame) -> Signal:
    """The `else` of a loop: run when no world has left by `break`, one of two ways when some have."""
    if signal is not None or orelse is None or broke == {True}:
        return signal
    body = orelse.body.body
    if broke:
        return it.fork([lambda: None, lambda: it.run_block(body, frame)])
    return it.run_block(body, frame)


def run_comprehension(
    it: Interpreter, clause: cst.CompFor, frame: Frame, out: Value, emit: Callable[[], None]
) -> Dim | None:
    """Run `emit`, which adds to `out`, for every item that the clauses let through; how many these are, if known."""
    source = iterate(it, it.eval(clause.iter, frame), frame.statement.site(clause.iter))

    def body(item: Value) -> Signal:
        assign(it, clause.target, item, frame)
        return conditions(0)

    def conditions(number: int) -> Signal:
        if number == len(clause.ifs):
            if clause.inner_for_in is not None:
                run_comprehension(it, clause.inner_for_in, frame, out, emit)
            else:
                emit()
            return None
        test = it.eval(clause.ifs[number].test, frame)
        known = it.truth(test)
        if known is None:
            return it.fork([lambda: conditions(number + 1), lambda: None])
        return conditions(number + 1) if known else None

    loop(it, source, body, Unseen(clause, frame.env, made=out))
    return source.count if not clause.ifs and clause.inner_for_in is None else None
