"""Snapshots: whole outputs kept beside the tests, rewritten with `pytest --update-snapshots`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

Snapshot = Callable[[Path, str], None]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-snapshots", action="store_true", help="rewrite what snapshots are compared with")


@pytest.fixture
def snapshot(request: pytest.FixtureRequest) -> Snapshot:
    """Compare a text with the file that holds what it should be."""
    update = request.config.getoption("--update-snapshots")

    def compare(path: Path, text: str) -> None:
        if update:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        assert path.is_file(), f"{path} is missing: run pytest --update-snapshots and look at what it writes"
        assert text == path.read_text(encoding="utf-8"), f"{path} is not what comes out; --update-snapshots rewrites it"

    return compare
