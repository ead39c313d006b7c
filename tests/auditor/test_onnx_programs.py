"""From PyTorch to Core ML by way of ONNX: what is written is what a converter reads again."""

from __future__ import annotations

from pathlib import Path

import pytest

from rules.facts import Kind, Kv
from rules.verdict import Verdict, judge
from tests.auditor.support import graph_of, line_of, mutate, scan_text

SCRIPT = """\
import acme
import coremltools as ct
import onnx
import onnx_coreml
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.k, self.head = nn.Embedding(128, 32), nn.Linear(32, 32), nn.Linear(32, 128)

    def forward(self, input_ids, past=None):
        x = self.embed(input_ids)
        past = torch.cat([past, self.k(x)], 1)
        return self.head(x + past[:, -1:].mean()), past


class Encoder(nn.Module):
    def forward(self, pixels):
        return pixels.mean(1)


def write(path):
    ids, past = torch.zeros(1, 1, dtype=torch.int64), torch.zeros(1, 8, 32)
    torch.onnx.export(
        Model().eval(), (ids, past), path, input_names=["input_ids", "past_key_values"],
        output_names=["logits", "present_key_values"], dynamic_axes={"past_key_values": {1: "seen"}},
    )


write("decoder.onnx")
model = onnx.load("decoder.onnx")
made = ct.convert(model)
made.save("out/model.mlpackage")
"""
AXES = 'dynamic_axes={"past_key_values": {1: "seen"}}'


def test_a_cache_that_goes_in_and_out(tmp_path: Path) -> None:
    graph = graph_of(scan_text(tmp_path, {"export.py": SCRIPT}))
    assert graph.bundle == "out/model.mlpackage"
    assert (graph.facts.kind.value, graph.facts.kv.value) == (Kind.DECODER, Kv.IO)
    assert graph.facts.query.value is not None
    assert graph.facts.query.value.widths == (1,)
    judgement = judge(graph.facts)
    assert judgement.broken == ("kv-as-io", "static-query")


@pytest.mark.parametrize(
    ("axes", "dynamic"),
    [
        ('dynamic_axes={"input_ids": {1: "rows"}, "past_key_values": {1: "seen"}}', True),
        ('dynamic_axes={"input_ids": [0, 1], "past_key_values": [1]}', True),
        ('dynamic_axes={"input_ids": {0: "batch"}}', False),
        ("dynamic_axes=None", False),
        ("dynamic_axes=acme.axes()", None),
    ],
)
def test_the_axes_of_the_query(tmp_path: Path, axes: str, dynamic: bool | None) -> None:
    query = graph_of(scan_text(tmp_path, {"export.py": mutate(SCRIPT, (AXES, axes))})).facts.query.value
    assert (query.dynamic if query is not None else None) is dynamic


@pytest.mark.parametrize(
    "convert",
    [
        "made = ct.convert('decoder.onnx', source='onnx')",
        "made = ct.convert(onnx.shape_inference.infer_shapes(model))",
        "onnx.save(model, 'again.onnx')\nmade = ct.convert('again.onnx')",
        "onnx.checker.check_model(model)\nmade = ct.converters.onnx.convert(model=model)",
        "import onnxsim\nmodel, ok = onnxsim.simplify(model)\nmade = onnx_coreml.convert(model)",
        "made = onnx_coreml.convert('decoder.onnx', minimum_ios_deployment_target='13')",
    ],
)
def test_the_ways_to_a_converter(tmp_path: Path, convert: str) -> None:
    text = mutate(SCRIPT, ("made = ct.convert(model)", convert))
    graph = graph_of(scan_text(tmp_path, {"export.py": text}))
    assert judge(graph.facts).broken == ("kv-as-io", "static-query")


@pytest.mark.parametrize(
    ("edit", "reason"),
    [
        (('onnx.load("decoder.onnx")', 'onnx.load("other.onnx")'), "an ONNX model that is read from a file"),
        (("made = ct", "del model.graph.input[1]\nmade = ct"), "the graph of an ONNX model is at hand"),
        (("made = ct", "acme.shrink(model)\nmade = ct"), "the import of `acme` could not be resolved"),
    ],
)
def test_a_model_that_is_not_what_was_written(tmp_path: Path, edit: tuple[str, str], reason: str) -> None:
    text = mutate(SCRIPT, edit)
    graph = graph_of(scan_text(tmp_path, {"export.py": text}))
    assert reason in (graph.facts.logits.reason or "")
    assert judge(graph.facts).verdict is not Verdict.ELIGIBLE


def test_no_cache_is_no_decoder(tmp_path: Path) -> None:
    write = 'torch.onnx.export(Encoder(), torch.zeros(1, 3, 8), "decoder.onnx")'
    text = mutate(SCRIPT, ('write("decoder.onnx")', write))
    graph = graph_of(scan_text(tmp_path, {"export.py": text}))
    assert judge(graph.facts).says() == "out by not-a-decoder"
    assert graph.line == line_of(text, "made = ct.convert(model)")


def test_a_state_in_a_buffer_is_none_of_core_ml(tmp_path: Path) -> None:
    """ONNX has no states: whatever the model keeps is lost, or is not what it seems."""
    text = mutate(
        SCRIPT,
        (
            "nn.Linear(32, 128)\n",
            'nn.Linear(32, 128)\n        self.register_buffer("k_cache", torch.zeros(1, 64, 32))\n',
        ),
        ("        past = torch.cat([past, self.k(x)], 1)\n", "        self.k_cache[:, : x.shape[1]] = self.k(x)\n"),
        ("self.head(x + past[:, -1:].mean()), past", "self.head(x + self.k_cache.mean(1, keepdim=True))"),
        ("(ids, past), path", "(ids,), path"),
        ('["input_ids", "past_key_values"]', '["input_ids"]'),
        ('["logits", "present_key_values"], ' + AXES, '["logits"], dynamic_axes={"input_ids": {1: "rows"}}'),
    )
    assert judge(graph_of(scan_text(tmp_path, {"export.py": text})).facts).verdict is not Verdict.ELIGIBLE
