"""Command lines: those that start nothing nameable, then every runner in front."""

from __future__ import annotations

import shlex

import pytest

from auditor.launches import Launch, Starts, launch


@pytest.mark.parametrize(
    "line",
    [
        "",
        "env",
        "A=1",
        "python",
        "python -c 'import x'",
        "python -m",
        "python3 -",
        "uv run",
        "uv run --with x",
        "uv run python -u",
    ],
)
def test_nothing_nameable(line: str) -> None:
    assert launch(shlex.split(line)) is None


@pytest.mark.parametrize(
    ("line", "starts", "name"),
    [
        ("kit.export a -m b", Starts.COMMAND, "kit.export"),
        ("uv run kit.export a -m b", Starts.COMMAND, "kit.export"),
        ("uv run --with torch --extra gpu -q kit.export a -m b", Starts.COMMAND, "kit.export"),
        ("uv run -- kit.export a -m b", Starts.COMMAND, "kit.export"),
        ("env A=1 B=2 poetry run kit.export a -m b", Starts.COMMAND, "kit.export"),
        ("uvx --python 3.12 kit.export a -m b", Starts.COMMAND, "kit.export"),
        ("pipx run kit.export a -m b", Starts.COMMAND, "kit.export"),
        ("python -m kit.export a -m b", Starts.MODULE, "kit.export"),
        ("/usr/bin/python3.12 -u -X dev -m kit.export a -m b", Starts.MODULE, "kit.export"),
        ("uv run -m kit.export a -m b", Starts.MODULE, "kit.export"),
        ("A=1 uv run python -m kit.export a -m b", Starts.MODULE, "kit.export"),
        ("python export.py a -m b", Starts.SCRIPT, "export.py"),
        ("python -B -W ignore tools/export.py a -m b", Starts.SCRIPT, "tools/export.py"),
        ("uv run tools/export.py a -m b", Starts.SCRIPT, "tools/export.py"),
        ("./export.py a -m b", Starts.SCRIPT, "./export.py"),
    ],
)
def test_what_starts(line: str, starts: Starts, name: str) -> None:
    assert launch(shlex.split(line)) == Launch(starts, name, ("a", "-m", "b"))
