"""`spec-audit report`: a scan, its probes and its plans as one page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from auditor import exits, targets


@click.command(short_help="Write the page that a ship review reads.")
@click.argument("files", metavar="SCAN.JSON [PROBE.JSON...] [PLAN.JSON...]", nargs=-1, required=True)
@click.option(
    "--output",
    metavar="FILE",
    type=targets.NamedPath(),
    help="Where the page goes.  [default: standard output]",
)
@click.option(
    "--source-url",
    metavar="TEMPLATE",
    help="Where a cited line can be read: https://.../{commit}/{path}#L{line}.  [default: as the scan was configured]",
)
def report(files: tuple[str, ...], output: Path | None, source_url: str | None) -> int:
    """Write one HTML page from a scan, and the probes and plans of what it exports.

    All files are JSON reports of spec-audit, told apart by their schema. A probe or a plan joins the model that its
    bundle's name says; FILE#MODEL-ID names another. A probe that ran with --against joins what it was compared with.
    """
    from reports.decision_words import DECISIONS
    from reports.html import render
    from reports.wording import plural
    from rules.document_shapes import PLAN, PROBE, SCAN
    from rules.join import JoinError
    from rules.provenance import checked_url
    from rules.review import Given, review

    destination = targets.writable(output)
    try:
        template = checked_url(source_url) if source_url else ""
    except ValueError as error:
        raise click.UsageError(f"--source-url: {error}") from None
    given: dict[str, list[Given]] = {SCAN: [], PROBE: [], PLAN: []}
    shown = []
    for text in files:
        schema, one = _read(text)
        given[schema].append(one)
        shown.append((one.source, schema))
    if len(given[SCAN]) != 1:
        raise click.UsageError(
            f"one report of `spec-audit scan --format json` was expected, found {len(given[SCAN])}: "
            "a page is about one scan"
        )
    if given[SCAN][0].identifier:
        raise click.UsageError(f"{given[SCAN][0].source}: #MODEL-ID goes after a probe or a plan")
    scan = given[SCAN][0].data
    try:
        found = review(scan, given[PROBE], given[PLAN])
    except JoinError as error:
        raise click.UsageError(_plain(str(error))) from None
    exits.write(render(found, shown, template), destination)
    for stray in found.strays:
        name = stray.data["bundle"]
        hint = f"if one does, name it: {stray.source}#MODEL-ID"
        exits.say(_plain(f"warning: {stray.source}: no model of the scan ships a bundle {name!r}; {hint}"))
    for cost in found.stray_costs:
        exits.say(_plain(f"warning: no model of the scan ships the bundle of the table {cost.label!r}"))
    groups = ", ".join(f"{len(models)} {DECISIONS[decision].short}" for decision, models in found.groups)
    exits.say(f"{plural(len(found.models), 'model')}: {groups}" if groups else "no model")
    if destination:
        exits.say(f"report: {destination}")
    return exits.OK if scan["graphs"] else exits.NOTHING


def _read(text: str) -> tuple[str, Any]:
    """The schema of a file and what is in it; what follows `#` names a model, unless the file itself is so called."""
    from auditor.report_files import read
    from rules.review import Given

    name, _, identifier = (text, "", "") if Path(text).is_file() else text.partition("#")
    path = Path(name)
    data = read(path)
    return data["schema"], Given(data, path.name, identifier)


def _plain(text: str) -> str:
    from reports.wording import plain

    return plain(text)
