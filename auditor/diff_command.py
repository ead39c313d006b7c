"""`spec-audit diff`."""

from __future__ import annotations

import json
from pathlib import Path

import click

from auditor import exits
from auditor.targets import NamedPath


@click.command(short_help="Say which models became eligible between two scans, and which lost it.")
@click.argument("old", metavar="OLD.JSON", type=NamedPath())
@click.argument("new", metavar="NEW.JSON", type=NamedPath())
@click.option(
    "--format",
    "format_",
    type=click.Choice(["text", "json", "markdown"]),
    default="text",
    show_default=True,
)
@click.option(
    "--output",
    metavar="FILE",
    type=NamedPath(),
    help="Where the difference goes.  [default: standard output]",
)
def diff(old: Path, new: Path, format_: str, output: Path | None) -> int:
    """Compare two reports of scan --format json: what became eligible or lost it, and by which change.

    Exit status: 0, 1 when a model lost eligibility (or was eligible and is gone), 2 usage.
    """
    from auditor import targets
    from auditor.report_files import read
    from reports import diff_text
    from rules.diff import diff as compare
    from rules.document_shapes import SCAN

    destination = targets.writable(output)
    difference = compare(read(old, SCAN), read(new, SCAN))
    if format_ == "json":
        text = json.dumps(difference, indent=1, ensure_ascii=False) + "\n"
    else:
        text = diff_text.markdown(difference) if format_ == "markdown" else diff_text.render(difference)
    exits.write(text, destination)
    if destination or format_ != "text":
        exits.say(diff_text.summary(difference))
    return exits.SOMETHING if difference["lost"] else exits.OK
