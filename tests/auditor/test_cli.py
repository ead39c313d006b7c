from __future__ import annotations

import io
import json
import os
import resource
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest

from auditor import exits
from auditor.request import ScanRequest
from auditor.trees import UnusableLibrary
from rules.facts import Scan
from rules.version import VERSION
from tests.auditor.conftest import Run
from tests.machine import slower
from tests.reports.sample import EVIL, sample

ROOT = Path(__file__).parents[2]


class Scanner:
    """Stands in for the static pass: keeps the request and gives a ready scan."""

    def __init__(self) -> None:
        self.request: ScanRequest | None = None
        self.result: Scan | BaseException = sample()

    def scan(self, request: ScanRequest) -> Scan:
        self.request = request
        if isinstance(self.result, BaseException):
            raise self.result
        return self.result

    @property
    def asked(self) -> ScanRequest:
        assert self.request is not None
        return self.request


@pytest.fixture
def scanner(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Scanner:
    stand_in = Scanner()
    module = ModuleType("auditor.scan")
    module.scan = stand_in.scan  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "auditor.scan", module)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tree").mkdir()
    return stand_in


def test_no_arguments_show_the_help(run: Run) -> None:
    status, _, err = run()
    assert status == exits.USAGE
    assert "Commands:" in err


def test_version(run: Run) -> None:
    assert run("--version") == (0, f"spec-audit {VERSION}\n", "")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("scan",), "Missing argument 'PATH...'"),
        (("scan", "nowhere"), "no such file or folder: 'nowhere'; give the folder that holds the export scripts"),
        (("scan", "/dev/null"), "neither a file nor a folder"),
        (("scan", "tree", "--librery", "x"), "Did you mean '--library'?"),
        (("scan", "tree", "--library", "gone"), "--library: no such file or folder: 'gone'"),
        (("scan", "tree", "--checkpoints", "gone"), "--checkpoints: no such folder: 'gone'"),
        (("scan", "tree", "--format", "pdf"), "'text', 'json', 'html'"),
        (("scan", "tree", "--fail-on", "always"), "'never', 'expect', 'out', 'unresolved'"),
        (("scan", "tree", "--jobs", "0"), "x>=1"),
        (("scan", "tree", "--output", "tree"), "'tree' is a folder; name a file in it"),
        (("scan", "tree", "--output", "gone/report.html"), "no such folder: 'gone'"),
        (("scan", ""), "an empty path; write . for the current folder"),
        (("scan", "tree", "--output", ""), "an empty path; write . for the current folder"),
        (
            ("scan", "tree", "--output", "x", "--also", "sarif=tree/../x"),
            "--output and --also sarif would both write 'tree/../x'; name two files",
        ),
        (("scan", "tree", "--also", "sarif=x", "--also", "junit=x"), "--also sarif and --also junit would both write"),
        (
            ("scan", "tree", "--output", "x", "--baseline", "x", "--update-baseline"),
            "--output and --update-baseline would both write 'x'",
        ),
        (("diff", "", "x"), "an empty path; write . for the current folder"),
        (("scan", "tree", "--config", "gone.toml"), "no such configuration file: gone.toml"),
        (("explain", "static-qery"), "no rule is called 'static-qery'; did you mean 'static-query'?"),
        (("explain", "zzz"), "'spec-audit rules' lists them"),
        (("scam",), "No such command 'scam'"),
    ],
)
def test_usage(run: Run, scanner: Scanner, arguments: tuple[str, ...], message: str) -> None:
    status, out, err = run(*arguments)
    assert status == exits.USAGE
    assert out == ""
    assert message in " ".join(err.split())
    assert scanner.request is None


def test_a_library_that_is_none_is_a_usage_error(run: Run, scanner: Scanner) -> None:
    scanner.result = UnusableLibrary("notes.txt", "not a library: give a folder")
    status, out, err = run("scan", "tree")
    assert (status, out) == (exits.USAGE, "")
    assert "--library: notes.txt: not a library: give a folder" in err


def test_text_goes_to_standard_output_and_the_summary_to_standard_error(run: Run, scanner: Scanner) -> None:
    status, out, err = run("scan", "tree")
    assert status == exits.OK
    assert out.startswith("VERDICT ")
    assert "\x1b" not in out
    assert err.splitlines() == [
        "spec-audit: warning: library 'toolkit' has no module 'heads'",
        "spec-audit: 5 files, 11 graphs, 8 models: 1 eligible, 5 out, 2 unresolved",
    ]


def test_the_request_of_a_folder(run: Run, scanner: Scanner) -> None:
    Path("lib").mkdir()
    run(
        "scan", "tree", "--library", "lib", "--recipes", "a/*.toml", "--jobs", "2", "--no-cache", "--checkpoints", "lib"
    )
    asked = scanner.asked
    assert (asked.root, asked.paths) == (Path("tree"), (Path("tree"),))
    assert (asked.libraries, asked.checkpoints) == ((Path("lib"),), Path("lib"))
    assert (asked.recipes.glob, asked.jobs, asked.cache, asked.progress) == ("a/*.toml", 2, False, None)


def test_the_defaults(run: Run, scanner: Scanner) -> None:
    run("scan", "tree")
    asked = scanner.asked
    assert (asked.libraries, asked.checkpoints, asked.jobs, asked.cache) == ((), None, 1, True)
    assert asked.recipes.glob == "**/recipe.toml"


@pytest.mark.parametrize("name", ["x.aimodel", "x.mlpackage"])
def test_a_bundle_is_nothing_to_scan(run: Run, scanner: Scanner, name: str) -> None:
    Path(name).mkdir()
    status, _, err = run("scan", "tree", name)
    assert status == exits.USAGE
    assert f"{name!r} is a bundle: `spec-audit probe` opens it" in err


def test_several_paths_have_their_common_folder_as_root(run: Run, scanner: Scanner) -> None:
    for name in ("a", "b/c"):
        Path("tree", name).mkdir(parents=True)
    Path("tree/a/x.py").touch()
    run("scan", "tree/a/x.py", "tree/b/c")
    assert scanner.asked.root == Path("tree")
    assert scanner.asked.paths == (Path("tree/a/x.py"), Path("tree/b/c"))
    run("scan", "tree/a/x.py")
    assert scanner.asked.root == Path("tree/a")


def test_the_root_is_shown_as_typed_and_the_current_folder_by_its_name(
    run: Run, scanner: Scanner, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert json.loads(run("scan", "tree", "--format", "json")[1])["root"] == "tree"
    monkeypatch.chdir("tree")
    assert json.loads(run("scan", ".", "--format", "json")[1])["root"] == "tree"


def test_output_is_replaced_as_a_whole(run: Run, scanner: Scanner) -> None:
    Path("report.html").write_text("old")
    status, out, err = run("scan", "tree", "--format", "html", "--output", "report.html")
    assert (status, out) == (exits.OK, "")
    assert Path("report.html").read_text("utf-8").startswith("<!DOCTYPE html>")
    assert err.splitlines()[-1] == "spec-audit: report: report.html"
    assert sorted(path.name for path in Path().iterdir()) == ["report.html", "tree"]


def test_output_that_cannot_be_written(run: Run, scanner: Scanner, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(self: Path, data: bytes) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    status, _, err = run("scan", "tree", "--output", "report.txt")
    assert status == exits.USAGE
    assert "cannot write 'report.txt': No space left on device" in err


@pytest.mark.parametrize(
    ("level", "status"), [("never", 0), ("expect", 0), ("out", exits.SOMETHING), ("unresolved", exits.SOMETHING)]
)
def test_fail_on(run: Run, scanner: Scanner, level: str, status: int) -> None:
    assert run("scan", "tree", "--fail-on", level)[0] == status


def test_a_broken_expectation(run: Run, scanner: Scanner) -> None:
    Path("tree/spec-audit.toml").write_text('[expect]\nflag = "eligible"\ndense = "eligible"')
    status, _, err = run("scan", "tree", "--format", "json")
    assert status == exits.SOMETHING
    line = "spec-audit: expectation broken: models/flag/recipe.toml#flag must be eligible and is out"
    assert line in err.splitlines()
    assert run("scan", "tree", "--fail-on", "never")[0] == exits.OK


def test_the_configuration_and_the_command_line(run: Run, scanner: Scanner) -> None:
    Path("tree/lib").mkdir()
    Path("more").mkdir()
    Path("tree/spec-audit.toml").write_text(
        'library = "lib"\nformat = "json"\nfail-on = "out"\njobs = 2\nno-cache = true\noutput = "report.json"'
    )
    status, out, _ = run("scan", "tree", "--library", "more", "--jobs", "3")
    assert (status, out) == (exits.SOMETHING, "")
    assert json.loads(Path("tree/report.json").read_text("utf-8"))["schema"] == "spec-audit.scan/1"
    assert scanner.asked.libraries == (Path("tree/lib"), Path("more"))
    assert (scanner.asked.jobs, scanner.asked.cache) == (3, False)
    status, _, _ = run("scan", "tree", "--fail-on", "never", "--format", "text", "--output", "own.txt")
    assert status == exits.OK
    assert Path("own.txt").read_text("utf-8").startswith("VERDICT")


def test_a_configuration_that_cannot_be_used(run: Run, scanner: Scanner) -> None:
    Path("tree/spec-audit.toml").write_text('"colour\\u001b[31m" = 1')
    status, _, err = run("scan", "tree")
    assert status == exits.USAGE
    assert "unknown key" in err
    assert "\x1b" not in err


def test_nothing_to_audit(run: Run, scanner: Scanner) -> None:
    scanner.result = replace(sample(), graphs=())
    status, out, err = run("scan", "tree")
    assert status == exits.NOTHING
    assert out.startswith("No graph was found")
    assert "nothing to audit; give the folder that holds the export scripts" in err


def test_a_crash_is_two_lines_and_a_status_of_its_own(
    run: Run, scanner: Scanner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(exits.DEBUG, raising=False)
    scanner.result = ValueError("an\nodd state")
    status, out, err = run("scan", "tree")
    assert (status, out) == (exits.CRASH, "")
    first, second = err.splitlines()
    assert first.startswith(
        "spec-audit: internal error, not your fault: ValueError: an odd state (auditor/test_cli.py:"
    )
    assert "SPEC_AUDIT_DEBUG=1" in second
    monkeypatch.setenv(exits.DEBUG, "1")
    assert "Traceback" in run("scan", "tree")[2]


@pytest.mark.parametrize("error", [RecursionError("too deep"), MemoryError()])
def test_a_crash_of_any_kind(run: Run, scanner: Scanner, error: BaseException) -> None:
    scanner.result = error
    assert run("scan", "tree")[0] == exits.CRASH


def test_interrupted(run: Run, scanner: Scanner) -> None:
    scanner.result = KeyboardInterrupt()
    assert run("scan", "tree") == (exits.INTERRUPTED, "", "spec-audit: interrupted\n")


def test_warnings_of_the_scan_cannot_steer_the_terminal(run: Run, scanner: Scanner) -> None:
    scanner.result = replace(sample(), warnings=(EVIL,))
    assert "\x1b" not in run("scan", "tree")[2]


def test_explain_and_rules(run: Run) -> None:
    status, out, _ = run("explain", "row-kernel")
    assert status == exits.OK
    assert out.startswith("# row-kernel\n")
    status, out, _ = run("rules")
    assert status == exits.OK
    assert "static-query" in out


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_colours_and_progress_only_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    assert exits.progress() is None
    assert not exits.colourful()
    monkeypatch.setattr(sys, "stdout", Terminal())
    monkeypatch.setattr(sys, "stderr", Terminal())
    assert exits.colourful()
    monkeypatch.setenv("NO_COLOR", "1")
    assert not exits.colourful()
    monkeypatch.delenv("NO_COLOR")
    monkeypatch.setenv("TERM", "dumb")
    assert not exits.colourful()
    show = exits.progress()
    assert show is not None
    show(3, 10, "models/\x1b[31mx.py")
    exits.clear_progress()
    assert isinstance(sys.stderr, Terminal)
    assert sys.stderr.getvalue() == "\r\x1b[K3/10 models/?[31mx.py\r\x1b[K"


def child(*arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """A real process, with this checkout on its path whether or not it is installed."""
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    command = [sys.executable, *arguments]
    return subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, check=False)


def test_a_reader_that_goes_away() -> None:
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    with subprocess.Popen(
        [sys.executable, "-P", "-m", "auditor", "rules"],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == exits.CLOSED


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
@pytest.mark.parametrize("arguments", [("rules",), ("scan", "."), ("plan", "table.csv")])
def test_a_disk_that_is_full_is_no_crash(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    (tmp_path / "table.csv").write_text("s,ms\n1,1\n2,1\n3,1\n4,2\n")
    command = [sys.executable, "-P", "-m", "auditor", *arguments]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    with Path("/dev/full").open("w") as full:
        ran = subprocess.run(
            command, cwd=tmp_path, env=environment, stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert ran.returncode == exits.USAGE
    assert ran.stderr.rstrip().endswith("cannot write to standard output: No space left on device")


def test_help_imports_no_heavy_module() -> None:
    code = (
        "import sys; from auditor.cli import main; main(['--help']); "
        "print(sorted(set(sys.modules) & "
        "{'libcst', 'jinja2', 'coremltools', 'coreai', 'torch', 'numpy', 'rules', 'reports', 'probes.cli'}))"
    )
    result = child("-P", "-c", code)
    assert result.stdout.splitlines()[-1] == "[]", result.stderr


def test_help_costs_a_tenth_of_a_second_of_cpu_more_than_bare_python() -> None:
    def fastest(*arguments: str) -> float:
        times = []
        for _ in range(7):
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            assert child(*arguments).returncode == 0
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            times.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
        return min(times)

    assert fastest("-P", "-m", "auditor", "--help") - fastest("-c", "pass") < 0.1 * slower()


SHADOWS = ("click.py", "sitecustomize.py", "difflib.py", "dataclasses.py", "pathlib.py", "tomllib.py", "jinja2.py")


@pytest.fixture
def trap(tmp_path: Path) -> Path:
    """A tree whose modules would end the process with status 77, were one of them imported."""
    bomb = "import os\nos._exit(77)\n"
    for name in SHADOWS:
        (tmp_path / name).write_text(bomb)
    for name in ("rules", "reports", "probes"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text(bomb)
    return tmp_path


def test_the_trap_works(trap: Path) -> None:
    assert child("-c", "import rules", cwd=trap).returncode == 77


@pytest.mark.parametrize("arguments", [("rules",), ("explain", "moe"), ("--version",), ("scan", "nowhere")])
def test_python_m_imports_nothing_of_the_current_folder(trap: Path, arguments: tuple[str, ...]) -> None:
    result = child("-m", "auditor", *arguments, cwd=trap)
    assert result.returncode == (exits.USAGE if "nowhere" in arguments else exits.OK), result.stderr


def test_a_package_of_our_name_is_passed_over(trap: Path) -> None:
    """The console script never looks there, nor does `python -P -m`; a folder without `__init__` is no rival."""
    (trap / "auditor").mkdir()
    assert child("-m", "auditor", "rules", cwd=trap).returncode == exits.OK
    (trap / "auditor" / "__init__.py").write_text("import os\nos._exit(77)\n")
    assert child("-P", "-m", "auditor", "rules", cwd=trap).returncode == exits.OK
    script = trap.parent / "elsewhere"
    script.mkdir(exist_ok=True)
    (script / "spec-audit").write_text("import sys\nfrom auditor.cli import main\nsys.exit(main())\n")
    assert child(str(script / "spec-audit"), "rules", cwd=trap).returncode == exits.OK
