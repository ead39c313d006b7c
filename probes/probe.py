"""A whole probe: inspection, gates, verify-cost, one after the other in children, and the report of it all."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from probes import bundles, report
from probes.backend import BACKENDS
from probes.bundles import INSTALL, Bundle, BundleError
from probes.environment import bandwidth, environment
from probes.facts import facts_of
from probes.gates import NAMES, gate
from probes.gates.gate import GateResult, Outcome
from probes.gates.repeat import NAME as REPEAT
from probes.gates.repeat import merge
from probes.options import Mode, ProbeOptions
from probes.plan import plan_table
from probes.ports import ports
from probes.signature import Signature
from probes.supervisor import Listener, Run, StepResult, supervise
from probes.tables import Table, times_of
from probes.verify_cost import judged
from rules.facts import GraphFacts, Kind, Mark, Place, Trait
from rules.verdict import Verdict, judge

Progress = Callable[[str, int, int], None]
"""Called with what is being done, how far it is, and the total (0: not known)."""
_PREFERRED = ("main", "decode")


@dataclass(slots=True)
class Subject:
    """One entry point on its way through the probe."""

    signature: Signature
    facts: GraphFacts
    windows: tuple[int, ...]
    experts: bool
    gates: list[dict[str, Any]]
    costs: list[dict[str, Any]]
    not_run: str = ""
    notes: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return self.signature.name

    @property
    def window(self) -> int:
        return max(self.windows, default=0)


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
    return _Probe(bundle, name, options, progress).run()


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

    def run(self) -> dict[str, Any]:
        found = self._supervise([{"id": "inspect", "kind": "inspect"}])
        inspection = found.value("inspect")
        if inspection is None:
            return self._uninspected(found.failure("inspect"))
        self.unseen = list(inspection["unseen"])
        subjects = [self._subject(Signature.of(item), inspection["programs"]) for item in inspection["signatures"]]
        if self.options.graph and all(subject.name != self.options.graph for subject in subjects):
            names = ", ".join(subject.name for subject in subjects)
            return self._document(
                [], "", [f"no entry point is called {self.options.graph!r}; there are: {names}"], True
            )
        runnable = [subject for subject in subjects if self._runnable(subject)]
        if self.options.mode.gates and runnable:
            self._gates(runnable)
        if runnable:
            self._second_process(runnable)
        return self._document(subjects, "", [], False)

    def _supervise(self, steps: Sequence[Mapping[str, Any]]) -> Run:
        request = {
            "backend": self.backend,
            "path": str(self.bundle.main.path),
            "vocab": self.bundle.vocab,
            "positions": str(self.options.positions) if self.options.positions else None,
            "compute_unit": self.options.compute_unit,
        }
        run = supervise(request, steps, self.options.seconds, self._listener(len(steps)))
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

    def _subject(self, signature: Signature, programs: Mapping[str, Mapping[str, Any]]) -> Subject:
        seen = programs.get(signature.name, {})
        where = (Place(self.bundle.shown, 0, "program"),)
        marks = [Mark(Trait.MOE, "experts are gathered", where)] if seen.get("experts") else []
        facts = facts_of(signature, self.bundle.shown, self.bundle.vocab, marks)
        windows = tuple(int(size) for size in seen.get("windows", ()))
        notes = tuple(f"{state.name}: {state.reason}" for state in facts.states.value or () if state.reason)
        if windows:
            notes += (f"sliding windows in the program: {', '.join(map(str, windows))}",)
        return Subject(signature, facts, windows, bool(seen.get("experts")), [], [], "", notes)

    def _runnable(self, subject: Subject) -> bool:
        """Whether the graph can be run; else its `not_run` says why not."""
        if self.options.mode is Mode.INSPECT:
            subject.not_run = "inspection only"
        elif self.options.graph and subject.name != self.options.graph:
            subject.not_run = f"only {self.options.graph} was asked for"
        elif subject.facts.kind.value is not Kind.DECODER:
            subject.not_run = "not a decoder"
        else:
            subject.not_run = self._obstacle(subject.signature)
        return not subject.not_run

    def _obstacle(self, signature: Signature) -> str:
        from probes.backend import NotExecutable
        from probes.feed import feed

        try:
            feed(signature, ports(signature, self.bundle.vocab), self.options.positions, self.bundle.vocab)
        except NotExecutable as error:
            return f"not executable: {error}"
        return ""

    def _gates(self, subjects: Sequence[Subject]) -> None:
        run = self._supervise([self._gate_step(subject, name) for subject in subjects for name in NAMES])
        for subject in subjects:
            for name in NAMES:
                step = f"{subject.name}/{name}"
                result = run.value(step) or _failed(name, run.results[step])
                subject.gates.append({"question": gate(name).QUESTION, **result})

    def _second_process(self, subjects: Sequence[Subject]) -> None:
        """In a fresh process: the second half of the gate `repeat`, then the sweeps of what is worth timing."""
        repeated = [subject for subject in subjects if subject.gates]
        timed = [subject for subject in subjects if self.options.mode.sweeps and self._worth_timing(subject)]
        sweeps = [self._sweep_step(subject, context) for subject in timed for context in self.options.contexts]
        run = self._supervise([*(self._gate_step(subject, REPEAT) for subject in repeated), *sweeps])
        for subject in repeated:
            last, step = subject.gates[-1], f"{subject.name}/{REPEAT}"
            if last["ran"]:
                subject.gates[-1] = {**merge(last, run.value(step), run.failure(step)), "died": run.results[step].died}
        for subject in timed:
            subject.costs = [self._cost(subject, context, run) for context in self.options.contexts]

    def _gate_step(self, subject: Subject, name: str) -> dict[str, Any]:
        options = self.options
        bench = {"width": options.widest, "prefix": options.prefix, "seed": options.seed, "window": subject.window}
        return {
            "id": f"{subject.name}/{name}",
            "kind": "gate",
            "graph": subject.name,
            "gate": name,
            "capacity": options.gate_capacity(subject.window),
            "bench": bench,
        }

    def _cost(self, subject: Subject, context: int, run: Run) -> dict[str, Any]:
        step = _sweep_id(subject, context)
        raw = run.value(step)
        if raw is None:
            return _no_cost(self.scope, context, self.options, run.results[step])
        chip = str(self.environment["machine"])
        limit = self.options.bandwidth * 1e9 or (bandwidth(chip) if self.scope == "device" else None)
        cost = judged(raw, self.scope, self.bundle.main.weight_bytes, limit, subject.experts)
        return {**cost, "staircase": staircase_of(cost)}

    def _worth_timing(self, subject: Subject) -> bool:
        """A refuted graph is not timed unless that was all that was asked; one of S=1 never."""
        width = ports(subject.signature, self.bundle.vocab).query_width
        if width is not None and width > 0:
            subject.notes += (f"verify-cost not run: the query is pinned to S={width}",)
            return False
        refuted = judge(subject.facts).verdict is Verdict.OUT or any(
            g["verdict"] == Outcome.REFUTED for g in subject.gates
        )
        if refuted and self.options.mode is not Mode.VERIFY_COST:
            subject.notes += ("verify-cost not run: the graph is refuted",)
            return False
        return True

    def _sweep_step(self, subject: Subject, context: int) -> dict[str, Any]:
        options = self.options
        schedule = {
            "widths": list(options.widths),
            "context": context,
            "repeats": options.repeats,
            "seed": options.seed,
        }
        capacity = options.sweep_capacity()
        step = _sweep_id(subject, context)
        return {"id": step, "kind": "sweep", "graph": subject.name, "capacity": capacity, "schedule": schedule}

    def _uninspected(self, failure: str) -> dict[str, Any]:
        """A bundle whose inspection failed: without its runtime that is what the files tell, else a refusal."""
        missing = INSTALL in failure
        return self._document([], "", [failure], refused=not missing)

    def _document(
        self, subjects: Sequence[Subject], decode: str, reasons: Sequence[str], refused: bool
    ) -> dict[str, Any]:
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
            decode=decode or decode_graph(graphs, self.bundle.decode, self.options.graph),
            environment=self.environment,
            settings=_settings(self.options),
            reasons=[*reasons, *died],
            refused=refused or bool(died),
            notes=[*self.bundle.notes, *self.unseen],
            files=_files(self.bundle),
        )


def decode_graph(graphs: Sequence[Mapping[str, Any]], named: Sequence[str], asked: str = "") -> str:
    """The entry point whose verdict is the bundle's: the one asked for, the best of those that the metadata names as
    the decoder's, else the best decoder; `main` and `decode` first among equals."""
    if asked:
        return asked
    decoders = [item for item in graphs if item["facts"]["kind"]["value"] == Kind.DECODER]
    wanted = [item for item in decoders if item["name"] in named] or decoders
    ranks = {str(Outcome.CONFIRMED): 0, str(Outcome.PARTIAL): 1, str(Outcome.REFUTED): 2}

    def rank(item: Mapping[str, Any]) -> tuple[int, int, str]:
        name = str(item["name"])
        return ranks[item["verdict"]], _PREFERRED.index(name) if name in _PREFERRED else len(_PREFERRED), name

    return str(min(wanted, key=rank)["name"]) if wanted else (str(graphs[0]["name"]) if graphs else "")


def _sweep_id(subject: Subject, context: int) -> str:
    return f"{subject.name}/verify-cost@{context}"


def _failed(name: str, result: StepResult) -> dict[str, Any]:
    """A gate that gave no answer. A refusal by the runtime is an answer about the graph; a death is not."""
    failed = GateResult.not_run(name, f"not run: {result.failure}").as_json()
    return {**failed, "died": result.died}


def _no_cost(scope: str, context: int, options: ProbeOptions, result: StepResult) -> dict[str, Any]:
    return {
        "status": "refused",
        "reasons": [result.failure],
        "died": result.died,
        "scope": scope,
        "context": context,
        "capacity": options.sweep_capacity(),
        "repeats": options.repeats,
        "seed": options.seed,
        "points": [],
        "samples": [],
    }


def staircase_of(cost: Mapping[str, Any]) -> dict[str, Any]:
    """The plan's words on one cost table."""
    times = times_of(cost["samples"])
    table = Table("", "", str(cost["scope"]), times, tuple(cost["reasons"]), int(cost["context"]))
    found = plan_table(table)
    return {key: found[key] for key in ("status", "reasons", "shape", "plateaus", "avoid", "measure_next")}


def _files(bundle: Bundle) -> dict[str, Any]:
    """What the files alone tell."""
    return {
        "kind": bundle.path.suffix.lstrip(".") or "language bundle",
        "name": bundle.name,
        "assets": [
            {"role": asset.role, "file": asset.path.name, "bytes": asset.weight_bytes} for asset in bundle.assets
        ],
        "vocab": bundle.vocab,
        "context": bundle.context,
        "decode": list(bundle.decode),
    }
