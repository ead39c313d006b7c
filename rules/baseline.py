"""A baseline: the findings of one day, so that a later scan reports only new ones (`spec-audit.baseline/1`)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rules.fingerprints import fingerprints
from rules.fixes import Judged
from rules.version import NAME, VERSION

SCHEMA = "spec-audit.baseline/1"


class BaselineError(ValueError):
    """What was read is no baseline; the message says why."""


def record(graphs: Iterable[Judged]) -> dict[str, Any]:
    """The findings of these graphs as plain data: a fingerprint each, with what a reviewer wants to read beside it."""
    return {
        "schema": SCHEMA,
        "tool": {"name": NAME, "version": VERSION},
        "findings": [
            {"fingerprint": fingerprint, "rule": finding.rule, "graph": item.graph.id, "message": finding.message}
            for item in graphs
            for finding, fingerprint in zip(
                (*item.judgement.reasons, *item.judgement.advice), fingerprints(item), strict=True
            )
        ],
    }


def known(document: Any) -> frozenset[str]:
    """The fingerprints in a baseline; `BaselineError` for anything else."""
    if not isinstance(document, dict) or document.get("schema") != SCHEMA:
        raise BaselineError(f"not a baseline (schema {SCHEMA}); record one with scan --update-baseline")
    findings = document.get("findings")
    if not isinstance(findings, list):
        raise BaselineError("`findings` has to be a list")
    found = set()
    for number, item in enumerate(findings):
        fingerprint = item.get("fingerprint") if isinstance(item, dict) else None
        if not isinstance(fingerprint, str) or not fingerprint:
            raise BaselineError(f"finding {number} has no fingerprint")
        found.add(fingerprint)
    return frozenset(found)
