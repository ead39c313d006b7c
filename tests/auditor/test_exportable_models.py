"""Models that transformers makes ready for `torch.export`, with its own static cache."""

from __future__ import annotations

from pathlib import Path

import pytest

from rules.facts import Kind, Role
from rules.verdict import Verdict, judge
from tests.auditor.support import graph_of, mutate, scan_text

CORE_ML = """\
import coremltools as ct
import torch
from transformers import AutoModelForCausalLM
from transformers.integrations.executorch import (
    TorchExportableModuleForDecoderOnlyLM as Flexible,
    TorchExportableModuleWithStaticCache as Static,
    convert_and_export_with_cache,
)

model = AutoModelForCausalLM.from_pretrained("any/model", attn_implementation="sdpa")
rows = torch.export.Dim("rows", max=511)
shapes = {"input_ids": {1: rows}, "cache_position": {0: rows}}
ids, at = torch.zeros((1, 3), dtype=torch.long), torch.arange(3)
program = convert_and_export_with_cache(model)
ct.convert(program.run_decompositions({})).save("model.mlpackage")
"""
CALL = "convert_and_export_with_cache(model)"
EXECUTORCH = """\
from executorch.backends.apple.coreml.partition import CoreMLPartitioner
from executorch.exir import to_edge_transform_and_lower

made = to_edge_transform_and_lower(program, partitioner=[CoreMLPartitioner()]).to_executorch()
open("model.pte", "wb").write(made.buffer)
"""
ONE_TOKEN = [
    CALL,
    "convert_and_export_with_cache(model, torch.zeros((1, 1), dtype=torch.long), torch.tensor([0]))",
    "Flexible(model).export()",
    "Flexible(model, max_cache_len=512).export(input_ids=ids[:, :1], cache_position=at[:1])",
    "torch.export.export(Static(model), (ids[:, :1], at[:1]), strict=False)",
    "torch.export.export(Static(model), (), {'input_ids': ids[:, :1], 'cache_position': at[:1]})",
]
SEVERAL = [
    "convert_and_export_with_cache(model, ids, at, dynamic_shapes=shapes)",
    "convert_and_export_with_cache(model, ids, at, shapes)",
    "Flexible(model).export(ids, at, dynamic_shapes=shapes, strict=False)",
    "Flexible(model).export(input_ids=ids, cache_position=at, dynamic_shapes=shapes)",
    "torch.export.export(Static(model), (ids, at), dynamic_shapes=({1: rows}, {0: rows}))",
]


def script(call: str, executorch: bool = False) -> str:
    text = mutate(CORE_ML, (CALL, call) if call != CALL else (CALL, CALL))
    return text[: text.index("ct.convert(")] + EXECUTORCH if executorch else text


@pytest.mark.parametrize("executorch", [False, True])
@pytest.mark.parametrize("call", ONE_TOKEN)
def test_one_token_at_a_time(tmp_path: Path, call: str, executorch: bool) -> None:
    graph = graph_of(scan_text(tmp_path, {"export.py": script(call, executorch)}))
    assert graph.facts.kind.value is Kind.DECODER
    assert judge(graph.facts).says() == "out by static-query"


@pytest.mark.parametrize("executorch", [False, True])
@pytest.mark.parametrize("call", SEVERAL)
def test_which_rows_such_a_cache_holds_is_not_known(tmp_path: Path, call: str, executorch: bool) -> None:
    """The library has windows that slide among the layers of a static cache, where the configuration says so."""
    graph = graph_of(scan_text(tmp_path, {"export.py": script(call, executorch)}))
    assert graph.facts.query.value is not None
    assert graph.facts.query.value.dynamic
    assert [(s.name, s.role) for s in graph.facts.states.value or ()] == [
        ("key_cache", Role.UNKNOWN),
        ("value_cache", Role.UNKNOWN),
    ]
    judgement = judge(graph.facts)
    assert judgement.verdict is Verdict.UNRESOLVED
    assert judgement.primary is not None
    assert "some layers of which may hold a window only" in judgement.primary.message


def test_a_model_that_nobody_can_read(tmp_path: Path) -> None:
    text = mutate(CORE_ML, ('AutoModelForCausalLM.from_pretrained("any/model", attn_implementation="sdpa")', "load()"))
    text = mutate(text, (CALL, SEVERAL[0])).replace("import torch\n", "import torch\nfrom acme import load\n")
    assert judge(graph_of(scan_text(tmp_path, {"export.py": text})).facts).verdict is Verdict.UNRESOLVED
