"""Which rows of a cache a layer reads after it has written its own, and what it makes of them before attention."""

from __future__ import annotations

from pathlib import Path

import pytest

from rules.verdict import Verdict
from tests.auditor.support import EXPORTER, judged, mutate
from tests.auditor.test_composite_attention import layer
from tests.auditor.test_masked_reads import script

ELSEWHERE, OTHERS = "in other places", "other rows of a cache than those up to the last of the query"
WINDOW = "CACHE[:, :, max(0, end - 16) : end]"


CAUSAL = {
    "a row further on": ("CACHE[:, :, : end + 1]", OTHERS),
    "as many further on as there are": ("CACHE[:, :, : end + rows]", OTHERS),
    "a window that ends with the last row": (WINDOW, ""),
    "every other row": ("CACHE[:, :, :end:2]", ""),
    "the new rows twice": ("torch.cat((CACHE[:, :, :end], CACHE[:, :, start:end]), 2)", OTHERS),
    "the new rows first": ("torch.cat((CACHE[:, :, start:end], CACHE[:, :, :start]), 2)", ELSEWHERE),
    "a row back": ("nn.functional.pad(CACHE[:, :, :end], (0, 0, 1, -1))", ELSEWHERE),
    "the end of a longer cache": ("CACHE[:, :, -end:]", ELSEWHERE),
}
"""By attention that is causal and has no mask: its last row sees the last key."""


@pytest.mark.parametrize("name", sorted(CAUSAL))
def test_attention_without_a_mask_sees_up_to_the_last_row(tmp_path: Path, name: str) -> None:
    seen, why = CAUSAL[name]
    judgement = judged(tmp_path, layer(seen=seen))
    assert judgement.verdict is Verdict.UNRESOLVED, judgement
    assert why in judgement.reasons[0].message


@pytest.mark.parametrize(
    "seen",
    [
        "CACHE[:, :, :end]",
        "CACHE.narrow(2, 0, start + rows)",
        "torch.cat((CACHE[:, :, :start], CACHE[:, :, start:end]), 2)",
        "nn.functional.pad(CACHE[:, :, :end], (1, -1))",
        "CACHE[:, :, :end, ::1]",
    ],
)
def test_attention_without_a_mask_that_sees_them_all(tmp_path: Path, seen: str) -> None:
    judgement = judged(tmp_path, layer(seen=seen))
    assert judgement.verdict is Verdict.ELIGIBLE, [f.message for f in judgement.reasons]


MASKED = {
    "a window that ends with the last row": (WINDOW, "mask[..., max(0, end - 16) :]", Verdict.UNRESOLVED),
    "a window narrowed": ("CACHE.narrow(2, end - 16, 16)", "mask[..., -16:]", Verdict.UNRESOLVED),
    "a window before the query": (
        "CACHE[:, :, max(0, start - 16) : end]",
        "mask[..., max(0, start - 16) :]",
        Verdict.ELIGIBLE,
    ),
    "every other row": ("CACHE[:, :, :end:2]", "mask[..., ::2]", Verdict.UNRESOLVED),
    "every other channel": ("CACHE[:, :, :end, ::2].repeat(1, 1, 1, 2)", "mask", Verdict.ELIGIBLE),
}


@pytest.mark.parametrize("name", sorted(MASKED))
def test_rows_before_those_of_the_query(tmp_path: Path, name: str) -> None:
    cut, mask, verdict = MASKED[name]
    assert judged(tmp_path, script(cut, mask)).verdict is verdict


BLENDED = ["value_cache[:, :, :end].mean(2, keepdim=True)", "value_cache[:, :, :end].abs().amax()"]
APART = ["value_cache[:, :, :end].mean(-1, keepdim=True)", "value_cache[:, :, :end].abs().amax((1, 3), keepdim=True)"]


@pytest.mark.parametrize(
    ("scale", "verdict"), [(s, Verdict.UNRESOLVED) for s in BLENDED] + [(s, Verdict.ELIGIBLE) for s in APART]
)
def test_numbers_over_the_rows_of_a_cache_take_in_those_of_the_query(
    tmp_path: Path, scale: str, verdict: Verdict
) -> None:
    cut = "CACHE[:, :, :end]"
    text = mutate(
        script(cut),
        ("        values = value_cache[:, :, :end]\n", f"        values = value_cache[:, :, :end] / {scale}\n"),
    )
    assert judged(tmp_path, text).verdict is verdict


WRITE = "        key_cache[:, :, start:end] = k\n"
TAKEN = {
    "k.flip(2)": Verdict.UNRESOLVED,
    "k[:, :, torch.arange(rows - 1, -1, -1)]": Verdict.UNRESOLVED,
    "k.index_select(2, rows - 1 - torch.arange(rows))": Verdict.UNRESOLVED,
    "k.transpose(1, 2).reshape(k.shape)": Verdict.UNRESOLVED,
    "k.permute(0, 2, 1, 3).contiguous().view(batch, HEADS, rows, -1)": Verdict.UNRESOLVED,
    "library.unread(k)": Verdict.UNRESOLVED,
    "k[:, :, torch.arange(rows)]": Verdict.ELIGIBLE,
    "k.transpose(1, 2).reshape(batch, rows, -1).view(batch, rows, HEADS, -1).transpose(1, 2)": Verdict.ELIGIBLE,
    "k.reshape(HEADS, rows, -1)[None]": Verdict.ELIGIBLE,
}


@pytest.mark.parametrize("taken", sorted(TAKEN))
def test_what_is_written_has_the_rows_of_the_query_in_their_order(tmp_path: Path, taken: str) -> None:
    text = mutate(
        EXPORTER, ("import torch\n", "import torch\nimport library\n"), (WRITE, WRITE.replace("= k", f"= {taken}"))
    )
    assert judged(tmp_path, text).verdict is TAKEN[taken]


LOST = {
    "a copy that is written": "        key_cache = key_cache.clone()\n" + WRITE,
    "emptied": "        key_cache.zero_()\n" + WRITE,
    "emptied by an assignment": "        key_cache[:] = 0\n" + WRITE,
    "emptied up to the query": WRITE + "        key_cache[:, :, :start] = 0\n",
    "in reverse": "        key_cache[:, :, end - 1 - torch.arange(rows)] = k\n",
    "a slice that ends before it begins": "        key_cache[:, :, end:start] = k\n",
}


@pytest.mark.parametrize("name", sorted(LOST))
def test_a_cache_that_does_not_hold_what_went_in(tmp_path: Path, name: str) -> None:
    assert judged(tmp_path, mutate(EXPORTER, (WRITE, LOST[name]))).verdict is not Verdict.ELIGIBLE


@pytest.mark.parametrize(
    "kept",
    [
        WRITE + "        key_cache[:, :, end:] = 0\n",
        "        key_cache[:, :, start + torch.arange(rows)] = k\n",
        WRITE + "        seen = key_cache.clone()\n        seen[:, :, :1] = 0\n",
    ],
)
def test_a_cache_that_does(tmp_path: Path, kept: str) -> None:
    judgement = judged(tmp_path, mutate(EXPORTER, (WRITE, kept)))
    assert judgement.verdict is Verdict.ELIGIBLE, [f.message for f in judgement.reasons]
