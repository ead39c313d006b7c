"""Two command lines that give a script's parser the same values are one run; nothing else is taken for the same."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from auditor import run as runs
from auditor.command_lines import describe
from auditor.values import Const, Function, Instance, Mapping, NativeClass, Pattern, Seq, Unknown, Value
from rules.facts import Scan
from rules.verdict import judge
from tests.auditor.support import EXPORTER, scan_text

LIBRARY = EXPORTER.split('if __name__ == "__main__":')[0] + (
    "\n\nclass Given:\n    def __init__(self, static):\n        self.static = static\n"
)
PARSER = """\
import argparse
import sys
from library import Given, export

parser = argparse.ArgumentParser()
parser.add_argument("--mode", default="free", choices=["free", "fixed"])
parser.add_argument("--out", default="x")
"""


def scanned(root: Path, script: str, *argvs: list[str]) -> tuple[Scan, dict[str, str]]:
    """The scan, and what it says of each recipe."""
    recipes = "".join(f'[r{n}]\nscript = "export.py"\nargs = {json.dumps(argv)}\n' for n, argv in enumerate(argvs))
    result = scan_text(root, {"library.py": LIBRARY, "export.py": script, "recipe.toml": recipes})
    mine = [g for g in result.graphs if g.invocation.recipe]
    return result, {g.invocation.recipe.split("#")[1]: judge(g.facts).says() for g in mine}


@pytest.fixture
def finished(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The steps of each run of the script that went to its end."""
    counted: list[int] = []
    made = runs.Result

    def counting(*args: Any) -> runs.Result:
        result = made(*args)
        if "--mode" in result.flags:
            counted.append(result.steps)
        return result

    monkeypatch.setattr(runs, "Result", counting)
    return counted


def test_a_recipe_that_spells_the_default_out_is_the_default_run(tmp_path: Path, finished: list[int]) -> None:
    script = PARSER + 'args = parser.parse_args()\nexport(Given(args.mode == "fixed"))\n'
    _, said = scanned(
        tmp_path, script, ["--mode", "free"], ["--out", "x"], ["--mode=free", "--out=x"], ["--mode", "fixed"]
    )
    assert said == {"r0": "eligible", "r1": "eligible", "r2": "eligible", "r3": "out by static-query"}
    assert len(finished) == 2


READS_MORE = {
    "sys.argv": 'args = parser.parse_args()\nexport(Given("free" in sys.argv))\n',
    "from sys import argv": ('from sys import argv\nargs = parser.parse_args()\nexport(Given("free" in argv))\n'),
    "a second parser": (
        "args, rest = parser.parse_known_args()\n"
        'other = argparse.ArgumentParser()\nother.add_argument("--mode", default="none")\n'
        'args, rest = other.parse_known_args()\nexport(Given(args.mode == "free"))\n'
    ),
    "what the parser leaves": (
        "args, rest = argparse.ArgumentParser().parse_known_args()\nexport(Given(len(rest) > 0))\n"
    ),
}


@pytest.mark.parametrize("name", sorted(READS_MORE))
def test_what_reads_more_of_the_command_line_tells_the_runs_apart(tmp_path: Path, name: str) -> None:
    _, said = scanned(tmp_path, PARSER + READS_MORE[name], [], ["--mode", "free"])
    assert said == {"r0": "eligible", "r1": "out by static-query"}


def test_two_commands_with_the_same_values_are_two_runs(tmp_path: Path) -> None:
    script = """\
import typer
from library import Given, export
app = typer.Typer()

@app.command()
def dense(out: str = "x"):
    export(Given(False))

@app.command()
def step(out: str = "x"):
    export(Given(True))

if __name__ == "__main__":
    app()
"""
    _, said = scanned(tmp_path, script, ["dense"], ["step"])
    assert said == {"r0": "eligible", "r1": "out by static-query"}


def test_a_refused_choice_is_not_the_accepted_run(tmp_path: Path) -> None:
    script = PARSER + 'args = parser.parse_args()\nexport(Given(args.mode == "fixed"))\n'
    _, said = scanned(tmp_path, script, [], ["--mode", "fre"])
    assert said["r0"] == "eligible"
    assert said["r1"] != "eligible"


CLASS = NativeClass("pathlib.Path")
ALIKE: list[tuple[Value, Value, bool]] = [
    (Const(1), Const(1), True),
    (Const(1), Const(True), False),
    (Const(1), Const(1.0), False),
    (Const("1"), Const(1), False),
    (Const("a"), Pattern("a"), False),
    (Const("a"), Const("a", flags=frozenset({"--a"})), False),
    (Seq("list", [Const(1)]), Seq("list", [Const(1)]), True),
    (Seq("list", [Const(1)]), Seq("tuple", [Const(1)]), False),
    (Unknown("why", "a"), Unknown("why", "b"), False),
    (Instance(CLASS, payload=Const("a")), Instance(CLASS, payload=Const("a")), True),
    (Instance(CLASS, payload=Const("a")), Instance(CLASS, payload=Const("b")), False),
]


@pytest.mark.parametrize(("a", "b", "alike"), ALIKE)
def test_values_that_behave_alike(a: Value, b: Value, alike: bool) -> None:
    assert describe(a) is not None
    assert (describe(a) == describe(b)) is alike


@pytest.mark.parametrize(
    "value",
    [Mapping(), Function("f", None, None, {}), Seq("list", [Mapping()]), Seq("list", [], Unknown("more"))],  # type: ignore[arg-type]
)
def test_what_a_run_could_change_or_tell_apart_is_not_compared(value: Value) -> None:
    assert describe(value) is None


CHOOSE = """\
import argparse
from library import Given, export

parser = argparse.ArgumentParser()
parser.add_argument("--mode", choices={choices}, required=True)
args = parser.parse_args()
{body}
"""
BODY = 'export(Given(args.mode == "m0"))'


def choose(count: int, body: str = BODY) -> str:
    return CHOOSE.format(choices=[f"m{n}" for n in range(count)], body=body)


def test_a_script_that_has_to_choose_is_run_for_each_choice_and_not_without(
    tmp_path: Path, finished: list[int]
) -> None:
    result, _ = scanned(tmp_path, choose(2))
    mine = [g for g in result.graphs if g.script == "export.py"]
    assert [(g.invocation.argv, judge(g.facts).says()) for g in mine] == [
        (("--mode", "m0"), "out by static-query"),
        (("--mode", "m1"), "eligible"),
    ]
    asked, *runs_ = finished
    assert len(runs_) == 2
    assert asked < min(runs_)


def test_more_choices_than_are_tried_are_one_run_that_takes_every_way(tmp_path: Path) -> None:
    result, _ = scanned(tmp_path, choose(17))
    assert [(g.invocation.argv, judge(g.facts).says()) for g in result.graphs if g.script == "export.py"] == [
        ((), "unresolved by unknown-query")
    ]


def test_a_recipe_that_does_not_choose_takes_every_way(tmp_path: Path) -> None:
    result, said = scanned(tmp_path, choose(2), [])
    assert said == {"r0": "unresolved by unknown-query"}
    mine = [g for g in result.graphs if g.script == "export.py" and not g.invocation.recipe]
    assert [g.invocation.argv for g in mine] == [("--mode", "m0"), ("--mode", "m1")]


def test_a_script_of_which_no_choice_exports_says_why(tmp_path: Path) -> None:
    result, _ = scanned(tmp_path, choose(2, 'if args.mode:\n    raise SystemExit("nothing")\n' + BODY))
    reasons = {f.path: f.reason for f in result.files}
    assert all(g.script != "export.py" for g in result.graphs)
    assert "SystemExit" in reasons["export.py"]
