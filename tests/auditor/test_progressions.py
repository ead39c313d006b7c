"""Numbers that go up from row to row: those of the rows of a call, wherever it begins, and those of others."""

from __future__ import annotations

from pathlib import Path

import pytest

from rules.verdict import Verdict
from tests.auditor.support import judged, mutate
from tests.auditor.test_attacks_positions import EMBEDDED, HEAD, ONE_POSITION, WRITE

RANGE = "torch.arange(rows)"
GIVEN = (
    ("input_ids, at, mask", "input_ids, position_ids, mask"),
    ('"at": torch.zeros(1, 1, dtype', '"position_ids": torch.zeros(1, 16, dtype'),
    ('"at": None', '"position_ids": {1: seen}'),
    ('"at", "mask"', '"position_ids", "mask"'),
)
"""The positions of all tokens go in."""
NAMED = (
    ("input_ids, at, mask", "input_ids, position, mask"),
    ('"at": torch', '"position": torch'),
    ('"at": None', '"position": None'),
    ('"at", "mask"', '"position", "mask"'),
)
"""One position goes in, by its name."""


def learned(numbers: str) -> str:
    """The decoder, with the embeddings of these positions added: `at` is a number that goes in."""
    return mutate(ONE_POSITION, (EMBEDDED, f"{EMBEDDED}        x = x + self.wpe({numbers})\n"))


def turned(cos_and_sin: str) -> str:
    """The decoder, with queries and keys turned by these rows of its tables."""
    cos, sin = (cos_and_sin.replace("TABLE", f"self.{name}") for name in ("cos", "sin"))
    return mutate(ONE_POSITION, (WRITE, f"        q, k = turned(q, {cos}, {sin}), turned(k, {cos}, {sin})\n{WRITE}"))


def given(numbers: str) -> str:
    """The decoder, with queries and keys turned by the angles of these of the positions of all tokens."""
    lines = (
        f"angles = ({numbers})[..., None] * self.inv",
        "q, k = turned(q, angles.cos(), angles.sin()), turned(k, angles.cos(), angles.sin())",
    )
    return mutate(ONE_POSITION, *GIVEN, (WRITE, "".join(f"        {line}\n" for line in lines) + WRITE))


FROM_THE_SAME, ELSEWHERE = "the same positions in every call", "which is not where they stand"
ONE, OTHERS = "one position", "the positions of others"
WRONG = {
    "and where the call ends": (learned(f"{RANGE} + end"), ELSEWHERE),
    "and where the call ends, less one": (learned(f"{RANGE} + end - 1"), ELSEWHERE),
    "and where the call ends, in a tensor": (learned(f"{RANGE} + torch.tensor([end])"), ELSEWHERE),
    "and where the call ends, filled in": (learned(f"{RANGE} + torch.full((rows,), end)"), ELSEWHERE),
    "and where the call ends, by a function": (learned(f"torch.add({RANGE}, end)"), ELSEWHERE),
    "from where the call ends": (learned("torch.arange(end, end + rows)"), ELSEWHERE),
    "and their number": (learned(f"{RANGE} + rows"), FROM_THE_SAME),
    "and where the call begins, twice": (learned(f"{RANGE} + start + start"), ELSEWHERE),
    "from 0 to the last in equal steps": (learned("torch.linspace(0, rows - 1, rows).long()"), FROM_THE_SAME),
    "as far behind as there are": (learned("torch.arange(start, end) + rows"), ELSEWHERE),
    "and the length of the cache": (learned(f"{RANGE} + key_cache.shape[2]"), FROM_THE_SAME),
    "at the end of all places": (learned(f"{RANGE} + (CONTEXT - rows)"), FROM_THE_SAME),
    "and nothing of a number": (learned(f"{RANGE} + at * 0"), FROM_THE_SAME),
    "and a number at where the call ends": (learned(f"{RANGE} + at + end"), ELSEWHERE),
    "in steps of two from where the call begins": (learned(f"{RANGE} * 2 + start"), ELSEWHERE),
    "a running sum": (learned("torch.ones(1, rows, dtype=torch.long).cumsum(1) - 1"), FROM_THE_SAME),
    "a part of a table behind the call": (turned("TABLE[end : end + rows]"), ELSEWHERE),
    "a part of a table by its length": (turned("TABLE[rows : rows + rows]"), FROM_THE_SAME),
    "a part of a table from a row": (turned("TABLE[4 : 4 + rows]"), FROM_THE_SAME),
    "the end of a table": (turned("TABLE[CONTEXT - rows :]"), FROM_THE_SAME),
    "the first part of a table": (turned("TABLE.split([rows, CONTEXT - rows])[0]"), FROM_THE_SAME),
    "where tokens say so, or none": (learned(f"torch.where(input_ids > 3, {RANGE}, 0)"), FROM_THE_SAME),
    "where tokens say so": (learned(f"{RANGE} * (input_ids > 3)"), FROM_THE_SAME),
    "a number where tokens say so": (
        mutate(learned("torch.where(input_ids == 0, position, 0)"), *NAMED),
        "one position (`position`)",
    ),
    "no more than where the call begins": (learned(f"({RANGE} + start).clamp(max=start)"), ONE),
    "the least of them and where the call begins": (
        learned(f"torch.minimum({RANGE} + start, torch.tensor(start))"),
        ONE,
    ),
    "no more than a number that goes in": (learned(f"torch.minimum({RANGE} + at, at)"), ONE),
    "no more than one behind the first": (learned(f"({RANGE} + start).clamp(max=start + 1)"), OTHERS),
    "all but the last": (learned(f"({RANGE} + start).clamp(max=end - 2)"), OTHERS),
    "no less than the last": (learned(f"({RANGE} + start).clamp(min=end - 1)"), ONE),
    "nothing of them": (learned(f"({RANGE} + start) * 0 + start"), ONE),
    "nothing of them and a number that goes in": (learned(f"({RANGE} + at) * 0 + at"), ONE),
    "a part of their number": (learned(f"start + {RANGE} // rows"), ONE),
    "no more than 0": (learned(f"{RANGE}.clamp(max=0) + start"), ONE),
    "given ones, no more than the first": (given("position_ids[:, start:].clamp(max=start)"), ONE),
    "given ones, the least of them and the first": (
        given("torch.minimum(position_ids[:, start:], position_ids[:, start : start + 1])"),
        ONE,
    ),
    "given ones, nothing of them": (given("position_ids[:, start:] * 0 + start"), ONE),
    "given ones, from the largest on": (given(f"position_ids.max() + {RANGE}[None]"), ELSEWHERE),
    "given ones, from the least on": (given(f"position_ids.amin() + {RANGE}[None]"), FROM_THE_SAME),
    "given ones, put a place on": (
        given("nn.functional.pad(position_ids[:, start:], (1, 0))[:, :-1]"),
        OTHERS,
    ),
    "given ones, less their numbers": (given(f"position_ids[:, start:] - {RANGE}"), ONE),
    "the first of given ones by their numbers": (given(f"position_ids[:, {RANGE}]"), FROM_THE_SAME),
    "the first of given ones, selected": (given(f"position_ids.index_select(1, {RANGE})"), FROM_THE_SAME),
    "the first of given ones, gathered": (given(f"position_ids.gather(1, {RANGE}[None])"), FROM_THE_SAME),
    "the first part of given ones": (given("position_ids.split([rows, start], 1)[0]"), FROM_THE_SAME),
    "given ones in reverse": (given("position_ids[:, start:].flip(1)"), ELSEWHERE),
    "given ones from the end": (given("position_ids.flip(1)[:, :rows]"), ELSEWHERE),
    "given ones by their size from the largest": (given("position_ids[:, start:].sort(descending=True)[0]"), ELSEWHERE),
    "given ones, turned": (given("position_ids[:, start:].roll(1, 1)"), OTHERS),
    "given ones by numbers that go down": (given(f"position_ids[:, end - 1 - {RANGE}]"), ELSEWHERE),
    "numbers that go down": (learned(f"end - 1 - {RANGE}"), ELSEWHERE),
    "a range that goes down": (learned("torch.arange(end - 1, start - 1, -1)"), ELSEWHERE),
    "in reverse": (learned(f"(start + {RANGE}).flip(0)"), ELSEWHERE),
    "upside down": (learned(f"(start + {RANGE}).flipud()"), ELSEWHERE),
}


@pytest.mark.parametrize("name", sorted(WRONG))
def test_numbers_of_other_rows(tmp_path: Path, name: str) -> None:
    script, why = WRONG[name]
    judgement = judged(tmp_path, script)
    assert judgement.verdict is Verdict.UNRESOLVED, judgement
    assert any(why in reason.message for reason in judgement.reasons), judgement.reasons


RIGHT = {
    "and where the call begins": learned(f"{RANGE} + start"),
    "and where the call begins, behind padding": learned(f"{RANGE} + start + 2"),
    "and where the call ends, less their number": learned(f"{RANGE} - rows + end"),
    "from where the call begins": learned("torch.arange(start, start + rows)"),
    "the last of all": learned("torch.arange(end)[-rows:]"),
    "the last of all there may be": learned("torch.arange(CONTEXT)[start:end]"),
    "to the last in equal steps": learned("torch.linspace(start, end - 1, rows).long()"),
    "in steps of two": learned(f"({RANGE} + start) * 2"),
    "downwards": learned(f"CONTEXT - 1 - start - {RANGE}"),
    "up to the end of a table": learned(f"({RANGE} + start).clamp(max=CONTEXT - 1)"),
    "up to the last": learned(f"({RANGE} + start).clamp(max=end - 1)"),
    "from 0 on": learned(f"({RANGE} + start).clamp(min=0)"),
    "from the first on": learned(f"({RANGE} + start).clamp(min=start)"),
    "up to a number that goes in": learned(f"({RANGE} + start).clamp(max=at)"),
    "and a number that goes in": learned(f"at + {RANGE}"),
    "and a number that goes in, up to the end of a table": learned(f"(at + {RANGE}).clamp(0, CONTEXT - 1)"),
    "less a number that goes in": learned(f"{RANGE} + start - at"),
    "a running sum and a number": learned("at + torch.ones(1, rows, dtype=torch.long).cumsum(1) - 1"),
    "a number in each row and their numbers": learned(f"at.expand(1, rows) + {RANGE}"),
    "added in place": learned(f"{RANGE}.add_(start)"),
    "there and back": learned(f"(start + {RANGE}).flip(0).flip(0)"),
    "downwards, in reverse": learned(f"(end - 1 - {RANGE}).flip(0)"),
    "as tokens say, from where the call begins": learned(f"torch.where(input_ids > 0, {RANGE} + start, 0)"),
    "a number that is no position where tokens say so": learned("torch.where(input_ids == 0, at, 0)"),
    "the last part of a table": turned("TABLE.split([start, rows, CONTEXT - end])[1]"),
    "the last rows of the first": turned("TABLE[:end][-rows:]"),
    "a table by its numbers": turned("TABLE[torch.arange(end)[start:]]"),
    "given ones": given("position_ids[:, start:]"),
    "given ones by their numbers": given(f"position_ids[:, start + {RANGE}]"),
    "given ones by a range": given("position_ids[:, torch.arange(start, end)]"),
    "given ones, gathered": given(f"position_ids.gather(1, (start + {RANGE})[None])"),
    "given ones, selected": given("position_ids.index_select(1, torch.arange(start, end))"),
    "given ones, up to the largest": given(f"position_ids.max() - rows + 1 + {RANGE}[None]"),
    "given ones, narrowed": given("position_ids.narrow(1, start, rows)"),
    "the last part of given ones": given("position_ids.split([start, rows], 1)[1]"),
    "given ones, there and back": given("position_ids.flip(1)[:, :rows].flip(1)"),
    "given ones by their size": given("position_ids[:, start:].sort()[0]"),
    "given ones, no less than 0": given("position_ids[:, start:].clamp(0, CONTEXT - 1)"),
    "given ones where there are tokens": given("position_ids[:, start:] * (input_ids >= 0)"),
}


@pytest.mark.parametrize("name", sorted(RIGHT))
def test_numbers_of_the_rows_of_a_call(tmp_path: Path, name: str) -> None:
    judgement = judged(tmp_path, RIGHT[name])
    assert judgement.verdict is Verdict.ELIGIBLE, [f.message for f in judgement.reasons]


def test_numbers_are_held_against_where_a_range_writes(tmp_path: Path) -> None:
    written = "        key_cache[:, :, torch.arange(rows) + at[0, 0]] = k\n"
    wrong = mutate(learned(f"{RANGE} + at + rows"), (WRITE, written))
    right = mutate(learned(f"{RANGE} + at"), (WRITE, written))
    for script, verdict in ((wrong, Verdict.UNRESOLVED), (right, Verdict.ELIGIBLE)):
        kept = mutate(
            script,
            ("        value_cache[:, :, start:end] = v\n", written.replace("key", "value").replace("= k", "= v")),
        )
        assert judged(tmp_path, kept).verdict is verdict


def test_a_table_that_is_kept_is_no_position_where_it_is_cut_by_settings(tmp_path: Path) -> None:
    script = mutate(learned("torch.arange(rows) + start"), (HEAD, HEAD + "        self.cos = self.cos[4 : 4 + EACH]\n"))
    assert judged(tmp_path, script).verdict is Verdict.ELIGIBLE
