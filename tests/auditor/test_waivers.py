from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import jsonschema
import pytest

from auditor import exits
from auditor.config import ConfigError, load
from auditor.waivers import in_text
from tests.auditor.conftest import Run
from tests.auditor.support import ROOT
from tests.reports.sample import EVIL

EXAMPLES = ROOT / "examples" / "exports"
STEP = "models/pine-step/recipe.toml#pine-step"


@pytest.fixture
def zoo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The examples, to be edited; the current folder is the repository around them."""
    shutil.copytree(EXAMPLES, tmp_path / "zoo")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SOURCE_DATE_EPOCH", raising=False)
    return tmp_path / "zoo"


def pinned(zoo: Path) -> tuple[Path, int]:
    """The script that pins the query by a literal, and the index of the line that does it."""
    script = zoo / "conversion" / "export_step.py"
    lines = script.read_text("utf-8").splitlines()
    return script, next(at for at, line in enumerate(lines) if "pinned-by-literal" in line)


def edit(script: Path, at: int, *, end: str = "", above: str = "") -> None:
    lines = script.read_text("utf-8").splitlines()
    lines[at] += end
    if above:
        indent = lines[at][: len(lines[at]) - len(lines[at].lstrip())]
        lines.insert(at, indent + above)
    script.write_text("\n".join(lines) + "\n", "utf-8")


def model(zoo: Path, run: Run, *options: str, name: str = STEP) -> dict[str, object]:
    out = run("scan", "zoo", "--format", "json", *options)[1]
    found: dict[str, object] = next(item for item in json.loads(out)["models"] if item["id"] == name)
    return found


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x = 1  # spec-audit: ignore[moe] fine\n", [(("moe",), "fine", 1, 1, "")]),
        ("x = 1  #spec-audit:ignore[ moe , ring-cache ]  two\n", [(("moe", "ring-cache"), "two", 1, 1, "")]),
        ("# spec-audit: ignore[moe] fine\n\n# more\nx = 1\n", [(("moe",), "fine", 1, 4, "")]),
        ("def f():\n    # spec-audit: ignore[moe] fine\n    return 1\n", [(("moe",), "fine", 2, 3, "")]),
        ("x = 1  # noqa: E1  # spec-audit: ignore[moe] fine\n", [(("moe",), "fine", 1, 1, "")]),
        ("x = '# spec-audit: ignore[moe] fine'\n", []),
        ("x = 1  # spec-audit: ignore[moe]\n", [(("moe",), "", 1, 1, "it gives no reason")]),
        ("x = 1  # spec-audit: ignore[] why\n", [((), "why", 1, 1, "it names no rule")]),
        ("x = 1  # spec-audit: ignore why\n", [((), "", 1, 0, "write `# spec-audit: ignore[RULE] the reason`")]),
        ("x = 1  # spec-audit: ignore[mo] w\n", [(("mo",), "w", 1, 1, "no rule is called 'mo'; did you mean 'moe'?")]),
        ("x = 1  # spec-audit: ignore[moe] fine\ny = (\n", [(("moe",), "fine", 1, 1, "")]),
    ],
)
def test_comments(text: str, expected: list[tuple[object, ...]]) -> None:
    found = [(w.rules, w.reason, w.place.line if w.place else 0, w.line, w.problem) for w in in_text("x.py", text)]
    assert found == expected


@pytest.mark.parametrize("where", ["end", "above"])
def test_a_comment_silences_the_finding_on_its_line(zoo: Path, run: Run, where: str) -> None:
    script, at = pinned(zoo)
    comment = "# spec-audit: ignore[static-query] the runner takes one token"
    edit(script, at, **{where: comment if where == "above" else f"  {comment}"})
    found = model(zoo, run)
    assert found["silenced"] is True
    assert found["verdict"] == "out", "a waiver never changes a verdict"
    status, out, err = run("scan", "zoo", "--fail-on", "out")
    assert status == exits.SOMETHING
    assert "waived: the runner takes one token" in out
    assert "waiver in force" in err


@pytest.mark.parametrize(
    ("comment", "at", "message"),
    [
        ("  # spec-audit: ignore[row-kernel] wrong rule", 0, "silences nothing: remove it"),
        ("  # spec-audit: ignore[static-query]", 0, "it gives no reason"),
        ("  # spec-audit: ignore[static-query] wrong line", 1, "silences nothing: remove it"),
    ],
)
def test_a_comment_that_silences_nothing_is_reported(zoo: Path, run: Run, comment: str, at: int, message: str) -> None:
    script, line = pinned(zoo)
    edit(script, line - at, end=comment)
    assert model(zoo, run)["silenced"] is False
    assert message in run("scan", "zoo")[2]


def waiver(zoo: Path, text: str) -> None:
    (zoo / "spec-audit.toml").write_text("[[waivers]]\n" + text, "utf-8")


def test_the_configuration_waives_until_a_day(zoo: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    waiver(zoo, 'rule = "static-query"\nmodel = "pine-step"\nreason = "one token"\nexpires = 2027-01-31\n')
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1801353600")  # 2027-01-31
    assert model(zoo, run)["silenced"] is True
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1801440000")
    assert model(zoo, run)["silenced"] is False
    assert "expired on 2027-01-31: look again" in run("scan", "zoo")[2]


def test_a_waiver_does_not_keep_a_promise(zoo: Path, run: Run) -> None:
    waiver(zoo, 'rule = "static-query"\nmodel = "*"\nreason = "x"\n[expect]\npine-step = "eligible"\n')
    assert model(zoo, run)["silenced"] is True
    assert run("scan", "zoo")[0] == exits.SOMETHING


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('rule = "static-query"\nmodel = "x"', "number 1: reason: write a text"),
        ('rule = "static-query"\nreason = "x"', "number 1: model: write a text"),
        ('model = "x"\nreason = "x"', "number 1: rule: write the identifier"),
        ('rule = "static-qery"\nmodel = "x"\nreason = "x"', "did you mean 'static-query'?"),
        ('rule = "moe"\nmodel = "x"\nreason = "x"\nuntil = 1', "unknown key 'until'"),
        ('rule = "moe"\nmodel = "x"\nreason = "x"\nexpires = "2027-01-31"', "write a date without quotes"),
        ('rule = "moe"\nmodel = "x"\nreason = "x"\nexpires = 2027-01-31T00:00:00', "write a date without quotes"),
    ],
)
def test_a_waiver_that_cannot_be_used_is_refused(tmp_path: Path, text: str, message: str) -> None:
    waiver(tmp_path, text)
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, ("text",))
    assert message in str(caught.value)


def test_a_baseline_reports_only_what_is_new(zoo: Path, run: Run) -> None:
    Path("zoo/spec-audit.toml").write_text('baseline = "known.json"\nfail-on = "unresolved"\n')
    assert "--update-baseline records one" in run("scan", "zoo")[2]
    status, _, err = run("scan", "zoo", "--update-baseline")
    assert status == exits.SOMETHING
    assert "findings recorded in zoo/known.json" in err
    assert run("scan", "zoo")[0] == exits.OK
    assert run("scan", "zoo", "--format", "github")[1] == ""
    # Lines that move are nothing new.
    for script in zoo.glob("conversion/*.py"):
        script.write_text("# moved\n\n" + script.read_text("utf-8"), "utf-8")
    assert run("scan", "zoo")[0] == exits.OK
    recipe = zoo / "models" / "pine-1b" / "recipe.toml"
    recipe.write_text(recipe.read_text("utf-8").replace("[pine-1b-dynamic]", "[renamed]"), "utf-8")
    assert run("scan", "zoo")[0] == exits.OK, "an eligible model has no finding"
    (zoo / "models" / "new").mkdir()
    shutil.copy(zoo / "models" / "pine-step" / "recipe.toml", zoo / "models" / "new")
    status, out, _ = run("scan", "zoo", "--format", "github")
    assert status == exits.SOMETHING
    assert {line.split("::")[2].split("#")[0] for line in out.splitlines()} == {"models/new/recipe.toml"}


@pytest.mark.parametrize("text", ["", "[]", '{"schema": "spec-audit.scan/1"}', '{"schema": "spec-audit.baseline/1"}',
    '{"schema": "spec-audit.baseline/1", "findings": [{}]}'])  # fmt: skip
def test_what_is_no_baseline(zoo: Path, run: Run, text: str) -> None:
    Path("known.json").write_text(text)
    status, out, err = run("scan", "zoo", "--baseline", "known.json")
    assert (status, out) == (exits.USAGE, "")
    assert "--baseline: 'known.json'" in err


def test_update_needs_a_place(zoo: Path, run: Run) -> None:
    assert run("scan", "zoo", "--update-baseline")[0] == exits.USAGE


def test_further_formats_of_the_same_scan(zoo: Path, run: Run) -> None:
    status, out, _ = run("scan", "zoo", "--also", "sarif=a.sarif", "--also", "junit=a.xml")
    assert status == exits.OK
    assert out.startswith("VERDICT")
    found = json.loads(Path("a.sarif").read_text("utf-8"))["runs"][0]["results"]
    paths = {item["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for item in found}
    assert all(Path(path).is_file() for path in paths), "paths lead from the repository, where CI stands"
    assert "<testsuites" in Path("a.xml").read_text("utf-8")


@pytest.mark.parametrize("wanted", ["sarif", "pdf=x", "=x", "sarif=", "sarif=gone/x.sarif"])
def test_further_formats_that_cannot_be(zoo: Path, run: Run, wanted: str) -> None:
    assert run("scan", "zoo", "--also", wanted)[0] == exits.USAGE
    assert [path.name for path in Path().iterdir()] == ["zoo"]


# -- diff and explain -------------------------------------------------------------------------------------------------


@pytest.fixture
def scans(zoo: Path, run: Run) -> Callable[[Callable[[], None]], tuple[int, dict[str, dict[str, object]], str]]:
    """The difference that an edit of the zoo makes, by model, with the exit status and the text."""

    def compare(edit_zoo: Callable[[], None]) -> tuple[int, dict[str, dict[str, object]], str]:
        run("scan", "zoo", "--format", "json", "--output", "old.json")
        edit_zoo()
        run("scan", "zoo", "--format", "json", "--output", "new.json")
        status, out, _ = run("diff", "old.json", "new.json", "--format", "json")
        document = json.loads(out)
        schema = json.loads((ROOT / "reports" / "schemas" / "diff-1.schema.json").read_text("utf-8"))
        jsonschema.Draft202012Validator(schema).validate(document)
        assert run("diff", "old.json", "new.json", "--format", "markdown")[0] == status
        return status, {item["id"]: item for item in document["models"]}, run("diff", "old.json", "new.json")[1]

    return compare


Scans = Callable[[Callable[[], None]], tuple[int, dict[str, dict[str, object]], str]]
DYNAMIC = "models/pine-1b/recipe.toml#pine-1b-dynamic"


def test_lost_by_a_flag(zoo: Path, scans: Scans) -> None:
    def edit_zoo() -> None:
        recipe = zoo / "models" / "pine-1b" / "recipe.toml"
        head, name, tail = recipe.read_text("utf-8").partition("[pine-1b-dynamic]")
        recipe.write_text(head + name + tail.replace("args = [", 'args = ["--static-ids", ', 1), "utf-8")

    status, models, text = scans(edit_zoo)
    assert status == exits.SOMETHING
    assert (models[DYNAMIC]["change"], models[DYNAMIC]["new"]) == ("lost", "out")
    assert "1 model lost eligibility" in text
    assert "query: dynamic -> static:1\n      conversion/export_dense.py:" in text
    assert "run: conversion/export_dense.py --dtype float16 -> conversion/export_dense.py --static-ids" in text


def test_lost_by_being_removed(zoo: Path, scans: Scans) -> None:
    status, models, _ = scans(lambda: shutil.rmtree(zoo / "models" / "pine-1b"))
    assert status == exits.SOMETHING
    assert (models[DYNAMIC]["change"], models[DYNAMIC]["new"]) == ("lost", None)
    assert models["models/pine-1b/recipe.toml#pine-1b"]["change"] == "gone"


def test_lines_that_move_are_no_difference(zoo: Path, scans: Scans) -> None:
    def edit_zoo() -> None:
        for script in zoo.glob("conversion/*.py"):
            script.write_text("# moved\n\n" + script.read_text("utf-8"), "utf-8")

    assert scans(edit_zoo)[:2] == (exits.OK, {})


def test_a_model_that_moved_is_the_same(zoo: Path, scans: Scans) -> None:
    status, models, _ = scans(lambda: (zoo / "models" / "pine-suite").rename(zoo / "models" / "grove") and None)
    assert status == exits.OK
    assert models["models/grove/recipe.toml#pine-suite"]["change"] == "facts"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "not valid JSON"),
        ('{"schema": "spec-audit.probe/1"}', "not a report of"),
        ("[]", "not a report of"),
        ('{"schema": "spec-audit.scan/1", "graphs": [{}], "models": []}', "the report has no 'tool'"),
    ],
)
def test_what_is_no_scan(tmp_path: Path, run: Run, content: str, message: str) -> None:
    path = tmp_path / "x.json"
    path.write_text(content)
    for arguments in (("diff", str(path), str(path)), ("explain", "--model", "x", str(path))):
        status, out, err = run(*arguments)
        assert (status, out) == (exits.USAGE, "")
        assert message in " ".join(err.split())


def test_a_verdict_that_its_graph_does_not_have_is_refused(zoo: Path, run: Run) -> None:
    run("scan", "zoo", "--format", "json", "--output", "scan.json")
    data = json.loads(Path("scan.json").read_text("utf-8"))
    next(item for item in data["models"] if item["verdict"] == "out")["verdict"] = "eligible"
    Path("forged.json").write_text(json.dumps(data), "utf-8")
    for arguments in (("diff", "scan.json", "forged.json"), ("explain", "--model", "*", "forged.json")):
        status, out, err = run(*arguments)
        assert (status, out) == (exits.USAGE, "")
        assert "forged.json: " in err


def test_one_models_story(zoo: Path, run: Run) -> None:
    run("scan", "zoo", "--format", "json", "--output", "scan.json")
    status, out, _ = run("explain", "--model", "pine-kernels", "scan.json")
    assert status == exits.OK
    assert out.startswith("models/pine-kernels/recipe.toml#pine-kernels is out, by static-query.\n")
    assert "is no fix: with it the graph is out by `row-kernel`" in out
    assert "Nothing has to change" in run("explain", "--model", "pine-1b-dynamic", "scan.json")[1]
    assert "did you mean 'pine-step'?" in run("explain", "--model", "pine-stp", "scan.json")[2]
    assert "fits 13 models" in run("explain", "--model", "*", "scan.json")[2]
    assert "name it with --model" in run("explain", "scan.json")[2]


def test_hostile_names_stay_text(zoo: Path, run: Run) -> None:
    """The reports that are read back may come from anybody."""
    run("scan", "zoo", "--format", "json", "--output", "old.json")
    data = json.loads(Path("old.json").read_text("utf-8"))
    eligible = next(item for item in data["models"] if item["id"] == DYNAMIC)
    eligible["id"] = eligible["bundle"] = EVIL
    Path("old.json").write_text(json.dumps(data), "utf-8")
    eligible["verdict"] = "out"
    graph = next(item for item in data["graphs"] if item["id"] == eligible["primary"])
    graph["verdict"] = "out"
    graph["facts"]["query"] |= {"value": EVIL, "evidence": [{"path": EVIL, "line": 1, "note": EVIL}]}
    Path("new.json").write_text(json.dumps(data), "utf-8")
    for command in (("diff", "old.json", "new.json"), ("explain", "new.json", "--model", EVIL)):
        out = run(*command)[1]
        assert "\\x1b[31m\\u202ered\\x0anext" in out
        assert "\x1b" not in out
        assert "\u202e" not in out
    status, out, _ = run("diff", "old.json", "new.json", "--format", "markdown")
    assert status == exits.SOMETHING
    assert "<script" not in out
