"""One row put into a cache by a mask with a single one, and what looks like it: gates, decays, masks of many ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from rules.facts import Role
from rules.fixes import FixedBy, judge_graph
from rules.verdict import Verdict, judge
from tests.auditor.edits import ids, keys, state_of_keys
from tests.auditor.support import EXPORTER, graph_of, mutate, scan_text

PINNED = ids("None")
ONE = ("1 if args.static else 8", "1")
NUMBERS = "numbers = torch.arange(key_cache.shape[2])[None, None, :, None]"
AT = "at = (numbers == start).to(k.dtype)"
ONE_HOT = "at = nn.functional.one_hot(position_ids[:, -1], key_cache.shape[2]).float().view(1, 1, -1, 1)"
KEEP, ADD = "key_cache.mul_(1 - at)", "key_cache.add_(k * at)"
PUT = "key_cache[:] = key_cache * (1.0 - at) + k * at"


RIGHT = {
    "a mask with a single one": keys(NUMBERS, AT, PUT),
    "by view": keys("numbers = torch.arange(key_cache.shape[2]).view(1, 1, -1, 1)", AT, PUT),
    "the other way round": keys(NUMBERS, AT, "key_cache[:] = at * k + (1 - at) * key_cache"),
    "by copy_": keys(NUMBERS, AT, "key_cache.copy_(key_cache * (1.0 - at) + k * at)"),
    "a position that is an input": keys(NUMBERS, "at = (numbers == position_ids[:, -1:]).float()", PUT),
    "one hot": keys(ONE_HOT, PUT),
    "one hot, of a number": keys(
        "at = nn.functional.one_hot(torch.tensor(start), key_cache.shape[2]).view(1, 1, -1, 1)", PUT
    ),
    "in two steps": keys(NUMBERS, AT, KEEP, ADD),
    "one hot, in two steps": keys(ONE_HOT, KEEP, ADD),
    "two steps in one line": keys(ONE_HOT, "key_cache.mul_(1 - at).add_(k * at)"),
    "two steps on one layer": keys(
        ONE_HOT, "one = at.squeeze(0)", "layer = key_cache[0]", "layer.mul_(1 - one)", "layer.add_(one * k[0])"
    ),
    "the position first": keys(NUMBERS, "at = (start == numbers).float()", PUT),
}


@pytest.mark.parametrize("name", sorted(RIGHT))
def test_one_row_at_one_position_is_a_cache(tmp_path: Path, name: str) -> None:
    state = state_of_keys(tmp_path, PINNED, ONE, RIGHT[name])
    assert state.role is Role.KV_KEY
    assert "is written at one position" in state.reason


RECURRENT = {
    "a gate": keys("at = k.mean(-1, keepdim=True).sigmoid()", PUT),
    "a gate of zeros and ones": keys("at = (k.mean(-1, keepdim=True) > 0).float()", PUT),
    "all positions up to one": keys(NUMBERS, "at = (numbers <= start).float()", PUT),
    "all positions but one": keys(NUMBERS, "at = (numbers != start).float()", PUT),
    "what is kept and what is new change places": keys(NUMBERS, AT, "key_cache[:] = key_cache * at + k * (1.0 - at)"),
    "half of the mask": keys(NUMBERS, AT, "at = at * 0.5", PUT),
    "twice the opposite": keys(NUMBERS, AT, "key_cache[:] = key_cache * (2.0 - at) + k * at"),
    "two masks": keys(
        NUMBERS, AT, "other = (numbers == 0).float()", "key_cache[:] = key_cache * (1.0 - at) + k * other"
    ),
    "numbers that come again": keys("numbers = (torch.arange(key_cache.shape[2]) % 4)[None, None, :, None]", AT, PUT),
    "numbers that are not known to differ": keys(
        "numbers = torch.zeros(key_cache.shape[2])[None, None, :, None]", AT, PUT
    ),
    "a position that the model chooses": keys(NUMBERS, "at = (numbers == k.sum().argmax()).float()", PUT),
    "a position that the model computes": keys(NUMBERS, "at = (numbers == k.sum().long()).float()", PUT),
    "a sum with what was there": keys(NUMBERS, AT, "key_cache[:] = key_cache * (1.0 - at) + (k + key_cache) * at"),
    "nothing is taken away": keys(NUMBERS, AT, "key_cache[:] = key_cache + k * at"),
    "three terms": keys(NUMBERS, AT, "key_cache[:] = key_cache * (1.0 - at) + k * at + key_cache * 0.1"),
    "one hot of several": keys(
        "at = nn.functional.one_hot(position_ids, key_cache.shape[2]).sum(1).view(1, 1, -1, 1)", PUT
    ),
    "one hot of what the model chooses": keys(
        "at = nn.functional.one_hot(k.sum().argmax(), key_cache.shape[2]).view(1, 1, -1, 1)", PUT
    ),
    "the first of two steps alone": keys(ONE_HOT, KEEP),
    "the second of two steps alone": keys(ONE_HOT, ADD),
    "two steps and a third": keys(ONE_HOT, KEEP, ADD, "key_cache.mul_(0.9)"),
    "two steps by two masks": keys(ONE_HOT, KEEP, NUMBERS, "at = (numbers == 0).float()", ADD),
    "the second step scaled": keys(ONE_HOT, KEEP, "key_cache.add_(k * at, alpha=0.5)"),
    "the second step takes what was there": keys(ONE_HOT, "row = (k + key_cache) * at", KEEP, "key_cache.add_(row)"),
    "another write between two steps": keys(ONE_HOT, KEEP, "key_cache.mul_(0.5)", ADD),
    "two steps the other way round": keys(ONE_HOT, ADD, KEEP),
    "divided in two steps": keys(ONE_HOT, "key_cache.div_(1 - at)", ADD),
    "two caches": keys(ONE_HOT, "value_cache.mul_(1 - at)", ADD),
    "along the channels": keys("numbers = torch.arange(key_cache.shape[3])", AT, PUT),
    "another cache is kept": keys(NUMBERS, AT, "key_cache[:] = value_cache * (1.0 - at) + k * at"),
    "a row in other places": keys(NUMBERS, AT, "key_cache[:] = key_cache.roll(1, 2) * (1.0 - at) + k * at"),
}


@pytest.mark.parametrize("name", ["a mask with a single one", "one hot, in two steps"])
def test_of_one_row_none_is_mixed_with_another(tmp_path: Path, name: str) -> None:
    """A mask for one row would say the same to all rows of a longer query, and the next layer's keys come from that."""
    mask = "        mask = position_ids[:, None, None, :] <= position_ids[:, None, {}, None]\n"
    state = state_of_keys(tmp_path, PINNED, ONE, RIGHT[name], (mask.format("start:"), mask.format("-1:")))
    assert state.role is Role.KV_KEY


@pytest.mark.parametrize("name", sorted(RECURRENT))
def test_what_is_no_such_mask_is_not_known(tmp_path: Path, name: str) -> None:
    assert state_of_keys(tmp_path, PINNED, ONE, RECURRENT[name]).role is Role.UNKNOWN


def test_a_decay_is_a_recurrence(tmp_path: Path) -> None:
    decay = keys("key_cache[:] = key_cache * (1.0 - 0.1) + k * 0.1")
    assert state_of_keys(tmp_path, PINNED, ONE, decay).role is Role.RECURRENT


@pytest.mark.parametrize("name", sorted({**RIGHT, **RECURRENT}))
def test_with_a_longer_query_none_of_them_is(tmp_path: Path, name: str) -> None:
    graph = graph_of(scan_text(tmp_path, {"export.py": mutate(EXPORTER, {**RIGHT, **RECURRENT}[name])}))
    assert judge(graph.facts).verdict is not Verdict.ELIGIBLE
    assert any(s.role is Role.UNKNOWN for s in graph.facts.states.value or ())


def test_a_longer_query_is_no_fix(tmp_path: Path) -> None:
    script = mutate(EXPORTER, PINNED, ONE, RIGHT["a mask with a single one"])
    judged = judge_graph(graph_of(scan_text(tmp_path, {"export.py": script})))
    assert judged.fixed_by is FixedBy.NONE


def test_of_a_fixed_window_one_row_is_too_few(tmp_path: Path) -> None:
    four = ("1 if args.static else 8", "4")
    assert state_of_keys(tmp_path, PINNED, four, RIGHT["a mask with a single one"]).role is Role.UNKNOWN
