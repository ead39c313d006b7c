"""The command line, run in this process."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from auditor.cli import main

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Status, standard output and standard error of a command line."""

    def command(*arguments: str) -> tuple[int, str, str]:
        status = main(list(arguments))
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return command
