"""What a rule is, and what it says when a graph breaks it."""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass

from rules.facts import GraphFacts, Place


class Severity(enum.StrEnum):
    """What a finding does to the verdict: an error makes the graph `out`, a warning `unresolved`, a note nothing."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


class Confidence(enum.StrEnum):
    """How sure a finding is: `LOW` where it cites no place."""

    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"


@dataclass(frozen=True, slots=True)
class Finding:
    """A rule that a graph breaks, an advice, or a fact that stayed unknown.

    `evidence` runs from the export call to the place that decides; `fix` is empty where nothing is known to help.
    """

    rule: str
    message: str
    severity: Severity
    confidence: Confidence
    evidence: tuple[Place, ...] = ()
    fix: str = ""

    @property
    def primary(self) -> Place | None:
        """The place that decides: the end of the evidence."""
        return self.evidence[-1] if self.evidence else None


@dataclass(frozen=True, slots=True)
class Breach:
    """What a rule's own check returns: one sentence, and the chain of places that shows it."""

    message: str
    evidence: tuple[Place, ...] = ()


@dataclass(frozen=True, slots=True)
class Example:
    """A graph that keeps or breaks a rule; `title` says how its script is written."""

    title: str
    facts: GraphFacts


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule or advice.

    `order` is its place among the rules; the broken rule with the lowest is the primary one. `breach` returns None
    when the rule holds *or cannot be judged*: an unknown fact is the verdict's business (`rules.unknown`). `fix` is an
    instruction about the line that decides (`{place}`), empty where no line does it; `lift` gives the facts that the
    graph would have once that line is changed, so that a fix is only promised after it was judged. A rule that is
    `final` leaves nothing for the others to ask.
    """

    id: str
    order: int
    severity: Severity
    summary: str
    explanation: str
    breach: Callable[[GraphFacts], Breach | None]
    valid: tuple[Example, ...]
    invalid: tuple[Example, ...]
    fix: str = ""
    lift: Callable[[GraphFacts], GraphFacts] | None = None
    final: bool = False
    confidence: Confidence = Confidence.HIGH

    def check(self, facts: GraphFacts) -> Finding | None:
        """The finding, when `facts` definitely break this rule."""
        breach = self.breach(facts)
        if breach is None:
            return None
        evidence = tuple(dict.fromkeys(breach.evidence))
        confidence = self.confidence if evidence else Confidence.LOW
        where = str(evidence[-1]) if evidence else "the export call"
        return Finding(self.id, breach.message, self.severity, confidence, evidence, self.fix.format(place=where))
