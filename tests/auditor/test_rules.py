"""Each rule and advice on scripts: at least one that breaks it and one close to it that does not."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from rules.fixes import judge_graph
from rules.registry import advice_rules, verdict_rules
from tests.auditor.edits import (
    HEAD,
    LAYER,
    ONE_TOKEN,
    WRITE_KEYS,
    Edit,
    after_head,
    after_norm,
    before,
    ids,
    returned,
    third_state,
)
from tests.auditor.support import CORE_ML, EXPORTER, graph_of, mutate, scan_text
from tests.auditor.test_mutations_rows import in_the_head
from tests.auditor.test_mutations_states import STATES

ENCODER = """\
import torch
from torch import nn
from torch.export import Dim
from coreai_torch import TorchConverter


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(128, 32)
        self.layers = nn.Sequential(nn.Linear(32, 32), nn.GELU(), nn.Linear(32, 32))

    def forward(self, input_ids):
        return self.layers(self.embed(input_ids)).mean(1)


program = torch.export.export(
    Encoder(), (torch.zeros(1, 8, dtype=torch.int32),), dynamic_shapes={"input_ids": {1: Dim("s")}}
)
TorchConverter().add_exported_program(
    program, input_names=["input_ids"], output_names=["embedding"]
).to_coreai().save_asset("encoder.aimodel")
"""

MOE = (
    before(
        LAYER,
        "class Experts(nn.Module):\n    def __init__(self, count=8, top=2):\n        super().__init__()\n"
        "        self.router = nn.Linear(HIDDEN, count)\n        self.top = top\n"
        "        self.weight = nn.Parameter(torch.zeros(count, HIDDEN, HIDDEN))\n\n"
        "    def forward(self, x):\n        scores, chosen = torch.topk(self.router(x).softmax(-1), self.top, dim=-1)\n"
        '        each = torch.einsum("brh,brkhg->brkg", x, self.weight[chosen])\n'
        "        return (each * scores[..., None]).sum(2)\n\n\n",
    ),
    (
        "        self.norm = nn.LayerNorm(HIDDEN)\n",
        "        self.norm = nn.LayerNorm(HIDDEN)\n        self.experts = Experts()\n",
    ),
    after_norm("x = x + self.experts(x)"),
)

RANGES = "rows = ct.RangeDim(1, 64)\n"
SHAPES = "ids_shape = (1, rows)\nmask_shape = (1, 1, rows, seen)\n"


def core_ml(ids_shape: str, mask_shape: str) -> str:
    return mutate(CORE_ML, (SHAPES, f"ids_shape = {ids_shape}\nmask_shape = {mask_shape}\n"))


def core_ai(*edits: Edit) -> str:
    return mutate(EXPORTER, *edits)


@dataclass(frozen=True, slots=True)
class Case:
    rule: str
    name: str
    script: str
    breaks: bool = True


ENUMERATED_IDS = "ct.EnumeratedShapes(shapes=[(1, 1), (1, 4)])"
ENUMERATED_MASK = "ct.EnumeratedShapes(shapes=[(1, 1, 1, 64), (1, 1, 4, 64)])"

CASES = (
    Case("not-a-decoder", "an encoder", ENCODER),
    Case("not-a-decoder", "a decoder", EXPORTER, False),
    Case("not-a-decoder", "a Core ML decoder", CORE_ML, False),
    Case("hybrid-state", "a convolution", core_ai(*STATES["a convolution"][0])),
    Case("hybrid-state", "a Core ML recurrence", mutate(CORE_ML, ('name="valueCache"', 'name="recState"'))),
    Case("hybrid-state", "keys and values", EXPORTER, False),
    Case(
        "hybrid-state", "one unified cache", core_ai(('["keyCache", "valueCache"]', '["kvCacheA", "kvCacheB"]')), False
    ),
    Case("hybrid-state", "a counter", core_ai(*third_state("cacheOffset", "offset", "1", "offset.add_(rows)")), False),
    Case("kv-as-io", "the cache as inputs and outputs", core_ai(*STATES["the cache as inputs and outputs"][0])),
    Case("kv-as-io", "the cache as states", EXPORTER, False),
    Case("no-logits", "an argmax", core_ai(returned("logits.argmax(-1)"))),
    Case(
        "no-logits",
        "a Core ML argmax",
        mutate(
            CORE_ML,
            ("        return self.head(", "        return torch.argmax(self.head("),
            ("HIDDEN))\n\n\nmodel", "HIDDEN)), -1)\n\n\nmodel"),
        ),
    ),
    Case(
        "no-logits",
        "two chunks of the vocabulary",
        core_ai(
            (HEAD, "        a, b = self.head.weight.chunk(2)\n        logits = torch.cat([x @ a.T, x @ b.T], -1)\n")
        ),
        False,
    ),
    Case("static-query", "None and one token", core_ai(ids("None"), ONE_TOKEN)),
    Case("static-query", "a Core ML literal", core_ml("(1, 1)", "(1, 1, 1, seen)")),
    Case(
        "static-query",
        "a traced shape",
        mutate(
            CORE_ML,
            ("torch.zeros(1, 4, ", "torch.zeros(1, 1, "),
            (SHAPES, "example = torch.zeros(1, 1)\nids_shape = example.shape\nmask_shape = (1, 1, 1, seen)\n"),
        ),
    ),
    Case("static-query", "a range of one", mutate(CORE_ML, (RANGES, "rows = ct.RangeDim(1, 1)\n"))),
    Case("static-query", "a dimension", EXPORTER, False),
    Case("static-query", "a range", CORE_ML, False),
    Case(
        "static-query",
        "a range with keywords",
        mutate(CORE_ML, (RANGES, "rows = ct.RangeDim(lower_bound=1, upper_bound=32, default=4)\n")),
        False,
    ),
    Case("static-query", "a range in ct.Shape", core_ml("ct.Shape(shape=(1, rows))", "(1, 1, rows, seen)"), False),
    Case("last-token-only", "a slice", core_ai(after_head("logits = logits[:, -1:]"))),
    Case(
        "last-token-only",
        "a Core ML slice",
        mutate(
            CORE_ML,
            (
                "return self.head(x + y.transpose(1, 2).reshape(batch, rows, HIDDEN))",
                "return self.head((x + y.transpose(1, 2).reshape(batch, rows, HIDDEN))[:, -1:])",
            ),
        ),
    ),
    Case("last-token-only", "all rows", core_ai(after_head("logits = logits[:, -rows:]")), False),
    Case("fixed-window", "eight", core_ai(ids("None"))),
    Case("fixed-window", "an enumeration", core_ml(ENUMERATED_IDS, ENUMERATED_MASK)),
    Case("fixed-window", "a Core ML literal of four", core_ml("(1, 4)", "(1, 1, 4, seen)")),
    Case("fixed-window", "a range", CORE_ML, False),
    Case(
        "row-kernel",
        "one row",
        core_ai(*in_the_head("matvec(x[:, 0], self.head.weight, result_shapes=[[1, VOCAB]], **GRID)")),
    ),
    Case(
        "row-kernel",
        "all rows",
        core_ai(*in_the_head("matvec(x, self.head.weight, result_shapes=[[1, rows, VOCAB]], **GRID)")),
        False,
    ),
    Case(
        "ring-cache",
        "a modulo",
        core_ai((WRITE_KEYS, "        key_cache.index_copy_(2, position_ids[0, start:] % 64, k)\n")),
    ),
    Case(
        "ring-cache",
        "a plain index",
        core_ai((WRITE_KEYS, "        key_cache.index_copy_(2, position_ids[0, start:], k)\n")),
        False,
    ),
    Case(
        "ring-cache",
        "a Core ML modulo",
        mutate(
            CORE_ML,
            ("        start = end - rows\n", "        start = (end - rows) % 64\n        end = start + rows\n"),
            (", causal_mask\n", ", causal_mask[..., :end]\n"),
        ),
    ),
    Case("baked-length", "a reshape", core_ai(after_norm("x = x.reshape(1, 8, HIDDEN)"))),
    Case(
        "baked-length",
        "a Core ML reshape",
        mutate(CORE_ML, (".reshape(batch, rows, HIDDEN)", ".reshape(1, 4, HIDDEN)")),
    ),
    Case(
        "baked-length",
        "a Core ML reshape by a Python number",
        mutate(CORE_ML, (".reshape(batch, rows, HIDDEN)", ".reshape(1, int(rows), HIDDEN)")),
    ),
    Case(
        "baked-length",
        "a Core ML range by a Python number",
        mutate(CORE_ML, (".reshape(batch, rows, HIDDEN)", ".reshape(batch, rows, HIDDEN) + torch.arange(int(rows))")),
    ),
    Case("baked-length", "a reshape that is open", core_ai(after_norm("x = x.reshape(1, -1, HIDDEN)")), False),
    Case("moe", "experts", core_ai(*MOE)),
    Case("moe", "none", EXPORTER, False),
    Case("unwritten-state", "values are not kept", core_ai(("        value_cache[:, :, start:end] = v\n", ""))),
    Case("unwritten-state", "both are", EXPORTER, False),
    Case(
        "unwritten-state",
        "a Core ML buffer is not written",
        mutate(CORE_ML, ("        self.valueCache[:, :, start:end, :] = v\n", "")),
    ),
    Case("unwritten-state", "both Core ML buffers are", CORE_ML, False),
    Case("hybrid-cap", "a convolution", core_ai(*STATES["a convolution"][0])),
    Case("hybrid-cap", "none", EXPORTER, False),
    Case("mixed-flexibility", "enumerated and ranged", core_ml(ENUMERATED_IDS, "(1, 1, rows, seen)")),
    Case("mixed-flexibility", "ranged beside fixed, with states", core_ml("(1, rows)", "(1, 1, 4, 64)")),
    Case("mixed-flexibility", "all ranged", CORE_ML, False),
    Case("mixed-flexibility", "all enumerated", core_ml(ENUMERATED_IDS, ENUMERATED_MASK), False),
    Case("index-aligned-enumerations", "two", core_ml(ENUMERATED_IDS, ENUMERATED_MASK)),
    Case("index-aligned-enumerations", "one", core_ml(ENUMERATED_IDS, "(1, 1, 4, 64)"), False),
    Case(
        "workload",
        "speech",
        core_ai(
            ("class Model(nn.Module)", "class WhisperDecoder(nn.Module)"),
            ("Model().eval()", "WhisperDecoder().eval()"),
            ("out/model.aimodel", "out/whisper-asr.aimodel"),
        ),
    ),
    Case("workload", "text", EXPORTER, False),
    Case("second-bundle", "a pinned query", core_ai(ids("None"), ONE_TOKEN)),
    Case("second-bundle", "nothing to fix", EXPORTER, False),
)


@pytest.mark.parametrize("case", CASES, ids=lambda c: f"{c.rule}: {c.name}")
def test_rule(tmp_path: Path, case: Case) -> None:
    judgement = judge_graph(graph_of(scan_text(tmp_path, {"export.py": case.script}))).judgement
    found = {*judgement.broken, *(f.rule for f in judgement.advice)}
    assert (case.rule in found) is case.breaks, (judgement.says(), [f.message for f in judgement.reasons])


@pytest.mark.parametrize(
    "case", [c for c in CASES if not c.breaks and c.script in (EXPORTER, CORE_ML)], ids=lambda c: f"{c.rule}: {c.name}"
)
def test_the_valid_scripts_are_eligible(tmp_path: Path, case: Case) -> None:
    judgement = judge_graph(graph_of(scan_text(tmp_path, {"export.py": case.script}))).judgement
    assert judgement.says() == "eligible", [f.message for f in judgement.reasons]
    assert not judgement.advice


def test_every_rule_has_both() -> None:
    rules = {r.id for r in (*verdict_rules(), *advice_rules())}
    assert {c.rule for c in CASES if c.breaks} == rules
    assert {c.rule for c in CASES if not c.breaks} == rules
