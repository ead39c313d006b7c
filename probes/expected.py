"""What the program says, laid beside what a device did: a failure is the program's own, or the runtime's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from probes.gates.gate import Outcome
from probes.gates.repeat import NAME as REPEAT


def wanted(gates: Sequence[Mapping[str, Any]]) -> list[str]:
    """The gates to ask of the program: those that failed or did not finish, and always `repeat`, for its choices."""
    return [str(one["gate"]) for one in gates if one["verdict"] == Outcome.REFUTED or one["gate"] == REPEAT]


def split(
    gates: Sequence[Mapping[str, Any]], program: Mapping[str, Mapping[str, Any]], failures: Mapping[str, str]
) -> tuple[list[dict[str, Any]], list[str]]:
    """The device's gates with the program's answers in `program`, and notes.

    `program` has the result of each gate that was evaluated, `failures` why another was not.
    """
    found = []
    notes = []
    for gate in gates:
        one = dict(gate)
        said = program.get(str(gate["gate"]))
        if said is not None:
            one["program"] = {"verdict": said["verdict"], "reason": said["reason"]}
        if gate["verdict"] == Outcome.REFUTED and said is not None:
            whose = {
                str(Outcome.CONFIRMED): "the program itself passes, so the runtime is wrong",
                str(Outcome.REFUTED): "the program itself fails as well",
            }.get(str(said["verdict"]), "the program itself is not decided")
            one["reason"] = f"{gate['reason']}; {whose}"
        elif gate["verdict"] == Outcome.REFUTED and str(gate["gate"]) in failures:
            notes.append(f"gate {gate['gate']}: the program was not evaluated: {failures[str(gate['gate'])]}")
        if gate["gate"] == REPEAT:
            notes += _choices(gate, said)
        found.append(one)
    return found, notes


def _choices(device: Mapping[str, Any], program: Mapping[str, Any] | None) -> list[str]:
    """How many choices along the prompt are those of the program."""
    here, there = device["numbers"].get("argmax"), program["numbers"].get("argmax") if program else None
    if not here or not there or len(here) != len(there):
        return []
    same = sum(left == right for left, right in zip(here, there, strict=True))
    return [f"the program gives the same argmax at {same} of {len(here)} positions of the prompt"]
