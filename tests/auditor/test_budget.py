"""What a run that takes too long says of what it exported before, and of what it exports when it has ended early."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from auditor import run
from auditor.interpreter import MAX_RENEWALS, Interpreter
from rules.facts import Graph
from rules.verdict import judge
from tests.auditor.support import CORE_ML, EXPORTER, default_graphs, graph_of, mutate, scan_text

STEPS = 400
LONG = "x = 1\n" * 300
TOO_LONG = "x = 1\n" * 500
CONVERT = CORE_ML[CORE_ML.index("mlmodel = ct.convert(") :]
STATES = CORE_ML[CORE_ML.index("    states=[\n") : CORE_ML.index("mlmodel.save(")]
MADE_BEFORE = """\
states = []
for name in ("keyCache", "valueCache"):
    states.append(ct.StateType(ct.TensorType(shape=getattr(model, name).shape, dtype=np.float16), name=name))
"""


@pytest.fixture(autouse=True)
def _few_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "Interpreter", partial(Interpreter, max_steps=STEPS))


def _core_ml(root: Path, before: str, after: str = "") -> list[Graph]:
    script = mutate(CORE_ML, (STATES, "    states=states,\n)\n"), ("mlmodel = ct.", before + "mlmodel = ct."))
    return default_graphs(scan_text(root, {"export.py": script + after}))


def test_what_a_run_exports_within_its_budget_is_known(tmp_path: Path) -> None:
    (graph,) = _core_ml(tmp_path, LONG + MADE_BEFORE)
    assert judge(graph.facts).says() == "eligible"


def test_what_a_run_exports_that_has_ended_early_is_made_of_what_was_left_half_done(tmp_path: Path) -> None:
    """A loop that was not entered leaves an empty list of states, which is no fact of the graph."""
    graphs = _core_ml(tmp_path, TOO_LONG + MADE_BEFORE)
    assert [judge(g.facts).says() for g in graphs] == ["unresolved by unknown-kind"]
    assert graphs[0].facts.states.value is None
    assert "more than 400 steps of evaluation" in graphs[0].facts.states.reason


def test_each_export_call_has_the_whole_budget(tmp_path: Path) -> None:
    again = LONG + CONVERT.replace("out/model", "out/second")
    graphs = default_graphs(
        scan_text(tmp_path, {"export.py": CORE_ML.replace("mlmodel = ", LONG + "mlmodel = ") + again})
    )
    assert [(g.bundle, judge(g.facts).says()) for g in graphs] == [
        ("out/model.mlpackage", "eligible"),
        ("out/second.mlpackage", "eligible"),
    ]


def test_a_run_does_not_export_for_ever(tmp_path: Path) -> None:
    """The budget is given again a few times, then what is left of the run is not followed, and it says so."""
    again = "".join(LONG + CONVERT.replace("out/model", f"out/m{n}") for n in range(MAX_RENEWALS + 4))
    graphs = default_graphs(scan_text(tmp_path, {"export.py": CORE_ML + again}))
    says = [judge(g.facts).says() for g in graphs]
    assert says == ["eligible"] * (MAX_RENEWALS + 1) + ["unresolved by unknown-kind"] * len(says[MAX_RENEWALS + 1 :])
    assert says[-1] != "eligible"


def test_what_stands_behind_an_export_and_is_not_reached_is_no_silence(tmp_path: Path) -> None:
    """A loop is not entered any more, and what it would export has no call that is seen."""
    again = CONVERT.replace("out/model", "out/second").replace("\n", "\n    ")
    graphs = default_graphs(
        scan_text(tmp_path, {"export.py": CORE_ML + TOO_LONG + "for again in range(2):\n    " + again})
    )
    says = [(g.bundle, judge(g.facts).says()) for g in graphs]
    assert says == [("out/model.mlpackage", "eligible"), ("", "unresolved by unknown-kind")]


def test_so_for_core_ai(tmp_path: Path) -> None:
    script = mutate(EXPORTER, ("    converter = Torch", TOO_LONG.replace("x", "    x") + "    converter = Torch"))
    graph = graph_of(scan_text(tmp_path, {"export.py": script}))
    assert judge(graph.facts).says() == "unresolved by unknown-kind"
