"""The pre-commit hook, installed by pre-commit from a clone of this repository into an environment of its own."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]


class Repository:
    """A user's repository with the examples in it, and the hook from a git clone of ours."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.tool, self.home = folder / "user", folder / "tool", folder / "home"
        self.folder.mkdir()
        self.home.mkdir()
        self._snapshot()
        shutil.copytree(ROOT / "examples" / "exports", self.folder, dirs_exist_ok=True)
        revision = self.git("rev-parse", "HEAD", cwd=self.tool)
        hooks = {"repos": [{"repo": str(self.tool), "rev": revision, "hooks": [{"id": "spec-audit"}]}]}
        (self.folder / ".pre-commit-config.yaml").write_text(yaml.safe_dump(hooks))
        self.git("init", "--quiet")
        self.git("add", "--all")

    def _snapshot(self) -> None:
        """The working tree as a commit: what a user gets once it is pushed."""
        for name in self._files():
            if (ROOT / name).is_file():
                (self.tool / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(ROOT / name, self.tool / name)
        self.git("init", "--quiet", cwd=self.tool)
        self.git("add", "--all", cwd=self.tool)
        self.git("commit", "--quiet", "--message", "snapshot", cwd=self.tool)

    @staticmethod
    def _files() -> list[str]:
        """The files of the checkout; outside of one, those that a build reads."""
        command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        if listed.returncode == 0:
            return [name for name in listed.stdout.split("\0") if name]
        folders = [path for name in ("auditor", "probes", "reports", "rules") for path in (ROOT / name).rglob("*")]
        files = [ROOT / name for name in (".pre-commit-hooks.yaml", "pyproject.toml", "README.md", "LICENSE")]
        return [path.relative_to(ROOT).as_posix() for path in (*folders, *files) if "__pycache__" not in path.parts]

    def git(self, *arguments: str, cwd: Path | None = None) -> str:
        command = ["git", "-c", "user.name=t", "-c", "user.email=t@example.org", *arguments]
        result = subprocess.run(command, cwd=cwd or self.folder, capture_output=True, text=True, check=True)
        return result.stdout.strip()

    def hook(self) -> tuple[int, str]:
        self.git("add", "--all")
        environment = os.environ | {"PRE_COMMIT_HOME": str(self.home)}
        command = [sys.executable, "-m", "pre_commit", "run", "--verbose", "--color", "never"]
        result = subprocess.run(command, cwd=self.folder, env=environment, capture_output=True, text=True, check=False)
        return result.returncode, result.stdout + result.stderr


@pytest.mark.slow
def test_the_hook_keeps_a_promise(tmp_path: Path) -> None:
    repository = Repository(tmp_path)
    status, printed = repository.hook()
    assert status == 0, printed
    assert "13 models: 3 eligible, 9 out, 1 unresolved" in printed
    promise = repository.folder / "spec-audit.toml"
    promise.write_text('[expect]\npine-1b-dynamic = "eligible"\n')
    assert repository.hook()[0] == 0
    recipe = repository.folder / "models" / "pine-1b" / "recipe.toml"
    head, name, tail = recipe.read_text("utf-8").partition("[pine-1b-dynamic]")
    recipe.write_text(head + name + tail.replace("args = [", 'args = ["--static-ids", ', 1), "utf-8")
    status, printed = repository.hook()
    assert status == 1
    assert "models/pine-1b/recipe.toml#pine-1b-dynamic must be eligible and is out" in printed
