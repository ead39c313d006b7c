"""The static pass: every candidate script and recipe of a tree, their graphs with facts and counterfactuals."""

from __future__ import annotations

import gc
import re
import sys
import threading
import types
from collections import Counter
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from auditor import candidates
from auditor.changes import changed
from auditor.drivers import Drivers
from auditor.frameworks.tables import tables
from auditor.hooks import exporters, generic_exporters
from auditor.launches import Starts, launch
from auditor.loader import FILE_PREFIX, Loader
from auditor.modules import SyntaxProblem
from auditor.natives import make_loader
from auditor.reach import mentioned
from auditor.recipes import Recipe, discover
from auditor.request import ScanRequest
from auditor.run import Result, run_command, run_function, run_script
from auditor.sinks import Export
from auditor.sources import Sources, Unreadable
from rules.facts import (
    Change,
    Fact,
    FileResult,
    FileStatus,
    Graph,
    GraphFacts,
    Invocation,
    InvocationKind,
    Kind,
    Kv,
    Logits,
    Place,
    Scan,
    Trait,
)

_STACK = 512 * 1024 * 1024
_RECURSION = 60_000
_MOST_VARIANTS = 16
_FUNCTION = ("def ", "async def ", "@")
_GC = (50_000, 1_000, 1_000)

T = TypeVar("T")


def scan(request: ScanRequest) -> Scan:
    """Scan a tree. Raises `Unreadable` when a library cannot be used, `ValueError` when a path is outside the root."""
    return _deep(lambda: _Scanner(request).run())


def _deep(function: Callable[[], T]) -> T:
    """Run with a stack that holds the evaluator's recursion; the audited code's own is bounded far below."""
    results: list[Any] = []

    def body() -> None:
        try:
            results.append((True, _roomy(function)))
        except BaseException as error:
            results.append((False, error))

    old_size, old_limit = threading.stack_size(_STACK), sys.getrecursionlimit()
    sys.setrecursionlimit(_RECURSION)
    try:
        thread = threading.Thread(target=body, name="scan")
        thread.start()
        thread.join()
    finally:
        threading.stack_size(old_size)
        sys.setrecursionlimit(old_limit)
    fine, value = results[0]
    if not fine:
        raise value
    return value  # type: ignore[no-any-return]


def _call(function: Callable[[], Any]) -> Any:
    return function()


# CPython allocates its data stack in chunks of 16 KiB and gives each back as soon as it is empty. A recursion that goes
# up and down across a boundary pays for two system calls and a page fault each time (a tenth of a scan). A frame that
# claims more than half of a large chunk makes the rest of that chunk the stack of everything below it.
_ROOM = 520_000
_roomy = types.FunctionType(_call.__code__.replace(co_stacksize=_ROOM), globals(), "roomy")


@dataclass(frozen=True, slots=True)
class _Run:
    """A script with a command line, or a console command (`command`), and the recipe that asks for it."""

    script: str
    argv: tuple[str, ...]
    kind: InvocationKind
    recipe: str = ""
    shipped: str = ""
    command: str = ""
    line: int = 0


@dataclass(slots=True)
class _Scanner:
    request: ScanRequest
    sources: Sources = field(init=False)
    loader: Loader = field(init=False)
    results: dict[tuple[str, str, tuple[str, ...]], Result | str] = field(default_factory=dict)
    met: dict[str, dict[Hashable, Result]] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    graphs: list[Graph] = field(default_factory=list)
    errors: dict[str, str] = field(default_factory=dict)
    exporting: set[str] = field(default_factory=set)
    ids: Counter[str] = field(default_factory=Counter)
    libraries: list[tuple[_Run, Result]] = field(default_factory=list)
    drivers: Drivers = field(default_factory=Drivers)

    def run(self) -> Scan:
        r = self.request
        only = () if r.paths == (r.root,) else tuple(p.absolute() for p in r.paths)
        self.sources = Sources(r.root, r.libraries, only, r.seen)
        self.loader = make_loader(self.sources, r.checkpoints, r.seen)
        found = candidates.find(self.sources, self.loader.source_of)
        recipes, broken = discover(self.sources, r.recipes)
        self.warnings += [str(b) for b in broken]
        runs = [*self._default_runs(found.files, recipes), *self._recipe_runs(recipes)]
        # What a scan allocates mostly lives on (syntax trees, modules): old objects are not worth collecting again.
        thresholds = gc.get_threshold()
        gc.set_threshold(*_GC)
        try:
            for number, run in enumerate(runs):
                if r.progress is not None:
                    r.progress(number, len(runs), run.script or run.recipe)
                self._audit(run)
            driven = self._driven(found.files)
            self._uncalled(found.files, driven)
            self.exporting |= driven
            for run, result in self.libraries:
                if run.script not in self.exporting and self._may_export(run.script) and _cut_short(result):
                    self._unresolved(run, _why_nothing(result), _where_cut(result))
        finally:
            gc.freeze()  # nor is it worth one more walk while the report is written
            gc.set_threshold(*thresholds)
        files = self._files(found)
        self.warnings += [f"{e}" for e in self.sources.skipped()]
        return Scan(str(r.root), files, tuple(self.graphs), tuple(dict.fromkeys(self.warnings)))

    # -- what to run ----------------------------------------------------------------------------------------------

    def _default_runs(self, files: Iterable[str], recipes: Iterable[Recipe]) -> list[_Run]:
        return [_Run(f, (), InvocationKind.DEFAULT) for f in files]

    def _recipe_runs(self, recipes: Iterable[Recipe]) -> list[_Run]:
        return [
            _Run(r.script, r.argv, InvocationKind.RECIPE, r.name, r.bundle, r.command[0] if r.command else "")
            for r in recipes
        ]

    # -- one run --------------------------------------------------------------------------------------------------

    def evaluate(self, script: str, argv: tuple[str, ...], command: str = "") -> Result | str:
        """The result of a run, or why there is none."""
        key = (script, command, argv)
        found = self.results.get(key)
        if found is None:
            try:
                found = self._evaluate(script, argv, command)
            except (Unreadable, SyntaxProblem) as error:
                found = str(error)
            except Exception as error:  # a file that crashes the evaluator is a result, and the rest still runs
                self.request.seen.spoil()
                found = f"the evaluator failed on this file ({type(error).__name__}: {error})"
            self.results[key] = found
        return found

    def _evaluate(self, script: str, argv: tuple[str, ...], command: str) -> Result | str:
        if not command:
            if not script:
                return "the recipe names no script and no command that makes its bundle"
            if script not in self.met:
                self._parse_ahead(script)
            return run_script(self.loader, script, argv, self.met.setdefault(script, {}))
        target = self.sources.console_script(command)
        if target is None:
            return f"no library has the console script `{command}`"
        return run_command(self.loader, target[0], target[1], argv)

    def _parse_ahead(self, script: str) -> None:
        """Parse what a script will evaluate. Syntax trees live on: frozen at once, the collector never walks them."""
        gc.collect(0)
        for statement in mentioned(self.loader.source_of(self.sources.read(script))):
            _ = statement.nodes
        gc.freeze()

    def _audit(self, run: _Run) -> None:
        result = self.evaluate(run.script, run.argv, run.command)
        if isinstance(result, Result) and run.kind is InvocationKind.DEFAULT and not run.argv:
            forks = self._forks(run, result)
            if forks and len(forks) <= _MOST_VARIANTS:
                for words in forks:
                    self._audit(replace(run, argv=words))
                return
        if isinstance(result, str):
            if run.kind is InvocationKind.RECIPE:
                self._unresolved(run, result)
            else:
                self.errors[run.script] = result
            return
        exports = [*result.exports, *self._launched(result, run)]
        delegates = None if exports else _exporter(result, chosen=False)
        if exports:
            self.exporting.add(run.script)
        elif delegates is not None:
            self._unresolved(run, *delegates)
        elif run.kind is InvocationKind.DEFAULT and self._only_defines(run.script):
            self.libraries.append((run, result))
        elif run.kind is InvocationKind.RECIPE or (self._may_export(run.script) and _cut_short(result)):
            self._unresolved(run, _why_nothing(result), _where_cut(result))
        for graph in self._graphs_of(run, exports, result):
            self.graphs.append(graph)
        if run.kind is InvocationKind.DEFAULT:
            self._variants(run, result)

    def _forks(self, run: _Run, result: Result) -> list[tuple[str, ...]]:
        """The command lines that stand for a default one: each choice that has to be made.

        Where the default run exports nothing (it ends with an error, or is the first phase of several), each choice and
        each switch with which it does.
        """
        must = [c for o in result.flags.values() if o.must_choose for c in o.given()]
        if must or result.exports or result.started or not (result.ended or self._has_words(run.script)):
            return must
        may = [c for o in result.flags.values() for c in o.given()]
        may += [c.argv for c in changed((), [o for o in result.flags.values() if o.kind == "switch"])]
        tried = [(c, self.evaluate(run.script, c)) for c in may[:_MOST_VARIANTS]]
        return [c for c, other in tried if isinstance(other, Result) and other.exports]

    def _launched(self, result: Result, run: _Run) -> list[Export]:
        """What the programs that a run starts export: console scripts of the libraries, and other scripts."""
        out: list[Export] = []
        for started in result.started:
            what = launch(started.words)
            if what is None:
                continue
            inner: Result | str
            if what.starts is Starts.COMMAND and self.sources.console_script(what.name) is not None:
                inner = self.evaluate("", tuple(what.argv), what.name)
            elif (
                what.starts is Starts.SCRIPT
                and what.name.startswith(FILE_PREFIX)
                and self.sources.exists(what.name[len(FILE_PREFIX) :])
            ):
                path = what.name[len(FILE_PREFIX) :]
                if path == run.script:
                    continue
                inner = self.evaluate(path, tuple(what.argv))
            else:
                continue
            if isinstance(inner, Result):
                out += inner.exports
        return out

    def _graphs_of(self, run: _Run, exports: list[Export], result: Result) -> list[Graph]:
        out = []
        invocation = Invocation(run.kind, run.argv, run.recipe)
        counts: Counter[tuple[int, str]] = Counter()
        for export in exports:
            where = run.line or _line_in(export, run.script)
            key = (where, export.name)
            counts[key] += 1
            changes, idle = self._changes(run, export, counts[key], result)
            facts = _without_idle(export.facts, idle)
            graph = Graph(
                self._id(run, export),
                run.script or export.site.path,
                where,
                export.name,
                export.bundle.removeprefix(FILE_PREFIX),
                invocation,
                facts,
                changes,
                run.shipped,
                export.family,
            )
            out.append(graph)
            if not run.line:
                self.drivers.record(graph, export)
        return out

    def _id(self, run: _Run, export: Export) -> str:
        base = run.recipe or " ".join([run.script, *run.argv])
        name = f"{base}::{export.name}@{_stem(export.bundle) or '-'}"
        self.ids[name] += 1
        return name if self.ids[name] == 1 else f"{name}~{self.ids[name]}"

    def _has_words(self, script: str) -> bool:
        text = self.sources.read(script).text
        return any(word in text for word in tables().words)

    def _may_export(self, script: str) -> bool:
        """Whether the file has a word of a call that exports: many that name a framework only open what it made."""
        text = self.sources.read(script).text
        return any(
            any(word in text for word in words) and any(call in text for call in calls)
            for words, calls in tables().calls
        )

    def _only_defines(self, script: str) -> bool:
        """Whether running the file exports nothing by itself, whatever its imports hold: it only defines things."""
        source = self.loader.indexed.get(script)
        return source is not None and not any(s.main_guard or s.effects for s in source.statements)

    def _unresolved(self, run: _Run, reason: str, where: Place | None = None) -> None:
        """A run of which nothing is known is a graph of which nothing is known: it must not fall silent."""
        place = where or Place(run.script or run.recipe.split("#")[0], 1 if run.script else 0)
        if run.kind is InvocationKind.DEFAULT:
            self.exporting.add(run.script)
        facts = GraphFacts.unknown(reason, place)
        name = f"{run.recipe or run.script}::*@-"
        self.ids[name] += 1
        self.graphs.append(
            Graph(
                name,
                run.script or place.path,
                place.line,
                "*",
                "",
                Invocation(run.kind, run.argv, run.recipe),
                facts,
                (),
                run.shipped,
            )
        )

    # -- variants and counterfactuals -----------------------------------------------------------------------------

    def _options(self, result: Result, flags: frozenset[str]) -> list[Any]:
        return [o for f, o in sorted(result.flags.items()) if f in flags]

    def _changes(
        self, run: _Run, export: Export, ordinal: int, result: Result
    ) -> tuple[tuple[Change, ...], frozenset[str]]:
        """(changes that make a difference, options of which no change does)."""
        if export.facts.kind.value is not Kind.DECODER or run.command:
            return (), frozenset()
        out = []
        tried: set[str] = set()
        for c in list(changed(run.argv, self._options(result, deciding_flags(export.facts))))[:_MOST_VARIANTS]:
            other = self.evaluate(run.script, c.argv)
            if isinstance(other, str):
                continue
            twin = _twin(export, ordinal, run.script, other)
            if twin is None and not other.exports:
                continue
            facts = twin.facts if twin is not None else None
            tried.add(c.flag)
            if facts is None or _key(facts) != _key(export.facts):
                out.append(Change(c.text, c.flag, c.argv, facts))
        return tuple(out), frozenset(tried - {c.flag for c in out})

    def _variants(self, run: _Run, result: Result) -> None:
        decoders = [e for e in result.exports if e.facts.kind.value is Kind.DECODER]
        flags = frozenset().union(*(e.facts.flags for e in decoders))
        options = [o for o in self._options(result, flags) if not o.must_choose]
        for c in list(changed(run.argv, options))[:_MOST_VARIANTS]:
            other = self.evaluate(run.script, c.argv)
            if isinstance(other, str):
                continue
            before = [_key(e.facts) for e in result.exports]
            if [_key(e.facts) for e in other.exports] != before and other.exports:
                variant = _Run(run.script, c.argv, InvocationKind.VARIANT)
                self.graphs += self._graphs_of(variant, list(other.exports), other)

    def _driven(self, files: Iterable[str]) -> set[str]:
        """The files that only define what another script exports have its graphs as well. Returns those files."""
        done = set()
        for path in files:
            graphs = self.drivers.of(path)
            if graphs and path not in self.exporting and path not in self.errors and self._only_defines(path):
                self.graphs += graphs
                done.add(path)
        return done

    def _uncalled(self, files: Iterable[str], driven: set[str]) -> None:
        """Exporting functions and methods that no run reached, evaluated with unknown parameters.

        A function that several scripts call is evaluated so as well: its file has no other graph that tells of it.
        """
        words = tables().words
        files = [path for path in files if path not in self.exporting and path not in self.errors]
        generic = self._for_each_class(files)
        for path in files:
            source = self.loader.indexed.get(path)
            if source is None or path in generic:
                continue
            for statement in source.statements:
                if not any(w in statement.text for w in words):
                    continue
                defines = statement.text.startswith(_FUNCTION)
                if (path in driven or not defines) and self.drivers.reach(path, statement):
                    continue
                for name in exporters(statement, words):
                    result = run_function(self.loader, path, name)
                    run = _Run(path, (), InvocationKind.DEFAULT)
                    if result.exports:
                        self.exporting.add(path)
                        self.graphs += self._graphs_of(run, list(result.exports), result)
        self._delegating(files)

    def _delegating(self, files: Iterable[str]) -> None:
        """Files that hold the name of an exporting console script and a function that starts a program."""
        for path in files:
            text = self.sources.read(path).text
            source = self.loader.indexed.get(path)
            if path in self.exporting or source is None or not any(name in text for name in tables().exporters):
                continue
            for statement in source.statements:
                if not statement.text.startswith(_FUNCTION) or not _STARTS.search(statement.text):
                    continue
                for name in sorted(statement.binds):
                    found = _exporter(run_function(self.loader, path, name), chosen=True)
                    if found is not None and path not in self.exporting:
                        self._unresolved(_Run(path, (), InvocationKind.DEFAULT), *found)

    def _for_each_class(self, files: Iterable[str]) -> set[str]:
        """The graphs of exporters that are generic over classes of the tree, each in the file of its class.

        Returns the files of those exporters.
        """
        done: set[str] = set()
        sources = [source for path in files if (source := self.loader.indexed.get(path)) is not None]
        for hooked in generic_exporters(sources, tables().words, self.sources):
            for at in hooked.classes:
                result = run_function(self.loader, hooked.path, hooked.function, (hooked.parameter, at.path, at.name))
                if result.exports:
                    done.add(hooked.path)
                    self.exporting |= {hooked.path, at.path}
                    run = _Run(at.path, (), InvocationKind.DEFAULT, line=at.line)
                    self.graphs += self._graphs_of(run, list(result.exports), result)
        return done

    # -- files ----------------------------------------------------------------------------------------------------

    def _files(self, found: candidates.Candidates) -> tuple[FileResult, ...]:
        out = [FileResult(p, FileStatus.ERROR, reason) for p, reason in found.unreadable.items()]
        out += [FileResult(p, FileStatus.EXPORTS if p in self.exporting else FileStatus.NO_EXPORT) for p in found.rest]
        for path in found.files:
            if path in self.errors:
                out.append(FileResult(path, FileStatus.ERROR, self.errors[path]))
            elif path in self.exporting:
                out.append(FileResult(path, FileStatus.EXPORTS))
            else:
                out.append(FileResult(path, FileStatus.NO_EXPORT, self._why_none(path)))
        return tuple(sorted(out))

    def _why_none(self, path: str) -> str:
        drivers = self.drivers.scripts(path)
        if drivers:
            more = f" and {len(drivers) - 3} more" if len(drivers) > 3 else ""
            return f"it exports in the runs of {', '.join(drivers[:3])}{more}"
        result = self.results.get((path, "", ()))
        return _why_nothing(result) if isinstance(result, Result) else ""


def deciding_flags(facts: GraphFacts) -> frozenset[str]:
    """The options that could make the graph eligible: those of the facts that stand in the way.

    A state that cannot be rewound and that no option decides leaves none.
    """
    states = facts.states.value
    if states is not None and any(s.role.rewinds is False for s in states):
        return facts.states.flags
    if facts.mark(Trait.ROW_KERNEL) or facts.mark(Trait.RING_CACHE) or facts.mark(Trait.BAKED_LENGTH):
        return facts.flags
    fine = {
        "states": states is not None and all(s.role.rewinds for s in states),
        "query": facts.query.value is not None and facts.query.value.dynamic,
        "logits": facts.logits.value is Logits.ALL,
        "kv": facts.kv.value is Kv.STATE,
    }
    in_the_way = [f for name, f in _FACTS.items() if not fine[name]]
    return frozenset().union(*(pick(facts).flags for pick in in_the_way))


_FACTS: dict[str, Callable[[GraphFacts], Fact[Any]]] = {
    "states": lambda f: f.states,
    "query": lambda f: f.query,
    "logits": lambda f: f.logits,
    "kv": lambda f: f.kv,
}


_STARTS = re.compile(r"\bsubprocess\.|\bos\.(?:system|exec|spawn|posix_spawn)")


def _exporter(result: Result, chosen: bool) -> tuple[str, Place] | None:
    """Why a run that starts an exporting console script is unresolved; with `chosen` also one that may be any."""
    for started in result.started:
        what = launch(started.words)
        name = what.name if what is not None else ""
        place = started.site.place("the program is started here") if started.site is not None else None
        if place is not None and name in tables().exporters:
            return f"`{name}` exports, and its source is not among those read: give it with --library", place
        if place is not None and chosen and (not started.words or "*" in name):
            return "which program is started (an exporter, by the names in the file) is known at run time only", place
    return None


def _cut_short(result: Result) -> bool:
    """Whether a run without exports ended because knowledge did, and not because the script exports nothing."""
    return bool(result.exhausted or result.unread or result.ended.startswith("raises"))


def _where_cut(result: Result) -> Place | None:
    return result.unread[0][1] if result.unread else result.ended_at


def _why_nothing(result: Result) -> str:
    if result.problems:
        return result.problems[0]
    if result.unread:
        names = ", ".join(f"{name} ({place})" for name, place in result.unread[:3])
        return f"no export call is reached; imports without a source: {names}: give it with --library"
    if result.exhausted is not None:
        return f"the evaluation ended early: {result.exhausted.reason}"
    if result.ended:
        return f"the run ends before any export call ({result.ended})"
    return "no export call is reached in this run"


def _line_in(export: Export, script: str) -> int:
    """The line of the script that leads to the export call."""
    inner = next((s for s in (export.site, *reversed(export.stack)) if s.path == script), export.site)
    return inner.line


def _stem(bundle: str) -> str:
    return bundle.rstrip("/").rsplit("/", 1)[-1]


def _twin(export: Export, ordinal: int, script: str, other: Result) -> Export | None:
    """The same graph in another run: same place, same name, same turn; where the turns differ in number, the best."""
    where = _line_in(export, script)
    alike = [e for e in other.exports if e.name == export.name and _line_in(e, script) == where]
    if ordinal <= len(alike):
        return alike[ordinal - 1]
    return alike[-1] if alike else None


def _key(facts: GraphFacts) -> tuple[object, ...]:
    states = facts.states.value
    roles = tuple((s.name, s.role) for s in states) if states is not None else None
    return (
        facts.kind.value,
        roles,
        facts.query.value,
        facts.logits.value,
        facts.kv.value,
        tuple(m.trait for m in facts.marks),
    )


def _without_idle(facts: GraphFacts, idle: frozenset[str]) -> GraphFacts:
    """The facts without the options that were changed and made no difference."""
    if not idle:
        return facts
    return replace(
        facts,
        states=replace(facts.states, flags=facts.states.flags - idle),
        query=replace(facts.query, flags=facts.query.flags - idle),
        logits=replace(facts.logits, flags=facts.logits.flags - idle),
        kv=replace(facts.kv, flags=facts.kv.flags - idle),
    )
