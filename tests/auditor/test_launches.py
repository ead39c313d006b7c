"""Command lines: those that start nothing nameable, then every runner in front."""

from __future__ import annotations

import shlex

import pytest

from auditor.launches import Launch, Starts, launches, shell_words


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
        "cd tools",
        "nice -n 5",
        "bash -c",
        "sh -c 'echo \"'",
    ],
)
def test_nothing_nameable(line: str) -> None:
    assert not list(launches(shlex.split(line)))


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
        ("nohup nice -n 5 python export.py a -m b", Starts.SCRIPT, "export.py"),
        ("/usr/bin/time -l caffeinate -i -t 9 python export.py a -m b", Starts.SCRIPT, "export.py"),
        ("A=1 sudo -u me arch -arm64 python3 export.py a -m b", Starts.SCRIPT, "export.py"),
        ("/bin/bash -lc 'exec python export.py a -m b'", Starts.SCRIPT, "export.py"),
    ],
)
def test_what_starts(line: str, starts: Starts, name: str) -> None:
    assert list(launches(shlex.split(line))) == [Launch(starts, name, ("a", "-m", "b"))]


@pytest.mark.parametrize(
    ("line", "started"),
    [
        ("cd tools && python export.py --a 1", [("export.py", ("--a", "1"), "tools")]),
        ("cd a; cd b\npython export.py", [("export.py", (), "a/b")]),
        ("python a.py && python b.py | tee log", [("a.py", (), ""), ("b.py", (), ""), ("tee", ("log",), "")]),
        ("python a.py > log 2>&1", [("a.py", (), "")]),
        ("python a.py --layers 2 >> log 2>/dev/null &", [("a.py", ("--layers", "2"), "")]),
        ("python a.py --text 'x > y; z'", [("a.py", ("--text", "x > y; z"), "")]),
        ("python a.py \\\n  --b", [("a.py", ("--b",), "")]),
        ("(cd tools && uv run make.py)", [("make.py", (), "tools")]),
        ("bash -c 'cd tools && python a.py' && python b.py", [("a.py", (), "tools"), ("b.py", (), "")]),
    ],
)
def test_lines_for_the_shell(line: str, started: list[tuple[str, tuple[str, ...], str]]) -> None:
    assert [(s.name, s.argv, s.folder) for s in launches(shell_words(line))] == started


def test_a_line_with_an_open_quote_is_none_for_the_shell() -> None:
    with pytest.raises(ValueError, match="quotation"):
        shell_words("python 'a.py")
