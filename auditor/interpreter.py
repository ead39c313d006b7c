"""The abstract interpreter: concrete in flags, abstract elsewhere, bounded in steps and depth.

This module holds the state of a run and the control of worlds (forks, joins, scopes). What each node means is in
`expressions` and `statements`, what a call does in `calls`, what an attribute is in `objects`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from collections.abc import Mapping as AbcMapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from auditor.assumptions import Assumptions
from auditor.command_lines import CommandLines
from auditor.heap import Contents, Heap, current
from auditor.joined_contents import join_contents
from auditor.joins import decided_by, guarded, join_all
from auditor.modules import Statement
from auditor.operators import truth
from auditor.places import Site, here
from auditor.registries import Choices
from auditor.rounds import Rounds
from auditor.values import (
    NO_FLAGS,
    Args,
    Class,
    Const,
    Env,
    Function,
    Instance,
    Mapping,
    Module,
    NativeClass,
    Seq,
    Tensor,
    Union,
    Unknown,
    Value,
    altered,
    serial,
)
from rules.facts import GraphFacts

if TYPE_CHECKING:
    from auditor.loader import Loader
    from auditor.sinks import Export, Sinks

MAX_STEPS = 80_000
MAX_RENEWALS = 4
"""How often an export call gives a run its whole budget of steps again: a run that still exports is worth following."""
MAX_DEPTH = 90
MAX_UNROLL = 160
MAX_ERRORS = 12
"""What one `try` is told that it may have to catch: later ones add nothing that a reader would follow."""


class RaiseSignal(Exception):
    """The audited code raises. `kind` is the exception's class name as far as it is known.

    `raised` is the exception when the code itself raises one whose class was read.
    """

    def __init__(self, kind: str, value: Value | None = None, raised: Instance | None = None) -> None:
        super().__init__(kind)
        self.kind = kind
        self.value = value
        self.raised = raised


class ExitSignal(RaiseSignal):
    """The audited code ends the process."""


@dataclass(frozen=True, slots=True)
class Return:
    value: Value


@dataclass(frozen=True, slots=True)
class Jump:
    name: str


BREAK = Jump("break")
CONTINUE = Jump("continue")
Signal = Return | Jump | None


@dataclass(frozen=True, slots=True)
class Way:
    """A branch that was taken: of which `fork`, its number there, and the condition, if there is one."""

    fork: int
    number: int
    test: Value | None


@dataclass(slots=True)
class Attempt:
    """A `try` that is being run: what may have been raised in it, with the state of that moment.

    `depth` is the number of journal frames that were open before. `imports`: one of its handlers says by its class that
    it is there for an import that fails.
    """

    depth: int
    imports: bool = False
    errors: list[tuple[RaiseSignal, Contents]] = field(default_factory=list)


@dataclass(slots=True)
class Frame:
    """Where evaluation stands: scope, statement (for places), and the function being run."""

    env: Env
    statement: Statement
    module: Module
    function: Function | None = None
    receiver: Value | None = None
    yields: Seq | None = None
    caught: list[RaiseSignal] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Meaning:
    """What nodes, calls and attributes mean: the functions of the modules that are built on this one.

    `expressions` has one for every kind of node.
    """

    expressions: AbcMapping[type, Callable[[Interpreter, Any, Frame], Value]]
    run_block: Callable[[Interpreter, Sequence[Any], Frame], Signal]
    call: Callable[[Interpreter, Value, Args, Site | None], Value]
    get: Callable[[Interpreter, Value, str, Site | None], Value]
    set: Callable[[Interpreter, Value, str, Value, Site | None], None]
    tensor_attribute: Callable[[Interpreter, Tensor, str, Site | None], Value]
    tensor_binary: Callable[[Interpreter, str, Value, Value, Site | None], Value]
    method_of_data: Callable[[Interpreter, Unknown, str, Site | None], Value | None]


Bounds = tuple[int, int, dict[int, int], int, Unknown | None, int, int]
"""How far a run is: steps, depth, open calls, loops of unknown length, how it ran out, and how often it was renewed."""


@dataclass(slots=True)
class Interpreter:
    """One run. `loader` finds modules, `sinks` collects what is exported, `argv` is the command line of the script.

    `poison` is set when something was replaced that any module may use, `registered` when a class was that a checkpoint
    may ask for; `captured` counts exported and traced programs.
    `rewired` are functions whose code, defaults or globals the script has changed, `attributed` those of which it has
    set an attribute, with those that they had.
    `written` holds the names of files that the script writes. `ways` are the branches that lead to where it is.
    """

    meaning: Meaning
    loader: Loader
    sinks: Sinks
    argv: tuple[str, ...] = ()
    command_lines: CommandLines = field(default_factory=CommandLines)
    heap: Heap = field(default_factory=Heap)
    steps: int = 0
    depth: int = 0
    max_steps: int = MAX_STEPS
    conditions: frozenset[str] = NO_FLAGS
    stack: list[Site] = field(default_factory=list)
    flag_table: dict[str, Any] = field(default_factory=dict)
    literals: dict[int, Value] = field(default_factory=dict)
    exhausted: Unknown | None = None
    renewals: int = 0
    renewed_at: int = 0
    maybe_raised: list[Attempt] = field(default_factory=list)
    active: dict[int, int] = field(default_factory=dict)
    search: list[str] = field(default_factory=list)
    events: Any = None
    unknown_loops: int = 0
    poison: Unknown | None = None
    registered: Unknown | None = None
    captured: int = 0
    assumed: Assumptions = field(default_factory=Assumptions)
    rounds: Rounds = field(default_factory=Rounds)
    ways: list[Way] = field(default_factory=list)
    chosen_by: list[Value] = field(default_factory=list)
    choices: Choices = field(default_factory=Choices)
    outputs_sought: bool = False
    rewired: dict[int, tuple[Function, Unknown]] = field(default_factory=dict)
    attributed: dict[int, tuple[Function, dict[str, Value]]] = field(default_factory=dict)
    imported: set[str] = field(default_factory=set)
    written: set[str] = field(default_factory=set)
    broke: set[bool] = field(default_factory=set)
    flagged: dict[int, tuple[Value, frozenset[str], dict[str, Value] | None]] = field(default_factory=dict)

    # -- bounds -------------------------------------------------------------------------------------------------

    def tick(self, site: Site | None = None) -> bool:
        """Count a step; True when the run has used up its budget (from then on calls give unknowns)."""
        self.steps += 1
        if self.steps - self.renewed_at > self.max_steps and self.exhausted is None:
            self.exhausted = Unknown(f"more than {self.max_steps} steps of evaluation", places=here(site))
        return self.exhausted is not None

    def apart(self) -> Bounds:
        """Begin what other runs will use as well: it must not hang on how far this run is. `back` takes the result."""
        bounds = self.steps, self.depth, self.active, self.unknown_loops, self.exhausted, self.renewals, self.renewed_at
        self.steps, self.depth, self.active, self.unknown_loops, self.exhausted = 0, 0, {}, 0, None
        self.renewals = self.renewed_at = 0
        return bounds

    def back(self, bounds: Bounds) -> bool:
        """End it. True when it has used up a budget of its own; then the run has, too."""
        spent = self.exhausted
        self.steps, self.depth, self.active, self.unknown_loops, exhausted, self.renewals, self.renewed_at = bounds
        self.exhausted = exhausted or spent
        return spent is not None

    def export(self, export: Export) -> None:
        """Record an exported graph. What a run gives that has used up its budget is made of what was left half done."""
        if self.exhausted is not None:
            reason = f"the evaluation ended early: {self.exhausted.reason}"
            places = (export.site.place("export call"), *(p.place() for p in self.exhausted.places))
            export.facts = GraphFacts.unknown(reason, *places)
        elif self.renewals < MAX_RENEWALS:
            self.renewals += 1
            self.renewed_at = self.steps
        self.sinks.export(export)

    # -- flags --------------------------------------------------------------------------------------------------

    def tag(self, value: Value, flags: frozenset[str] | None = None) -> Value:
        """The value as one that depends on `flags` too: those of the conditions in force when none are given."""
        flags = self.conditions if flags is None else flags
        if not flags or flags <= value.flags:
            return value
        if isinstance(value, (Seq, Mapping, Instance, Unknown, Class, NativeClass, Function, Module)):
            self.remember(value)
            value.flags = value.flags | flags
            return value
        return altered(value, flags=value.flags | flags)

    def remember(self, value: Value) -> None:
        """Call before the flags of a value change that may be a module's, and so other runs' as well."""
        if id(value) not in self.flagged:
            children = value.children if isinstance(value, Unknown) else None
            self.flagged[id(value)] = (value, value.flags, children)
            if isinstance(value, Unknown):
                value.children = dict(value.children)

    def forget(self) -> None:
        """At the end of a run: what it has flagged or set without the journal is as it was."""
        for value, flags, children in self.flagged.values():
            value.flags = flags
            if isinstance(value, Unknown) and children is not None:
                value.children = children
        self.flagged.clear()
        for function, attributes in self.attributed.values():
            function.attributes = attributes

    # -- worlds -------------------------------------------------------------------------------------------------

    def fork(self, thunks: Sequence[Callable[[], Signal]], test: Value | None = None) -> Signal:
        """Run each alternative from the same state, then join those that go on.

        Alternatives that raise end their world, unless all do. Worlds that leave the scope while others go on are held
        until the scope ends (`settle`, or the return of the function). `test` is the condition, when it is true for the
        first of two alternatives and false for the second: when only one goes on, its answer holds from there.
        """
        worlds: list[tuple[Signal, Contents]] = []
        errors: list[tuple[RaiseSignal, Contents]] = []
        going: list[bool] = []
        known, taken, fork = len(self.assumed.made), len(self.ways), serial()
        for number, thunk in enumerate(thunks):
            mark = len(self.heap.pending)
            self.heap.open()
            self.ways.append(Way(fork, number, test))
            if test is not None:
                self.assumed.assume(test, number == 0)
            try:
                signal = thunk()
            except RaiseSignal as error:
                failed: RaiseSignal | None = error
                found = self.heap.release(mark)[:-1]
            else:
                failed = None
                found = self.heap.release(mark)
                found[-1] = (signal, found[-1][1])
            frame = self.heap.frames.pop()
            now = current(frame)
            if failed is not None:
                errors.append((failed, now))
            worlds += [(s, {**now, **c}) for s, c in found]
            going += [number == 0 for s, _ in found if s is None]
            self.heap.undo(frame)
            self.assumed.cut(known)
            del self.ways[taken:]
        if not worlds:
            raise errors[0][0]
        for one, contents in errors if self.maybe_raised else ():
            self.may_raise(one, contents)
        if test is not None and len(going) == 1:
            self.assumed.assume(test, going[0])
            self.ways.append(Way(fork, 0 if going[0] else 1, test))
        with decided_by(test):
            return self.merge(worlds, (), test if going == [True, False] else None)

    def may_raise(self, error: RaiseSignal | str, contents: Contents | None = None) -> None:
        """Record what the code may raise here, where a `try` may catch it. `contents` differ from the current state."""
        if not self.maybe_raised:
            return
        if isinstance(error, str):
            error = RaiseSignal(error)
        if len(self.maybe_raised[-1].errors) < MAX_ERRORS:
            attempt = self.maybe_raised[-1]
            attempt.errors.append((error, {**self.heap.since(attempt.depth), **(contents or {})}))

    def settle(self, mark: int, signal: Signal, consumed: tuple[Jump, ...]) -> Signal:
        """End a scope that catches the signals in `consumed`: those worlds join the one that goes on."""
        worlds: list[tuple[Signal, Contents]] = self.heap.release(mark)
        worlds[-1] = (signal, worlds[-1][1])
        if len(worlds) == 1:
            return None if signal in consumed else signal
        return self.merge(worlds, consumed)

    def merge(
        self, worlds: list[tuple[Signal, Contents]], consumed: tuple[Jump, ...], test: Value | None = None
    ) -> Signal:
        """Join the worlds that go on, or whose signal is consumed, and hold the others: None.

        Where none goes on, the last one does, with its signal.
        """
        base = current({key: entry for _, c in worlds for key, entry in c.items()})
        on = [c for s, c in worlds if s is None or s in consumed]
        left = [(s, {**base, **c}) for s, c in worlds if not (s is None or s in consumed)]
        if on:
            self.heap.join([{**base, **c} for c in on], partial(join_contents, test=test))
            for s, c in left:
                self.heap.hold(s, c)
            return None
        *others, (last, contents) = left
        for s, c in others:
            self.heap.hold(s, c)
        self.heap.apply(contents)
        return last

    def choose(self, thunks: Sequence[Callable[[], Value]], test: Value | None = None) -> Value:
        """Evaluate alternatives of an expression from the same state and join values and states (see `fork`)."""
        results: list[Value] = []

        def run(thunk: Callable[[], Value]) -> Callable[[], Signal]:
            def inner() -> Signal:
                results.append(thunk())
                return None

            return inner

        self.fork([run(t) for t in thunks], test)
        with decided_by(test):
            joined = join_all(results)
        return guarded(joined, test, *results) if len(results) == 2 else joined

    def each(self, value: Value, function: Callable[[Value], Value]) -> Value:
        """`function` of a value, or of each option of a union."""
        if not isinstance(value, Union):
            return function(value)
        if value.guard is not None:
            test, when, otherwise = value.guard
            return self.choose([lambda: self.each(when, function), lambda: self.each(otherwise, function)], test)

        def thunk(option: Value) -> Callable[[], Value]:
            return lambda: function(option)

        return self.choose([thunk(o) for o in value.options])

    def truth(self, test: Value) -> bool | None:
        """`bool(test)`, from what the world assumes when the value itself does not say."""
        known = truth(test)
        return self.assumed.answer(test) if known is None and self.assumed.made else known

    # -- what things mean ---------------------------------------------------------------------------------------

    def eval(self, node: Any, frame: Frame) -> Value:
        return self.meaning.expressions[type(node)](self, node, frame)

    def run_block(self, body: Sequence[Any], frame: Frame) -> Signal:
        return self.meaning.run_block(self, body, frame)

    def call(self, function: Value, args: Args, site: Site | None) -> Value:
        return self.meaning.call(self, function, args, site)

    def get(self, obj: Value, name: str, site: Site | None) -> Value:
        """Attribute `name` of `obj`. Raises `RaiseSignal('AttributeError')` when it surely does not exist."""
        return self.meaning.get(self, obj, name, site)

    def set(self, obj: Value, name: str, value: Value, site: Site | None) -> None:
        self.meaning.set(self, obj, name, value, site)

    def text(self, value: str, site: Site | None = None) -> Const:
        return Const(value, places=here(site))


Handler = Callable[[Interpreter, Args, "Site | None"], Value]
"""What a function of a library is to the evaluator: (interpreter, arguments, place of the call) -> value."""
