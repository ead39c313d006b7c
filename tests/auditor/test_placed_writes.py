"""Writes at given positions and choices by masks: into the cache go the rows of the query, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from rules.verdict import Verdict
from tests.auditor.edits import UNKNOWN_ROLE, WRITE_KEYS, keys
from tests.auditor.support import EXPORTER, judged, mutate

AT = "position_ids[0, start:end]"
GRID = "position_ids[:, None, start:end, None].expand(1, HEADS, rows, HIDDEN // HEADS)"
PUT = f"(torch.tensor([0])[:, None, None], torch.arange(HEADS)[None, :, None], {AT}[None, None])"
SPREAD = ".expand(1, HEADS, rows, HIDDEN // HEADS)"
NEW = "new = torch.zeros_like(key_cache); new[:, :, start:end] = {}; at = torch.arange(key_cache.shape[2])[:, None]"
CHOICE = "key_cache.copy_(torch.where((at >= start) & (at < end), new, key_cache))"


RIGHT = {
    "index_copy_": keys(f"key_cache.index_copy_(2, {AT}, k)"),
    "index_copy_ by keywords": keys(f"key_cache.index_copy_(dim=2, index={AT}, source=k)"),
    "index_put_": keys(f"key_cache.index_put_({PUT}, k)"),
    "index_put_ that does not accumulate": keys(f"key_cache.index_put_({PUT}, k, accumulate=False)"),
    "scatter_": keys(f"key_cache.scatter_(2, {GRID}, k)"),
    "index_copy, and all of it": keys(f"key_cache.copy_(key_cache.index_copy(2, {AT}, k))"),
    "slice_scatter, and all of it": keys("key_cache.copy_(torch.slice_scatter(key_cache, k, 2, start, end))"),
    "a choice by positions": keys(*NEW.format("k").split("; "), CHOICE),
    "a mask of positions": keys("key_cache[:, :, : position_ids.shape[1]][:, :, position_ids[0] >= start] = k"),
}


@pytest.mark.parametrize("name", sorted(RIGHT))
def test_rows_of_the_query_in_their_places(tmp_path: Path, name: str) -> None:
    judgement = judged(tmp_path, mutate(EXPORTER, RIGHT[name]))
    assert judgement.verdict is Verdict.ELIGIBLE, [f.message for f in judgement.reasons]


def everywhere(rows: str) -> dict[str, tuple[str, str]]:
    """The same rows, written in each way."""
    return {
        f"{rows} by a slice": keys(f"key_cache[:, :, start:end] = {rows}"),
        f"{rows} by index_copy_": keys(f"key_cache.index_copy_(2, {AT}, {rows})"),
        f"{rows} by index_copy_ and keywords": keys(f"key_cache.index_copy_(dim=2, index={AT}, source={rows})"),
        f"{rows} by index_put_": keys(f"key_cache.index_put_({PUT}, {rows})"),
        f"{rows} by aten": keys(f"torch.ops.aten.index_put_(key_cache, {PUT}, {rows})"),
        f"{rows} by scatter_": keys(f"key_cache.scatter_(2, {GRID}, {rows})"),
        f"{rows} by index_copy": keys(f"key_cache.copy_(key_cache.index_copy(2, {AT}, {rows}))"),
        f"{rows} by slice_scatter": keys(f"key_cache.copy_(torch.slice_scatter(key_cache, {rows}, 2, start, end))"),
        f"{rows} by a choice": keys(*NEW.format(rows).split("; "), CHOICE),
    }


MIXED = {
    **everywhere("k.cumsum(2)"),
    **everywhere(f"k[:, :, -1:]{SPREAD}"),
    **everywhere(f"k.mean(2, keepdim=True){SPREAD}"),
    **everywhere("(k / k.abs().max())"),
    **everywhere("k.softmax(2)"),
    **everywhere("k.sort(2)[0]"),
    **everywhere("(k + key_cache[:, :, start - 1 : end - 1])"),
}


@pytest.mark.parametrize("name", sorted(MIXED))
def test_rows_that_another_row_goes_into_are_told(tmp_path: Path, name: str) -> None:
    assert judged(tmp_path, mutate(EXPORTER, MIXED[name])).says() == UNKNOWN_ROLE


OTHERS = {
    "index_add_": keys(f"key_cache.index_add_(2, {AT}, k)"),
    "index_add, and all of it": keys(f"key_cache.copy_(key_cache.index_add(2, {AT}, k))"),
    "scatter_add_": keys(f"key_cache.scatter_add_(2, {GRID}, k)"),
    "scatter_ that adds": keys(f'key_cache.scatter_(2, {GRID}, k, reduce="add")'),
    "index_put_ that accumulates": keys(f"key_cache.index_put_({PUT}, k, accumulate=True)"),
    "index_put_ that accumulates, by position": keys(f"key_cache.index_put_({PUT}, k, True)"),
    "index_put that accumulates, and all of it": keys(f"key_cache.copy_(key_cache.index_put({PUT}, k, True))"),
    "a gate": keys(*NEW.format("k").split("; "), "key_cache.copy_(torch.where(new.sum(-1, True) > 0, new, key_cache))"),
    "a gate over all": keys(WRITE_KEYS.strip(), "key_cache.copy_(torch.where(x.sum() > 0, key_cache, key_cache * 0))"),
    "what was there goes into the choice": keys(
        *NEW.format("k").split("; "), CHOICE.replace("new, key_cache", "new + key_cache, key_cache")
    ),
    "a number as an index": keys("key_cache[:, :, x.sum(-1)[0].long()] = k"),
    "an order as an index": keys("key_cache.index_copy_(2, x.sum(-1)[0].argsort(), k)"),
    "the largest as an index": keys("key_cache[:, :, start + x.sum(-1)[0].argmax()] = k[:, :, 0]"),
    "a gate as an index": keys("key_cache[:, :, x.sum(-1)[0] > 0] = k"),
    "a gate that fills": keys(WRITE_KEYS.strip(), "key_cache.masked_fill_(x.sum(-1)[:, None, :, None] > 0, 0.0)"),
}


@pytest.mark.parametrize("name", sorted(OTHERS))
def test_what_was_there_and_what_the_model_computes_is_told(tmp_path: Path, name: str) -> None:
    assert judged(tmp_path, mutate(EXPORTER, OTHERS[name])).says() == UNKNOWN_ROLE


def test_values_out_of_the_rows_that_the_keys_held(tmp_path: Path) -> None:
    values = "        value_cache[:, :, start:end] = v\n"
    shifted = "        value_cache[:, :, start:end] = v + key_cache[:, :, start - 1 : end - 1]\n"
    script = mutate(EXPORTER, (values, ""), (WRITE_KEYS, shifted + WRITE_KEYS))
    assert judged(tmp_path, script).says() == UNKNOWN_ROLE
