"""The report as one self-contained page: no script, no request, readable from 360 px and in print."""

from __future__ import annotations

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from reports import wording
from reports.order import groups, loose
from rules.audit import Audit
from rules.facts import FileStatus
from rules.verdict import Verdict
from rules.version import NAME, VERSION


class HtmlReport:
    """Jinja with autoescape: whatever is not the template's own text is escaped and freed of control characters."""

    def render(self, audit: Audit) -> str:
        files = {status: [file for file in audit.scan.files if file.status is status] for status in FileStatus}
        page = _environment().get_template("report.html.j2")
        return page.render(
            audit=audit,
            groups=groups(audit),
            loose=loose(audit),
            counts=[(verdict, audit.count(verdict)) for verdict in Verdict],
            files={str(status): found for status, found in files.items()},
            tool=f"{NAME} {VERSION}",
        )


def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("reports"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        finalize=_finalize,
    )
    environment.globals["words"] = wording
    environment.filters["ticked"] = _ticked
    return environment


def _ticked(text: str) -> Markup:
    """`text` with what stands between backticks as code."""
    parts = wording.plain(text).split("`")
    if len(parts) % 2 == 0:
        return Markup.escape(wording.plain(text))
    pieces = (
        Markup("<code>{}</code>").format(part) if at % 2 else Markup.escape(part) for at, part in enumerate(parts)
    )
    return Markup("").join(pieces)


def _finalize(value: object) -> object:
    return value if isinstance(value, Markup) else wording.plain(str(value))
