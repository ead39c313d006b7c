"""`spec-audit probe bundle.mlpackage` as a person runs it: how long it takes, what it imports, what it says."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from click.testing import CliRunner

from auditor.cli import cli
from reports.json_report import document
from rules.audit import audit
from rules.examples import PINNED
from rules.facts import Scan
from tests.machine import slower
from tests.rules.graphs import graph

ROOT = Path(__file__).resolve().parents[3]
EXAMPLE = ROOT / "examples" / "bundles" / "dense.mlpackage"
AIMODEL = ROOT / "examples" / "bundles" / "dense.aimodel"
SCHEMA = json.loads(files("reports").joinpath("schemas/probe-1.schema.json").read_text())
COMMAND = [sys.executable, "-P", "-m", "auditor", "probe", "--mode", "inspect"]


def run(*arguments: object) -> tuple[dict[str, Any], int]:
    result = CliRunner().invoke(cli, ["probe", *map(str, arguments), "--format", "json"])
    report = json.loads(result.stdout)
    jsonschema.validate(report, SCHEMA)
    return report, result.exit_code


def environment(**more: str) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT), **more}


def _processor_seconds() -> float:
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    return spent.ru_utime + spent.ru_stime


def test_the_whole_command_takes_at_most_300_ms() -> None:
    """Of wall time; on a machine with more to do than cores, of processor time."""
    busy = os.getloadavg()[0] > (os.cpu_count() or 1)
    times = []
    for _ in range(5):
        started = _processor_seconds() if busy else time.perf_counter()
        done = subprocess.run(
            [*COMMAND, EXAMPLE], env=environment(), capture_output=True, text=True, check=False, cwd=ROOT.parent
        )
        times.append((_processor_seconds() if busy else time.perf_counter()) - started)
        assert done.returncode == 0, done.stderr
        assert done.stdout.startswith("PARTIAL    dense.mlpackage")
    assert min(times) <= 0.3 * slower()


def test_neither_numpy_nor_torch_nor_the_body_of_coremltools_is_imported(tmp_path: Path) -> None:
    for name in ("numpy", "torch", "sympy"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('imported')\n")
    traps = environment(PYTHONPATH=f"{tmp_path}{os.pathsep}{ROOT}")
    done = subprocess.run([*COMMAND, EXAMPLE], env=traps, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.splitlines()[0][:26]) == (0, "PARTIAL    dense.mlpackage"), done.stderr
    # The traps work: the reference needs numpy, and falls into one.
    arguments = [*COMMAND[:-1], "rows", "--backend", "reference", EXAMPLE]
    done = subprocess.run(arguments, env=traps, capture_output=True, text=True, check=False)
    assert done.returncode == 1


def test_the_stand_in_is_gone_and_coremltools_is_itself() -> None:
    code = (
        "import sys, warnings; warnings.simplefilter('ignore')\n"
        "from probes.coreml.proto import model_class\n"
        "model = model_class()()\n"
        "assert not [name for name in sys.modules if name.split('.')[0] in ('coremltools', 'numpy')]\n"
        "import coremltools\n"
        "assert coremltools.convert and coremltools.__version__\n"
        "from coremltools.proto.Model_pb2 import Model\n"
        "assert isinstance(model, Model) and model_class()() == Model()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], env=environment(), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_without_coremltools_the_install_line_is_given(tmp_path: Path) -> None:
    code = (
        "import importlib.util, sys\n"
        "importlib.util.find_spec = lambda name: None\n"
        "from probes.backend import BackendError\n"
        "from probes.coreml.proto import model_class\n"
        "try:\n    model_class()\nexcept BackendError as error:\n    print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], env=environment(), capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "coremltools is not installed; pip install 'coremltools>=9.0,<10'"


@pytest.mark.skipif(sys.platform == "darwin", reason="Core ML runs here")
def test_elsewhere_than_on_macos_it_says_what_to_do() -> None:
    report, status = run(EXAMPLE)
    (graph,) = report["graphs"]
    assert (report["verdict"], report["scope"], status) == ("partial", "program", 0)
    assert graph["not_run"].startswith("Core ML runs on macOS only; `--backend reference`")
    assert (graph["gates"], graph["verify_cost"]) == ([], [])


def test_the_example_through_all_gates() -> None:
    report, status = run(EXAMPLE, "--backend", "reference", "--sweep-s", "1..8")
    (graph,) = report["graphs"]
    assert (report["verdict"], report["scope"], status) == ("confirmed", "program", 0)
    assert [gate["gate"] for gate in graph["gates"]] == ["shape", "rows", "state", "history", "rewind", "repeat"]
    assert graph["gates"][1]["numbers"]["widths"]["8"]["argmax_equal"] == 8
    assert graph["gates"][5]["numbers"]["fresh_process"] == {"rows": 40, "argmax_equal": 40}
    # Never a timing.
    assert graph["verify_cost"] == []
    assert any("verify-cost not run: the program was evaluated, not executed" in note for note in graph["notes"])
    text = CliRunner().invoke(
        cli, ["probe", str(EXAMPLE), "--backend", "reference", "--mode", "rows", "--sweep-s", "1,2"]
    )
    assert "program semantics, device untested" in text.stdout.splitlines()[0]


def test_the_report_has_the_shape_of_an_aimodels(tmp_path: Path) -> None:
    pytest.importorskip("coreai.authoring")
    ours, _ = run(EXAMPLE, "--mode", "inspect")
    theirs, _ = run(AIMODEL, "--mode", "inspect")
    assert ours.keys() == theirs.keys()
    assert ours["graphs"][0].keys() == theirs["graphs"][0].keys()
    assert ours["graphs"][0]["facts"].keys() == theirs["graphs"][0]["facts"].keys()
    assert [ours["graphs"][0]["facts"][key]["value"] for key in ("kind", "query", "logits", "kv")] == [
        theirs["graphs"][0]["facts"][key]["value"] for key in ("kind", "query", "logits", "kv")
    ]


def test_the_plan_says_of_either_report_that_nothing_was_timed(tmp_path: Path) -> None:
    said = []
    for name, bundle in (("ours", EXAMPLE), ("theirs", AIMODEL)):
        result = CliRunner().invoke(cli, ["probe", str(bundle), "--mode", "inspect", "--format", "json"])
        (tmp_path / f"{name}.json").write_text(result.stdout)
        told = CliRunner().invoke(cli, ["plan", str(tmp_path / f"{name}.json")])
        said.append((told.exit_code, told.stderr.partition("Error: ")[2].replace(f"{name}.json", "")))
    assert said[0] == said[1]
    assert said[0][0] == 2


def test_a_scan_joins_a_package(tmp_path: Path) -> None:
    scan = document(audit(Scan("zoo", (), (graph(PINNED, bundle="out/dense.mlpackage"),))))
    (tmp_path / "scan.json").write_text(json.dumps(scan))
    report, _ = run(EXAMPLE, "--mode", "inspect", "--against", tmp_path / "scan.json")
    (pair,) = report["against"]["graphs"]
    assert pair["scan_graph"] == scan["graphs"][0]["id"]
    assert any("static:1" in item["message"] for item in pair["disagreements"])


def test_backends_read_their_own_format(package: Callable[[str], Path]) -> None:
    report, status = run(EXAMPLE, "--backend", "coreai")
    assert (report["status"], status) == ("refused", 1)
    said = "dense.mlpackage: the backend 'coreai' does not read this; use coreml or reference"
    assert report["reasons"] == [said]
