"""Recipes: one bad recipe is one error, and the rest goes on."""

from __future__ import annotations

from pathlib import Path

import pytest

from auditor.recipes import Recipe, RecipeError, RecipeSettings, discover
from auditor.sources import Sources

GOOD = "[good]\nscript = 'export.py'\n"
EXPORT = {"conversion/export.py": ""}


def _discover(
    root: Path, files: dict[str, str], settings: RecipeSettings | None = None
) -> tuple[tuple[Recipe, ...], tuple[RecipeError, ...]]:
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text, encoding="utf-8")
    return discover(Sources(root), settings or RecipeSettings())


def test_a_glob_that_fits_nothing_is_told(tmp_path: Path) -> None:
    """Without recipes the scripts are judged by their defaults: a wrong glob would change verdicts in silence."""
    recipes, (error,) = _discover(tmp_path, EXPORT, RecipeSettings("models/recipes.toml"))
    assert recipes == ()
    assert str(error) == "models/recipes.toml: no file below the root fits; `**/` is any number of folders"
    assert _discover(tmp_path, {}) == ((), ())


@pytest.mark.parametrize(
    ("table", "name", "reason"),
    [
        ("script = 'exprot.py'", "", r"no script 'exprot\.py' .*: did you mean conversion/export\.py\?$"),
        (
            "script = 'zzz.py'",
            "",
            r"no script 'zzz\.py' .*: correct its path, set the script root, or scan the folder that holds both$",
        ),
        ("script = '../../../etc/export.py'", "", "no script"),
        ("script = '/conversion/export.py'", "", "no script"),
        ("script = 'version/export.py'", "", "no script"),
        (
            "script = 'two.py'",
            "",
            r"script 'two\.py' is in 2 folders \(a/two\.py, b/two\.py\): write its path from the root",
        ),
        ("script = 3", "", "'script' is not a string"),
        ("script = ['export.py']", "", "'script' is not a string"),
        ("script = 'export.py'\nbundle = 1", "", "'bundle' is not a string"),
        ("script = 'export.py'\nargs = {a = 1}", "", "'args' is not a list of strings"),
        ("script = 'export.py'\nargs = ['a', true]", "", "'args' is not a list of strings"),
        ("script = 'export.py'\nargs = \"'a\"", "", "'args' cannot be split into words .*: write it as a list"),
        ("script = 'export.py'\ncommand = ['kit.export']", "", "both 'script' and 'command': keep one of them"),
        ("command = ['python', '-c', 'x']", "", "'command' starts no script, module or command: python -c x"),
        ("command = 'python a.py && python b.py'", "", "'command' starts 2 programs: give each a step of its own: "),
        ("command = 'python -m gone.export'", "", "no module 'gone.export' below the root or in a library"),
        ("steps = 'export.py'", "", r"'steps' is no list of tables, or an empty one: write \[\[bad.steps\]\]"),
        ("steps = []", "", "'steps' is no list of tables, or an empty one"),
        ("steps = ['export.py']", "", "'steps' is no list of tables"),
        ("steps = [{script = 'zzz.py'}]", "/step0", "no script"),
        ("script = 'export.py'\nsteps = [{}, {args = 1}]", "/step1", "'args' is not a list of strings"),
    ],
)
def test_bad_recipe(tmp_path: Path, table: str, name: str, reason: str) -> None:
    files = {**EXPORT, "a/two.py": "", "b/two.py": "", "m/recipe.toml": f"[bad]\n{table}\n{GOOD}"}
    recipes, errors = _discover(tmp_path, files)
    (error,) = errors
    assert error.name == f"m/recipe.toml#bad{name}"
    with pytest.raises(RecipeError, match=rf"^{error.name}: {reason}"):
        raise error
    assert recipes[-1] == Recipe("m/recipe.toml#good", "conversion/export.py", (), (), "")


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"[bad\n", "not TOML"),
        (b"x = '\xff'\n", "not UTF-8"),
        (b"x = " + b"[" * 9000, "not TOML"),
        (b"#" * 2**23, "larger than 4 MiB"),
    ],
)
def test_bad_file(tmp_path: Path, data: bytes, reason: str) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a/recipe.toml").write_bytes(data)
    recipes, errors = _discover(tmp_path, {**EXPORT, "m/recipe.toml": GOOD})
    assert [recipe.name for recipe in recipes] == ["m/recipe.toml#good"]
    (error,) = errors
    assert error.name == "a/recipe.toml"
    assert error.reason.startswith(reason)


def test_recipe_that_leaves_the_root_by_a_link(tmp_path: Path) -> None:
    (tmp_path / "secret.toml").write_text(GOOD)
    (tmp_path / "root").mkdir()
    (tmp_path / "root/recipe.toml").symlink_to(tmp_path / "secret.toml")
    assert _discover(tmp_path / "root", EXPORT) == ((), ())


def test_no_recipes(tmp_path: Path) -> None:
    assert _discover(
        tmp_path, {**EXPORT, "recipes.toml": GOOD, "m/my-recipe.toml": GOOD, ".git/recipe.toml": GOOD}
    ) == ((), ())


def test_unknown_key_name() -> None:
    with pytest.raises(
        ValueError, match="unknown recipe key 'scripts': the keys are script, args, command, bundle, steps"
    ):
        RecipeSettings(keys={"scripts": "x"})


@pytest.mark.parametrize(
    ("present", "found"),
    [
        (["m/export.py", "export.py", "a/export.py"], "m/export.py"),
        (["export.py", "a/export.py", "b/export.py"], "export.py"),
        (["a/b/export.py"], "a/b/export.py"),
        (["a/export.py", "b/my_export.py"], "a/export.py"),
    ],
)
def test_where_a_script_is(tmp_path: Path, present: list[str], found: str) -> None:
    recipes, errors = _discover(tmp_path, {"m/recipe.toml": GOOD} | dict.fromkeys(present, ""))
    assert ([recipe.script for recipe in recipes], errors) == ([found], ())


@pytest.mark.parametrize("script", ["sub/export.py", "./sub/export.py", "../tools/sub/export.py"])
def test_script_with_folders(tmp_path: Path, script: str) -> None:
    files = {"tools/sub/export.py": "", "tools/other/export.py": "", "m/recipe.toml": f"[r]\nscript = '{script}'\n"}
    (recipe,), errors = _discover(tmp_path, files)
    assert (recipe.script, errors) == ("tools/sub/export.py", ())


def test_script_root_glob_and_keys(tmp_path: Path) -> None:
    settings = RecipeSettings(
        "ship/*.toml", "tools", {"script": "file", "args": "argv", "steps": "runs", "bundle": "out"}
    )
    text = "[r]\nfile = 'export.py'\nargv = 'a \"b c\"'\nout = 'o'\nscript = 'ignored'\n"
    text += "[[r.runs]]\n[[r.runs]]\nargv = ['d']\n"
    files = {"tools/export.py": "", "export.py": "", "ship/r.toml": text, "ship/deep/s.toml": text, "recipe.toml": text}
    recipes, errors = _discover(tmp_path, files, settings)
    assert errors == ()
    assert recipes == (
        Recipe("ship/r.toml#r/step0", "tools/export.py", ("a", "b c"), (), "o"),
        Recipe("ship/r.toml#r/step1", "tools/export.py", ("d",), (), "o"),
    )


@pytest.mark.parametrize(
    ("glob", "path", "matches"),
    [
        ("**/recipe.toml", "recipe.toml", True),
        ("**/recipe.toml", "a/b/recipe.toml", True),
        ("**/recipe.toml", "a/xrecipe.toml", False),
        ("*/recipe.toml", "a/b/recipe.toml", False),
        ("recipe?toml", "recipe.toml", True),
        ("recipe?toml", "recipe/toml", False),
        ("models/**", "models/a/r.toml", True),
        ("recipe.toml", "recipextoml", False),
    ],
)
def test_glob(tmp_path: Path, glob: str, path: str, matches: bool) -> None:
    recipes, _ = _discover(tmp_path, {**EXPORT, path: GOOD}, RecipeSettings(glob))
    assert bool(recipes) is matches


def test_order_names_and_tables(tmp_path: Path) -> None:
    text = """
    title = "not a recipe"
    ["model-1.5b"]
    script = "export.py"
    args = ["int8", 4, 0.5]
    bundle = "out/model"
    status = "verified"
    [pair]
    bundle = "shared"
    args = ["--table"]
    script = "export.py"
    steps = [{ args = [] }, { command = ["kit.export", "x"], bundle = "own" }, { script = "export.py", bundle = "b" }]
    [nothing]
    bundle = "lost"
    """
    recipes, errors = _discover(tmp_path, {**EXPORT, "m/recipe.toml": text, "a/recipe.toml": GOOD})
    script = "conversion/export.py"
    assert errors == ()
    assert recipes == (
        Recipe("a/recipe.toml#good", script, (), (), ""),
        Recipe("m/recipe.toml#model-1.5b", script, ("int8", "4", "0.5"), (), "out/model"),
        Recipe("m/recipe.toml#pair/step0", script, (), (), "shared"),
        Recipe("m/recipe.toml#pair/step1", "", ("x", "--table"), ("kit.export", "x", "--table"), "own"),
        Recipe("m/recipe.toml#pair/step2", script, ("--table",), (), "b"),
        Recipe("m/recipe.toml#nothing", "", (), (), "lost"),
    )


@pytest.mark.parametrize(
    ("command", "script", "words"),
    [
        ("'kit.export small'", "", ("kit.export", "small")),
        ("['uv', 'run', 'kit.export', 'small']", "", ("kit.export", "small")),
        ("'uv run python conversion/export.py small'", "conversion/export.py", ()),
        ("'cd conversion && caffeinate -i python export.py small'", "conversion/export.py", ()),
        ("'cd tools && python -m export small'", "tools/export.py", ()),
        ("'python -m tools small'", "tools/__main__.py", ()),
        ("'python -m tools.export small'", "tools/export.py", ()),
    ],
)
def test_commands(tmp_path: Path, command: str, script: str, words: tuple[str, ...]) -> None:
    files = {**EXPORT, "tools/__init__.py": "", "tools/__main__.py": "", "tools/export.py": ""}
    (recipe,), errors = _discover(tmp_path, {**files, "m/recipe.toml": f"[r]\ncommand = {command}\n"})
    assert (recipe.script, recipe.argv, recipe.command, errors) == (script, ("small",), words, ())


def test_module_that_cannot_be_read_is_still_the_script(tmp_path: Path) -> None:
    """The error belongs to the file, which the scan reports."""
    (tmp_path / "broken.py").write_bytes(b"\xff")
    (recipe,), errors = _discover(tmp_path, {"recipe.toml": "[r]\ncommand = 'python -m broken'\n"})
    assert (recipe.script, errors) == ("broken.py", ())


def test_of_recipes_those_of_the_paths_that_are_audited(tmp_path: Path) -> None:
    """A script brings the recipes that run it, a folder its own, and a broken one elsewhere is nobody's business."""
    _discover(
        tmp_path,
        {
            "conversion/export.py": "",
            "conversion/other.py": "",
            "a/recipe.toml": "[one]\nscript = 'export.py'\n[two]\nscript = 'other.py'\n",
            "b/recipe.toml": "[three]\nscript = 'gone.py'\n",
        },
    )

    def names(*only: str) -> tuple[list[str], list[str]]:
        recipes, broken = discover(Sources(tmp_path, only=[tmp_path / o for o in only]), RecipeSettings())
        return [r.name.partition("#")[2] for r in recipes], [e.name for e in broken]

    assert names("conversion/export.py") == (["one"], [])
    assert names("a") == (["one", "two"], [])
    assert names("conversion/other.py", "b") == (["two"], ["b/recipe.toml#three"])
    assert names() == (["one", "two"], ["b/recipe.toml#three"])
