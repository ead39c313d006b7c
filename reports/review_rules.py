"""The rules that a review speaks of, with what they mean, so that the page needs nothing beside it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from rules.registry import all_rules
from rules.review import Review
from rules.unknown import REASONS


def explained(found: Review) -> tuple[tuple[str, str, tuple[str, ...]], ...]:
    """Identifier, summary and paragraphs of every rule, advice or reason that occurs, in the rules' order."""
    used = set(_used(found.scan["graphs"]))
    for item in found.models:
        for probe in item.probes:
            used |= set(_used(graph["judgement"] for graph in probe.data["graphs"]))
    known = [(rule.id, rule.summary, _paragraphs(rule.explanation)) for rule in all_rules()]
    known += [(reason.id, reason.summary, ()) for reason in REASONS]
    return tuple(entry for entry in known if entry[0] in used)


def _paragraphs(text: str) -> tuple[str, ...]:
    return tuple(" ".join(part.split()) for part in text.split("\n\n") if part.strip())


def _used(holders: Iterable[Mapping[str, Any]]) -> list[str]:
    return [finding["rule"] for holder in holders for finding in (*holder["reasons"], *holder["advice"])]
