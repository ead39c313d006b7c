"""The report for programs: `spec-audit.scan/1`, a frozen contract (`schemas/scan-1.schema.json`)."""

from __future__ import annotations

import io
import json
from typing import Any

from rules.as_json import facts_as_json, finding_as_json
from rules.audit import Audit, Reported
from rules.expect import Broken
from rules.fixes import Judged
from rules.models import Model
from rules.provenance import Provenance
from rules.version import NAME, VERSION
from rules.waivers import Use

SCHEMA = "spec-audit.scan/1"


class JsonReport:
    """Keys may be added; those of the contract stay as they are. A fact that is unknown is null."""

    def render(self, audit: Audit) -> str:
        out = io.StringIO()  # `dumps` would hold the text in its smallest pieces first, at several times the memory
        json.dump(document(audit), out, indent=1, ensure_ascii=False)
        return out.getvalue() + "\n"


def document(audit: Audit) -> dict[str, Any]:
    """The report as plain data."""
    return {
        "schema": SCHEMA,
        "tool": {"name": NAME, "version": VERSION},
        "root": audit.scan.root,
        "files": [{"path": file.path, "status": str(file.status), "reason": file.reason} for file in audit.scan.files],
        "graphs": [_graph(item, audit) for item in audit.graphs],
        "models": [_model(model, audit) for model in audit.models],
        "expectations": [_expectation(broken) for broken in audit.broken],
        "waivers": [_waiver(use) for use in audit.uses],
        "baseline": None
        if audit.policy.baseline is None
        else {"recorded": len(audit.policy.baseline), "known": audit.recorded, "gone": audit.gone},
        "warnings": list(audit.scan.warnings),
        "provenance": _provenance(audit.provenance),
    }


def _graph(item: Judged, audit: Audit) -> dict[str, Any]:
    graph = item.graph
    found = audit.findings(item)
    split = len(item.judgement.reasons)
    return {
        "id": graph.id,
        "script": graph.script,
        "line": graph.line,
        "graph": graph.graph,
        "bundle": graph.bundle,
        "family": graph.family,
        "by": graph.by or None,
        "invocation": {
            "kind": str(graph.invocation.kind),
            "recipe": graph.invocation.recipe or None,
            "argv": list(graph.invocation.argv),
        },
        "verdict": str(item.judgement.verdict),
        "facts": facts_as_json(graph.facts),
        "reasons": [_finding(reported) for reported in found[:split]],
        "advice": [_finding(reported) for reported in found[split:]],
        "fixable_by": str(item.fixed_by),
        "changes": [
            {
                "text": outcome.change.text,
                "flag": outcome.change.flag,
                "argv": list(outcome.change.argv),
                "verdict": str(outcome.judgement.verdict) if outcome.judgement else None,
                "reasons": [reason.rule for reason in outcome.judgement.reasons] if outcome.judgement else [],
            }
            for outcome in item.outcomes
        ],
    }


def _finding(reported: Reported) -> dict[str, Any]:
    return {
        **finding_as_json(reported.finding),
        "fix": reported.finding.fix,
        "fingerprint": reported.fingerprint,
        "waived": reported.waiver.reason if reported.waiver else None,
        "known": reported.known,
    }


def _waiver(use: Use) -> dict[str, Any]:
    waiver = use.waiver
    return {
        "rules": list(waiver.rules),
        "reason": waiver.reason,
        "model": waiver.model or None,
        "path": waiver.place.path if waiver.place else None,
        "line": waiver.place.line if waiver.place else None,
        "expires": waiver.expires.isoformat() if waiver.expires else None,
        "state": str(use.state),
        "findings": use.findings,
        "message": use.message,
    }


def _model(model: Model, audit: Audit) -> dict[str, Any]:
    return {
        "id": model.id,
        "family": model.family,
        "recipe": model.recipe or None,
        "bundle": model.bundle,
        "graphs": list(model.graphs),
        "verdict": str(model.verdict),
        "primary": model.primary,
        "fixable_by": str(model.fixed_by),
        "fix": model.fix,
        "silenced": audit.silenced(model),
    }


def _expectation(broken: Broken) -> dict[str, Any]:
    return {
        "expected": str(broken.expectation.verdict),
        "model": broken.model,
        "got": str(broken.got) if broken.got else None,
        "message": broken.message,
    }


def _provenance(held: Provenance) -> dict[str, Any]:
    return {
        "command": list(held.command),
        "configuration": held.configuration or None,
        "commit": held.commit or None,
        "source_url": held.source_url or None,
    }
