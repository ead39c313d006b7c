"""The line on which rows stop to be those of the query is cited, however far from the output and the write it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from rules.verdict import Verdict
from tests.auditor.support import EXPORTER, judged, line_of, mutate

NORM = "        x = self.norm(x)\n"
KEYS = "        key_cache[:, :, start:end] = k\n"
FAR = "".join(f"        x = x * {n}.5\n" for n in range(12))
"""More places than a value keeps."""

OF_THE_OUTPUT = {
    "a running sum": "x = x.cumsum(1)",
    "reversed": "x = x.flip(1)",
    "shifted": "x = x.roll(1, 1)",
    "less their mean": "x = x - x.mean(1, keepdim=True)",
    "masked": "x = x * (position_ids[:, -rows:] > 3)[..., None]",
    "masked by filling": "x = x.masked_fill((position_ids[:, -rows:] > 3)[..., None], 0.0)",
    "masked by a choice": "x = torch.where((position_ids[:, -rows:] > 3)[..., None], x, 0.0)",
    "in another order": "x = x.index_select(1, position_ids[0, -rows:])",
    "by an index": "x = x[:, position_ids[0, -rows:]]",
    "in part": "x = x.index_fill(1, torch.tensor([0]), 0.0)",
    "sorted": "x = x.sort(dim=1).values",
    "shifted by padding": "x = nn.functional.pad(x, (0, 0, 1, 0))[:, :-1]",
    "a sum by einsum": 'x = torch.einsum("brh,r->bh", x, (torch.arange(rows) == 0).float())',
    "one row": "x = x[:, -1:]",
}
OF_A_WRITE = {
    "a running sum": "k = k.cumsum(2)",
    "reversed": "k = k.flip(2)",
    "less their mean": "k = k - k.mean(2, keepdim=True)",
    "one row": "k = k[:, :, -1:]",
    "the first for all": "k = k[:, :, :1].expand(-1, -1, rows, -1)",
}


@pytest.mark.parametrize("name", OF_THE_OUTPUT)
def test_rows_of_the_output(tmp_path: Path, name: str) -> None:
    text = mutate(EXPORTER, (NORM, f"        {OF_THE_OUTPUT[name]}  # here\n{FAR}{NORM}"))
    _check(tmp_path, text)


@pytest.mark.parametrize("name", OF_A_WRITE)
def test_rows_of_a_write(tmp_path: Path, name: str) -> None:
    far = FAR.replace("x", "k")
    judgement = _check(tmp_path, mutate(EXPORTER, (KEYS, f"        {OF_A_WRITE[name]}  # here\n{far}{KEYS}")))
    assert line_of(EXPORTER, KEYS.strip()) + 13 in judgement


def _check(root: Path, text: str) -> set[int]:
    judgement = judged(root, text)
    assert judgement.verdict is not Verdict.ELIGIBLE
    lines = {p.line for finding in judgement.reasons for p in finding.evidence}
    assert line_of(text, "# here") in lines
    return lines


def test_what_ended_is_not_cited(tmp_path: Path) -> None:
    """Rows that were reversed twice, or whose mask a residual sum has ended, are no reason."""
    code = "x = x.flip(1).flip(1)  # first\n        x = x + x * (position_ids[:, -rows:] > 3)[..., None]  # second\n"
    text = mutate(EXPORTER, (NORM, f"        {code}        x = x.cumsum(1)  # here\n{NORM}"))
    lines = _check(tmp_path, text)
    assert not lines & {line_of(text, "# first"), line_of(text, "# second")}
