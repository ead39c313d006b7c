"""Jupyter notebooks: read like scripts, and cited by the lines of the notebook's file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from auditor import notebooks
from auditor.trees import Unreadable
from rules.facts import FileStatus
from rules.verdict import judge
from tests.auditor.support import CORE_ML, file_of, graph_of, line_of, mutate, scan_text

MODEL, TAIL = CORE_ML.split("model = Model().eval()\n")


def code(text: str, **more: Any) -> dict[str, Any]:
    """A cell as Jupyter stores it."""
    lines = text.splitlines(keepends=True)
    return {"cell_type": "code", "execution_count": 1, "metadata": {}, "outputs": [], "source": lines} | more


def notebook(*cells: dict[str, Any], indent: int | None = 1) -> str:
    return json.dumps({"cells": list(cells), "metadata": {}, "nbformat": 4, "nbformat_minor": 5}, indent=indent) + "\n"


TEXT = {"cell_type": "markdown", "metadata": {}, "source": ["# Export\n", "model = Model().eval()\n"]}
TOLD = {"name": "stdout", "output_type": "stream", "text": ["model = Model().eval()\n"]}
CELLS = (TEXT, code("%pip install coremltools\n!ls\n" + MODEL), code("model = Model().eval()\n" + TAIL, outputs=[TOLD]))


def test_a_notebook_is_a_script(tmp_path: Path) -> None:
    graph = graph_of(scan_text(tmp_path, {"export.ipynb": notebook(*CELLS)}), "export.ipynb")
    assert judge(graph.facts).says() == "eligible"
    assert graph.bundle == "out/model.mlpackage"


def test_lines_are_those_of_the_file(tmp_path: Path) -> None:
    raw = notebook(CELLS[0], CELLS[1], code("model = Model().eval()\n" + mutate(TAIL, ("(1, rows)", "(1, 1)"))))
    graph = graph_of(scan_text(tmp_path, {"export.ipynb": raw}), "export.ipynb")
    (reason,) = judge(graph.facts).reasons
    assert reason.rule == "static-query"
    assert graph.line == line_of(raw, "mlmodel = ct.convert(")
    assert line_of(raw, "ids_shape = (1, 1)") in {place.line for place in reason.evidence}


@pytest.mark.parametrize(
    ("cell", "python"),
    [
        ("%matplotlib inline\nx = 1\n", ["", "x = 1"]),
        ("if x:\n    !ls\n    y = 2\n", ["if x:", "", "    y = 2"]),
        ("files = !ls\n", ["files = None"]),
        ("model?\n", [""]),
        ('print("%d"\n      % x)\n', ['print("%d"', "      % x)"]),
        ("x = a if b else c\ny = 7 % 2\nz = x != y\n", ["x = a if b else c", "y = 7 % 2", "z = x != y"]),
        ("%%bash\nrm -r out\n", ["", ""]),
        ("%%time\nx = 1\n", ["", "x = 1"]),
    ],
)
def test_what_is_for_ipython_is_no_python(cell: str, python: list[str]) -> None:
    text = notebooks.code_of(notebook(code(cell)), "n").split("\n")
    assert [line for line in text if line] == [line for line in python if line]
    raw = notebook(code(cell)).split("\n")
    start = next(n for n, line in enumerate(raw) if '"source"' in line) + 1
    assert text[start : start + len(python)] == python


def test_cells_of_one_line_and_of_none() -> None:
    one = code("", source="x = 1")
    assert [line for line in notebooks.code_of(notebook(one, code(""), code("y = 2\n")), "n").split("\n") if line] == [
        "x = 1",
        "y = 2",
    ]


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        ("x = 1\n", "no JSON"),
        ("[1]", "format 4"),
        ('{"worksheets": []}', "format 4"),
        (notebook(code("import coremltools\nx = 1\n"), indent=None), "line by line"),
        (notebook(code("", source="import coremltools\nx = 1\n")), "line by line"),
    ],
)
def test_what_cannot_be_read_is_said(tmp_path: Path, raw: str, reason: str) -> None:
    with pytest.raises(Unreadable, match=reason):
        notebooks.code_of(raw, "n.ipynb")
    file = file_of(scan_text(tmp_path, {"n.ipynb": raw}), "n.ipynb")
    assert file.status is FileStatus.ERROR
    assert reason in file.reason
    assert "n.ipynb" not in file.reason


def test_a_compressed_notebook_about_something_else_is_no_error(tmp_path: Path) -> None:
    raw = notebook(code("x = 1\ny = 2\n"), indent=None)
    assert file_of(scan_text(tmp_path, {"n.ipynb": raw}), "n.ipynb").status is FileStatus.NO_EXPORT


def test_a_notebook_uses_the_modules_beside_it(tmp_path: Path) -> None:
    cell = code("from decoder import *\nmodel = Model().eval()\n" + TAIL)
    result = scan_text(tmp_path, {"export.ipynb": notebook(cell), "decoder.py": MODEL})
    assert judge(graph_of(result, "export.ipynb").facts).says() == "eligible"


def test_a_name_in_the_notebook_that_is_shown_by_json(tmp_path: Path) -> None:
    """Characters that JSON escapes stand on the same line."""
    cell = code('print("über \\t \\"all\\"")\n' + MODEL + "model = Model().eval()\n" + TAIL)
    graph = graph_of(scan_text(tmp_path, {"export.ipynb": notebook(cell)}), "export.ipynb")
    assert judge(graph.facts).says() == "eligible"
