"""Modules of tokens that nobody has read: they may keep a cache in buffers, which a program of theirs has as states."""

from __future__ import annotations

from pathlib import Path

import pytest

from rules.verdict import Verdict, judge
from tests.auditor.support import graph_of, mutate, scan_text

SCRIPT = """\
import coremltools as ct
import torch
from coreai_torch import TorchConverter
from acme import build

model = build("any").eval()
ids = torch.zeros((1, 8), dtype=torch.int32)
program = torch.export.export(model, (ids,), dynamic_shapes=({1: torch.export.Dim("rows", max=64)},))
converter = TorchConverter().add_exported_program(program, input_names=["input_ids"], output_names=["out"])
converter.to_coreai().save_asset("model.aimodel")
"""
BUILD = 'build("any")'
CONVERT = SCRIPT[SCRIPT.index("converter = ") :]
WHETHER = "whether the module keeps states in its buffers is not known: "


@pytest.mark.parametrize(
    "edits",
    [
        [],
        [("from acme import build\n", "from acme import Build as build\n")],
        [(CONVERT, 'ct.convert(program).save("model.mlpackage")\n')],
        [(SCRIPT[SCRIPT.index("program = ") : SCRIPT.index("converter = ")], 'program = torch.export.load("m.pt2")\n')],
    ],
)
def test_whether_there_are_states_is_not_known(tmp_path: Path, edits: list[tuple[str, str]]) -> None:
    graph = graph_of(scan_text(tmp_path, {"export.py": mutate(SCRIPT, *edits)}))
    assert graph.facts.kind.value is None
    assert graph.facts.states.reason.startswith(WHETHER)
    assert judge(graph.facts).verdict is Verdict.UNRESOLVED


@pytest.mark.parametrize(
    ("edits", "says"),
    [
        # no tokens go in
        ([("(1, 8), dtype=torch.int32", "1, 3, 64, 64"), ('["input_ids"]', '["image"]')], "out by not-a-decoder"),
        # what this library makes carries its cache through inputs and outputs
        (
            [
                ("from acme import build\n", "from transformers import BertModel\n"),
                ("build(", "BertModel.from_pretrained("),
            ],
            "out by not-a-decoder",
        ),
        # one row goes in, whatever it keeps
        (
            [("(1, 8)", "(1, 1)"), (', dynamic_shapes=({1: torch.export.Dim("rows", max=64)},)', "")],
            "out by static-query",
        ),
        # embeddings come out
        ([('["out"]', '["text_embeds"]')], "out by not-a-decoder"),
        # its cache goes in and comes out
        (
            [
                ('["input_ids"]', '["input_ids", "k_cache", "v_cache"]'),
                ('["out"]', '["out", "k_cache_out", "v_cache_out"]'),
                ("(ids,)", "(ids, ids, ids)"),
                ("max=64)},))", "max=64)}, None, None))"),
            ],
            "out by kv-as-io",
        ),
        # Core ML keeps nothing of a traced module that is declared no state
        (
            [
                (SCRIPT[SCRIPT.index("program = ") : SCRIPT.index("converter = ")], ""),
                (
                    CONVERT,
                    'inputs = [ct.TensorType("input_ids", (1, ct.RangeDim(1, 64)))]\n'
                    'ct.convert(torch.jit.trace(model, ids), inputs=inputs).save("model.mlpackage")\n',
                ),
            ],
            "out by not-a-decoder",
        ),
    ],
)
def test_what_is_out_all_the_same(tmp_path: Path, edits: list[tuple[str, str]], says: str) -> None:
    assert judge(graph_of(scan_text(tmp_path, {"export.py": mutate(SCRIPT, *edits)})).facts).says() == says


def test_a_cast_that_keeps_the_module(tmp_path: Path) -> None:
    text = mutate(
        SCRIPT,
        ("from acme import build\n", "from coreai_opt.casting import cast_to_16_bit_precision\n"),
        (BUILD, "cast_to_16_bit_precision(torch.nn.Sequential(torch.nn.Embedding(128, 32), torch.nn.Linear(32, 128)))"),
    )
    graph = graph_of(scan_text(tmp_path, {"export.py": text}))
    assert judge(graph.facts).says() == "out by not-a-decoder"
    assert graph.family == "torch.nn.Sequential"


def test_a_program_that_is_one_of_those_that_the_script_has_saved(tmp_path: Path) -> None:
    """Which one it is nobody knows; none of them has been read by nobody."""
    text = mutate(
        SCRIPT,
        ("from acme import build\n", "import sys\nfrom torch import nn\n"),
        (BUILD, "nn.Embedding(128, 32)"),
        (
            "converter = T",
            'torch.export.save(program, f"{sys.argv[1]}.pt2")\n'
            'torch.export.save(torch.export.export(nn.Embedding(9, 9), (ids,)), f"{sys.argv[1]}.pt2")\n'
            'program = torch.export.load(f"{sys.argv[1]}.pt2")\nconverter = T',
        ),
    )
    graph = graph_of(scan_text(tmp_path, {"export.py": text}))
    assert judge(graph.facts).says() == "out by not-a-decoder"
