"""`spec-audit plan`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from probes.finite import FiniteRange
from probes.output import as_json, say, writable, write

if TYPE_CHECKING:
    from probes.acceptance import Acceptance

OK, SOMETHING = 0, 1


def _acceptance(ctx: click.Context, parameter: click.Parameter, value: str | None) -> Acceptance | None:
    from probes.acceptance import parse

    try:
        return None if value is None else parse(value)
    except (ValueError, OSError) as error:
        raise click.BadParameter(str(error)) from None


@click.command(short_help="Say which draft lengths pay on a measured verify-cost table.")
@click.argument("files", nargs=-1, required=True, metavar="FILE...", type=click.Path(path_type=Path))
@click.option(
    "--acceptance",
    default=None,
    metavar="RATE|RATES|FILE",
    callback=_acceptance,
    help="A rate (0.7), rates by position (0.8,0.6,0.5), or a JSON file of rates or of rounds: predicts "
    "tokens per second for each K.",
)
@click.option(
    "--noise",
    type=FiniteRange(min=0.001, max=0.5),
    default=0.03,
    show_default=True,
    help="Relative error of a time that is given as one number without samples.",
)
@click.option(
    "--scope",
    type=click.Choice(["device", "interpreter"]),
    default=None,
    help="Where tables that do not say it were measured.",
)
@click.option("--format", "format_", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.option(
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    default=None,
    callback=writable,
    help="Where the plan goes.  [default: standard output]",
)
@click.pass_context
def plan(
    ctx: click.Context,
    files: tuple[Path, ...],
    acceptance: Acceptance | None,
    noise: float,
    scope: str | None,
    format_: str,
    output: Path | None,
) -> None:
    """Find the plateaus of t(S) in each FILE, the draft length at the top of each, and the bar it has to clear.

    FILE is a report of `probe --format json`, a CSV or JSON table of S and ms (medians or samples), or the summary that
    a Swift runner writes with --json. A report with an A/B record adds which K to choose for each workload, on every
    table given; another device's table beside it shows what that would make of the same acceptance.

    Exit status: 0, 1 when a table was refused, 2 usage.
    """
    from probes.ab.record import Row
    from probes.ab.record import read as read_rows
    from probes.plan import plan as run
    from probes.tables import Table, TableError, read

    tables: list[Table] = []
    rows: list[Row] = []
    try:
        for file in files:
            rows += read_rows(file)
            tables += read(file, scope or "")
    except TableError as error:
        raise click.UsageError(str(error)) from None
    made = run(tables, acceptance, noise, rows)
    write(_plan_text(made) if format_ == "text" else as_json(made), output)
    refused = [table["label"] for table in made["tables"] if table["status"] == "refused"]
    refused += [f"{row.workload}, {row.drafter} {row.policy}: {'; '.join(row.reasons)}" for row in rows if row.reasons]
    if refused:
        say(f"refused: {', '.join(refused)}")
    ctx.exit(SOMETHING if refused else OK)


def _plan_text(made: dict[str, Any]) -> str:
    from reports.plan_text import render

    return render(made)
