"""Outputs that could not be followed: what the names that the converter gives them say, and what they do not."""

from __future__ import annotations

from pathlib import Path

import pytest

from rules.facts import Logits
from tests.auditor.edits import HEAD, HYBRID, NO_LOGITS, UNKNOWN_LOGITS, third_state
from tests.auditor.support import CORE_ML, EXPORTER, graph_of, judged, line_of, mutate, scan_text

UNREAD = (HEAD, "        logits = nowhere.finish(x)\n")
IMPORT = ("import argparse\n", "import argparse\nimport nowhere\n")
NAMES = 'output_names=["logits"]'


def unread(names: str, *edits: tuple[str, str]) -> str:
    """The exporter with a last layer that nobody can read, and outputs of these names."""
    return mutate(EXPORTER, UNREAD, IMPORT, (NAMES, f"output_names={names}"), *edits)


@pytest.mark.parametrize(
    "names",
    ['["hidden"]', '["text_embedding"]', '("cond", "eos_logit")', '["pcm", "k_cache_out", "v_cache_out"]'],
)
def test_names_that_say_no_logits(tmp_path: Path, names: str) -> None:
    assert judged(tmp_path, unread(names)).says() == NO_LOGITS


@pytest.mark.parametrize(
    "names",
    [
        '["logits"]',
        '["y"]',  # says nothing
        '["eos_logit"]',  # says what one output is, and not where the logits are
        '["hidden", "logits"]',
        '["hidden", "scores"]',
        '["hidden", "y"]',  # the other one may be the logits
        '["sample"]',  # a token, or a sound
        "[input()]",
        '["hidden"] if input() else ["logits"]',
    ],
)
def test_names_that_leave_it_open(tmp_path: Path, names: str) -> None:
    assert judged(tmp_path, unread(names)).says() == UNKNOWN_LOGITS


def test_the_line_of_the_name_is_cited(tmp_path: Path) -> None:
    script = unread("NAMED", ("VOCAB, HIDDEN, HEADS", 'NAMED = ["hidden"]\nVOCAB, HIDDEN, HEADS'))
    logits = graph_of(scan_text(tmp_path, {"export.py": script})).facts.logits
    assert logits.value is Logits.NONE
    assert [(p.line, p.note) for p in logits.evidence[1:]] == [
        (line_of(script, 'NAMED = ["hidden"]'), "the output is named `hidden`")
    ]


def test_a_state_that_cannot_be_rewound_is_said_first(tmp_path: Path) -> None:
    state = third_state("convState", "conv_state", "1, 4, 8", "conv_state.copy_(conv_state + 1)")
    assert judged(tmp_path, unread('["hidden"]', *state)).says() == HYBRID


def test_core_ml_names(tmp_path: Path) -> None:
    head = "self.head(x + y.transpose(1, 2).reshape(batch, rows, HIDDEN))"
    script = mutate(CORE_ML, (head, f"nowhere.finish({head})"), ("import torch\n", "import torch\nimport nowhere\n"))
    assert judged(tmp_path, script).says() == UNKNOWN_LOGITS
    assert judged(tmp_path, mutate(script, ('name="logits"', 'name="hidden"'))).says() == NO_LOGITS
