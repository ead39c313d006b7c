"""The audited tree and its libraries: what is refused or not entered first, then the import order and the overlays."""

from __future__ import annotations

import hashlib
import os
import re
import zipfile
from pathlib import Path

import pytest

from auditor.sources import SourceFile, Sources, Unreadable

FIXTURES = Path(__file__).parent / "fixtures_sources"
LIBRARY, PATCH, ADDED, PATCHED = (FIXTURES / name for name in ("library", "overlay.patch", "added", "patched"))


def _write(root: Path, *paths: str, **files: str) -> Path:
    """Files that hold their own path, or the text given."""
    for path, text in {**{path: path for path in paths}, **files}.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text, encoding="utf-8")
    return root


def _path(file: SourceFile | None) -> str | None:
    return None if file is None else file.path


def _refused(file: SourceFile | None) -> str:
    return "" if file is None else f"{file.path}: {file.refused}"


# What is not read


def test_library_that_is_none(tmp_path: Path) -> None:
    _write(tmp_path, "root/m.py", "lib.tar.gz", "lib.zip")
    for name, reason in [
        ("gone", "no such file or folder"),
        ("lib.tar.gz", "not a library: give a folder, a .patch"),
        ("lib.zip", "zip"),
    ]:
        with pytest.raises(Unreadable, match=reason):
            Sources(tmp_path / "root", [tmp_path / name])


def test_only_outside_the_root(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="is not below"):
        Sources(_write(tmp_path, "root/m.py") / "root", only=[tmp_path / "other.py"])


def test_unreadable_files_are_listed_and_give_their_reason_each_time(tmp_path: Path) -> None:
    root = _write(tmp_path, "secret.py", "root/good.py") / "root"
    (root / "latin.py").write_bytes(b"x = '\xe9'\n")
    (root / "out.py").symlink_to(tmp_path / "secret.py")
    (root / "loop.py").symlink_to(root / "loop.py")
    sources = Sources(root)
    assert sources.python_files() == ("good.py", "latin.py", "loop.py", "out.py")
    for _ in range(2):
        for path, reason in [("latin.py", "not UTF-8"), ("out.py", "a link that leaves"), ("loop.py", "a link loop")]:
            with pytest.raises(Unreadable, match=f"^{path}: {reason}"):
                sources.read(path)
    with pytest.raises(Unreadable, match="no such file"):
        sources.read("gone.py")
    assert _refused(sources.module("latin", None)).startswith("latin.py: not UTF-8")
    assert sources.data_file("gone.toml") is None
    assert sources.data_file("../secret.py") is None
    assert sources.data_file("good.py") == b"root/good.py"
    with pytest.raises(Unreadable, match="a link that leaves"):
        sources.data_file("out.py")


def test_folders_that_are_not_entered(tmp_path: Path) -> None:
    root = tmp_path / "root"
    _write(
        root,
        "a/m.py",
        ".git/m.py",
        "a/.hidden/m.py",
        "node_modules/m.py",
        "a/__pycache__/m.py",
        "env/pyvenv.cfg",
        "env/m.py",
    )
    _write(root, "lib/site-packages/kit/m.py", "a/notes.txt")
    _write(tmp_path, "outside/m.py")
    (root / "a/up").symlink_to(root)
    (root / "out").symlink_to(tmp_path / "outside")
    sources = Sources(root)
    assert sources.python_files() == ("a/m.py",)
    assert sources.paths() == ("a/m.py", "a/notes.txt")
    assert [str(skip) for skip in sources.skipped()] == [
        "a/up: a link to a folder, which is not followed",
        "out: a link that leaves the tree",
    ]
    assert not sources.exists("out/m.py")
    assert sources.module("out.m", None) is None


def test_a_root_that_is_an_environment_too(tmp_path: Path) -> None:
    root = _write(tmp_path, "pyvenv.cfg", "a.py", "env/pyvenv.cfg", "env/b.py")
    assert Sources(root).python_files() == ("a.py",)


def test_only_what_is_asked_for_is_audited(tmp_path: Path) -> None:
    root = _write(tmp_path, "a/m.py", "a/b/n.py", "ab/x.py", ".ci/run.py", ".ci/tool", "venv/pyvenv.cfg", "venv/v.py")
    cases: list[tuple[list[str], list[str]]] = [
        (["a"], ["a/b/n.py", "a/m.py"]),
        (["a/b", str(root / "ab")], ["a/b/n.py", "ab/x.py"]),
        (["."], ["a/b/n.py", "a/m.py", "ab/x.py"]),
        ([".ci"], [".ci/run.py"]),
        ([".ci/tool"], [".ci/tool"]),
        (["venv"], ["venv/v.py"]),
        (["gone.py"], []),
    ]
    for only, files in cases:
        assert list(Sources(root, only=[Path(path) for path in only]).python_files()) == files


@pytest.mark.parametrize(
    "dotted", ["", ".", "..secret", "a..b", "a/b", "../secret", "a-b", "a.b.c", "gone", "pkg.gone"]
)
def test_modules_that_are_not_there(tmp_path: Path, dotted: str) -> None:
    root = _write(tmp_path, "secret.py", "root/a/b.py", "root/a-b.py", "root/pkg/__init__.py") / "root"
    assert Sources(root).module(dotted, None, ["..", "/", "../root", "a/.."]) is None


def test_relative_imports_do_not_leave(tmp_path: Path) -> None:
    root = _write(tmp_path, "secret.py", "root/pkg/__init__.py", "root/pkg/m.py") / "root"
    sources = Sources(root, [LIBRARY])
    importer = sources.read("pkg/m.py")
    assert _path(sources.relative(importer, 1, "")) == "pkg/__init__.py"
    for level, dotted in [(3, "secret"), (3, "pkg.m"), (99, "pkg.m"), (0, "m"), (1, "../m"), (1, "gone")]:
        assert sources.relative(importer, level, dotted) is None
    library = sources.module("kit.models.dense", None)
    assert library is not None
    assert sources.relative(library, 4, "m") is None


# Files


def test_a_source_file_knows_its_package_and_is_read_once(tmp_path: Path) -> None:
    root = _write(tmp_path, **{"p/q/__init__.py": "", "p/q/m.py": "\ufeffx = 'é'\n", "s/script.py": "x"})
    sources = Sources(root)
    data = (root / "p/q/m.py").read_bytes()
    assert sources.read("p/q/m.py") == SourceFile("p/q/m.py", "x = 'é'\n", hashlib.sha256(data).hexdigest(), "q", "p/q")
    assert sources.read("p/q/m.py") is sources.read("p/q/m.py")
    assert sources.read("p/q/__init__.py").package == "q"
    assert (sources.read("s/script.py").package, sources.read("s/script.py").folder) == ("", "s")
    assert sources.exists("p/q/m.py")
    assert sources.exists("p/q")
    assert sources.exists("p/q/")
    assert not sources.exists("p/r")


def test_construction_lists_only_the_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    listed: list[str] = []
    scandir = os.scandir

    def record(path: Path) -> object:
        listed.append(str(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", record)
    Sources(_write(tmp_path, "a/b/m.py"), [LIBRARY, PATCH])
    assert sorted(listed) == sorted([str(tmp_path), str(LIBRARY)])


# Import order


@pytest.mark.parametrize(
    ("present", "found"),
    [
        (["added/kit.py", "s/kit.py", "kit.py"], "added/kit.py"),
        (["added/kit.py", "added/kit/__init__.py"], "added/kit/__init__.py"),
        (["s/kit.py", "kit.py", "src/kit.py"], "s/kit.py"),
        (["kit.py", "src/kit.py"], "kit.py"),
        (["src/kit.py", "python/src/kit.py"], "src/kit.py"),
        (["python/src/kit.py", "x/kit/__init__.py"], "python/src/kit.py"),
        (["x/kit/__init__.py"], "x/kit/__init__.py"),
        (["x/kit.py"], "library/kit/__init__.py"),
        (["x/kit/__init__.py", "y/kit/__init__.py"], "library/kit/__init__.py"),
        (["x/outer/__init__.py", "x/outer/kit/__init__.py"], "library/kit/__init__.py"),
        (["kit/m.py"], "library/kit/__init__.py"),
        ([], "library/kit/__init__.py"),
    ],
)
def test_the_order_in_which_a_module_is_sought(tmp_path: Path, present: list[str], found: str) -> None:
    sources = Sources(_write(tmp_path, "s/script.py", *present), [LIBRARY])
    assert _path(sources.module("kit", sources.read("s/script.py"), ["added"])) == found


def test_inside_a_package_the_standard_library_is_not_a_sibling(tmp_path: Path) -> None:
    root = _write(
        tmp_path,
        "x/pkg/__init__.py",
        "x/pkg/types.py",
        "x/pkg/deep/__init__.py",
        "x/pkg/deep/m.py",
        "x/pkg/deep/n.py",
        "types/__init__.py",
    )
    sources = Sources(root)
    importer = sources.read("x/pkg/deep/m.py")
    assert importer.package == "pkg.deep"
    assert _path(sources.module("pkg.types", importer)) == "x/pkg/types.py"
    assert _path(sources.module("n", importer)) == "x/pkg/deep/n.py"
    assert sources.module("types", sources.read("x/pkg/types.py")) is not None
    (root / "types/__init__.py").unlink()
    (root / "types").rmdir()
    fresh = Sources(root)
    assert fresh.module("types", fresh.read("x/pkg/types.py")) is None


def test_standard_module_is_not_taken_from_any_folder(tmp_path: Path) -> None:
    sources = Sources(_write(tmp_path, "vendor/json/__init__.py", "vendor/jason/__init__.py"))
    assert sources.module("json", None) is None
    assert _path(sources.module("jason", None)) == "vendor/jason/__init__.py"


def test_namespace_packages(tmp_path: Path) -> None:
    root = _write(tmp_path, "space/inner/deep/m.py", "docs/read.me", "models/recipe.toml", "search/space/other.py")
    sources = Sources(root)
    space = sources.module("space.inner", None)
    assert space == SourceFile("space/inner/", "", hashlib.sha256(b"").hexdigest(), "space.inner", "space/inner")
    assert _path(sources.relative(space, 1, "deep.m")) == "space/inner/deep/m.py"
    assert _path(sources.relative(space, 1, "deep")) == "space/inner/deep/"
    assert _path(sources.module("space.other", None, ["search"])) == "search/space/other.py"
    assert sources.module("docs", None) is None
    assert sources.module("models", None) is None


def test_a_namespace_of_linked_folders(tmp_path: Path) -> None:
    root = _write(tmp_path, "parts/tool/m.py", "notes/read.me")
    for folder, target in (("space", "tool"), ("empty", "../notes")):
        (root / "src" / folder).mkdir(parents=True)
        (root / "src" / folder / "linked").symlink_to(root / "parts" / target)
        (root / "src" / folder / "up").symlink_to("..")
    sources = Sources(root)
    assert _path(sources.module("space", None)) == "src/space/"
    assert _path(sources.module("space.linked.m", None)) == "src/space/linked/m.py"
    assert sources.module("empty", None) is None


DECLARED = {
    "pyproject.toml": '[tool.setuptools.package-dir]\n"" = "lib"\nours = "python"\n"ours.tools.extra" = "more/tools"\n',
    "setup.cfg": "[options]\npackage_dir =\n    = lib\n    ours = python\n    ours.tools.extra = more/tools\n",
}


@pytest.mark.parametrize("name", sorted(DECLARED))
def test_packages_in_the_folders_that_the_project_declares(tmp_path: Path, name: str) -> None:
    files = "python/m.py", "more/tools/__init__.py", "more/tools/n.py", "examples/run.py"
    sources = Sources(_write(tmp_path, *files, **{name: DECLARED[name]}))
    run = sources.read("examples/run.py")
    for importer in (run, None):
        assert _path(sources.module("ours.m", importer)) == "python/m.py"
        assert _path(sources.module("ours", importer)) == "python/"
        assert _path(sources.module("ours.tools.extra", importer)) == "more/tools/__init__.py"
        assert _path(sources.module("ours.tools.extra.n", importer)) == "more/tools/n.py"
        assert sources.module("ours.gone", importer) is None
        assert sources.module("ours.tool", importer) is None
    between = sources.module("ours.tools", run)
    assert _path(between) == "ours/tools/"
    assert between is not None
    assert _path(sources.relative(between, 1, "extra.n")) == "more/tools/n.py"
    assert sources.relative(between, 1, "gone") is None


@pytest.mark.parametrize(
    "text",
    [
        '[tool.setuptools.package-dir]\nours = "../outside"\n',
        '[tool.setuptools.package-dir]\nours = "/outside"\n',
        '[tool.setuptools.package-dir]\nours = ["outside"]\n',
        '[tool.setuptools]\npackage-dir = "outside"\n',
        "[tool.setuptools.package-dir\n",
    ],
)
def test_folders_that_are_none_of_the_project(tmp_path: Path, text: str) -> None:
    _write(tmp_path, "outside/m.py")
    root = _write(tmp_path / "root", "run.py", **{"pyproject.toml": text})
    assert Sources(root).module("ours.m", None) is None


def test_a_root_that_is_a_package_has_the_name_of_its_folder(tmp_path: Path) -> None:
    root = _write(tmp_path, "ours/__init__.py", "ours/m.py", "ours/inner/__init__.py", "ours/inner/n.py") / "ours"
    sources = Sources(root)
    for path, up in (("m.py", 1), ("inner/n.py", 2)):
        importer = sources.read(path)
        assert _path(sources.relative(importer, up, "")) == "__init__.py"
        assert _path(sources.relative(importer, up, "m")) == "m.py"
        assert sources.relative(importer, up + 1, "") is None
        assert _path(sources.module("ours", importer)) == "__init__.py"
        assert _path(sources.module("ours.inner.n", importer)) == "inner/n.py"
        assert sources.module("ours.gone", importer) is None
    (root / "__init__.py").unlink()
    assert Sources(root).module("ours.m", None) is None


def test_a_root_that_the_project_declares_to_be_a_package(tmp_path: Path) -> None:
    text = '[tool.setuptools.package-dir]\n"ours" = "."\n'
    sources = Sources(_write(tmp_path / "checkout", "__init__.py", "m.py", **{"pyproject.toml": text}))
    assert _path(sources.module("ours.m", sources.read("m.py"))) == "m.py"
    assert _path(sources.module("ours", None)) == "__init__.py"


def test_a_name_that_looks_like_an_absolute_path_stays_in_the_tree(tmp_path: Path) -> None:
    root = _write(tmp_path, "root/passwd", "root/etc/passwd") / "root"
    assert Sources(root).tree.read("/passwd") == b"root/passwd"
    with pytest.raises(Unreadable, match="no such file"):
        Sources(root).tree.read("/etc/passwd")


def test_a_package_that_is_there_goes_before_a_declared_folder(tmp_path: Path) -> None:
    _write(tmp_path, "ours/__init__.py", "other/__init__.py", **{"setup.cfg": "[options]\npackage_dir = ours=other\n"})
    assert _path(Sources(tmp_path).module("ours", None)) == "ours/__init__.py"


# Libraries


def test_overlaid_library_is_the_patched_one_byte_for_byte(tmp_path: Path) -> None:
    sources = Sources(tmp_path, [LIBRARY, PATCH, ADDED])
    expected = sorted(path for path in PATCHED.rglob("*.py"))
    for path in expected:
        dotted = ".".join(path.relative_to(PATCHED).with_suffix("").parts).removesuffix(".__init__")
        found = sources.module(dotted, None)
        assert found is not None, dotted
        assert found.digest == hashlib.sha256(path.read_bytes()).hexdigest(), dotted
        assert sources.read(found.path) is found
        assert sources.exists(found.path)
    for gone in ("kit.legacy", "kit.names", "test_kit", "README", "tests.test_kit"):
        assert sources.module(gone, None) is None, gone
    assert sources.skipped() == ()


def test_paths_say_which_library_gave_the_file(tmp_path: Path) -> None:
    sources = Sources(tmp_path, [LIBRARY, PATCH, ADDED])
    importer = sources.module("kit", None)
    assert importer is not None
    assert importer.path == "library/kit/__init__.py"
    assert _path(sources.relative(importer, 1, "constants")) == "overlay.patch/kit/constants.py"
    assert _path(sources.relative(importer, 1, "models.dense")) == "added/kit/models/dense.py"
    assert _path(sources.module("kit.models", None)) == "library/kit/models/__init__.py"
    hybrid = sources.module("kit.models.hybrid", importer)
    assert hybrid is not None
    assert (hybrid.path, hybrid.package) == ("overlay.patch/kit/models/hybrid.py", "kit.models")
    assert _path(sources.relative(hybrid, 2, "naming")) == "overlay.patch/kit/naming.py"
    assert _path(sources.relative(hybrid, 1, "")) == "library/kit/models/__init__.py"


def test_library_file_imports_its_library_before_the_root(tmp_path: Path) -> None:
    sources = Sources(_write(tmp_path, "kit.py", "other.py"), [LIBRARY])
    assert _path(sources.module("kit", None)) == "kit.py"
    library = sources.read("library/kit/constants.py")
    assert _path(sources.module("kit", library)) == "library/kit/__init__.py"
    assert _path(sources.module("other", library)) == "other.py"


def test_libraries_below_the_root_keep_their_paths(tmp_path: Path) -> None:
    root = _write(tmp_path, "overlay/files/python/src/kit/models/dense.py", "s/script.py")
    (root / "overlay/fix.patch").write_bytes(PATCH.read_bytes())
    sources = Sources(root, [LIBRARY, root / "overlay/fix.patch", root / "overlay/files/python/src"])
    assert _path(sources.module("kit.constants", None)) == "overlay/fix.patch/kit/constants.py"
    dense = sources.read("overlay/files/python/src/kit/models/dense.py")
    assert sources.module("kit.models.dense", None) is dense
    assert dense.package == "kit.models"
    assert _path(sources.relative(dense, 2, "constants")) == "overlay/fix.patch/kit/constants.py"
    for search in ("overlay/files/python/src", "s/../overlay/files/python/src"):
        assert _path(sources.module("models.dense", None, [f"{search}/kit"])) == dense.path
        assert _path(sources.module("kit.tail", None, [search])) == "overlay/fix.patch/kit/tail.py"
    assert dense.path in sources.python_files()


def test_names_of_libraries_are_unique_and_not_those_of_the_root(tmp_path: Path) -> None:
    _write(tmp_path, "root/kit/m.py", "a/kit/src/x.py", "a/one/kit/y.py", "b/one/kit/z.py", "lib/python/src/w.py")
    libraries = [tmp_path / name for name in ("a/kit/src", "a/one/kit", "b/one/kit", "b/one/kit")]
    sources = Sources(tmp_path / "root", libraries)
    found = [_path(sources.module(name, None)) for name in "xyz"]
    assert found == ["a/kit/x.py", "one/kit/y.py", found[2]]
    assert all(path is not None and sources.read(path).text for path in found)
    assert len({layer.name for layer in sources.libraries.layers}) == 4
    twice = Sources(tmp_path, [tmp_path / "a/one/kit", tmp_path / "a/one/kit"])
    assert len({layer.name for layer in twice.libraries.layers}) == 2


def test_checkout_as_a_library(tmp_path: Path) -> None:
    """Import roots of a checkout count, a diff's names are found through them, and no file has two paths."""
    checkout = tmp_path / "kit-models"
    for path in LIBRARY.rglob("*.py"):
        _write(checkout / "python/src", **{path.relative_to(LIBRARY).as_posix(): path.read_text("utf-8")})
    _write(checkout, "tools/run.py")
    sources = Sources(_write(tmp_path, "root/m.py") / "root", [checkout, PATCH])
    assert _path(sources.module("kit.models.dense", None)) == "kit-models/python/src/kit/models/dense.py"
    assert _path(sources.module("kit.constants", None)) == "overlay.patch/kit/constants.py"
    assert _path(sources.module("tools.run", None)) == "kit-models/tools/run.py"
    assert sources.module("python.src.kit.constants", None) is None
    assert sources.read("kit-models/python/src/kit/constants.py").package == "kit"
    assert sources.module("kit.legacy", None) is None


def test_package_named_src_is_no_import_root(tmp_path: Path) -> None:
    sources = Sources(
        _write(tmp_path, "root/m.py", "lib1/src/__init__.py", "lib1/src/kit.py") / "root", [tmp_path / "lib1"]
    )
    assert sources.module("kit", None) is None
    assert _path(sources.module("src.kit", None)) == "lib1/src/kit.py"


@pytest.mark.parametrize(("name", "top"), [("kit-1.0-py3-none-any.whl", ""), ("kit-main.zip", "kit-main/src/")])
def test_archives_as_libraries(tmp_path: Path, name: str, top: str) -> None:
    with zipfile.ZipFile(tmp_path / name, "w") as archive:
        for path in LIBRARY.rglob("*.py"):
            archive.writestr(f"{top}{path.relative_to(LIBRARY).as_posix()}", path.read_bytes())
        archive.writestr(f"{top}../kit/evil.py", "outside")
        if not top:
            archive.writestr(
                "kit-1.0.dist-info/entry_points.txt", "[console_scripts]\nkit.export = kit.legacy:old_export\n"
            )
    sources = Sources(_write(tmp_path, "root/m.py") / "root", [tmp_path / name, PATCH])
    assert _path(sources.module("kit.models.dense", None)) == f"{name}/{top}kit/models/dense.py"
    assert _path(sources.module("kit.constants", None)) == "overlay.patch/kit/constants.py"
    assert sources.module("kit.evil", None) is None
    assert sources.console_script("kit.export") == (None if top else ("kit.legacy", "old_export"))


def _diff(path: str, old: str, new: str) -> str:
    return f"--- a/{path}\n+++ b/{path}\n@@ -1 +1 @@\n-{old}\n+{new}\n"


def _patched(tmp_path: Path, *diffs: str) -> Sources:
    lib = _write(tmp_path / "base", **{"kit/a.py": "a\n", "kit/b.py": "b\n", "kit/c.py": "c\n", "kit/__init__.py": ""})
    patches = [_write(tmp_path, **{f"{n}.patch": diff}) / f"{n}.patch" for n, diff in enumerate(diffs)]
    return Sources(_write(tmp_path / "root", "m.py"), [lib, *patches])


def test_patch_that_does_not_apply_is_that_files_error(tmp_path: Path) -> None:
    sources = _patched(
        tmp_path,
        _diff("kit/a.py", "other", "A")
        + _diff("kit/b.py", "b", "B")
        + "diff --git a/kit/c.py b/kit/c.py\nBinary files a/kit/c.py and b/kit/c.py differ\n"
        + _diff("kit/gone.py", "x", "y"),
    )
    assert sources.read("0.patch/kit/b.py").text == "B\n"
    for module, reason in [
        ("a", r"0.patch: hunk 1 \(line 3 of the diff, old line 1\) does not apply"),
        ("c", "0.patch changes it as a binary file"),
        ("gone", "0.patch changes it, and no --library before it holds it"),
    ]:
        assert re.match(rf"0\.patch/kit/{module}\.py: {reason}", _refused(sources.module(f"kit.{module}", None)))


def test_patch_with_a_broken_hunk_spares_the_other_files(tmp_path: Path) -> None:
    sources = _patched(tmp_path, "--- a/kit/a.py\n+++ b/kit/a.py\n@@ -1,9 +1 @@\n-a\n" + _diff("kit/b.py", "b", "B"))
    assert _path(sources.module("kit.b", None)) == "0.patch/kit/b.py"
    assert "hunk 1 (line 3 of the diff) is cut short at line 7" in _refused(sources.module("kit.a", None))


def test_names_of_a_diff_that_leave_the_tree(tmp_path: Path) -> None:
    _write(tmp_path, **{"secret.py": "s\n"})
    names = ("../secret.py", "kit/../../secret.py", "kit\\secret.py")
    diff = "".join(_diff(name, "s", "S") for name in names)
    diff += _diff("secret.py", "s", "S").replace("a/", "/etc/").replace("b/", "/etc/")
    diff += "--- /dev/null\n+++ b/kit/../evil.py\n@@ -0,0 +1 @@\n+e\n" + _diff("kit/b.py", "b", "B")
    sources = _patched(tmp_path, diff)
    assert sources.read("0.patch/kit/b.py").text == "B\n"
    assert sources.module("secret", None) is None
    assert not sources.exists("0.patch/secret.py")
    assert not sources.exists("0.patch/kit/..")
    assert [skip.path for skip in sources.skipped()] == ["0.patch"] * 5
    assert all(skip.reason.startswith("leaves the tree: ") for skip in sources.skipped())


def test_diff_without_files_is_reported(tmp_path: Path) -> None:
    sources = _patched(tmp_path, "hello\n")
    assert [str(skip) for skip in sources.skipped()] == ["0.patch: no unified diff in it"]
    assert _path(sources.module("kit.a", None)) == "base/kit/a.py"


def test_new_file_that_is_there_already(tmp_path: Path) -> None:
    sources = _patched(tmp_path, "--- /dev/null\n+++ b/kit/a.py\n@@ -0,0 +1 @@\n+A\n")
    assert "adds it, and a --library before it holds it already" in _refused(sources.module("kit.a", None))
    assert _path(sources.module("kit", None)) == "base/kit/__init__.py"


def test_new_text_for_a_file_that_is_empty(tmp_path: Path) -> None:
    sources = _patched(tmp_path, "--- a/kit/__init__.py\n+++ b/kit/__init__.py\n@@ -0,0 +1 @@\n+A\n")
    assert sources.read("0.patch/kit/__init__.py").text == "A\n"


def test_patch_over_a_patch(tmp_path: Path) -> None:
    added = "--- /dev/null\n+++ b/src/kit/new.py\n@@ -0,0 +1 @@\n+n\n" + _diff("src/kit/a.py", "a", "A")
    second = _diff("x/y/kit/new.py", "n", "N") + _diff("x/y/kit/a.py", "A", "AA")
    deleted = "--- a/kit/b.py\n+++ /dev/null\n@@ -1 +0,0 @@\n-b\n"
    late = _diff("kit/a.py", "AA", "AAA") + _diff("kit/b.py", "b", "B")
    sources = _patched(tmp_path, added, second, deleted)
    assert sources.read("1.patch/kit/new.py").text == "N\n"
    assert sources.read("1.patch/kit/a.py").text == "AA\n"
    assert sources.read("0.patch/kit/a.py").text == "A\n"
    assert sources.module("kit.b", None) is None
    assert sources.read("base/kit/b.py").text == "b\n"
    sources = _patched(tmp_path, added, second, deleted, late)
    assert sources.read("3.patch/kit/a.py").text == "AAA\n"
    assert "no --library before it holds it" in _refused(sources.module("kit.b", None))


def test_diff_of_new_files_only(tmp_path: Path) -> None:
    sources = _patched(tmp_path, "--- /dev/null\n+++ b/python/src/fresh/m.py\n@@ -0,0 +1 @@\n+f\n")
    assert _path(sources.module("fresh.m", None)) == "0.patch/fresh/m.py"


def test_plain_diff_between_two_folders(tmp_path: Path) -> None:
    old, new = "kit-1.0/src/kit/{}.py\t2026-01-01 00:00:00", "kit-1.1/src/kit/{}.py\t2026-01-02 00:00:00"
    diff = f"--- {old}\n+++ {new}\n@@ -1 +1 @@\n-a\n+A\n".replace("{}", "a")
    diff += f"--- {old}\n+++ {new}\n@@ -0,0 +1 @@\n+n\n".replace("{}", "new")
    sources = _patched(tmp_path, diff)
    assert sources.read("0.patch/kit/a.py").text == "A\n"
    assert _path(sources.module("kit.new", None)) == "0.patch/kit/new.py"


def test_where_else_a_moved_module_is(tmp_path: Path) -> None:
    sources = Sources(tmp_path, [LIBRARY, PATCH])
    assert sources.elsewhere("kit.export.constants") == ("overlay.patch/kit/constants.py",)
    assert sources.elsewhere("kit.export.gone") == ()
    assert sources.elsewhere("kit") == ()
    assert sources.elsewhere("other.constants") == ()
