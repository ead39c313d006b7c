"""Console scripts: declarations that say nothing first, then each way of declaring one."""

from __future__ import annotations

from pathlib import Path

import pytest

from auditor.entry_points import console_scripts
from auditor.sources import Sources
from auditor.trees import FolderTree
from tests.auditor.support import write

DISTRIBUTION = "kit-1.0.dist-info/entry_points.txt"


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("pyproject.toml", "[project\nscripts"),
        ("pyproject.toml", "project = 1"),
        ("pyproject.toml", "[project]\nscripts = ['kit']"),
        ("pyproject.toml", "[project.scripts]\nkit = 3"),
        ("pyproject.toml", "[project.scripts]\nkit = 'kit.cli'"),
        ("pyproject.toml", "[project.scripts]\nkit = ':main'"),
        ("pyproject.toml", "x = " + "[" * 5000),
        ("setup.cfg", "console_scripts = kit = kit.cli:main"),
        ("setup.cfg", "[options.entry_points]\nconsole_scripts =\n    kit"),
        ("setup.cfg", "[options.entry_points]\ngui_scripts =\n    kit = kit.cli:main"),
        (DISTRIBUTION, "kit = kit.cli:main"),
        (DISTRIBUTION, "[gui_scripts]\nkit = kit.cli:main"),
        ("elsewhere/pyproject.toml", "[project.scripts]\nkit = 'kit.cli:main'"),
    ],
)
def test_a_declaration_that_cannot_be_used_declares_nothing(tmp_path: Path, path: str, text: str) -> None:
    assert console_scripts(FolderTree(write(tmp_path, {path: text}))) == {}


def test_not_utf_8(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_bytes(b"[project.scripts]\nkit = '\xff:main'")
    assert console_scripts(FolderTree(tmp_path)) == {}


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("pyproject.toml", "[project.scripts]\n'kit.export' = 'kit.cli:main'"),
        ("pyproject.toml", "[tool.poetry.scripts]\n'kit.export' = 'kit.cli:main'"),
        ("pyproject.toml", "[tool.poetry.scripts]\n'kit.export' = {reference = 'kit.cli:main', type = 'console'}"),
        ("setup.cfg", "[options.entry_points]\nconsole_scripts =\n    kit.export = kit.cli:main\n    other=a:b\n"),
        (DISTRIBUTION, "[console_scripts]\nkit.export = kit.cli:main [extra]\n[kit.plugins]\na = b:c\n"),
        ("kit.egg-info/entry_points.txt", "[console_scripts]\nkit.export=kit.cli:main\n"),
    ],
)
def test_a_console_script_is_found_wherever_it_is_declared(tmp_path: Path, path: str, text: str) -> None:
    assert console_scripts(FolderTree(write(tmp_path, {path: text})))["kit.export"] == ("kit.cli", "main")


def test_names_keep_their_case(tmp_path: Path) -> None:
    tree = FolderTree(write(tmp_path, {DISTRIBUTION: "[console_scripts]\nKit-Export = Kit.CLI:Main\n"}))
    assert console_scripts(tree) == {"Kit-Export": ("Kit.CLI", "Main")}


def _project(command: str, module: str = "kit.cli") -> str:
    return f"[project.scripts]\n{command} = '{module}:main'\n"


def test_project_above_a_library_counts_when_the_library_has_its_module(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "a/lib/python/src/kit/cli.py": "",
            "a/lib/python/pyproject.toml": _project("kit"),
            "a/lib/pyproject.toml": _project("stranger", "someone.else"),
            "a/pyproject.toml": _project("too-far"),
            "root/script.py": "",
        },
    )
    sources = Sources(tmp_path / "root", [tmp_path / "a/lib/python/src"])
    assert sources.console_script("kit") == ("kit.cli", "main")
    assert sources.console_script("stranger") is None
    assert sources.console_script("too-far") is None


def test_nearer_project_wins_and_later_library_wins(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "one/src/kit/cli.py": "",
            "one/src/kit/outer.py": "",
            "one/src/pyproject.toml": _project("kit"),
            "one/pyproject.toml": _project("kit", "kit.outer"),
            "two/kit/new.py": "",
            "two/pyproject.toml": _project("kit", "kit.new"),
            "root/pyproject.toml": _project("kit", "own.cli") + "own = 'own.cli:run'\n",
        },
    )
    one, two = tmp_path / "one/src", tmp_path / "two"
    assert Sources(tmp_path / "root").console_script("kit") == ("own.cli", "main")
    assert Sources(tmp_path / "root", [one]).console_script("kit") == ("kit.cli", "main")
    both = Sources(tmp_path / "root", [one, two])
    assert both.console_script("kit") == ("kit.new", "main")
    assert both.console_script("own") == ("own.cli", "run")
