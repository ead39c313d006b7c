"""Example inputs that are read from files: what is known of their shapes all the same, and what is said of the rest."""

from __future__ import annotations

from pathlib import Path

import pytest

from rules.facts import Logits
from tests.auditor.support import EXPORTER, judged, line_of, mutate, scan_text
from tests.auditor.support import graph_of as only

IDS = "torch.zeros((1, tokens), dtype=torch.int32)"


def script(ids: str) -> str:
    return mutate(
        EXPORTER,
        (IDS, ids),
        ('None if args.static else {1: Dim("tokens", min=1, max=64)}', "None"),
        ("import torch\n", 'import torch\nimport numpy as np\n\ndata = np.load("ids.npz")["ids"]\n'),
    )


@pytest.mark.parametrize(
    "ids",
    [
        "torch.from_numpy(data).reshape(1, 1)",
        "torch.from_numpy(data.reshape(1, 1))",
        "torch.as_tensor(data).view(1, 1)",
        "data.reshape((1, 1))",
        "torch.tensor([[int(data[0])]])",
    ],
)
def test_a_shape_that_the_script_gives(tmp_path: Path, ids: str) -> None:
    assert judged(tmp_path, script(ids)).says() == "out by static-query"


@pytest.mark.parametrize(
    "ids",
    [
        "torch.from_numpy(data)",
        "torch.from_numpy(data.astype(np.int32))",
        "torch.from_numpy(data.astype(np.int32)[None])",  # whole numbers go in, which are none behind the embeddings
        "torch.from_numpy(data.astype(np.int64)[None, :4])",
    ],
)
def test_a_shape_that_only_a_file_knows(tmp_path: Path, ids: str) -> None:
    text = script(ids)
    facts = only(scan_text(tmp_path, {"export.py": text})).facts
    assert facts.query.value is None
    assert facts.logits.value is not Logits.NONE
    for fact in (facts.query, facts.logits):
        assert "`numpy.load()` is known at run time only" in (fact.reason or "")
        assert "q" not in (fact.reason or "").split()
        assert line_of(text, "np.load") in {p.line for p in fact.evidence}


PARAMETER = [
    "ids.reshape(1, 1)",
    "ids.view(1, 1)",
    "torch.tensor(ids).reshape(1, 1)",
    "torch.from_numpy(np.asarray(ids).reshape((1, 1)))",
    "acme.load()['ids'].reshape(1, 1)",
    "ids.reshape([1, 1]).to(torch.int32)",
]


def uncalled(ids: str) -> str:
    text = mutate(script(ids), ("def export(args):\n", "def export(args, ids):\n"))
    return text[: text.index("if __name__")].replace("import torch\n", "import acme\nimport torch\n", 1)


@pytest.mark.parametrize("ids", PARAMETER)
def test_a_shape_that_is_given_to_what_nobody_knows(tmp_path: Path, ids: str) -> None:
    assert judged(tmp_path, uncalled(ids)).says() == "out by static-query"


@pytest.mark.parametrize("ids", ["ids", "ids.reshape(1, -1)", "ids.reshape(1, acme.rows())", "ids.lay(1, 1)"])
def test_a_shape_that_nobody_gives(tmp_path: Path, ids: str) -> None:
    facts = only(scan_text(tmp_path, {"export.py": uncalled(ids)})).facts
    assert facts.query.value is None


def test_what_a_forward_makes_of_unread_code_stays_unknown(tmp_path: Path) -> None:
    """A shape says nothing there of whose rows they are."""
    text = mutate(
        EXPORTER,
        ("import argparse\n", "import argparse\nimport acme\n"),
        ("logits = self.head(x)", "logits = acme.head(x).reshape(1, rows, VOCAB)"),
    )
    facts = only(scan_text(tmp_path, {"export.py": text})).facts
    assert facts.logits.value is None
