"""Encoders that stream: they carry caches from chunk to chunk, and are no hybrid decoders for it."""

from __future__ import annotations

from pathlib import Path

import pytest

from rules.facts import Place
from tests.auditor.edits import HYBRID, NOT_A_DECODER
from tests.auditor.support import EXPORTER, graph_of, judged, line_of, mutate, scan_text

STREAMING = """\
import torch
from torch import nn
from coreai_torch import TorchConverter


class Part(nn.Module):
    def __init__(self):
        super().__init__()
        self.mix = nn.Linear(32, 32)
        self.out = nn.Linear(32, 24)

    def forward(self, embeds, k_cache, v_cache, conv_cache):
        seen = torch.cat([conv_cache, self.mix(embeds)], dim=1)
        keys, values = torch.cat([k_cache, seen[:, 8:]], dim=1), torch.cat([v_cache, seen[:, 8:]], dim=1)
        y = nn.functional.scaled_dot_product_attention(embeds, keys, values)
        return self.out(y), keys[:, 4:], values[:, 4:], seen[:, 4:]


class Chunk(Part):
    pass


example = {
    "embeds": torch.zeros(1, 4, 32, dtype=torch.float16),
    "k_cache": torch.zeros(1, 56, 32, dtype=torch.float16),
    "v_cache": torch.zeros(1, 56, 32, dtype=torch.float16),
    "conv_cache": torch.zeros(1, 8, 32, dtype=torch.float16),
}
converter = TorchConverter()
converter.add_exported_program(
    torch.export.export(Chunk().eval(), (), example),
    input_names=["embeds", "k_cache", "v_cache", "conv_cache"],
    output_names=["proj", "k_out", "v_out", "conv_out"],
)
converter.to_coreai().save_asset("out/chunk.aimodel")
"""
BASE = ("class Part(nn.Module):", "class ConformerPart(nn.Module):")
USE = ("class Chunk(Part):", "class Chunk(ConformerPart):")
OUTPUT = ('["proj",', '["enc_proj",')


def test_the_class_says_that_it_encodes(tmp_path: Path) -> None:
    script = mutate(STREAMING, BASE, USE)
    kind = graph_of(scan_text(tmp_path, {"export.py": script})).facts.kind
    line = line_of(script, "class ConformerPart")
    assert kind.evidence[1:] == (Place("export.py", line, "the class is named `ConformerPart`"),)
    assert judged(tmp_path, script).says() == NOT_A_DECODER


def test_an_output_says_that_it_encodes(tmp_path: Path) -> None:
    assert judged(tmp_path, mutate(STREAMING, OUTPUT)).says() == NOT_A_DECODER


def test_declared_states_of_an_encoder(tmp_path: Path) -> None:
    names = '["k_cache", "v_cache", "conv_cache"]'
    script = mutate(
        STREAMING,
        OUTPUT,
        ('["embeds", "k_cache", "v_cache", "conv_cache"]', f'["embeds"], state_names={names}'),
    )
    assert judged(tmp_path, script).says() == NOT_A_DECODER


@pytest.mark.parametrize(
    "edits",
    [
        (),
        (OUTPUT, ('"k_out"', '"logits"')),
        (OUTPUT, ("class Chunk(Part):", "class DecoderChunk(Part):"), ("Chunk().eval()", "DecoderChunk().eval()")),
        (OUTPUT, ("(1, 4, 32, dtype=torch.float16)", "(1, 4, 32, dtype=torch.int32)")),
    ],
)
def test_what_says_otherwise_or_nothing_stays_a_hybrid(tmp_path: Path, edits: tuple[tuple[str, str], ...]) -> None:
    assert judged(tmp_path, mutate(STREAMING, *edits)).says() == HYBRID


def test_a_decoder_of_tokens_by_the_name_of_an_encoder(tmp_path: Path) -> None:
    script = EXPORTER.replace("class Model(", "class TextEncoder(").replace("Model().eval()", "TextEncoder().eval()")
    assert judged(tmp_path, script).says() == "eligible"
    hidden = mutate(script, ('output_names=["logits"]', 'output_names=["enc"]'), ("self.head(x)", "x"))
    assert judged(tmp_path, hidden).says() == "out by no-logits"


@pytest.mark.parametrize(("one", "says"), [("float16", NOT_A_DECODER), ("int32", HYBRID)])
def test_a_choice_has_the_type_of_what_is_chosen(tmp_path: Path, one: str, says: str) -> None:
    frames = "torch.zeros(1, 4, 32, dtype=torch.float16)"
    chosen = f"torch.where(torch.ones(1, 4, 1, dtype=torch.bool), torch.zeros(1, 4, 32, dtype=torch.{one}), 0)"
    assert judged(tmp_path, mutate(STREAMING, OUTPUT, (frames, chosen))).says() == says
