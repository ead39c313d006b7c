"""A file that only defines an exporter, and the scripts that call it: whose graph is it?"""

from __future__ import annotations

from pathlib import Path

import pytest

from reports.wording import command, summary
from rules.audit import audit
from rules.facts import FileStatus, InvocationKind, Scan
from rules.fixes import judge_graph
from rules.models import models
from rules.verdict import judge
from tests.auditor.support import CORE_ML, EXPORTER, default_graphs, file_of, indented, line_of, mutate, scan_text

MODEL, TAIL = CORE_ML.split("model = Model().eval()\n")
CLASS = (
    MODEL
    + "class Converter:\n    def __init__(self, model):\n        self.model = model\n\n"
    + "    def convert(self, path):\n        model = self.model\n"
    + indented(TAIL.replace("out/model.mlpackage", "PATH"))
).replace('"PATH"', "path")
SCRIPT = """\
import argparse
from source.converter import Converter, Model

if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--output", default="out/model.mlpackage")
    Converter(Model().eval()).convert(parser.parse_args().output)
"""
FUNCTION = mutate(
    EXPORTER,
    ('if __name__ == "__main__":\n', "def main():\n"),
    ("import argparse\n", "import argparse\n\n\ndef untouched():\n    return None\n\n"),
)
CALLS = "from exporter import main\n\nmain()\n"


def test_the_graph_of_one_script_is_the_exporters_as_well(tmp_path: Path) -> None:
    result = scan_text(tmp_path, {"source/converter.py": CLASS, "scripts/convert.py": SCRIPT})
    (run,) = default_graphs(result, "scripts/convert.py")
    (home,) = default_graphs(result, "source/converter.py")
    assert judge(run.facts).verdict == judge(home.facts).verdict == "eligible"
    assert (run.by, home.by) == ("", "scripts/convert.py")
    assert home.line == line_of(CLASS, "mlmodel = ct.convert(")
    assert home.id != run.id
    assert command(home) == command(run) == "scripts/convert.py"
    assert file_of(result, "source/converter.py").status is FileStatus.EXPORTS


def test_it_is_one_model_and_counted_once(tmp_path: Path) -> None:
    result = scan_text(tmp_path, {"source/converter.py": CLASS, "scripts/convert.py": SCRIPT})
    assert [m.id for m in models([judge_graph(g) for g in result.graphs])] == ["scripts/convert.py"]
    assert summary(audit(result)) == "2 files, 1 graph, 1 model: 1 eligible, 0 out, 0 unresolved"


def test_variants_are_listed_too(tmp_path: Path) -> None:
    result = scan_text(tmp_path, {"exporter.py": FUNCTION, "run.py": CALLS})
    home = [g for g in result.graphs if g.script == "exporter.py"]
    assert [(g.invocation.kind, g.invocation.argv, judge(g.facts).verdict) for g in home] == [
        (InvocationKind.DEFAULT, (), "eligible"),
        (InvocationKind.VARIANT, ("--static",), "out"),
    ]
    assert {g.by for g in home} == {"run.py"}


def test_of_several_scripts_each_has_its_own(tmp_path: Path) -> None:
    """Whose arguments would the exporter's be? The file says who calls it."""
    files = {"exporter.py": mutate(CLASS, ("def convert(", "def convert(")), "a.py": SCRIPT, "b.py": SCRIPT}
    files = {n: t.replace("source.converter", "exporter") for n, t in files.items()}
    result = scan_text(tmp_path, files)
    assert [g.script for g in result.graphs] == ["a.py", "b.py"]
    told = file_of(result, "exporter.py")
    assert (told.status, told.reason) == (FileStatus.NO_EXPORT, "it exports in the runs of a.py, b.py")


def _exporter_graphs(result: Scan) -> list[tuple[str, str]]:
    return [(g.by, str(judge(g.facts).verdict)) for g in result.graphs if g.script == "exporter.py"]


def test_what_nobody_calls_is_evaluated_all_the_same(tmp_path: Path) -> None:
    other = "\n\ndef other(model, inputs):\n    TorchConverter().add_exported_program(model, state_names=inputs)\n"
    result = scan_text(tmp_path, {"exporter.py": FUNCTION + other, "run.py": CALLS})
    assert ("", "unresolved") in _exporter_graphs(result)
    assert ("run.py", "eligible") in _exporter_graphs(result)


def test_a_called_exporter_is_not_evaluated_without_its_arguments(tmp_path: Path) -> None:
    """`export(args)` with unknown arguments would be an unresolved graph beside the known ones."""
    result = scan_text(tmp_path, {"exporter.py": FUNCTION, "run.py": CALLS})
    assert {by for by, _ in _exporter_graphs(result)} == {"run.py"}


@pytest.mark.parametrize("line", ['if __name__ == "__main__":\n    main()\n', "main()\n"])
def test_a_file_that_runs_by_itself_has_its_own_graphs(tmp_path: Path, line: str) -> None:
    result = scan_text(tmp_path, {"exporter.py": FUNCTION + "\n\n" + line, "run.py": CALLS})
    assert {g.by for g in result.graphs} == {""}
    assert {g.script for g in result.graphs} == {"exporter.py", "run.py"}


def test_a_recipe_keeps_its_graphs(tmp_path: Path) -> None:
    recipe = '[small]\nscript = "run.py"\nargs = ["--static"]\nbundle = "model"\n'
    result = scan_text(tmp_path, {"exporter.py": FUNCTION, "run.py": CALLS, "recipe.toml": recipe})
    assert all(g.by == "" for g in result.graphs if g.invocation.recipe)
    assert [m.id for m in audit(result).models] == ["recipe.toml#small"]
