"""Objects whose attributes come out of a file, under names that nobody knows before the script runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from rules.verdict import Verdict
from tests.auditor.edits import STATIC, UNKNOWN_LOGITS, UNKNOWN_QUERY
from tests.auditor.support import EXPORTER, judged, mutate

CONSTANTS = "VOCAB, HIDDEN, HEADS, LAYERS, CONTEXT = 128, 32, 4, 2, 512\n"
RECORD = """\
import json


class Config:
    def __init__(self, given):
        for k, v in given.items():
            setattr(self, k, Config(v) if isinstance(v, dict) else v)


with open("config.json") as file:
    config = Config(json.load(file)).text
HIDDEN, HEADS, CONTEXT = 32, 4, 512
VOCAB, LAYERS = config.vocab_size, config.layers
"""
SCALE = ("        return x + self.out(y)\n", "        return x + self.out(y) * config.rope.scale\n")


def test_a_record_of_plain_data(tmp_path: Path) -> None:
    assert judged(tmp_path, mutate(EXPORTER, (CONSTANTS, RECORD), SCALE)).says() == "eligible"


@pytest.mark.parametrize(
    "edits",
    [
        # what is set may be no data
        (("Config(v) if isinstance(v, dict) else v)", "nowhere.build(v))"), ("import json", "import json, nowhere")),
        # the scale comes out of a method
        (
            ("class Config:\n", "class Config:\n    def cut(self):\n        return nowhere.cut(self)\n\n"),
            ("config.rope.scale", "config.rope.cut()"),
            ("import json", "import json, nowhere"),
        ),
        # something else was set behind it
        (
            ("import json", "import json, nowhere"),
            ("config = Config(json.load(file)).text", "config = Config(json.load(file))"),
            ("HIDDEN, HEADS, CONTEXT =", "setattr(config, input(), nowhere.text)\nHIDDEN, HEADS, CONTEXT ="),
        ),
    ],
)
def test_an_object_that_may_hold_more_than_data(tmp_path: Path, edits: tuple[tuple[str, str], ...]) -> None:
    script = mutate(mutate(EXPORTER, (CONSTANTS, RECORD), SCALE), *edits)
    assert judged(tmp_path, script).says() == UNKNOWN_LOGITS


DEFAULTS = """\
import json


class Config:
    static = False

    def __init__(self, given):
        self.width = 8
        {fill}


with open("config.json") as file:
    config = Config(json.load(file))
"""
WIDTH = ("tokens = 1 if args.static else 8", "tokens = config.width")
DYNAMIC = ('"input_ids": None if args.static else {1: Dim("tokens", min=1, max=64)}', '"input_ids": None')
FILLS = {
    "setattr": "for k, v in given.items():\n            setattr(self, k, v)",
    "__dict__": "self.__dict__.update(given)",
    "vars": "vars(self).update(given)",
    "pairs": "vars(self).update([(k, v) for k, v in given.items()])",
    "items": "for k, v in given.items():\n            self.__dict__[k] = v",
}


@pytest.mark.parametrize("name", sorted(FILLS))
def test_what_was_set_before_may_be_another_value_now(tmp_path: Path, name: str) -> None:
    script = mutate(EXPORTER, (CONSTANTS, DEFAULTS.format(fill=FILLS[name]) + CONSTANTS), WIDTH, DYNAMIC)
    assert judged(tmp_path, script).says() == UNKNOWN_QUERY
    known = mutate(script, (FILLS[name], "self.__dict__.update({'width': 1})"))
    assert judged(tmp_path, known).says() == STATIC


@pytest.mark.parametrize("name", sorted(FILLS))
def test_an_attribute_of_the_class_may_be_hidden(tmp_path: Path, name: str) -> None:
    edit = ('None if args.static else {1: Dim("tokens"', 'None if config.static else {1: Dim("tokens"')
    script = mutate(EXPORTER, (CONSTANTS, DEFAULTS.format(fill=FILLS[name]) + CONSTANTS), edit)
    assert judged(tmp_path, script).verdict is not Verdict.ELIGIBLE


def test_whether_a_record_has_an_attribute(tmp_path: Path) -> None:
    edit = ('None if args.static else {1: Dim("tokens"', 'None if hasattr(config, "pinned") else {1: Dim("tokens"')
    filled = DEFAULTS.format(fill=FILLS["setattr"]) + CONSTANTS
    assert judged(tmp_path, mutate(EXPORTER, (CONSTANTS, filled), edit)).says() == UNKNOWN_QUERY


def test_attributes_of_another_object(tmp_path: Path) -> None:
    """What is known of the other one is known here."""
    filled = DEFAULTS.format(fill="vars(self).update(vars(given))")
    filled = filled.replace("Config(json.load(file))", "Config(argparse.Namespace(width=1))")
    assert judged(tmp_path, mutate(EXPORTER, (CONSTANTS, filled + CONSTANTS), WIDTH, DYNAMIC)).says() == STATIC
