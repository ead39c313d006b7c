"""Results that are kept between scans: never a stale one, never a damaged one, never inside the audited tree."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from auditor import cache, evaluations
from auditor import scan as scanning
from auditor.recipes import RecipeSettings
from auditor.request import ScanRequest
from auditor.seen import Seen
from auditor.trees import LIMIT
from rules.facts import Scan
from tests.auditor.support import EXPORTER, ROOT, write

RECIPE = '[m]\nscript = "export.py"\nargs = ["--static"]\n\n[c]\ncommand = ["export-ours"]\n'
CHECKPOINT = 'from transformers import AutoConfig\nWIDTH = AutoConfig.from_pretrained("o/n").hidden_size\n'
FILES = {
    "export.py": "import helper\nprint(helper.more.X)\n" + EXPORTER + CHECKPOINT,
    "helper.py": "from lib_of_ours import more\n",
    "models/m/recipe.toml": RECIPE,
    "rest.py": "print('nothing')\n",
}
LIBRARY = {"lib_of_ours/__init__.py": "", "lib_of_ours/more.py": "X = 1\n"}
PATCH = "--- a/lib_of_ours/more.py\n+++ b/lib_of_ours/more.py\n@@ -1 +1 @@\n-X = 1\n+X = 2\n"


class Counter:
    """How often a scan was really made."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.made = 0
        self._scan = scanning.scan
        monkeypatch.setattr(scanning, "scan", self.scan)

    def scan(self, request: ScanRequest) -> Scan:
        self.made += 1
        return self._scan(request)

    def fresh(self, request: ScanRequest) -> bool:
        """Whether asking makes a scan. What is given is what a scan without a cache gives, in either case."""
        before = self.made
        assert cache.cached(request) == self._scan(replace(request, seen=Seen()))
        return self.made > before


@pytest.fixture
def counter(monkeypatch: pytest.MonkeyPatch) -> Counter:
    return Counter(monkeypatch)


@pytest.fixture
def request_(tmp_path: Path) -> ScanRequest:
    """A tree with a helper and a recipe, two libraries (a folder and a diff over it), and a checkpoint's folder."""
    root = write(tmp_path / "tree", dict(FILES))
    write(tmp_path / "lib", dict(LIBRARY))
    write(tmp_path, {"more.patch": PATCH, "checkpoints/o/n/config.json": '{"hidden_size": 32}'})
    libraries = (tmp_path / "lib", tmp_path / "more.patch")
    return ScanRequest(root, (root,), libraries, checkpoints=tmp_path / "checkpoints")


@pytest.fixture
def where() -> Path:
    found = cache.folder()
    assert found is not None
    return found


def entries(where: Path) -> list[Path]:
    return sorted(where.iterdir()) if where.is_dir() else []


def test_the_second_scan_is_not_made(counter: Counter, request_: ScanRequest, where: Path) -> None:
    assert counter.fresh(request_)
    assert len(entries(where)) == 1
    assert not counter.fresh(request_)
    assert not counter.fresh(request_)


def test_without_the_cache_nothing_is_read_or_kept(counter: Counter, request_: ScanRequest, where: Path) -> None:
    asked = replace(request_, cache=False)
    assert counter.fresh(asked)
    assert counter.fresh(asked)
    assert entries(where) == []
    counter.fresh(request_)
    assert counter.fresh(asked)


def _put(path: str, text: str) -> Callable[[Path], object]:
    def change(top: Path) -> None:
        write(top, {path: text})

    return change


def _remove(path: str) -> Callable[[Path], object]:
    return lambda top: (top / path).unlink()


def _same_size_and_time(top: Path) -> None:
    path = top / "tree/export.py"
    before = path.stat()
    text = path.read_text()
    path.write_text(text.replace("logits = self.head(x)", "logits = self.head(y)"))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert (path.stat().st_size, path.stat().st_mtime_ns) == (before.st_size, before.st_mtime_ns)


def _link(top: Path) -> None:
    (top / "tree/helper.py").unlink()
    (top / "tree/helper.py").symlink_to(top / "lib/lib_of_ours/more.py")


CHANGES: dict[str, Callable[[Path], object]] = {
    "the script": _put("tree/export.py", EXPORTER.replace("CONTEXT = 128, 32, 4, 2", "CONTEXT = 128, 32, 4, 3")),
    "the script, with its size and time kept": _same_size_and_time,
    "an imported file": _put("tree/helper.py", "X = 2\n"),
    "a file without an export": _put("tree/rest.py", "print('other')\n"),
    "a new script": _put("tree/new.py", EXPORTER),
    "a new sibling that the library's import finds first": _put("tree/lib_of_ours.py", "more = 5\n"),
    "a new package of that name further away": _put("tree/python/src/lib_of_ours/__init__.py", "more = 5\n"),
    "a file that went": _remove("tree/helper.py"),
    "a recipe": _put("tree/models/m/recipe.toml", '[m]\nscript = "export.py"\n'),
    "a new recipe": _put("tree/models/n/recipe.toml", RECIPE),
    "a recipe that went": _remove("tree/models/m/recipe.toml"),
    "a library's file": _put("lib/lib_of_ours/more.py", "X = 1\nY = 1\n"),
    "a library's new module": _put("lib/helper_of_ours.py", ""),
    "a library's console scripts": _put("lib/pyproject.toml", '[project.scripts]\nx = "lib_of_ours.more:X"\n'),
    "console scripts of the project above a library": _put(
        "pyproject.toml", '[project.scripts]\nx = "lib_of_ours:X"\n'
    ),
    "a diff": _put("more.patch", PATCH.replace("+X = 2", "+X = 3")),
    "a checkpoint": _put("checkpoints/o/n/config.json", '{"hidden_size": 64}'),
    "a checkpoint that went": _remove("checkpoints/o/n/config.json"),
    "a link in place of a file": _link,
    "a folder made an environment": _put("tree/models/pyvenv.cfg", ""),
    "a file beyond the limit": _put("tree/rest.py", "#" * (LIMIT + 1)),
}


@pytest.mark.parametrize("what", sorted(CHANGES))
def test_a_change_is_seen(counter: Counter, request_: ScanRequest, tmp_path: Path, what: str) -> None:
    assert counter.fresh(request_)
    assert not counter.fresh(request_)
    CHANGES[what](tmp_path)
    assert counter.fresh(request_), what
    assert not counter.fresh(request_)


def test_a_new_checkpoint_is_seen(counter: Counter, request_: ScanRequest, tmp_path: Path) -> None:
    (tmp_path / "checkpoints/o/n/config.json").unlink()
    assert counter.fresh(request_)
    assert not counter.fresh(request_)
    write(tmp_path, {"checkpoints/n/config.json": '{"hidden_size": 8}'})
    assert counter.fresh(request_)


def test_a_changed_archive_is_seen(counter: Counter, request_: ScanRequest, tmp_path: Path) -> None:
    wheel = tmp_path / "lib.whl"
    for text in ("X = 1\n", "X = 2\n"):
        with zipfile.ZipFile(wheel, "w") as archive:
            archive.writestr("lib_of_ours/__init__.py", "")
            archive.writestr("lib_of_ours/more.py", text)
        asked = replace(request_, libraries=(wheel,))
        assert counter.fresh(asked)
        assert not counter.fresh(asked)


def test_what_was_never_looked_at_may_change(counter: Counter, request_: ScanRequest, tmp_path: Path) -> None:
    write(tmp_path / "lib", {"deep/er/data.bin": "1"})
    assert counter.fresh(request_)
    write(tmp_path / "lib", {"deep/er/data.bin": "2", "deep/er/more.bin": "3"})
    assert not counter.fresh(request_)


OTHERS: dict[str, Callable[[ScanRequest, Path], ScanRequest]] = {
    "another path": lambda asked, top: replace(asked, paths=(top / "tree/export.py",)),
    "no library": lambda asked, top: replace(asked, libraries=()),
    "one library": lambda asked, top: replace(asked, libraries=asked.libraries[:1]),
    "other recipes": lambda asked, top: replace(asked, recipes=RecipeSettings("*.toml")),
    "other keys": lambda asked, top: replace(asked, recipes=RecipeSettings(keys={"script": "file"})),
    "another script root": lambda asked, top: replace(asked, recipes=RecipeSettings(script_root="models")),
    "no checkpoints": lambda asked, top: replace(asked, checkpoints=None),
}


@pytest.mark.parametrize("what", sorted(OTHERS))
def test_another_request_is_another_entry(counter: Counter, request_: ScanRequest, tmp_path: Path, what: str) -> None:
    assert counter.fresh(request_)
    other = OTHERS[what](request_, tmp_path)
    assert counter.fresh(other), what
    assert not counter.fresh(other)
    assert not counter.fresh(request_)


def test_the_number_of_processes_is_no_other_request(counter: Counter, request_: ScanRequest) -> None:
    assert counter.fresh(request_)
    assert not counter.fresh(replace(request_, jobs=2))


def test_another_tool_finds_nothing(
    counter: Counter, request_: ScanRequest, monkeypatch: pytest.MonkeyPatch, where: Path
) -> None:
    assert counter.fresh(request_)
    with monkeypatch.context() as patch:
        patch.setattr(cache, "VERSION", "9.9")
        assert counter.fresh(request_)
    with monkeypatch.context() as patch:
        patch.setattr(cache, "tool", lambda: "another parser")
        assert counter.fresh(request_)
    assert len(entries(where)) == 3
    assert not counter.fresh(request_)


def test_the_tool_is_its_sources(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    write(tmp_path, {"auditor/cache.py": "", "auditor/a.py": "1", "rules/frameworks/x.toml": "", "reports/r.py": ""})
    monkeypatch.setattr(cache, "__file__", str(tmp_path / "auditor/cache.py"))
    found = {cache.tool()}
    for path in ("auditor/a.py", "rules/frameworks/x.toml", "auditor/deep/new.py"):
        write(tmp_path, {path: "changed"})
        found.add(cache.tool())
    monkeypatch.setattr(cache.importlib.metadata, "version", lambda name: "0")
    found.add(cache.tool())
    assert len(found) == 5
    write(tmp_path, {"reports/r.py": "changed"})
    assert cache.tool() in found, "reports are made anew each time"


# -- damaged entries --------------------------------------------------------------------------------------------------


def _reseal(path: Path, edit: Callable[[dict[str, object]], object]) -> None:
    document = json.loads(path.read_bytes().partition(b"\n")[2])
    edit(document)
    body = json.dumps(document).encode()
    path.write_bytes(cache._sealed(path, body).encode() + b"\n" + body)


DAMAGES: dict[str, Callable[[Path], object]] = {
    "empty": lambda p: p.write_bytes(b""),
    "truncated": lambda p: p.write_bytes(p.read_bytes()[:-100]),
    "one byte changed": lambda p: p.write_bytes(p.read_bytes().replace(b'"decoder"', b'"decodes"')),
    "not JSON": lambda p: p.write_bytes(cache._sealed(p, b"{").encode() + b"\n{"),
    "deeply nested": lambda p: p.write_bytes(cache._sealed(p, b"[" * 10**5).encode() + b"\n" + b"[" * 10**5),
    "not ASCII": lambda p: p.write_bytes(b"\xff\n{}"),
    "a list": lambda p: p.write_bytes(cache._sealed(p, b"[]").encode() + b"\n[]"),
    "another form": lambda p: _reseal(p, lambda d: d.update(scan={"graphs": []})),
    "an unknown word": lambda p: _reseal(p, lambda d: d["scan"]["graphs"][0].__setitem__(5, ["often", [], ""])),  # type: ignore[index]
    "nothing seen": lambda p: _reseal(p, lambda d: d.update(seen={"folders": {}, "files": {}, "wholes": {}})),
    "digests that are no texts": lambda p: _reseal(p, lambda d: d["seen"].update(wholes={"/x": 5})),  # type: ignore[attr-defined]
    "folders that are no table": lambda p: _reseal(p, lambda d: d["seen"].update(folders=[1])),  # type: ignore[attr-defined]
    "enormous": lambda p: os.truncate(p, cache.LARGEST + 10),
}


@pytest.mark.parametrize("damage", sorted(DAMAGES))
def test_a_damaged_entry_is_made_again(counter: Counter, request_: ScanRequest, where: Path, damage: str) -> None:
    assert counter.fresh(request_)
    (entry,) = entries(where)
    good = entry.read_bytes()
    DAMAGES[damage](entry)
    assert counter.fresh(request_)
    assert entry.read_bytes() == good
    assert not counter.fresh(request_)


def test_an_entry_under_another_name_is_none(counter: Counter, request_: ScanRequest, where: Path) -> None:
    counter.fresh(request_)
    (mine,) = entries(where)
    other = replace(request_, libraries=())
    expected = cache._entry(other)
    assert expected is not None
    mine.rename(expected)
    assert counter.fresh(other)


def test_a_folder_in_place_of_an_entry(counter: Counter, request_: ScanRequest) -> None:
    entry = cache._entry(request_)
    assert entry is not None
    entry.mkdir(parents=True)
    assert counter.fresh(request_)
    assert counter.fresh(request_)


# -- the place --------------------------------------------------------------------------------------------------------


def test_nothing_is_kept_inside_what_is_audited(
    counter: Counter, request_: ScanRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "way").symlink_to(tmp_path / "tree")
    for inside in ("tree", "tree/.cache", "lib/x", "checkpoints", "way/.cache"):
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / inside))
        before = sorted(tmp_path.rglob("*"))
        assert counter.fresh(request_)
        assert counter.fresh(request_)
        assert sorted(tmp_path.rglob("*")) == before, inside


@pytest.mark.parametrize("place", ["a file", "a file above", "/proc/nothing", "/dev/null/x"])
def test_a_folder_that_cannot_be_written_is_no_error(
    counter: Counter, request_: ScanRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, place: str
) -> None:
    write(tmp_path, {"a file/spec-audit" if place == "a file" else "a file above": ""})
    monkeypatch.setenv("XDG_CACHE_HOME", place if place.startswith("/") else str(tmp_path / place))
    assert counter.fresh(request_)
    assert counter.fresh(request_)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_without_permission_is_no_error(counter: Counter, request_: ScanRequest, where: Path) -> None:
    where.mkdir()
    where.chmod(0o500)
    assert counter.fresh(request_)
    where.chmod(0o000)
    assert counter.fresh(request_)
    where.chmod(0o700)


def test_the_place_of_the_cache_follows_the_platform(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache.folder() == tmp_path / "spec-audit"
    monkeypatch.setenv("HOME", "/home/x")
    for relative in ("", "cache", "./cache"):  # by the specification a relative path is to be ignored
        monkeypatch.setenv("XDG_CACHE_HOME", relative)
        for platform, place in (("linux", "/home/x/.cache"), ("darwin", "/home/x/Library/Caches")):
            monkeypatch.setattr(cache.sys, "platform", platform)
            assert cache.folder() == Path(place) / "spec-audit"


def test_no_home_is_no_error(counter: Counter, request_: ScanRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    def nowhere() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setenv("XDG_CACHE_HOME", "")
    monkeypatch.setattr(cache.Path, "home", nowhere)
    assert counter.fresh(request_)
    assert counter.fresh(request_)


def test_entries_are_for_the_user_alone(counter: Counter, request_: ScanRequest, where: Path) -> None:
    counter.fresh(request_)
    assert where.stat().st_mode & 0o077 == 0


# -- bounds -----------------------------------------------------------------------------------------------------------


def test_the_number_of_entries_is_bounded(
    counter: Counter, request_: ScanRequest, monkeypatch: pytest.MonkeyPatch, where: Path
) -> None:
    monkeypatch.setattr(cache, "ENTRIES", 2)
    asked = [request_, replace(request_, libraries=()), replace(request_, checkpoints=None)]
    for number, one in enumerate(asked[:2]):
        counter.fresh(one)
        entry = cache._entry(one)
        assert entry is not None
        os.utime(entry, (number, number))
    assert not counter.fresh(asked[0]), "to be used is to be young"
    counter.fresh(asked[2])
    assert len(entries(where)) == 2
    assert not counter.fresh(asked[0])
    assert not counter.fresh(asked[2])
    assert counter.fresh(asked[1])


def test_the_bytes_are_bounded(
    counter: Counter, request_: ScanRequest, monkeypatch: pytest.MonkeyPatch, where: Path
) -> None:
    counter.fresh(request_)
    (entry,) = entries(where)
    monkeypatch.setattr(cache, "TOTAL", entry.stat().st_size * 3 // 2)
    counter.fresh(replace(request_, checkpoints=None))
    assert len(entries(where)) == 1
    monkeypatch.setattr(cache, "LARGEST", 100)
    counter.fresh(replace(request_, libraries=()))
    assert len(entries(where)) == 1


def test_what_killed_writers_left_is_removed(counter: Counter, request_: ScanRequest, where: Path) -> None:
    where.mkdir(parents=True)
    old, young, foreign = where / "x.scan.1.partial", where / "y.scan.2.partial", where / "notes.txt"
    for path in (old, young, foreign):
        path.write_bytes(b"x")
    for path in (old, foreign):
        os.utime(path, (time.time() - 9999,) * 2)
    counter.fresh(request_)
    assert not old.exists()
    assert young.exists()
    assert foreign.exists()


# -- what must not be kept --------------------------------------------------------------------------------------------


def test_a_tree_that_changes_during_the_scan_is_not_kept(
    request_: ScanRequest, monkeypatch: pytest.MonkeyPatch, where: Path, tmp_path: Path
) -> None:
    real = scanning.scan

    def scan(request: ScanRequest) -> Scan:
        real(request)
        write(tmp_path, {"tree/helper.py": "Y = 5\n"})
        return real(request)

    monkeypatch.setattr(scanning, "scan", scan)
    cache.cached(request_)
    assert entries(where) == []


def test_a_change_after_its_file_was_read_is_seen(
    request_: ScanRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The digest is that of the bytes that the scan has read, not of what lies there when the entry is written."""
    real, made = scanning.scan, []

    def scan(request: ScanRequest) -> Scan:
        made.append(real(request))
        write(tmp_path, {"tree/helper.py": "Y = 5\n"})
        return made[-1]

    monkeypatch.setattr(scanning, "scan", scan)
    cache.cached(request_)
    cache.cached(request_)
    assert len(made) == 2


def test_a_failure_of_the_evaluator_is_not_kept(
    request_: ScanRequest, monkeypatch: pytest.MonkeyPatch, where: Path
) -> None:
    def fails(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr(evaluations, "run_script", fails)
    made = cache.cached(request_)
    assert any("the evaluator failed" in file.reason for file in made.files)
    assert entries(where) == []


# -- several at once, and the command ---------------------------------------------------------------------------------


def _command(*arguments: str) -> list[str]:
    return [sys.executable, "-P", "-m", "auditor", "scan", *arguments, "--format", "json"]


def _environment(where: Path) -> dict[str, str]:
    return os.environ | {"PYTHONPATH": str(ROOT), "XDG_CACHE_HOME": str(where)}


def test_many_at_once(tmp_path: Path) -> None:
    write(tmp_path / "tree", dict(FILES))
    environment = _environment(tmp_path / "cache")
    for _ in range(2):
        running = [
            subprocess.Popen(_command("tree"), cwd=tmp_path, env=environment, stdout=subprocess.PIPE) for _ in range(4)
        ]
        outputs = {one.communicate()[0] for one in running}
        assert [one.returncode for one in running] == [0, 0, 0, 0]
        assert len(outputs) == 1
        assert len(list((tmp_path / "cache/spec-audit").iterdir())) == 1


def test_a_warm_scan_imports_no_parser_and_gives_the_same_bytes(tmp_path: Path) -> None:
    write(tmp_path / "tree", dict(FILES))
    code = (
        "import sys\nfrom auditor.cli import main\nstatus = main(sys.argv[1:])\n"
        "print('libcst' in sys.modules, file=sys.stderr)"
    )
    outputs, parsed = [], []
    for options in ([], [], ["--no-cache"]):
        command = [sys.executable, "-P", "-c", code, "scan", "tree", "--format", "json", *options]
        done = subprocess.run(
            command, cwd=tmp_path, env=_environment(tmp_path / "cache"), capture_output=True, text=True, check=True
        )
        outputs.append(done.stdout)
        parsed.append(done.stderr.splitlines()[-1])
    assert parsed == ["True", "False", "True"]
    assert len(set(outputs)) == 1


def test_the_root_is_shown_as_it_was_asked_for(request_: ScanRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    cache.cached(request_)
    monkeypatch.chdir(request_.root.parent)
    relative = replace(request_, root=Path("tree"), paths=(Path("tree"),))
    assert cache.cached(relative).root == "tree"
