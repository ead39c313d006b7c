"""The page of a rule, in Markdown: what `explain` prints, and what stands in docs/rules/."""

from __future__ import annotations

from collections.abc import Iterator

from reports.wording import kind_word, kv_word, logits_word, query_word
from rules.registry import all_rules, rule
from rules.rule import Example, Rule, Severity
from rules.unknown import FIX, REASONS

_EFFECT = {
    Severity.ERROR: "the graph is **out**",
    Severity.WARNING: "the graph is **unresolved**",
    Severity.NOTE: "advice, which never changes a verdict",
}


def titles() -> tuple[str, ...]:
    """Everything that can be explained, in the order of the rules."""
    return (*(item.id for item in all_rules()), *(reason.id for reason in REASONS))


def page(identifier: str) -> str:
    """The page of a rule, an advice or a reason for being unresolved; `KeyError` for any other name."""
    reasons = {reason.id: reason for reason in REASONS}
    if identifier in reasons:
        return _lines(
            [
                f"# {identifier}",
                "",
                reasons[identifier].summary,
                "",
                "Effect: the graph is **unresolved**.",
                "",
                f"Fix: {FIX}.",
            ]
        )
    return _lines(_rule(rule(identifier)))


def listing() -> str:
    """Every rule, advice and reason with its summary, as a table."""
    rows = [(item.id, str(item.severity), item.summary) for item in all_rules()]
    rows += [(reason.id, str(Severity.WARNING), reason.summary) for reason in REASONS]
    width = max(len(row[0]) for row in rows)
    return _lines(f"{identifier:{width}}  {severity:7}  {text}" for identifier, severity, text in rows)


def index() -> str:
    """The page that leads to all the others, in Markdown."""
    effects = {Severity.ERROR: "out", Severity.WARNING: "unresolved", Severity.NOTE: "advice"}
    rows = [(item.id, effects[item.severity], item.summary) for item in all_rules()]
    rows += [(reason.id, effects[Severity.WARNING], reason.summary) for reason in REASONS]
    return _lines(
        [
            "# Rules",
            "",
            "All broken rules of a graph are listed; the first in this order is the primary one. Advice never changes",
            "a verdict. `spec-audit explain RULE` prints the same pages.",
            "",
            "| rule | effect | |",
            "| --- | --- | --- |",
            *(f"| [{name}](rules/{name}.md) | {effect} | {text} |" for name, effect, text in rows),
        ]
    )


def _rule(item: Rule) -> Iterator[str]:
    yield from (f"# {item.id}", "", item.summary, "", f"Effect: {_EFFECT[item.severity]}.", "", item.explanation, "")
    if item.severity is not Severity.NOTE:
        yield from ("## Fix", "")
        yield (item.fix.format(place="at the line that the finding cites") if item.fix else "None is known.") + ""
        yield ""
    yield from ("## Examples", "", "Keep the rule:", "")
    yield from (_example(example) for example in item.valid)
    yield from ("", "Break it:" if item.severity is not Severity.NOTE else "Receive the advice:", "")
    for example in item.invalid:
        finding = item.check(example.facts)
        yield _example(example) + (f"\n  > {finding.message}" if finding else "")


def _example(example: Example) -> str:
    facts = example.facts
    states = "unknown" if facts.states.value is None else ", ".join(f"{s.name} ({s.role})" for s in facts.states.value)
    marks = "".join(f"; {mark.trait}" for mark in facts.marks)
    return (
        f"- {example.title}: {kind_word(facts)}; states {states or 'none'}; query {query_word(facts)}; "
        f"logits {logits_word(facts)}; kv {kv_word(facts)}{marks}"
    )


def _lines(lines: list[str] | Iterator[str]) -> str:
    return "\n".join(lines) + "\n"
