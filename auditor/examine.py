"""Runs of a script, from evaluation to outcome: forks, what they launch, variants, counterfactuals.

The runs of one script know of each other: results are reused between them, command lines that come to the same are one
run, and a program that one saves is there for the next. Nothing else goes from one script's runs to another's, so that
an outcome does not depend on which runs were made before it in the same process.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from auditor.changes import changed
from auditor.endings import cut_short, exporter, where_cut, why_nothing
from auditor.frameworks.tables import tables
from auditor.launches import Starts, launch
from auditor.loader import FILE_PREFIX, Loader
from auditor.modules import ModuleSource, SyntaxProblem
from auditor.run import Result, run_command, run_script
from auditor.runs import Found, Outcome, Run
from auditor.seen import Seen
from auditor.sinks import Export
from auditor.sources import Sources, Unreadable
from auditor.twins import deciding_flags, key, line_in, twin, without_idle
from rules.facts import Change, Graph, GraphFacts, Invocation, InvocationKind, Kind, Place

_MOST_VARIANTS = 16
_NO_MODEL = re.compile(
    r"convert_(?:tokens|ids)_to_\w+"
    r"""|\.convert\(\s*(["'])(?:1|L|P|LA|PA|RGB|RGBA|RGBX|CMYK|YCbCr|LAB|HSV|I|F)\1"""
    r"|^[ \t]*#.*$",
    re.MULTILINE,
)
"""Methods of tokenizers and of images, and comments: they convert no model."""
_CONVERTS = re.compile(r"\b(?:convert|export_to_coreai\w*|add_exported_program|add_pytorch_module)\(")


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
    """Makes runs. `seen` is told when one met something that may not happen again."""

    sources: Sources
    loader: Loader
    seen: Seen
    results: dict[tuple[str, tuple[str, ...]], Result | str] = field(default_factory=dict)
    commands: dict[tuple[str, tuple[str, ...]], Result | str] = field(default_factory=dict)
    met: dict[str, dict[Hashable, Result]] = field(default_factory=dict)

    def group(self, runs: Sequence[Run], starts: Callable[[Run], None] = lambda run: None) -> list[Outcome]:
        """What all runs of one script come to. `starts` is called before each."""
        self.fresh()
        outcomes = []
        for run in runs:
            starts(run)
            outcomes.append(self._outcome(run))
        return outcomes

    def fresh(self) -> None:
        """What follows knows of no earlier run of any script. What a console command exports is the same for all."""
        self.results.clear()
        self.met.clear()
        self.loader.programs.clear()

    def failed(self, run: Run, error: str) -> Outcome:
        """The outcome of a run that could not be made."""
        if run.kind is InvocationKind.RECIPE:
            return Outcome((Found(self.unresolved(run, error)),))
        return Outcome(error=error)

    def _outcome(self, run: Run) -> Outcome:
        gathered = _Gathered()
        self._audit(run, gathered)
        words = next((w for w in (run.argv, *gathered.forks) if (run.script, w) in self.results), run.argv)
        made = self.results.get((run.script, words))
        reason = why_nothing(made) if isinstance(made, Result) and run.kind is InvocationKind.DEFAULT else ""
        return Outcome(tuple(gathered.graphs), tuple(gathered.waiting), gathered.exports, gathered.error, reason)

    # -- evaluation -----------------------------------------------------------------------------------------------

    def evaluate(self, script: str, argv: tuple[str, ...], command: str = "", choosing: bool = False) -> Result | str:
        """The result of a run, or why there is none. With `choosing`, a run that has to make a choice ends there."""
        kept, name = (self.commands, command) if command else (self.results, script)
        found = kept.get((name, argv))
        if found is None:
            try:
                found = self._command(command, argv) if command else self._script(script, argv, choosing)
            except (Unreadable, SyntaxProblem) as error:
                found = str(error)
            except Exception as error:  # a file that crashes the evaluator is a result, and the rest still runs
                self.seen.spoil()
                found = f"the evaluator failed on this file ({type(error).__name__}: {error})"
            if isinstance(found, Result) and found.due:
                return found
            kept[name, argv] = found
        return found

    def _script(self, script: str, argv: tuple[str, ...], choosing: bool) -> Result | str:
        if not script:
            return "the recipe names no script and no command that makes its bundle"
        return run_script(self.loader, script, argv, self.met.setdefault(script, {}), choosing)

    def _command(self, command: str, argv: tuple[str, ...]) -> Result | str:
        target = self.sources.console_script(command)
        if target is None:
            return f"no library has the console script `{command}`"
        programs, self.loader.programs = self.loader.programs, {}
        try:
            return run_command(self.loader, target[0], target[1], argv)
        finally:
            self.loader.programs = programs

    # -- one run --------------------------------------------------------------------------------------------------

    def _audit(self, run: Run, into: _Gathered) -> None:
        may_fork = run.kind is InvocationKind.DEFAULT and not run.argv
        result = self.evaluate(run.script, run.argv, run.command, choosing=may_fork)
        if isinstance(result, Result) and may_fork:
            forks = self._forks(run, result)
            if forks and len(forks) <= _MOST_VARIANTS:
                into.forks = tuple(forks)
                made = [self.evaluate(run.script, words) for words in forks]
                into.others_export = any(isinstance(r, Result) and r.exports for r in made)
                for words in forks:
                    self._audit(replace(run, argv=words), into)
                return
            if result.due:
                result = self.evaluate(run.script, run.argv, run.command)
        if isinstance(result, str):
            if run.kind is InvocationKind.RECIPE:
                into.add(run, self.unresolved(run, result))
            else:
                into.error = result
            return
        exports = [*result.exports, *self._launched(result, run)]
        delegates = None if exports else exporter(result, chosen=False)
        if exports:
            into.exports = True
        elif delegates is not None:
            into.add(run, self.unresolved(run, *delegates))
        elif run.kind is InvocationKind.DEFAULT and self.only_defines(run.script):
            if self._may_export(run.script) and cut_short(result):
                into.waiting.append(self.unresolved(run, why_nothing(result), where_cut(result)))
        elif into.others_export and not (result.exhausted or result.ended):
            pass
        elif run.kind is InvocationKind.RECIPE or (self._may_export(run.script) and cut_short(result)):
            into.add(run, self.unresolved(run, why_nothing(result), where_cut(result)))
        into.graphs += self.graphs_of(run, exports, result)
        if run.kind is InvocationKind.DEFAULT:
            into.graphs += self._variants(run, result, into.forks)

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
        tried = [(c, self.evaluate(run.script, c)) for c in may[:_MOST_VARIANTS]]
        return [c for c, other in tried if isinstance(other, Result) and other.exports]

    def _launched(self, result: Result, run: Run) -> list[Export]:
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
        return Graph(
            f"{run.recipe or run.script}::*@-",
            run.script or place.path,
            place.line if place.path == (run.script or place.path) else 1,
            "*",
            "",
            Invocation(run.kind, run.argv, run.recipe),
            GraphFacts.unknown(reason, place),
            (),
            run.shipped,
        )

    # -- variants and counterfactuals -----------------------------------------------------------------------------

    def _options(self, result: Result, flags: frozenset[str]) -> list[Any]:
        return [o for f, o in sorted(result.flags.items()) if f in flags]

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
        for c in list(changed(run.argv, self._options(result, deciding | chosen)))[:_MOST_VARIANTS]:
            if run.kind is InvocationKind.VARIANT and c.flag not in run.argv:
                continue  # two flags away from the default line: nobody asked for it
            other = self.evaluate(run.script, c.argv)
            if isinstance(other, str):
                continue
            same = twin(export, ordinal, run.script, other)
            if same is None and not other.exports:
                if not (other.exhausted or other.ended):
                    tried.setdefault(c.flag, [])
                continue
            facts = same.facts if same is not None else None
            decoders = [e.facts for e in other.exports if _may_decode(e)]
            tried.setdefault(c.flag, []).extend([facts] if facts is not None else decoders)
            if c.flag in deciding and (facts is None or key(facts) != key(export.facts)):
                out.append(Change(c.text, c.flag, c.argv, facts))
        return tuple(out), tried

    def _variants(self, run: Run, result: Result, forks: Collection[tuple[str, ...]]) -> list[Found]:
        """The runs with another value of an option that decides something, save those that are forks themselves."""
        out: list[Found] = []
        decoders = [e for e in result.exports if _may_decode(e)]
        flags = frozenset().union(*(e.facts.flags for e in decoders))
        if not decoders and self._writes_more(run.script, result):  # an option may choose a decoder instead
            flags = frozenset().union(*(e.flags for e in result.exports))
        options = [o for o in self._options(result, flags) if not o.must_choose]
        before = [key(e.facts) for e in result.exports]
        for c in list(changed(run.argv, options))[:_MOST_VARIANTS]:
            other = self.evaluate(run.script, c.argv) if c.argv not in forks else ""
            if isinstance(other, str) or not (decoders or any(map(_may_decode, other.exports))):
                continue
            if [key(e.facts) for e in other.exports] != before and other.exports:
                out += self.graphs_of(Run(run.script, c.argv, InvocationKind.VARIANT), other.exports, other)
        return out

    def _writes_more(self, script: str, result: Result) -> bool:
        """Whether the script has a call to convert that this run has not come to."""
        reached = {e.site.place().line for e in result.exports if e.site.path == script}
        return 0 < len(reached) < _written(self.sources.read(script).text)


def _written(text: str) -> int:
    """How many calls to convert a script has, by the lines that name one and define none."""
    return sum(
        1 for line in text.splitlines() if _CONVERTS.search(line) and not line.lstrip().startswith(("def ", "#"))
    )


def _may_decode(export: Export) -> bool:
    return export.facts.kind.value is not Kind.OTHER


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
