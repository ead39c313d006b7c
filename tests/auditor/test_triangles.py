"""Triangles as masks: the rows of a call stand behind what the cache holds, and the diagonal has to know it."""

from __future__ import annotations

from pathlib import Path

import pytest

from rules.verdict import Verdict
from tests.auditor.edits import Edit, instead
from tests.auditor.support import EXPORTER, judged, mutate

MASK = "        mask = position_ids[:, None, None, :] <= position_ids[:, None, start:, None]\n"
SEEN = "        self.out = nn.Linear(HIDDEN, HIDDEN)\n"
TABLE = "torch.ones(CONTEXT, CONTEXT, dtype=torch.bool).tril()"


def _mask(*lines: str) -> tuple[Edit, ...]:
    return (instead(MASK, *lines),)


def _of_table(code: str, table: str = TABLE) -> tuple[Edit, ...]:
    """A mask that is taken from a table of the module."""
    return (SEEN, f"{SEEN}        self.register_buffer('seen', {table})\n"), *_mask(f"mask = {code}")


def _where_many(line: str) -> tuple[Edit, ...]:
    """One token has no mask, as in a decoder that was written for one at a time; several have this one."""
    return _mask("mask = None", "if rows > 1:", f"    mask = {line}")


TRANSFORMERS = (
    "mask = torch.full((rows, end), -1e9)",
    "if rows != 1:",
    "    mask = torch.triu(mask, diagonal=1)",
)
LATER = "mask *= torch.arange(end) > position_ids[0, start:].reshape(-1, 1)"
FILLED = "torch.zeros(CONTEXT, CONTEXT).masked_fill(torch.ones(CONTEXT, CONTEXT).triu(1) > 0, -1e9)"

AT_THE_FIRST_KEY: dict[str, tuple[Edit, ...]] = {
    "below": _mask("mask = torch.ones(rows, end, dtype=torch.bool).tril()"),
    "above": _mask("mask = torch.full((rows, end), float('-inf')).triu(1)"),
    "above, by keyword": _mask("mask = torch.triu(torch.full((rows, end), float('-inf')), diagonal=1)"),
    "for several rows only": _where_many("torch.ones(rows, end, dtype=torch.bool).tril()"),
    "for several rows only, a window": _where_many("torch.ones(rows, end, dtype=torch.bool).tril().triu(-8)"),
    "the opposite of the other one": _mask("mask = ~torch.ones(rows, end, dtype=torch.bool).triu(1)"),
    "as numbers": _mask("mask = torch.where(torch.ones(rows, end, dtype=torch.bool).tril(), 0.0, -1e9)"),
    "filled in": _mask("mask = torch.zeros(rows, end).masked_fill(torch.ones(rows, end).triu(1) > 0, -1e9)"),
    "in place": _mask("mask = torch.ones(rows, end, dtype=torch.bool)", "mask.tril_()"),
    "in place, above": _mask("mask = torch.full((rows, end), -1e9)", "mask.triu_(1)", "mask.mul_(2)"),
    "and the padding": _mask(*TRANSFORMERS, "mask = mask * (position_ids > 3)"),
    "without what comes after it": _mask(*TRANSFORMERS),
    "PyTorch's own": _mask("mask = torch.nn.attention.bias.causal_upper_left(rows, end)"),
    "PyTorch's own, by its size": _mask("mask = torch.nn.attention.bias.causal_upper_left(*(rows, end))"),
    "the first rows of a table": _of_table("self.seen[:rows, :end]"),
    "the first rows of a table, from 0": _of_table("self.seen[0:rows, 0:end]"),
    "the first rows of a table, one axis at a time": _of_table("self.seen[:rows][:, :end]"),
    "the first rows of a table of four axes": _of_table("self.seen[:, :, :rows, :end]", f"{TABLE}[None, None]"),
    "the first rows of a table, narrowed": _of_table("self.seen.narrow(0, 0, rows).narrow(1, 0, end)"),
    "the first rows of a table of numbers": _of_table("self.seen[:rows, :end]", FILLED),
    "the first rows of a table that is made in place": (
        (
            SEEN,
            f"{SEEN}        seen = torch.full((CONTEXT, CONTEXT), -1e9)\n"
            "        seen.triu_(1)\n        self.seen = seen\n",
        ),
        *_mask("mask = self.seen[:rows, :end]"),
    ),
    "the first rows of a table for several rows only": _of_table(
        "self.seen[:rows, :end] if rows > 1 else torch.ones(1, end, dtype=torch.bool)"
    ),
}


@pytest.mark.parametrize("name", sorted(AT_THE_FIRST_KEY))
def test_a_triangle_that_begins_at_the_first_key_in_every_call(tmp_path: Path, name: str) -> None:
    judgement = judged(tmp_path, mutate(EXPORTER, *AT_THE_FIRST_KEY[name]))
    assert judgement.verdict is Verdict.UNRESOLVED


BEHIND_THE_CACHE: dict[str, tuple[Edit, ...]] = {
    "below": _mask("mask = torch.ones(rows, end, dtype=torch.bool).tril(end - rows)"),
    "above": _mask("mask = torch.full((rows, end), float('-inf')).triu(diagonal=start + 1)"),
    "for several rows only": _where_many("torch.ones(rows, end, dtype=torch.bool).tril(start)"),
    "a window": _mask("mask = torch.ones(rows, end, dtype=torch.bool).tril(start).triu(start - 8)"),
    "a window of another mask": _mask(MASK.strip(), "mask = mask & torch.ones(rows, end, dtype=torch.bool).triu(-4)"),
    "of the call's own rows, beside what is held": _mask(
        "own = torch.full((rows, rows), -1e9).triu(1)", "mask = torch.hstack([torch.zeros(rows, start), own])"
    ),
    "of the call's own rows, padded": _mask(
        "mask = nn.functional.pad(torch.full((rows, rows), -1e9).triu(1), (start, 0))"
    ),
    "with what comes after it": _mask(*TRANSFORMERS, LATER),
    "with what comes after it, in place": _mask(*TRANSFORMERS, LATER.replace(" *= ", ".mul_(") + ")"),
    "PyTorch's own": _mask("mask = torch.nn.attention.bias.causal_lower_right(rows, end)"),
    "rows of a table": _of_table("self.seen[start:end, :end]"),
    "rows of a table, one axis at a time": _of_table("self.seen[end - rows : end][:, :end]"),
    "rows of a table, narrowed": _of_table("self.seen.narrow(0, start, rows).narrow(1, 0, end)"),
    "rows of a table of numbers": _of_table("self.seen[start:end, :end]", FILLED),
    "rows of a table by their positions": _of_table("self.seen[position_ids[0, start:]][:, :end]"),
    "rows of a table, selected": _of_table("self.seen.index_select(0, position_ids[0, start:])[:, :end]"),
}


@pytest.mark.parametrize("name", sorted(BEHIND_THE_CACHE))
def test_a_triangle_that_knows_what_the_cache_holds(tmp_path: Path, name: str) -> None:
    judgement = judged(tmp_path, mutate(EXPORTER, *BEHIND_THE_CACHE[name]))
    assert judgement.verdict is Verdict.ELIGIBLE, [f.message for f in judgement.reasons]
