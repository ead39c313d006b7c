"""The steps that a probe asks of the child process, and what stands in for a step that gave no value."""

from __future__ import annotations

from typing import Any

from probes.gates.gate import GateResult
from probes.options import ProbeOptions
from probes.subject import Subject
from probes.supervisor import StepResult

INSPECT: dict[str, Any] = {"id": "inspect", "kind": "inspect"}


def gate_id(subject: Subject, gate: str) -> str:
    """The name of the step that runs a gate."""
    return f"{subject.name}/{gate}"


def gate_step(subject: Subject, gate: str, options: ProbeOptions) -> dict[str, Any]:
    """Run one gate."""
    bench = {"width": options.widest, "prefix": options.prefix, "seed": options.seed, "window": subject.window}
    bench["soak"] = options.soak
    return {
        "id": gate_id(subject, gate),
        "kind": "gate",
        "graph": subject.name,
        "gate": gate,
        "capacity": options.gate_capacity(subject.window),
        "bench": bench,
    }


def placement_step(subject: Subject) -> dict[str, Any]:
    """Ask where the operations are meant to run."""
    return {"id": f"{subject.name}/placement", "kind": "placement", "graph": subject.name}


def sweep_id(subject: Subject, context: int) -> str:
    """The name of the step that times every S after `context` tokens."""
    return f"{subject.name}/verify-cost@{context}"


def sweep_step(subject: Subject, context: int, options: ProbeOptions) -> dict[str, Any]:
    """Time every S at one context."""
    schedule = {
        "widths": list(options.widths),
        "context": context,
        "repeats": options.repeats,
        "seed": options.seed,
    }
    return {
        "id": sweep_id(subject, context),
        "kind": "sweep",
        "graph": subject.name,
        "capacity": options.sweep_capacity(),
        "schedule": schedule,
    }


def failed_gate(gate: str, result: StepResult) -> dict[str, Any]:
    """A gate that gave no answer. `died` tells a dead child from an error that the runtime raised."""
    return {**GateResult.not_run(gate, f"not run: {result.failure}").as_json(), "died": result.died}


def failed_sweep(scope: str, context: int, options: ProbeOptions, result: StepResult) -> dict[str, Any]:
    """A sweep that gave no samples."""
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
