"""From the facts of a graph to its verdict.

A wrong `eligible` is the worst thing that can be printed, so it is given only when every fact is known, no rule is
broken, no rule crashed, and the facts fit together. A definitely broken rule makes a graph `out` whatever else is
unknown.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass

from rules.facts import GraphFacts
from rules.registry import advice_rules, verdict_rules
from rules.rule import Confidence, Finding, Rule, Severity
from rules.unknown import unknowns


class Verdict(enum.StrEnum):
    """What is said of a graph, and of a model: that of its primary graph."""

    ELIGIBLE = "eligible"
    OUT = "out"
    UNRESOLVED = "unresolved"


@dataclass(frozen=True, slots=True)
class Judgement:
    """A verdict with what led to it.

    `findings` are the broken rules: those that make a graph out first, each group in the rules' order. `unresolved`
    holds what stayed unknown.
    """

    verdict: Verdict
    findings: tuple[Finding, ...] = ()
    unresolved: tuple[Finding, ...] = ()
    advice: tuple[Finding, ...] = ()

    @property
    def reasons(self) -> tuple[Finding, ...]:
        """Why the verdict is what it is; the first is the primary reason. Unknown facts do not weaken an `out`."""
        return self.findings if self.verdict is Verdict.OUT else self.findings + self.unresolved

    @property
    def primary(self) -> Finding | None:
        return self.reasons[0] if self.reasons else None

    @property
    def broken(self) -> tuple[str, ...]:
        """The identifiers of the broken rules."""
        return tuple(finding.rule for finding in self.findings)

    def says(self) -> str:
        """The verdict in words: `eligible`, `out by static-query`, `unresolved by fixed-window`."""
        return f"{self.verdict} by {self.primary.rule}" if self.primary else str(self.verdict)


def judge(facts: GraphFacts) -> Judgement:
    """The verdict of one graph."""
    findings: list[Finding] = []
    crashes: list[Finding] = []
    for rule in verdict_rules():
        finding, crash = _check(rule, facts)
        if crash:
            crashes.append(crash)
        if finding:
            findings.append(finding)
            if rule.final:
                break
    advice: list[Finding] = []
    for rule in advice_rules():
        finding, crash = _check(rule, facts)
        advice.extend(item for item in (finding, crash) if item)
    findings.sort(key=lambda finding: finding.severity is not Severity.ERROR)
    unresolved = (*unknowns(facts), *crashes)
    if findings and findings[0].severity is Severity.ERROR:
        verdict = Verdict.OUT
    elif findings or unresolved:
        verdict = Verdict.UNRESOLVED
    else:
        verdict = Verdict.ELIGIBLE
    return Judgement(verdict, tuple(findings), unresolved, tuple(advice))


def _check(rule: Rule, facts: GraphFacts) -> tuple[Finding | None, Finding | None]:
    """The finding of one rule, or the finding that it crashed: one bad rule must not take the others with it."""
    try:
        return rule.check(facts), None
    except Exception as error:
        message = f"rule `{rule.id}` failed ({type(error).__name__}: {error}), so it was not judged"
        severity = Severity.NOTE if rule.severity is Severity.NOTE else Severity.WARNING
        return None, Finding("rule-crash", message, severity, Confidence.LOW)
