"""Where a cache is written: positions that are put together in short vectors, and rows that every call writes."""

from __future__ import annotations

from pathlib import Path

import pytest

from rules.verdict import Verdict
from tests.auditor.edits import BAKED, RING, UNKNOWN_ROLE, WRITE_KEYS, Edit, before, check_broken, may
from tests.auditor.support import CORE_ML, EXPORTER, judged, mutate

OPERATOR = """\
@torch.library.custom_op("mine::put", mutates_args=["cache"])
def put(cache: torch.Tensor, rows: torch.Tensor, begin: torch.Tensor, end: torch.Tensor) -> torch.Tensor:
    bounds = zip(TAKEN)
    cache[tuple(slice(b.item(), e.item()) for b, e in bounds)] = rows
    return cache.clone()


"""
SPLIT = "torch.split(begin, 1, dim=0), torch.split(end, 1, dim=0)"
BEGIN = "torch.cat([torch.tensor([0, 0]), AT, torch.tensor((0,))])"
END = "torch.cat([torch.tensor([1, HEADS]), torch.tensor((start + rows,)), torch.tensor([HIDDEN // HEADS])])"
KEYS = WRITE_KEYS.strip()

TAKEN_APART = {
    "split": SPLIT,
    "split by lengths": "begin.split([1, 1, 1, 1]), end.split(1)",
    "unbind": "begin.unbind(0), end.unbind()",
    "chunk": "begin.chunk(4), torch.chunk(end, 4)",
    "tensor_split": "torch.tensor_split(begin, 4), torch.tensor_split(end, [1, 2, 3])",
    "each index": "[begin[i] for i in range(4)], [end.select(0, i) for i in range(4)]",
    "a slice first": "[*begin[:2].unbind(), *begin[2:].unbind()], end.unbind()",
}
ELSEWHERE: dict[str, tuple[str, frozenset[str]]] = {
    "a remainder": ("torch.tensor((start % 64,))", may(RING)),
    "a bound": ("torch.tensor((min(start, 63),))", may(UNKNOWN_ROLE)),
    "a bound on the tensor": ("torch.tensor((start,)).clamp(max=63)", may(UNKNOWN_ROLE)),
    "a choice": ("torch.where(torch.tensor((start,)) > 63, 63, torch.tensor((start,)))", may(UNKNOWN_ROLE)),
    "half of it": ("torch.tensor((start // 2,))", may(UNKNOWN_ROLE)),
    "half of the tensor": ("torch.tensor((start,)) // 2", may(UNKNOWN_ROLE)),
    "a mask of bits": ("torch.tensor((start & 63,))", may(UNKNOWN_ROLE, RING)),
}
RIGHT = {
    "a vector of one": "torch.tensor((start,))",
    "a list": "torch.tensor([start])",
    "a number": "torch.tensor(start).reshape(1)",
    "filled": "torch.full((1,), start)",
    "a difference": "torch.tensor((end_of_all - rows,))",
}


def _put(at: str, taken: str = SPLIT) -> tuple[Edit, ...]:
    call = f"torch.ops.mine.put(key_cache, k, {BEGIN.replace('AT', at)}, {END})"
    return (
        before("class Layer(nn.Module):\n", OPERATOR.replace("TAKEN", taken)),
        (WRITE_KEYS, f"        end_of_all = end\n        {call}\n"),
    )


@pytest.mark.parametrize("name", RIGHT)
@pytest.mark.parametrize("taken", TAKEN_APART)
def test_a_position_that_goes_through_a_vector(tmp_path: Path, name: str, taken: str) -> None:
    judgement = judged(tmp_path, mutate(EXPORTER, *_put(RIGHT[name], TAKEN_APART[taken])))
    assert judgement.verdict is Verdict.ELIGIBLE, [f.message for f in judgement.reasons]


@pytest.mark.parametrize("name", ELSEWHERE)
def test_another_position_that_goes_through_a_vector(tmp_path: Path, name: str) -> None:
    at, expected = ELSEWHERE[name]
    check_broken(tmp_path, (_put(at), expected))


@pytest.mark.parametrize("taken", TAKEN_APART)
def test_a_remainder_in_each_spelling(tmp_path: Path, taken: str) -> None:
    check_broken(tmp_path, (_put("torch.tensor((start % 64,))", TAKEN_APART[taken]), may(RING)))


WRITES: dict[str, tuple[str, frozenset[str]]] = {
    "from the first row": ("key_cache[:, :, 0:rows] = k", may(UNKNOWN_ROLE)),
    "from a number": ("key_cache[:, :, 4 : 4 + rows] = k", may(UNKNOWN_ROLE)),
    "up to the last row": ("key_cache[:, :, key_cache.shape[2] - rows :] = k", may(UNKNOWN_ROLE)),
    "up to the last row, with its end": (
        "key_cache[:, :, key_cache.shape[2] - rows : key_cache.shape[2]] = k",
        may(UNKNOWN_ROLE),
    ),
    "by the numbers of the rows": ("key_cache.index_copy_(2, torch.arange(rows), k)", may(UNKNOWN_ROLE)),
    "by an index of these numbers": ("key_cache[:, :, torch.arange(rows)] = k", may(UNKNOWN_ROLE)),
    "by numbers from one on": ("key_cache.index_copy_(2, torch.arange(1, rows + 1), k)", may(UNKNOWN_ROLE)),
    "in reverse": ("key_cache[:, :, start:end] = k.flip(2)", may(UNKNOWN_ROLE)),
    "with those in reverse": ("key_cache[:, :, start:end] = k + k.flip(2)", may(UNKNOWN_ROLE)),
    "into one row": ("key_cache[:, :, end - 1 : end] = k", may(BAKED)),
    "into one row behind": ("key_cache[:, :, start : start + 1] = k", may(BAKED)),
}
STILL_RIGHT = {
    "by numbers behind the cache": "key_cache.index_copy_(2, torch.arange(start, end), k)",
    "by numbers and a start": "key_cache.index_copy_(2, torch.arange(rows) + start, k)",
    "there and back": "key_cache[:, :, start:end] = k.flip(2).flip(2)",
    "another axis in reverse": "key_cache[:, :, start:end] = k.flip(-1)",
    "an axis of fixed length by a number": "key_cache[:, :HEADS, start:end] = k",
}


@pytest.mark.parametrize("name", WRITES)
def test_rows_that_are_not_those_of_the_query(tmp_path: Path, name: str) -> None:
    code, expected = WRITES[name]
    check_broken(tmp_path, (((KEYS, code),), expected))


@pytest.mark.parametrize("name", STILL_RIGHT)
def test_rows_of_the_query(tmp_path: Path, name: str) -> None:
    judgement = judged(tmp_path, mutate(EXPORTER, (KEYS, STILL_RIGHT[name])))
    assert judgement.verdict is Verdict.ELIGIBLE, [f.message for f in judgement.reasons]


@pytest.mark.parametrize(
    ("code", "says"),
    [("start = end - 1", BAKED), ("start = 0", UNKNOWN_ROLE), ("start = end - rows", "eligible")],
)
def test_the_begin_of_what_a_traced_model_writes(tmp_path: Path, code: str, says: str) -> None:
    judgement = judged(tmp_path, mutate(CORE_ML, ("        start = end - rows\n", f"        {code}\n")))
    assert judgement.says() == says, [f.message for f in judgement.reasons]


def test_positions_that_a_condition_chooses_stay_so_as_numbers(tmp_path: Path) -> None:
    code = "at = torch.tensor(start).clamp(max=63).item()\n        key_cache[:, :, at : at + rows] = k"
    check_broken(tmp_path, (((KEYS, code),), may(UNKNOWN_ROLE)))
