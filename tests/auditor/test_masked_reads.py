"""What attention with a mask reads of a cache that has the rows of the query: a mask shows nothing that is cut off."""

from __future__ import annotations

from pathlib import Path

import pytest

from rules.facts import Logits
from rules.verdict import Verdict, judge
from tests.auditor.support import EXPORTER, graph_of, indented, line_of, mutate, scan_text

ATTENTION = (
    "        y = nn.functional.scaled_dot_product_attention(q, key_cache[:, :, :end], value_cache[:, :, :end], mask)\n"
)
BY_HAND = (
    "weights = (q @ keys.transpose(-1, -2)).masked_fill(~{mask}, -1e9).softmax(-1)",
    "y = weights @ values",
)


def script(cut: str, mask: str = "mask", keys: str = "", by_hand: bool = False) -> str:
    """The exporter, with attention to `CACHE` as it is cut (`keys`: the keys by themselves)."""
    lines = [f"keys = {(keys or cut).replace('CACHE', 'key_cache')}", f"values = {cut.replace('CACHE', 'value_cache')}"]
    if by_hand:
        lines += [line.format(mask=mask) for line in BY_HAND]
    else:
        lines.append(f"y = nn.functional.scaled_dot_product_attention(q, keys, values, {mask})")
    return mutate(EXPORTER, (ATTENTION, indented(lines)))


RIGHT = {
    "up to the last row": ("CACHE[:, :, :end]", "mask"),
    "up to the last row, in two steps": ("CACHE[:, :, : end + 1][:, :, :end]", "mask"),
    "all that there is, behind a longer mask": ("CACHE", "nn.functional.pad(mask, (0, CACHE.shape[2] - end))"),
    "by narrow": ("CACHE.narrow(2, 0, end)", "mask"),
    "a copy": ("CACHE[:, :, :end].contiguous()", "mask"),
    "heads repeated": ("CACHE[:, :, :end].repeat_interleave(1, 1)", "mask"),
    "channels in reverse": ("CACHE[:, :, :end].flip(-1)", "mask"),
    "by its numbers": ("CACHE[:, :, torch.arange(end)]", "mask"),
    "by its numbers, selected": ("CACHE.index_select(2, torch.arange(end))", "mask"),
    "heads by rounded numbers": ("CACHE[:, torch.arange(HEADS) // 1, :end]", "mask"),
    "by pages": ("CACHE.unflatten(2, (-1, 8))[:, :, torch.arange(end) // 8, torch.arange(end) % 8]", "mask"),
    "one more, which the mask hides": ("CACHE[:, :, : end + 1]", "nn.functional.pad(mask, (0, 1))"),
}
ELSEWHERE, NONE, FEWER = "in other places", "none of these", "less of a cache"
WRONG = {
    "all but the last row": ("CACHE[:, :, :end][:, :, :-1]", "mask[..., :-1]", FEWER),
    "all but the last row by its number": ("CACHE[:, :, : end - 1]", "mask[..., :-1]", FEWER),
    "all but the last three": ("CACHE[:, :, : end - 3]", "mask[..., :-3]", "3 rows less of a cache"),
    "the first row of the query alone": ("CACHE[:, :, : start + 1]", "mask[..., : start + 1]", "1 row of those"),
    "two rows of the query": ("CACHE[:, :, : start + 2]", "mask[..., : start + 2]", "2 rows of those"),
    "what was there before": ("CACHE[:, :, :start]", "mask[..., :start]", NONE),
    "as many fewer as the query has": ("CACHE[:, :, rows:end]", "mask[..., rows:]", NONE),
    "a row further on": ("CACHE[:, :, 1 : end + 1]", "mask", ELSEWHERE),
    "turned": ("CACHE[:, :, :end].roll(1, 2)", "mask", ELSEWHERE),
    "in reverse": ("CACHE[:, :, :end].flip(2)", "mask", ELSEWHERE),
    "upside down": ("CACHE[:, :, :end].transpose(0, 2).flipud().transpose(0, 2)", "mask", ELSEWHERE),
    "from right to left": ("CACHE[:, :, :end].transpose(1, 2).fliplr().transpose(1, 2)", "mask", ELSEWHERE),
    "by numbers that go down": ("CACHE[:, :, end - 1 - torch.arange(end)]", "mask", ELSEWHERE),
    "by a range that goes down": ("CACHE[:, :, torch.arange(end - 1, -1, -1)]", "mask", ELSEWHERE),
    "by numbers in reverse, selected": (
        "CACHE[:, :, :end].index_select(2, torch.arange(end).flip(0))",
        "mask",
        ELSEWHERE,
    ),
    "by numbers in reverse, gathered": (
        "torch.take_along_dim(CACHE[:, :, :end], (end - 1 - torch.arange(end))[None, None, :, None], 2)",
        "mask",
        ELSEWHERE,
    ),
    "by numbers from 1 on": ("CACHE[:, :, torch.arange(end) + 1]", "mask", ELSEWHERE),
    "by numbers up to where the call begins": ("CACHE[:, :, torch.arange(end).clamp(max=start)]", "mask", ELSEWHERE),
    "by numbers that begin again": ("CACHE[:, :, torch.arange(end) % 32]", "mask", ELSEWHERE),
    "the new rows first": ("torch.cat((CACHE[:, :, start:end], CACHE[:, :, :start]), 2)", "mask", ELSEWHERE),
    "every row twice": ("CACHE[:, :, torch.arange(end) // 2]", "mask", ELSEWHERE),
    "by their size": ("CACHE[:, :, :end].sort(2).values", "mask", ELSEWHERE),
    "in reverse, beside another axis": ("CACHE[:, :, :end].flip(2, 3)", "mask", ELSEWHERE),
}


@pytest.mark.parametrize("by_hand", [False, True])
@pytest.mark.parametrize("name", sorted(RIGHT))
def test_reads_with_all_rows_of_the_query(tmp_path: Path, name: str, by_hand: bool) -> None:
    cut, mask = RIGHT[name]
    text = script(cut, mask.replace("CACHE", "key_cache"), by_hand=by_hand)
    assert judge(graph_of(scan_text(tmp_path, {"export.py": text})).facts).says() == "eligible"


@pytest.mark.parametrize("by_hand", [False, True])
@pytest.mark.parametrize("name", sorted(WRONG))
def test_reads_without_some_of_them(tmp_path: Path, name: str, by_hand: bool) -> None:
    cut, mask, why = WRONG[name]
    text = script(cut, mask, by_hand=by_hand)
    facts = graph_of(scan_text(tmp_path, {"export.py": text})).facts
    assert judge(facts).verdict is Verdict.UNRESOLVED
    assert why in facts.logits.reason
    markers = ["weights = (q @", "y = weights"] if by_hand else ["y = nn.functional.scaled"]
    cited = [place.line for place in facts.logits.evidence]
    assert any(line_of(text, marker) in cited for marker in markers)


@pytest.mark.parametrize("keys", ["CACHE[:, :, :end].roll(1, 2)", "CACHE[:, :, :end].flip(2)"])
def test_keys_that_do_not_stand_where_the_values_stand(tmp_path: Path, keys: str) -> None:
    text = script("CACHE[:, :, :end]", keys=keys)
    assert judge(graph_of(scan_text(tmp_path, {"export.py": text})).facts).verdict is Verdict.UNRESOLVED


@pytest.mark.parametrize(
    "keys", ["CACHE[:, :, :end].flip(2)", "torch.cat((CACHE[:, :, start:end], CACHE[:, :, :start]), 2)"]
)
def test_keys_by_hand_that_do_not_stand_where_the_values_stand(tmp_path: Path, keys: str) -> None:
    text = script("CACHE[:, :, :end]", keys=keys, by_hand=True)
    assert judge(graph_of(scan_text(tmp_path, {"export.py": text})).facts).verdict is Verdict.UNRESOLVED


def test_of_one_row_the_logits_are_all_that_there_are(tmp_path: Path) -> None:
    """With one row in a call nothing differs from what rows would see one by one: it is out for its query alone."""
    code = mutate(script("CACHE[:, :, :end].flip(2)"), ('"--static", action="store_true"', '"--static", default=True'))
    facts = graph_of(scan_text(tmp_path, {"export.py": code})).facts
    assert facts.query.value is not None
    assert facts.query.value.widths == (1,)
    assert facts.logits.value is Logits.ALL
    assert judge(facts).says() == "out by static-query"
