"""SARIF 2.1.0, for code scanning: the findings of every model, each on the line that decides it.

A waived finding is a result with a `suppression`; one that the baseline knows is left out, as a reader that does not
compare runs would show it as new.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any
from urllib.parse import quote

from reports.places import in_repository, shown_at
from reports.rule_page import page, titles
from reports.wording import plain
from rules.audit import Audit, Reported
from rules.expect import Broken
from rules.facts import FileStatus, Place
from rules.models import Model
from rules.registry import all_rules
from rules.rule import Severity
from rules.unknown import REASONS
from rules.version import NAME, VERSION

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
FINGERPRINT = "specAudit/v1"
_EXPECTATION = "broken-expectation"
_EXPECTATION_TEXT = "A model does not have the verdict that the configuration promises."
_NO_DECODER = "not-a-decoder"


class SarifReport:
    """One run. Levels are the severities of the rules; that a graph is no decoder is only noted."""

    def render(self, audit: Audit) -> str:
        return json.dumps(_log(audit), indent=1, ensure_ascii=True) + "\n"


def _log(audit: Audit) -> dict[str, Any]:
    rules = _rules()
    index = {rule["id"]: number for number, rule in enumerate(rules)}
    results = [*_broken(audit, index), *_results(audit, index)]
    run = {
        "tool": {"driver": {"name": NAME, "semanticVersion": VERSION, "rules": rules}},
        "columnKind": "unicodeCodePoints",
        "invocations": [{"executionSuccessful": True, "toolExecutionNotifications": list(_notifications(audit))}],
        "results": results,
    }
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}


def _rules() -> list[dict[str, Any]]:
    levels = {rule.id: str(rule.severity) for rule in all_rules()} | {_NO_DECODER: str(Severity.NOTE)}
    texts = {rule.id: rule.summary for rule in all_rules()} | {reason.id: reason.summary for reason in REASONS}
    found = [_rule(name, texts[name], page(name), levels.get(name, str(Severity.WARNING))) for name in titles()]
    return [*found, _rule(_EXPECTATION, _EXPECTATION_TEXT, _EXPECTATION_TEXT, str(Severity.ERROR))]


def _rule(name: str, summary: str, help_: str, level: str) -> dict[str, Any]:
    return {
        "id": name,
        "name": "".join(word.capitalize() for word in name.split("-")),
        "shortDescription": {"text": summary},
        "fullDescription": {"text": summary},
        "help": {"text": help_, "markdown": help_},
        "defaultConfiguration": {"level": level},
        "properties": {"tags": ["speculative-decoding"]},
    }


def _results(audit: Audit, index: dict[str, int]) -> Iterator[dict[str, Any]]:
    for model in audit.models:
        for reported in audit.findings(audit.by_id[model.primary]):
            if not reported.known:
                yield _result(audit, model, reported, index)


def _result(audit: Audit, model: Model, reported: Reported, index: dict[str, int]) -> dict[str, Any]:
    finding, graph = reported.finding, audit.by_id[model.primary].graph
    fix = f" Fix: {plain(finding.fix)}." if finding.fix else ""
    level = Severity.NOTE if finding.rule == _NO_DECODER else finding.severity
    result: dict[str, Any] = {
        "ruleId": finding.rule,
        "ruleIndex": index[finding.rule],
        "level": str(level),
        "message": _text(f"{plain(model.id)}: {plain(finding.message)}.{fix}"),
        "locations": [_location(audit, shown_at(audit, finding.evidence, graph))],
        "partialFingerprints": {FINGERPRINT: reported.fingerprint},
        "properties": {
            "model": plain(model.id),
            "graph": plain(graph.id),
            "verdict": str(model.verdict),
            "confidence": str(finding.confidence),
        },
    }
    if finding.evidence:
        result["codeFlows"] = [_flow(audit, finding.evidence)]
    if audit.policy.baseline is not None:
        result["baselineState"] = "new"
    if reported.waiver:
        kind = "inSource" if reported.waiver.place else "external"
        result["suppressions"] = [{"kind": kind, "status": "accepted", "justification": plain(reported.waiver.reason)}]
    return result


def _flow(audit: Audit, evidence: Sequence[Place]) -> dict[str, Any]:
    """From the export call to the place that decides."""
    return {"threadFlows": [{"locations": [{"location": _location(audit, place)} for place in evidence]}]}


def _broken(audit: Audit, index: dict[str, int]) -> Iterator[dict[str, Any]]:
    for item in audit.broken:
        yield {
            "ruleId": _EXPECTATION,
            "ruleIndex": index[_EXPECTATION],
            "level": "error",
            "message": _text(plain(item.message)),
            "locations": [_location(audit, promised_at(audit, item))],
            "partialFingerprints": {FINGERPRINT: plain(f"{_EXPECTATION}/{item.expectation.model}/{item.model}")},
        }


def promised_at(audit: Audit, item: Broken) -> Place:
    """Where a broken expectation is shown: at the reason of the model's verdict, else in the configuration."""
    model = next((model for model in audit.models if model.id == item.model), None)
    if model is None:
        return Place(audit.policy.configuration or "spec-audit.toml", 1)
    primary = audit.by_id[model.primary]
    evidence = primary.judgement.primary.evidence if primary.judgement.primary else ()
    return shown_at(audit, evidence, primary.graph)


def _notifications(audit: Audit) -> Iterator[dict[str, Any]]:
    for file in audit.scan.files:
        if file.status in (FileStatus.ERROR, FileStatus.SKIPPED):
            yield {
                "level": "warning" if file.status is FileStatus.ERROR else "note",
                "message": _text(plain(file.reason) or str(file.status)),
                "locations": [_location(audit, Place(file.path, 0))],
            }
    for warning in audit.scan.warnings:
        yield {"level": "note", "message": _text(plain(warning))}


def _location(audit: Audit, place: Place) -> dict[str, Any]:
    path = in_repository(audit, place.path).encode("utf-8", "surrogateescape")
    location: dict[str, Any] = {"physicalLocation": {"artifactLocation": {"uri": quote(path)}}}
    if place.line:
        location["physicalLocation"]["region"] = {"startLine": place.line}
    if place.note:
        location["message"] = _text(plain(place.note))
    return location


def _text(text: str) -> dict[str, Any]:
    return {"text": text}
