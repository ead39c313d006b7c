"""`isinstance` and `issubclass`: where the scan answers, Python answers the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from rules.verdict import Verdict
from tests.auditor.support import (
    EXPORTER,
    graph_of,
    judged,
    mutate,
    scan_text,
    told_by_python,
    told_by_the_scan,
)

BEFORE = """\
import collections, numbers, os, types, typing
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence, Set, Sized

class A:
    pass

class B(A):
    pass

VALUES = [None, True, 3, 2.5, "text", b"bytes", [1], (1,), {1}, {"a": 1}, collections.OrderedDict(), A, B(), len]
CLASSES = [object, bool, int, float, str, bytes, list, tuple, set, dict, A, B, type, Sequence, Mapping, Set, Sized]
CLASSES += [Iterable, Hashable, Callable, Iterator, numbers.Number, numbers.Integral, numbers.Real, (int, str)]
CLASSES += [collections.OrderedDict, types.FunctionType, typing.Sequence, (list, Mapping), os.PathLike]
"""
COUNT = len(["None", "True", "3", "2.5", "text", "bytes", "list", "tuple", "set", "dict", "ordered", "A", "B()", "len"])


@pytest.mark.parametrize("number", range(COUNT))
def test_values_of_python(tmp_path: Path, number: int) -> None:
    """One bit of the width for each class that the value is an instance of."""
    snippet = BEFORE + (
        "WIDTH = 1\nfor n, c in enumerate(CLASSES):\n"
        f"    if isinstance(VALUES[{number}], c):\n        WIDTH += 2 ** n\n"
    )
    read, ran = told_by_the_scan(tmp_path, snippet), told_by_python(tmp_path, snippet)
    assert read.agrees(ran), (read, ran)
    unsure = (10, 11, 12, 13)  # a mapping may be an ordered one; classes, objects and functions may have methods
    assert read == ran or number in (9, *unsure), (read, ran)


def test_classes_of_python(tmp_path: Path) -> None:
    snippet = BEFORE + (
        "PAIRS = [(int, numbers.Number), (B, A), (A, B), (list, Sequence), (dict, Sequence)]\n"
        "PAIRS += [(B, object), (B, (A, int))]\n"
        "WIDTH = 1 + sum(2 ** n for n, (a, b) in enumerate(PAIRS) if issubclass(a, b))\n"
    )
    assert told_by_the_scan(tmp_path, snippet) == told_by_python(tmp_path, snippet)


CHOSEN = "import os\nfrom torch import Tensor\nKIND = {} if os.environ.get('KIND') else {}\n"
READ = "import json\nKIND = json.load(open('kinds'))['kind']\n"
CUTS = {
    "a class that a file names": (READ, "isinstance(logits, KIND)"),
    "a class that the environment chooses": (CHOSEN.format("Tensor", "int"), "isinstance(logits, KIND)"),
    "a type of numbers that the environment chooses": (CHOSEN.format("int", "str"), "isinstance(3, KIND)"),
    "a subclass of what a file names": (READ, "issubclass(Model, KIND)"),
    "an abstract number": ("import numbers\n", "isinstance(3, numbers.Number)"),
    "an abstract sequence": ("from collections.abc import Sequence\n", "isinstance('a', Sequence)"),
    "a class of whatever has a method": ("from collections.abc import Iterable\n", "isinstance(logits, Iterable)"),
    "a module that is called": ("from collections.abc import Callable\n", "isinstance(self.head, Callable)"),
    "a protocol": (
        "from typing import Protocol, runtime_checkable\n\n\n@runtime_checkable\nclass Head(Protocol):\n"
        "    def forward(self, x): ...\n\n\n",
        "isinstance(self.head, Head)",
    ),
    "a tensor by its type of numbers": ("", "isinstance(logits, torch.FloatTensor)"),
    "a tensor that is no array": ("import numpy as np\n", "not isinstance(logits, np.ndarray)"),
    "a tensor that is no parameter": ("", "not isinstance(logits, nn.Parameter)"),
    "a shape": ("", "isinstance(x.shape, torch.Size)"),
    "any object": ("", "isinstance(self.head, object)"),
}


@pytest.mark.parametrize("name", sorted(CUTS))
def test_a_cut_under_such_a_question_is_seen(tmp_path: Path, name: str) -> None:
    above, question = CUTS[name]
    head = "        logits = self.head(x)\n"
    cut = f"{head}        if {question}:\n            logits = logits[:, -1:]\n"
    edits = (("import argparse\n", above + "import argparse\n"), (head, cut))
    assert judged(tmp_path, mutate(EXPORTER, *edits)).verdict is not Verdict.ELIGIBLE


FROM_LIBRARY = """\
import torch
from coreai_torch import TorchConverter
from transformers import AutoModelForCausalLM, LlamaForCausalLM, PreTrainedModel

model = AutoModelForCausalLM.from_pretrained("any")
width = 4
# guard
example = {"input_ids": torch.zeros((1, width), dtype=torch.int32)}
program = torch.export.export(model, (), example, dynamic_shapes={"input_ids": None})
TorchConverter().add_exported_program(program, input_names=["input_ids"]).to_coreai().save_asset("m.aimodel")
"""


@pytest.mark.parametrize(
    ("guard", "widths"),
    [
        ("if not issubclass(type(model), PreTrainedModel): raise ValueError", (4,)),
        ("if not isinstance(model, PreTrainedModel): raise ValueError", (4,)),
        ("if not isinstance(model, LlamaForCausalLM): raise ValueError", (4,)),
        ("if not isinstance(model, torch.nn.Module): raise ValueError", (4,)),
        ("if isinstance(model, PreTrainedModel): width = 8", (8,)),
        ("if isinstance(model, torch.nn.Linear): width = 8", (4,)),
        ("if isinstance(model, LlamaForCausalLM): width = 8", None),  # which one it is, the checkpoint says
    ],
)
def test_models_of_a_library_are_of_any_family(tmp_path: Path, guard: str, widths: tuple[int, ...] | None) -> None:
    query = graph_of(scan_text(tmp_path, {"export.py": mutate(FROM_LIBRARY, ("# guard", guard))})).facts.query.value
    assert (query.widths if query is not None else None) == widths
