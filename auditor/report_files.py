"""Reports that are read back, for `diff`, `explain --model` and `report`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from reports.wording import plain
from rules.documents import SCAN, DocumentError, check

_LARGEST = 500_000_000


def read(path: Path) -> dict[str, Any]:
    """The scan report in a file; a usage error says what is wrong with any other file."""
    data = _loaded(path)
    if not isinstance(data, dict) or data.get("schema") != SCAN:
        raise click.UsageError(plain(f"{path}: not a report of `spec-audit scan --format json` ({SCAN})"))
    _schema(path, data)
    return data


def read_any(path: Path) -> tuple[str, dict[str, Any]]:
    """The schema of the report in a file and what is in it; a usage error says what is wrong with any other file."""
    data = _loaded(path)
    return _schema(path, data), data


def _loaded(path: Path) -> Any:
    try:
        if path.is_file() and path.stat().st_size > _LARGEST:
            raise click.UsageError(plain(f"{path}: larger than {_LARGEST} bytes, which no report is"))
        return json.loads(path.read_text("utf-8"))
    except OSError as error:
        raise click.UsageError(f"cannot read {str(path)!r}: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise click.UsageError(plain(f"{path}: not JSON ({error})")) from None


def _schema(path: Path, data: Any) -> str:
    try:
        return check(data)
    except DocumentError as error:
        raise click.UsageError(plain(f"{path}: {error}")) from None
