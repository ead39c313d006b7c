"""Where the words of the two commands go."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import click


def as_json(data: dict[str, Any]) -> str:
    """A report as JSON, ending in a newline."""
    return json.dumps(data, indent=1, ensure_ascii=False) + "\n"


def writable(ctx: click.Context, parameter: click.Parameter, value: Path | None) -> Path | None:
    """`value`, whose folder exists: found out before a long measurement, not after it."""
    if value is not None and not value.parent.is_dir():
        raise click.UsageError(f"--output: no such folder: {str(value.parent)!r}")
    return value


def write(text: str, output: Path | None) -> None:
    """To standard output, or to a file, which is replaced whole or not at all; a device is written to."""
    if output is None:
        try:
            click.echo(text, nl=False)
        except BrokenPipeError:
            raise
        except OSError as error:
            # The interpreter flushes standard output once more at its end.
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            raise click.UsageError(f"cannot write to standard output: {error.strerror}") from None
        return
    try:
        replace = output.is_file() or not output.exists()
        with click.open_file(str(output), "w", encoding="utf-8", atomic=replace) as file:
            file.write(text)
    except OSError as error:
        raise click.UsageError(f"cannot write {str(output)!r}: {error.strerror}") from None


def say(line: str) -> None:
    """A line on standard error, which is no part of the report."""
    click.echo(f"spec-audit: {line}", err=True)
