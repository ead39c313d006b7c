"""The report for a terminal: a table of models, then the reasons with their evidence."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from reports.order import groups, loose
from reports.silence import silence
from reports.wording import command, logits_word, plain, plural, query_word, states_word, why
from rules.audit import Audit, Reported
from rules.facts import FileStatus, GraphFacts, Kv, Place
from rules.fixes import Judged
from rules.models import Model
from rules.rule import Finding
from rules.verdict import Verdict

_COLOURS = {Verdict.ELIGIBLE: "32", Verdict.OUT: "31", Verdict.UNRESOLVED: "33"}
_HEADER = ("VERDICT", "MODEL", "STATES", "QUERY", "LOGITS", "REASONS")


@dataclass(frozen=True, slots=True)
class TextReport:
    """Plain text, with colours of the verdicts where `colour` is set."""

    colour: bool = False

    def render(self, audit: Audit) -> str:
        return "\n".join(self._lines(audit)) + "\n"

    def _lines(self, audit: Audit) -> Iterator[str]:
        for expectation in audit.broken:
            yield self._paint("expectation broken: ", "1;31") + plain(expectation.message)
        if audit.broken:
            yield ""
        ordered = groups(audit)
        if not ordered:
            yield "No graph was found: no script below the root reaches an export call that is known."
        else:
            yield from self._table([model for group in ordered for model in group.models], audit)
        for group in ordered:
            yield ""
            yield self._paint(f"{group.title} ({len(group.models)})", "1")
            for model in group.models:
                yield from self._model(model, audit)
        yield from self._loose(audit)
        yield from self._files(audit)
        lines = list(silence(audit))
        if lines:
            yield ""
            yield from (plain(line) for line in lines)

    def _table(self, models: Sequence[Model], audit: Audit) -> Iterator[str]:
        rows = [_HEADER]
        for model in models:
            primary = audit.by_id[model.primary]
            facts = primary.graph.facts
            rows.append(
                (
                    str(model.verdict),
                    plain(model.id),
                    states_word(facts),
                    query_word(facts),
                    logits_word(facts),
                    why(primary),
                )
            )
        widths = [max(len(row[column]) for row in rows) for column in range(len(_HEADER))]
        for row in rows:
            cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
            cells[0] = self._paint(cells[0], "1" if row is _HEADER else _COLOURS[Verdict(row[0])])
            yield "  ".join(cells).rstrip()

    def _model(self, model: Model, audit: Audit) -> Iterator[str]:
        primary = audit.by_id[model.primary]
        if "not-a-decoder" in primary.judgement.broken:
            place = primary.judgement.findings[0].primary
            facts = primary.graph.facts
            without = "  no cache" if facts.states.value == () and facts.kv.value is Kv.NONE else ""
            yield f"  {plain(model.id)}{f'  {plain(str(place))}' if place else ''}{without}"
            return
        yield ""
        yield "  " + self._paint(plain(model.id), "1") + f": {self._says(primary)}"
        if model.bundle:
            yield f"    bundle  {plain(model.bundle)}"
        yield f"    run     {plain(command(primary.graph))}"
        exported = Place(primary.graph.script, primary.graph.line)
        yield f"    graph   {plain(primary.graph.graph)} ({plain(str(exported))})"
        for rules, reported in _alike(audit.findings(primary)[: len(primary.judgement.reasons)]):
            yield from self._finding(reported.finding, rules)
            if reported.waiver:
                yield f"      waived: {plain(reported.waiver.reason)}"
            elif reported.known:
                yield "      in the baseline"
        if not primary.judgement.reasons:
            yield from self._facts(primary.graph.facts)
        if model.fix and model.fix != primary.fix:
            yield f"    fix     {plain(model.fix)}"
        for advice in primary.judgement.advice:
            yield f"    advice  {advice.rule}: {plain(advice.message)}"
        for identifier in model.graphs:
            if identifier != model.primary:
                item = audit.by_id[identifier]
                name = identifier if item.graph.graph != "*" else command(item.graph)
                yield f"    also    {plain(name)}: {self._says(item)}"

    def _finding(self, finding: Finding, rules: Sequence[str]) -> Iterator[str]:
        message = finding.message if len(rules) == 1 else _reason(finding)
        yield f"    {', '.join(rules)}: {plain(message)}"
        places = [(plain(str(place)), plain(place.note)) for place in finding.evidence]
        noted = {where for where, note in places if note}
        places = [(where, note) for where, note in places if note or where not in noted]
        width = max((len(where) for where, note in places if note), default=0)
        for where, note in places:
            yield f"      {where.ljust(width)}  {note}".rstrip()
        if finding.fix:
            yield f"      fix: {plain(finding.fix)}"

    def _facts(self, facts: GraphFacts) -> Iterator[str]:
        """What an eligible graph was judged by, each fact with the place that decides it."""
        for name, value, fact in (
            ("states", states_word(facts), facts.states),
            ("query", query_word(facts), facts.query),
            ("logits", logits_word(facts), facts.logits),
        ):
            where = f"  ({plain(str(fact.evidence[-1]))})" if fact.evidence else ""
            yield f"    {name:7} {value}{where}"

    def _loose(self, audit: Audit) -> Iterator[str]:
        others = loose(audit)
        if not others:
            return
        yield ""
        yield self._paint(f"other runs of the same scripts ({plural(len(others), 'graph')})", "1")
        for item in others:
            yield f"  {plain(item.graph.id)}: {self._says(item)}"

    def _files(self, audit: Audit) -> Iterator[str]:
        for status, title in (
            (FileStatus.ERROR, "files that could not be read"),
            (FileStatus.SKIPPED, "files skipped"),
        ):
            files = [file for file in audit.scan.files if file.status is status]
            if files:
                yield ""
                yield self._paint(f"{title} ({len(files)})", "1")
                for file in files:
                    yield f"  {plain(file.path)}: {plain(file.reason)}"

    def _says(self, item: Judged) -> str:
        verdict = item.judgement.verdict
        primary = item.judgement.primary
        said = self._paint(str(verdict), _COLOURS[verdict])
        return f"{said} by {primary.rule}" if primary else said

    def _paint(self, text: str, code: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self.colour else text


_UNKNOWN = " unknown: "


def _reason(finding: Finding) -> str:
    """Why a fact is not known, without the name of the fact."""
    return finding.message.partition(_UNKNOWN)[2]


def _alike(found: Sequence[Reported]) -> Iterator[tuple[list[str], Reported]]:
    """Findings with their rules: facts that are not known for one and the same reason are told together."""
    groups: list[tuple[list[str], Reported]] = []
    for reported in found:
        finding = reported.finding
        rules, other = groups[-1] if groups else ([], None)
        same = (
            other is not None
            and _UNKNOWN in finding.message
            and (_reason(finding), finding.evidence, finding.fix, reported.waiver, reported.known)
            == (_reason(other.finding), other.finding.evidence, other.finding.fix, other.waiver, other.known)
        )
        if same:
            rules.append(finding.rule)
        else:
            groups.append(([finding.rule], reported))
    return iter(groups)
