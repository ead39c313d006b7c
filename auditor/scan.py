"""The static pass: every candidate script and recipe of a tree, their graphs with facts and counterfactuals."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from auditor import candidates
from auditor.deep import deep, mostly_kept
from auditor.drivers import Drivers
from auditor.evaluations import Evaluations
from auditor.examine import Examiner
from auditor.jobs import Jobs
from auditor.natives import make_loader
from auditor.recipes import Recipe, discover
from auditor.request import ScanRequest
from auditor.runs import Names, Outcome, Run
from auditor.sources import Sources
from auditor.uncalled import Uncalled
from rules.facts import FileResult, FileStatus, Graph, InvocationKind, Scan


def scan(request: ScanRequest) -> Scan:
    """Scan a tree. Raises `UnusableLibrary`, and `ValueError` when a path is outside the root."""
    with Jobs(request) as jobs:
        return deep(lambda: _Scanner(request, jobs).run())


def examiner_of(request: ScanRequest) -> Examiner:
    """What evaluates the runs of a request. Raises as `scan`."""
    only = () if request.paths == (request.root,) else tuple(path.absolute() for path in request.paths)
    sources = Sources(request.root, request.libraries, only, request.seen)
    return Examiner(Evaluations(sources, make_loader(sources, request.checkpoints, request.seen), request.seen))


@dataclass(slots=True)
class _Scanner:
    request: ScanRequest
    jobs: Jobs
    graphs: list[Graph] = field(default_factory=list)
    waiting: list[Graph] = field(default_factory=list)
    errors: dict[str, str] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)
    exporting: set[str] = field(default_factory=set)
    drivers: Drivers = field(default_factory=Drivers)
    names: Names = field(default_factory=Names)

    def run(self) -> Scan:
        with mostly_kept():
            examiner = examiner_of(self.request)
            sources = examiner.sources
            found = candidates.find(sources, examiner.loader.source_of)
            recipes, broken = discover(sources, self.request.recipes)
            runs = [*_default_runs(found.files), *_recipe_runs(recipes)]
            for run, outcome in zip(runs, self.jobs.examine(examiner, runs), strict=True):
                self._take(run, outcome)
            rest = [path for path in found.files if path not in self.exporting and path not in self.errors]
            driven = self._driven(examiner, rest)
            self.graphs += Uncalled(examiner, self.drivers, self.names, self.exporting).find(rest, driven)
            self.exporting |= driven
            for graph in self.waiting:
                if graph.script not in self.exporting:
                    self.exporting.add(graph.script)
                    self.graphs.append(self.names.apart(graph))
            warnings = dict.fromkeys([*map(str, broken), *map(str, sources.skipped())])
            return Scan(str(self.request.root), self._files(found), tuple(self.graphs), tuple(warnings))

    def _take(self, run: Run, outcome: Outcome) -> None:
        for found in outcome.graphs:
            self.graphs.append(self.names.apart(found.graph))
            self.drivers.record(self.graphs[-1], found.way)
        self.waiting += outcome.waiting
        if outcome.exports:
            self.exporting.add(run.script)
        if outcome.error:
            self.errors[run.script] = outcome.error
        if outcome.reason:
            self.reasons[run.script] = outcome.reason

    def _driven(self, examiner: Examiner, files: Iterable[str]) -> set[str]:
        """The files that only define what another script exports have its graphs as well. Returns those files."""
        done = set()
        for path in files:
            graphs = self.drivers.of(path)
            if graphs and not examiner.has_main(path):
                self.graphs += graphs
                done.add(path)
        return done

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
        return self.reasons.get(path, "")


def _default_runs(files: Iterable[str]) -> list[Run]:
    return [Run(file, (), InvocationKind.DEFAULT) for file in files]


def _recipe_runs(recipes: Iterable[Recipe]) -> list[Run]:
    return [
        Run(r.script, r.argv, InvocationKind.RECIPE, r.name, r.bundle, r.command[0] if r.command else "")
        for r in recipes
    ]
