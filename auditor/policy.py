"""From the options and the configuration of a scan to its policy: level, waivers, baseline, and where CI stands."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path

import click

from auditor import exits, targets
from auditor.config import Config
from auditor.waivers import comments
from reports.formats import FORMATS
from rules.audit import Audit, Policy
from rules.baseline import BaselineError, known
from rules.baseline import record as recorded
from rules.expect import FailOn
from rules.facts import Scan

_LARGEST = 50_000_000
_EPOCH = "SOURCE_DATE_EPOCH"


@dataclass(frozen=True, slots=True)
class Ledger:
    """The baseline's file; its fingerprints, None while there is none; and whether today's findings go there."""

    path: Path
    known: frozenset[str] | None
    update: bool


def baseline(path: Path | None, update: bool) -> Ledger | None:
    """The baseline as it stands. One that is missing is an error unless it is about to be written."""
    if path is None:
        if update:
            raise click.UsageError("--update-baseline: name the file with --baseline, or in the configuration")
        return None
    if update:
        targets.writable(path, "--baseline")
        return Ledger(path, None, True)
    try:
        if path.stat().st_size > _LARGEST:
            raise BaselineError("too large for a baseline")
        return Ledger(path, known(json.loads(path.read_text("utf-8"))), False)
    except OSError as error:
        raise click.UsageError(
            f"--baseline: cannot read {str(path)!r}: {error.strerror}; --update-baseline records one"
        ) from None
    except (ValueError, RecursionError) as error:
        raise click.UsageError(f"--baseline: {str(path)!r}: {error}") from None


def record(found: Audit, path: Path) -> None:
    """Write today's findings."""
    document = recorded(found.graphs)
    exits.write(json.dumps(document, indent=1, ensure_ascii=False) + "\n", path)
    exits.say(f"baseline: {len(document['findings'])} findings recorded in {path}")


def copies(wanted: Sequence[str]) -> tuple[tuple[str, Path], ...]:
    """The further formats and their files, from `FORMAT=FILE`."""
    found = []
    for text in wanted:
        name, equals, file = text.partition("=")
        if name not in FORMATS or not equals or not file:
            raise click.UsageError(f"--also: {text!r}: write FORMAT=FILE, with one of {', '.join(FORMATS)}")
        path = targets.writable(Path(file), "--also")
        assert path is not None
        found.append((name, path))
    return tuple(found)


def of(scan: Scan, root: Path, settings: Config, level: FailOn, ledger: Ledger | None) -> Policy:
    """The policy under which `scan` is judged."""
    return Policy(
        level=level,
        waivers=(*comments(root, (file.path for file in scan.files)), *settings.waivers),
        baseline=ledger.known if ledger else None,
        today=_today(),
        prefix=_below(root, Path()),
        configuration=_below(settings.source, root) if settings.source else "",
    )


def _today() -> date:
    """Today in UTC; `SOURCE_DATE_EPOCH` replaces it, so that a report can be made again."""
    epoch = os.environ.get(_EPOCH, "")
    return datetime.fromtimestamp(int(epoch), UTC).date() if epoch.isdigit() else datetime.now(UTC).date()


def _below(path: Path, folder: Path) -> str:
    """`path` relative to `folder`, with `/`; empty where it is that folder or does not lie below it."""
    relative = Path(os.path.relpath(path, folder)).as_posix()
    return "" if relative == "." or relative.startswith("..") else relative
