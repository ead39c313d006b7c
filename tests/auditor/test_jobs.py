"""Several processes: the same result from any number of them, whoever does what and whoever dies."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from auditor import cache, exits, helper, job_messages, jobs
from auditor.cli import main
from auditor.examine import Examiner
from auditor.recipes import RecipeSettings
from auditor.request import ScanRequest
from auditor.runs import Found, Outcome, Run
from auditor.scan import scan
from auditor.seen import Seen
from rules.facts import FileStatus, InvocationKind, Scan
from tests.auditor.support import CORE_ML, EXPORTER, ROOT, file_of, mutate, write

SECONDS = 60.0
LONGEST = EXPORTER + "# the longest script is the first that is taken\n" * 200
FORKS = mutate(
    EXPORTER,
    (
        'parser.add_argument("--static"',
        'parser.add_argument("--size", choices=["s", "m"], required=True)\n    parser.add_argument("--static"',
    ),
)
UNCALLED = mutate(EXPORTER, ('if __name__ == "__main__":', "def never():"))
WAITS = "from coreai_torch import TorchConverter\nfrom nowhere import convert\n\nconvert(TorchConverter)\n"
FILES = {
    "a.py": "import shared\nprint(shared.more.X)\n" + EXPORTER,
    "b.py": LONGEST,
    "c.py": CORE_ML,
    "forks.py": FORKS,
    "uncalled.py": UNCALLED,
    "waits.py": WAITS,
    "defines.py": "from coreai_torch import TorchConverter\nimport nowhere\nTABLE = nowhere.table(TorchConverter)\n",
    "broken.py": "from coreai_torch import TorchConverter\ndef (\n",
    "launches.py": "import subprocess, sys\nfrom pathlib import Path\nfrom coreai_torch import TorchConverter\n"
    'subprocess.run([sys.executable, str(Path(__file__).parent / "a.py"), "--static"])\n'
    'subprocess.run(["export-ours"])\n',
    "shared.py": "from lib_of_ours import more\n",
    "drives.py": "import driven\ndriven.never(driven.argparse.Namespace(static=False))\n",
    "driven.py": UNCALLED,
    "rest.py": "print('nothing')\n",
    "models/m/recipe.toml": '[m]\nscript = "a.py"\nargs = ["--static"]\nbundle = "m.aimodel"\n\n'
    '[n]\nscript = "b.py"\n\n[o]\nscript = "b.py"\nargs = ["--nonsense"]\n\n[c]\ncommand = ["export-ours"]\n',
}


@pytest.fixture
def request_(tmp_path: Path) -> ScanRequest:
    root = write(tmp_path / "tree", dict(FILES))
    write(tmp_path / "lib", {"lib_of_ours/__init__.py": "", "lib_of_ours/more.py": "X = 1\n"})
    write(tmp_path, {"checkpoints/o/n/config.json": '{"hidden_size": 32}'})
    return ScanRequest(root, (root,), (tmp_path / "lib",), checkpoints=tmp_path / "checkpoints", cache=False)


def asked(request: ScanRequest, jobs: int) -> ScanRequest:
    """The same with so many processes, and nothing seen yet."""
    return replace(request, jobs=jobs, seen=Seen())


class Crew:
    """The helpers that were started. This process leaves them the work: all, or until one has died (`until`)."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.started: list[helper.Helper] = []
        self.until: Callable[[jobs.Jobs], object] = lambda work: not work._left
        begin, work = helper.Helper.__init__, jobs.Jobs._work

        def began(made: helper.Helper, request: ScanRequest) -> None:
            begin(made, request)
            self.started.append(made)

        def waits(shared: jobs.Jobs, examiner: Examiner) -> None:
            last = time.monotonic() + SECONDS
            while not self.until(shared) and any(t.is_alive() for t in threading.enumerate() if "_follow" in t.name):
                assert time.monotonic() < last, "the helpers do nothing"
                time.sleep(0.01)
            work(shared, examiner)

        monkeypatch.setattr(helper.Helper, "__init__", began)
        monkeypatch.setattr(jobs.Jobs, "_work", waits)

    @property
    def dead(self) -> bool:
        return all(made._process.poll() is not None for made in self.started)


@pytest.fixture
def crew(monkeypatch: pytest.MonkeyPatch) -> Iterator[Crew]:
    crew = Crew(monkeypatch)
    yield crew
    assert crew.dead, "a helper was left behind"


def booted(monkeypatch: pytest.MonkeyPatch, code: str) -> None:
    """Helpers that run `code` first; it may define `at(script)`, called before each evaluation of a script."""
    before = (
        "import os, signal, sys; sys.path.insert(0, sys.argv[1])\n"
        "import auditor.evaluations as evaluations\n"
        "real = evaluations.run_script\n"
        "def at(script): pass\n"
        f"{code}\n"
        "def run_script(loader, script, *rest):\n    at(script)\n    return real(loader, script, *rest)\n"
        "evaluations.run_script = run_script\n"
        "from auditor.job import main\nmain()\n"
    )
    monkeypatch.setattr(helper, "BOOT", before)


def dies(how: str, script: str = "b.py") -> str:
    return f"def at(script):\n    if script == {script!r}:\n        {how}"


KILL = "os.kill(os.getpid(), signal.SIGKILL)"


# -- the same result --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [2, 3, 50])
def test_helpers_find_what_one_process_finds(request_: ScanRequest, crew: Crew, count: int) -> None:
    alone, together = asked(request_, 1), asked(request_, count)
    expected = scan(alone)
    assert crew.started == []
    assert scan(together) == expected
    groups = 12  # eleven scripts and a command
    assert len(crew.started) == min(count, groups) - 1
    assert together.seen == alone.seen
    scripts = {graph.script for graph in expected.graphs}
    assert {"a.py", "b.py", "c.py", "forks.py", "uncalled.py", "waits.py", "launches.py"} <= scripts
    assert {graph.invocation.kind for graph in expected.graphs} == set(InvocationKind)
    assert {graph.script for graph in expected.graphs if graph.by == "drives.py"} == {"driven.py"}
    assert len({graph.id for graph in expected.graphs}) == len(expected.graphs)
    assert file_of(expected, "broken.py").status is FileStatus.ERROR


def test_whoever_takes_what(request_: ScanRequest) -> None:
    """Helpers and this process race for scripts."""
    expected = scan(asked(request_, 1))
    for _ in range(3):
        assert scan(asked(request_, 3)) == expected


def test_part_of_a_tree(request_: ScanRequest, crew: Crew) -> None:
    root = request_.root
    part = replace(request_, paths=(root / "a.py", root / "b.py"), recipes=RecipeSettings("**/none.toml"))
    expected = scan(asked(part, 1))
    assert scan(asked(part, 2)) == expected
    assert {file.path for file in expected.files} == {"a.py", "b.py"}
    assert len(crew.started) == 1


def test_a_single_script_needs_no_helper(tmp_path: Path, crew: Crew) -> None:
    root = write(tmp_path / "tree", {"a.py": EXPORTER, "recipe.toml": '[m]\nscript = "a.py"\nargs = ["--static"]\n'})
    request = ScanRequest(root, (root,), jobs=8)
    assert len(scan(request).graphs) == 3
    empty = write(tmp_path / "empty", {"a.py": "print(1)\n"})
    assert scan(ScanRequest(empty, (empty,), jobs=8)).graphs == ()
    assert crew.started == []


def test_a_helper_that_comes_too_late_is_not_waited_for(request_: ScanRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    booted(monkeypatch, f"import time\ntime.sleep({SECONDS})")
    started = time.monotonic()
    assert scan(asked(request_, 3)) == scan(asked(request_, 1))
    assert time.monotonic() - started < SECONDS / 2


def test_the_longest_scripts_come_first(request_: ScanRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    log = tmp_path / "log"
    booted(monkeypatch, f"def at(script):\n    open({str(log)!r}, 'a').write(script + '\\n')")
    monkeypatch.setattr(jobs.Jobs, "_work", lambda *_: time.sleep(0))
    root = write(tmp_path / "two", {"a.py": EXPORTER, "b.py": LONGEST, "c.py": CORE_ML})
    scan(ScanRequest(root, (root,), jobs=2))
    assert list(dict.fromkeys(log.read_text().split())) == ["b.py", "a.py", "c.py"]


# -- what was seen ----------------------------------------------------------------------------------------------------


def test_what_only_a_helper_has_read_is_kept_in_mind(request_: ScanRequest, crew: Crew, tmp_path: Path) -> None:
    cached = replace(asked(request_, 2), cache=True)
    before = cache.cached(cached)
    assert cache.cached(cached) == before
    count = len(crew.started)
    write(tmp_path, {"lib/lib_of_ours/more.py": "from nowhere import X\n"})
    cache.cached(replace(cached, seen=Seen()))
    assert len(crew.started) > count, "the change of a file that only the helper reads was not noticed"


def test_a_file_that_processes_saw_in_two_states() -> None:
    one, other = Seen(), Seen()
    one.file("tree", "a.py", b"1")
    other.file("tree", "a.py", b"1")
    other.file("tree", "b.py", b"1")
    one.add(other.taken())
    assert one.steady
    assert set(one.files["tree"]) == {"a.py", "b.py"}
    assert not other.files
    other.file("tree", "b.py", b"2")
    one.add(other.taken())
    assert not one.steady


def test_a_spoiled_result_of_a_helper_is_not_kept(
    request_: ScanRequest, crew: Crew, monkeypatch: pytest.MonkeyPatch
) -> None:
    booted(monkeypatch, dies("raise MemoryError"))
    made = asked(request_, 2)
    found = scan(made)
    assert "the evaluator failed on this file (MemoryError" in file_of(found, "b.py").reason
    assert not made.seen.steady


# -- deaths -----------------------------------------------------------------------------------------------------------

GARBAGE = """\
import auditor.job as job
write, last = job._write, [""]
def spoiled(out, data):
    write(out, b"{}\\n" if last[0] == "b.py" else data)
job._write = spoiled
def at(script):
    last[0] = script"""
DEATHS = {
    "killed": (dies(KILL), "was ended by SIGKILL, twice"),
    "a crash": (dies("os.abort()"), "was ended by SIGABRT, twice"),
    "an exit": (dies("os._exit(3)"), "ended with status 3, twice"),
    "last words": (
        dies("os.write(2, b'no more\\n  memory\\n\\n'); os._exit(1)"),
        "ended with status 1 (memory), twice",
    ),
    "a failure of ours": (dies("raise KeyboardInterrupt"), "ended with status 1 (KeyboardInterrupt), twice"),
    "no answer": (GARBAGE, "gave no answer that can be read"),
}


@pytest.mark.parametrize("death", sorted(DEATHS))
def test_a_script_at_which_helpers_die(
    request_: ScanRequest, crew: Crew, monkeypatch: pytest.MonkeyPatch, death: str
) -> None:
    code, said = DEATHS[death]
    expected = scan(asked(request_, 1))
    booted(monkeypatch, code)
    crew.until = lambda work: work._lost
    made = asked(request_, 2)
    found = scan(made)
    assert len(crew.started) == 2, "it is tried once more, and not again"
    file = file_of(found, "b.py")
    assert file.status is FileStatus.ERROR
    assert file.reason.startswith(f"the process that evaluated this file {said}")
    assert not made.seen.steady
    recipes = [graph for graph in found.graphs if graph.script == "b.py"]
    assert [graph.invocation.recipe for graph in recipes] == [f"models/m/recipe.toml#{name}" for name in "no"]
    assert all(graph.facts.query.reason == file.reason for graph in recipes)
    assert others(found) == others(expected)


def others(found: Scan) -> tuple[object, ...]:
    """All but `b.py`."""
    return (
        [graph for graph in found.graphs if graph.script != "b.py"],
        [file for file in found.files if file.path != "b.py"],
        found.warnings,
    )


def test_a_helper_that_dies_once_changes_nothing(
    request_: ScanRequest, crew: Crew, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    mark = tmp_path_factory.mktemp("marks") / "died"
    once = f"if not os.path.exists({str(mark)!r}): open({str(mark)!r}, 'w').close(); {KILL}"
    booted(monkeypatch, dies(once))
    crew.until = lambda work: work._lost
    alone, made = asked(request_, 1), asked(request_, 2)
    assert scan(made) == scan(alone)
    assert mark.exists()
    assert len(crew.started) == 2
    assert made.seen == alone.seen, "such a result is as good as any, and may be kept"


def test_an_interrupt_is_for_the_parent(request_: ScanRequest, crew: Crew, monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminal sends Ctrl-C to helpers as well."""
    expected = scan(asked(request_, 1))
    booted(monkeypatch, dies("os.kill(os.getpid(), signal.SIGINT)"))
    assert scan(asked(request_, 2)) == expected
    assert len(crew.started) == 1


@pytest.mark.parametrize("code", ["os._exit(1)", "raise ImportError('no libcst')", KILL, "os.close(1); os.dup2(2, 1)"])
def test_helpers_that_never_begin(
    request_: ScanRequest, crew: Crew, monkeypatch: pytest.MonkeyPatch, code: str
) -> None:
    booted(monkeypatch, code)
    alone, made = asked(request_, 1), asked(request_, 3)
    assert scan(made) == scan(alone)
    assert len(crew.started) == 2
    assert made.seen == alone.seen


@pytest.mark.parametrize("executable", ["", None, "/no/such/python"])
def test_no_process_can_be_started(
    request_: ScanRequest, monkeypatch: pytest.MonkeyPatch, executable: str | None
) -> None:
    monkeypatch.setattr(sys, "executable", executable)
    assert scan(asked(request_, 2)) == scan(asked(request_, 1))


def test_what_a_helper_cannot_open_is_said_by_this_process(tmp_path: Path) -> None:
    root = write(tmp_path / "tree", {"a.py": EXPORTER, "b.py": EXPORTER})
    with pytest.raises(Exception, match="give --library an existing path"):
        scan(ScanRequest(root, (root,), (tmp_path / "none",), jobs=2))


def test_a_failure_of_a_thread_is_one_of_the_scan(request_: ScanRequest, crew: Crew) -> None:
    def progress(done: int, total: int, path: str) -> None:
        raise BrokenPipeError

    with pytest.raises(BrokenPipeError):
        scan(replace(asked(request_, 2), progress=progress))


def test_a_death_on_the_command_line(
    request_: ScanRequest, crew: Crew, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    booted(monkeypatch, dies(KILL))
    crew.until = lambda work: work._lost
    where = cache.folder()
    assert where is not None
    command = ["scan", str(request_.root), "--format", "json", "--jobs", "2"]
    assert main(command) == exits.OK
    files = {file["path"]: file for file in json.loads(capfd.readouterr().out)["files"]}
    assert (files["b.py"]["status"], files["a.py"]["status"]) == ("error", "exports")
    assert not where.exists(), "such a result must not be kept"
    assert main([*command, "--fail-on", "unresolved"]) == exits.SOMETHING


# -- progress and Ctrl-C ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [1, 3])
def test_progress_counts_every_run_once(request_: ScanRequest, crew: Crew, count: int) -> None:
    told: list[tuple[int, int, str]] = []
    if count > 1:
        crew.until = lambda work: len(work._outcomes) > 3  # some by helpers, the rest by this process
    scan(replace(asked(request_, count), progress=lambda *args: told.append(args)))
    done = [number for number, _, _ in told]
    assert done == sorted(done)
    assert done[0] == 0
    assert done[-1] < 15
    assert {total for _, total, _ in told} == {15}
    assert {"a.py", "b.py", "c.py"} <= {path for _, _, path in told}


HANGS = """\
import sys, threading, time
sys.path.insert(0, {root!r})
from auditor import helper, jobs
helper.BOOT = {boot!r}
work = jobs.Jobs._work
def waits(self, examiner):
    until = time.monotonic() + 60
    while not any(h.busy for h in self._helpers):
        assert time.monotonic() < until, "no helper has begun"
        time.sleep(0.01)
    print(self._helpers[0]._process.pid, flush=True)
    while True:
        time.sleep(0.01)
jobs.Jobs._work = waits
from auditor.cli import main
sys.exit(main(["scan", {tree!r}, "--jobs", "2", "--no-cache"]))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_helpers_end_with_their_parent(
    request_: ScanRequest, monkeypatch: pytest.MonkeyPatch, how: signal.Signals
) -> None:
    booted(monkeypatch, "import time\ndef at(script): time.sleep(600)")
    code = HANGS.format(root=str(ROOT), boot=helper.BOOT, tree=str(request_.root))
    with subprocess.Popen([sys.executable, "-P", "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        parent.send_signal(how)
        try:
            _, said = parent.communicate(timeout=SECONDS)
        finally:
            parent.kill()  # else the end of `with` would wait for it for ever
    assert parent.returncode == (exits.INTERRUPTED if how is signal.SIGINT else -how)
    if how is signal.SIGINT:
        assert said == b"spec-audit: interrupted\n"
    until = time.monotonic() + SECONDS
    while alive(pid):
        assert time.monotonic() < until, "the helper goes on without its parent"
        time.sleep(0.02)


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    state = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False).stdout
    return bool(state.strip()) and not state.startswith("Z")


# -- messages ---------------------------------------------------------------------------------------------------------


def test_messages_come_out_as_they_went_in(request_: ScanRequest) -> None:
    odd = replace(request_, root=Path("tree\udcff/é"), checkpoints=None, paths=(Path(), Path("a b")))
    for request in (request_, odd):
        told = job_messages.read_request(job_messages.request_line(request))
        assert told == ScanRequest(request.root, request.paths, request.libraries, checkpoints=request.checkpoints)
    runs = [
        Run("a\n.py", ("--x", "\udcff"), InvocationKind.RECIPE, "r#t", "b.aimodel", "", 3),
        Run("", (), InvocationKind.DEFAULT, command="export"),
    ]
    line = job_messages.runs_line(runs)
    assert line.count(b"\n") == 1
    assert job_messages.read_runs(line) == runs
    graphs = scan(asked(request_, 1)).graphs
    found = tuple(Found(graph, (("a.py", 3), ("b\n.py", 0))[: len(graph.graph) % 3]) for graph in graphs[:3])
    outcomes = [Outcome(found, graphs[3:4], True, "no\n", "why"), Outcome(), Outcome((), graphs[4:])]
    seen = Seen({"t": {"": "1"}}, {"t": {"a": "2"}}, {"w": ""}, steady=False)
    line = job_messages.answer_line(outcomes, seen)
    assert line.count(b"\n") == 1
    assert job_messages.read_answer(line, 3) == (outcomes, seen)


def _spoiled(change: Callable[[dict[str, object]], object]) -> bytes:
    data = json.loads(job_messages.answer_line([Outcome(reason="why")], Seen({"t": {"": "1"}})))
    change(data)
    return json.dumps(data).encode()


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"\xff",
        b"[]",
        b"{}",
        b'{"outcomes": []}',
        _spoiled(lambda data: data.update(outcomes=[])),
        _spoiled(lambda data: data.update(outcomes=[[[], 0, False, "", ""]] * 2)),
        _spoiled(lambda data: data.update(outcomes=[[[[]], 0, False, "", ""]])),
        _spoiled(lambda data: data.update(outcomes=[[[[["a.py", "1"]]], 0, False, "", ""]])),
        _spoiled(lambda data: data.update(outcomes=[[[], 1, False, "", ""]])),
        _spoiled(lambda data: data.update(outcomes=[[[], 0, 1, "", ""]])),
        _spoiled(lambda data: data.update(outcomes=[[[], 0, False, None, ""]])),
        _spoiled(lambda data: data.update(outcomes=[["x", 0, False, "", ""]])),
        _spoiled(lambda data: data.update(outcomes=[[0]])),
        _spoiled(lambda data: data.update(outcomes=None)),
        _spoiled(lambda data: data.update(graphs={})),
        _spoiled(lambda data: data.update(seen={})),
        _spoiled(lambda data: data.update(seen={"folders": {"t": {"": 1}}, "files": {}, "wholes": {}})),
    ],
)
def test_what_is_no_answer_is_refused(line: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011
        job_messages.read_answer(line, 1)
