"""An option that chooses the class of the model: whatever the spelling, the option decides."""

from __future__ import annotations

from pathlib import Path

import pytest

from rules.facts import InvocationKind
from rules.fixes import judge_graph
from tests.auditor.support import EXPORTER, mutate, scan_text

DECODE = """

class Step(Model):
    rows = 1


"""
CALL = """\
if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--static", action="store_true")
    args = parser.parse_args()
    export(args)
"""
BASE = mutate(
    EXPORTER.split(CALL)[0],
    ("def export(args):\n    model = Model().eval()\n", "def export(model):\n    model = model.eval()\n"),
    ("class Model(nn.Module):\n", "class Model(nn.Module):\n    rows = 8\n\n"),
    ("tokens = 1 if args.static else 8", "tokens = model.rows"),
    ("None if args.static else {1:", "None if tokens == 1 else {1:"),
    ("\n\ndef export", DECODE + "def export"),
)
PARSED = """
parser = argparse.ArgumentParser()
parser.add_argument("--static", action="store_true")
args = parser.parse_args()
"""


@pytest.mark.parametrize(
    "call",
    [
        "export(Step() if args.static else Model())",
        "export((Step if args.static else Model)())",
        "if args.static:\n    cls = Step\nelse:\n    cls = Model\nexport(cls())",
        "export({True: Step, False: Model}[args.static]())",
        "KINDS = {(True, 'x'): Step, (False, 'x'): Model}\nexport(KINDS[args.static, 'x']())",
        "ROWS = {True: 1, False: 8}\nmodel = Model()\nmodel.rows = ROWS[args.static]\nexport(model)",
    ],
)
def test_a_switch(tmp_path: Path, call: str) -> None:
    result = scan_text(tmp_path, {"export.py": f"{BASE}{PARSED}{call}\n"})
    default, other = [judge_graph(g) for g in result.graphs]
    assert default.judgement.says() == "eligible"
    assert (other.graph.invocation.kind, other.graph.invocation.argv) == (InvocationKind.VARIANT, ("--static",))
    assert other.judgement.says() == "out by static-query"
    assert other.fix == "drop `--static`"
    assert "`--static` decides it" in (other.judgement.primary.message if other.judgement.primary else "")


def test_a_switch_that_chooses_nothing_of_the_graph(tmp_path: Path) -> None:
    """The same class either way, and a name: no variant, and no option that is said to decide."""
    call = 'name = {True: "a", False: "b"}[args.static]\nprint(name)\nexport((Step if args.static else Step)())\n'
    (graph,) = scan_text(tmp_path, {"export.py": BASE + PARSED + call}).graphs
    judged = judge_graph(graph)
    assert judged.judgement.says() == "out by static-query"
    assert "no flag decides it" in (judged.judgement.primary.message if judged.judgement.primary else "")


CONSTANT = """
parser = argparse.ArgumentParser()
parser.add_argument("--one", dest="rows", action="store_const", const=1, default=8)
model = Model()
model.rows = parser.parse_args().rows
export(model)
"""
MODES = """
import enum
import os
import fire


class Mode(enum.Enum):
    one = 1
    many = 8


def main(static=False):
    model = Model()
    model.rows = MODE.value
    export(model)


fire.Fire(main)
"""


def said(root: Path, text: str) -> list[tuple[tuple[str, ...], str]]:
    graphs = scan_text(root, {"export.py": BASE + text}).graphs
    return [(g.invocation.argv, judge_graph(g).judgement.says()) for g in graphs]


def test_an_option_that_stores_a_constant(tmp_path: Path) -> None:
    assert said(tmp_path, CONSTANT) == [((), "eligible"), (("--one",), "out by static-query")]
    same = CONSTANT.replace("const=1", "const=8")
    assert said(tmp_path / "same", same) == [((), "eligible")]


@pytest.mark.parametrize(
    "mode",
    [
        "(Mode.one if static else Mode.many)",
        'Mode["one" if static else "many"]',
        "Mode(1 if static else 8)",
        "{True: Mode.one, False: Mode.many}[static]",
    ],
)
def test_a_member_of_an_enumeration(tmp_path: Path, mode: str) -> None:
    found = said(tmp_path, MODES.replace("MODE.", f"{mode}."))
    assert found == [((), "eligible"), (("--static",), "out by static-query")]


def test_a_member_that_nobody_knows(tmp_path: Path) -> None:
    found = said(tmp_path, MODES.replace("MODE.", 'Mode[os.environ["MODE"]].'))
    assert [(argv, says.split()[0]) for argv, says in found] == [((), "unresolved")]
    assert said(tmp_path / "list", MODES.replace("MODE.value", "8 if list[int] else 1")) == [((), "eligible")]


def test_a_member_that_there_is_not(tmp_path: Path) -> None:
    """`Mode["none"]` raises: what comes of it is not known."""
    found = said(tmp_path, MODES.replace("MODE.value", 'Mode["none"].value'))
    assert [says.split()[0] for _, says in found] == ["unresolved"]
