"""Runs of a script, from evaluation to outcome: the command lines that it forks into, and the graphs of each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from auditor.changes import changed
from auditor.endings import cut_after, cut_short, exporter, where_cut, why_nothing
from auditor.evaluations import Evaluations
from auditor.export_words import has_words, makes_models, may_export
from auditor.launched import launched
from auditor.loader import FILE_PREFIX, Loader
from auditor.modules import ModuleSource, SyntaxProblem
from auditor.run import Result
from auditor.runs import Found, Outcome, Run
from auditor.sinks import Export
from auditor.sources import Sources, Unreadable
from auditor.twins import line_in, numbered, without_idle
from auditor.variants import MOST_VARIANTS, changes, variants
from rules.facts import Graph, GraphFacts, Invocation, InvocationKind, Place


@dataclass(slots=True)
class _Gathered:
    """An outcome in the making: that of a run and of the command lines that it forks into.

    `others_export` when some of these export: one that comes to its end without is then a step that exports nothing.
    """

    graphs: list[Found] = field(default_factory=list)
    waiting: list[Graph] = field(default_factory=list)
    exports: bool = False
    error: str = ""
    forks: tuple[tuple[str, ...], ...] = ()
    others_export: bool = False

    def add(self, run: Run, graph: Graph) -> None:
        """A graph that stands for a run of which nothing is known."""
        self.graphs.append(Found(graph))
        self.exports |= run.kind is InvocationKind.DEFAULT


@dataclass(slots=True)
class Examiner:
    """Says what runs come to: their graphs, or why there are none."""

    evaluations: Evaluations

    @property
    def sources(self) -> Sources:
        return self.evaluations.sources

    @property
    def loader(self) -> Loader:
        return self.evaluations.loader

    def group(self, runs: Sequence[Run], starts: Callable[[Run], None] = lambda run: None) -> list[Outcome]:
        """What all runs of one script come to. `starts` is called before each."""
        self.evaluations.fresh()
        outcomes = []
        for run in runs:
            starts(run)
            outcomes.append(self._outcome(run))
        return outcomes

    def failed(self, run: Run, error: str) -> Outcome:
        """The outcome of a run that could not be made."""
        if run.kind is InvocationKind.RECIPE:
            return Outcome((Found(self.unresolved(run, error)),))
        return Outcome(error=error)

    def _outcome(self, run: Run) -> Outcome:
        gathered = _Gathered()
        self._audit(run, gathered)
        words = next((w for w in (run.argv, *gathered.forks) if (run.script, w) in self.evaluations.results), run.argv)
        made = self.evaluations.results.get((run.script, words))
        reason = why_nothing(made) if isinstance(made, Result) and run.kind is InvocationKind.DEFAULT else ""
        return Outcome(tuple(gathered.graphs), tuple(gathered.waiting), gathered.exports, gathered.error, reason)

    # -- one run --------------------------------------------------------------------------------------------------

    def _audit(self, run: Run, into: _Gathered) -> None:
        may_fork = run.kind is InvocationKind.DEFAULT and not run.argv
        result = self.evaluations.evaluate(run.script, run.argv, run.command, choosing=may_fork)
        if isinstance(result, Result) and may_fork:
            forks = self._forks(run, result)
            if 0 < len(forks) <= MOST_VARIANTS:
                self._audit_forks(run, forks, into)
                return
            if result.due:
                result = self.evaluations.evaluate(run.script, run.argv, run.command)
        if isinstance(result, str):
            if run.kind is InvocationKind.RECIPE:
                into.add(run, self.unresolved(run, result))
            else:
                into.error = result
            return
        exports = [*result.exports, *launched(self.evaluations, result, run.script)]
        if exports:
            into.exports = True
        else:
            self._exports_nothing(run, result, into)
        into.graphs += self.graphs_of(run, exports, result)
        if exports and result.exhausted is not None and all(e.facts.kind.value is not None for e in exports):
            into.add(run, self.unresolved(run, *cut_after(result.exhausted)))
        if run.kind is InvocationKind.DEFAULT:
            for variant, differing, other in variants(self.evaluations, run, result, into.forks):
                into.graphs += self.graphs_of(variant, differing, other)

    def _audit_forks(self, run: Run, forks: Sequence[tuple[str, ...]], into: _Gathered) -> None:
        into.forks = tuple(forks)
        made = [self.evaluations.evaluate(run.script, words) for words in forks]
        into.others_export = any(isinstance(r, Result) and r.exports for r in made)
        for words in forks:
            self._audit(replace(run, argv=words), into)

    def _exports_nothing(self, run: Run, result: Result, into: _Gathered) -> None:
        """A run without exports gets a graph that stands for it, unless that is because its script exports nothing."""
        delegates = exporter(result, chosen=False)
        if delegates is not None:
            into.add(run, self.unresolved(run, *delegates))
            return
        recipe = run.kind is InvocationKind.RECIPE
        defines = self.only_defines(run.script)
        text = "" if recipe else self._text(run)
        stands = recipe or (cut_short(result) and may_export(text) and (not defines or makes_models(text)))
        nothing = self.unresolved(run, why_nothing(result), where_cut(result))
        waits = defines or (not run.argv and not (result.exhausted or result.ended))
        if run.kind is InvocationKind.DEFAULT and waits:
            into.waiting += [nothing] if stands and not into.others_export else []
        elif stands and (not into.others_export or result.exhausted or result.ended):
            into.add(run, nothing)

    def _forks(self, run: Run, result: Result) -> list[tuple[str, ...]]:
        """The command lines that stand for a default one: each choice that has to be made.

        Where the default run exports nothing (it ends with an error, or is the first phase of several), each choice and
        each switch with which it does.
        """
        must = [c for o in result.flags.values() if o.must_choose for c in o.given()]
        if must or result.exports or result.started or not (result.ended or has_words(self._text(run))):
            return must
        if result.exhausted is not None:
            return []  # each of the others would use up its budget as well
        may = [c for o in result.flags.values() for c in o.given()]
        may += [c.argv for c in changed((), [o for o in result.flags.values() if o.kind == "switch"])]
        tried = [(c, self.evaluations.evaluate(run.script, c)) for c in may[:MOST_VARIANTS]]
        return [c for c, other in tried if isinstance(other, Result) and other.exports]

    def _text(self, run: Run) -> str:
        return self.sources.read(run.script).text

    def index(self, path: str) -> ModuleSource | None:
        """The index of a file; None when it cannot be read or does not parse."""
        try:
            return self.loader.source_of(self.sources.read(path))
        except (SyntaxProblem, Unreadable):
            return None

    def has_main(self, script: str) -> bool:
        source = self.index(script)
        return source is None or any(s.main_guard for s in source.statements)

    def only_defines(self, script: str) -> bool:
        """Whether running the file exports nothing by itself, whatever its imports hold: it only defines things."""
        source = self.index(script)
        return source is not None and not any(s.main_guard or s.effects for s in source.statements)

    # -- graphs ---------------------------------------------------------------------------------------------------

    def graphs_of(self, run: Run, exports: Sequence[Export], result: Result) -> list[Found]:
        """The graphs of a run's exports, with the changes of options that make a difference to them."""
        out = []
        invocation = Invocation(run.kind, run.argv, run.recipe)
        for export, turn in numbered(exports, run.script):
            where = run.line or line_in(export, run.script)
            differences, tried = changes(self.evaluations, run, export, turn, result)
            graph = Graph(
                _id(run, export),
                run.script or export.site.path,
                where,
                export.name,
                export.bundle.removeprefix(FILE_PREFIX),
                invocation,
                without_idle(export.facts, tried),
                differences,
                run.shipped,
                export.family,
            )
            out.append(Found(graph, () if run.line else _way(graph, export)))
        return out

    def unresolved(self, run: Run, reason: str, where: Place | None = None) -> Graph:
        """A run of which nothing is known is a graph of which nothing is known: it must not fall silent."""
        place = where or Place(run.script or run.recipe.split("#")[0], 1 if run.script else 0)
        script = run.script or place.path
        return Graph(
            f"{run.recipe or run.script}::*@-",
            script,
            place.line if place.path == script else 1,
            "*",
            "",
            Invocation(run.kind, run.argv, run.recipe),
            GraphFacts.unknown(reason, place),
            (),
            run.shipped,
        )


def _way(graph: Graph, export: Export) -> tuple[tuple[str, int], ...]:
    """How the run came to an export call of another file. Recipes name what they ship: their graphs stay theirs."""
    if graph.invocation.kind is InvocationKind.RECIPE or export.site.path == graph.script:
        return ()
    return tuple((site.path, site.line) for site in (export.site, *export.stack))


def _id(run: Run, export: Export) -> str:
    base = run.recipe or " ".join([run.script, *run.argv])
    return f"{base}::{export.name}@{_stem(export.bundle) or '-'}"


def _stem(bundle: str) -> str:
    return bundle.rstrip("/").rsplit("/", 1)[-1]
