"""The command line. It alone sees all four packages, and imports them inside its sub-commands."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from auditor import exits
from auditor.targets import NamedPath

if TYPE_CHECKING:
    from auditor.config import Config
    from rules.audit import Audit

# Sub-commands that live elsewhere, with the line that `--help` shows for them without importing them.
ELSEWHERE = {
    "diff": ("auditor.diff_command:diff", "Say which models became eligible between two scans, and which lost it."),
    "plan": ("probes.cli:plan", "Say which draft lengths pay on a measured verify-cost table."),
    "probe": ("probes.cli:probe", "Open a bundle, check what the scan claims, and measure it."),
    "report": ("auditor.report_command:report", "Write the page that a ship review reads."),
}


class _Group(click.Group):
    """A group whose help imports no sub-command."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted([*super().list_commands(ctx), *(name for name in ELSEWHERE if _exists(name))])

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in ELSEWHERE or not _exists(cmd_name):
            return super().get_command(ctx, cmd_name)
        module, _, attribute = ELSEWHERE[cmd_name][0].partition(":")
        command = getattr(importlib.import_module(module), attribute)
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        own = {name: command.get_short_help_str(70) for name, command in self.commands.items()}
        lines = own | {name: text for name, (_, text) in ELSEWHERE.items() if _exists(name)}
        with formatter.section("Commands"):
            formatter.write_dl(sorted(lines.items()))


def _exists(name: str) -> bool:
    try:
        return importlib.util.find_spec(ELSEWHERE[name][0].partition(":")[0]) is not None
    except ModuleNotFoundError:
        return False


def _version(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted and not ctx.resilient_parsing:
        from rules.version import NAME, VERSION

        click.echo(f"{NAME} {VERSION}")
        ctx.exit()


@click.group(cls=_Group, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.option(
    "--version", is_flag=True, expose_value=False, is_eager=True, callback=_version, help="Print the version."
)
def cli() -> None:
    """Which exported graphs can be used for dense speculative decoding, which cannot, and what would change it.

    Exit status: 0 nothing to report at the chosen level, 1 something, 2 usage, 3 nothing to audit, 4 a crash of
    spec-audit itself.
    """


@cli.command(short_help="Judge the export scripts below PATH.")
@click.argument("paths", metavar="PATH...", nargs=-1, required=True, type=NamedPath())
@click.option(
    "--library",
    "libraries",
    multiple=True,
    metavar="PATH",
    type=NamedPath(),
    help="A source tree, a site-packages folder or a unified diff over those before it. Repeatable.",
)
@click.option("--recipes", metavar="GLOB", help="Recipe files below the root.  [default: **/recipe.toml]")
@click.option("--checkpoints", metavar="DIR", type=NamedPath(), help="A folder of checkpoints' config.json files.")
@click.option(
    "--format",
    "format_",
    metavar="FORMAT",
    type=click.Choice(["text", "json", "html", "markdown", "sarif", "junit", "github"]),
    help="text, json, html, markdown, sarif, junit or github (workflow commands).  [default: text]",
)
@click.option(
    "--output",
    metavar="FILE",
    type=NamedPath(),
    help="Where the report goes.  [default: standard output]",
)
@click.option(
    "--also",
    multiple=True,
    metavar="FORMAT=FILE",
    help="Write the same scan in a further format. Repeatable.",
)
@click.option(
    "--baseline",
    metavar="FILE",
    type=NamedPath(),
    help="Findings that are not new: they count neither for the exit status nor in the formats for CI.",
)
@click.option("--update-baseline", is_flag=True, help="Record today's findings in the baseline.")
@click.option(
    "--fail-on",
    metavar="LEVEL",
    type=click.Choice(["never", "expect", "out", "unresolved"]),
    help="When the exit status is 1: never, expect (a broken expectation of the configuration), out, unresolved; each "
    "includes those before it.  [default: expect]",
)
@click.option(
    "--jobs",
    metavar="N",
    type=click.IntRange(min=1),
    help="At most so many processes, this one included; the report is the same.  [default: 1]",
)
@click.option(
    "--no-cache",
    is_flag=True,
    default=None,
    help="Neither read nor keep the results of earlier scans in the user's cache folder.",
)
@click.option(
    "--config",
    metavar="FILE",
    type=NamedPath(),
    help="Instead of the root's pyproject.toml or spec-audit.toml.",
)
def scan(
    paths: tuple[Path, ...],
    libraries: tuple[Path, ...],
    recipes: str | None,
    checkpoints: Path | None,
    format_: str | None,
    output: Path | None,
    also: tuple[str, ...],
    baseline: Path | None,
    update_baseline: bool,
    fail_on: str | None,
    jobs: int | None,
    no_cache: bool | None,
    config: Path | None,
) -> int:
    """Judge the export scripts below PATH, without importing or running them.

    With several paths, or a file, the audited root is their common folder and only these paths are audited, with
    the recipes that run them. Options may also stand in [tool.spec-audit] of the root's pyproject.toml, or in its
    spec-audit.toml.
    """
    from dataclasses import replace

    from auditor import policy, targets
    from auditor.origin import provenance
    from auditor.request import ScanRequest
    from rules.audit import audit
    from rules.expect import FailOn

    root, shown = targets.root(paths)
    settings = _configuration(root, config)
    chosen = format_ or settings.format or "text"
    destination = targets.writable(output or settings.output)
    copies = policy.copies(also)
    ledger = policy.baseline(baseline or settings.baseline, update_baseline)
    recorded = [("--update-baseline", ledger.path)] if ledger and ledger.update else []
    targets.apart([("--output", destination), *((f"--also {name}", copy) for name, copy in copies), *recorded])
    level = FailOn(fail_on) if fail_on else settings.fail_on or FailOn.EXPECT
    request = ScanRequest(
        root=root,
        paths=paths,
        libraries=targets.existing("--library", (*settings.libraries, *libraries)),
        recipes=settings.recipe_settings(recipes),
        checkpoints=targets.folder("--checkpoints", checkpoints or settings.checkpoints),
        jobs=jobs or settings.jobs or 1,
        cache=not (settings.no_cache if no_cache is None else no_cache),
        progress=exits.progress(),
    )
    from auditor.cache import cached
    from auditor.trees import UnusableLibrary

    try:
        scanned = replace(cached(request), root=shown)
    except UnusableLibrary as error:
        raise click.UsageError(_plain(f"--library: {error}")) from None
    found = audit(scanned, settings.expect, policy.of(scanned, root, settings, level, ledger))
    found = replace(found, provenance=provenance(request, settings, config, recipes, checkpoints, libraries))
    exits.clear_progress()
    _write(found, chosen, destination)
    for name, copy in copies:
        _write(found, name, copy)
    if ledger and ledger.update:
        policy.record(found, ledger.path)
    _summary(found, destination)
    if found.failed:
        return exits.SOMETHING
    return exits.OK if found.graphs else exits.NOTHING


def _configuration(root: Path, named: Path | None) -> Config:
    from auditor import config
    from reports.formats import FORMATS

    try:
        return config.load_file(named, tuple(FORMATS)) if named else config.load(root, tuple(FORMATS))
    except config.ConfigError as error:
        raise click.UsageError(_plain(str(error))) from None


def _write(found: Audit, chosen: str, destination: Path | None) -> None:
    from reports.formats import report

    if chosen == "text" and destination is None and exits.colourful():
        from reports.text import TextReport

        text = TextReport(colour=True).render(found)
    else:
        text = report(chosen).render(found)
    exits.write(text, destination)


def _summary(found: Audit, destination: Path | None) -> None:
    from reports.silence import silence
    from reports.wording import summary

    for warning in found.scan.warnings:
        exits.say(_plain(f"warning: {warning}"))
    for item in found.broken:
        exits.say(_plain(f"expectation broken: {item.message}"))
    for line in silence(found):
        exits.say(_plain(line))
    exits.say(summary(found))
    if destination:
        exits.say(f"report: {destination}")


def _plain(text: str) -> str:
    from reports.wording import plain

    return plain(text)


@cli.command(short_help="Explain a rule, an advice, a reason for being unresolved, or a model.")
@click.argument("subject", metavar="RULE|SCAN.JSON")
@click.option(
    "--model", metavar="NAME", help="Tell this model's story, from a report of scan --format json instead of a rule."
)
def explain(subject: str, model: str | None) -> None:
    """Explain a rule, an advice or a reason for being unresolved, by the identifier that reports print.

    With --model, tell one model's story: its verdict, what was followed from where to where, and what would change it.
    """
    if model is not None:
        exits.write(_story(Path(subject), model))
        return
    import difflib

    from reports.rule_page import page, titles

    if subject not in titles():
        close = difflib.get_close_matches(subject, titles(), n=1)
        hint = f"did you mean {close[0]!r}?" if close else "'spec-audit rules' lists them"
        if Path(subject).is_file():
            hint = "to explain a model of that scan, name it with --model"
        raise click.UsageError(f"no rule is called {_plain(subject)!r}; {hint}")
    exits.write(page(subject))


def _story(path: Path, name: str) -> str:
    from auditor.report_files import read
    from reports.story import Unknown, story
    from rules.document_shapes import SCAN

    try:
        return story(read(path, SCAN), name)
    except Unknown as error:
        raise click.UsageError(_plain(str(error))) from None


@cli.command(short_help="List the rules, the advice and the reasons for being unresolved.")
def rules() -> None:
    """List the rules, the advice and the reasons for being unresolved."""
    from reports.rule_page import listing

    exits.write(listing())


def main(arguments: list[str] | None = None) -> int:
    """Run the command line, and give its exit status."""
    return exits.guarded(lambda: _invoke(sys.argv[1:] if arguments is None else arguments))


def _invoke(arguments: list[str]) -> int:
    try:
        with cli.make_context("spec-audit", list(arguments)) as context:
            result = cli.invoke(context)
            return result if isinstance(result, int) else exits.OK
    except click.exceptions.Exit as done:
        return done.exit_code
    except click.ClickException as error:
        error.show()
        return exits.USAGE
