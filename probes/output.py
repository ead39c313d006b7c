"""Where the words of the two commands go."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click


def as_json(data: dict[str, Any]) -> str:
    return json.dumps(data, indent=1, ensure_ascii=False) + "\n"


def write(text: str, output: Path | None) -> None:
    """To a file, which is replaced whole or not at all, or to standard output."""
    if output is None:
        click.echo(text, nl=False)
        return
    try:
        with click.open_file(str(output), "w", encoding="utf-8", atomic=True) as file:
            file.write(text)
    except OSError as error:
        raise click.UsageError(f"cannot write {str(output)!r}: {error.strerror}") from None


def say(line: str) -> None:
    click.echo(f"spec-audit: {line}", err=True)
