"""The child may die at any step; that is a result that names it, and nothing is left behind."""

from __future__ import annotations

import os
import signal
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from probes import supervisor
from probes.options import ProbeOptions
from probes.probe import probe
from probes.supervisor import supervise

pytest.importorskip("coreai.runtime")

QUICK = ProbeOptions(widths=(1, 2, 3, 4), repeats=3)


@pytest.fixture
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty temporary folder of our own, to see what is left in it."""
    folder = tmp_path / "scratch"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return folder


def kill_at(monkeypatch: pytest.MonkeyPatch, steps: set[str], number: int) -> dict[int, str]:
    """Send the child a signal when it starts one of `steps`, once each.

    Fills in, by process, the step at which it died: on a busy machine it may have come to the next one by then.
    """
    real = supervisor.supervise
    left = set(steps)
    died: dict[int, str] = {}

    def killing(request: Any, planned: Any, seconds: float, listener: Any) -> Any:
        def listen(event: Mapping[str, Any], pid: int) -> None:
            listener(event, pid)
            if event["event"] == "step" and (pid in died or event["id"] in left):
                if pid not in died:
                    os.kill(pid, number)
                left.discard(event["id"])
                died[pid] = event["id"]

        return real(request, planned, seconds, listen)

    monkeypatch.setattr("probes.probe.supervise", killing)
    return died


@pytest.mark.parametrize("gates", [("shape", "state", "rewind"), ("rows", "history", "repeat")])
def test_a_child_that_dies_at_a_gate_fails_that_gate_alone(
    bundle: Callable[[str], Path], scratch: Path, monkeypatch: pytest.MonkeyPatch, gates: tuple[str, ...]
) -> None:
    died = kill_at(monkeypatch, {f"main/{gate}" for gate in gates}, signal.SIGILL)
    report = probe(bundle("dense"), QUICK)
    gates = tuple(step.removeprefix("main/") for step in died.values())
    assert len(gates) > 1
    assert report["status"] == "refused"
    assert report["reasons"] == [f"not run: at main/{gate} the child process was ended by SIGILL" for gate in gates]
    verdicts = {item["gate"]: item["verdict"] for item in report["graphs"][0]["gates"]}
    assert verdicts == {name: "partial" if name in gates else "confirmed" for name in verdicts}
    assert len(verdicts) == 6
    assert list(scratch.iterdir()) == []


@pytest.mark.parametrize(
    ("step", "says"),
    [
        ("inspect", "at inspect the child process was ended by SIGKILL"),
        ("main/verify-cost@128", "at main/verify-cost@128 the child process was ended by SIGKILL"),
    ],
)
def test_a_child_that_dies_elsewhere(
    bundle: Callable[[str], Path], scratch: Path, monkeypatch: pytest.MonkeyPatch, step: str, says: str
) -> None:
    kill_at(monkeypatch, {step}, signal.SIGKILL)
    report = probe(bundle("dense"), QUICK)
    assert (report["status"], report["reasons"]) == ("refused", [says])
    assert list(scratch.iterdir()) == []


def test_a_step_that_takes_too_long_is_ended(bundle: Callable[[str], Path], scratch: Path) -> None:
    request = {"backend": "coreai", "path": str(bundle("dense_f16"))}
    schedule = {"widths": list(range(1, 17)), "context": 128, "repeats": 500}
    sweep = {"id": "slow", "kind": "sweep", "graph": "main", "capacity": 160, "schedule": schedule}
    run = supervise(request, [sweep, {**sweep, "id": "next"}], 0.6)
    assert run.failure("slow") == "at slow the child process took longer than 0.6 s"
    assert run.failure("next") == "not reached, for slow took longer than 0.6 s"
    assert list(scratch.iterdir()) == []


def test_a_step_that_ends_just_after_its_time_took_too_long(bundle: Callable[[str], Path]) -> None:
    """The child may be gone by the time that somebody looks."""
    run = supervise({"backend": "coreai", "path": str(bundle("dense"))}, [{"id": "inspect", "kind": "inspect"}], 0.01)
    assert run.failure("inspect") == "at inspect the child process took longer than 0.01 s"


def test_an_error_of_one_step_spares_the_rest(bundle: Callable[[str], Path]) -> None:
    request = {"backend": "coreai", "path": str(bundle("dense"))}
    gate = {"kind": "gate", "gate": "repeat", "capacity": 96, "bench": {"width": 4}}
    run = supervise(request, [{**gate, "id": "a", "graph": "none"}, {**gate, "id": "b", "graph": "main"}], 60)
    assert run.failure("a") == "no entry point is called 'none'; there are: main"
    assert run.value("b")["verdict"] == "confirmed"


def test_no_temporary_folder_can_be_written(bundle: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(**_: Any) -> str:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(tempfile, "mkdtemp", refuse)
    report = probe(bundle("dense"), QUICK)
    assert report["status"] == "refused"
    assert report["reasons"] == ["no temporary folder can be written (Permission denied); set TMPDIR to one that can"]


def test_without_the_runtime_the_files_and_the_install_line_remain(
    bundle: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "blocked" / "coreai"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("raise ImportError('No module named coreai')\n")
    monkeypatch.setenv("PYTHONPATH", str(package.parent))
    report = probe(bundle("dense"), QUICK)
    assert (report["status"], report["verdict"]) == ("ok", "partial")
    assert "pip install 'coreai-core>=1.0.0b3' 'numpy>=2.3,<2.4'" in report["reasons"][0]
    assert report["files"]["assets"][0]["bytes"] > 100_000


def test_the_current_folder_is_not_imported_from(
    bundle: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("probes", "rules", "json", "numpy", "coreai", "click", "sitecustomize"):
        (tmp_path / f"{name}.py").write_text(f"open({str(tmp_path / 'touched')!r}, 'w')\nraise SystemExit(9)\n")
    monkeypatch.chdir(tmp_path)
    assert probe(bundle("dense"), QUICK)["verdict"] == "confirmed"
    assert not (tmp_path / "touched").exists()


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_the_child_ends_with_its_parent(bundle: Callable[[str], Path], scratch: Path) -> None:
    import subprocess
    import time

    script = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from probes.supervisor import supervise\n"
        "schedule = {'widths': list(range(1, 17)), 'context': 128, 'repeats': 5000}\n"
        "step = {'id': 's', 'kind': 'sweep', 'graph': 'main', 'capacity': 160, 'schedule': schedule}\n"
        "say = lambda event, pid: print(event['event'], pid, flush=True)\n"
        "supervise({'backend': 'coreai', 'path': sys.argv[2]}, [step], 600, say)\n"
    )
    root = str(Path(supervisor.__file__).resolve().parents[1])
    parent = subprocess.Popen(
        [sys.executable, "-c", script, root, str(bundle("dense_f16"))], stdout=subprocess.PIPE, text=True
    )
    assert parent.stdout is not None
    line = next(text for text in parent.stdout if text.startswith("progress"))
    child = Path(f"/proc/{line.split()[1]}")
    assert child.exists()
    parent.kill()
    parent.wait()
    parent.stdout.close()
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline and (_alive(child) or any(scratch.iterdir())):
        time.sleep(0.05)
    assert not _alive(child)
    assert list(scratch.iterdir()) == []


def _alive(process: Path) -> bool:
    try:
        return "\nState:\tZ" not in (process / "status").read_text()
    except OSError:
        return False
