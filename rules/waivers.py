"""Waivers: findings that were looked at and accepted, with the reason. They silence, and never change a verdict."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date

from rules.expect import matches
from rules.facts import Place
from rules.fingerprints import fingerprints
from rules.fixes import Judged
from rules.models import Model
from rules.registry import all_rules
from rules.rule import Finding
from rules.unknown import REASONS


@dataclass(frozen=True, slots=True)
class Waiver:
    """Silences findings of `rules`, for `reason`.

    A comment stands at `place` and concerns `line` of that file; else the configuration names a `model` (as an
    expectation does), and perhaps the last day, `expires`. `problem` says why a comment cannot be used.
    """

    rules: tuple[str, ...]
    reason: str
    model: str = ""
    expires: date | None = None
    place: Place | None = None
    line: int = 0
    problem: str = ""

    def __str__(self) -> str:
        where = str(self.place) if self.place else f"{self.model} in the configuration"
        return f"{', '.join(self.rules)} ({where})"


class State(enum.StrEnum):
    """What became of a waiver. `STALE`: it silences nothing; `UNUSABLE`: it has no reason, or names no rule."""

    IN_FORCE = "in force"
    STALE = "stale"
    EXPIRED = "expired"
    UNUSABLE = "unusable"


@dataclass(frozen=True, slots=True)
class Use:
    """A waiver, what became of it, and how many findings it silences."""

    waiver: Waiver
    state: State
    findings: int = 0

    @property
    def message(self) -> str:
        """One sentence for the person who has to look after the waiver."""
        if self.state is State.IN_FORCE:
            return f"{self.waiver} silences {self.findings}: {self.waiver.reason}"
        if self.state is State.STALE:
            return f"{self.waiver} silences nothing: remove it"
        if self.state is State.EXPIRED:
            return f"{self.waiver} expired on {self.waiver.expires}: look again, then renew or remove it"
        return f"{self.waiver} is not used: {self.waiver.problem}"


def known_rules() -> tuple[str, ...]:
    """What a waiver may name."""
    return (*(rule.id for rule in all_rules()), *(reason.id for reason in REASONS))


def settle(
    waivers: Sequence[Waiver], graphs: Iterable[Judged], models: Iterable[Model], today: date | None
) -> tuple[Mapping[str, Waiver], tuple[Use, ...]]:
    """The silenced findings by fingerprint, and what became of each waiver. Without `today` nothing expires."""
    owners: dict[str, list[str]] = {}
    for model in models:
        for identifier in model.graphs:
            owners.setdefault(identifier, []).append(model.id)
    usable = [waiver for waiver in waivers if not waiver.problem and not _expired(waiver, today)]
    counts = dict.fromkeys(range(len(usable)), 0)
    silenced: dict[str, Waiver] = {}
    for item in graphs:
        findings = (*item.judgement.reasons, *item.judgement.advice)
        for finding, fingerprint in zip(findings, fingerprints(item), strict=True):
            for number, waiver in enumerate(usable):
                if _concerns(waiver, finding, owners.get(item.graph.id, [])):
                    counts[number] += 1
                    silenced.setdefault(fingerprint, waiver)
    uses = []
    for waiver in waivers:
        if waiver.problem:
            uses.append(Use(waiver, State.UNUSABLE))
        elif _expired(waiver, today):
            uses.append(Use(waiver, State.EXPIRED))
        else:
            count = counts[usable.index(waiver)]
            uses.append(Use(waiver, State.IN_FORCE if count else State.STALE, count))
    return silenced, tuple(uses)


def _expired(waiver: Waiver, today: date | None) -> bool:
    return waiver.expires is not None and today is not None and today > waiver.expires


def _concerns(waiver: Waiver, finding: Finding, owners: Iterable[str]) -> bool:
    """A comment concerns the findings that its line decides: at a shared export call it would silence too much."""
    if finding.rule not in waiver.rules:
        return False
    if waiver.place is not None:
        place = finding.primary
        return place is not None and (place.path, place.line) == (waiver.place.path, waiver.line)
    return any(matches(waiver.model, owner) for owner in owners)
