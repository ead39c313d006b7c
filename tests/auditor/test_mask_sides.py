"""Masks that hide keys: those behind each row, as they have to, those before it, or a window that all rows share."""

from __future__ import annotations

from pathlib import Path

import pytest

from rules.verdict import Verdict
from tests.auditor.edits import Edit, before, instead
from tests.auditor.support import EXPORTER, indented, judged, line_of, mutate
from tests.auditor.test_attacks_masks import ACROSS, ADDED, ATTENTION, SCORES, WEIGHED
from tests.auditor.test_progressions import FROM_THE_SAME

KEYS, ROWS = "torch.arange(end)[None]", "torch.arange(start, end)[:, None]"
CAUSAL, WRONG = f"{KEYS} <= {ROWS}", f"{KEYS} >= {ROWS}"
WINDOW, SHARED = f"{KEYS} > {ROWS} - 128", f"{KEYS} >= end - 128"
PADDING = "(position_ids >= 0)[:, None, None, :]"
OUT = "        self.out = nn.Linear(HIDDEN, HIDDEN)\n"
MIXED = "rows of the query are mixed"
BEHIND = "a mask shows each row of the query the keys behind it"


def masked(code: str, *lines: str) -> tuple[Edit, ...]:
    """Attention with this mask."""
    return (instead(ATTENTION, *lines, ATTENTION.strip().replace(", mask)", f", {code})")),)


def by_hand(*lines: str) -> tuple[Edit, ...]:
    """Attention written out, with `lines` between the scores and the softmax."""
    return (instead(ATTENTION, SCORES, *lines, WEIGHED),)


def kept(*lines: str, cut: str = "[start:end, :end]") -> tuple[Edit, ...]:
    """Attention with a part of a table that the module keeps."""
    return (before(OUT, indented(lines)), *masked(f"self.mask{cut}"))


def buffer(code: str, *then: str, cut: str = "[start:end, :end]") -> tuple[Edit, ...]:
    return kept(f'self.register_buffer("mask", {code})', *then, cut=cut)


BROKEN: dict[str, tuple[Edit, ...]] = {
    "no less than each row": masked(WRONG),
    "more than each row": masked(WRONG.replace(">=", ">")),
    "rows that are no more": masked(f"{ROWS} <= {KEYS}"),
    "by a function": masked(f"torch.ge({KEYS}, {ROWS})"),
    "by a method": masked(f"{KEYS}.ge({ROWS})"),
    "of positions that go in": masked("position_ids[:, None, None, :] >= position_ids[:, None, start:, None]"),
    "of a row further on": masked(f"{CAUSAL} + 1"),
    "the opposite": masked(f"~({CAUSAL})"),
    "the opposite, by a function": masked(f"torch.logical_not({CAUSAL})"),
    "the opposite, by a comparison": masked(f"({CAUSAL}).int() == 0"),
    "expanded": masked(f"({WRONG}).expand(1, 1, rows, end)"),
    "and padding": masked(f"({WRONG}) & {PADDING}"),
    "a window and nothing else": masked(WINDOW),
    "by a distance": masked(f"({ROWS} - {KEYS}) <= 0"),
    "by a distance, the other way round": masked(f"({KEYS} - {ROWS}) >= 0"),
    "by a distance to the next row": masked(f"({ROWS} - {KEYS}) >= -1"),
    "a window by a distance and nothing else": masked(f"torch.sub({ROWS}, {KEYS}) < 128"),
    "a slope for each distance and nothing else": masked(f"0.1 * ({KEYS} - {ROWS})"),
    "a slope for each distance and the wrong bias": masked(
        f"0.1 * ({KEYS} - {ROWS}) + torch.where({WRONG}, 0.0, -1e9)"
    ),
    "or the keys of the call": masked(f"({CAUSAL}) | ({KEYS} >= start)"),
    "or the keys of the call, by a function": masked(f"torch.logical_or({CAUSAL}, {KEYS} > start - 1)"),
    "what was there before and all new ones": masked(
        "torch.cat((torch.ones(rows, start, dtype=torch.bool), torch.ones(rows, rows, dtype=torch.bool)), -1)"
    ),
    "what was there before and an upper triangle": masked(
        "torch.cat((torch.ones(rows, start, dtype=torch.bool), torch.ones(rows, rows, dtype=torch.bool).triu()), -1)"
    ),
    "what was there before and a lower triangle of a bias": masked(
        "torch.cat((torch.zeros(rows, start), torch.full((rows, rows), -1e9).tril(-1)), -1)"
    ),
    "a window or causal": masked(f"({WINDOW}) | ({CAUSAL})"),
    "the upper triangle of ones": masked("torch.ones(rows, end, dtype=torch.bool).triu(start)"),
    "a lower triangle that is too wide": masked("torch.ones(rows, end, dtype=torch.bool).tril(start + 1)"),
    "the lower triangle of a bias": masked("torch.full((rows, end), float('-inf')).tril(start)"),
    "the lower triangle of the least number": masked("torch.full((rows, end), torch.finfo(q.dtype).min).tril(start)"),
    "an upper triangle of a bias that is too narrow": masked("torch.full((rows, end), -1e9).triu(start + 2)"),
    "ones as a bias": masked("torch.ones(rows, end).tril(start)"),
    "the bias of the others": masked(f"torch.where({CAUSAL}, -1e9, 0.0)"),
    "a bias by the wrong ones": masked(f"torch.where({WRONG}, 0.0, float('-inf'))"),
    "a bias by a product": masked(f"({CAUSAL}).float() * -1e9"),
    "a bias by a logarithm": masked(f"({WRONG}).float().log()"),
    "a bias that is filled": masked(f"torch.zeros(rows, end).masked_fill({CAUSAL}, -1e9)"),
    "a bias that is filled in place": masked(
        "bias", "bias = torch.zeros(rows, end)", f"bias.masked_fill_({CAUSAL}, -1e9)"
    ),
    "scores that are filled": by_hand(f"scores = scores.masked_fill({CAUSAL}, -1e9)"),
    "scores that are filled in place": by_hand(f"scores.masked_fill_({CAUSAL}, -1e9)"),
    "scores that are filled with hardly less": by_hand(f"scores = scores.masked_fill(~({CAUSAL}), -1.0)"),
    "scores or a number": by_hand(f"scores = torch.where({WRONG}, scores, -1e9)"),
    "a number or scores": by_hand(f"scores = torch.where({CAUSAL}, torch.tensor(-1e9), scores)"),
    "scores and a bias": by_hand(f"scores = scores + torch.where({WRONG}, 0.0, -1e9)"),
    "scores and a bias, in place": by_hand(f"scores += torch.where({WRONG}, 0.0, -1e9)"),
    "scores and a bias, by a method": by_hand(f"scores.add_(torch.where({WRONG}, 0.0, -1e9))"),
    "scores less a bias": by_hand(f"scores = scores - ({CAUSAL}).float() * 1e9"),
    "scores times a mask, less its opposite": by_hand(
        f"seen = ({WRONG}).float()", "scores = scores * seen - 1e4 * (1 - seen)"
    ),
    "weights times a mask": (instead(ATTENTION, SCORES, WEIGHED.replace("(-1)", f"(-1) * ({WRONG})")),),
    "a table of ones": buffer("torch.ones(CONTEXT, CONTEXT, dtype=torch.bool)"),
    "a table of zeros": buffer("torch.zeros(CONTEXT, CONTEXT)"),
    "a table of ones that is no buffer": kept("self.mask = torch.ones(CONTEXT, CONTEXT).bool()"),
    "an upper triangle in a table": buffer("torch.triu(torch.ones(CONTEXT, CONTEXT)).bool()"),
    "an upper triangle in a table, by rows": buffer(
        "torch.triu(torch.ones(CONTEXT, CONTEXT)).bool()", cut="[torch.arange(start, end), :end]"
    ),
    "a lower triangle of a bias in a table": buffer("torch.full((CONTEXT, CONTEXT), -1e9).tril()"),
    "a comparison in a table": buffer("torch.arange(CONTEXT)[None] >= torch.arange(CONTEXT)[:, None]"),
    "a shared window": masked(f"({CAUSAL}) & ({SHARED})"),
    "a shared window, the other way round": masked(f"({CAUSAL}) & (end - 129 < {KEYS})"),
    "a shared window before the call": masked(f"({CAUSAL}) & ({KEYS} >= start - 128)"),
    "a shared window, by its opposite": masked(f"({CAUSAL}) & ~({KEYS} < end - 128)"),
    "a shared window by the last position": masked(
        f"({CAUSAL}) & (position_ids[:, None, None, :] > position_ids[:, None, None, -1:] - 128)"
    ),
    "a shared window by the largest position": masked(f"({CAUSAL}) & ({KEYS} > position_ids.max() - 128)"),
    "a shared window as a bias": masked(f"torch.where({CAUSAL}, 0.0, -1e9) + torch.where({SHARED}, 0.0, -1e9)"),
    "a shared window and the first keys": masked(f"({CAUSAL}) & (({KEYS} < 4) | ({SHARED}))"),
    "a window of as many keys as rows": masked(f"({CAUSAL}) & ({KEYS} > {ROWS} - rows)"),
    "a window of half the keys": masked(f"({CAUSAL}) & ({KEYS} > {ROWS} - end // 2)"),
    "a window of as many keys as rows, by a distance": masked(f"({CAUSAL}) & (({ROWS} - {KEYS}) < rows)"),
    "the first half of all keys": masked(f"({CAUSAL}) & ({KEYS} < end // 2)"),
    "more keys for more rows": masked(f"({CAUSAL}) & ({KEYS} < 64 * rows)"),
    "the chunk of the last key": masked(f"({CAUSAL}) & ({KEYS} // 64 == (end - 1) // 64)"),
    "every other key from the last on": masked(f"({CAUSAL}) & ({KEYS} % 2 == end % 2)"),
    "and rows from 0": masked(f"({CAUSAL}) & ({KEYS} >= torch.arange(rows)[:, None])"),
    "every other key from rows that begin at 0": masked(
        f"({CAUSAL}) & ((torch.arange(rows)[:, None] - {KEYS}) % 2 == 0)"
    ),
    "a bias by the distance from rows that begin at 0": masked(
        f"torch.where({CAUSAL}, -0.1 * ({KEYS} - torch.arange(rows)[:, None]).abs(), -1e9)"
    ),
    "a bias that is scaled by how many rows there are": masked(
        f"torch.where({CAUSAL}, 0.1 * ({KEYS} - {ROWS}) * rows, -1e9)"
    ),
    "a bias that is scaled by a root": masked(f"torch.where({CAUSAL}, ({KEYS} - {ROWS}) * 0.1 * (end ** 0.5), -1e9)"),
    "a bias that is scaled by how many keys there are": masked(f"torch.where({CAUSAL}, ({KEYS} - {ROWS}) / end, -1e9)"),
    "or what the last row sees": masked("seen | seen[-1:]", f"seen = {CAUSAL}"),
    "or what the last row sees, by its number": masked("seen | seen[-1]", f"seen = {CAUSAL}"),
    "and what the first row sees": masked("seen & seen[:1]", f"seen = {CAUSAL}"),
    "rows in reverse": masked(f"({CAUSAL}).flip(0)"),
    "rows that were rolled": masked(f"({CAUSAL}).roll(1, 0)"),
    "rows by numbers that go down": masked(f"({CAUSAL})[torch.arange(rows - 1, -1, -1)]"),
    "rows by numbers that were halved": masked(f"({CAUSAL})[torch.arange(rows) // 2]"),
    "rows that are selected in reverse": masked(f"({CAUSAL}).index_select(0, torch.arange(rows).flip(0))"),
    "a shared window, filled": by_hand(
        f"scores = scores.masked_fill(~({CAUSAL}), -1e9).masked_fill({KEYS} < end - 128, -1e9)"
    ),
}


@pytest.mark.parametrize("name", sorted(BROKEN))
def test_keys_that_a_row_must_not_see_or_does_not_see_by_itself(tmp_path: Path, name: str) -> None:
    judgement = judged(tmp_path, mutate(EXPORTER, *BROKEN[name]))
    assert judgement.verdict is Verdict.UNRESOLVED
    assert any(said in judgement.reasons[-1].message for said in (BEHIND, MIXED, FROM_THE_SAME)), judgement.reasons


HARMLESS: dict[str, tuple[Edit, ...]] = {
    "no more than each row": masked(CAUSAL),
    "less than the next row": masked(f"{KEYS} < {ROWS} + 1"),
    "less than each row": masked(f"{KEYS} < {ROWS}"),
    "rows that are no less": masked(f"{ROWS} >= {KEYS}"),
    "by a function": masked(f"torch.le({KEYS}, {ROWS})"),
    "the opposite of what is behind": masked(f"~({WRONG.replace('>=', '>')})"),
    "by a distance": masked(f"({ROWS} - {KEYS}) >= 0"),
    "by a distance, the other way round": masked(f"0 >= ({KEYS} - {ROWS})"),
    "by a distance within the call": masked(f"({KEYS} - torch.arange(rows)[:, None]) <= start"),
    "by a distance within the call, the other way round": masked(f"(torch.arange(rows)[:, None] - {KEYS}) >= -start"),
    "what was there before, or by numbers within the call": masked(
        f"({KEYS} < start) | (({KEYS} - start) <= torch.arange(rows)[:, None])"
    ),
    "and what the last row sees": masked("seen & seen[-1:]", f"seen = {CAUSAL}"),
    "in chunks": masked(f"({CAUSAL}) & ({KEYS} // 64 == {ROWS} // 64)"),
    "every other key": masked(f"({CAUSAL}) & (({ROWS} - {KEYS}) % 2 == 0)"),
    "a bias by the distance": masked(f"torch.where({CAUSAL}, -0.1 * ({KEYS} - {ROWS}).abs(), -1e9)"),
    "a slope for each key, filled": masked(f"(0.5 * {KEYS}).masked_fill(~({CAUSAL}), float('-inf'))"),
    "a mask by the library's own steps": masked(
        "seen[None, None]",
        "seen = torch.full((rows, end), torch.finfo(q.dtype).min)",
        "if rows != 1:",
        "    seen = torch.triu(seen, diagonal=1)",
        f"seen *= torch.arange(end) > {ROWS}",
    ),
    "by a distance and a window": masked(f"(({ROWS} - {KEYS}) >= 0) & (({ROWS} - {KEYS}) < 128)"),
    "a slope for each distance and a bias": masked(f"0.1 * ({KEYS} - {ROWS}) + torch.where({CAUSAL}, 0.0, -1e9)"),
    "what was there before and a lower triangle": masked(
        "torch.cat((torch.ones(rows, start, dtype=torch.bool), torch.ones(rows, rows, dtype=torch.bool).tril()), -1)"
    ),
    "what was there before and an upper triangle of a bias": masked(
        "torch.cat((torch.zeros(rows, start), torch.full((rows, rows), -1e9).triu(1)), -1)"
    ),
    "a comparison with 1": masked(f"({CAUSAL}).int() == 1"),
    "and padding": masked(f"({CAUSAL}) & {PADDING}"),
    "and a window": masked(f"({CAUSAL}) & ({WINDOW})"),
    "and a window, by a function": masked(f"torch.logical_and({WINDOW}, {CAUSAL})"),
    "or what was there before": masked(f"({CAUSAL}) | ({KEYS} < start)"),
    "and all keys": masked(f"({CAUSAL}) & ({KEYS} < end)"),
    "and all keys up to the last": masked(f"({CAUSAL}) & ({KEYS} <= end - 1)"),
    "and the first keys or a window": masked(f"({CAUSAL}) & (({KEYS} < 4) | ({WINDOW}))"),
    "a bias": masked(f"torch.where({CAUSAL}, 0.0, float('-inf'))"),
    "a bias of the others": masked(f"(1.0 - ({CAUSAL}).float()) * torch.finfo(q.dtype).min"),
    "a bias of the others, less 1": masked(f"(({CAUSAL}).float() - 1.0) * 1e9"),
    "a bias by a logarithm": masked(f"({CAUSAL}).float().log()"),
    "a bias by a table that is filled": masked("bias", "bias = torch.full((rows, end), -1e9)", f"bias[{CAUSAL}] = 0.0"),
    "a bias that is filled in place": masked(
        "bias", "bias = torch.full((rows, end), -1e9)", f"bias.masked_fill_({CAUSAL}, 0)"
    ),
    "two biases": masked(f"torch.where({CAUSAL}, 0.0, -1e9) + torch.where({WINDOW}, 0.0, -1e9)"),
    "scores that are filled": by_hand(f"scores = scores.masked_fill(~({CAUSAL}), torch.finfo(scores.dtype).min)"),
    "scores that are filled twice": by_hand(
        f"scores = scores.masked_fill(~({WINDOW}), -1e9)", f"scores = scores.masked_fill(~({CAUSAL}), -1e9)"
    ),
    "scores or a number": by_hand(f"scores = torch.where({CAUSAL}, scores, -1e9)"),
    "a number or scores": by_hand(f"scores = torch.where(~({CAUSAL}), -1e9, scores)"),
    "scores less a bias": by_hand(f"scores = scores - (1 - ({CAUSAL}).float()) * 1e9"),
    "scores times a mask, less its opposite": by_hand(
        f"seen = ({CAUSAL}).float()", "scores = scores * seen - 1e4 * (1 - seen)"
    ),
    "weights times a mask": (instead(ATTENTION, SCORES, WEIGHED.replace("(-1)", f"(-1) * ({CAUSAL})")),),
    "a lower triangle in a table": buffer("torch.tril(torch.ones(CONTEXT, CONTEXT)).bool()"),
    "a lower triangle in a table, by rows": buffer(
        "torch.tril(torch.ones(CONTEXT, CONTEXT)).bool()", cut="[torch.arange(start, end), :end]"
    ),
    "a lower triangle of a table, in place": buffer(
        "torch.ones(CONTEXT, CONTEXT, dtype=torch.bool)", "self.mask.tril_()"
    ),
    "a lower triangle, in place before": kept(
        "mask = torch.ones(CONTEXT, CONTEXT, dtype=torch.bool)", "mask.tril_()", "self.register_buffer('mask', mask)"
    ),
    "a table that is set row by row": buffer(
        "torch.zeros(CONTEXT, CONTEXT, dtype=torch.bool)",
        "for i in range(CONTEXT):",
        "    self.mask[i, : i + 1] = 1",
    ),
    "an upper triangle of a bias in a table": buffer("torch.full((CONTEXT, CONTEXT), -1e9).triu(1)"),
    "a comparison in a table": buffer("torch.arange(CONTEXT)[None] <= torch.arange(CONTEXT)[:, None]"),
    "a comparison in a table, turned over": buffer("(torch.arange(CONTEXT)[None] >= torch.arange(CONTEXT)[:, None]).T"),
    "a bias that is learned and a mask": (
        before(OUT, indented("self.bias = nn.Parameter(torch.zeros(CONTEXT, CONTEXT))")),
        *by_hand("scores = scores + self.bias[start:end, :end]", f"scores = scores.masked_fill(~({CAUSAL}), -1e9)"),
    ),
}


@pytest.mark.parametrize("name", sorted(HARMLESS))
def test_keys_that_a_row_sees_by_itself(tmp_path: Path, name: str) -> None:
    judgement = judged(tmp_path, mutate(EXPORTER, *HARMLESS[name]))
    assert judgement.verdict is Verdict.ELIGIBLE, [f.message for f in judgement.reasons]


SEEN = "torch.arange(start + s)[:, None] {} torch.arange(start, start + s)[None]"


@pytest.mark.parametrize(
    ("bias", "verdict"),
    [
        (f"torch.where({SEEN.format('<=')}, 0.0, -1e9)", Verdict.ELIGIBLE),
        (f"torch.where({SEEN.format('>=')}, 0.0, -1e9)", Verdict.UNRESOLVED),
        ("torch.full((s, start + s), -1e9).triu(start + 1).T", Verdict.ELIGIBLE),
        ("torch.full((s, start + s), -1e9).tril(start).T", Verdict.UNRESOLVED),
        ("torch.full((start + s, s), -1e9).tril(-start - 1)", Verdict.ELIGIBLE),
        ("torch.full((start + s, s), -1e9).triu(-start)", Verdict.UNRESOLVED),
    ],
)
def test_masks_where_rows_come_last(tmp_path: Path, bias: str, verdict: Verdict) -> None:
    assert judged(tmp_path, mutate(ACROSS, (ADDED, f"        w = w + {bias}\n"))).verdict is verdict


@pytest.mark.parametrize(("mask", "said"), [(WRONG, BEHIND), (f"({CAUSAL}) & ({SHARED})", MIXED)])
def test_the_line_of_the_mask_is_cited(tmp_path: Path, mask: str, said: str) -> None:
    script = mutate(EXPORTER, *masked("seen", f"seen = {mask}"))
    reason = judged(tmp_path, script).reasons[-1]
    assert reason.rule == "unknown-logits"
    assert said in reason.message
    assert {line_of(script, "seen = "), line_of(script, ", seen)")} & {e.line for e in reason.evidence}
