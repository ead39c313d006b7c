"""Runs of a script, from evaluation to outcome: forks, what they launch, variants, counterfactuals."""

from __future__ import annotations

import posixpath
import re
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from auditor.changes import changed, counted
from auditor.endings import cut_after, cut_short, exporter, where_cut, why_nothing
from auditor.evaluations import Evaluations
from auditor.frameworks.tables import tables
from auditor.launches import Launch, Starts, launch
from auditor.loader import FILE_PREFIX, Loader
from auditor.modules import ModuleSource, SyntaxProblem
from auditor.run import Result
from auditor.runs import Found, Outcome, Run
from auditor.sinks import Export
from auditor.sources import Sources, Unreadable
from auditor.twins import deciding_flags, differing, key, line_in, named_flags, twin, without_idle
from rules.facts import Change, Graph, GraphFacts, Invocation, InvocationKind, Kind, Place

_MOST_VARIANTS = 16
_NO_MODEL = re.compile(
    r"convert_(?:tokens|ids)_to_\w+"
    r"""|\.convert\(\s*(["'])(?:1|L|P|LA|PA|RGB|RGBA|RGBX|CMYK|YCbCr|LAB|HSV|I|F)\1"""
    r"|^[ \t]*#.*$",
    re.MULTILINE,
)
"""Methods of tokenizers and of images, and comments: they convert no model."""


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
            if forks and len(forks) <= _MOST_VARIANTS:
                into.forks = tuple(forks)
                made = [self.evaluations.evaluate(run.script, words) for words in forks]
                into.others_export = any(isinstance(r, Result) and r.exports for r in made)
                for words in forks:
                    self._audit(replace(run, argv=words), into)
                return
            if result.due:
                result = self.evaluations.evaluate(run.script, run.argv, run.command)
        if isinstance(result, str):
            if run.kind is InvocationKind.RECIPE:
                into.add(run, self.unresolved(run, result))
            else:
                into.error = result
            return
        exports = [*result.exports, *self._launched(result, run)]
        if exports:
            into.exports = True
        else:
            self._exports_nothing(run, result, into)
        into.graphs += self.graphs_of(run, exports, result)
        if exports and result.exhausted is not None and all(e.facts.kind.value is not None for e in exports):
            into.add(run, self.unresolved(run, *cut_after(result.exhausted)))
        if run.kind is InvocationKind.DEFAULT:
            into.graphs += self._variants(run, result, into.forks)

    def _exports_nothing(self, run: Run, result: Result, into: _Gathered) -> None:
        """A run without exports gets a graph that stands for it, unless that is because its script exports nothing."""
        delegates = exporter(result, chosen=False)
        if delegates is not None:
            into.add(run, self.unresolved(run, *delegates))
            return
        recipe = run.kind is InvocationKind.RECIPE
        stands = recipe or (cut_short(result) and self._may_export(run.script))
        nothing = self.unresolved(run, why_nothing(result), where_cut(result))
        waits = self.only_defines(run.script) or (not run.argv and not (result.exhausted or result.ended))
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
        if must or result.exports or result.started or not (result.ended or self._has_words(run.script)):
            return must
        if result.exhausted is not None:
            return []  # each of the others would use up its budget as well
        may = [c for o in result.flags.values() for c in o.given()]
        may += [c.argv for c in changed((), [o for o in result.flags.values() if o.kind == "switch"])]
        tried = [(c, self.evaluations.evaluate(run.script, c)) for c in may[:_MOST_VARIANTS]]
        return [c for c, other in tried if isinstance(other, Result) and other.exports]

    def _launched(self, result: Result, run: Run) -> list[Export]:
        """What the programs that a run starts export: console scripts of the libraries, and other scripts."""
        out: list[Export] = []
        for started in result.started:
            what = launch(started.words)
            inner = self._program(what, run) if what is not None else None
            if isinstance(inner, Result):
                out += inner.exports
        return out

    def _program(self, what: Launch, run: Run) -> Result | str | None:
        """The result of a program that a run starts; None when it is none of the sources, or the script once more."""
        if what.starts is Starts.COMMAND and self.sources.console_script(what.name) is not None:
            return self.evaluations.evaluate("", tuple(what.argv), what.name)
        path = self._started(what, run)
        return self.evaluations.evaluate(path, tuple(what.argv)) if path not in ("", run.script) else None

    def _started(self, what: Launch, run: Run) -> str:
        """The file of the sources that a launch runs; empty when it is none, or may be one of two.

        A relative path is looked for beside the script and from the root: either may be the current folder.
        """
        if "*" in what.name or what.starts is Starts.COMMAND:
            return ""
        if what.starts is Starts.MODULE:
            file = self.sources.module(what.name, None, ())
            return file.path if file is not None and self.sources.audited(file.path) else ""
        if what.name.startswith(FILE_PREFIX):
            path = what.name.removeprefix(FILE_PREFIX)
            return path if self.sources.exists(path) else ""
        places = {posixpath.normpath(posixpath.join(f, what.name)) for f in (posixpath.dirname(run.script), "")}
        found = [p for p in places if not p.startswith(("..", "/")) and self.sources.exists(p)]
        return found[0] if len(found) == 1 else ""

    def _has_words(self, script: str) -> bool:
        text = self.sources.read(script).text
        return any(word in text for word in tables().words)

    def _may_export(self, script: str) -> bool:
        """Whether the file has a word of a call that exports: many that name a framework only open what it made."""
        text = _NO_MODEL.sub("", self.sources.read(script).text)
        return any(
            any(word in text for word in words) and any(call in text for call in calls)
            for words, calls in tables().calls
        )

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
        counts: Counter[tuple[int, str]] = Counter()
        for export in exports:
            where = run.line or line_in(export, run.script)
            counts[where, export.name] += 1
            changes, tried = self._changes(run, export, counts[where, export.name], result)
            graph = Graph(
                _id(run, export),
                run.script or export.site.path,
                where,
                export.name,
                export.bundle.removeprefix(FILE_PREFIX),
                invocation,
                without_idle(export.facts, tried),
                changes,
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

    # -- variants and counterfactuals -----------------------------------------------------------------------------

    def _changes(
        self, run: Run, export: Export, ordinal: int, result: Result
    ) -> tuple[tuple[Change, ...], dict[str, list[GraphFacts]]]:
        """(changes that make a difference, what the changes of each option gave; see `without_idle`)."""
        if export.facts.kind.value is not Kind.DECODER or run.command:
            return (), {}
        out = []
        tried: dict[str, list[GraphFacts]] = {}
        deciding = deciding_flags(export.facts)
        chosen = export.facts.flags & frozenset(run.argv)  # without these it exports something else, or nothing
        named = named_flags(export.facts)
        trials = [
            *changed(run.argv, _options(result, deciding | chosen | named)),
            *counted(run.argv, _options(result, named)),
        ]
        for c in trials[:_MOST_VARIANTS]:
            asked = run.kind is not InvocationKind.VARIANT or c.flag in run.argv  # else two flags away from the default
            if not (asked or c.flag in named):
                continue
            other = self.evaluations.evaluate(run.script, c.argv)
            if isinstance(other, str):
                continue
            same = twin(export, ordinal, run.script, other)
            if same is None and not other.exports:
                if not (other.exhausted or other.failed):
                    tried.setdefault(c.flag, [])
                continue
            facts = same.facts if same is not None else None
            decoders = [e.facts for e in other.exports if _may_decode(e)]
            tried.setdefault(c.flag, []).extend([facts] if facts is not None else decoders)
            if asked and not c.trial and c.flag in deciding and (facts is None or key(facts) != key(export.facts)):
                out.append(Change(c.text, c.flag, c.argv, facts))
        return tuple(out), tried

    def _variants(self, run: Run, result: Result, forks: Collection[tuple[str, ...]]) -> list[Found]:
        """The runs with another value of an option that decides something, save those that are forks themselves."""
        out: list[Found] = []
        decoders = [e for e in result.exports if _may_decode(e)]
        flags = frozenset().union(*(e.facts.flags for e in decoders))
        if not decoders and self._writes_more(run.script, result):  # an option may choose a decoder instead
            flags = frozenset().union(*(e.flags for e in result.exports))
        under = frozenset().union(*(e.under for e in decoders)) - flags
        options = [o for o in _options(result, flags) if not o.must_choose]
        options += [o for o in _options(result, under) if o.kind == "switch"]
        if not result.exports and result.started and _written(self.sources.read(run.script).text):
            # what it starts exports, and it may, too
            options = [o for o in result.flags.values() if o.kind == "switch"]
        before = [key(e.facts) for e in result.exports]
        for c in list(changed(run.argv, options))[:_MOST_VARIANTS]:
            other = self.evaluations.evaluate(run.script, c.argv) if c.argv not in forks else ""
            decides = decoders and c.flag not in under  # an option under which a decoder is made may leave it out
            if isinstance(other, str) or not (decides or any(map(_may_decode, other.exports))):
                continue
            if [key(e.facts) for e in other.exports] != before and other.exports:
                exports = differing(other.exports, run.script, c.flag, result)
                out += self.graphs_of(Run(run.script, c.argv, InvocationKind.VARIANT), exports, other)
        return out

    def _writes_more(self, script: str, result: Result) -> bool:
        """Whether the script has a call to convert that this run has not come to."""
        reached = {e.site.place().line for e in result.exports if e.site.path == script}
        return 0 < len(reached) < _written(self.sources.read(script).text)


def _written(text: str) -> int:
    """How many calls to convert a script has, by the lines that name one and define none."""
    call = tables().converts
    return sum(1 for line in text.splitlines() if call.search(line) and not line.lstrip().startswith(("def ", "#")))


def _may_decode(export: Export) -> bool:
    return export.facts.kind.value is not Kind.OTHER


def _options(result: Result, flags: frozenset[str]) -> list[Any]:
    return [o for f, o in sorted(result.flags.items()) if f in flags]


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
