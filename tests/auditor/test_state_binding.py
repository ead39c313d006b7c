"""Which inputs the named states are: those of their names, else those behind the named inputs."""

from __future__ import annotations

from pathlib import Path

from tests.auditor.support import EXPORTER, graph_of, judged, mutate, scan_text

FORWARD = "def forward(self, input_ids, position_ids, key_cache, value_cache):\n        rows"
AMONG = (
    (FORWARD, FORWARD.replace("position_ids, key_cache, value_cache", "key_cache, value_cache, position_ids")),
    ('        "position_ids": torch.arange(16)[None],\n        "key_cache": cache,\n', '        "key_cache": cache,\n'),
    (
        '        "value_cache": cache.clone(),\n',
        '        "value_cache": cache.clone(),\n        "position_ids": torch.arange(16)[None],\n',
    ),
)


def test_states_among_the_inputs_are_found_by_name(tmp_path: Path) -> None:
    script = mutate(EXPORTER, *AMONG, ('["keyCache", "valueCache"]', '["key_cache", "value_cache"]'))
    assert judged(tmp_path, script).says() == "eligible"


def test_the_shape_is_that_of_the_named_input(tmp_path: Path) -> None:
    script = mutate(EXPORTER, *AMONG, ('["keyCache", "valueCache"]', '["value_cache", "key_cache"]'))
    states = graph_of(scan_text(tmp_path, {"export.py": script})).facts.states.value
    assert states is not None
    assert [(s.name, str(s.role)) for s in states] == [("value_cache", "kv-value"), ("key_cache", "kv-key")]
    assert all(len(s.shape) == 5 for s in states)


def test_names_of_a_module_that_is_not_there_are_asked_for(tmp_path: Path) -> None:
    script = mutate(
        EXPORTER,
        ("import argparse\n", "import argparse\nfrom missing_package.names import STATES\n"),
        ('["keyCache", "valueCache"]', "STATES"),
    )
    reason = graph_of(scan_text(tmp_path, {"export.py": script})).facts.states.reason
    assert "`missing_package.names.STATES` is needed, and its source is not among those read" in reason
