"""The journal: what a branch changed is undone, joined or held, exactly as the worlds of the script would have it."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from auditor.heap import Heap
from auditor.interpreter import BREAK, CONTINUE, Interpreter, Jump, RaiseSignal, Return, Signal
from auditor.joined_contents import join_contents
from auditor.sinks import Sinks
from auditor.values import NONE, Const, Env, Instance, Mapping, NativeClass, Seq, Union, Unknown, Value


def texts(*items: str) -> list[Value]:
    return [Const(i) for i in items]


def read(seq: Seq) -> list[Any]:
    return [i.value for i in seq.items if isinstance(i, Const)]


def snapshot_cases() -> dict[str, tuple[Any, Callable[[Any], None]]]:
    """Each kind of mutable value, and a change of it."""
    return {
        "a list": (Seq("list", texts("a")), lambda o: o.items.append(Const("b"))),
        "a list of unknown length": (Seq("list", []), lambda o: setattr(o, "rest", Unknown("?"))),
        "a dict": (Mapping(), lambda o: o.entries.update({("str", "a"): (Const("a"), NONE)})),
        "an object": (Instance(NativeClass("C"), {"x": NONE}), lambda o: o.attrs.update(x=Const("b"))),
        "an object's payload": (Instance(NativeClass("C")), lambda o: setattr(o, "payload", "b")),
        "a taint": (Instance(NativeClass("C")), lambda o: setattr(o, "taint", Unknown("?"))),
        "a scope": (Env({"x": NONE}), lambda o: o.names.update(x=Const("b"))),
        "an unknown": (Unknown("?"), lambda o: o.assigned.update({".x": NONE})),
    }


@pytest.mark.parametrize("kind", snapshot_cases())
def test_undo(kind: str) -> None:
    obj, change = snapshot_cases()[kind]
    before = obj.snapshot()
    heap = Heap()
    heap.open()
    heap.touch(obj)
    change(obj)
    assert obj.snapshot() != before
    heap.undo(heap.frames.pop())
    assert obj.snapshot() == before


def test_only_the_content_at_the_opening_is_kept() -> None:
    seq = Seq("list", texts("a"))
    heap = Heap()
    heap.open()
    for text in "bcd":
        heap.touch(seq)
        seq.items.append(Const(text))
    assert len(heap.frames[-1]) == 1
    heap.undo(heap.frames.pop())
    assert read(seq) == ["a"]


def test_without_a_frame_nothing_is_journaled() -> None:
    heap = Heap()
    heap.touch(Seq("list", []))
    assert heap.frames == []


def test_what_is_made_inside_a_frame_is_not_journaled_there() -> None:
    heap = Heap()
    heap.open()
    inner = Seq("list", [])
    heap.touch(inner)
    assert not heap.frames[-1]
    heap.open()
    heap.touch(inner)
    assert list(heap.frames[-1]) == [id(inner)]


def test_an_outer_frame_takes_over_what_is_older_than_it() -> None:
    heap = Heap()
    old = Seq("list", texts("a"))
    heap.open()
    young = Seq("list", texts("b"))
    heap.open()
    for seq in (old, young):
        heap.touch(seq)
        seq.items.append(Const("c"))
    inner = heap.frames.pop()
    heap.keep(heap.frames[-1], inner)
    heap.undo(heap.frames.pop())
    assert read(old) == ["a"]
    assert read(young) == ["b", "c"]


def test_release_gives_each_world_its_content() -> None:
    heap = Heap()
    env = Env({"x": Const("start")})
    heap.open()
    mark = len(heap.pending)
    heap.touch(env)
    env.names["x"] = Const("left")
    heap.hold("return", {id(env): (env, env.snapshot())})
    heap.touch(env)
    env.names["x"] = Const("went on")
    worlds = heap.release(mark)
    assert [(signal, contents[id(env)][1]["x"].value) for signal, contents in worlds] == [
        ("return", "left"),
        (None, "went on"),
    ]
    assert len(heap.frames) == 1
    heap.undo(heap.frames.pop())
    assert env.names["x"] == Const("start")


def test_release_of_a_scope_that_nobody_left() -> None:
    heap = Heap()
    heap.open()
    assert heap.release(0) == [(None, {})]
    assert len(heap.frames) == 1


def test_a_world_that_changed_nothing_has_the_content_of_its_time() -> None:
    """A world leaves before the change: it must not see what the others do later."""
    heap = Heap()
    env = Env({"x": Const("start")})
    heap.open()
    heap.hold("return", {})
    heap.touch(env)
    env.names["x"] = Const("later")
    (_, left), (_, on) = heap.release(0)
    assert left[id(env)][1]["x"] == Const("start")
    assert on[id(env)][1]["x"] == Const("later")


def test_join_of_contents() -> None:
    heap = Heap()
    env = Env({"x": Const("start")})
    heap.open()
    worlds = [{id(env): (env, {"x": Const(text)})} for text in ("a", "b")]
    heap.join(worlds, join_contents)
    assert options(env.names["x"]) == {"a", "b"}
    heap.undo(heap.frames.pop())
    assert env.names["x"] == Const("start")


# -- worlds of an interpreter ------------------------------------------------------------------------------------------


def interpreter() -> Interpreter:
    """An interpreter that only forks: it has no sources and no meaning."""
    it = Interpreter(None, None, Sinks())  # type: ignore[arg-type]
    it.heap.open()
    return it


def options(value: Value) -> set[Any]:
    found = value.options if isinstance(value, Union) else (value,)
    return {o.value for o in found if isinstance(o, Const)} if all(isinstance(o, Const) for o in found) else {...}


Step = tuple[Any, ...]
"""('set', name, text) | ('leave', jump) | ('raise',) | ('branch', steps, steps) | ('loop', steps): runs once"""
World = tuple[dict[str, str], Jump | None]
NAMES = ("x", "y")


def program(choose: random.Random, depth: int = 3, inside: bool = False) -> list[Step]:
    out: list[Step] = []
    for _ in range(choose.randint(1, 3)):
        kind = choose.choice(
            ["set", "set", "leave" if inside else "set", *(["branch", "branch", "loop"] if depth else [])]
        )
        match kind:
            case "set":
                out.append(("set", choose.choice(NAMES), choose.choice("abc")))
            case "leave":
                out.append(choose.choice([("leave", BREAK), ("leave", CONTINUE), ("raise",)]))
                break
            case "branch":
                out.append(("branch", program(choose, depth - 1, inside), program(choose, depth - 1, inside)))
            case "loop":
                out.append(("loop", program(choose, depth - 1, True)))
    return out


def concrete(steps: Sequence[Step], start: dict[str, str]) -> list[World]:
    """Every way through the program, one world at a time; a world that raises ends."""
    worlds: list[World] = [(dict(start), None)]
    for step in steps:
        after: list[World] = []
        for names, jump in worlds:
            if jump is not None:
                after.append((names, jump))
                continue
            match step:
                case ("set", name, text):
                    after.append(({**names, name: text}, None))
                case ("leave", how):
                    after.append((names, how))
                case ("raise",):
                    pass
                case ("branch", left, right):
                    after += [*concrete(left, names), *concrete(right, names)]
                case ("loop", body):
                    after += [(n, None) for n, _ in concrete(body, names)]
        worlds = after
    return worlds


def scope(it: Interpreter, body: Sequence[Step], env: Env) -> Signal:
    """A loop that runs once: worlds that left it go on behind it, also when the last one raises."""
    mark = len(it.heap.pending)
    try:
        return it.settle(mark, abstract(it, body, env), (BREAK, CONTINUE))
    except RaiseSignal:
        worlds = it.heap.release(mark)[:-1]
        if not worlds:
            raise
        return it.merge(worlds, (BREAK, CONTINUE))


def abstract(it: Interpreter, steps: Sequence[Step], env: Env) -> Signal:
    """The same by the journal: branches are forked, those that leave are held until the loop ends."""
    for step in steps:
        signal: Signal = None
        match step:
            case ("set", name, text):
                it.heap.touch(env)
                env.names[name] = Const(text)
            case ("leave", how):
                return how  # type: ignore[no-any-return]
            case ("raise",):
                raise RaiseSignal("Exception")
            case ("branch", left, right):
                signal = it.fork([lambda s=left: abstract(it, s, env), lambda s=right: abstract(it, s, env)])
            case ("loop", body):
                signal = scope(it, body, env)
        if signal is not None:
            return signal
    return None


@pytest.mark.parametrize("seed", range(300))
def test_joined_worlds_are_the_worlds_of_the_program(seed: int) -> None:
    """Each variable may have exactly the values that some way through the program gives it."""
    steps = program(random.Random(seed), depth=4)
    start = dict.fromkeys(NAMES, "start")
    worlds = concrete(steps, start)
    env, it = Env({name: Const(text) for name, text in start.items()}), interpreter()
    if not worlds:
        with pytest.raises(RaiseSignal):
            abstract(it, steps, env)
        return
    assert abstract(it, steps, env) is None
    assert it.heap.pending == []
    assert len(it.heap.frames) == 1
    for name in NAMES:
        assert options(env.names[name]) == {names[name] for names, _ in worlds}
    it.heap.undo(it.heap.frames.pop())
    assert {name: env.names[name] for name in NAMES} == {name: Const(text) for name, text in start.items()}


def test_a_fork_whose_branches_all_raise_raises_and_changes_nothing() -> None:
    env, it = Env({"x": Const("start")}), interpreter()

    def fails(text: str) -> Callable[[], Signal]:
        def run() -> Signal:
            it.heap.touch(env)
            env.names["x"] = Const(text)
            raise RaiseSignal(text)

        return run

    with pytest.raises(RaiseSignal, match="first"):
        it.fork([fails("first"), fails("second")])
    assert env.names["x"] == Const("start")
    assert len(it.heap.frames) == 1


def test_a_fork_that_everybody_leaves_gives_the_last_signal() -> None:
    env, it = Env({"x": Const("start")}), interpreter()

    def leaves(text: str) -> Callable[[], Signal]:
        def run() -> Signal:
            it.heap.touch(env)
            env.names["x"] = Const(text)
            return Return(Const(text))

        return run

    mark = len(it.heap.pending)
    signal = it.fork([leaves("a"), leaves("b")])
    assert isinstance(signal, Return)
    assert len(it.heap.pending) == mark + 1
    worlds = it.heap.release(mark)
    assert [contents[id(env)][1]["x"].value for _, contents in worlds] == ["a", "b"]


def test_choose_joins_values_and_states() -> None:
    seq, it = Seq("list", []), interpreter()

    def evaluates(text: str, append: bool) -> Callable[[], Value]:
        def run() -> Value:
            if append:
                it.heap.touch(seq)
                seq.items.append(Const(text))
            return Const(text)

        return run

    assert options(it.choose([evaluates("a", False), evaluates("b", True)])) == {"a", "b"}
    assert seq.items == []
    assert seq.rest is not None
