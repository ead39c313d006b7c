"""coreai-models without its source: what is known of its export calls, its cache helper and its constants."""

from __future__ import annotations

from pathlib import Path

import pytest

from rules.facts import Query
from rules.verdict import judge
from tests.auditor.support import EXPORTER, default_graphs, graph_of, judged, mutate, scan_text

CONVERTED = EXPORTER[EXPORTER.index("    program = torch.export") : EXPORTER.index("\n\nif __name__")]
IMPORT = "from coreai_torch import TorchConverter\n"
NAMES = "input_names=['input_ids', 'position_ids'], output_names=['logits'], state_names=STATES"


def by_the_library(call: str, name: str = "export_to_coreai") -> str:
    imported = f"from coreai_models.export.macos import {name}\n"
    return mutate(EXPORTER, (IMPORT, imported), (CONVERTED, f"    {call}\n"))


ONE = by_the_library(
    f"export_to_coreai(model, inputs, dynamic_shapes=dynamic, {NAMES}).save_asset('out/model.aimodel')"
)


def test_an_export_by_its_function(tmp_path: Path) -> None:
    graph = graph_of(scan_text(tmp_path, {"export.py": ONE}))
    assert judge(graph.facts).says() == "eligible"
    assert (graph.graph, graph.bundle) == ("main", "out/model.aimodel")


def test_a_static_export_by_its_function(tmp_path: Path) -> None:
    script = mutate(ONE, ("None if args.static else", "None if True else"), ("1 if args.static else 8", "1"))
    assert judged(tmp_path, script).says() == "out by static-query"


def test_several_functions_of_one_program(tmp_path: Path) -> None:
    script = by_the_library(
        "one = {'reference_inputs': inputs, 'dynamic_shapes': dynamic, 'state_names': STATES, "
        "'input_names': ['input_ids', 'position_ids'], 'output_names': ['logits']}\n"
        "    still = {**one, 'dynamic_shapes': {**dynamic, 'input_ids': None}}\n"
        "    export_to_coreai_multifunction(model, [('prefill', one), ('verify', still)]).save_asset('m.aimodel')",
        "export_to_coreai_multifunction",
    )
    graphs = default_graphs(scan_text(tmp_path, {"export.py": script}))
    assert [(g.graph, g.bundle, g.facts.query.value) for g in graphs] == [
        ("prefill", "m.aimodel", Query(True)),
        ("verify", "m.aimodel", Query(False, (8,))),
    ]


@pytest.mark.parametrize("length", ["TRACE_KV_CACHE_SEQ_LEN", "64", "unknown()"])
def test_its_cache_and_its_constants(tmp_path: Path, length: str) -> None:
    script = mutate(
        ONE,
        (
            "    cache = torch.zeros(LAYERS, 1, HEADS, 64, HIDDEN // HEADS)\n",
            f"    config = Config({length})\n    keys, values = KVCache.create_cache_tensors(config)\n",
        ),
        ('"key_cache": cache,', '"key_cache": keys,'),
        ('"value_cache": cache.clone(),', '"value_cache": values,'),
        ('"key_cache": {3:', '"key_cache": {KVCache.seq_len_dim():'),
        ('"value_cache": {3:', '"value_cache": {KVCache.seq_len_dim():'),
        (
            'STATES = ["keyCache", "valueCache"]\n',
            "from elsewhere import unknown\n"
            "from coreai_models.export._constants import KEY_CACHE_NAME, TRACE_KV_CACHE_SEQ_LEN, VALUE_CACHE_NAME\n"
            "from coreai_models.primitives.macos.cache import KVCache\n"
            "STATES = [KEY_CACHE_NAME, VALUE_CACHE_NAME]\n\n\nclass Config:\n"
            "    num_hidden_layers, num_key_value_heads, head_dim = LAYERS, HEADS, HIDDEN // HEADS\n\n"
            "    def __init__(self, length):\n        self.max_position_embeddings = length\n",
        ),
    )
    graph = graph_of(scan_text(tmp_path, {"export.py": script}))
    assert judge(graph.facts).says() == "eligible"
    assert [s.name for s in graph.facts.states.value or ()] == ["keyCache", "valueCache"]
