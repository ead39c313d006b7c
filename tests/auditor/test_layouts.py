"""Reshapes that leave each row of the query where it is, and those that only do so for a query of one row."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.auditor.edits import HEAD, UNKNOWN_ROLE, Edit, check_harmless, eligible
from tests.auditor.support import EXPORTER, indented, judged, line_of, mutate

HEADS_LAST = "        y = y.transpose(1, 2).reshape(batch, rows, HIDDEN)\n"
PROJECTED = "        q, k, v = self.qkv(x).view(batch, rows, 3, HEADS, HIDDEN // HEADS).permute(2, 0, 3, 1, 4)\n"


def _joined(*lines: str) -> tuple[Edit, ...]:
    """How the heads of attention are joined."""
    return ((HEADS_LAST, indented(lines)),)


def _split(*lines: str) -> tuple[Edit, ...]:
    """How queries, keys and values are split into heads."""
    return ((PROJECTED, indented(lines)),)


MIXED: dict[str, tuple[Edit, ...]] = {
    "heads are joined where they lie": _joined("y = y.reshape(batch, rows, HIDDEN)"),
    "the same by view": _joined("y = y.contiguous().view(batch, -1, HIDDEN)"),
    "the same by all that is left": _joined("y = y.reshape(-1, HIDDEN).unsqueeze(0)"),
    "the same as another": _joined("y = y.view_as(x)"),
    "rows and channels are turned": _joined("y = y.permute(0, 1, 3, 2).reshape(batch, rows, HIDDEN)"),
    "heads and rows in one axis": _joined("y = y.flatten(1, 2).view(batch, rows, HIDDEN)"),
    "head behind head": _joined("y = torch.cat(y.unbind(1), dim=1).view(batch, rows, HIDDEN)"),
    "heads and rows in one axis, and taken out as others": _joined(
        "y = y.reshape(batch, HEADS * rows, HIDDEN // HEADS)",
        "y = y.view(batch, rows, HEADS, HIDDEN // HEADS).reshape(batch, rows, HIDDEN)",
    ),
    "heads are split off in front": _split(
        "q, k, v = (t.view(batch, HEADS, rows, HIDDEN // HEADS) for t in self.qkv(x).chunk(3, -1))"
    ),
    "queries, keys and values are split off in front": _split(
        "q, k, v = self.qkv(x).view(3, batch, HEADS, rows, HIDDEN // HEADS)"
    ),
    "logits are turned": ((HEAD, HEAD + "        logits = logits.transpose(1, 2).reshape(1, rows, VOCAB)\n"),),
}
KEPT: dict[str, tuple[Edit, ...]] = {
    "as it is": _joined(HEADS_LAST.strip()),
    "by permute": _joined("y = y.permute(0, 2, 1, 3).contiguous().view(batch, rows, HIDDEN)"),
    "by flatten": _joined("y = y.transpose(1, 2).flatten(2)"),
    "head by head": _joined("y = torch.cat([h.squeeze(1) for h in y.split(1, dim=1)], dim=-1)"),
    "rows in front": _joined("y = y.squeeze(0).transpose(0, 1).reshape(rows, HIDDEN)[None]"),
    "as another": _joined("y = y.transpose(1, 2).reshape(rows, HIDDEN).view_as(x)"),
    "heads and rows in one axis, and back": _joined(
        "y = y.reshape(batch, HEADS * rows, HIDDEN // HEADS)",
        "y = y.view(batch, HEADS, rows, HIDDEN // HEADS)",
        HEADS_LAST.strip(),
    ),
    "queries that share their keys": _joined(
        "w = q.reshape(batch, HEADS * rows, -1) @ key_cache[:, 0, :end].transpose(1, 2)",
        "w = w.view(batch, HEADS, rows, end).masked_fill(~mask, -1e4).softmax(-1)",
        "y = (w.flatten(1, 2) @ value_cache[:, 0, :end]).view(batch, HEADS, rows, -1)",
        HEADS_LAST.strip(),
    ),
    "split one by one": _split(
        "q, k, v = (t.view(batch, rows, HEADS, -1).transpose(1, 2) for t in self.qkv(x).chunk(3, dim=-1))"
    ),
    "logits of rows in front": ((HEAD, HEAD + "        logits = logits.reshape(-1, VOCAB).view(1, -1, VOCAB)\n"),),
}


@pytest.mark.parametrize("name", sorted(MIXED))
def test_rows_that_only_a_query_of_one_row_keeps(tmp_path: Path, name: str) -> None:
    assert not eligible(tmp_path, *MIXED[name])


@pytest.mark.parametrize("name", sorted(KEPT))
def test_rows_that_stay(tmp_path: Path, name: str) -> None:
    check_harmless(tmp_path, KEPT[name])


def test_the_reshape_is_cited(tmp_path: Path) -> None:
    script = mutate(EXPORTER, *MIXED["heads are joined where they lie"])
    judgement = judged(tmp_path, script)
    assert judgement.says() == UNKNOWN_ROLE
    assert line_of(script, "y = y.reshape") in {p.line for f in judgement.reasons for p in f.evidence}


ONE_CHOICE = "chosen = self.head({0})[0, :2].argmax()"
WEIGHED = ("w = torch.stack([self.norm.weight, -self.norm.weight])[chosen]", "x = {0}")


@pytest.mark.parametrize("use", ["nn.functional.linear(x, w.expand(HIDDEN, HIDDEN))", "x @ w.diag()", "x * w"])
@pytest.mark.parametrize("row", ["x[:, -1]", "x[:, 0]", "x.mean(1)"])
def test_what_one_row_chooses_for_all(tmp_path: Path, row: str, use: str) -> None:
    lines = (ONE_CHOICE.format(row), WEIGHED[0], WEIGHED[1].format(use))
    assert not eligible(tmp_path, (HEAD, indented(lines) + HEAD))
