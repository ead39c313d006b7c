"""One entry point on its way through the probe."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from probes.backend import NotExecutable
from probes.bundles import Bundle
from probes.facts import facts_of
from probes.feed import feed
from probes.gates.gate import Outcome
from probes.options import Mode, ProbeOptions
from probes.ports import ports
from probes.signature import Signature
from rules.facts import Fact, GraphFacts, Kind, Logits, Mark, Place, Trait
from rules.verdict import Verdict, judge

ROWS_BY = "rows are picked by computed bounds, so there may be as many as positions or one:"


@dataclass(slots=True)
class Subject:
    """What is known of an entry point, and what became of it. `windows` and `experts` are seen in its program."""

    signature: Signature
    facts: GraphFacts
    windows: tuple[int, ...] = ()
    experts: bool = False
    gates: list[dict[str, Any]] = field(default_factory=list)
    costs: list[dict[str, Any]] = field(default_factory=list)
    ab: dict[str, Any] | None = None
    not_run: str = ""
    notes: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return self.signature.name

    @property
    def window(self) -> int:
        return max(self.windows, default=0)

    @property
    def refuted(self) -> bool:
        """Whether a rule or a gate has refuted it already."""
        broken = any(gate["verdict"] == Outcome.REFUTED for gate in self.gates)
        return broken or judge(self.facts).verdict is Verdict.OUT


def subject_of(signature: Signature, programs: Mapping[str, Mapping[str, Any]], bundle: Bundle) -> Subject:
    """The subject that inspection gives; doubts about its states are its first notes."""
    seen = programs.get(signature.name, {})
    where = (Place(bundle.shown, 0, "program"),)
    marks = [Mark(Trait.MOE, "experts are gathered", where)] if seen.get("experts") else []
    marks += [Mark(Trait(trait), str(detail), where) for trait, detail in seen.get("marks", ())]
    facts = facts_of(signature, bundle.shown, bundle.vocab, marks)
    if seen.get("rows_by") and facts.logits.value is Logits.ALL:
        facts = replace(facts, logits=Fact.unknown(f"{ROWS_BY} {seen['rows_by']}", *facts.logits.evidence))
    windows = tuple(int(size) for size in seen.get("windows", ()))
    notes = tuple(f"{state.name}: {state.reason}" for state in facts.states.value or () if state.reason)
    notes += tuple(map(str, seen.get("notes", ())))
    if windows:
        notes += (f"sliding windows in the program: {', '.join(map(str, windows))}",)
    return Subject(signature, facts, windows, bool(seen.get("experts")), notes=notes)


def why_not_run(subject: Subject, options: ProbeOptions, vocab: int | None) -> str:
    """Why the graph is not run; empty when it can be."""
    if options.mode is Mode.INSPECT:
        return "inspection only"
    if options.graph and subject.name != options.graph:
        return f"only {options.graph} was asked for"
    if subject.facts.kind.value is not Kind.DECODER:
        return "not a decoder"
    try:
        feed(subject.signature, ports(subject.signature, vocab), options.positions, vocab)
    except NotExecutable as error:
        return f"not executable: {error}"
    return ""


def why_not_timed(subject: Subject, options: ProbeOptions, vocab: int | None, scope: str = "") -> str:
    """Why the graph is not timed: one of a fixed width never is, a refuted one only where timing alone was asked.

    What evaluates a program (scope *program*) is never timed: its costs are nobody's.
    """
    if scope == "program":
        return "the program was evaluated, not executed; its times say nothing of any device"
    width = ports(subject.signature, vocab).query_width
    if width is not None and width > 0:
        return f"the query is pinned to S={width}"
    if subject.refuted and options.mode is not Mode.VERIFY_COST:
        return "the graph is refuted"
    return ""
