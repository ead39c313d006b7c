"""Classes whose methods export, and that no script of the tree makes."""

from __future__ import annotations

from pathlib import Path

import pytest

from rules.verdict import judge
from tests.auditor.support import CORE_ML, file_of, graph_of, indented, mutate, scan_text

MODEL, TAIL = CORE_ML.split("model = Model().eval()\n")
BODY = indented(TAIL)
KNOWS = MODEL + "class Converter:\n    def convert(self):\n        model = Model().eval()\n" + BODY
ASKS = (
    MODEL
    + "class Converter:\n    def __init__(self, model, width=64):\n        self.model, self.width = model, width\n\n"
    + "    def convert(self):\n        model = self.model\n"
    + BODY.replace("RangeDim(1, 64)", "RangeDim(1, self.width)")
)


def test_a_class_that_knows_what_it_exports(tmp_path: Path) -> None:
    graph = graph_of(scan_text(tmp_path, {"export.py": KNOWS}))
    assert judge(graph.facts).verdict == "eligible"
    assert judge(graph_of(scan_text(tmp_path, {"export.py": mutate(KNOWS, ("(1, rows)", "(1, 1)"))})).facts).broken == (
        "static-query",
    )


def test_a_class_that_is_given_a_model(tmp_path: Path) -> None:
    """Nobody says which model: unresolved, by the parameter; what the class itself says is known."""
    graph = graph_of(scan_text(tmp_path, {"export.py": ASKS}))
    result = judge(graph.facts)
    assert result.verdict == "unresolved"
    assert "`model` of `__init__`" in result.reasons[0].message
    assert graph.facts.query.value is not None
    assert graph.facts.query.value.dynamic


def test_a_class_with_defaults_of_its_own(tmp_path: Path) -> None:
    script = mutate(
        ASKS,
        ("model, width=64", "model=None, width=1"),
        ("self.model, self.width = model", "self.model, self.width = model or Model()"),
    )
    script = script.replace("rows = ct.RangeDim(1, self.width)", "rows = self.width")
    assert judge(graph_of(scan_text(tmp_path, {"export.py": script})).facts).broken == ("static-query",)


@pytest.mark.parametrize(
    "edit",
    [
        ("    def convert(self):\n", "    @property\n    def convert(self):\n"),
        ("    def convert(self):\n", "    @staticmethod\n    def convert():\n"),
        ("    def convert(self):\n", "    async def convert(self):\n"),
    ],
)
def test_kinds_of_methods(tmp_path: Path, edit: tuple[str, str]) -> None:
    graphs = scan_text(tmp_path, {"export.py": mutate(KNOWS, edit)}).graphs
    assert {str(judge(g.facts).verdict) for g in graphs} <= {"eligible", "unresolved"}
    assert graphs


def test_a_class_that_cannot_be_made(tmp_path: Path) -> None:
    script = mutate(
        KNOWS,
        ("    def convert(self):\n", "    def __init__(self):\n        raise ValueError\n\n    def convert(self):\n"),
    )
    result = scan_text(tmp_path, {"export.py": script})
    assert not result.graphs
    assert file_of(result, "export.py").reason


def test_methods_without_an_export_are_not_evaluated(tmp_path: Path) -> None:
    script = KNOWS + "\n    def other(self):\n        raise SystemExit\n"
    assert judge(graph_of(scan_text(tmp_path, {"export.py": script})).facts).verdict == "eligible"


MIXIN = mutate(
    KNOWS,
    ("class Converter:\n", "class Mixin:\n    width = 1\n\n"),
    ("RangeDim(1, 64)", "RangeDim(1, self.width) if self.width > 1 else 1"),
)


@pytest.mark.parametrize(
    ("below", "says"),
    [
        ("class Wide(Mixin, unittest.TestCase):\n    width = 64\n", ["eligible"]),
        ("class Middle(Mixin):\n    width = 8\n\n\nclass Wide(Middle):\n    width = 64\n", ["eligible"]),
        (
            "class Step(Mixin):\n    pass\n\n\nclass Wide(Mixin):\n    width = 64\n",
            ["eligible", "out by static-query"],
        ),
        ("class Other(unittest.TestCase):\n    width = 64\n", ["out by static-query"]),
    ],
)
def test_a_mixin_exports_as_the_classes_that_have_it(tmp_path: Path, below: str, says: list[str]) -> None:
    result = scan_text(tmp_path, {"export.py": f"import unittest\n{MIXIN}\n\n{below}"})
    assert sorted(judge(g.facts).says() for g in result.graphs) == says
