"""The options of `probe --mode ab`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import click

from probes.ab import workloads
from probes.ab.drafters import NAMES, Match, make
from probes.ab.options import AbOptions
from probes.ab.policies import parse
from probes.bundles import BundleError, read
from probes.finite import FiniteRange
from probes.options import Mode, ProbeOptions

INTERRUPTED = 130
_Command = TypeVar("_Command", bound=Callable[..., Any])
_FILE = click.Path(path_type=Path)

_OPTIONS = (
    click.option(
        "--workload",
        "workload",
        multiple=True,
        metavar="NAME=FILE",
        help="ab: a prompt, as text or token ids. Repeatable; tables are by workload.",
    ),
    click.option(
        "--k",
        "policy",
        multiple=True,
        metavar="K|adaptive:KMAX|match:KMAX:M",
        help="ab: draft length; adaptive without KMAX takes it from the staircase.  [default: 1, 2, 4, 8, adaptive]",
    ),
    click.option(
        "--drafter",
        multiple=True,
        metavar="NAME",
        help=f"ab: {', '.join(NAMES)} or recorded:FILE.  [default: ngram]",
    ),
    click.option("--ngram-min", type=click.IntRange(1, 14), default=2, show_default=True, help="ab: shortest match."),
    click.option(
        "--ngram-max", type=click.IntRange(1, 64), default=5, show_default=True, help="ab: longest match of ngram."
    ),
    click.option(
        "--budget",
        "--max-new-tokens",
        "budget",
        multiple=True,
        type=click.IntRange(2, 100_000),
        help="ab: tokens to generate. Repeatable.  [default: 256]",
    ),
    click.option("--pairs", type=click.IntRange(1, 100), default=1, show_default=True, help="ab: pairs of each row."),
    click.option(
        "--retries",
        type=click.IntRange(0, 20),
        default=1,
        show_default=True,
        help="ab: how often spoiled rows go again.",
    ),
    click.option(
        "--band", default=None, metavar="LOW,HIGH", help="ab: valid baselines in tok/s.  [default: from three anchors]"
    ),
    click.option(
        "--stop", multiple=True, type=click.IntRange(0), help="ab: stop token.  [default: as the bundle says]"
    ),
    click.option(
        "--tokenizer", type=_FILE, default=None, help="ab: tokenizer.json, for text.  [default: the bundle's own]"
    ),
    click.option(
        "--shipped-tok-s", type=FiniteRange(0, min_open=True), default=None, help="ab: the shipped runner's speed."
    ),
    click.option(
        "--shipped-text", type=_FILE, default=None, help="ab: the shipped runner's output, text or token ids."
    ),
    click.option("--force", is_flag=True, help="ab: run the loop although a gate forbids it."),
)
_NAMES = (
    "workload",
    "policy",
    "drafter",
    "budget",
    "stop",
    "band",
    "tokenizer",
    "shipped_tok_s",
    "shipped_text",
    "force",
)


def ab_options(command: _Command) -> _Command:
    """Add the options to a command."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def with_ab(options: ProbeOptions, path: Path, given: Mapping[str, Any]) -> ProbeOptions:
    """`options` with what was asked of the loop; UsageError says what is wrong."""
    if options.mode is not Mode.AB:
        stray = [name for name in _NAMES if given[name]]
        if stray:
            raise click.UsageError(f"--{_shown(stray[0])} belongs to --mode ab")
        return options
    if not given["workload"]:
        raise click.UsageError("--mode ab needs a workload: --workload NAME=FILE")
    try:
        asked = _asked(path, given)
    except (workloads.WorkloadError, ValueError) as error:
        raise click.UsageError(str(error)) from None
    longest = max(parse(policy).most for policy in asked.policies)
    return replace(options, ab=asked, widths=tuple(range(1, max(options.widest, longest + 1) + 1)))


def _shown(name: str) -> str:
    return {"policy": "k"}.get(name, name.replace("_", "-"))


def _asked(path: Path, given: Mapping[str, Any]) -> AbOptions:
    match = Match(given["ngram_min"], given["ngram_max"])
    defaults = AbOptions(())
    drafters = given["drafter"] or defaults.drafters
    policies = given["policy"] or defaults.policies
    for drafter in drafters:
        make(drafter, match)
    for policy in policies:
        parse(policy)
    try:
        bundle = read(path)
    except (BundleError, OSError):
        # The probe refuses such a path in its own words.
        return defaults
    tokenizer = workloads.tokenizer_of(bundle, given["tokenizer"])
    found = tuple(workloads.read(one, tokenizer) for one in given["workload"])
    names = [one.name for one in found]
    if len(set(names)) != len(names):
        raise ValueError("two workloads have the same name")
    shipped = given["shipped_text"]
    if len(found) > 1 and (shipped or given["shipped_tok_s"]):
        raise ValueError("--shipped-tok-s and --shipped-text are of one workload; give one")
    return AbOptions(
        found,
        tuple(dict.fromkeys(policies)),
        tuple(dict.fromkeys(drafters)),
        match,
        tuple(dict.fromkeys(given["budget"])) or defaults.budgets,
        given["pairs"],
        given["retries"],
        _band(given["band"]),
        tuple(given["stop"]) or workloads.stops_of(bundle),
        given["shipped_tok_s"],
        workloads.tokens_of(shipped, tokenizer) if shipped else None,
        given["force"],
    )


def _band(text: str | None) -> tuple[float, float] | None:
    if text is None:
        return None
    try:
        low, high = (float(part) for part in text.split(","))
    except ValueError:
        raise ValueError(f"--band {text}: LOW,HIGH in tokens per second was expected") from None
    if not 0 < low < high:
        raise ValueError(f"--band {text}: LOW must be above 0 and below HIGH")
    return low, high
