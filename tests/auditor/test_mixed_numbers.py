"""Numbers of rows that were sorted, counted, put together anew or chosen: what one row has hangs on the others."""

from __future__ import annotations

from pathlib import Path

import pytest

from rules.verdict import Verdict
from tests.auditor.support import judged, mutate
from tests.auditor.test_attacks_positions import ONE_POSITION, WRITE
from tests.auditor.test_progressions import ELSEWHERE, FROM_THE_SAME, ONE, OTHERS, RANGE, given, learned

LAST = "position_ids[:, start:]"
MIXED = "rows of the query are mixed"
EVEN, ODD = f"{LAST}[:, ::2]", f"{LAST}[:, 1::2]"


def of_rows(numbers: str, *edits: tuple[str, str]) -> str:
    """The decoder, with queries and keys turned by the angles of numbers that are made of one for each row."""
    lines = (
        f"angles = ({numbers})[..., None] * self.inv",
        "q, k = turned(q, angles.cos(), angles.sin()), turned(k, angles.cos(), angles.sin())",
    )
    given_names = (
        ("input_ids, at, mask", "input_ids, each, mask"),
        ('"at": torch.zeros(1, 1, dtype', '"each": torch.zeros(1, 4, dtype'),
        ('"at": None', '"each": {1: rows}'),
        ('"at", "mask"', '"each", "mask"'),
    )
    write = (WRITE, "".join(f"        {line}\n" for line in lines) + WRITE)
    return mutate(ONE_POSITION, *given_names, write, *edits)


def halves(joined: str) -> str:
    """Two halves of given positions, put together like this."""
    return given(f"(lambda a, b: {joined})(*{LAST}.chunk(2, -1))")


SEES = "(torch.arange(end)[None] <= torch.arange(start, end)[:, None])"
AMONG = "(torch.arange(rows)[None] <= torch.arange(rows)[:, None])"
WRONG = {
    "where they stand by their size": (given(f"{LAST}.argsort()"), FROM_THE_SAME),
    "where they stand by their size, from the largest": (given(f"torch.argsort({LAST}, -1, True)"), FROM_THE_SAME),
    "where they stand by their size, of numbers that nobody names": (of_rows("each.argsort(-1)"), OTHERS),
    "places of the largest": (given(f"{LAST}.topk(rows).indices"), FROM_THE_SAME),
    "the largest": (given(f"{LAST}.topk(rows).values"), ELSEWHERE),
    "the largest of numbers that nobody names": (of_rows("each.topk(rows)[0]"), OTHERS),
    "places after a sort": (given(f"{LAST}.sort()[1]"), FROM_THE_SAME),
    "sorted from the largest": (of_rows("each.sort(descending=True)[0]"), OTHERS),
    "a running sum of them": (given(f"{LAST}.cumsum(1)"), OTHERS),
    "a running sum of a mask of them": (given(f"({LAST} >= 0).cumsum(1) - 1"), FROM_THE_SAME),
    "a running sum of numbers that nobody names": (of_rows("each.cumsum(1) - 1"), FROM_THE_SAME),
    "how many there are before each": (learned(f"{AMONG}.sum(-1) - 1"), FROM_THE_SAME),
    "how many there are before each, by a triangle": (
        learned("torch.ones(rows, rows).tril().sum(-1).long() - 1"),
        FROM_THE_SAME,
    ),
    "how many keys are behind each": (learned(f"(~{SEES}).sum(-1)"), FROM_THE_SAME),
    "the second half first": (halves("torch.cat((b, a), -1)"), OTHERS),
    "one half twice": (halves("torch.cat((a, a), -1)"), OTHERS),
    "halves side by side": (halves("torch.stack((a, b), -1).flatten(1)"), OTHERS),
    "a half by its length, twice": (given(f"torch.cat(({LAST}.split(rows // 2, -1)[0],) * 2, -1)"), OTHERS),
    "the first behind the last": (given(f"torch.cat(({LAST}[:, 1:], {LAST}[:, :1]), -1)"), OTHERS),
    "every other first": (given(f"torch.cat(({EVEN}, {ODD}), -1)"), OTHERS),
    "by numbers that were sorted": (given(f"{LAST}.gather(-1, {LAST}.argsort(descending=True))"), ELSEWHERE),
    "from 0 to 1 in equal steps": (learned("torch.linspace(0, 1, rows).long()"), OTHERS),
    "one of them for all": (given(f"{LAST}[:, torch.zeros(rows, dtype=torch.long)]"), ONE),
    "less for more rows": (given(f"{LAST}.float() / rows"), ONE),
    "less for more keys": (given(f"{LAST}.float() * (CONTEXT / end)"), ONE),
    "angles by how many keys there are": (
        mutate(
            given(LAST), (f"({LAST})[..., None] * self.inv", f"torch.outer({LAST}[0].float(), self.inv * (end / 64))")
        ),
        MIXED,
    ),
    "by the largest of all": (given(f"{LAST}.float() / position_ids.max()"), MIXED),
    "by the largest of all, by a function": (given(f"torch.div({LAST}.float(), position_ids.max())"), MIXED),
    "two rows at one place": (learned(f"{RANGE} // 2 + at"), OTHERS),
    "two rows at one place, by a function": (learned(f"torch.div({RANGE}, 2, rounding_mode='floor') + at"), OTHERS),
    "a remainder": (learned(f"{RANGE} % 4 + at"), OTHERS),
    "a remainder, by a function": (learned(f"torch.remainder({RANGE}, 4) + at"), OTHERS),
    "times a number that goes in": (learned(f"{RANGE} * at"), FROM_THE_SAME),
    "times a condition": (learned(f"{RANGE} * (at > 0)"), FROM_THE_SAME),
    "or none, as a number that goes in says": (learned(f"torch.where(at > 0, {RANGE}, 0)"), FROM_THE_SAME),
    "or none, by a method": (learned(f"{RANGE}.where(at > 0, 0)"), FROM_THE_SAME),
    "or others that begin anywhere": (learned(f"torch.where(at > 0, {RANGE}, {RANGE} + 1)"), FROM_THE_SAME),
    "or zeros": (learned(f"torch.where(at > 0, {RANGE}, torch.zeros(rows, dtype=torch.long))"), FROM_THE_SAME),
    "or none, where they are filled": (learned(f"{RANGE}.masked_fill(at[0] > 0, 0)"), FROM_THE_SAME),
}


@pytest.mark.parametrize("name", sorted(WRONG))
def test_numbers_that_hang_on_other_rows(tmp_path: Path, name: str) -> None:
    script, why = WRONG[name]
    judgement = judged(tmp_path, script)
    assert judgement.verdict is Verdict.UNRESOLVED, judgement
    assert any(why in reason.message for reason in judgement.reasons), judgement.reasons


RIGHT = {
    "by their size": given(f"{LAST}.sort()[0]"),
    "half of each": given(f"{LAST} // 2"),
    "a remainder of each": given(f"{LAST} % 4"),
    "halves as they were": halves("torch.cat((a, b), -1)"),
    "a number that goes in and those behind it": learned("torch.cat((at, at + 1 + torch.arange(rows - 1)), -1)"),
    "in two parts": given(f"torch.cat(({LAST}[:, :1], {LAST}[:, 1:]), -1)"),
    "the last of all": given("torch.cat((torch.arange(start), torch.arange(start, end)))[None][:, -rows:]"),
    "those of three sections": given(f"torch.stack(({LAST}, {LAST}, {LAST})).unbind(0)[0]"),
    "those of three sections behind one another": given(f"torch.cat(({LAST}, {LAST}, {LAST}), 0)[:1]"),
    "how many keys there are up to each": learned(f"{SEES}.sum(-1) - 1"),
    "how many keys there are up to each, by a triangle": learned(
        "torch.ones(rows, end).tril(start).sum(-1).long() - 1"
    ),
    "how many rows there are before each and where the call begins": learned(f"{AMONG}.sum(-1) - 1 + start"),
    "a running sum of a mask and where the call begins": given(f"({LAST} >= 0).cumsum(1) - 1 + start"),
    "a running sum of a mask of all": given("((position_ids >= 0).cumsum(1) - 1)[:, -rows:]"),
    "a running sum of a mask of all, without padding": given(
        "((position_ids >= 0).cumsum(1) - 1).masked_fill(position_ids < 0, 1)[:, start:]"
    ),
    "as they go in": of_rows("each"),
    "where they stand by their size, and where the call begins": learned(f"{RANGE}.argsort() + start"),
    "or those of the first call": learned(f"torch.where(at > 0, {RANGE} + start, {RANGE})"),
    "or where a number that goes in says": learned(f"torch.where(at > 0, {RANGE} + start, {RANGE} + at)"),
    "where they are no padding": learned(f"({RANGE} + start) * (at >= 0)"),
    "a number that is the same in all calls": learned(f"{RANGE} + start + 3 * 2"),
}


@pytest.mark.parametrize("name", sorted(RIGHT))
def test_numbers_that_are_those_of_each_row(tmp_path: Path, name: str) -> None:
    judgement = judged(tmp_path, RIGHT[name])
    assert judgement.verdict is Verdict.ELIGIBLE, [f.message for f in judgement.reasons]
