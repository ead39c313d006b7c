"""Caches whose rows a call moves within themselves: what a rejected draft has moved is not taken back by a position."""

from __future__ import annotations

from pathlib import Path

import pytest

from rules.verdict import Verdict
from tests.auditor.support import EXPORTER, indented, judged, line_of, mutate

WRITES = "        key_cache[:, :, start:end] = k\n        value_cache[:, :, start:end] = v\n"
READS = "key_cache[:, :, :end], value_cache[:, :, :end], mask"


def script(lines: str, reads: str = "key_cache, value_cache, mask") -> str:
    """`lines` are those of the keys; the values have the same."""
    body = lines + "\n" + lines.replace("key_cache", "value_cache").replace("= k", "= v")
    return mutate(EXPORTER, (WRITES, indented(body)), (READS, reads))


@pytest.mark.parametrize(
    "lines",
    [
        "key_cache[:, :, :-rows] = key_cache[:, :, rows:].clone()\nkey_cache[:, :, -rows:] = k",
        "key_cache[:, :, :-rows, :] = key_cache[:, :, rows:, :]\nkey_cache[:, :, -rows:, :] = k",
        "key_cache[:, :, :-1] = key_cache[:, :, 1:].clone()\nkey_cache[:, :, -1:] = k",
        "key_cache[0, :, :-rows] = key_cache[0, :, rows:].clone().contiguous()\nkey_cache[:, :, -rows:] = k",
        "n = key_cache.shape[2]\nkey_cache[:, :, : n - rows] = key_cache[:, :, rows:n]\n"
        "key_cache[:, :, n - rows :] = k",
        "n = key_cache.shape[2]\n"
        "key_cache[:, :, n - start - rows : n - rows] = key_cache[:, :, n - start : n]\n"
        "key_cache[:, :, n - rows : n] = k",
        "key_cache[:, :, : 64 - rows] = key_cache[:, :, rows:].clone()\nkey_cache[:, :, 64 - rows :] = k",
    ],
)
def test_a_window_that_slides_in_place(tmp_path: Path, lines: str) -> None:
    text = script(lines)
    judgement = judged(tmp_path, text)
    assert judgement.says() == "out by ring-cache"
    assert judgement.primary is not None
    (moved,) = [line for line in lines.splitlines() if "= key_cache[" in line]
    assert line_of(text, moved) in {p.line for p in judgement.primary.evidence}


@pytest.mark.parametrize(
    "lines",
    [
        "key_cache[:, :, :start] = key_cache[:, :, :start]\nkey_cache[:, :, start:end] = k",  # where they were
        "key_cache[:, :, 4:8] = key_cache[:, :, 8:12].clone()\nkey_cache[:, :, start:end] = k",  # some are moved
        "key_cache[:, :, 1:] = key_cache[:, :, :-1].clone()\nkey_cache[:, :, start:end] = k",  # up to no end
        "key_cache[..., : HIDDEN // 8] = key_cache[..., HIDDEN // 8 :].clone()\nkey_cache[:, :, start:end] = k",
    ],
)
def test_rows_that_are_written_in_part_from_others_of_the_state(tmp_path: Path, lines: str) -> None:
    judgement = judged(tmp_path, script(lines, READS))
    assert judgement.verdict is Verdict.UNRESOLVED
    assert "ring-cache" not in judgement.broken


def test_later_rows_that_are_only_read(tmp_path: Path) -> None:
    """Nothing of them goes back into the cache."""
    text = mutate(EXPORTER, (WRITES, WRITES + "        seen = key_cache[:, :, rows:].sum()\n"))
    assert judged(tmp_path, text).verdict is Verdict.ELIGIBLE
