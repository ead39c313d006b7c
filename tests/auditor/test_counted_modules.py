"""Modules that a long loop sets under counted names."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.auditor.support import EXPORTER, judged, mutate

HEAD = "        self.head = nn.Linear(HIDDEN, VOCAB)\n"
LOGITS = "        logits = self.head(x)\n"
SET = "        for i in range(16):\n            setattr(self, f'head_{i}', nn.Linear(HIDDEN, VOCAB // 16))\n"
JOINED = "        logits = torch.cat([getattr(self, f'head_{i}')(x) for i in range(16)], dim=-1)\n"


def test_heads_under_counted_names_give_logits(tmp_path: Path) -> None:
    assert judged(tmp_path, mutate(EXPORTER, (HEAD, SET), (LOGITS, JOINED))).says() == "eligible"


def test_one_of_them_is_found_by_its_name(tmp_path: Path) -> None:
    whole = SET.replace("VOCAB // 16", "VOCAB")
    assert judged(tmp_path, mutate(EXPORTER, (HEAD, whole), (LOGITS, "        logits = self.head_15(x)\n"))).says() == (
        "eligible"
    )


def test_whether_one_is_there_is_not_denied(tmp_path: Path) -> None:
    chosen = "        x = self.head_3(x) if hasattr(self, 'head_3') else x[:, -1:]\n"
    says = judged(
        tmp_path, mutate(EXPORTER, (HEAD, SET), (LOGITS, f"{chosen}        logits = self.head_1(x)\n"))
    ).says()
    assert says != "out by last-token-only"


LINEAR = "        for i in range(20):\n            setattr(self, f'head_{i}', nn.Linear(HIDDEN, 8))\n"
FLAT = LINEAR.replace("nn.Linear(HIDDEN, 8)", "nn.Flatten(0)")


@pytest.mark.parametrize("more", [FLAT, f"        self.head_of_all = nn.Flatten(0)\n{LINEAR}"])
def test_two_loops_that_set_the_same_names_leave_them_unknown(tmp_path: Path, more: str) -> None:
    assert (
        judged(tmp_path, mutate(EXPORTER, (HEAD, SET + more), (LOGITS, JOINED))).says()
        == "unresolved by unknown-logits"
    )


def test_a_name_that_may_be_any_other_is_kept_for_none(tmp_path: Path) -> None:
    names = "        for name in json.load(open('names.json')):\n            setattr(self, f'{name}d', nn.Flatten(0))\n"
    script = mutate(EXPORTER, ("import argparse\n", "import argparse\nimport json\n"), (HEAD, HEAD + names))
    assert judged(tmp_path, script).says() == "unresolved by unknown-logits"
