"""The rules, found by their files: every module of this package, or of `rules.advice`, that defines `RULE`."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator
from functools import cache

from rules.rule import Rule, Severity

_PACKAGES = ("rules", "rules.advice")


@cache
def all_rules() -> tuple[Rule, ...]:
    """Every rule and advice: rules first, each group by `order`."""
    found = sorted(_found(), key=lambda rule: (rule.severity is Severity.NOTE, rule.order, rule.id))
    ids = [rule.id for rule in found]
    if len(set(ids)) != len(ids):
        raise ValueError(f"two rules share an identifier: {', '.join(sorted({i for i in ids if ids.count(i) > 1}))}")
    return tuple(found)


def verdict_rules() -> tuple[Rule, ...]:
    """The rules that decide a verdict; the first broken one is the primary reason."""
    return tuple(rule for rule in all_rules() if rule.severity is not Severity.NOTE)


def advice_rules() -> tuple[Rule, ...]:
    """The rules that never change a verdict."""
    return tuple(rule for rule in all_rules() if rule.severity is Severity.NOTE)


def rule(identifier: str) -> Rule:
    """The rule of that identifier; `KeyError` when there is none."""
    return {rule.id: rule for rule in all_rules()}[identifier]


def _found() -> Iterator[Rule]:
    for package in _PACKAGES:
        path = importlib.import_module(package).__path__
        for module in sorted(info.name for info in pkgutil.iter_modules(path) if not info.ispkg):
            candidate = getattr(importlib.import_module(f"{package}.{module}"), "RULE", None)
            if isinstance(candidate, Rule):
                yield candidate
