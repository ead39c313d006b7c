"""coreai-torch's rotary layer and its attention: where rows stand, and which keys they see."""

from __future__ import annotations

from pathlib import Path

import pytest

from rules.verdict import Verdict
from tests.auditor.edits import UNKNOWN_LOGITS, UNKNOWN_ROLE, may
from tests.auditor.support import EXPORTER, judged, line_of, mutate

IMPORT = ("from torch import nn\n", "from coreai_torch.composite_ops import SDPA, RoPE\nfrom torch import nn\n")
PARTS = (
    "        self.out = nn.Linear(HIDDEN, HIDDEN)\n",
    "        self.out = nn.Linear(HIDDEN, HIDDEN)\n"
    "        self.rope = RoPE()\n        self.sdpa = SDPA(is_causal=True)\n",
)
MASK = "        mask = position_ids[:, None, None, :] <= position_ids[:, None, start:, None]\n"
CALL = (
    "y = nn.functional.scaled_dot_product_attention(q, key_cache[:, :, :end], value_cache[:, :, :end], mask)",
    "y = self.sdpa(q, KEYS, VALUES)",
)
SPLIT = "        end = position_ids.shape[1]\n        start = end - rows\n"


def layer(at: str = "position_ids[:, start:]", seen: str = "CACHE[:, :, :end]", turned: str = "q, k") -> str:
    """The exporter with the composite layers: q and k turned by the positions `at`, `seen` of the cache."""
    turn = f"        at = {at}\n        q, k = (self.rope(t, position_ids=at) for t in ({turned}))\n"
    keys, values = (seen.replace("CACHE", f"{name}_cache") for name in ("key", "value"))
    call = CALL[1].replace("KEYS", keys).replace("VALUES", values)
    return mutate(EXPORTER, IMPORT, PARTS, (MASK, ""), (SPLIT, SPLIT + turn), (CALL[0], call))


RIGHT = {
    "the last ones": "position_ids[:, -rows:]",
    "from the start": "position_ids.narrow(1, start, rows)",
    "counted from the start": "(torch.arange(rows) + start)[None]",
    "a range": "torch.arange(start, end)[None]",
    "a range from a start that goes in": "position_ids[:, start : start + 1] + torch.arange(rows)",
    "as other numbers": "position_ids[:, start:].to(torch.int32)",
    "there and back": "(position_ids[:, start:] - start) + start",
    "less one": "position_ids[:, start:] - 1",
    "less a number of the cache": "position_ids[:, start:] - key_cache.shape[2]",
}
WRONG = {
    "counted from zero": "torch.arange(rows)[None]",
    "counted from one": "torch.arange(1, rows + 1)[None]",
    "the first ones": "position_ids[:, :rows]",
    "the first ones by narrow": "position_ids.narrow(1, 0, rows)",
    "the last one": "position_ids[:, -1:]",
    "the last one for all": "position_ids[:, -1:].expand(-1, rows)",
    "the first of the query for all": "position_ids.narrow(1, start, 1).expand(-1, rows)",
    "filled with one number": "torch.zeros(1, rows, dtype=torch.int32)",
    "filled with the last": "torch.full((1, rows), end - 1)",
    "less the first of the call": "position_ids[:, start:] - position_ids[:, start : start + 1]",
    "less where the call begins": "position_ids[:, start:] - start",
    "less where the call begins, by a function": "torch.sub(position_ids[:, start:], start)",
    "counted from its last one": "position_ids[:, -1:] - position_ids[:, start:]",
}
READS = {
    "all of the cache": "CACHE",
    "a part of fixed length": "CACHE[:, :, -32:]",
    "a half of it": "CACHE[:, :, : CACHE.shape[2] // 2]",
    "what was there before": "CACHE[:, :, :start]",
    "as many whatever the query": "CACHE[:, :, :end][:, :, -32:]",
}


@pytest.mark.parametrize("name", RIGHT)
def test_rows_that_stand_where_they_belong(tmp_path: Path, name: str) -> None:
    judgement = judged(tmp_path, layer(RIGHT[name]))
    assert judgement.verdict is Verdict.ELIGIBLE, [f.message for f in judgement.reasons]


@pytest.mark.parametrize("name", WRONG)
def test_rows_that_stand_elsewhere(tmp_path: Path, name: str) -> None:
    text = layer(WRONG[name])
    judgement = judged(tmp_path, text)
    assert judgement.says() == UNKNOWN_LOGITS
    lines = [line_of(text, "        at = "), line_of(text, "self.rope(t")]
    assert set(lines) & {p.line for f in judgement.reasons for p in f.evidence}


def test_positions_by_place(tmp_path: Path) -> None:
    text = layer("torch.arange(rows)[None]").replace("self.rope(t, position_ids=at)", "self.rope(t, at)")
    assert judged(tmp_path, text).says() == UNKNOWN_LOGITS


@pytest.mark.parametrize("name", READS)
def test_attention_that_sees_rows_behind_the_query(tmp_path: Path, name: str) -> None:
    """Causal attention counts from the last key, and that of a whole cache is one that no call has written.

    Of a window of fixed length, the first rows of a longer query see fewer keys than they would see alone.
    """
    text = layer(seen=READS[name])
    judgement = judged(tmp_path, text)
    assert judgement.says() == UNKNOWN_LOGITS
    assert line_of(text, "self.sdpa(") in {p.line for f in judgement.reasons for p in f.evidence}


FLIPS: dict[str, tuple[str, frozenset[str]]] = {
    "the query": ("q.flip(2), k", may(UNKNOWN_ROLE, UNKNOWN_LOGITS)),
    "the keys": ("q, k.flip(2)", may(UNKNOWN_ROLE)),
    "both": ("q.flip(2), k.flip(2)", may(UNKNOWN_ROLE, UNKNOWN_LOGITS)),
    "the query twice": ("q.flip(2).flip(2), k", may("eligible")),
    "its width": ("q.flip(-1), k.flip(-1)", may("eligible")),
}


@pytest.mark.parametrize("name", FLIPS)
def test_rows_in_reverse_order(tmp_path: Path, name: str) -> None:
    turned, expected = FLIPS[name]
    assert judged(tmp_path, layer(turned=turned)).says() in expected


SUMS = {
    "added": "x + x.flip(1)",
    "subtracted": "x - torch.flip(x, [0, 1])",
    "multiplied": "x * x.flip(1)",
    "by its own name": "x.fliplr()",
    "of both axes": "x + x.flip(0, 1)",
    "averaged": "0.5 * x + 0.5 * x.flip(dims=(1,))",
}


@pytest.mark.parametrize("name", SUMS)
def test_rows_and_the_same_in_reverse(tmp_path: Path, name: str) -> None:
    text = mutate(EXPORTER, ("        x = self.norm(x)\n", f"        x = self.norm({SUMS[name]})\n"))
    assert judged(tmp_path, text).says() == UNKNOWN_LOGITS


@pytest.mark.parametrize("code", ["input_ids.flip(1)", "input_ids.roll(1, 1)", "input_ids[:, :1].expand_as(input_ids)"])
def test_tokens_in_other_places(tmp_path: Path, code: str) -> None:
    text = mutate(EXPORTER, ("self.embed(input_ids)", f"self.embed({code})"))
    assert judged(tmp_path, text).verdict is Verdict.UNRESOLVED


@pytest.mark.parametrize("code", ["x.flipud()", "x.flip(-1)", "x.flip(1).flip(1)"])
def test_flips_that_leave_the_rows(tmp_path: Path, code: str) -> None:
    text = mutate(EXPORTER, ("        x = self.norm(x)\n", f"        x = self.norm({code})\n"))
    assert judged(tmp_path, text).verdict is Verdict.ELIGIBLE


KINDS = ("def export(args):\n", "class Other(Model):\n    pass\n\n\ndef export(args):\n")
ONE_OF_TWO = ("    model = Model().eval()\n", "    model = {'a': Model, 'b': Other}[open('kind').read()]().eval()\n")
SETTING = {
    "each layer": "for layer in model.layers:\n        layer.sdpa.is_causal = False",
    "each part of a kind": (
        "for part in model.modules():\n        if isinstance(part, SDPA):\n            part.is_causal = False"
    ),
    "each part of a name": (
        "for name, part in model.named_modules():\n        if name.endswith('sdpa'):\n"
        "            part.is_causal = False"
    ),
    "by a file": "model.layers[0].sdpa.is_causal = open('causal').read() == 'yes'",
}


@pytest.mark.parametrize("name", sorted(SETTING))
@pytest.mark.parametrize("edits", [(), (KINDS, ONE_OF_TWO)], ids=["one", "one of two"])
def test_attention_that_may_not_be_causal(tmp_path: Path, edits: tuple[tuple[str, str], ...], name: str) -> None:
    script = mutate(layer(), *edits)
    assert judged(tmp_path, script).verdict is Verdict.ELIGIBLE
    text = mutate(script, ("    tokens = 1 if args.static", f"    {SETTING[name]}\n    tokens = 1 if args.static"))
    assert judged(tmp_path, text).verdict is Verdict.UNRESOLVED
