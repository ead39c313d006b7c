"""A compiled model tells the same as the package that it was compiled from."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from packages import RECIPES

from probes.coreml import mil_text
from probes.coreml.compiled import _port
from probes.options import Mode, ProbeOptions
from probes.probe import probe
from probes.signature import Port

INSPECT = ProbeOptions(mode=Mode.INSPECT)


def without_name(report: dict[str, Any]) -> list[dict[str, Any]]:
    """The graphs of a report as text, whatever the bundle's suffix."""
    found: list[dict[str, Any]] = json.loads(json.dumps(report["graphs"]).replace(".mlmodelc", ".mlpackage"))
    return sorted(found, key=lambda graph: str(graph["name"]))


@pytest.mark.parametrize("name", [*RECIPES, "several", "int4", "palette"])
def test_the_same_graphs(package: Callable[[str], Path], tmp_path: Path, name: str) -> None:
    from compiled import compile_

    path = compile_(package(name), tmp_path / f"{name}.mlmodelc")
    ours, theirs = probe(path, INSPECT), probe(package(name), INSPECT)
    assert ours["status"] == "ok", ours["reasons"]
    assert without_name(ours) == without_name(theirs)
    for key in ("kind", "specification_version", "default_function", "precision", "operations", "provenance"):
        assert ours["files"]["model"][key] == theirs["files"]["model"][key], key


def test_without_the_program_rows_are_unknown(package: Callable[[str], Path], tmp_path: Path) -> None:
    from compiled import compile_

    path = compile_(package("dense"), tmp_path / "x.mlmodelc")
    (path / "model.mil").unlink()
    report = probe(path, INSPECT)
    (graph,) = report["graphs"]
    assert graph["facts"]["logits"]["value"] is None
    assert graph["judgement"]["verdict"] == "unresolved"
    assert any("model.mil is missing: rows of dynamic outputs, and which states" in note for note in report["notes"])
    (path / "model.mil").write_text("what is this")
    assert any("holds no function that can be read" in note for note in probe(path, INSPECT)["notes"])


def test_states_without_a_shape_get_the_programs(package: Callable[[str], Path], tmp_path: Path) -> None:
    from compiled import compile_

    path = compile_(package("dense"), tmp_path / "x.mlmodelc")
    rows = json.loads((path / "metadata.json").read_text())
    for state in rows[0]["stateSchema"]:
        del state["shape"], state["formattedType"]
    (path / "metadata.json").write_text(json.dumps(rows))
    (graph,) = probe(path, INSPECT)["graphs"]
    assert [state["shape"] for state in graph["signature"]["states"]] == [[2, 2, 96, 8]] * 2
    del rows[0]["stateSchema"]
    (path / "metadata.json").write_text(json.dumps(rows))
    assert len(probe(path, INSPECT)["graphs"][0]["signature"]["states"]) == 2


def test_a_compiled_neural_network(tmp_path: Path) -> None:
    row = {
        "modelType": {"name": "MLModelType_neuralNetwork"}, "specificationVersion": 4,
        "inputSchema": [{"name": "input_ids", "dataType": "Int32", "shape": "[1, 8]"}],
        "outputSchema": [{"name": "logits", "dataType": "Float32", "shape": "[1, 8, 50]"}],
    }  # fmt: skip
    (tmp_path / "x.mlmodelc").mkdir()
    (tmp_path / "x.mlmodelc" / "metadata.json").write_text(json.dumps([row]))
    report = probe(tmp_path / "x.mlmodelc", INSPECT)
    assert report["verdict"] == "refuted"
    assert any("the model is a neuralNetwork, not an ML Program" in note for note in report["notes"])


def test_a_compiled_model_cannot_be_evaluated(package: Callable[[str], Path], tmp_path: Path) -> None:
    from compiled import compile_

    path = compile_(package("dense"), tmp_path / "x.mlmodelc")
    report = probe(path, ProbeOptions(mode=Mode.ROWS, backend="reference", widths=(1, 2)))
    (graph,) = report["graphs"]
    assert report["verdict"] == "partial"
    assert all("a compiled model cannot be evaluated; give the .mlpackage" in gate["reason"] for gate in graph["gates"])


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ({"name": "x", "dataType": "Int32", "shape": "[1, 4]"}, Port("x", (1, 4), "int32")),
        (
            {"name": "x", "dataType": "Int32", "shape": "[1, 1]", "shapeRange": "[[1, 1], [1, 16]]"},
            Port("x", (1, -1), "int32", ((1, 1), (1, 16)), (), (1, 1)),
        ),
        (
            {"name": "x", "dataType": "Int32", "shape": "[1, 1]", "enumeratedShapes": "[[1, 1], [1, 4]]"},
            Port("x", (1, -1), "int32", (), ((1, 1), (1, 4)), (1, 1)),
        ),
        ({"name": "s", "formattedType": "State (Float16 1 × 2 × 64 × 16)"}, Port("s", (1, 2, 64, 16), "float16")),
        ({"name": "x", "dataType": "Int32", "shape": "[1, [", "shapeRange": "{}"}, Port("x", (), "int32")),
        ({"name": "x", "dataType": "Int32", "shape": [1, 4]}, Port("x", (1, 4), "int32")),
    ],
)
def test_rows_of_the_metadata(row: dict[str, Any], expected: Port) -> None:
    assert _port(row) == expected


def test_lines_of_the_program() -> None:
    text = """program(1.3)
{
    func decode<ios18>(tensor<int32, [1, ?]> ids, state<tensor<fp16, [1, 2, 64, 8]>> k_cache) [Flexible = t<x>((1))] {
            int32 axis = const()[name = string("axis"), val = int32(0)];
            tensor<fp16, [1, ?, 8]> a, tensor<fp16, [1, ?, 8]> b = split(axis = axis, x = ids)[name = string("split")];
            tensor<fp16, [1, ?, 16]> c = concat(axis = axis, values = (a, b))[name = string("concat")];
            tensor<fp16, [1]> d = cond(pred = c)[name = string("cond")] {
                tensor<fp16, [1]> inner = read_state(input = k_cache)[name = string("inner")];
            } -> (inner);
            write_state(data = c, input = k_cache)[name = string("write")];
        } -> (c, d);
}
"""
    found = mil_text.functions(text)
    assert list(found) == ["decode"]
    function = found["decode"]
    assert (function.inputs, function.results) == ((Port("ids", (1, -1), "int32"),), ("c", "d"))
    assert function.states == (Port("k_cache", (1, 2, 64, 8), "float16"),)
    assert [op.kind for op in function.operations] == ["const", "split", "concat", "cond", "read_state", "write_state"]
    assert function.operations[2].inputs == {"axis": ("axis",), "values": ("a", "b")}
    assert [port.shape for port in function.operations[1].outputs] == [(1, -1, 8)] * 2
    assert (function.writes()["k_cache"], function.reads()["k_cache"]) == (1, 1)
