"""Exporting functions and methods that no run reached, evaluated with unknown parameters."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field

from auditor.drivers import Drivers
from auditor.endings import exporter
from auditor.examine import Examiner
from auditor.frameworks.tables import tables
from auditor.hooks import exporters, generic_exporters
from auditor.run import Result, run_function
from auditor.runs import Names, Run
from rules.facts import Graph, InvocationKind

_FUNCTION = ("def ", "async def ", "@")
_STARTS = re.compile(r"\bsubprocess\.|\bos\.(?:system|exec|spawn|posix_spawn)")


@dataclass(slots=True)
class Uncalled:
    """Finds them. `exporting` are the files that export something, and grows, as `drivers` does."""

    examiner: Examiner
    drivers: Drivers
    names: Names
    exporting: set[str]
    graphs: list[Graph] = field(default_factory=list)

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
            self.examiner.fresh()
            for statement in source.statements:
                if not any(w in statement.text for w in words):
                    continue
                defines = statement.text.startswith(_FUNCTION)
                if (path in driven or not defines) and self.drivers.reach(path, statement):
                    continue
                for name in exporters(statement, words):
                    self._add(Run(path, (), InvocationKind.DEFAULT), self._run(path, name))
        self._delegating(files)
        return self.graphs

    def _run(self, path: str, name: str, model: tuple[str, str, str] | None = None) -> Result:
        return run_function(self.examiner.loader, path, name, model)

    def _add(self, run: Run, result: Result) -> bool:
        if result.exports:
            self.exporting.add(run.script)
            for found in self.examiner.graphs_of(run, result.exports, result):
                self.graphs.append(self.names.apart(found.graph))
                self.drivers.record(self.graphs[-1], found.way)
        return bool(result.exports)

    def _delegating(self, files: Iterable[str]) -> None:
        """Files that hold the name of an exporting console script and a function that starts a program."""
        for path in files:
            text = self.examiner.sources.read(path).text
            source = self.examiner.index(path)
            if path in self.exporting or source is None or not any(name in text for name in tables().exporters):
                continue
            self.examiner.fresh()
            for statement in source.statements:
                if not statement.text.startswith(_FUNCTION) or not _STARTS.search(statement.text):
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
            examiner.fresh()
            for at in hooked.classes:
                result = self._run(hooked.path, hooked.function, (hooked.parameter, at.path, at.name))
                if self._add(Run(at.path, (), InvocationKind.DEFAULT, line=at.line), result):
                    done.add(hooked.path)
                    self.exporting.add(hooked.path)
        return done
