"""Nothing of the audited tree is imported or run, whatever it holds and from wherever the scan is started.

The limit is Python's and is documented: `python -m auditor` without `-P` looks in the current folder first, so a
package `auditor` there is what runs, and a file named like a module that `-m` itself needs (`functools.py`) is loaded.
The console command and `python -P -m auditor` never look there.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from auditor import exits
from tests.auditor.support import EXPORTER, ROOT, graph_of, scan_text, write

STATUS = 77
"""The status of a process in which a file of the tree was run."""

BOMB = """\
import os
open({marker!r}, "w").close()
os._exit(77)
"""

OURS_OR_INSTALLED = ["click", "markupsafe", "numpy", "torch", "typing_extensions", "sitecustomize", "usercustomize"]
AFTER_THE_START = ["tomllib", "json", "pathlib", "dataclasses", "textwrap", "difflib"]
AT_THE_START = ["ast", "enum", "functools", "posixpath", "threading", "encodings", "site", "readline"]
"""Modules of the library by the time at which `python -m` loads them: after or before it runs anything of ours."""

PACKAGES = ("rules", "auditor", "probes", "reports", "libcst", "jinja2", "coremltools")

EFFECTS = """\
import os, pathlib, shutil, socket, subprocess, sys, urllib.request

MARK = {marker!r}
open(MARK, "w").write("open")
pathlib.Path(MARK).write_text("pathlib")
os.system("touch " + MARK)
subprocess.run(["touch", MARK])
subprocess.check_call("touch " + MARK, shell=True)
os.makedirs(MARK, exist_ok=True)
exec("open(MARK, 'w').write('exec')")
eval("open(MARK, 'w').write('eval')")
compile("open(MARK, 'w')", "x", "exec")
__import__("os").system("touch " + MARK)
import importlib
importlib.import_module("bomb")
import bomb
shutil.rmtree(os.path.dirname(os.path.abspath(__file__)))
os.remove(__file__)
pathlib.Path(__file__).unlink()


class Meta(type):
    def __prepare__(name, bases):
        open(MARK, "w").write("prepare")
        return {{}}


class Trap(metaclass=Meta):
    def __set_name__(self, owner, name):
        open(MARK, "w").write("set_name")
"""


@pytest.fixture
def marker(tmp_path: Path) -> Path:
    return tmp_path / "was-run"


@pytest.fixture
def tree(tmp_path: Path, marker: Path) -> Path:
    """A tree with an eligible exporter, whose every other module writes the marker and ends the process."""
    bomb = BOMB.format(marker=str(marker))
    files = {f"{name}.py": bomb for name in (*OURS_OR_INSTALLED, *AFTER_THE_START, *AT_THE_START)}
    for name in PACKAGES:
        files |= {
            f"{name}/__init__.py": bomb,
            f"{name}/__main__.py": bomb,
            f"{name}/cli.py": bomb,
            f"{name}/facts.py": bomb,
        }
    files["bomb.py"] = bomb
    files["export.py"] = EXPORTER + "\n\n" + EFFECTS.format(marker=str(marker)) + bomb
    files["first.py"] = bomb + "\n\nfrom coreai_torch import TorchConverter\n"
    files["models/m/recipe.toml"] = '[m]\nscript = "export.py"\n\n[n]\ncommand = ["python", "bomb.py"]\n'
    files["conftest.py"] = files["setup.py"] = bomb
    files["pyproject.toml"] = '[tool.spec-audit]\nfail-on = "never"\n'
    files["spec-audit"] = "#!/bin/sh\ntouch " + str(marker) + "\n"
    files[".pth"] = files["evil.pth"] = "import bomb\n"
    return write(tmp_path / "tree", files)


def run(command: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")} | {"PYTHONPATH": str(ROOT)}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def console(tmp_path: Path) -> list[str]:
    """What pip installs as `spec-audit`: a script in a folder of its own."""
    script = tmp_path / "bin" / "spec-audit"
    write(script.parent, {script.name: "import sys\nfrom auditor.cli import main\nsys.exit(main())\n"})
    return [sys.executable, str(script)]


def snapshot(tree: Path) -> dict[str, bytes]:
    return {p.relative_to(tree).as_posix(): p.read_bytes() for p in sorted(tree.rglob("*")) if p.is_file()}


def verdicts(output: str) -> dict[str, str]:
    return {g["script"]: g["verdict"] for g in json.loads(output)["graphs"] if g["invocation"]["kind"] == "default"}


WAYS = {
    "the console command": ("console", "."),
    "python -P -m auditor": ("module", "."),
    "two processes": ("console", ". --jobs 2"),
    "the tree as a library of itself": ("console", ". --library ."),
    "a folder of the tree": ("console", ". --library rules"),
    "checkpoints in the tree": ("console", ". --checkpoints ."),
    "a configuration of the tree": ("console", ". --config pyproject.toml"),
    "HTML": ("console", ". --format html"),
}


@pytest.mark.parametrize("way", sorted(WAYS))
def test_nothing_is_run(tmp_path: Path, tree: Path, marker: Path, way: str) -> None:
    start, options = WAYS[way]
    command = console(tmp_path) if start == "console" else [sys.executable, "-P", "-m", "auditor"]
    arguments = options.split()
    if "--format" not in arguments:
        arguments += ["--format", "json"]
    before = snapshot(tree)
    result = run([*command, "scan", *arguments], tree)
    assert result.returncode == exits.OK, result.stderr
    assert not marker.exists()
    assert snapshot(tree) == before, "the scan wrote into the tree"
    if "html" not in arguments:
        assert verdicts(result.stdout)["export.py"] == "eligible"


def test_python_m_without_p(tree: Path, marker: Path) -> None:
    shutil.rmtree(tree / "auditor")
    for name in AT_THE_START:
        (tree / f"{name}.py").unlink()
    result = run([sys.executable, "-m", "auditor", "scan", ".", "--format", "json"], tree)
    assert result.returncode == exits.OK, result.stderr
    assert not marker.exists()
    assert verdicts(result.stdout)["export.py"] == "eligible"


def test_the_documented_limit_is_one(tree: Path, marker: Path) -> None:
    """Were this to change, the limit would have to leave the documentation."""
    for name in AT_THE_START:
        (tree / f"{name}.py").unlink()
    assert run([sys.executable, "-m", "auditor", "scan", "."], tree).returncode == STATUS
    assert marker.exists()


def test_the_bombs_work(tree: Path, marker: Path) -> None:
    assert run([sys.executable, "bomb.py"], tree).returncode == STATUS
    assert marker.exists()


HELPED = """\
import threading
import time
from auditor import helper, jobs
from auditor.cli import main

def leaves_it_to_helpers(self, examiner):
    while self._left and not self._lost and any("_follow" in thread.name for thread in threading.enumerate()):
        time.sleep(0.01)
    assert not self._left and not self._lost, "the helpers have not done it"

jobs.Jobs._work = leaves_it_to_helpers
{change}
raise SystemExit(main(["scan", ".", "--format", "json", "--jobs", "3", "--no-cache"]))
"""


@pytest.mark.parametrize("more", [[], ["-I"], ["-E"]], ids=lambda more: " ".join(more) or "plain")
def test_helpers_run_nothing_of_the_tree(tree: Path, marker: Path, more: list[str]) -> None:
    """The current folder is the tree, and this process leaves every script to its helpers."""
    code = f"import sys; sys.path.insert(0, {str(ROOT)!r})\n" + HELPED.format(change="")
    before = snapshot(tree)
    result = run([sys.executable, "-P", *more, "-c", code], tree)
    assert result.returncode == exits.OK, result.stderr
    assert not marker.exists()
    assert snapshot(tree) == before, "the scan wrote into the tree"
    assert verdicts(result.stdout)["export.py"] == "eligible"


def test_helpers_would_run_the_tree_if_they_looked_there(tree: Path, marker: Path) -> None:
    """The test above can fail: without `-P` a helper finds the tree's modules."""
    result = run([sys.executable, "-P", "-c", HELPED.format(change="helper._flags = lambda: []")], tree)
    assert marker.exists(), result.stderr


def test_a_module_body_that_ends_the_process(tmp_path: Path, marker: Path) -> None:
    """In this very process: were it run, the test session would be gone."""
    result = scan_text(tmp_path / "tree", {"export.py": EXPORTER, "bomb.py": BOMB.format(marker=str(marker))})
    assert graph_of(result).script == "export.py"
    assert not marker.exists()
    assert "bomb" not in sys.modules


def test_modules_of_the_tree_do_not_reach_the_interpreter(tmp_path: Path, marker: Path) -> None:
    files = {
        "export.py": "import colours_of_the_tree\n" + EXPORTER,
        "colours_of_the_tree.py": BOMB.format(marker=str(marker)),
    }
    path, modules = list(sys.path), set(sys.modules)
    scan_text(tmp_path / "tree", dict(files))
    assert sys.path == path
    assert not {m for m in set(sys.modules) - modules if not m.startswith(("auditor", "libcst", "rules"))} & {
        "colours_of_the_tree",
        "torch",
        "coreai_torch",
        "coremltools",
    }
    assert not marker.exists()


def test_a_scan_imports_no_heavy_framework(tmp_path: Path) -> None:
    write(tmp_path / "tree", {"export.py": EXPORTER})
    code = (
        "import sys\nfrom auditor.cli import main\nstatus = main(['scan', 'tree', '--format', 'json'])\n"
        "print(sorted(set(sys.modules) & {'torch', 'coremltools', 'coreai', 'coreai_torch', 'numpy', 'transformers'}))"
    )
    result = run([sys.executable, "-P", "-c", code], tmp_path)
    assert result.stdout.splitlines()[-1] == "[]", result.stderr


def test_what_the_tree_says_cannot_steer_the_report(tmp_path: Path) -> None:
    """Names of the tree reach the terminal and the page escaped."""
    evil = "\\x1b[2J<script>alert(1)</script>"
    script = EXPORTER.replace('"out/model.aimodel"', f'"{evil}.aimodel"')
    write(tmp_path / "tree", {"export.py": script})
    for form in ("text", "html"):
        result = run([*console(tmp_path), "scan", "tree", "--format", form], tmp_path)
        assert result.returncode == exits.OK, result.stderr
        assert "\x1b" not in result.stdout + result.stderr
        if form == "html":
            assert "<script>alert" not in result.stdout


# -- the same input gives the same bytes ------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["text", "json", "html"])
def test_two_runs_give_the_same_bytes(tmp_path: Path, form: str) -> None:
    outputs = set()
    for seed in ("1", "2", "random"):
        environment = os.environ | {"PYTHONPATH": str(ROOT), "PYTHONHASHSEED": seed}
        command = [*console(tmp_path), "scan", "examples/exports", "--format", form, "--no-cache"]
        result = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, check=True)
        outputs.add(result.stdout)
    assert len(outputs) == 1


def test_the_cache_and_the_number_of_processes_change_nothing(tmp_path: Path) -> None:
    outputs = set()
    environment = os.environ | {
        "PYTHONPATH": str(ROOT),
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
        "HOME": str(tmp_path),
    }
    for options in (["--no-cache"], [], [], ["--jobs", "2"], ["--jobs", "2", "--no-cache"]):
        command = [*console(tmp_path), "scan", "examples/exports", "--format", "json", *options]
        outputs.add(subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, check=True).stdout)
    assert len(outputs) == 1


def test_the_place_of_the_tree_changes_nothing(tmp_path: Path) -> None:
    outputs = set()
    for folder in ("a", "b/c"):
        tree = write(
            tmp_path / folder / "tree", {"export.py": EXPORTER, "models/m/recipe.toml": '[m]\nscript = "export.py"\n'}
        )
        outputs.add(run([*console(tmp_path), "scan", "tree", "--format", "json"], tree.parent).stdout)
    assert len(outputs) == 1
