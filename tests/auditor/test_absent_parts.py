"""A part that is None on one way: to call it is an error, which ends that way, or leads to where it is caught."""

from __future__ import annotations

from pathlib import Path

import pytest

from rules.facts import Logits
from rules.verdict import Verdict
from tests.auditor.edits import HEAD, built
from tests.auditor.support import EXPORTER, graph_of, judged, mutate, scan_text

UNKNOWN = (
    "import argparse\n",
    'import argparse\nimport json\nimport outside\nCONFIG = json.load(open("config.json"))\n'
    'WIDTHS, KINDS = CONFIG["num_hidden_layers"], CONFIG["kinds"]\n',
)
SCALE = """\
class Scale(nn.Module):
    def forward(self, x):
        return x * 2.0


class Last(nn.Module):
    def forward(self, x):
        return x[:, -1:]


class Model(nn.Module):
"""
MAYBE = "        self.part = {} if WIDTHS else None\n        self.norm = nn.LayerNorm(HIDDEN)\n"


def _logits(root: Path, part: str, use: str) -> Logits | None:
    script = mutate(
        EXPORTER,
        UNKNOWN,
        ("class Model(nn.Module):\n", SCALE),
        ("        self.norm = nn.LayerNorm(HIDDEN)\n", MAYBE.format(part)),
        (HEAD, use + HEAD),
    )
    return graph_of(scan_text(root, {"export.py": script})).facts.logits.value


CALL = "        x = self.part(x)\n"
CAUGHT = "        try:\n            x = self.part(x)\n        except {}:\n            x = x[:, -1:]\n"


def test_a_part_that_is_called_is_there(tmp_path: Path) -> None:
    assert _logits(tmp_path, "Scale()", CALL) is Logits.ALL


def test_what_the_part_does_counts(tmp_path: Path) -> None:
    assert _logits(tmp_path, "Last()", CALL) is Logits.LAST


NOT_ALL = {
    "one that is called where it may be None, and the error is caught": ("Scale()", CAUGHT.format("TypeError")),
    "caught by any exception": ("Scale()", CAUGHT.format("Exception")),
    "the other way cuts": ("Scale()", "        x = self.part(x) if self.part is not None else x[:, -1:]\n"),
    "another flag decides whether it is called": (
        "Scale()",
        "        x = self.part(x) if KINDS else x[:, -1:]\n",
    ),
    "a part that nobody can read": ("outside.part()", CALL),
    "a part that cuts on its own way": ("Scale() if KINDS else Last()", CALL),
    "None on both ways": ("None", CALL),
}


@pytest.mark.parametrize("name", sorted(NOT_ALL))
def test_where_rows_may_be_lost_they_are_not_all_there(tmp_path: Path, name: str) -> None:
    assert _logits(tmp_path, *NOT_ALL[name]) is not Logits.ALL


def test_parts_that_some_layers_have(tmp_path: Path) -> None:
    script = mutate(
        EXPORTER,
        UNKNOWN,
        ("class Layer(nn.Module):\n", SCALE.replace("class Model", "class Layer")),
        (
            "        self.out = nn.Linear(HIDDEN, HIDDEN)\n",
            "        self.out = nn.Linear(HIDDEN, HIDDEN)\n        self.wide = wide\n"
            "        self.part, self.use = None, False\n",
        ),
        (
            "    def __init__(self):\n        super().__init__()\n        self.qkv",
            "    def __init__(self, wide):\n        super().__init__()\n        self.qkv",
        ),
        ("        return x + self.out(y)\n", "        return self.part(x) if self.use else x + self.out(y)\n"),
        ("[Layer() for _ in range(LAYERS)]", "[Layer(KINDS[i]) for i in range(WIDTHS)]"),
        (
            "    tokens = 1 if args.static else 8\n",
            "    tokens = 1 if args.static else 8\n    for layer in model.layers:\n        if layer.wide:\n"
            "            layer.part = PART\n            layer.use = True\n",
        ),
    )
    for part, expected in (("Scale()", True), ("Last()", False)):
        graph = graph_of(scan_text(tmp_path, {"export.py": script.replace("PART", part)}))
        assert (graph.facts.logits.value is Logits.ALL) is expected


def test_a_script_that_calls_none_says_where_it_ends(tmp_path: Path) -> None:
    script = mutate(EXPORTER, ("    model = Model().eval()\n", "    make = None\n    model = make().eval()\n"))
    judgement = judged(tmp_path, script)
    assert judgement.verdict is Verdict.UNRESOLVED
    assert any("None is called" in f.message for f in judgement.reasons)


HANDED_ON = {
    "set under a name that is not known": 'setattr(model, CONFIG["part"], Last())',
    "added under a name that is not known": 'model.add_module(CONFIG["part"], Last())',
    "added by keywords": 'model.add_module(name=CONFIG["part"], module=Last())',
    "registered under a name that is not known": 'model.register_module(CONFIG["part"], Last())',
    "put among the parts": 'model._modules[CONFIG["part"]] = Last()',
    "put among the attributes": 'vars(model)[CONFIG["part"]] = Last()',
    "put in by code that nobody can read": "outside.install(model)",
    "put into the class by code that nobody can read": "outside.install(Model)",
}


@pytest.mark.parametrize("name", sorted(HANDED_ON))
def test_a_part_that_may_have_been_put_in_is_not_none(tmp_path: Path, name: str) -> None:
    script = mutate(
        EXPORTER,
        UNKNOWN,
        ("class Model(nn.Module):\n", SCALE),
        (
            "        self.norm = nn.LayerNorm(HIDDEN)\n",
            "        self.norm = nn.LayerNorm(HIDDEN)\n        self.part = None\n",
        ),
        (HEAD, "        x = self.part(x) if WIDTHS else x\n" + HEAD),
        built(HANDED_ON[name]),
    )
    assert judged(tmp_path, script).verdict is not Verdict.ELIGIBLE
