"""Exporting functions and methods that no run reached, evaluated with unknown parameters."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from auditor.drivers import Drivers
from auditor.endings import exporter
from auditor.examine import Examiner
from auditor.frameworks.tables import tables
from auditor.hooks import as_inherited, exporters, generic_exporters
from auditor.launches import STARTS_PROGRAMS
from auditor.modules import Statement
from auditor.registries import Where
from auditor.run import Result, run_function
from auditor.runs import Names, Run
from auditor.twins import key
from rules.facts import Graph, InvocationKind

_MOST_ENTRIES = 64
_FUNCTION = ("def ", "async def ", "@")


@dataclass(slots=True)
class Uncalled:
    """Finds them. `exporting` are the files that export something, and grows, as `drivers` does.

    `of` are graphs with the function that was evaluated with unknown parameters, `classes` those whose graphs are known
    by their hooks, `reached` the lines that runs with the entries of a registry went through: a function there is
    called, and with known models.
    """

    examiner: Examiner
    drivers: Drivers
    names: Names
    exporting: set[str]
    graphs: list[Graph] = field(default_factory=list)
    of: list[tuple[Graph, str, Statement]] = field(default_factory=list)
    classes: set[tuple[str, int]] = field(default_factory=set)
    reached: Drivers = field(default_factory=Drivers)

    def find(self, files: Sequence[str], driven: Collection[str]) -> list[Graph]:
        """The graphs of such functions in these files, which export nothing when they are run.

        `driven` are files that have the graphs of the only script that uses them. A function that several scripts call
        is evaluated as well: its file has no other graph that tells of it.
        """
        words = tables().words
        generic = self._for_each_class(files)
        for path in files:
            source = self.examiner.index(path)
            if source is None or path in generic:
                continue
            self.examiner.evaluations.fresh()
            for statement in source.statements:
                if not any(w in statement.text for w in words):
                    continue
                defines = statement.text.startswith(_FUNCTION)
                if (path in driven or not defines) and self.drivers.reach(path, statement):
                    continue
                for name in [n for m in exporters(statement, words) for n in as_inherited(source, m)]:
                    result = self._run(path, name)
                    if not self._for_each_entry(path, name, result):
                        before = len(self.graphs)
                        self._add(Run(path, (), InvocationKind.DEFAULT), result)
                        self.of += [(graph, path, statement) for graph in self.graphs[before:]]
        self._delegating(files)
        called = [graph for graph, path, statement in self.of if self.reached.reach(path, statement)]
        return [graph for graph in self.graphs if all(graph is not c for c in called)]

    def _run(
        self,
        path: str,
        name: str,
        model: tuple[str, str, str] | None = None,
        taken: Mapping[Where, int] | None = None,
    ) -> Result:
        return run_function(self.examiner.loader, path, name, model, taken)

    def _add(self, run: Run, result: Result) -> bool:
        if result.exports:
            self.exporting.add(run.script)
            for found in self.examiner.graphs_of(run, result.exports, result):
                self.graphs.append(self.names.apart(found.graph))
                self.drivers.record(self.graphs[-1], found.way)
        return bool(result.exports)

    def _for_each_entry(self, path: str, name: str, result: Result) -> bool:
        """The graphs of a function that looks its model class up in a registry: those of each entry, by its class.

        False when the function has no such look-up, or when no entry's class is what it exports.
        """
        if len(result.registries) != 1 or not result.exports:
            return False
        where, count = next(iter(result.registries.items()))
        results = [self._run(path, name, taken={where: n}) for n in range(min(count, _MOST_ENTRIES))]
        homely = {(e.site, e.name) for r in results for e in r.exports if e.home is not None}
        if count > _MOST_ENTRIES or not homely:
            return False
        met: set[object] = set()
        for one in results:
            for export in one.exports:
                home = export.home
                if home is None and (export.site, export.name) in homely and any(e.home for e in one.exports):
                    continue  # the entry has no class for this way
                own = home is not None and self.examiner.index(home.path) is not None
                at = (home.path, home.line) if home is not None and own else (path, 0)
                mark = (at, export.site, export.name, key(export.facts))
                if mark not in met and at not in self.classes:
                    self._add(Run(at[0], (), InvocationKind.DEFAULT, line=at[1]), replace(one, exports=(export,)))
                met.add(mark)
                for site in (export.site, *export.stack):
                    self.reached.lines.setdefault(site.path, set()).add(site.line)
        self.exporting.add(path)
        return True

    def _delegating(self, files: Iterable[str]) -> None:
        """Files that hold the name of an exporting console script and a function that starts a program."""
        for path in files:
            text = self.examiner.sources.read(path).text
            source = self.examiner.index(path)
            if path in self.exporting or source is None or not any(name in text for name in tables().exporters):
                continue
            self.examiner.evaluations.fresh()
            for statement in source.statements:
                if not statement.text.startswith(_FUNCTION) or not STARTS_PROGRAMS.search(statement.text):
                    continue
                for name in sorted(statement.binds):
                    found = exporter(self._run(path, name), chosen=True)
                    if found is not None and path not in self.exporting:
                        self.exporting.add(path)
                        graph = self.examiner.unresolved(Run(path, (), InvocationKind.DEFAULT), *found)
                        self.graphs.append(self.names.apart(graph))

    def _for_each_class(self, files: Iterable[str]) -> set[str]:
        """The graphs of exporters that are generic over classes of the tree, each in the file of its class.

        Returns the files of those exporters.
        """
        done: set[str] = set()
        examiner = self.examiner
        sources = [source for path in files if (source := examiner.index(path)) is not None]
        for hooked in generic_exporters(sources, tables().words, examiner.sources):
            examiner.evaluations.fresh()
            for at in hooked.classes:
                self.classes.add((at.path, at.line))
                result = self._run(hooked.path, hooked.function, (hooked.parameter, at.path, at.name))
                if self._add(Run(at.path, (), InvocationKind.DEFAULT, line=at.line), result):
                    done.add(hooked.path)
                    self.exporting.add(hooked.path)
        return done
