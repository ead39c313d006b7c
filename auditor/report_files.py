"""Reports that are read back, for `diff`, `explain --model` and `report`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from reports.wording import plain
from rules import documents
from rules.document_shapes import DocumentError


def read(path: Path, only: str = "") -> dict[str, Any]:
    """The report in a file, of the schema `only` if that is given; a usage error says what else the file is."""
    try:
        return documents.read(path, only)
    except OSError as error:
        raise click.UsageError(f"cannot read {str(path)!r}: {error.strerror}") from None
    except DocumentError as error:
        raise click.UsageError(plain(f"{path}: {error}")) from None
