"""Rows that are all given one position: right for a query of one row, and wrong for every longer one."""

from __future__ import annotations

from pathlib import Path

import pytest

from rules.fixes import FixedBy, judge_graph
from rules.verdict import Verdict
from tests.auditor import test_model_parts
from tests.auditor.support import graph_of, judged, line_of, mutate, scan_text

ONE_POSITION = """\
import math
import torch
from torch import nn
from torch.export import Dim
from coreai_torch import TorchConverter

VOCAB, WIDTH, HEADS, CONTEXT = 128, 32, 4, 512
EACH = WIDTH // HEADS


def turned(x, cos, sin):
    a, b = x.chunk(2, dim=-1)
    return x * cos + torch.cat((-b, a), dim=-1) * sin


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, WIDTH)
        self.wpe = nn.Embedding(CONTEXT, WIDTH)
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.head = nn.Linear(WIDTH, VOCAB)
        inv = 1.0 / 10000 ** (torch.arange(0, EACH, 2) / EACH)
        angles = torch.outer(torch.arange(CONTEXT), torch.cat((inv, inv)))
        self.register_buffer("inv", torch.cat((inv, inv)))
        self.register_buffer("cos", angles.cos())
        self.register_buffer("sin", angles.sin())

    def forward(self, input_ids, at, mask, key_cache, value_cache):
        rows = input_ids.shape[1]
        end = mask.shape[-1]
        start = end - rows
        x = self.embed(input_ids)
        q, k, v = self.qkv(x).view(1, rows, 3, HEADS, EACH).permute(2, 0, 3, 1, 4)
        key_cache[:, :, start:end] = k
        value_cache[:, :, start:end] = v
        keys, values = key_cache[:, :, :end], value_cache[:, :, :end]
        scores = q @ keys.transpose(-1, -2) / math.sqrt(EACH)
        scores = scores + mask
        y = scores.softmax(-1) @ values
        x = x + y.transpose(1, 2).reshape(1, rows, WIDTH)
        return self.head(x)


example = {
    "input_ids": torch.zeros(1, 4, dtype=torch.int32),
    "at": torch.zeros(1, 1, dtype=torch.int32),
    "mask": torch.zeros(1, 1, 4, 16),
    "key_cache": torch.zeros(1, HEADS, CONTEXT, EACH),
    "value_cache": torch.zeros(1, HEADS, CONTEXT, EACH),
}
rows, seen = Dim("rows", min=1, max=64), Dim("seen", min=1, max=CONTEXT)
dynamic = {"input_ids": {1: rows}, "at": None, "mask": {2: rows, 3: seen}, "key_cache": None, "value_cache": None}
program = torch.export.export(Model().eval(), (), example, dynamic_shapes=dynamic)
converter = TorchConverter()
converter.add_exported_program(
    program,
    input_names=["input_ids", "at", "mask"],
    output_names=["logits"],
    state_names=["key_cache", "value_cache"],
)
converter.to_coreai().save_asset("model.aimodel")
"""
"""A decoder that does nothing yet with its third input, which is one number."""
WRITE = "        key_cache[:, :, start:end] = k\n"
EMBEDDED = "        x = self.embed(input_ids)\n"
HEAD = "        self.head = nn.Linear(WIDTH, VOCAB)\n"
MASKED = "        scores = scores + mask\n"
Edit = tuple[str, str]


def _before_the_write(*lines: str) -> tuple[Edit, ...]:
    return ((WRITE, "".join(f"        {line}\n" for line in lines) + WRITE),)


def _turned(*lines: str) -> tuple[Edit, ...]:
    """Keys and queries that are turned by the `cos` and `sin` of these lines."""
    return _before_the_write(*lines, "q, k = turned(q, cos, sin), turned(k, cos, sin)")


def _angles(*lines: str) -> tuple[Edit, ...]:
    return _turned(*lines, "cos, sin = angles.cos(), angles.sin()")


def _added(*lines: str) -> tuple[Edit, ...]:
    """Embeddings with the `p` of these lines added."""
    return ((EMBEDDED, EMBEDDED + "".join(f"        {line}\n" for line in (*lines, "x = x + p"))),)


def _scored(*lines: str) -> tuple[Edit, ...]:
    """Scores, and these lines instead of the mask that is added to them."""
    return ((MASKED, "".join(f"        {line}\n" for line in lines)),)


def _named(name: str, *edits: Edit) -> tuple[Edit, ...]:
    """The input that is one number under another name."""
    return (
        *edits,
        ("input_ids, at, mask", f"input_ids, {name}, mask"),
        ('"at": torch', f'"{name}": torch'),
        ('"at": None', f'"{name}": None'),
        ('"at", "mask"', f'"{name}", "mask"'),
    )


def _shaped(name: str, shape: str, *edits: Edit) -> tuple[Edit, ...]:
    """An input of another shape, which is fixed, in its place."""
    return (*_named(name, *edits), ("torch.zeros(1, 1, dtype=torch.int32)", f"torch.zeros({shape})"))


def _with_positions(line: str) -> tuple[Edit, ...]:
    """Keys and queries that are turned by the `p` of a line, which is one of the positions of all keys."""
    return (
        *_named("position_ids", *_angles(line, "angles = p * self.inv")),
        ("torch.zeros(1, 1, dtype=torch.int32)", "torch.zeros(1, 16, dtype=torch.int32)"),
        ('"position_ids": None', '"position_ids": {1: seen}'),
    )


def _counted(line: str, then: str = "self.counter += rows") -> tuple[Edit, ...]:
    """Embeddings with the `p` of a line added, where the module counts its tokens."""
    return (
        *_added(line, then),
        (HEAD, '        self.register_buffer("counter", torch.zeros(1, dtype=torch.long))\n' + HEAD),
        ('"value_cache"],\n', '"value_cache", "counter"],\n'),
    )


BROKEN: dict[str, tuple[Edit, ...]] = {
    "a row of a table": _turned("cos, sin = self.cos[at[0]], self.sin[at[0]]"),
    "a row of a table, by a slice": _turned("p = at.item()", "cos, sin = self.cos[p : p + 1], self.sin[p : p + 1]"),
    "a row of a table, by a slice of tensors": _turned(
        "p = at[0, 0]", "cos, sin = self.cos[p : p + 1], self.sin[p : p + 1]"
    ),
    "a row of a table, selected": _turned(
        "cos, sin = self.cos.index_select(0, at[0]), self.sin.index_select(0, at[0])"
    ),
    "a row of a table, gathered": _turned(
        "index = at.long().expand(1, EACH)", "cos, sin = self.cos.gather(0, index), self.sin.gather(0, index)"
    ),
    "a row of a table, looked up": _turned(
        "cos, sin = nn.functional.embedding(at, self.cos), nn.functional.embedding(at, self.sin)"
    ),
    "a row of a table, as a product": _turned(
        "hot = nn.functional.one_hot(at, CONTEXT).float()", "cos, sin = hot @ self.cos, hot @ self.sin"
    ),
    "angles": _angles("angles = at.float() * self.inv"),
    "angles, as a product of matrices": _angles("angles = at.float().reshape(1, 1) @ self.inv[None]"),
    "angles of a position of no axes": _angles("angles = at[0, 0] * self.inv"),
    "angles of an outer product": _angles("angles = torch.outer(at[0].float(), self.inv)"),
    "angles by einsum": _angles("angles = torch.einsum('bi,d->bid', at.float(), self.inv)"),
    "angles, expanded before": _angles("angles = at.expand(1, rows)[..., None].float() * self.inv"),
    "angles, expanded behind": _angles("angles = (at.float() * self.inv).expand(1, 1, rows, EACH)"),
    "angles of as many equal numbers": _angles(
        "p = torch.ones(1, rows, dtype=torch.long) * at", "angles = p[..., None] * self.inv"
    ),
    "angles of the next position": _angles("angles = (at + 1).float() * self.inv"),
    "angles that go in": _shaped("cos", "1, 1, EACH", *_turned("sin = (1 - cos * cos).sqrt()")),
    "sections of a position": _shaped(
        "position_ids",
        "3, 1, 1, dtype=torch.int32",
        *_angles("a, b, c = (position_ids * self.inv).unbind(0)", "angles = (a + b + c)[None]"),
    ),
    "complex numbers": _before_the_write(
        "turn = torch.polar(torch.ones(EACH // 2), at[0] * self.inv[: EACH // 2])",
        "q = torch.view_as_complex(q.reshape(1, HEADS, rows, EACH // 2, 2)) * turn",
        "k = torch.view_as_complex(k.reshape(1, HEADS, rows, EACH // 2, 2)) * turn",
        "q, k = torch.view_as_real(q).flatten(3), torch.view_as_real(k).flatten(3)",
    ),
    "by functions": _before_the_write(
        "cos, sin = torch.cos(at * self.inv), torch.sin(at * self.inv)",
        "q = torch.add(torch.mul(q, cos), torch.mul(q.flip(-1), sin))",
    ),
    "a matrix that turns": _before_the_write("turn = torch.eye(EACH) * (at[0, 0] * self.inv).cos()", "q = q @ turn"),
    "by the length of the cache": _turned("cos, sin = self.cos[end - 1], self.sin[end - 1]"),
    "by the start of the call": _turned("cos, sin = self.cos[start], self.sin[start]"),
    "by the start of the call, as a slice": _turned(
        "cos, sin = self.cos[start : start + 1], self.sin[start : start + 1]"
    ),
    "by the start of the call, narrowed": _turned(
        "cos, sin = self.cos.narrow(0, start, 1), self.sin.narrow(0, start, 1)"
    ),
    "by the start of the call, selected": _turned("cos, sin = self.cos.select(0, start), self.sin.select(0, start)"),
    "angles of a length": _angles("angles = self.inv * (end - 1)"),
    "angles of a length in a tensor": _angles("angles = self.inv * torch.tensor([end - 1])"),
    "angles of a length, filled in": _angles("angles = torch.full((1, 1), end - 1) * self.inv"),
    "angles of a range of one": _angles("angles = torch.arange(end - 1, end)[:, None] * self.inv"),
    "the last of the positions that go in": _with_positions("p = position_ids[:, -1]"),
    "the first of the positions that go in": _with_positions("p = position_ids[0, 0]"),
    "the largest of the positions that go in": _with_positions("p = position_ids.max()"),
    "the largest of the positions that go in, along their axis": _with_positions("p = position_ids.amax(-1)"),
    "the sum of a mask that goes in": _angles("p = (mask[:, 0, -1] == 0).sum(-1)", "angles = p * self.inv"),
    "the number of keys that are not hidden": _angles("p = (mask[0, 0, -1] + 1).sum() - 1", "angles = p * self.inv"),
    "a position that is learned, by a name": _named("position", *_added("p = self.wpe(position)")),
    "a position that is learned, by what it hides": _added(
        "p = self.wpe(at)", "mask = mask + torch.where(torch.arange(end) <= at, 0.0, -1e4)"
    ),
    "a position that is learned, by a range that begins there": _added(
        "p = self.wpe(at)", "mask = mask + torch.where(torch.arange(end) <= (at + torch.arange(rows)).T, 0.0, -1e4)"
    ),
    "a position that is learned, by a slice": (
        *_added("p = self.wpe(at)"),
        (WRITE, "        begin = at.item()\n        key_cache[:, :, begin : begin + rows] = k\n"),
    ),
    "a position that is learned, by a slice of tensors": (
        *_added("p = self.wpe(at)"),
        (WRITE, "        key_cache[:, :, at[0, 0] : at[0, 0] + rows] = k\n"),
    ),
    "a position that is learned, by a length": _added("p = self.wpe(torch.tensor([end - 1]))"),
    "a position that is learned, by a weight": _added("p = self.wpe.weight[end - 1]"),
    "a position that is learned, by the end of a mask": _added("p = self.wpe((mask[0, 0, -1] == 0).sum() - 1)"),
    "a position as a feature": (
        *_added("at = at + 1", "p = 0"),
        (WRITE, "        x = torch.cat((x[..., 1:], (at * self.inv[:1]).sin().expand(1, rows, 1)), -1)\n" + WRITE),
    ),
    "a position times a vector": _named("position", *_added("p = position * self.wpe.weight[0]")),
    "a counter of the module": _counted("p = self.wpe(self.counter)"),
    "a counter of the module that is set": _counted("p = self.wpe(self.counter)", "self.counter = self.counter + rows"),
    "a counter of the module, by its angles": _counted("a = self.counter * torch.arange(WIDTH)", "p = a.sin()"),
    "a mask by one position": _scored("scores = scores.masked_fill(torch.arange(end) > at, -1e9)"),
    "a bias by one distance": (
        (HEAD, "        self.bias = nn.Embedding(32, HEADS)\n" + HEAD),
        *_scored(
            "bias = self.bias((at - torch.arange(end)).clamp(0, 31)[0])",
            "scores = scores + mask + bias.T[None, :, None]",
        ),
    ),
    "scores that are scaled by a position": _named("pos", *_scored("scores = scores * (pos + 1).float().log() + mask")),
    "rows from 0": _turned("cos, sin = self.cos[:rows], self.sin[:rows]"),
    "rows from 0, by a range": _turned("p = torch.arange(rows)", "cos, sin = self.cos[p], self.sin[p]"),
    "rows from 0, by a range from 0": _angles("angles = torch.arange(0, rows)[:, None] * self.inv"),
    "rows from 0, by an outer product": _angles("angles = torch.outer(torch.arange(rows).float(), self.inv)"),
    "rows from 0, narrowed": _turned("cos, sin = self.cos.narrow(0, 0, rows), self.sin.narrow(0, 0, rows)"),
    "rows from 0, of angles that are made there": _turned(
        "angles = torch.outer(torch.arange(CONTEXT), self.inv)", "cos, sin = angles.cos()[:rows], angles.sin()[:rows]"
    ),
    "rows from 0 that are learned": _added("p = self.wpe(torch.arange(rows))"),
    "rows from 0 that are learned, behind padding": _added("p = self.wpe(torch.arange(rows)[None] + 2)"),
    "rows from 0 that are learned, by a weight": _added("p = self.wpe.weight[:rows]"),
    "rows from 0 that are learned, by numbers that are kept": (
        *_added("p = self.wpe(self.numbers[:, :rows])"),
        (HEAD, '        self.register_buffer("numbers", torch.arange(CONTEXT)[None])\n' + HEAD),
    ),
    "rows from 0 by a bias": (
        (HEAD, "        self.bias = nn.Embedding(32, HEADS)\n" + HEAD),
        *_scored(
            "distance = torch.arange(rows)[:, None] - torch.arange(end)",
            "scores = scores + mask + self.bias(distance.clamp(0, 31)).permute(2, 0, 1)",
        ),
    ),
    "queries that are scaled by a length": _before_the_write("q = q / end"),
    "queries that are scaled by the length of the call": _before_the_write("q = q.div(rows)"),
    "queries that are scaled by a logarithm": _before_the_write("q = q * math.log(end, CONTEXT)"),
    "queries that are scaled by a logarithm in a function": _before_the_write("q = q.mul(max(1.0, math.log(end)))"),
    "scores that are scaled by a root": _scored("scores = scores * end ** -0.5 + mask"),
}


@pytest.mark.parametrize("name", sorted(BROKEN))
def test_rows_that_all_have_one_position(tmp_path: Path, name: str) -> None:
    judgement = judged(tmp_path, mutate(ONE_POSITION, *BROKEN[name]))
    assert judgement.verdict is Verdict.UNRESOLVED, judgement


HARMLESS: dict[str, tuple[Edit, ...]] = {
    "nothing": (),
    "a row of a table for each row": _turned("p = start + torch.arange(rows)", "cos, sin = self.cos[p], self.sin[p]"),
    "a slice of a table": _turned("cos, sin = self.cos[start:end], self.sin[start:end]"),
    "a slice of a table, from a number that goes in": _turned(
        "p = at.item()", "cos, sin = self.cos[p : p + rows], self.sin[p : p + rows]"
    ),
    "a slice of a table, from a tensor that goes in": _turned(
        "p = at[0, 0]", "cos, sin = self.cos[p : p + rows], self.sin[p : p + rows]"
    ),
    "a table that is cut to its length": _turned(
        "cos, sin = self.cos[: end + 1][start:end], self.sin[: end + 1][start:end]"
    ),
    "a slice of a range": _turned("p = torch.arange(CONTEXT)[start:end]", "cos, sin = self.cos[p], self.sin[p]"),
    "a start and a range": _angles("angles = (at + torch.arange(rows))[..., None].float() * self.inv"),
    "a start and a range, as decimals": _angles(
        "p = at.float() + torch.arange(rows).float()", "angles = p[..., None] * self.inv"
    ),
    "a start, expanded, and a range": _angles(
        "p = at.expand(1, rows) + torch.arange(rows)", "angles = p[..., None] * self.inv"
    ),
    "a start in a tensor, and a range": _angles(
        "p = torch.tensor([start]) + torch.arange(rows)", "angles = p[:, None] * self.inv"
    ),
    "the last of the positions that go in, less a range": _with_positions(
        "p = (position_ids[:, -1:] - rows + 1 + torch.arange(rows))[..., None]"
    ),
    "angles that are added up": _angles("angles = at.float() * self.inv + torch.arange(rows)[:, None] * self.inv"),
    "a counter and a range": _counted("p = self.wpe(self.counter + torch.arange(rows))"),
    "numbers that are kept": (
        *_added("p = self.wpe(self.numbers[:, start:end])"),
        (HEAD, '        self.register_buffer("numbers", torch.arange(CONTEXT)[None])\n' + HEAD),
    ),
    "rows from 0 and a start": _added("p = self.wpe(torch.arange(rows) + start)"),
    "rows from 0, moved by a function": _added("p = self.wpe(torch.add(torch.arange(rows), start))"),
    "rows from 0 and a number that goes in": _added("p = self.wpe(torch.arange(rows) + at)"),
    "rows from 0 less the distance to the end": _added("p = self.wpe(end - rows + torch.arange(rows))"),
    "rows from 0 among themselves": _scored(
        "seen = torch.arange(rows)[:, None] >= torch.arange(rows)", "scores = scores + mask * (seen.sum() > 0)"
    ),
    "a slope from 0": _scored(
        "scores = scores + 0.1 * (torch.arange(end) - torch.arange(rows)[:, None]).float() + mask"
    ),
    "rows that are picked by their numbers": _added("p = x[:, torch.arange(rows)]"),
    "keys that are turned when they are read": _before_the_write(
        "p = torch.arange(end)", "cos = self.cos[p[start:]]", "q = q * cos", "k = k * self.cos[:end][start:]"
    ),
    "a speaker": _named("speaker", *_added("p = self.wpe(speaker)")),
    "a vector of a speaker": _shaped("speaker", "1, 1, WIDTH", *_added("p = speaker")),
    "a language at no position": _added("p = self.wpe(at)"),
    "a temperature": _named("temperature", ("return self.head(x)", "return self.head(x) / temperature")),
    "a step of a sampler": (
        *_added("a = at.float() * torch.arange(WIDTH)", "p = self.time(torch.cat((a.cos(), a.sin()), -1)).sigmoid()"),
        (HEAD, "        self.time = nn.Linear(2 * WIDTH, WIDTH)\n" + HEAD),
    ),
    "scores that are scaled by their width": _scored("scores = scores * q.shape[-1] ** -0.5 + mask"),
    "scores that are scaled by a setting": _scored("scores = scores * torch.finfo(q.dtype).eps + mask"),
    "a step of a sampler, by a function": (
        *_added("a = (at.float() * torch.arange(WIDTH)).sin()", "p = nn.functional.linear(a, self.time.weight)"),
        (HEAD, "        self.time = nn.Linear(WIDTH, WIDTH)\n" + HEAD),
    ),
    "a step of a sampler, by a convolution": (
        *_added("a = (at.float() * torch.arange(WIDTH)).sin()", "p = self.time(a[..., None])[..., 0][None]"),
        (HEAD, "        self.time = nn.Conv1d(WIDTH, WIDTH, 1)\n" + HEAD),
    ),
    "keys up to a length": _scored("scores = scores.masked_fill(torch.arange(end) > at, -1e9) + mask"),
    "keys up to a length, added": _scored("scores = scores + torch.where(torch.arange(end) > at, -1e9, 0.0) + mask"),
    "keys up to a length, as a factor": _scored(
        "seen = (torch.arange(end) <= at).float()", "scores = scores + (1.0 - seen) * -1e9 + mask"
    ),
    "a slope for each distance to one position": _scored(
        "scores = scores - 0.1 * (at - torch.arange(end)).float() + mask"
    ),
    "a slope for each distance to the end": _scored("scores = scores + 0.1 * (torch.arange(end) - (end - 1)) + mask"),
}


@pytest.mark.parametrize("name", sorted(HARMLESS))
def test_one_tensor_for_all_rows_that_is_right(tmp_path: Path, name: str) -> None:
    judgement = judged(tmp_path, mutate(ONE_POSITION, *HARMLESS[name]))
    assert judgement.verdict is Verdict.ELIGIBLE, [f.message for f in judgement.reasons]


PINNED: tuple[Edit, ...] = (
    ('"input_ids": {1: rows}', '"input_ids": None'),
    ('"mask": {2: rows, 3: seen}', '"mask": {3: seen}'),
    ('torch.zeros(1, 4, dtype=torch.int32),\n    "at"', 'torch.zeros(1, 1, dtype=torch.int32),\n    "at"'),
    ("torch.zeros(1, 1, 4, 16)", "torch.zeros(1, 1, 1, 16)"),
)


@pytest.mark.parametrize(
    ("name", "fixed_by"), [("a row of a table", FixedBy.NONE), ("a row of a table for each row", FixedBy.LINE)]
)
def test_a_longer_query_alone_is_no_fix_where_the_one_row_has_one_position(
    tmp_path: Path, name: str, fixed_by: FixedBy
) -> None:
    script = mutate(ONE_POSITION, *PINNED, *{**BROKEN, **HARMLESS}[name])
    one = judge_graph(graph_of(scan_text(tmp_path, {"export.py": script})))
    assert one.judgement.says() == "out by static-query"
    assert one.fixed_by is fixed_by
    assert ("that alone is no fix" in one.fix) is (fixed_by is FixedBy.NONE)


@pytest.mark.parametrize("name", ["a row of a table", "angles of a length", "a position that is learned, by a name"])
def test_the_line_where_all_rows_get_the_position_is_cited(tmp_path: Path, name: str) -> None:
    script = mutate(ONE_POSITION, *BROKEN[name])
    (reason,) = judged(tmp_path, script).reasons
    assert reason.rule == "unknown-logits"
    assert "one position" in reason.message
    meets = "x = x + p" if "learned" in name else "return x * cos"
    assert line_of(script, meets) == reason.evidence[1].line


def _told(position: str, shape: str = "(1, 1)") -> str:
    """A Hugging Face model that is told where its rows stand."""
    given = shape.replace("query_length", "2")
    return mutate(
        test_model_parts.SCRIPT,
        ("def forward(self, input_ids, causal_mask):", "def forward(self, input_ids, causal_mask, at):"),
        ("input_ids, attention_mask=causal_mask,", f"input_ids, attention_mask=causal_mask, {position},"),
        ("[input_ids, causal_mask])", f"[input_ids, causal_mask, torch.zeros({given}, dtype=torch.int32)])"),
        (
            "    outputs = [",
            f"    inputs.append(ct.TensorType(shape={shape}, dtype=np.int32, name='at'))\n    outputs = [",
        ),
    )


@pytest.mark.parametrize(
    ("script", "verdict"),
    [
        (_told("position_ids=at"), Verdict.UNRESOLVED),
        (_told("cache_position=at", "(1,)"), Verdict.UNRESOLVED),
        (_told("position_ids=torch.arange(input_ids.shape[1])[None]"), Verdict.UNRESOLVED),
        (_told("position_ids=at + torch.arange(input_ids.shape[1])"), Verdict.ELIGIBLE),
        (_told("position_ids=at", "(1, query_length)"), Verdict.ELIGIBLE),
        (_told("position_ids=None"), Verdict.ELIGIBLE),
    ],
)
def test_a_model_that_is_told_where_its_rows_stand(tmp_path: Path, script: str, verdict: Verdict) -> None:
    judgement = judged(tmp_path, script)
    assert judgement.verdict is verdict, [f.message for f in judgement.reasons]
