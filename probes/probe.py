"""A whole probe: inspection, gates, verify-cost, one after the other in children, and the report of it all."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from probes import bundles, expected, package_set, report, steps
from probes.ab.attempt import attempt, chosen, refuse
from probes.backend import BACKENDS, TAKES
from probes.bundles import INSTALL, Asset, Bundle, BundleError
from probes.environment import bandwidth, environment
from probes.gates import NAMES, ON_REQUEST, gate
from probes.gates.repeat import NAME as REPEAT
from probes.gates.repeat import merge
from probes.options import Mode, ProbeOptions
from probes.plan import plan_table
from probes.signature import Signature
from probes.subject import Subject, subject_of, why_not_run, why_not_timed
from probes.supervisor import Listener, Run, supervise
from probes.tables import Table, times_of
from probes.verify_cost import judged

Progress = Callable[[str, int, int], None]
"""Called with what is being done, how far it is, and the total (0: not known)."""


def probe(path: Path, options: ProbeOptions, progress: Progress = lambda what, done, total: None) -> dict[str, Any]:
    """The report on the bundle at `path`; a bundle that cannot be read is a refused report, not an exception."""
    shown = path.name or path.resolve().name
    try:
        bundle = bundles.read(path)
    except BundleError as error:
        return _refused(shown, options, [str(error)])
    except OSError as error:
        return _refused(shown, options, [f"{path}: {error.strerror or error}"])
    name = options.backend or bundle.backend
    if name not in BACKENDS:
        return _refused(shown, options, [f"{shown}: the backend {name!r} is not part of this version"])
    if TAKES[name] != bundle.backend:
        fitting = " or ".join(one for one, taken in TAKES.items() if taken == bundle.backend)
        return _refused(shown, options, [f"{shown}: the backend {name!r} does not read this; use {fitting}"])
    if bundle.is_set:
        return _probe_set(bundle, name, options, progress)
    return _Probe(bundle, name, options, progress).run()


def _probe_set(bundle: Bundle, backend: str, options: ProbeOptions, progress: Progress) -> dict[str, Any]:
    """Each package by itself, inspected; then what they are together. Graphs are named `<package>/<function>`."""
    reports: dict[str, dict[str, Any]] = {}
    for asset in bundle.assets:
        part = Bundle(asset.path, bundle.backend, (Asset("main", asset.path),), asset.path.stem)
        reports[asset.path.stem] = _Probe(part, backend, replace(options, mode=Mode.INSPECT), progress).run()
    first = next(iter(reports.values()))
    graphs = [
        {**graph, "name": f"{name}/{graph['name']}", "not_run": package_set.NOT_RUN}
        for name, found in reports.items()
        for graph in found["graphs"]
    ]
    document = report.document(
        bundle=bundle.shown,
        backend=backend,
        scope=first["scope"],
        graphs=graphs,
        decode="",
        environment=first["environment"],
        settings=_settings(options),
        reasons=[f"{name}: {reason}" for name, found in reports.items() for reason in found["reasons"]],
        refused=any(found["status"] == "refused" for found in reports.values()),
        notes=sorted({note for found in reports.values() for note in found["notes"]}),
        files=_files(bundle),
    )
    return document | package_set.combined(reports)


def _refused(shown: str, options: ProbeOptions, reasons: Sequence[str]) -> dict[str, Any]:
    return report.document(
        bundle=shown,
        backend=options.backend,
        scope="",
        graphs=[],
        decode="",
        environment=environment(),
        settings=_settings(options),
        reasons=reasons,
        refused=True,
    )


def _settings(options: ProbeOptions) -> dict[str, Any]:
    return {
        "mode": str(options.mode),
        "widths": list(options.widths),
        "contexts": list(options.contexts),
        "repeats": options.repeats,
        "seed": options.seed,
        "prefix": options.prefix,
        "positions": str(options.positions) if options.positions else None,
        "compute_unit": options.compute_unit or None,
        "ab": options.ab.as_json() if options.ab else None,
    }


class _Probe:
    def __init__(self, bundle: Bundle, backend: str, options: ProbeOptions, progress: Progress) -> None:
        self.bundle = bundle
        self.backend = backend
        self.options = options
        self.progress = progress
        self.scope = ""
        self.environment = environment()
        self.unseen: list[str] = []
        self.about: dict[str, Any] = {}
        self.keep = ""
        self.gates = NAMES if not options.soak else (*NAMES[:-1], *ON_REQUEST, NAMES[-1])

    def run(self) -> dict[str, Any]:
        """The report; a folder is kept for the children where the backend compiles what it runs."""
        if self.backend != "coreml" or self.options.mode is Mode.INSPECT:
            return self._run()
        with tempfile.TemporaryDirectory(prefix="spec-audit-") as self.keep:
            return self._run()

    def _run(self) -> dict[str, Any]:
        found = self._supervise([steps.INSPECT])
        inspection = found.value("inspect")
        if inspection is None:
            return self._uninspected(found.failure("inspect"))
        self.unseen = list(inspection["unseen"])
        self.about = inspection["about"]
        programs = inspection["programs"]
        self.bundle = with_vocabulary(self.bundle, programs)
        subjects = [subject_of(Signature.of(item), programs, self.bundle) for item in inspection["signatures"]]
        if self.options.graph and all(subject.name != self.options.graph for subject in subjects):
            names = ", ".join(subject.name for subject in subjects)
            return self._document([], [f"no entry point is called {self.options.graph!r}; there are: {names}"], True)
        for subject in subjects:
            subject.not_run = why_not_run(subject, self.options, self.bundle.vocab) or inspection["not_executable"]
        runnable = [subject for subject in subjects if not subject.not_run]
        if self.options.mode.gates and runnable:
            self._gates(runnable)
        if runnable:
            self._second_process(runnable)
        if self.options.mode.gates and runnable and self.backend == "coreml":
            self._expected(runnable)
        if self.options.mode is Mode.AB and runnable:
            self._ab(chosen(runnable, self.bundle.decode))
        elif self.options.mode is Mode.AB and subjects:
            idle = chosen(subjects, self.bundle.decode)
            refuse(idle, self.options, [f"the graph was not run: {idle.not_run}"])
        return self._document(subjects, [], False)

    def _supervise(
        self, steps: Sequence[Mapping[str, Any]], backend: str = "", values: dict[str, Any] | None = None
    ) -> Run:
        """Run `steps`; `values` gets every value as it comes, so that an interruption does not take it away."""
        watch = self._listener(len(steps))

        def listen(event: Mapping[str, Any], pid: int) -> None:
            watch(event, pid)
            if values is not None and event["event"] == "result":
                values[str(event["id"])] = event["value"]

        request = {
            "backend": backend or self.backend,
            "path": str(self.bundle.main.path),
            "vocab": self.bundle.vocab,
            "positions": str(self.options.positions) if self.options.positions else None,
            "compute_unit": self.options.compute_unit,
            "weight_limit": self.options.weight_limit,
            "keep": self.keep,
        }
        run = supervise(request, steps, self.options.seconds, listen)
        if not backend:
            self.scope = run.scope or self.scope
            self.environment |= run.environment
        return run

    def _listener(self, steps: int) -> Listener:
        done = 0

        def listen(event: Mapping[str, Any], pid: int) -> None:
            nonlocal done
            if event["event"] == "step":
                done += 1
                self.progress(str(event["id"]), done, steps)
            elif event["event"] == "progress":
                self.progress(str(event["id"]), int(event["done"]), int(event.get("total", 0)))

        return listen

    def _gates(self, subjects: Sequence[Subject]) -> None:
        run = self._supervise([steps.gate_step(one, name, self.options) for one in subjects for name in self.gates])
        for subject in subjects:
            for name in self.gates:
                step = steps.gate_id(subject, name)
                result = run.value(step) or steps.failed_gate(name, run.results[step])
                subject.gates.append({"question": gate(name).QUESTION, **result})

    def _second_process(self, subjects: Sequence[Subject]) -> None:
        """In a fresh process: the second half of the gate `repeat`, then the sweeps of what is worth timing."""
        repeated = [subject for subject in subjects if subject.gates]
        timed = [subject for subject in subjects if self._timed(subject)]
        contexts = self.options.contexts
        fresh = [steps.gate_step(subject, REPEAT, self.options) for subject in repeated]
        sweeps = [steps.sweep_step(subject, context, self.options) for subject in timed for context in contexts]
        run = self._supervise([*fresh, *sweeps])
        for subject in repeated:
            last, step = subject.gates[-1], steps.gate_id(subject, REPEAT)
            if last["ran"]:
                subject.gates[-1] = {**merge(last, run.value(step), run.failure(step)), "died": run.results[step].died}
        for subject in timed:
            subject.costs = [self._cost(subject, context, run) for context in contexts]

    def _expected(self, subjects: Sequence[Subject]) -> None:
        """On a device: where its operations run, and what the program itself says to the gates that failed."""
        asked = [(one, name) for one in subjects for name in expected.wanted(one.gates)]
        run = self._supervise([steps.gate_step(one, name, self.options) for one, name in asked], "reference")
        placed = self._supervise([steps.placement_step(one) for one in subjects])
        for subject in subjects:
            ids = {name: steps.gate_id(subject, name) for one, name in asked if one is subject}
            said = {name: value for name, step in ids.items() if (value := run.value(step))}
            failures = {name: run.failure(step) for name, step in ids.items() if name not in said}
            subject.gates, notes = expected.split(subject.gates, said, failures)
            devices = placed.value(steps.placement_step(subject)["id"]) or {}
            listed = ", ".join(f"{count} {device}" for device, count in sorted(devices.items()))
            subject.notes += (*notes, *([f"operations are placed on: {listed}"] if listed else []))

    def _ab(self, subject: Subject) -> None:
        def serve(steps: Sequence[dict[str, Any]], results: dict[str, Any]) -> None:
            run = self._supervise(steps, values=results)
            for step in steps:
                results.setdefault(step["id"], run.failure(step["id"]))

        attempt(subject, self.options, self.bundle.vocab, serve, lambda raw: self._judged(subject, raw))

    def _timed(self, subject: Subject) -> bool:
        if not self.options.mode.sweeps:
            return False
        why_not = why_not_timed(subject, self.options, self.bundle.vocab, self.scope)
        if why_not:
            subject.notes += (f"verify-cost not run: {why_not}",)
        return not why_not

    def _cost(self, subject: Subject, context: int, run: Run) -> dict[str, Any]:
        step = steps.sweep_id(subject, context)
        raw = run.value(step)
        if raw is None:
            return steps.failed_sweep(self.scope, context, self.options, run.results[step])
        return self._judged(subject, raw)

    def _judged(self, subject: Subject, raw: Mapping[str, Any]) -> dict[str, Any]:
        chip = str(self.environment["machine"])
        limit = self.options.bandwidth * 1e9 or (bandwidth(chip) if self.scope == "device" else None)
        cost = judged(raw, self.scope, self.bundle.main.weight_bytes, limit, subject.experts)
        return {**cost, "staircase": staircase_of(cost)}

    def _uninspected(self, failure: str) -> dict[str, Any]:
        """A bundle whose inspection failed: without its runtime that is what the files tell, else a refusal."""
        missing = INSTALL in failure
        return self._document([], [failure], refused=not missing)

    def _others(self) -> list[str]:
        main = self.bundle.main
        return [
            f"asset {one.role!r} ({one.path.name}) was not looked at" for one in self.bundle.assets if one is not main
        ]

    def _document(self, subjects: Sequence[Subject], reasons: Sequence[str], refused: bool) -> dict[str, Any]:
        graphs = [
            report.graph(
                subject.name,
                subject.facts,
                subject.gates,
                subject.costs,
                bundle=self.bundle.shown,
                not_run=subject.not_run,
                notes=subject.notes,
                signature=subject.signature.as_json(),
                ab=subject.ab,
            )
            for subject in subjects
        ]
        died = [result["reason"] for item in graphs for result in item["gates"] if result.get("died")]
        died += [
            reason for item in graphs for cost in item["verify_cost"] if cost.get("died") for reason in cost["reasons"]
        ]
        return report.document(
            bundle=self.bundle.shown,
            backend=self.backend,
            scope=self.scope,
            graphs=graphs,
            decode=report.decode_graph(graphs, self.bundle.decode, self.options.graph),
            environment=self.environment,
            settings=_settings(self.options),
            reasons=[*reasons, *died],
            refused=refused or bool(died),
            notes=[*self.bundle.notes, *self._others(), *self.unseen],
            files=_files(self.bundle) | ({"model": self.about} if self.about else {}),
        )


def with_vocabulary(bundle: Bundle, programs: Mapping[str, Mapping[str, Any]]) -> Bundle:
    """The bundle with the vocabulary size that its programs show, where no metadata names one and they agree."""
    sizes = {int(seen["vocab"]) for seen in programs.values() if seen.get("vocab")}
    return replace(bundle, vocab=sizes.pop()) if bundle.vocab is None and len(sizes) == 1 else bundle


def staircase_of(cost: Mapping[str, Any]) -> dict[str, Any]:
    """The plan's words on one cost table."""
    times = times_of(cost["samples"])
    table = Table("", "", str(cost["scope"]), times, tuple(cost["reasons"]), int(cost["context"]))
    found = plan_table(table)
    return {key: found[key] for key in ("status", "reasons", "shape", "plateaus", "avoid", "measure_next")}


def _files(bundle: Bundle) -> dict[str, Any]:
    """What the files alone tell."""
    return {
        "kind": "packages" if bundle.is_set else bundle.path.suffix.lstrip(".") or "language bundle",
        "name": bundle.name,
        "assets": [
            {"role": asset.role, "file": asset.path.name, "bytes": asset.weight_bytes} for asset in bundle.assets
        ],
        "vocab": bundle.vocab,
        "context": bundle.context,
        "decode": list(bundle.decode),
    }
