from __future__ import annotations

from pathlib import Path

import pytest

from auditor.config import Config, ConfigError, load, load_file
from rules.expect import Expectation, FailOn
from rules.verdict import Verdict

FORMATS = ("text", "json", "html")
EVERYTHING = """
library = ["vendor/src", "patches/fix.patch"]
recipes = "ship/*.toml"
recipe-keys = { script = "exporter" }
script-root = "conversion"
checkpoints = "configs"
format = "json"
output = "report.json"
fail-on = "out"
jobs = 2
no-cache = true

[expect]
"models/x/recipe.toml#x" = "eligible"
hybrid = "out"
"""


def own(tmp_path: Path, text: str) -> Config:
    (tmp_path / "spec-audit.toml").write_text(text, encoding="utf-8")
    return load(tmp_path, FORMATS)


def check_everything(config: Config, root: Path) -> None:
    assert config.libraries == (root / "vendor/src", root / "patches/fix.patch")
    settings = config.recipe_settings(None)
    assert (settings.glob, settings.script_root, settings.key("script")) == ("ship/*.toml", "conversion", "exporter")
    assert config.checkpoints == root / "configs"
    assert (config.format, config.output, config.fail_on) == ("json", root / "report.json", FailOn.OUT)
    assert (config.jobs, config.no_cache) == (2, True)
    assert config.expect == (
        Expectation("models/x/recipe.toml#x", Verdict.ELIGIBLE),
        Expectation("hybrid", Verdict.OUT),
    )


def test_without_a_configuration_the_defaults_hold(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[project]\nname = 'zoo'\n")
    config = load(tmp_path, FORMATS)
    assert config == Config()
    assert config.recipe_settings(None).glob == "**/recipe.toml"


def test_every_key_in_a_file_of_its_own(tmp_path: Path) -> None:
    check_everything(own(tmp_path, EVERYTHING), tmp_path)


def test_every_key_in_pyproject(tmp_path: Path) -> None:
    text = "[tool.spec-audit]" + EVERYTHING.replace("[expect]", "[tool.spec-audit.expect]")
    (tmp_path / "pyproject.toml").write_text(text)
    check_everything(load(tmp_path, FORMATS), tmp_path)


def test_the_command_line_wins_over_the_glob(tmp_path: Path) -> None:
    assert own(tmp_path, EVERYTHING).recipe_settings("a/*.toml").glob == "a/*.toml"


def test_a_named_file(tmp_path: Path) -> None:
    path = tmp_path / "ci.toml"
    path.write_text("jobs = 3")
    assert load_file(path, FORMATS).jobs == 3
    (tmp_path / "pyproject.toml").write_text("[tool.spec-audit]\njobs = 4")
    assert load_file(tmp_path / "pyproject.toml", FORMATS).jobs == 4


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("librery = 'x'", "unknown key 'librery'; did you mean 'library'?"),
        ("zzz = 1", "unknown key 'zzz'; the keys are library, recipes,"),
        ("library = 3", "library: write a path, or a list of paths"),
        ("library = ['']", "library: write a text"),
        ("recipes = 3", "recipes: write a text"),
        ("recipe-keys = 'x'", "recipe-keys: write a table of names"),
        ("recipe-keys = { scrip = 'x' }", "recipe-keys: write one of script, args, command, bundle, steps"),
        ("format = 'pdf'", "format: write one of text, json, html"),
        ("output = '../elsewhere'", "output: it has to lie below the configuration's folder"),
        ("output = '/elsewhere'", "output: it has to lie below the configuration's folder"),
        ("fail-on = 'always'", "fail-on: write one of never, expect, out, unresolved"),
        ("jobs = 0", "jobs: write a number of processes, 1 or more"),
        ("jobs = true", "jobs: write a number of processes, 1 or more"),
        ("no-cache = 'yes'", "no-cache: write true or false"),
        ("expect = ['x']", "expect: write a table of verdicts"),
        ("expect = { x = 'good' }", "expect: write one of eligible, out, unresolved"),
        ("= 1", "not TOML"),
    ],
)
def test_a_configuration_that_is_refused_says_why(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        own(tmp_path, text)
    assert str(caught.value).startswith(f"{tmp_path / 'spec-audit.toml'}: ")
    assert message in str(caught.value)


def test_two_configurations_are_refused(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.spec-audit]\njobs = 4")
    with pytest.raises(ConfigError, match=r"two configurations: .* keep one of them"):
        own(tmp_path, "jobs = 3")


def test_output_through_a_link_out_of_the_tree(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "link").symlink_to(tmp_path)
    with pytest.raises(ConfigError, match="has to lie below"):
        own(tree, "output = 'link/file'")


@pytest.mark.parametrize(
    ("data", "message"),
    [(b"\xff\xfe", "not TOML"), (b"[tool]\nspec-audit = 1", "has to be a table"), (b"#" * 1_000_001, "larger than")],
)
def test_unusable_pyproject(tmp_path: Path, data: bytes, message: str) -> None:
    (tmp_path / "pyproject.toml").write_bytes(data)
    with pytest.raises(ConfigError, match=message):
        load(tmp_path, FORMATS)


def test_a_named_file_that_is_missing_or_has_no_section(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no such configuration file"):
        load_file(tmp_path / "none.toml", FORMATS)
    (tmp_path / "pyproject.toml").write_text("")
    with pytest.raises(ConfigError, match=r"has no \[tool.spec-audit\]"):
        load_file(tmp_path / "pyproject.toml", FORMATS)
