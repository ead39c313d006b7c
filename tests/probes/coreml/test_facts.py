"""Each fixture gets the facts and the verdict that are true of it, from its protobuf alone."""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from probes.options import Mode, ProbeOptions
from probes.probe import probe

SCHEMA = json.loads(files("reports").joinpath("schemas/probe-1.schema.json").read_text())
INSPECT = ProbeOptions(mode=Mode.INSPECT)

# name: (query, logits, kv, judgement, primary reason, advice)
FACTS: dict[str, tuple[str, str | None, str, str, str, set[str]]] = {
    "dense": ("dynamic", "all", "state", "eligible", "", set()),
    "position": ("dynamic", "all", "state", "eligible", "", {"mixed-flexibility"}),
    "one_a_row": ("dynamic", "all", "state", "eligible", "", set()),
    "both": ("dynamic", "all", "state", "eligible", "", {"mixed-flexibility"}),
    "unified": ("dynamic", "all", "state", "eligible", "", set()),
    "int8": ("dynamic", "all", "state", "eligible", "", set()),
    "int4": ("dynamic", "all", "state", "eligible", "", set()),
    "palette": ("dynamic", "all", "state", "eligible", "", set()),
    "pruned": ("dynamic", "all", "state", "eligible", "", set()),
    "unwritten": ("dynamic", "all", "state", "eligible", "", {"unwritten-state"}),
    "wrong_mask": ("dynamic", "all", "state", "eligible", "", set()),
    "enumerated": (
        "enumerated:[1,2,4,8]",
        "all",
        "state",
        "unresolved",
        "fixed-window",
        {"index-aligned-enumerations", "second-bundle"},
    ),
    "mixed": (
        "enumerated:[1,2,4]",
        "all",
        "state",
        "unresolved",
        "fixed-window",
        {"mixed-flexibility", "second-bundle"},
    ),
    "window16": ("static:16", "all", "state", "unresolved", "fixed-window", {"mixed-flexibility", "second-bundle"}),
    "static": ("static:1", None, "state", "out", "static-query", {"mixed-flexibility", "second-bundle"}),
    "last_token": ("dynamic", "last", "state", "out", "last-token-only", {"second-bundle"}),
    # Rows picked by computed bounds: the shapes say dynamic, and there may be one.
    "computed": ("dynamic", None, "state", "unresolved", "unknown-logits", set()),
    "computed_all": ("dynamic", None, "state", "unresolved", "unknown-logits", set()),
    "token_out": ("dynamic", "none", "state", "out", "no-logits", set()),
    "hidden_out": ("dynamic", "none", "state", "out", "no-logits", set()),
    "hybrid": ("dynamic", "all", "state", "out", "hybrid-state", {"hybrid-cap"}),
    "kv_io": ("dynamic", "all", "io", "out", "kv-as-io", {"second-bundle"}),
    "stateless": ("dynamic", "all", "none", "out", "not-a-decoder", set()),
    "baked": ("dynamic", None, "state", "out", "baked-length", set()),
}


def inspected(path: Path) -> dict[str, Any]:
    report = probe(path, INSPECT)
    jsonschema.validate(report, SCHEMA)
    assert report["status"] == "ok", report["reasons"]
    return report


@pytest.mark.parametrize("name", FACTS)
def test_facts_and_verdict(package: Callable[[str], Path], name: str) -> None:
    (graph,) = inspected(package(name))["graphs"]
    facts, judgement = graph["facts"], graph["judgement"]
    found = (
        facts["query"]["value"],
        facts["logits"]["value"],
        facts["kv"]["value"],
        judgement["verdict"],
        judgement["reasons"][0]["rule"] if judgement["reasons"] else "",
        {item["rule"] for item in judgement["advice"]},
    )
    assert found == FACTS[name]
    assert graph["verdict"] == ("refuted" if judgement["verdict"] == "out" else "partial")


@pytest.mark.parametrize(
    ("name", "roles"),
    [
        ("dense", {"k_cache": "kv-key", "v_cache": "kv-value"}),
        ("unified", {"kv_cache": "kv-unified"}),
        (
            "hybrid",
            {"k_cache": "kv-key", "v_cache": "kv-value", "conv_state": "conv", "ssm_state": "recurrent"},
        ),
        ("stateless", {}),
    ],
)
def test_states(package: Callable[[str], Path], name: str, roles: dict[str, str]) -> None:
    (graph,) = inspected(package(name))["graphs"]
    assert {state["name"]: state["role"] for state in graph["facts"]["states"]} == roles


def test_ranges_defaults_and_rows_are_in_the_signature(package: Callable[[str], Path]) -> None:
    signature = inspected(package("dense"))["graphs"][0]["signature"]
    ids, mask = signature["inputs"]
    assert ids == {
        "name": "input_ids", "shape": [1, -1], "dtype": "int32", "bounds": [[1, 1], [1, 16]], "default": [1, 1],
    }  # fmt: skip
    assert mask["bounds"][2:] == [[1, 16], [1, 96]]
    # The description leaves the shape of a dynamic output out; the program has it.
    assert signature["outputs"] == [{"name": "logits", "shape": [1, -1, 96], "dtype": "float16"}]


def test_enumerations_are_tuples_by_index(package: Callable[[str], Path]) -> None:
    (graph,) = inspected(package("enumerated"))["graphs"]
    assert graph["signature"]["inputs"][0]["shapes"] == [[1, 1], [1, 2], [1, 4], [1, 8]]
    (advice,) = [one for one in graph["judgement"]["advice"] if one["rule"] == "index-aligned-enumerations"]
    assert "input_ids with causal_mask: [1, 1] with [1, 1, 1, 96]; [1, 2] with [1, 1, 2, 96];" in advice["message"]


def test_a_baked_length_names_the_operation(package: Callable[[str], Path]) -> None:
    (graph,) = inspected(package("baked"))["graphs"]
    message = graph["judgement"]["reasons"][0]["message"]
    assert message.endswith("5 rows whatever S is, for reshape `split_q0` gives [1, 5, 4, 8]")


def test_an_unwritten_state_is_named(package: Callable[[str], Path]) -> None:
    (graph,) = inspected(package("unwritten"))["graphs"]
    (advice,) = graph["judgement"]["advice"]
    assert advice["message"].endswith("(v_cache is read only)")


def test_what_the_file_says_of_itself(package: Callable[[str], Path]) -> None:
    about = inspected(package("dense"))["files"]["model"]
    assert (about["kind"], about["specification_version"], about["opset"]) == ("mlProgram", 9, ["CoreML8"])
    assert (about["precision"], about["compression"]) == (["float16"], {})
    assert about["provenance"]["source"] == "milinternal"
    assert about["provenance"]["version"].startswith("9.")
    quantised = inspected(package("int4"))["files"]["model"]
    assert list(quantised["compression"]) == ["constexpr_blockwise_shift_scale"]
    assert inspected(package("palette"))["files"]["model"]["compression"]


def test_the_vocabulary_is_that_of_the_table(package: Callable[[str], Path]) -> None:
    assert inspected(package("dense"))["files"]["vocab"] == 96


def test_functions_are_judged_apart(package: Callable[[str], Path]) -> None:
    report = inspected(package("several"))
    assert {graph["name"]: graph["facts"]["query"]["value"] for graph in report["graphs"]} == {
        "decode": "static:1",
        "prefill": "static:16",
    }
    assert report["files"]["model"]["default_function"] == "decode"
    assert (report["decode_graph"], report["verdict"]) == ("prefill", "partial")


def _spec(path: Path, change: Callable[[Any], None]) -> Path:
    from probes.coreml.proto import model_class

    spec = model_class()()
    change(spec)
    path.write_bytes(spec.SerializeToString())
    return path


def _array(feature: Any, name: str, *shape: int, dtype: int = 65568) -> None:
    feature.name = name
    feature.type.multiArrayType.shape.extend(shape)
    feature.type.multiArrayType.dataType = dtype


def test_a_neural_network_is_said_to_be_one(tmp_path: Path) -> None:
    def network(spec: Any) -> None:
        spec.specificationVersion = 4
        _array(spec.description.input.add(), "input_ids", 1, 8, dtype=131104)
        _array(spec.description.output.add(), "logits", 1, 8, 50)
        spec.neuralNetwork.layers.add().name = "dense"

    report = inspected(_spec(tmp_path / "old.mlmodel", network))
    assert any(note.startswith("the model is a neuralNetwork, not an ML Program") for note in report["notes"])
    assert report["verdict"] == "refuted"
    assert report["graphs"][0]["judgement"]["reasons"][0]["rule"] == "not-a-decoder"


def test_a_pipeline_is_judged_by_its_ports_and_never_eligible(tmp_path: Path) -> None:
    def pipeline(spec: Any) -> None:
        spec.specificationVersion = 9
        ids = spec.description.input.add()
        _array(ids, "input_ids", 1, 1, dtype=131104)
        for low, high in ((1, 1), (1, 16)):
            bound = ids.type.multiArrayType.shapeRange.sizeRanges.add()
            bound.lowerBound, bound.upperBound = low, high
        _array(spec.description.output.add(), "logits")
        state = spec.description.state.add()
        state.name = "k_cache"
        state.type.stateType.arrayType.shape.extend((1, 2, 64, 8))
        state.type.stateType.arrayType.dataType = 65552
        for name in ("body", "head"):
            spec.pipeline.names.append(name)
            spec.pipeline.models.add().mlProgram.version = 1

    report = inspected(_spec(tmp_path / "chain.mlmodel", pipeline))
    said = "the model is a pipeline of 2 models, judged by its outer ports alone: body (mlProgram), head (mlProgram)"
    assert said in report["notes"]
    assert report["graphs"][0]["judgement"]["verdict"] == "unresolved"


def test_outputs_without_a_name_are_known_by_the_vocabulary() -> None:
    from probes.coreml import marks
    from probes.coreml.program import Function, Operation
    from probes.signature import Port, Signature

    ids, table = Port("input_ids", (1, -1), "int32"), Port("table", (50, 8), "float16")
    hidden, out = Port("x", (1, -1, 8), "float16"), Port("linear_3", (1, -1, 50), "float16")
    operations = (
        Operation("const", {}, (table,)),
        Operation("gather", {"x": ("table",), "indices": ("input_ids",)}, (hidden,)),
        Operation("linear", {"x": ("x",)}, (out,)),
    )
    function = Function("main", "CoreML8", (ids,), operations, ("linear_3",))
    assert marks.seen(Signature("main", (ids,), (), (out,)), function)["vocab"] == 50


def test_a_state_that_is_written_and_never_read() -> None:
    from probes.coreml import marks
    from probes.coreml.program import Function, Operation
    from probes.signature import Port, Signature

    state = Port("k_cache", (1, 2, 64, 8), "float16")
    write = Operation("write_state", {"input": ("k_cache",), "data": ("x",)}, ())
    function = Function("main", "CoreML8", (), (write,), (), (state,))
    found = marks.seen(Signature("main", (), (state,), ()), function)
    assert (found["marks"], found["notes"]) == ([], ["state k_cache is written and never read"])
