"""What a script asks before it exports (the system, the name of its output), and classes that are imported there."""

from __future__ import annotations

from pathlib import Path

import pytest

from rules.verdict import judge
from tests.auditor.support import judged, mutate, scan_text

SCRIPT = """\
import argparse
import os
import sys
from pathlib import Path

import numpy as np
import torch

parser = argparse.ArgumentParser()
parser.add_argument("output", type=Path)
parser.add_argument("--width", type=int)
args = parser.parse_args()
# GUARD


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.head = torch.nn.Embedding(64, 8), torch.nn.Linear(8, 64)
        self.register_buffer("k_cache", torch.zeros(1, 128, 8))

    def forward(self, input_ids, mask):
        x = self.embed(input_ids)
        end = mask.shape[-1]
        self.k_cache[:, end - input_ids.shape[1] : end] = x
        seen = self.k_cache[:, :end]
        return self.head(torch.softmax(x @ seen.transpose(1, 2) + mask, -1) @ seen)


traced = torch.jit.trace(Model().eval(), (torch.zeros(1, 2, dtype=torch.int32), torch.zeros(1, 2, 5)))
from coremltools import RangeDim, StateType, TensorType, convert  # IMPORT

rows, seen = RangeDim(1, 128), RangeDim(1, 128)
convert(
    traced,
    inputs=[TensorType("input_ids", (1, rows), np.int32), TensorType("mask", (1, rows, seen))],
    outputs=[TensorType("logits")],
    states=[StateType(TensorType(shape=(1, 128, 8)), "k_cache")],
).save(str(args.output))
"""


@pytest.mark.parametrize(
    "guard",
    [
        'args.output.suffix != ".mlpackage"',
        'os.path.splitext(args.output)[1] != ".mlpackage"',
        'sys.platform != "darwin"',
        'os.name != "posix"',
        'sys.byteorder != "little"',
        'sys.implementation.name != "cpython"',
        "sys.version_info < (3, 10)",
        "sys.version_info < (3, 12)",
        "sys.version_info[:2] != (3, 13)",
        "not (3, 12) <= sys.version_info < (3, 13)",
        "sys.version_info.minor < 12",
        "sys.version_info[0] < 3",
        "sys.version_info >= (3, 12)",
    ],
)
def test_a_guard_that_a_run_for_its_purpose_passes_ends_nothing(tmp_path: Path, guard: str) -> None:
    script = mutate(SCRIPT, ("# GUARD", f'if {guard}:\n    parser.error("no")'))
    assert judged(tmp_path, script).says() == "eligible"


@pytest.mark.parametrize(
    "guard", ['Path("a.mlmodel").suffix != ".mlpackage"', 'os.name == "posix"', "sys.version_info >= (3, 8)"]
)
def test_a_guard_that_no_run_passes_ends_it(tmp_path: Path, guard: str) -> None:
    script = mutate(SCRIPT, ("# GUARD", f"if {guard}:\n    sys.exit(1)"))
    with pytest.raises(AssertionError):
        judged(tmp_path, script)


@pytest.mark.parametrize("guard", ["assert sys.version_info >= (3, 12)", "assert sys.version_info[1] == 12, 'no'"])
def test_no_more_does_an_assertion_of_a_version(tmp_path: Path, guard: str) -> None:
    assert judged(tmp_path, mutate(SCRIPT, ("# GUARD", guard))).says() == "eligible"


def test_what_differs_between_versions_of_python_is_not_known(tmp_path: Path) -> None:
    script = mutate(SCRIPT, ("# GUARD", "LONGEST = 1 if sys.version_info < (3, 12) else 128"))
    script = script.replace("rows, seen = RangeDim(1, 128)", "rows, seen = RangeDim(1, LONGEST)")
    assert judged(tmp_path, script).says().startswith("unresolved")


_IMPORT = "from coremltools import RangeDim, StateType, TensorType, convert"


@pytest.mark.parametrize("condition", ["args.width is None", "args.width == args.width", "not args.width"])
def test_classes_that_are_imported_under_an_option_are_those_classes(tmp_path: Path, condition: str) -> None:
    script = mutate(SCRIPT, (f"{_IMPORT}  # IMPORT", f"if {condition}:\n    {_IMPORT}"))
    assert judged(tmp_path, script).says() == "eligible"


def test_so_are_those_that_are_assigned_there(tmp_path: Path) -> None:
    lines = "if args.width is None:\n    Length = RangeDim\nelse:\n    Length = lambda low, high: args.width"
    script = mutate(SCRIPT, ("# IMPORT", "# IMPORT\n" + lines))
    script = script.replace("= RangeDim(1, 128), RangeDim(1, 128)", "= Length(1, 128), Length(1, 128)")
    assert judged(tmp_path, script).says() == "eligible"


def test_and_what_is_assigned_in_their_place_is_not_forgotten(tmp_path: Path) -> None:
    lines = "if args.width is None:\n    Length = lambda low, high: 1\nelse:\n    Length = RangeDim"
    script = mutate(SCRIPT, ("# IMPORT", "# IMPORT\n" + lines))
    script = script.replace("rows, seen = RangeDim(1, 128), ", "rows, seen = Length(1, 128), ")
    assert judged(tmp_path, script).says() == "out by static-query"


def test_an_option_that_chooses_between_imports_has_its_variant(tmp_path: Path) -> None:
    other = "from coremltools import StateType, TensorType, convert\n    from own import RangeDim"
    script = mutate(
        SCRIPT,
        ('"--width", type=int', '"--fixed", action="store_true"'),
        (f"{_IMPORT}  # IMPORT", f"if args.fixed:\n    {other}\nelse:\n    {_IMPORT}"),
    )
    own = "def RangeDim(low, high):\n    return 1\n"
    graphs = scan_text(tmp_path, {"export.py": script, "own.py": own}).graphs
    said = {g.invocation.argv: judge(g.facts).says() for g in graphs}
    assert said == {(): "eligible", ("--fixed",): "out by static-query"}
