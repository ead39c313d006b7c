"""What would make a graph eligible: a flag whose change was re-evaluated, or the line to change.

No fix is promised without a judgement of the facts that it would give. A flag's facts come from the evaluator
(`Graph.changes`); a line's are the facts with the rule lifted. A change that only trades one broken rule for another is
no fix, and the text says so.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable
from dataclasses import dataclass, replace

from rules.facts import Change, Graph, GraphFacts
from rules.registry import rule
from rules.rule import Finding
from rules.verdict import Judgement, Verdict, judge

_MOST = 3
"""How many changes one text names; the rest are in the JSON report."""

# The keys stand in the order in which changes are named: leaving something out is the smallest.
_DOING = {"drop": ("dropping", "without"), "pass": ("passing", "with"), "use": ("using", "with")}


class FixedBy(enum.StrEnum):
    """What a fix would take. `SECOND_BUNDLE`: nothing, an eligible bundle comes out of the same run."""

    FLAG = "flag"
    LINE = "line"
    SECOND_BUNDLE = "second-bundle"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Outcome:
    """A change of one option, and the judgement of the graph that it gives (None: it gives no such graph)."""

    change: Change
    judgement: Judgement | None


@dataclass(frozen=True, slots=True)
class Judged:
    """A graph with its judgement, its fixes filled in."""

    graph: Graph
    judgement: Judgement
    fixed_by: FixedBy = FixedBy.NONE
    outcomes: tuple[Outcome, ...] = ()

    @property
    def fix(self) -> str:
        """The fix of the primary reason; empty where there is none."""
        return self.judgement.primary.fix if self.judgement.primary else ""


def judge_graph(graph: Graph) -> Judged:
    """The judgement of `graph`, with fixes from its counterfactuals."""
    judgement = judge(graph.facts)
    outcomes = tuple(Outcome(change, judge(change.facts) if change.facts else None) for change in graph.changes)
    if judgement.verdict is Verdict.ELIGIBLE:
        return Judged(graph, replace(judgement, advice=_without_second_bundle(judgement)), outcomes=outcomes)
    flags = _joined(sorted((_quoted(outcome.change) for outcome in outcomes if _eligible(outcome)), key=_effort))
    if flags:
        fixed_by = FixedBy.FLAG
        findings = tuple(replace(finding, fix=flags) for finding in judgement.findings)
        unresolved = tuple(replace(finding, fix=flags) for finding in judgement.unresolved)
    else:
        fixed_by = FixedBy.LINE if _line_fixes(judgement, graph.facts, outcomes) else FixedBy.NONE
        findings = tuple(replace(f, fix=_text(f, judgement, graph.facts, outcomes)) for f in judgement.findings)
        unresolved = judgement.unresolved
    advice = judgement.advice if fixed_by is not FixedBy.NONE else _without_second_bundle(judgement)
    return Judged(
        graph, replace(judgement, findings=findings, unresolved=unresolved, advice=advice), fixed_by, outcomes
    )


def _eligible(outcome: Outcome) -> bool:
    return outcome.judgement is not None and outcome.judgement.verdict is Verdict.ELIGIBLE


def _without_second_bundle(judgement: Judgement) -> tuple[Finding, ...]:
    return tuple(finding for finding in judgement.advice if finding.rule != "second-bundle")


def _lifted(facts: GraphFacts, broken: Iterable[str]) -> GraphFacts:
    for identifier in broken:
        lift = rule(identifier).lift
        facts = lift(facts) if lift else facts
    return facts


def _lifting(identifier: str, outcomes: Iterable[Outcome]) -> tuple[Outcome, ...]:
    """The changes after which the rule holds and the graph still is a decoder."""
    return tuple(
        outcome
        for outcome in outcomes
        if outcome.judgement is not None
        and identifier not in outcome.judgement.broken
        and "not-a-decoder" not in outcome.judgement.broken
    )


def _line_fixes(judgement: Judgement, facts: GraphFacts, outcomes: tuple[Outcome, ...]) -> bool:
    """Whether changing the lines that decide is known to be enough.

    A flag that lifts the primary rule and leaves the graph out shows what is behind that line, so nothing is promised.
    """
    if not judgement.broken or _lifting(judgement.broken[0], outcomes):
        return False
    return judge(_lifted(facts, judgement.broken)).verdict is Verdict.ELIGIBLE


def _text(finding: Finding, judgement: Judgement, facts: GraphFacts, outcomes: tuple[Outcome, ...]) -> str:
    """What to do about one broken rule when no single flag makes the graph eligible."""
    lifting = _lifting(finding.rule, outcomes)
    if lifting:
        return _joined((_no_fix(outcome) for outcome in lifting), "; ")
    if not finding.fix:
        return ""
    if judge(_lifted(facts, judgement.broken)).verdict is Verdict.ELIGIBLE:
        return finding.fix
    after = judge(_lifted(facts, [finding.rule]))
    return f"{finding.fix}; that alone is no fix: the graph is then {_says(after)}"


def _no_fix(outcome: Outcome) -> str:
    verb, rest = _split(outcome.change)
    doing, linked = _DOING.get(verb, ("changing", "with"))
    assert outcome.judgement is not None
    return f"{doing} `{rest}` is no fix: {linked} it the graph is {_says(outcome.judgement)}"


def _says(judgement: Judgement) -> str:
    primary = judgement.primary
    return f"{judgement.verdict} by `{primary.rule}`" if primary else str(judgement.verdict)


def _split(change: Change) -> tuple[str, str]:
    verb, _, rest = change.text.partition(" ")
    return (verb, rest) if rest and verb in _DOING else ("", change.flag or change.text)


def _quoted(change: Change) -> str:
    verb, rest = _split(change)
    return f"{verb or 'change'} `{rest}`"


def _effort(text: str) -> int:
    verb = text.partition(" ")[0]
    return list(_DOING).index(verb) if verb in _DOING else len(_DOING)


def _joined(texts: Iterable[str], separator: str = ", or ") -> str:
    return separator.join(list(dict.fromkeys(texts))[:_MOST])
