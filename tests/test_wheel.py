"""What is installed is what was written: built, installed in an empty environment, used away from the checkout."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ("auditor", "probes", "reports", "rules")


def run(*command: str | Path, cwd: Path, status: int = 0) -> str:
    result = subprocess.run([str(word) for word in command], cwd=cwd, capture_output=True, text=True, check=False)
    assert result.returncode == status, result.stdout + result.stderr
    return result.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    run(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", folder, ROOT, cwd=folder)
    (found,) = folder.glob("*.whl")
    return found


def test_the_source_archive_holds_what_its_tests_read() -> None:
    """Everything of the checkout but how it is hosted; Hatch adds the two files that say how to build."""
    command = ["git", "ls-files", "-z"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode:
        pytest.skip("not a checkout")
    tops = {name.partition("/")[0] for name in listed.stdout.split("\0") if name}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    included = project["tool"]["hatch"]["build"]["targets"]["sdist"]["include"]
    assert {f"/{name}" for name in tops - {".github", ".gitignore", "pyproject.toml"}} == set(included)


@pytest.mark.slow
def test_the_wheel_holds_the_four_packages_with_their_data_and_nothing_else(wheel: Path) -> None:
    names = [name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name]
    written = [
        path.relative_to(ROOT).as_posix()
        for package in PACKAGES
        for path in (ROOT / package).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    ]
    assert sorted(names) == sorted(written)
    suffixes = {Path(name).suffix for name in names}
    assert {".py", ".j2", ".json", ".toml"} <= suffixes


@pytest.mark.slow
def test_the_wheel_works_in_an_empty_environment(wheel: Path, tmp_path: Path) -> None:
    run(sys.executable, "-m", "venv", "env", cwd=tmp_path)
    binaries = tmp_path / "env" / "bin"
    run(binaries / "pip", "install", "--quiet", "--disable-pip-version-check", wheel, cwd=tmp_path)
    assert "row-kernel" in run(binaries / "spec-audit", "rules", cwd=tmp_path)
    assert run(binaries / "spec-audit", "explain", "moe", cwd=tmp_path).startswith("# moe")
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / "nothing.py").write_text("print('no export here')\n")
    for format_ in ("json", "html"):
        run(binaries / "spec-audit", "scan", "tree", "--format", format_, "--output", format_, cwd=tmp_path, status=3)
    assert json.loads((tmp_path / "json").read_text("utf-8"))["schema"] == "spec-audit.scan/1"
