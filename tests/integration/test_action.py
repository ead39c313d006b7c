"""The action's own run steps, as a runner would execute them: same shell, same variables, another repository."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
ACTION: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))
EXPRESSION = re.compile(r"\$\{\{\s*(.*?)\s*\}\}")


class Runner:
    """Runs the composite action in a folder. Steps that `use` another action are noted, not run."""

    def __init__(self, folder: Path) -> None:
        self.workspace, self.temp = folder / "work", folder / "temp"
        self.workspace.mkdir()
        self.temp.mkdir()
        self.files = {name: folder / name for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}

    def run(self, **inputs: str) -> tuple[int, str, list[str]]:
        """The status of the action, what it printed, and the actions it would have used."""
        for file in self.files.values():
            file.write_text("")
        given = {name: str(item["default"]) for name, item in ACTION["inputs"].items()}
        given |= {name.replace("_", "-"): value for name, value in inputs.items()}
        assert given.keys() == ACTION["inputs"].keys()
        values = {f"inputs.{name}": value for name, value in given.items()}
        values["steps.python.outputs.python-path"] = sys.executable
        printed, used = "", []
        for step in ACTION["runs"]["steps"]:
            if "if" in step and not self._holds(step["if"], values):
                continue
            if "uses" in step:
                used.append(step["uses"].partition("@")[0])
                continue
            assert "${{" not in step["run"], "an expression in a script is an injection"
            extra = {key: EXPRESSION.sub(lambda m: values[m[1]], text) for key, text in step.get("env", {}).items()}
            environment = {
                "PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/"), "RUNNER_TEMP": str(self.temp),
                "GITHUB_ACTION_PATH": str(ROOT), **{key: str(file) for key, file in self.files.items()},
                **{key: value for key, value in os.environ.items() if key.startswith("PIP_")}, **extra,
            }  # fmt: skip
            command = ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", "-c", step["run"]]
            result = subprocess.run(
                command, cwd=self.workspace, env=environment, capture_output=True, text=True, check=False
            )
            printed += result.stdout + result.stderr
            for line in self.files["GITHUB_OUTPUT"].read_text().splitlines():
                name, _, value = line.partition("=")
                values[f"steps.{step.get('id', '')}.outputs.{name}"] = value
            if result.returncode:
                return result.returncode, printed, used
        return 0, printed, used

    @staticmethod
    def _holds(condition: str, values: dict[str, str]) -> bool:
        """The few operators that the action uses, by hand: `==`, `&&`, `||` and brackets."""
        text = EXPRESSION.sub(r"\1", condition)
        text = re.sub(r"(?:inputs|steps)\.[\w.-]+", lambda m: repr(values[m[0]]), text)
        return bool(eval(text.replace("&&", " and ").replace("||", " or "), {"__builtins__": {}}))


@pytest.fixture(scope="module")
def runner(tmp_path_factory: pytest.TempPathFactory) -> Runner:
    runner = Runner(tmp_path_factory.mktemp("runner"))
    shutil.copytree(ROOT / "examples" / "exports", runner.workspace / "my zoo")
    return runner


@pytest.mark.slow
def test_the_examples(runner: Runner) -> None:
    status, printed, used = runner.run(paths="'my zoo'")
    assert status == 0, printed
    assert used == ["actions/setup-python", "github/codeql-action/upload-sarif"]
    assert "::warning file=my zoo/conversion/export_step.py,line=" in printed
    assert (
        "| ✅ eligible | `models/pine-suite/recipe.toml#pine-suite` |"
        in runner.files["GITHUB_STEP_SUMMARY"].read_text()
    )
    results = json.loads((runner.workspace / "spec-audit.sarif").read_text())["runs"][0]["results"]
    assert len(results) > 10
    assert json.loads((runner.workspace / "spec-audit.json").read_text())["schema"] == "spec-audit.scan/1"


@pytest.mark.slow
def test_it_fails_at_the_chosen_level_and_uploads_before(runner: Runner) -> None:
    status, printed, used = runner.run(paths="'my zoo'", fail_on="out", step_summary="false")
    assert status == 1
    assert "::error file=my zoo/conversion/export_step.py" in printed
    assert "github/codeql-action/upload-sarif" in used
    assert runner.files["GITHUB_STEP_SUMMARY"].read_text() == ""


@pytest.mark.slow
@pytest.mark.parametrize("inputs", [{"paths": "nowhere"}, {"arguments": "--no-such-option"}, {"fail_on": "sometimes"}])
def test_wrong_input_is_a_usage_error(runner: Runner, inputs: dict[str, str]) -> None:
    status, printed, used = runner.run(**inputs)
    assert status == 2, printed
    assert used == ["actions/setup-python"]


@pytest.mark.slow
def test_inputs_are_words_and_never_commands(runner: Runner) -> None:
    status, _, _ = runner.run(paths="$(touch pwned) ; touch pwned", arguments="`touch pwned`")
    assert status == 2
    assert not (runner.workspace / "pwned").exists()
