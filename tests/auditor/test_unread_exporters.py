"""Functions of a library without source that are given a graph's dynamic shapes and names."""

from __future__ import annotations

from pathlib import Path

import pytest

from rules.facts import Fact, InvocationKind, Logits, Role
from rules.verdict import Verdict, judge
from tests.auditor.support import EXPORTER, default_graphs, graph_of, line_of, mutate, scan_text

BY_NAMES = """\
    program = export_to_coreai_with_kernels(
        model, inputs, kernels=[], dynamic_shapes=dynamic,
        input_names=("input_ids", "position_ids"), output_names=("logits",), state_names=STATES,
    )
    program.save_asset("out/model.aimodel")
"""
START = EXPORTER.index("    program = torch.export.export")
END = EXPORTER.index("\n\nif __name__")


def script(call: str = BY_NAMES, name: str = "export_to_coreai_with_kernels") -> str:
    text = EXPORTER[:START] + call.replace("export_to_coreai_with_kernels", name) + EXPORTER[END:]
    return text.replace("from coreai_torch import TorchConverter", f"from acme.export_to_coreai import {name}")


def test_what_such_a_call_says_of_its_graph_is_known_and_the_logits_never(tmp_path: Path) -> None:
    result = scan_text(tmp_path, {"export.py": script()})
    graph = graph_of(result)
    assert graph.bundle == "out/model.aimodel"
    assert [s.role for s in graph.facts.states.value or ()] == [Role.KV_KEY, Role.KV_VALUE]
    assert graph.facts.query.value is not None
    assert graph.facts.query.value.dynamic
    reason = (
        "the import of `acme` could not be resolved (`acme.export_to_coreai.export_to_coreai_with_kernels` is "
        "needed): give its source with --library"
    )
    assert graph.facts.logits.value is None
    assert graph.facts.logits.reason == reason
    assert judge(graph.facts).verdict is Verdict.UNRESOLVED
    (static,) = [g for g in result.graphs if g.invocation.kind is InvocationKind.VARIANT]
    assert judge(static.facts).says() == "out by static-query"


@pytest.mark.parametrize(
    ("edits", "verdict"),
    [
        ([("inputs, kernels", "reference_inputs=inputs, kernels")], "unresolved"),
        ([("inputs, kernels", "args=tuple(inputs.values()), kernels")], "unresolved"),
        ([("inputs, kernels", "tuple(inputs.values()), kernels")], "unresolved"),
        ([("state_names=STATES", 'state_names=["keyCache", "conv_state"]')], "out by hybrid-state"),
        ([('("logits",)', '("hidden_states",)')], "out by no-logits"),
        ([("dynamic_shapes=dynamic", 'dynamic_shapes={**dynamic, "input_ids": None}')], "unresolved"),  # 8 rows
        ([("dynamic_shapes=dynamic", "dynamic_shapes=load_shapes()")], "unresolved"),
    ],
)
def test_what_the_arguments_say(tmp_path: Path, edits: list[tuple[str, str]], verdict: str) -> None:
    graph = graph_of(scan_text(tmp_path, {"export.py": script(mutate(BY_NAMES, *edits))}))
    judgement = judge(graph.facts)
    assert (judgement.says() if verdict != "unresolved" else judgement.verdict.value) == verdict


def test_a_query_of_one_fixed_row_is_out_where_nothing_else_is_known(tmp_path: Path) -> None:
    text = mutate(
        script(mutate(BY_NAMES, ("state_names=STATES", "state_names=acme.NAMES"))),
        ("import torch\n", "import torch\nimport acme\n"),
        ("tokens = 1 if args.static else 8", "tokens = 1"),
        ("None if args.static else {1: Dim(", "None if True else {1: Dim("),
    )
    graph = graph_of(scan_text(tmp_path, {"export.py": text}))
    assert graph.facts.states.value is None
    judgement = judge(graph.facts)
    assert judgement.says() == "out by static-query"
    assert judgement.primary is not None
    assert line_of(text, "tokens = 1") in {p.line for p in judgement.primary.evidence}


@pytest.mark.parametrize(
    ("name", "edits"),
    [
        ("check_shapes_of_a_graph", []),  # it does not say that it exports
        ("export_to_onnx", []),  # nothing of Apple's
        ("convert_for_litert", []),
        ("quantize", [("input_names", "names"), ("output_names", "outputs"), ("state_names", "states")]),
        ("export_to_coreai_with_kernels", [("dynamic_shapes=dynamic", "dynamic")]),
        (
            "export_to_coreai_with_kernels",
            [("input_names", "names"), ("output_names", "outputs"), ("state_names", "states")],
        ),
    ],
)
def test_other_functions_that_nobody_can_read(tmp_path: Path, name: str, edits: list[tuple[str, str]]) -> None:
    result = scan_text(tmp_path, {"export.py": script(mutate(BY_NAMES, *edits), name)})
    for graph in default_graphs(result):
        assert graph.graph == "*"
        assert graph.facts.query.value is None


def test_the_module_is_not_known_behind_such_a_call(tmp_path: Path) -> None:
    """It may have been changed: a converter that the script calls itself then has another one."""
    text = script(BY_NAMES + EXPORTER[START:END]).replace(
        "import torch\n", "import torch\nfrom coreai_torch import TorchConverter\n", 1
    )
    graphs = default_graphs(scan_text(tmp_path, {"export.py": text}))
    assert len(graphs) == 2
    assert all(g.facts.logits.value is None for g in graphs)
    assert all(judge(g.facts).verdict is Verdict.UNRESOLVED for g in graphs)


def test_a_call_that_gives_several_things(tmp_path: Path) -> None:
    call = mutate(BY_NAMES, ("program = export", "program, report = export"))
    graph = graph_of(scan_text(tmp_path, {"export.py": script(call)}))
    assert judge(graph.facts).verdict is Verdict.UNRESOLVED
    assert graph.facts.logits == Fact[Logits].unknown(graph.facts.logits.reason, *graph.facts.logits.evidence)
