"""GitHub workflow commands: annotations on the lines of a pull request.

What makes the exit status 1 is an error; any other broken rule or unknown is a warning, an advice is a notice. What is
silenced, and what is no decoder, is not annotated.
"""

from __future__ import annotations

from collections.abc import Iterator

from reports.places import in_repository, shown_at
from reports.sarif import promised_at
from reports.wording import plain
from rules.audit import Audit
from rules.expect import FailOn
from rules.facts import FileStatus, Place
from rules.models import Model
from rules.rule import Severity


class GithubReport:
    """One command a line; nothing where there is nothing to annotate."""

    def render(self, audit: Audit) -> str:
        return "".join(f"{line}\n" for line in _lines(audit))


def _lines(audit: Audit) -> Iterator[str]:
    kind = "notice" if audit.policy.level is FailOn.NEVER else "error"
    for item in audit.broken:
        yield command(kind, audit, promised_at(audit, item), "broken expectation", item.message)
    for model in audit.models:
        yield from _model(model, audit)
    for file in audit.scan.files:
        if file.status is FileStatus.ERROR:
            kind = "error" if audit.policy.level is FailOn.UNRESOLVED else "warning"
            yield command(kind, audit, Place(file.path, 1), "not read", file.reason)


def _model(model: Model, audit: Audit) -> Iterator[str]:
    item = audit.by_id[model.primary]
    for reported in audit.findings(item):
        finding = reported.finding
        if reported.silenced or finding.rule == "not-a-decoder":
            continue
        counted = "error" if audit.fails(model) else "warning"
        kind = "notice" if finding.severity is Severity.NOTE else counted
        fix = f"\nfix: {plain(finding.fix)}" if finding.fix else ""
        text = f"{plain(model.id)}: {plain(finding.message)}{fix}"
        yield command(kind, audit, shown_at(audit, finding.evidence, item.graph), finding.rule, text, clean=False)


def command(kind: str, audit: Audit, place: Place, title: str, text: str, *, clean: bool = True) -> str:
    """One annotation. A newline is kept only in a `text` that was cleaned before."""
    shown = plain(text) if clean else text
    path = _property(plain(in_repository(audit, place.path)))
    return f"::{kind} file={path},line={max(place.line, 1)},title={_property(plain(title))}::{_data(shown)}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
