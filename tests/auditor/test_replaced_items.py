"""Lists of unknown length whose items a loop replaces one by one, and what loops of unknown length make of dicts."""

from __future__ import annotations

from pathlib import Path

import pytest

from rules.facts import Logits
from rules.verdict import Verdict
from tests.auditor.edits import RETURN
from tests.auditor.support import graph_of, indented, judged, scan_text
from tests.auditor.test_rounds import made

HEADS = """\
        parts = list(logits.split(self.config_width, dim=-1))
{loop}
        logits = torch.cat(parts, dim=-1)
{then}"""
WIDTH = (
    "        self.head = nn.Linear(HIDDEN, VOCAB)\n",
    "        self.head = nn.Linear(HIDDEN, VOCAB * LAYERS)\n        self.config_width = VOCAB\n",
)
"""A head whose width has an unknown factor: `split` gives a list of that length."""


def _script(loop: str, then: str = "") -> str:
    """The logits in parts, which a loop replaces one by one."""
    lines = indented(loop)
    after = indented(then)
    return made(edits=(WIDTH, (RETURN, HEADS.format(loop=lines, then=after) + RETURN)))


TURNED = "for i in range(len(parts)):\n    parts[i] = parts[i].transpose(1, 2)"
WHOLE = {
    "by index": (TURNED, "logits = logits.transpose(1, 2)"),
    "by enumerate": (
        "for i, part in enumerate(parts):\n    parts[i] = part.transpose(1, 2)",
        "logits = logits.transpose(1, 2)",
    ),
    "twice in a round": (TURNED + "\n    parts[i] = parts[i].transpose(1, 2)", ""),
    "one after the other": (TURNED + "\n" + TURNED, ""),
}


@pytest.mark.parametrize("name", sorted(WHOLE))
def test_each_item_is_replaced_once(tmp_path: Path, name: str) -> None:
    loop, then = WHOLE[name]
    then = then.replace("logits = ", "")
    script = _script(loop, f"logits = {then}" if then else "")
    if "twice" not in name and "other" not in name:  # the parts are joined along the rows: turned, that is their width
        script = script.replace("torch.cat(parts, dim=-1)", "torch.cat(parts, dim=1)")
    assert judged(tmp_path, script).says() == "eligible"


LEFT = {
    "a row": "for i in range(len(parts)):\n    parts[i] = parts[i][:, -1:]",
    "a row, by enumerate": "for i, part in enumerate(parts):\n    parts[i] = part[:, -1:]",
    "a row, of some": "for i in range(len(parts) - 1):\n    parts[i] = parts[i][:, -1:]",
    "a row, on one way": "for i in range(len(parts)):\n    if i > 3:\n        parts[i] = parts[i][:, -1:]",
    "a row, until a break": "for i in range(len(parts)):\n    parts[i] = parts[i][:, -1:]\n    if i > 3: break",
    "a row of the one before": "for i in range(1, len(parts)):\n    parts[i] = parts[i - 1][:, -1:]",
    "a row of a neighbour": "for i in range(len(parts)):\n    parts[i] = parts[i - 1]\nparts[0] = parts[0][:, -1:]",
}


@pytest.mark.parametrize("name", sorted(LEFT))
def test_items_that_are_replaced_by_one_row_have_no_other(tmp_path: Path, name: str) -> None:
    judgement = judged(tmp_path, _script(LEFT[name]))
    assert judgement.verdict is not Verdict.ELIGIBLE


def test_items_that_are_replaced_by_one_row_are_the_last(tmp_path: Path) -> None:
    result = scan_text(tmp_path, {"export.py": _script(LEFT["a row"])})
    assert graph_of(result).facts.logits.value is Logits.LAST


LADDER = """\
    static = {}
    length = 256
    while length <= int(open("context").read()):
        for width in (8, 16, 64):
            static[f"{length}_{width}"] = {"input_ids": (1, width), "position_ids": (1, length)}
        length *= 2
    program = converter.to_coreai()
    program.set_static_shape_config("main", static)
    program.save_asset("out/model.aimodel")
"""


@pytest.mark.parametrize(
    ("edit", "widths"),
    [
        ((), (8, 16, 64)),
        (("(8, 16, 64)", "(8, 16, int(open('width').read()))"), None),
        (("(1, width)", "(1, length)"), None),
    ],
    ids=["widths", "a width that nobody knows", "the length is the width"],
)
def test_a_ladder_of_shapes_that_a_loop_of_unknown_length_makes(
    tmp_path: Path, edit: tuple[str, str] | tuple[()], widths: tuple[int, ...] | None
) -> None:
    ladder = LADDER.replace(*edit) if edit else LADDER
    script = made(edits=(('    converter.to_coreai().save_asset("out/model.aimodel")\n', ladder),))
    query = graph_of(scan_text(tmp_path, {"export.py": script})).facts.query
    assert (query.value.widths if query.value else None) == widths, query
