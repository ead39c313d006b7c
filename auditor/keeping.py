"""What is kept of a module from one run for the next: what its statements make whichever run looks first.

A statement of a module is evaluated outside of the run that looks for its names, in a journal of its own. What it makes
stays for other runs, unless it hangs on the present one: it read something that is the run's own (a name made by a
module that does something when it is imported, a command line), or it did more than to bind its names (a class put into
the table of another module). Then its names are dropped when the run ends, and what it did elsewhere is undone.

A script may change what modules share: it sets a module's attribute, a class's method, a function of a library. Modules
that it had imported before were made without the change, however late somebody looks for a name of theirs. One that it
imports later (*late*) is made anew, within the run.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from auditor.assumptions import Assumptions
from auditor.heap import Journal, Pending
from auditor.importing import imported
from auditor.interpreter import Frame, Interpreter, RaiseSignal
from auditor.modules import Statement
from auditor.values import Const, Env, Met, Module, Value, serial


@dataclass(slots=True)
class Keeper:
    """`met` and `own` are of the statement that is being made, or of the run: what it met that a user of its names has
    to know of, and whether it hangs on the run. `depth` counts the statements that are being made, one for another.
    `patched` are the names of modules that were set from outside, with what they were, `late` the modules that were
    imported after a change, with what other runs know of their names.
    """

    met: Met = field(default_factory=Met)
    own: bool = False
    depth: int = 0
    patched: dict[tuple[int, str], tuple[Module, Value | None]] = field(default_factory=dict)
    late: dict[int, tuple[Module, dict[str, Met]]] = field(default_factory=dict)
    _within: bool = False
    _clean: bool = False
    _frames: list[Journal] = field(default_factory=list)
    _pending: list[Pending] = field(default_factory=list)
    _owners: list[Module] = field(default_factory=list)

    def start_run(self) -> None:
        """Drop what the last run has made for itself."""
        for module in self._owners:
            for name in module.own if id(module) not in self.late else ():
                module.env.names.pop(name, None)
                module.met.pop(name, None)
            module.own.clear()
            module.noted = bool(module.met)
        self._owners.clear()
        self.met, self.own, self.depth = Met(), False, 0
        self.patched.clear()
        for module, met in self.late.values():
            module.met = met
            module.noted = bool(met)
        self.late.clear()
        self._within = self._clean = False

    def owns(self, module: Module, names: set[str]) -> None:
        """The run has made names of a module for itself."""
        if not module.own:
            self._owners.append(module)
            module.noted = module.noted or self.depth > 0
        module.own.update(names)

    def recall(self, it: Interpreter, module: Module, name: str) -> None:
        """A name is used that was made before: what uses it depends on what its making met."""
        if name in module.own:
            self.own = True
        met = module.met.get(name)
        if met is not None:
            self.met.add(met)
            for other in met.imports.values():
                imported(it, other)

    # -- changes --------------------------------------------------------------------------------------------------

    def patch(self, module: Module, name: str) -> None:
        """Call before an attribute of a module is set from outside."""
        self.patched.setdefault((id(module.env), name), (module, module.env.names.get(name)))

    def _changed(self, it: Interpreter) -> bool:
        """Whether the run has changed what modules share."""
        return bool(self.patched or it.heap.changed or it.poison or it.registered or it.rewired or it.loader.replaced())

    def begins(self, it: Interpreter, module: Module) -> None:
        """A module is imported for the first time in the run."""
        if (self._within or not self.depth) and self._changed(it) and not module.pending:
            self.late[id(module)] = module, module.met
            module.met = {}
            it.heap.touch(module.env)
            module.env.names = {
                n: v for n, v in module.env.names.items() if (id(module.env), n) in self.patched or n[:2] == "__"
            }

    @contextmanager
    def _unchanged(self, it: Interpreter) -> Iterator[None]:
        """Everything as it is without what the run has changed."""
        values = [(module.env, name, module.env.names.get(name)) for (_, name), (module, _) in self.patched.items()]
        for (_, name), (module, value) in self.patched.items():
            _bind(module.env, name, value)
        contents = it.heap.pristine()
        poison, it.poison, rewired, it.rewired = it.poison, None, it.rewired, {}
        registered, it.registered = it.registered, None
        replaced = it.loader.restored()
        self._clean = True
        try:
            yield
        finally:
            self._clean = False
            it.poison, it.rewired = poison or it.poison, {**rewired, **it.rewired}
            it.registered = registered or it.registered
            it.loader.patched = {**it.loader.patched, **replaced}
            it.heap.undo(contents)
            for env, name, value in values:
                module = self.patched[id(env), name][0]
                self.patched[id(env), name] = module, env.names.get(name)
                _bind(env, name, value)

    # -- making ---------------------------------------------------------------------------------------------------

    def make(self, it: Interpreter, module: Module, statements: Sequence[Statement]) -> bool:
        """Evaluate statements of a module; True when all came to their end."""
        if id(module) not in self.late and not self._clean and self._changed(it):
            with self._unchanged(it):
                return self._make(it, module, statements)
        return self._make(it, module, statements)

    def _make(self, it: Interpreter, module: Module, statements: Sequence[Statement]) -> bool:
        stars = any(s.star for s in statements)
        known = set(module.env.names) if stars else set()
        low, effects = serial(), _effects(it)
        met, self.met, own = self.met, Met(), self.own
        journaled = self.own = id(module) in self.late
        within, self._within = self._within, journaled
        frames, pending = it.heap.frames, it.heap.pending
        if not self.depth:
            self._frames, self._pending = frames, pending
            for owner in self._owners:
                owner.noted = True
        if not journaled:
            it.heap.frames, it.heap.pending = [Journal()], []
        self.depth += 1
        done = False
        try:
            # one that raises here may not have raised: what stands behind it is looked at as well
            ends = [self._evaluated(it, module, statement) for statement in statements]
            done = all(ends)
        finally:
            self.depth -= 1
            made, it.heap.frames, it.heap.pending = it.heap.frames, frames, pending
            names = {n for s in statements for n in s.binds | s.mutates}
            if stars:
                names |= module.env.names.keys() - known
            if not journaled:
                self._settle(it, module, names, made)
            if self.own or _effects(it) != effects:
                self.owns(module, names)
            else:
                it.heap.share(low)
            for name in names if self.met.unread or self.met.imports else ():
                module.met.setdefault(name, Met()).add(self.met)
                module.noted = True
            met.add(self.met)
            self.met, self.own, self._within = met, own, within
            if not self.depth:
                for owner in self._owners:
                    owner.noted = bool(owner.met)
        return done

    def _evaluated(self, it: Interpreter, module: Module, statement: Statement) -> bool:
        """Evaluate one statement, whatever the run has come to. False when it raises."""
        conditions, raised, events, assumed = it.conditions, it.maybe_raised, it.events, it.assumed
        it.conditions, it.maybe_raised, it.events, it.assumed = frozenset(), [], None, Assumptions()
        low, bounds = serial(), it.apart()
        try:
            it.run_block(statement.nodes, Frame(module.env, statement, module))
        except RaiseSignal:
            return False
        finally:
            it.conditions, it.maybe_raised, it.events, it.assumed = conditions, raised, events, assumed
            if it.back(bounds):
                self.own = True
            if events is not None:
                events.outside.append((low, serial()))
        return True

    def _settle(self, it: Interpreter, module: Module, names: set[str], made: list[Journal]) -> None:
        """What statements have done elsewhere is undone with the run; what they bind is there in all its worlds."""
        env = module.env
        for frame in made:
            for key, entry in frame.items():
                if entry[0] is not env:
                    it.heap.root.setdefault(key, entry)
                    self.own = True
        for frame in self._frames:
            if id(env) in frame:
                before = frame[id(env)][1]
                before.update((name, env.names[name]) for name in names if name in env.names and name not in before)

    # -- what is done anew in each run ------------------------------------------------------------------------------

    @contextmanager
    def in_run(self, it: Interpreter) -> Iterator[None]:
        """Within the run, whatever is being made."""
        frames, pending, own = it.heap.frames, it.heap.pending, self.own
        if self.depth:
            it.heap.frames, it.heap.pending = self._frames, self._pending
        try:
            yield
        finally:
            it.heap.frames, it.heap.pending, self.own = frames, pending, own

    def anew(self, it: Interpreter, module: Module, statement: Statement) -> None:
        """Evaluate a statement within the run. Imports and constants come to the same in each. Raises as it does."""
        self.own = False
        before = {n: module.env.names.get(n) for n in statement.binds}
        try:
            it.run_block(statement.nodes, Frame(module.env, statement, module))
        finally:
            after = {n: v for n in statement.binds if (v := module.env.names.get(n)) is not before[n]}
            plain = not self.own and (statement.imports or all(type(v) is Const for v in after.values()))
            self.owns(module, set() if plain else set(after))


def _bind(env: Env, name: str, value: Value | None) -> None:
    if value is None:
        env.names.pop(name, None)
    else:
        env.names[name] = value


def _effects(it: Interpreter) -> tuple[object, ...]:
    """What a run has come to, beside the objects in its journal: evaluating a statement may change that as well."""
    return (
        it.poison,
        it.registered,
        len(it.rewired),
        len(it.search),
        len(it.written),
        len(it.flag_table),
        it.captured,
        it.sinks.met(),
        len(it.command_lines.parsed),
    )
