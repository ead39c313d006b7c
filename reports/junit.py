"""JUnit XML: a test case for each model, failed where the exit status counts it.

A model that is out or unresolved without counting is *skipped*, with the reason: it was not promised to pass, and it is
not what fails the run.
"""

from __future__ import annotations

from collections.abc import Iterable
from xml.etree import ElementTree as ET

from reports.wording import plain
from rules.audit import Audit
from rules.expect import FailOn
from rules.facts import FileStatus
from rules.models import Model
from rules.verdict import Verdict
from rules.version import NAME

Case = ET.Element


class JunitReport:
    """One suite: the models, the expectations that name none, and the files that could not be read."""

    def render(self, audit: Audit) -> str:
        cases = [_model(model, audit) for model in audit.models]
        named = {model.id for model in audit.models}
        cases += [
            case("expectations", item.model, failure=item.message, kind="expectation")
            if audit.policy.level is not FailOn.NEVER
            else case("expectations", item.model, skipped=item.message)
            for item in audit.broken
            if item.model not in named
        ]
        counted = audit.policy.level is FailOn.UNRESOLVED
        for file in audit.scan.files:
            if file.status is FileStatus.ERROR:
                text = file.reason or "could not be read"
                cases.append(
                    case("files", file.path, failure=text, kind="unread")
                    if counted
                    else case("files", file.path, skipped=text)
                )
        return suite("scan", cases)


def _model(model: Model, audit: Audit) -> Case:
    item = audit.by_id[model.primary]
    lines = []
    for reported in audit.findings(item)[: len(item.judgement.reasons)]:
        finding = reported.finding
        lines.append(f"{finding.rule}: {plain(finding.message)}")
        lines += [f"  {plain(str(place))}  {plain(place.note)}".rstrip() for place in finding.evidence]
        if finding.fix:
            lines.append(f"  fix: {plain(finding.fix)}")
        if reported.waiver:
            lines.append(f"  waived: {plain(reported.waiver.reason)}")
    says = item.judgement.says()
    promised = [broken.message for broken in audit.broken if broken.model == model.id]
    if audit.fails(model):
        return case(model.id, item.graph.graph, failure="; ".join(promised) or says, kind=says, lines=lines)
    if model.verdict is Verdict.ELIGIBLE:
        return case(model.id, item.graph.graph)
    silenced = " (waived, or in the baseline)" if audit.silenced(model) else ""
    return case(model.id, item.graph.graph, skipped=says + silenced, lines=lines)


def case(
    group: str, name: str, *, failure: str = "", skipped: str = "", kind: str = "", lines: Iterable[str] = ()
) -> Case:
    """One test case: passed, failed with a message, or skipped with one."""
    made = ET.Element("testcase", classname=plain(group) or NAME, name=plain(name) or "*", time="0")
    body = "\n".join(_characters(line) for line in lines)
    if failure:
        child = ET.SubElement(made, "failure", message=plain(failure), type=plain(kind) or "failure")
        child.text = body or plain(failure)
    elif skipped:
        ET.SubElement(made, "skipped", message=plain(skipped))
        if body:
            ET.SubElement(made, "system-out").text = body
    return made


def suite(name: str, cases: Iterable[Case]) -> str:
    """The document, with the counts that readers ask for."""
    listed = list(cases)
    counts = {
        "tests": str(len(listed)),
        "failures": str(sum(case.find("failure") is not None for case in listed)),
        "errors": "0",
        "skipped": str(sum(case.find("skipped") is not None for case in listed)),
        "time": "0",
    }
    root = ET.Element("testsuites", {"name": NAME, **counts})
    ET.SubElement(root, "testsuite", {"name": f"{NAME}.{plain(name)}", **counts}).extend(listed)
    for element in root.iter():
        for key, value in element.attrib.items():
            element.set(key, _characters(value))
    ET.indent(root, " ")
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def _characters(text: str) -> str:
    """XML has no way to write U+FFFE, U+FFFF and what is no character at all."""
    return "".join(char if char < "\ufffe" or char > "\uffff" else "?" for char in text)
