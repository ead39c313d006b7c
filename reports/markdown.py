"""Markdown, for a step summary or a comment: the table of models, then what decides each of them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import escape

from reports.order import groups
from reports.places import in_repository
from reports.silence import silence
from reports.wording import logits_word, plain, query_word, states_word, summary
from rules.audit import Audit
from rules.facts import FileStatus
from rules.models import Model
from rules.verdict import Verdict

_MARKS = {Verdict.ELIGIBLE: "✅", Verdict.OUT: "❌", Verdict.UNRESOLVED: "❔"}
_LARGEST = 900_000
"""A step summary may hold 1 MiB."""
_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#+!|~&$@]|:(?=//)|\.(?<=www\.))")


class MarkdownReport:
    """GitHub's Markdown. Text that is not ours is escaped, so that it shows as it is."""

    def render(self, audit: Audit) -> str:
        kept: list[str] = []
        size = 0
        for block in _blocks(audit):
            size += len(block.encode("utf-8", "backslashreplace")) + 2
            if size > _LARGEST:
                kept.append("*The rest is left out: it is too long for a step summary. See the other formats.*")
                break
            kept.append(block)
        return "\n\n".join(kept) + "\n"


def text(value: str) -> str:
    """Foreign text with everything that Markdown or HTML would read as markup escaped."""
    return _SPECIAL.sub(r"\\\1", plain(value)).replace("\\&", "&amp;").replace("\\<", "&lt;").replace("\\>", "&gt;")


def code(value: str) -> str:
    """Foreign text as code, whatever backticks and bars are in it.

    No `<` of it is ever written out: renderers do not agree where a block of HTML ends and code begins.
    """
    if re.search("[<>&]", value):
        return f"<code>{text(value)}</code>"
    shown = plain(value).replace("|", "\\|") or " "
    fence = "`" * (max((len(run) for run in re.findall("`+", shown)), default=0) + 1)
    pad = " " if shown.startswith("`") or shown.endswith("`") else ""
    return f"{fence}{pad}{shown}{pad}{fence}"


def _blocks(audit: Audit) -> Iterator[str]:
    yield "## spec-audit"
    yield text(summary(audit)) + "."
    for item in audit.broken:
        yield f"**Expectation broken:** {text(item.message)}"
    notes = [f"- {text(line)}" for line in silence(audit)]
    if notes:
        yield "\n".join(notes)
    ordered = [model for group in groups(audit) for model in group.models]
    if ordered:
        rows = ["| | model | states | query | logits | because |", "| --- | --- | --- | --- | --- | --- |"]
        yield "\n".join([*rows, *(_row(model, audit) for model in ordered)])
    for model in ordered:
        yield from _model(model, audit)
    unread = [file for file in audit.scan.files if file.status is FileStatus.ERROR]
    if unread:
        yield "### Files that could not be read"
        yield "\n".join(f"- {code(file.path)}: {text(file.reason)}" for file in unread)


def _row(model: Model, audit: Audit) -> str:
    item = audit.by_id[model.primary]
    facts = item.graph.facts
    because = ", ".join(dict.fromkeys(reason.rule for reason in item.judgement.reasons)) or "-"
    waived = " (silenced)" if audit.silenced(model) else ""
    words = (states_word(facts), query_word(facts), logits_word(facts))
    cells = (f"{_MARKS[model.verdict]} {model.verdict}{waived}", code(model.id), *map(text, words), because)
    return f"| {' | '.join(cells)} |"


def _model(model: Model, audit: Audit) -> Iterator[str]:
    item = audit.by_id[model.primary]
    if model.verdict is Verdict.ELIGIBLE or "not-a-decoder" in item.judgement.broken:
        return
    yield f"<details><summary>{escape(plain(model.id))}: {item.judgement.says()}</summary>"
    lines = []
    for reported in audit.findings(item):
        finding = reported.finding
        lines.append(f"- **{finding.rule}** ({finding.severity}): {text(finding.message)}")
        for place in finding.evidence:
            note = f" {text(place.note)}" if place.note else ""
            where = in_repository(audit, str(place))
            lines.append(f"    - {code(where)}{note}")
        if finding.fix:
            lines.append(f"    - fix: {text(finding.fix)}")
        if reported.waiver:
            lines.append(f"    - waived: {text(reported.waiver.reason)}")
        elif reported.known:
            lines.append("    - in the baseline")
    yield "\n".join(lines)
    yield "</details>"
