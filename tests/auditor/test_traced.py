"""What `torch.jit.trace` makes a constant of: Python numbers of lengths, branches on them, tuples of rows."""

from __future__ import annotations

from pathlib import Path

import pytest

from rules.verdict import Verdict
from tests.auditor.edits import BAKED, LAST, Edit
from tests.auditor.support import CORE_ML, indented, judged, line_of, mutate

END = "        end = causal_mask.shape[-1]\n"
EMBED = "        x = self.embed(input_ids)\n"
RESHAPE = ".reshape(batch, rows, HIDDEN)"
IMPORT = "import torch\n"
EXAMPLE = "torch.zeros(1, 4, dtype=torch.int32), torch.zeros(1, 1, 4, 8)"
ONE_ROW = "torch.zeros(1, 1, dtype=torch.int32), torch.zeros(1, 1, 1, 8)"
OPEN_EXAMPLE = "torch.zeros(1, int(open('n').read()), dtype=torch.int32), torch.load('mask.pt')"
START = "        start = end - rows\n"


def into(code: str) -> tuple[Edit, ...]:
    """`code` where lengths are at hand: `rows` of the query, `end` of the mask, `x` the embedded query."""
    return (
        (IMPORT, "import math\nimport torch\n"),
        (START, START + "".join(f"        {c}\n" for c in code.split("\n"))),
    )


BAKED_LENGTHS: dict[str, tuple[Edit, ...]] = {
    "int of the query": into("x = x + torch.zeros(1, int(rows), 1)"),
    "int of the size": into("x = x + torch.zeros(1, int(x.size(1)), 1)"),
    "int of the mask's length": ((END, "        end = int(causal_mask.shape[-1])\n"),),
    "int of the mask's length, behind a call": (
        (END, "        end = self.length(causal_mask)\n"),
        ("    def forward(", "    def length(self, mask):\n        return int(mask.size(-1))\n\n    def forward("),
    ),
    "int of a difference": ((START, "        start = int(end - rows)\n"),),
    "int of a quotient": into("half = int(rows / 2)\nx = torch.cat([x[:, :half], x[:, half:]], 1)"),
    "float": into("x = x * torch.arange(float(end))[:rows, None].sum()"),
    "math.ceil": into("end = math.ceil(end)"),
    "math.floor of a quotient": into("x = torch.cat([x[:, : math.floor(rows / 2)], x[:, math.floor(rows / 2) :]], 1)"),
    "math.log2": into("x = x * math.log2(end)"),
    "math.sqrt of the query": into("x = x / math.sqrt(rows)"),
    "math.gcd": into("x = x.reshape(1, math.gcd(rows, rows), HIDDEN)"),
    "round": into("end = round(end / 1)"),
    "len of the query": into("x = x + torch.zeros(1, len(input_ids[0]), 1)"),
    "len of the mask": ((END, "        end = len(causal_mask[0, 0, 0])\n"),),
    "item of a length": into("end = end.item()"),
    "item of the mask": ((END, "        end = (causal_mask[0, 0, -1] > -1).sum().item()\n"),),
    "int of a tensor of the mask": ((END, "        end = int((causal_mask[0, 0, -1] > -1).sum())\n"),),
    "tolist": ((END, "        end = (causal_mask[0, 0, -1] > -1).sum(0, keepdim=True).tolist()[0]\n"),),
    "a range": into("x = x + sum(torch.ones(1, 1, 1) for _ in range(rows))"),
    "a range of the mask's length": into("for i in range(end):\n    x = x + causal_mask[0, 0, 0, i]"),
    "a loop over the rows": into("x = torch.stack([row for row in x[0]])[None]"),
    "unbind": into("x = torch.stack(x.unbind(1), 1)"),
    "split by ones": into("x = torch.cat(x.split(1, dim=1), 1)"),
    "torch.tensor": into("x = x + torch.tensor(rows)"),
    "torch.tensor of a difference": into("x = x + torch.tensor([end - rows])"),
    "numpy": (*into("x = x + torch.from_numpy(np.arange(rows))[None, :, None]"),),
    "numpy of the mask's length": into("x = x * np.sqrt(end)"),
    "a reshape": ((RESHAPE, ".reshape(1, int(rows), HIDDEN)"),),
    "a shape of ints": into("x = x.view(*[int(n) for n in x.shape])"),
    "in a helper": (
        (IMPORT, "import torch\n\n\ndef length_of(t, axis=1):\n    return int(t.shape[axis])\n"),
        (START, START + "        x = x[:, : length_of(x)]\n"),
    ),
}


@pytest.mark.parametrize("name", sorted(BAKED_LENGTHS))
def test_a_length_of_the_trace_is_baked(tmp_path: Path, name: str) -> None:
    judgement = judged(tmp_path, mutate(CORE_ML, *BAKED_LENGTHS[name]))
    assert judgement.verdict is not Verdict.ELIGIBLE
    assert judgement.says() == BAKED, [f.message for f in judgement.reasons]


HARMLESS: dict[str, tuple[Edit, ...]] = {
    "int of a dimension that is fixed": into("x = x.view(batch, rows, int(x.shape[-1]))"),
    "math.sqrt of the width of a head": into("x = x / math.sqrt(q.shape[-1])"),
    "int of the length of the cache": into("room = int(self.keyCache.shape[2])\nassert room > 0"),
    "a length as it is": into("x = x + torch.zeros(1, rows, 1) + torch.arange(end - rows, end)[None, :, None]"),
    "math.prod": into("x = x.view(1, math.prod(x.shape[:2]), HIDDEN)"),
    "a number of the module": (
        *into("x = x * self.scale.item()"),
        ("        self.head =", "        self.scale = torch.ones(1)\n        self.head ="),
    ),
    "a loop over a fixed axis": into(
        "x = torch.stack([part for part in x.view(rows, 2, HIDDEN // 2).unbind(1)], -1).view(1, rows, HIDDEN)"
    ),
    "split of a fixed axis": into("x = torch.cat(x.split(8, dim=-1), -1)"),
    "scripted": (
        (START, "        start = int(end - rows)\n"),
        (f"torch.jit.trace(model, ({EXAMPLE}))", "torch.jit.script(model)"),
    ),
}


@pytest.mark.parametrize("name", sorted(HARMLESS))
def test_what_is_the_same_in_every_call(tmp_path: Path, name: str) -> None:
    judgement = judged(tmp_path, mutate(CORE_ML, *HARMLESS[name]))
    assert judgement.verdict is Verdict.ELIGIBLE, [f.message for f in judgement.reasons]


RETURN = "        return self.head(x + y.transpose(1, 2).reshape(batch, rows, HIDDEN))\n"
CUT = "x = x[:, -1:]"
BRANCHES = {
    "equal to one": f"if rows == 1:\n    {CUT}",
    "not more than one": f"if rows > 1:\n    pass\nelse:\n    {CUT}",
    "in a tuple": f"if rows in (1, 2):\n    {CUT}",
    "a conditional expression": "x = x[:, -1:] if rows < 2 else x",
    "a remainder": f"if rows % 2 == 1:\n    {CUT}",
    "a difference": f"if end - rows > 5:\n    {CUT}",
    "a quotient": f"if rows // 2 == 0:\n    {CUT}",
    "the smaller": f"if min(rows, 3) == 1:\n    {CUT}",
    "the larger": f"if max(rows, 2) == 2:\n    {CUT}",
    "and": f"if self.training is False and rows < 2:\n    {CUT}",
}
"""Branches on the query's length that cut one row off when the model is traced with one, and not with four."""


def branching(code: str, example: str) -> str:
    body = "        x = x + y.transpose(1, 2).reshape(batch, rows, HIDDEN)\n"
    body += indented(code.split("\n")) + "        return self.head(x)\n"
    return mutate(CORE_ML, (RETURN, body), (EXAMPLE, example))


@pytest.mark.parametrize("name", sorted(BRANCHES))
def test_a_branch_is_the_one_that_was_traced(tmp_path: Path, name: str) -> None:
    four = judged(tmp_path, branching(BRANCHES[name], EXAMPLE))
    assert four.verdict is Verdict.ELIGIBLE, [f.message for f in four.reasons]
    one = judged(tmp_path, branching(BRANCHES[name], ONE_ROW))
    assert one.says() == LAST, [f.message for f in one.reasons]


@pytest.mark.parametrize("name", sorted(BRANCHES))
def test_a_branch_that_the_example_does_not_decide(tmp_path: Path, name: str) -> None:
    judgement = judged(tmp_path, branching(BRANCHES[name], OPEN_EXAMPLE))
    assert judgement.verdict is Verdict.UNRESOLVED, [f.message for f in judgement.reasons]


def test_the_examples_of_two_traces_leave_a_branch_open(tmp_path: Path) -> None:
    script = branching(BRANCHES["equal to one"], EXAMPLE)
    line = f"traced = torch.jit.trace(model, ({EXAMPLE}))\n"
    script = mutate(script, (line, f"import os\n{line}if os.environ.get('ONE'):\n    {line.replace(EXAMPLE, ONE_ROW)}"))
    assert judged(tmp_path, script).verdict is Verdict.UNRESOLVED


def test_one_of_two_modules_is_traced(tmp_path: Path) -> None:
    """Which module is traced decides: one of them gives its last row only."""
    other = "class Last(Model):\n    def forward(self, input_ids, causal_mask):\n"
    other += "        return super().forward(input_ids, causal_mask)[:, -1:]\n\n\n"
    build = "model = Model().eval()\n"
    chosen = f"import os\n\n{other}model = Last() if os.environ.get('LAST') else Model()\n"
    swapped = f"import os\n\n{other}model = Model() if os.environ.get('LAST') else Last()\n"
    for text in (chosen, swapped):
        judgement = judged(tmp_path, mutate(CORE_ML, (build, text)))
        assert judgement.verdict is Verdict.UNRESOLVED, [f.message for f in judgement.reasons]


def test_the_line_of_the_number_is_cited(tmp_path: Path) -> None:
    script = mutate(CORE_ML, *BAKED_LENGTHS["int of the mask's length"])
    (reason,) = judged(tmp_path, script).reasons
    assert line_of(script, "int(causal_mask") in {p.line for p in reason.evidence}
    assert "int()" in reason.message
