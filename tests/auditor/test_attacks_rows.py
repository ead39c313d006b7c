"""Attacks on the rows that come out and on the rows of the cache: each is code at one place of the eligible decoder."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.auditor.edits import (
    HEAD,
    LAST_DIM,
    LAST_INPUT,
    NORM,
    ONE_TOKEN,
    SIGNATURE,
    WRITE_KEYS,
    Edit,
    after,
    eligible,
    ids,
)
from tests.auditor.support import indented

IMPORTS = "import argparse\n"
MASK = "mask = (torch.arange(rows) == rows - 1)[None, :, None]"
OTHER_ROWS: dict[str, tuple[str, ...]] = {
    "times a mask": (MASK, "logits = logits * mask"),
    "times a mask in place": (MASK, "logits.mul_(mask.float())"),
    "times a mask of numbers": ("mask = (torch.arange(rows) == rows - 1).float().view(1, -1, 1)", "logits *= mask"),
    "times an expanded mask": (MASK, "logits = logits * mask.expand(1, rows, VOCAB)"),
    "masked_fill": (MASK, "logits = logits.masked_fill(~mask, float('-inf'))"),
    "masked_fill_": (MASK, "logits.masked_fill_(~mask, 0)"),
    "where": (MASK, "logits = torch.where(mask, logits, float('-inf'))"),
    "where as a method": (MASK, "logits = logits.where(mask, torch.tensor(0.0))"),
    "by the positions": (
        "last = position_ids[:, -rows:] == position_ids.max()",
        "logits = torch.where(last.unsqueeze(-1), logits, torch.zeros_like(logits))",
    ),
    "a bias": (MASK, "logits = logits + mask * -1e9"),
    "a mask that is written": ("keep = torch.zeros(1, rows, 1)", "keep[:, -1] = 1", "logits = logits * keep"),
    "a slice is set": ("logits[:, :-1] = 0",),
    "a slice is zeroed": ("logits[:, :-1].zero_()",),
    "a slice is scaled": ("logits[:, :-1].mul_(0)",),
    "a view is zeroed": ("early = logits[:, :-1]", "early.zero_()"),
    "a view is set": ("early = logits[:, :-1]", "early[:] = 0"),
    "a view of a view": ("logits[0][:-1] = 0",),
    "narrow": ("logits.narrow(1, 0, rows - 1).zero_()",),
    "through data": ("logits.data[:, :-1] = 0",),
    "a transposed view": ("logits.transpose(0, 1)[:-1] = 0",),
    "a boolean index": ("logits[:, torch.arange(rows) != rows - 1] = 0",),
    "index_fill": ("logits = logits.index_fill(1, torch.arange(rows - 1), 0)",),
    "index_copy": ("logits = torch.zeros_like(logits).index_copy(1, torch.tensor([rows - 1]), logits[:, -1:])",),
    "slice_scatter": ("logits = logits.slice_scatter(torch.zeros(1, rows - 1, VOCAB), 1, 0, rows - 1)",),
    "out=": ("torch.mul(logits, (torch.arange(rows) == rows - 1)[None, :, None], out=logits)",),
    "rolled": ("logits = logits.roll(1, 1)",),
    "flipped": ("logits = logits.flip(1)",),
    "summed up": ("logits = logits.cumsum(1)",),
    "sorted": ("logits = logits.sort(dim=1).values",),
    "softmax over the rows": ("logits = logits.softmax(1)",),
    "shifted": ("logits = torch.cat([logits[:, 1:], logits[:, :1]], 1)",),
    "padded": ("logits = nn.functional.pad(logits[:, 1:], (0, 0, 0, 1))",),
    "every second": ("logits = logits[:, ::2].repeat_interleave(2, 1)[:, :rows]",),
    "one row, indexed again and again": ("logits = logits[:, torch.full((rows,), rows - 1)]",),
    "gathered": ("logits = logits.gather(1, torch.full((1, rows, VOCAB), rows - 1))",),
    "index_select": ("logits = logits.index_select(1, torch.arange(rows).clamp(min=rows - 1))",),
    "a fixed number of rows": ("logits = logits + torch.zeros(1, 8, VOCAB)",),
}
CACHE: dict[str, tuple[str, ...]] = {
    "a bound": ("at = min(start, 63)", "key_cache[:, :, at : at + rows] = k"),
    "clamp": ("key_cache[:, :, torch.arange(start, end).clamp(max=63)] = k",),
    "minimum": ("key_cache[:, :, torch.minimum(torch.arange(start, end), torch.tensor(63))] = k",),
    "a conditional": ("at = start if start < 64 else start - 64", "key_cache[:, :, at : at + rows] = k"),
    "a loop": ("at = start", "while at >= 64:", "    at -= 64", "key_cache[:, :, at : at + rows] = k"),
    "math.fmod": ("import math", "at = int(math.fmod(start, 64))", "key_cache[:, :, at : at + rows] = k"),
    "a fraction": ("at = torch.arange(start, end) / 64", "key_cache[:, :, (at.frac() * 64).long()] = k"),
    "a floor": ("at = torch.arange(start, end) / 64", "key_cache[:, :, ((at - at.floor()) * 64).long()] = k"),
    "rounding_mode": (
        "at = torch.arange(start, end)",
        "key_cache[:, :, at - torch.div(at, 64, rounding_mode='floor') * 64] = k",
    ),
    "a table of slots": ("key_cache[:, :, torch.arange(64).repeat(64)[start:end]] = k",),
    "an outer product": ("key_cache[:, :, :8] = key_cache[:, :, :8] + k.transpose(2, 3) @ v",),
    "out= the cache": ("torch.add(key_cache * 0.9, k.mean(2, keepdim=True), out=key_cache)",),
    "an operation by its name": ("torch.ops.mine.update_(key_cache, k)",),
    "a list of caches": ("torch._foreach_copy_([key_cache], [k])",),
}
TAIL = "y = torch.cat([{0}, x], 1)"
REST = "x = x + y[:, 3:]"
STATES: dict[str, tuple[str, ...]] = {
    "in a list": ("self.past = [torch.zeros(1, 3, HIDDEN)]", "self.past[0]"),
    "in a tuple": ("self.past = (torch.zeros(1, 3, HIDDEN),)", "self.past[0]"),
    "in a dict": ('self.past = {"tail": torch.zeros(1, 3, HIDDEN)}', 'self.past["tail"]'),
    "in an object": ("self.past = argparse.Namespace(tail=torch.zeros(1, 3, HIDDEN))", "self.past.tail"),
    "in a parameter": ("self.past = nn.Parameter(torch.zeros(1, 3, HIDDEN))", "self.past"),
    "in a ParameterList": ("self.past = nn.ParameterList([torch.zeros(1, 3, HIDDEN)])", "self.past[0]"),
    "under another name": ('setattr(self, "past", torch.zeros(1, 3, HIDDEN))', "self.past"),
}
WRITES = {
    "copied to": "{0}.copy_(y[:, -3:])",
    "set": "{0}[:] = y[:, -3:]",
    "through data": "{0}.data = y[:, -3:]",
    "replaced": "{0} = y[:, -3:]",
}


def _at(anchor: str, lines: tuple[str, ...]) -> Edit:
    return anchor, anchor + indented(lines)


@pytest.mark.parametrize("name", sorted(OTHER_ROWS))
def test_rows_that_are_not_those_of_the_query(tmp_path: Path, name: str) -> None:
    assert not eligible(tmp_path, _at(HEAD, OTHER_ROWS[name]))


@pytest.mark.parametrize("name", ["times a mask", "where", "a slice is set"])
def test_nor_are_they_before_the_head(tmp_path: Path, name: str) -> None:
    lines = tuple(line.replace("logits", "x") for line in OTHER_ROWS[name])
    assert not eligible(tmp_path, _at(NORM, lines))


def test_a_mask_that_goes_in(tmp_path: Path) -> None:
    edits = (
        (SIGNATURE, SIGNATURE.replace("value_cache)", "value_cache, keep)")),
        after(LAST_INPUT, '        "keep": torch.ones(1, 8),\n'),
        after(LAST_DIM, '        "keep": {1: Dim("tokens", min=1, max=64)},\n'),
        _at(HEAD, ("logits = logits * keep[..., None]",)),
    )
    assert not eligible(tmp_path, *edits)


@pytest.mark.parametrize("name", sorted(CACHE))
def test_rows_of_the_cache(tmp_path: Path, name: str) -> None:
    assert not eligible(tmp_path, (WRITE_KEYS, indented(CACHE[name])))


@pytest.mark.parametrize("write", sorted(WRITES))
@pytest.mark.parametrize("place", sorted(STATES))
def test_a_state_that_python_keeps(tmp_path: Path, place: str, write: str) -> None:
    made, name = STATES[place]
    if write == "replaced" and place in ("in a tuple", "in a parameter"):
        pytest.skip("Python refuses it")
    lines = (TAIL.format(name), WRITES[write].format(name), REST)
    init = "        self.norm = nn.LayerNorm(HIDDEN)\n"
    assert not eligible(tmp_path, _at(init, (made,)), (NORM, _at("", lines)[1] + NORM))


@pytest.mark.parametrize("write", ["copied to", "set"])
@pytest.mark.parametrize("made", ["PAST = torch.zeros(1, 3, HIDDEN)", "PASTS = [torch.zeros(1, 3, HIDDEN)]"])
def test_a_state_that_the_module_of_the_script_keeps(tmp_path: Path, made: str, write: str) -> None:
    name = "PASTS[0]" if "[" in made else "PAST"
    lines = (TAIL.format(name), WRITES[write].format(name), REST)
    layer = "class Layer(nn.Module):\n"
    assert not eligible(tmp_path, (layer, f"{made}\n\n\n{layer}"), (NORM, _at("", lines)[1] + NORM))


def test_one_row_in_the_example_of_an_automatic_dimension(tmp_path: Path) -> None:
    assert not eligible(tmp_path, ONE_TOKEN, ids("{1: Dim.AUTO}"))


def test_an_unknown_number_may_be_negative(tmp_path: Path) -> None:
    edits = (IMPORTS, IMPORTS + "import os\n"), ("None if args.static else", "None if int(os.environ['N']) < 0 else")
    assert not eligible(tmp_path, *edits, ("1 if args.static else 8", "1 if int(os.environ['N']) < 0 else 8"))


def test_a_head_of_a_few_classes(tmp_path: Path) -> None:
    head = "self.head = nn.Linear(HIDDEN, VOCAB)"
    assert not eligible(tmp_path, (head, head.replace("VOCAB", "5")))


ATTENTION = (
    "        y = nn.functional.scaled_dot_product_attention(q, key_cache[:, :, :end], value_cache[:, :, :end], mask)\n"
)
HARMLESS: dict[str, tuple[Edit, ...]] = {
    "padding is masked where it comes in": (
        (
            "        x = self.embed(input_ids)\n",
            "        x = self.embed(input_ids)\n        x = x * (input_ids != 0).unsqueeze(-1)\n",
        ),
    ),
    "images go in place of tokens": (
        (
            "        x = self.embed(input_ids)\n",
            "        x = self.embed(input_ids)\n"
            "        x = torch.where((input_ids >= 100).unsqueeze(-1), torch.zeros_like(x), x)\n",
        ),
    ),
    "entries of the vocabulary are ruled out": (_at(HEAD, ("logits[:, :, 5:9] = float('-inf')",)),),
    "the same, by a mask": (_at(HEAD, ("logits = logits.masked_fill(torch.arange(VOCAB) >= 100, float('-inf'))",)),),
    "logits are capped": (_at(HEAD, ("logits = 30 * torch.tanh(logits / 30)", "logits = logits.clamp(-30, 30)")),),
    "probabilities": (_at(HEAD, ("logits = logits.softmax(-1)",)),),
    "all rows are written": (_at(HEAD, ("out = torch.empty_like(logits)", "out[:] = logits", "logits = out")),),
    "a constant that is read": (
        _at("        self.norm = nn.LayerNorm(HIDDEN)\n", ("self.scales = [torch.ones(HIDDEN)]",)),
        _at(NORM, ("x = x * self.scales[0]",)),
    ),
    "a tensor of its own that is changed": (_at(NORM, ("y = torch.zeros_like(x)", "y += x", "x = y")),),
    "a position that is at least zero": (
        (WRITE_KEYS, "        at = max(start, 0)\n        key_cache[:, :, at : at + rows] = k\n"),
    ),
    "attention by hand": (
        (
            ATTENTION,
            "        scores = q @ key_cache[:, :, :end].transpose(-1, -2) / 8\n"
            "        scores = scores.masked_fill(~mask, float('-inf'))\n"
            "        y = scores.softmax(-1) @ value_cache[:, :, :end]\n",
        ),
    ),
    "a mask of numbers for attention": (
        (ATTENTION, "        mask = torch.where(mask, 0.0, float('-inf'))\n" + ATTENTION),
    ),
    "experts, by index": (
        _at(
            NORM,
            (
                "flat = x.view(-1, HIDDEN)",
                "out = torch.zeros_like(flat)",
                "at = torch.arange(flat.shape[0])",
                "out.index_add_(0, at, flat[at] * 0.5)",
                "x = x + out.view_as(x)",
            ),
        ),
    ),
    "experts, each with its rows": (
        _at(
            NORM,
            (
                "chosen = x.argmax(-1)",
                "out = torch.zeros_like(x)",
                "for e in range(4):",
                "    out = out + x * (chosen == e).unsqueeze(-1)",
                "x = x + out",
            ),
        ),
    ),
}


@pytest.mark.parametrize("name", sorted(HARMLESS))
def test_what_is_harmless_stayseligible(tmp_path: Path, name: str) -> None:
    assert eligible(tmp_path, *HARMLESS[name])
