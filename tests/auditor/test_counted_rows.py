"""What the numbers of the rows of a call do to masks, biases and hidden states."""

from __future__ import annotations

from pathlib import Path

import pytest

from rules.verdict import Verdict
from tests.auditor.support import EXPORTER, judged, mutate
from tests.auditor.test_masked_reads import script

MASK = "        mask = position_ids[:, None, None, :] <= position_ids[:, None, start:, None]\n"
FROM_THE_FIRST, FROM_THE_CALL = "torch.arange(rows)[:, None]", "torch.arange(start, end)[:, None]"
KEYS = "torch.arange(end)"
CUT = "CACHE[:, :, :end]"


@pytest.mark.parametrize("by_hand", [False, True])
@pytest.mark.parametrize(
    ("mask", "verdict"),
    [
        (f"{KEYS} <= {FROM_THE_FIRST}", Verdict.UNRESOLVED),
        (f"{FROM_THE_FIRST} - {KEYS} >= 0", Verdict.UNRESOLVED),
        (f"{KEYS}[None] <= torch.arange(1, rows + 1)[:, None]", Verdict.UNRESOLVED),
        (f"{KEYS} <= {FROM_THE_FIRST} + end", Verdict.UNRESOLVED),
        ("position_ids[0] <= position_ids[0, :rows][:, None]", Verdict.UNRESOLVED),
        ("position_ids[0] <= position_ids[0, start:].flip(0)[:, None]", Verdict.UNRESOLVED),
        ("position_ids[0] <= position_ids[0, start:][:, None]", Verdict.ELIGIBLE),
        (f"{KEYS} <= {FROM_THE_CALL}", Verdict.ELIGIBLE),
        (f"{KEYS} <= {FROM_THE_FIRST} + start", Verdict.ELIGIBLE),
        (f"{FROM_THE_CALL} - {KEYS} >= 0", Verdict.ELIGIBLE),
        (f"({KEYS} <= {FROM_THE_CALL}) & ({KEYS} > {FROM_THE_CALL} - 16)", Verdict.ELIGIBLE),
    ],
)
def test_a_mask_by_the_numbers_of_rows(tmp_path: Path, mask: str, verdict: Verdict, by_hand: bool) -> None:
    text = mutate(script(CUT, by_hand=by_hand), (MASK, f"        mask = ({mask})[None, None]\n"))
    assert judged(tmp_path, text).verdict is verdict


WEIGHTS = "weights = (q @ keys.transpose(-1, -2))"


@pytest.mark.parametrize(
    ("bias", "verdict"),
    [
        (f"0.1 * ({FROM_THE_FIRST} - {KEYS}).abs()", Verdict.UNRESOLVED),
        (f"0.1 * ({FROM_THE_FIRST} - {KEYS}).clamp(0, 31).float()", Verdict.UNRESOLVED),
        (f"0.1 * ({FROM_THE_FIRST} - {KEYS}).float()", Verdict.ELIGIBLE),
        (f"0.1 * ({FROM_THE_CALL} - {KEYS}).abs()", Verdict.ELIGIBLE),
    ],
)
def test_a_bias_by_the_distance(tmp_path: Path, bias: str, verdict: Verdict) -> None:
    text = mutate(script(CUT, by_hand=True), (WEIGHTS, f"{WEIGHTS[:-1]} - {bias})"))
    assert judged(tmp_path, text).verdict is verdict


NORM, HEAD, RETURN = "        x = self.norm(x)\n", "        logits = self.head(x)\n", "        return logits\n"


@pytest.mark.parametrize(
    ("line", "verdict"),
    [
        ("logits = logits / (1 + torch.arange(rows)[None, :, None])", Verdict.UNRESOLVED),
        ("logits = logits * position_ids[:, :rows, None]", Verdict.UNRESOLVED),
        ("logits = logits / (1 + position_ids[:, -rows:, None])", Verdict.ELIGIBLE),
        ("logits = logits * torch.arange(VOCAB)", Verdict.ELIGIBLE),
        ("logits = x @ x.transpose(1, 2)", Verdict.OUT),
        (
            "ids = input_ids[:, None].long().expand(-1, rows, -1); logits = logits.scatter(2, ids, 0.0)",
            Verdict.UNRESOLVED,
        ),
        ("logits = logits.scatter(2, input_ids[..., None].long(), 0.0)", Verdict.ELIGIBLE),
        (
            "ids = input_ids[:, None].long().expand(-1, rows, -1); logits += logits.gather(2, ids).sum(-1, True)",
            Verdict.UNRESOLVED,
        ),
    ],
)
def test_what_is_made_of_logits(tmp_path: Path, line: str, verdict: Verdict) -> None:
    assert judged(tmp_path, mutate(EXPORTER, (RETURN, f"        {line}\n{RETURN}"))).verdict is verdict


@pytest.mark.parametrize(
    ("taken", "verdict"),
    [
        ("x[:, torch.arange(rows)]", Verdict.ELIGIBLE),
        ("x.index_select(1, torch.arange(rows))", Verdict.ELIGIBLE),
        ("x[:, rows - 1 - torch.arange(rows)]", Verdict.UNRESOLVED),
        ("x.index_select(1, torch.arange(rows).flip(0))", Verdict.UNRESOLVED),
        ("x.view(1, HEADS, rows, -1).transpose(1, 2).reshape(1, rows, HIDDEN)", Verdict.UNRESOLVED),
        ("x.view(1, rows, HEADS, -1).transpose(1, 2).transpose(1, 2).reshape(1, rows, HIDDEN)", Verdict.ELIGIBLE),
    ],
)
def test_hidden_states_by_the_numbers_of_their_rows(tmp_path: Path, taken: str, verdict: Verdict) -> None:
    assert judged(tmp_path, mutate(EXPORTER, (NORM, f"{NORM}        x = {taken}\n"))).verdict is verdict


@pytest.mark.parametrize(
    ("start", "says"),
    [
        ("int(torch.remainder(torch.tensor(end - rows), 64))", "out by ring-cache"),
        ("int(torch.tensor(end - rows))", "eligible"),
    ],
)
def test_a_number_of_a_tensor(tmp_path: Path, start: str, says: str) -> None:
    assert judged(tmp_path, mutate(EXPORTER, ("start = end - rows", f"start = {start}"))).says() == says
