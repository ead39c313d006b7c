"""Exporting functions with parameters that only functions of the same file give them, or the scripts of the tree."""

from __future__ import annotations

from pathlib import Path

import pytest

from rules.facts import FileStatus, Scan
from rules.verdict import judge
from tests.auditor.support import CORE_ML, file_of, indented, mutate, scan_text

MODEL, TAIL = CORE_ML.split("model = Model().eval()\n")
LOWER = MODEL + "def lower(model, width=None):\n" + indented(mutate(TAIL, ("(1, rows)", "(1, width or rows)")), 4)
OTHER = (
    "class Other(nn.Module):\n    def forward(self, x):\n        return x * 2\n\n\n"
    "def check(model, x):\n"
    "    return ct.convert(torch.jit.trace(model, x), inputs=[ct.TensorType(shape=x.shape)])\n\n\n"
)


def says(result: Scan) -> list[str]:
    return [str(judge(g.facts).says()) for g in result.graphs]


def scanned(root: Path, text: str) -> list[str]:
    return says(scan_text(root, {"export.py": text}))


@pytest.mark.parametrize(
    ("caller", "expected"),
    [
        ("def test_it():\n    lower(Model())\n", ["eligible"]),
        ("async def test_it():\n    return lower(Model().eval())\n", ["eligible"]),
        ("def test_it():\n    lower(Model(), width=1)\n", ["out by static-query"]),
        ("class Test:\n    def test_it(self):\n        lower(Model())\n", ["eligible"]),
        ("class Test:\n    @staticmethod\n    def one():\n        lower(Model(), 1)\n", ["out by static-query"]),
        (
            "def test_it():\n    lower(Model())\n\n\ndef test_one():\n    lower(Model(), 1)\n",
            ["eligible", "out by static-query"],
        ),
        ("def between(model):\n    lower(model)\n\n\ndef test_it():\n    between(Model())\n", ["eligible"]),
    ],
)
def test_an_exporting_function_is_called_with_what_its_callers_know(
    tmp_path: Path, caller: str, expected: list[str]
) -> None:
    assert sorted(scanned(tmp_path, LOWER + "\n\n" + caller)) == expected


def test_a_method_that_another_method_calls(tmp_path: Path) -> None:
    text = (
        MODEL
        + "class Converter:\n    def convert(self):\n        return self.lower(Model().eval())\n\n"
        + "    def lower(self, model):\n"
        + indented(TAIL)
    )
    assert scanned(tmp_path, text) == ["eligible"]


@pytest.mark.parametrize(
    "callers",
    [
        "def test_it(model):\n    lower(model)\n\n\ndef test_one(another):\n    lower(another)\n",  # they know no more
        "def test_it():\n    raise ValueError\n    lower(Model())\n",  # never comes to it
        "def test_it():\n    lower.later(Model())\n",  # not a call of it
        "def test_it():\n    self.lower(Model())\n",
        "def lower_all(models):\n    for model in models:\n        other(model)\n",
    ],
)
def test_one_that_nobody_is_seen_to_call_is_evaluated_by_itself(tmp_path: Path, callers: str) -> None:
    (graph,) = scan_text(tmp_path, {"export.py": LOWER + "\n\n" + callers}).graphs
    assert judge(graph.facts).verdict == "unresolved"
    assert "`model` of `lower`" in (graph.facts.logits.reason or "")


def test_one_whose_callers_are_not_all_followed_keeps_its_graph(tmp_path: Path) -> None:
    callers = "def test_it():\n    lower(Model())\n\n\ndef test_one():\n    raise ValueError\n    lower(Model(), 1)\n"
    found = scanned(tmp_path, LOWER + "\n\n" + callers)
    assert len(found) == 2
    assert "eligible" in found
    assert any(f.startswith("unresolved") for f in found)


def test_a_caller_that_knows_no_more_beside_one_that_does(tmp_path: Path) -> None:
    callers = "def test_it():\n    lower(Model())\n\n\ndef test_one(model):\n    lower(model, 1)\n"
    assert sorted(scanned(tmp_path, LOWER + "\n\n" + callers)) == ["eligible", "out by static-query"]
    text = LOWER + "\n\n" + callers.replace("model, 1", "model")
    graphs = scan_text(tmp_path / "unknown", {"export.py": text}).graphs
    assert sorted(str(judge(g.facts).verdict) for g in graphs) == ["eligible", "unresolved"]
    assert any("`model` of `test_one`" in (g.facts.logits.reason or "") for g in graphs)


def test_what_several_functions_export_is_said_once(tmp_path: Path) -> None:
    text = LOWER + "\n\nclass Part(nn.Module):\n    def forward(self, x):\n        return x\n\n\n"
    text += "def part(path):\n    ct.convert(torch.jit.trace(Part(), torch.zeros(1, 3)))\n\n\n"
    text += "def run(path, model):\n    part(path)\n    lower(model or Model())\n"
    assert len(scanned(tmp_path, text)) <= 3
    assert "out by not-a-decoder" in scanned(tmp_path, text)


def test_a_function_that_calls_itself(tmp_path: Path) -> None:
    text = mutate(LOWER, ("width=None):\n", "width=None, again=False):\n    if again:\n        lower(model)\n"))
    assert len(scanned(tmp_path, text)) == 1


def test_a_file_with_very_many_callers(tmp_path: Path) -> None:
    """Such a file tests a converter: its functions are not all evaluated."""
    callers = "".join(f"def test_{n}():\n    check(Other(), torch.zeros(1, {n + 2}))\n\n\n" for n in range(40))
    text = MODEL + OTHER
    assert len(scanned(tmp_path / "few", text + callers[: callers.index("def test_3")])) == 3
    assert len(scanned(tmp_path / "many", text + callers)) == 1


def test_a_function_that_several_scripts_call_has_no_graph_without_its_arguments(tmp_path: Path) -> None:
    calls = "from exporter import Model, lower\n\nlower(Model())\n"
    files = {"exporter.py": LOWER, "a.py": calls, "b.py": calls.replace("Model())", "Model(), 1)")}
    result = scan_text(tmp_path, files)
    assert [g.script for g in result.graphs] == ["a.py", "b.py"]
    assert says(result) == ["eligible", "out by static-query"]
    told = file_of(result, "exporter.py")
    assert (told.status, told.reason) == (FileStatus.NO_EXPORT, "it exports in the runs of a.py, b.py")
