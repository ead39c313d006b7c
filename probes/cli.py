"""`spec-audit probe` and `spec-audit plan`; the main command line loads them from here."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from probes.ab.command import INTERRUPTED, ab_options, with_ab
from probes.finite import FiniteRange
from probes.options import Mode, ProbeOptions, parse_widths
from probes.output import as_json, say, writable, write
from probes.plan_command import plan
from probes.ports import Positions

__all__ = ["plan", "probe"]

OK, SOMETHING = 0, 1
_FAIL = ("never", "refuted", "partial")


def _widths(ctx: click.Context, parameter: click.Parameter, value: str) -> tuple[int, ...]:
    try:
        return parse_widths(value)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


@click.command(short_help="Open a bundle, check what the scan claims, and measure it.")
@click.argument("bundle", type=click.Path(exists=True, path_type=Path))
@click.option(
    "--mode",
    type=click.Choice([str(mode) for mode in Mode]),
    default="all",
    show_default=True,
    help="inspect: facts only; rows: the gates as well; verify-cost: the sweep as well; all: these; ab: the gates, "
    "then the speculative loop, on against off.",
)
@click.option(
    "--backend",
    type=click.Choice(["coreai", "coreml", "reference"]),
    default=None,
    help="Which runtime; by default the one that the bundle is for.",
)
@click.option("--graph", default="", metavar="NAME", help="Run this entry point only.")
@click.option(
    "--positions",
    type=click.Choice([str(one) for one in Positions]),
    default=None,
    help="What the position input takes: range (0..offset+S), rows (one a row), start (the offset), none.  "
    "[default: by its shape, and by the row that a step writes]",
)
@click.option(
    "--sweep-s",
    "widths",
    default="1..16",
    show_default=True,
    metavar="RANGE",
    callback=_widths,
    help="Which S to time; the gates use every S up to the largest.",
)
@click.option(
    "--context",
    "contexts",
    multiple=True,
    type=click.IntRange(min=0),
    metavar="TOKENS",
    help="Tokens before the timed query. Repeatable: do the steps stand at the same S?  [default: 128]",
)
@click.option(
    "--capacity",
    type=click.IntRange(min=0),
    default=0,
    metavar="ROWS",
    help="Rows of the cache.  [default: what is needed, in blocks of 32]",
)
@click.option("--repeats", type=click.IntRange(min=2), default=10, show_default=True, help="Timed rounds over all S.")
@click.option("--seed", type=int, default=0, show_default=True, help="For tokens, order and intervals.")
@click.option(
    "--prefix",
    type=click.IntRange(min=2),
    default=40,
    show_default=True,
    metavar="TOKENS",
    help="Tokens before the compared rows; longer than any window that the model has.",
)
@click.option(
    "--compute-unit",
    type=click.Choice(["cpu", "gpu", "neural-engine"]),
    default=None,
    help="Preferred compute unit (macOS).",
)
@click.option(
    "--soak",
    type=click.IntRange(min=0),
    default=0,
    metavar="N",
    help="Also run N forwards of changing width: do results or memory change?",
)
@click.option(
    "--weight-limit",
    type=FiniteRange(min=0),
    default=0.0,
    metavar="GB",
    help="The reference backend refuses larger weights, for they take four times their size.  [default: 1]",
)
@click.option(
    "--bandwidth",
    type=FiniteRange(min=0),
    default=0.0,
    metavar="GB/S",
    help="Memory bandwidth; faster forwards are refused.  [default: by the chip's name]",
)
@click.option(
    "--time-limit",
    type=FiniteRange(min=0.1),
    default=300.0,
    show_default=True,
    metavar="SECONDS",
    help="For each step in the child process.",
)
@click.option(
    "--against",
    metavar="SCAN.JSON[#ID]",
    default=None,
    help="A scan's JSON report: say where the script and the bundle disagree.",
)
@click.option(
    "--format",
    "format_",
    type=click.Choice(["text", "json", "markdown", "junit"]),
    default="text",
    show_default=True,
)
@click.option(
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    default=None,
    callback=writable,
    help="Where the report goes.  [default: standard output]",
)
@click.option(
    "--fail-on",
    type=click.Choice(_FAIL),
    default="refuted",
    show_default=True,
    help="When the exit status is 1. A bundle that cannot be probed counts as refuted.",
)
@ab_options
@click.pass_context
def probe(
    ctx: click.Context,
    /,
    bundle: Path,
    mode: str,
    backend: str | None,
    graph: str,
    positions: str | None,
    widths: tuple[int, ...],
    contexts: tuple[int, ...],
    capacity: int,
    repeats: int,
    seed: int,
    prefix: int,
    compute_unit: str | None,
    soak: int,
    weight_limit: float,
    bandwidth: float,
    time_limit: float,
    against: str | None,
    format_: str,
    output: Path | None,
    fail_on: str,
    **ab: Any,
) -> None:
    """Open BUNDLE, confirm or refute that it can verify drafts, and measure what a verification costs.

    BUNDLE is an .aimodel, an .mlpackage or .mlmodelc, a folder of several, or a language bundle folder with
    metadata.json. Everything runs in a child process: a runtime that crashes is a result. On Linux a Core AI bundle is
    run by Apple's CPU interpreter, whose costs are never a device's; a Core ML package is inspected, and --backend
    reference evaluates its program.

    Exit status: 0 nothing to report at the chosen level, 1 refuted (or partial, if so chosen) or not to be probed,
    2 usage.
    """
    from probes.against import JoinError, compare, load
    from probes.probe import probe as run

    options = ProbeOptions(
        mode=Mode(mode),
        backend=backend or "",
        widths=widths,
        contexts=contexts or (128,),
        capacity=capacity,
        repeats=repeats,
        seed=seed,
        prefix=prefix,
        positions=Positions(positions) if positions else None,
        graph=graph,
        seconds=time_limit,
        bandwidth=bandwidth,
        compute_unit=compute_unit or "",
        weight_limit=round(weight_limit * 1e9),
        soak=soak,
    )
    options = with_ab(options, bundle, ab)
    _check(options)
    try:
        scan = load(against) if against else None
    except JoinError as error:
        raise click.UsageError(str(error)) from None
    with _progress() as progress:
        report = run(bundle, options, progress)
    no_join = ""
    if scan is not None and report["graphs"]:
        try:
            report["against"] = compare(report, *scan)
        except JoinError as error:
            no_join = str(error)
    write(_rendered(report, format_, fail_on), output)
    say(_probe_summary(report))
    if no_join:  # what was measured is written all the same
        raise click.UsageError(no_join)
    ctx.exit(_probe_status(report, fail_on))


def _check(options: ProbeOptions) -> None:
    if options.mode.sweeps and 1 not in options.widths:
        raise click.UsageError("--sweep-s must include 1: every cost is relative to it")
    needed = max(max(options.contexts), options.prefix + options.widest) + options.widest
    if options.capacity and options.capacity < needed:
        raise click.UsageError(
            f"--capacity {options.capacity} is too small: context, drafts and prefix need {needed} rows"
        )


def _probe_status(report: dict[str, Any], fail_on: str) -> int:
    loops = {graph["ab"]["status"] for graph in report["graphs"] if graph["ab"]}
    if "interrupted" in loops:
        return INTERRUPTED
    if fail_on == "never":
        return OK
    if "refused" in loops:
        return SOMETHING
    if report["status"] == "refused" or report["verdict"] == "refuted":
        return SOMETHING
    return SOMETHING if fail_on == "partial" and report["verdict"] == "partial" else OK


def _probe_summary(report: dict[str, Any]) -> str:
    if report["status"] == "refused":
        return f"{report['bundle']}: not probed, or not to its end: {'; '.join(report['reasons'])}"
    where = f" ({report['scope']})" if report["scope"] else ""
    return f"{report['bundle']}: {report['verdict']}{where}"


def _rendered(report: dict[str, Any], format_: str, fail_on: str) -> str:
    if format_ == "json":
        return as_json(report)
    if format_ == "text":
        from reports.probe_text import render

        return render(report)
    from reports import probe_ci

    return probe_ci.markdown(report) if format_ == "markdown" else probe_ci.junit(report, fail_on)


@contextmanager
def _progress() -> Iterator[Callable[[str, int, int], None]]:
    """A line that counts on a terminal, and nothing elsewhere."""
    if not sys.stderr.isatty():
        yield lambda what, done, total: None
        return

    def show(what: str, done: int, total: int) -> None:
        of = f"/{total}" if total else ""
        bar = f" [{'#' * (20 * done // total):20}]" if total else ""
        click.echo(f"\r\x1b[K{what[:40]} {done}{of}{bar}", nl=False, err=True)

    try:
        yield show
    finally:
        click.echo("\r\x1b[K", nl=False, err=True)
