"""Snapshots: whole outputs kept beside the tests, rewritten with `pytest --update-snapshots`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

Snapshot = Callable[[Path, str], None]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-snapshots", action="store_true", help="rewrite what snapshots are compared with")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what takes minutes, unless `-m nightly` asks for it."""
    if "nightly" in config.option.markexpr:
        return
    nightly = [i for i in items if i.get_closest_marker("nightly") is not None]
    config.hook.pytest_deselected(items=nightly)
    items[:] = [i for i in items if i not in set(nightly)]


@pytest.fixture(autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test reads or writes the cache of whoever runs it, nor that of another test."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))


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
