"""Whether the loop may be run on a graph, and what became of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from probes.ab.run import Ab, Judge, Serve
from probes.feed import feed
from probes.gates.gate import Outcome
from probes.ports import ports

if TYPE_CHECKING:
    from probes.options import ProbeOptions
    from probes.subject import Subject

_PREFERRED = ("main", "decode")


def chosen(subjects: Sequence[Subject], named: Sequence[str]) -> Subject:
    """The graph that the loop runs on: not refuted, then named by the metadata, then called `main` or `decode`."""
    return min(subjects, key=lambda one: (one.refuted, one.name not in named, one.name not in _PREFERRED, one.name))


def why_refused(subject: Subject) -> list[str]:
    """What forbids the loop: it needs a rewind that was seen to work, and a graph that nothing refutes."""
    reasons = [f"gate {gate['gate']}: {gate['reason']}" for gate in subject.gates if gate["verdict"] == Outcome.REFUTED]
    rewind = next((gate for gate in subject.gates if gate["gate"] == "rewind"), None)
    if rewind is None:
        reasons.append("gate rewind: not run")
    elif rewind["verdict"] == Outcome.PARTIAL:
        reasons.append(f"gate rewind: {rewind['reason']}")
    if subject.refuted and not reasons:
        reasons.append("a rule refutes the graph")
    return reasons


def strange_tokens(subject: Subject, options: ProbeOptions, vocab: int | None) -> list[str]:
    """The workloads with a token that the graph does not have: made for another model, or with another tokenizer."""
    assert options.ab is not None
    size = feed(subject.signature, ports(subject.signature, vocab), options.positions, vocab).vocab
    strange = ((one.name, token) for one in options.ab.workloads for token in one.tokens if not 0 <= token < size)
    return [f"workload {name}: token {token} lies outside 0..{size - 1}" for name, token in dict(strange).items()]


def attempt(subject: Subject, options: ProbeOptions, vocab: int | None, serve: Serve, judge: Judge) -> None:
    """Run the loop on `subject` and leave the record on it; refused where a gate forbids it, unless forced."""
    assert options.ab is not None
    strange = strange_tokens(subject, options, vocab)
    if strange:
        refuse(subject, options, strange)
        return
    reasons = why_refused(subject)
    if reasons and not options.ab.force:
        refuse(subject, options, reasons, ["--force runs the loop all the same"])
        return
    ab = Ab(subject.name, options.ab_capacity(), options.ab, serve, judge, options.seed)
    ab.run()
    record = ab.record()
    broken = not_lossless(record)
    subject.ab = {**record, "forced": bool(reasons), "not_lossless": broken, "notes": _notes(reasons, record, broken)}


def refuse(subject: Subject, options: ProbeOptions, reasons: Sequence[str], notes: Sequence[str] = ()) -> None:
    """Leave the record of a loop that was asked for and not run."""
    assert options.ab is not None
    subject.ab = {
        "status": "refused",
        "reasons": list(reasons),
        "notes": list(notes),
        "forced": False,
        "not_lossless": [],
        "settings": options.ab.as_json(),
        "capacity": None,
        "allocator": None,
        "workloads": [],
    }


def not_lossless(record: dict[str, Any]) -> list[str]:
    """Every row whose text differs, also alone (or could not be run again); one that failed only once is a note."""
    found = []
    for bed in record["workloads"]:
        for row in bed["rows"]:
            if not row["lossless"] and row["rerun"] and row["rerun"]["lossless"] is not True:
                again = row["rerun"]["first_difference"]
                alone = f"alone at token {again}" if again is not None else "not run again"
                where = f"{bed['name']}, {row['drafter']} {row['policy']}, budget {bed['budget']}"
                found.append(f"{where}: not lossless, texts part at token {row['first_difference']}; {alone}")
    return found


def _notes(reasons: Sequence[str], record: dict[str, Any], broken: Sequence[str]) -> list[str]:
    if not reasons:
        return []
    notes = [f"forced although {reason}" for reason in reasons]
    rows = [row for bed in record["workloads"] for row in bed["rows"]]
    rejected = sum(drafted - accepted for row in rows for drafted, accepted in row["rounds"])
    if broken:
        notes.append("losslessness caught it")
    elif rows:
        notes.append(f"losslessness did NOT catch it: equal texts after {rejected} rejected drafts prove nothing here")
    else:
        notes.append("nothing could be run, so losslessness says nothing")
    return notes
