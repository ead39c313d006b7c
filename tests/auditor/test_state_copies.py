"""Copies of a state that take rows and are put back in its place: what is asked of a write is asked of these."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.auditor import decoder_project as project
from tests.auditor.edits import HYBRID, RING, UNKNOWN_ROLE, keys
from tests.auditor.support import CORE_ML, EXPORTER, indented, judged, mutate

ELIGIBLE = "eligible"
INTO = "torch.slice_scatter({}, k, 2, start, end)".format
IN_COREML = "        self.keyCache[:, :, start:end, :] = k\n"


def back(copy: str) -> list[str]:
    return [f"key_cache.copy_({copy})", f"key_cache[:] = {copy}", f"key_cache[...] = {copy}"]


@pytest.mark.parametrize(
    ("copy", "says"),
    [
        (INTO("key_cache"), ELIGIBLE),
        (INTO("key_cache") + ".to(key_cache.dtype).contiguous()", ELIGIBLE),
        (INTO("key_cache.clone()"), ELIGIBLE),
        ("key_cache.index_copy(2, torch.arange(start, end), k)", ELIGIBLE),
        ("torch.slice_scatter(key_cache, k, 2, 0, rows)", UNKNOWN_ROLE),
        ("key_cache.index_copy(2, torch.arange(rows), k)", UNKNOWN_ROLE),
        ("key_cache.index_copy(2, torch.arange(start, end) % 64, k)", RING),
        ("torch.slice_scatter(key_cache, k.flip(2), 2, start, end)", UNKNOWN_ROLE),
        (INTO("value_cache"), UNKNOWN_ROLE),
        (INTO("torch.zeros_like(key_cache)"), UNKNOWN_ROLE),
        (INTO("key_cache") + ".flip(0)", RING),
        (INTO("key_cache") + " * 0.5", HYBRID),
        ("nn.functional.pad(k, (0, 0, 0, key_cache.shape[2] - rows))", UNKNOWN_ROLE),
    ],
)
def test_what_a_copy_has_taken_is_written_where_it_is_put_back(tmp_path: Path, copy: str, says: str) -> None:
    for number, line in enumerate(back(copy)):
        found = judged(tmp_path / str(number), mutate(EXPORTER, keys(line))).says()
        assert found == says or (says != ELIGIBLE and found.startswith("unresolved")), (line, found)


@pytest.mark.parametrize(
    ("lines", "says"),
    [
        (["kept = key_cache.clone()", "kept[:, :, start:end] = k", "key_cache.copy_(kept)"], ELIGIBLE),
        (
            ["kept = key_cache.clone()", "kept.index_copy_(2, torch.arange(start, end), k)", "key_cache[:] = kept"],
            ELIGIBLE,
        ),
        (["kept = key_cache.clone()", "kept[:, :, :rows] = k", "key_cache.copy_(kept)"], UNKNOWN_ROLE),
        (
            ["kept = key_cache.clone()", "kept[:, :, start:end] = k", "kept.mul_(0.5)", "key_cache.copy_(kept)"],
            UNKNOWN_ROLE,
        ),
        (["kept = key_cache.clone()", "kept[:, :, start:end] = k"], UNKNOWN_ROLE),
        (["kept = value_cache.clone()", "kept[:, :, start:end] = k", "key_cache.copy_(kept)"], UNKNOWN_ROLE),
    ],
)
def test_so_is_what_is_assigned_to_a_clone(tmp_path: Path, lines: Sequence[str], says: str) -> None:
    assert judged(tmp_path, mutate(EXPORTER, keys(*lines))).says() == says


STACKED = mutate(
    EXPORTER,
    ("layer(x, position_ids, key_cache[i], value_cache[i])", "layer(x, position_ids, key_cache, value_cache, i, made)"),
    ("value_cache):\n        batch", "value_cache, i, made):\n        batch"),
    ("        value_cache[:, :, start:end] = v\n", "        value_cache[i, :, :, start:end] = v\n"),
    ("key_cache[:, :, :end], value_cache[:, :, :end]", "new[:, :, :end], value_cache[i][:, :, :end]"),
    ("        for i, layer in", "        made = []\n        for i, layer in"),
    ("        x = self.norm(x)\n", "        # behind the layers\n        x = self.norm(x)\n"),
)


@pytest.mark.parametrize(
    ("lines", "behind", "says"),
    [
        (["new = key_cache[i]", "new[:, :, start:end] = k"], "", ELIGIBLE),
        (["key_cache[i] = " + INTO("key_cache[i]"), "new = key_cache[i]"], "", ELIGIBLE),
        (["new = key_cache[i].clone()", "new[:, :, start:end] = k", "key_cache[i, :] = new"], "", ELIGIBLE),
        (["key_cache[i].copy_(" + INTO("key_cache[i]") + ")", "new = key_cache[i]"], "", ELIGIBLE),
        (
            [f"key_cache.copy_(torch.select_scatter(key_cache, {INTO('key_cache[i]')}, 0, i))", "new = key_cache[i]"],
            "",
            ELIGIBLE,
        ),
        (["new = " + INTO("key_cache[i]"), "made.append(new)"], "key_cache.copy_(torch.stack(made))", ELIGIBLE),
        (["new = " + INTO("key_cache[i]"), "made.insert(0, new)"], "key_cache.copy_(torch.stack(made))", UNKNOWN_ROLE),
        (["key_cache[i] = " + INTO("key_cache[0]"), "new = key_cache[i]"], "", UNKNOWN_ROLE),
        (["key_cache[0] = " + INTO("key_cache[0]"), "new = key_cache[0]"], "", UNKNOWN_ROLE),
        (["new = key_cache[0]", "new[:, :, start:end] = k"], "", UNKNOWN_ROLE),
        (["key_cache[i] = torch.slice_scatter(key_cache[i], k, 2, 0, rows)", "new = key_cache[i]"], "", UNKNOWN_ROLE),
    ],
)
def test_layers_of_a_cache(tmp_path: Path, lines: Sequence[str], behind: str, says: str) -> None:
    script = mutate(STACKED, keys(*lines), ("        # behind the layers\n", indented(behind)))
    assert judged(tmp_path, script).says() == says


def test_no_trace_records_that_a_buffer_is_bound_to_another_tensor(tmp_path: Path) -> None:
    judgement = judged(tmp_path, mutate(CORE_ML, (IN_COREML, f"        self.keyCache = {INTO('self.keyCache')}\n")))
    assert judgement.says() == UNKNOWN_ROLE
    assert "is bound to another tensor, which no trace records" in judgement.unresolved[0].message


@pytest.mark.parametrize(("bounds", "says"), [("start, start + s", ELIGIBLE), ("0, s", UNKNOWN_ROLE)])
def test_a_program_of_torch_export_does(tmp_path: Path, bounds: str, says: str) -> None:
    layer = f"torch.slice_scatter(owner.k_cache[self.idx], k, 2, {bounds})"
    lines = [f"layer = {layer}", "owner.k_cache = torch.select_scatter(owner.k_cache, layer, 0, self.idx)"]
    model = mutate(
        project.MODEL,
        ("        k_cache[self.idx, :, :, start : start + s] = k\n", indented([*lines, "k_cache = owner.k_cache"])),
        ("mask, k_cache, v_cache, start):", "mask, owner, v_cache, start):"),
    )
    script = mutate(project.EXECUTORCH, ("self.k_cache, self.v_cache)", "self, self.v_cache)"))
    assert judged(tmp_path, script, **{"config.py": project.CONFIG, "model.py": model}).says() == says


AT = "at = torch.arange(start, end)"
HOT = "put = nn.functional.one_hot(at, key_cache.shape[2]).to(k.dtype)[None]"
KEEP = "keep = 1 - put.sum(1)"
PUT = "key_cache.copy_(key_cache * keep[:, None, :, None] + put.transpose(1, 2)[:, None] @ k)"


@pytest.mark.parametrize(
    ("lines", "says"),
    [
        ([AT, HOT, KEEP, PUT], ELIGIBLE),
        (["at = position_ids[0, start:].long()", HOT, KEEP, PUT], ELIGIBLE),
        (
            [AT, "put = (torch.arange(key_cache.shape[2])[None, :] == at[:, None]).to(k.dtype)[None]", KEEP, PUT],
            ELIGIBLE,
        ),
        ([AT, HOT, KEEP, PUT.replace("put.transpose(1, 2)[:, None]", "put.permute(0, 2, 1).unsqueeze(1)")], ELIGIBLE),
        (["at = torch.arange(rows)", HOT, KEEP, PUT], UNKNOWN_ROLE),
        (["at = torch.arange(start, end) % 64", HOT, KEEP, PUT], UNKNOWN_ROLE),
        (["at = torch.arange(start, end).flip(0)", HOT, KEEP, PUT], UNKNOWN_ROLE),
        ([AT, HOT, KEEP, PUT.replace("@ k", "@ k.flip(2)")], UNKNOWN_ROLE),
        ([AT, HOT, KEEP, PUT.replace("@ k", "@ (k + key_cache[:, :, :1])")], UNKNOWN_ROLE),
        ([AT, HOT, KEEP, PUT.replace("@ k", "@ k.mean(2, keepdim=True).expand_as(k)")], UNKNOWN_ROLE),
        ([AT, HOT, "keep = 1 - put.mean(1)", PUT], UNKNOWN_ROLE),
        ([AT, HOT, "keep = 1 - put[:, 0]", PUT], UNKNOWN_ROLE),
        ([AT, HOT, KEEP, PUT.replace("key_cache * keep", "value_cache * keep")], UNKNOWN_ROLE),
        ([AT, HOT, "key_cache.copy_(key_cache + put.transpose(1, 2)[:, None] @ k)"], UNKNOWN_ROLE),
    ],
)
def test_rows_that_a_matrix_of_ones_puts_in_their_places(tmp_path: Path, lines: Sequence[str], says: str) -> None:
    assert judged(tmp_path, mutate(EXPORTER, keys(*lines))).says() == says
