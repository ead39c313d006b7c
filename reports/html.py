"""The page that a ship review reads: one self-contained file, which can be read without script and asks for nothing."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from importlib.resources import files
from typing import Any
from urllib.parse import quote

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from reports import page_words, silence_words, wording
from reports.decision_words import DECISIONS
from reports.json_report import document
from reports.review_rules import explained
from rules.audit import Audit
from rules.provenance import checked_url
from rules.review import Review, review
from rules.version import NAME, VERSION


class HtmlReport:
    """The page of a scan without probes."""

    def render(self, audit: Audit) -> str:
        return render(review(document(audit)))


def render(found: Review, given: Sequence[tuple[str, str]] = (), source_url: str = "") -> str:
    """The page, as HTML.

    `given` are the names and the schemas of the files that it was made of; `source_url` overrides the template that the
    scan recorded. Whatever is not the template's own text is escaped and freed of control characters.
    """
    scan = found.scan
    provenance = scan.get("provenance") or {}
    script = (files("reports") / "templates" / "page.js").read_text("utf-8")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    environment = _environment()
    environment.globals["link"] = _linker(source_url or str(provenance.get("source_url") or ""), provenance)
    rules = explained(found)
    environment.globals["summaries"] = {identifier: summary for identifier, summary, _ in rules}
    statuses = ("exports", "no-export", "skipped", "error")
    return environment.get_template("report.html.j2").render(
        review=found,
        scan=scan,
        provenance=provenance,
        slugs=page_words.slugs(item.model["id"] for item in found.models),
        files={status: [file for file in scan["files"] if file["status"] == status] for status in statuses},
        rules=rules,
        given=given,
        script=Markup(script),
        digest=digest,
        tool=f"{NAME} {VERSION}",
    )


def _linker(template: str, provenance: Mapping[str, Any]) -> Callable[[Mapping[str, Any]], str]:
    """From a place to its address on the repository's web view; empty where there is none, or where it is not safe."""
    commit = str(provenance.get("commit") or "")
    try:
        usable = checked_url(template) if template else ""
    except ValueError:
        usable = ""
    if "{commit}" in usable and not commit:
        usable = ""

    def link(place: Mapping[str, Any]) -> str:
        path = str(place["path"])
        if not usable or path.startswith("/") or ".." in path.split("/"):
            return ""
        filled = usable.replace("{commit}", quote(commit, safe=""))
        filled = filled.replace("{line}", str(place["line"] or 1))
        return filled.replace("{path}", quote(path, safe="/", errors="replace"))

    return link


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
    environment.globals["words"] = page_words
    environment.globals["silence"] = silence_words
    environment.globals["decisions"] = DECISIONS
    environment.globals["plural"] = wording.plural
    environment.globals["ranges"] = wording.ranges
    environment.filters["ticked"] = _ticked
    environment.filters["breakable"] = _breakable
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


def _breakable(text: str) -> Markup:
    """`text` that may be broken after the signs that join a name's parts."""
    parts = re.split(r"(?<=[/_#-])(?=.)", wording.plain(text))
    return Markup("<wbr>").join(Markup.escape(part) for part in parts)


def _finalize(value: object) -> object:
    return value if isinstance(value, Markup) else wording.plain(str(value))
