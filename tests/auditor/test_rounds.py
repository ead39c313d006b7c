"""Lists of unknown length: what a later loop does to each element, and what was read from files or joined by loops."""

from __future__ import annotations

from pathlib import Path

import pytest

from auditor import dims, operators
from auditor.containers.lengths import length
from auditor.dims import Atom
from auditor.torch.ops.creation import data_shape
from auditor.values import Const, Num, Seq, Star, as_dim
from rules.facts import Logits
from rules.verdict import Verdict
from tests.auditor.edits import HEAD, IDS, NORM, ONE_TOKEN, RETURN, built
from tests.auditor.support import EXPORTER, graph_of, indented, judged, mutate, scan_text

COUNT = ("HEADS, LAYERS, CONTEXT = 128, 32, 4, 2, 512", "HEADS, CONTEXT = 128, 32, 4, 512")
BUILD = "    model = Model().eval()\n"
TOP = """\
import json
LAYERS = json.load(open("config.json"))["num_hidden_layers"]


class Wrapped(nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, x):
        return self.inner(x)


class Cut(Wrapped):
    def forward(self, x):
        return self.inner(x)[:, -1:]


class Shared:
    def __init__(self):
        self.n = 0


class Layer(nn.Module):
"""


def made(*lines: str, edits: tuple[tuple[str, str], ...] = ()) -> str:
    """The exporter with a layer count that only a checkpoint knows, and these lines behind the model's making."""
    build = (BUILD, BUILD + indented(lines, 4))
    return mutate(EXPORTER, COUNT, ("class Layer(nn.Module):\n", TOP), build, *edits)


WRAP = ("def wrap(layer):", "    layer.out = Wrapped(layer.out)")
ONCE = {
    "wrapped": ("for layer in model.layers:", "    layer.out = Wrapped(layer.out)"),
    "wrapped through a name": ("for layer in model.layers:", "    old = layer.out", "    layer.out = Wrapped(old)"),
    "wrapped by the names of attributes": (
        'for layer in model.layers:\n        for name in ("qkv", "out", "up"):',
        "        old = getattr(layer, name, None)",
        "        if isinstance(old, nn.Linear):",
        "            setattr(layer, name, Wrapped(old))",
    ),
    "wrapped twice": (
        "for layer in model.layers:",
        "    layer.out = Wrapped(layer.out)",
        "for layer in model.layers:",
        "    layer.out = Wrapped(layer.out)",
    ),
    "by map": (*WRAP, "list(map(wrap, model.layers))"),
    "by map with an index": (*WRAP, "list(map(lambda layer, i: wrap(layer), model.layers, range(LAYERS)))"),
    "filtered": (*WRAP, "for layer in filter(lambda l: l.out is not None, model.layers):", "    wrap(layer)"),
    "sorted": (*WRAP, "for layer in sorted(model.layers, key=lambda l: l.out.in_features):", "    wrap(layer)"),
}


@pytest.mark.parametrize("name", sorted(ONCE))
def test_each_element_is_changed_once(tmp_path: Path, name: str) -> None:
    judgement = judged(tmp_path, made(*ONCE[name]))
    assert judgement.says() == "eligible", [f.message for f in judgement.reasons]


COUNTED = (NORM, "        if self.layers[0].n > 1:\n            x = x[:, -1:]\n" + NORM)
BY_SHARED = (NORM, "        if self.shared.n > 1:\n            x = x[:, -1:]\n" + NORM)
EACH = (NORM, "        for layer in self.layers:\n            if layer.n > 1:\n                x = x[:, -1:]\n" + NORM)
NOT_ONCE = {
    "cut": (made("for layer in model.layers:", "    layer.out = Cut(layer.out)"),),
    "cut in a part of the list": (made("for layer in model.layers[1:]:", "    layer.out = Cut(layer.out)"),),
    "whole in a part of the list": (
        made(
            "for layer in model.layers:",
            "    layer.n = 2",
            "for layer in model.layers[1:]:",
            "    layer.n = 1",
            edits=(EACH,),
        ),
    ),
    "an object that all elements share": (
        made(
            "model.shared = Shared()",
            "for layer in model.layers:",
            "    layer.shared = model.shared",
            "for layer in model.layers:",
            "    layer.shared.n += 1",
            edits=(BY_SHARED,),
        ),
    ),
    "one element in every round": (
        made(
            "first = model.layers[0]",
            "first.n = 0",
            "for layer in model.layers:",
            "    first.n += 1",
            edits=(COUNTED,),
        ),
    ),
    "one element by its number in every round": (
        made("for layer in model.layers:", "    layer.n = 0", "for layer in model.layers:",
             "    model.layers[0].n += 1", edits=(COUNTED,)),
    ),
    "the element of the round before": (
        made(
            "for layer in model.layers:",
            "    layer.n = 0",
            "before = None",
            "for layer in model.layers:",
            "    layer.n += 1",
            "    if before is not None:",
            "        before.n += 1",
            "    before = layer",
            edits=(COUNTED,),
        ),
    ),
    "the element of the round before, by an inner function": (
        made(
            "for layer in model.layers:",
            "    layer.n = 0",
            "last = Shared()",
            'again = lambda: setattr(last, "n", 2)',
            "for layer in model.layers:",
            "    again()",
            "    last = layer",
            "    layer.n = 1",
            edits=(COUNTED,),
        ),
    ),
    "two loops": (
        made(
            "for layer in model.layers:",
            "    layer.n = 0",
            *("for layer in model.layers:", "    layer.n += 1") * 2,
            edits=(COUNTED,),
        ),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(NOT_ONCE))
def test_what_adds_up_is_not_taken_for_once(tmp_path: Path, name: str) -> None:
    assert judged(tmp_path, NOT_ONCE[name][0]).verdict is not Verdict.ELIGIBLE


BEFORE = ("last = Shared()", 'again = lambda: setattr(last, "n", 2)')
IN_ROUNDS = ("for layer in model.layers:", "    {}", "    last = layer", "    layer.n = 1")


@pytest.mark.parametrize(("call", "verdict"), [("again()", Verdict.UNRESOLVED), ("pass", Verdict.ELIGIBLE)])
def test_a_function_that_reads_a_modules_name_of_the_round_before(tmp_path: Path, call: str, verdict: Verdict) -> None:
    lines = [line.format(call) for line in ((*BEFORE, *IN_ROUNDS) if call == "again()" else IN_ROUNDS)]
    text = made("for layer in model.layers:", "    layer.n = 0", *lines, edits=(COUNTED,))
    text = text.partition("\nif __name__")[0].replace("def export(args):", "if True:").replace("args.static", "False")
    assert judged(tmp_path, text).verdict is verdict


# -- what was read from files ---------------------------------------------------------------------------------------

PACKED = """\
from safetensors.torch import load_file


class Packed(nn.Module):
    def __init__(self, weight):
        super().__init__()
        self.n = int(weight.shape[0])
        scale = weight.detach().float().abs().mean()
        codes = (weight.float() / scale).round().clamp(-1, 1).to(torch.int8)
        self.register_buffer("codes", codes.reshape(VOCAB, HIDDEN))

    def forward(self, ids):
        batch, rows = ids.shape
        return self.codes.index_select(0, ids.reshape(-1)).reshape(batch, rows, HIDDEN).float()


class Model(nn.Module):
"""
EMBED = ("        self.embed = nn.Embedding(VOCAB, HIDDEN)\n", '        self.embed = Packed(load_file("w")["embed"])\n')


def test_a_tensors_method_says_that_data_is_a_tensor(tmp_path: Path) -> None:
    judgement = judged(tmp_path, mutate(EXPORTER, ("class Model(nn.Module):\n", PACKED), EMBED))
    assert judgement.says() == "eligible", [f.message for f in judgement.reasons]


def test_a_reshape_of_what_nobody_read_is_not_known(tmp_path: Path) -> None:
    edit = (NORM, "        import rowkit\n        x = rowkit.f(x).reshape(1, rows, HIDDEN)\n" + NORM)
    assert judged(tmp_path, mutate(EXPORTER, edit)).says() == "unresolved by unknown-logits"


def test_a_number_of_a_configuration_is_no_method(tmp_path: Path) -> None:
    script = mutate(
        EXPORTER,
        ("VOCAB, HIDDEN, HEADS", 'import json\nCONFIG = json.load(open("c.json"))["model"]\nVOCAB, HEADS'),
        (" = 128, 32, 4, 2, 512", ' = 128, 4, 2, 512\nHIDDEN = CONFIG["dim"]'),
    )
    assert judged(tmp_path, script).says() == "eligible"


q = dims.symbol(Atom("q", query=True))


def test_a_repeated_list_keeps_its_length() -> None:
    made = operators.binary("*", Seq("list", [Const(0.0), Const(1.0)]), Num(q))
    assert isinstance(made, Seq)
    assert made.count == dims.mul(2, q)
    assert as_dim(length(None, made, None)) == dims.mul(2, q)  # type: ignore[arg-type]
    assert data_shape(Seq("list", [made, made])) == (2, dims.mul(2, q))


def test_a_list_that_a_loop_fills_has_no_length() -> None:
    assert Seq("list", [Star((Const(0.0),))]).count is None
    assert data_shape(Seq("list", [Star((Const(0.0),))])) is None


LAYERS = "            x = layer(x, position_ids, key_cache[i], value_cache[i])\n"
FOR = "        for i, layer in enumerate(self.layers):\n"
JOINED = {
    "rows of all rounds": "        x = torch.cat(kept, dim=1)\n",
    "one row of each round": "        x = torch.cat([k[:, -1:] for k in kept], dim=1)\n",
    "one row beside all": "        x = torch.cat([x, *(k[:, -1:] for k in kept)], dim=1)\n",
}


@pytest.mark.parametrize("name", sorted(JOINED))
def test_rows_joined_over_rounds_are_not_those_of_the_query(tmp_path: Path, name: str) -> None:
    edits = (
        (FOR, "        kept = []\n" + FOR),
        (LAYERS, LAYERS + "            kept.append(x)\n"),
        (NORM, JOINED[name] + NORM),
    )  # fmt: skip
    assert judged(tmp_path, made(edits=edits)).verdict is not Verdict.ELIGIBLE


# -- one row --------------------------------------------------------------------------------------------------------

FLAG = built('model.more = __import__("json").load(open("c.json"))["more"]')
MIXED = (HEAD, "        x = x + x[:, 0:1]\n" + HEAD)


def test_one_row_has_no_other_to_be_mixed_with(tmp_path: Path) -> None:
    pinned = mutate(EXPORTER, MIXED, ONE_TOKEN, (IDS, '        "input_ids": None,\n'))
    facts = graph_of(scan_text(tmp_path, {"export.py": pinned})).facts
    assert facts.logits.value is Logits.ALL
    assert judged(tmp_path / "again", pinned).says() == "out by static-query"


def test_a_row_that_one_way_adds_to_all_is_mixed(tmp_path: Path) -> None:
    edit = (HEAD, "        y = x[:, -1:] if self.more else x\n        x = x + y\n" + HEAD)
    assert judged(tmp_path, mutate(EXPORTER, FLAG, edit)).says() == "unresolved by unknown-logits"


def test_rows_that_are_mixed_are_not_known_where_there_are_more(tmp_path: Path) -> None:
    assert judged(tmp_path, mutate(EXPORTER, MIXED)).says() == "unresolved by unknown-logits"
    wide = mutate(EXPORTER, MIXED, ("1 if args.static else 8", "8"), (IDS, '        "input_ids": None,\n'))
    assert graph_of(scan_text(tmp_path / "wide", {"export.py": wide})).facts.logits.value is None


# -- outputs --------------------------------------------------------------------------------------------------------

ENDS = {
    "eligible": "        if self.more:\n            return logits, x\n        return logits\n",
    "one row on one way": "        if self.more:\n            return logits[:, -1:], x\n        return logits\n",
    "hidden states on one way": "        if self.more:\n            return x, x\n        return logits\n",
    "nothing on one way": "        if self.more:\n            return None\n        return logits\n",
}


@pytest.mark.parametrize("name", sorted(ENDS))
def test_a_tensor_on_one_way_and_a_tuple_on_the_other(tmp_path: Path, name: str) -> None:
    eligible = judged(tmp_path, mutate(EXPORTER, FLAG, (RETURN, ENDS[name]))).verdict is Verdict.ELIGIBLE
    assert eligible is (name == "eligible")


# -- objects that a list may have -----------------------------------------------------------------------------------

PICKED = 'picked = [layer for layer in model.layers if layer.kind == "wide"]'
KIND = (
    "        self.out = nn.Linear(HIDDEN, HIDDEN)\n",
    "        self.out, self.kind = nn.Linear(HIDDEN, HIDDEN), KIND\n",
)


def picked(*lines: str) -> str:
    return made(PICKED, *lines, edits=(KIND, ("import argparse\n", 'import argparse\nKIND = input("kind")\n')))


def test_elements_that_are_picked_by_an_unknown_condition(tmp_path: Path) -> None:
    assert judged(tmp_path, picked("for layer in picked:", "    layer.out = Wrapped(layer.out)")).says() == "eligible"
    cut = picked("for layer in picked:", "    layer.out = Cut(layer.out)")
    assert judged(tmp_path / "cut", cut).verdict is Verdict.UNRESOLVED


def test_a_name_that_a_list_may_have_is_not_taken_for_one(tmp_path: Path) -> None:
    states = 'STATES = ["keyCache", "valueCache"]'
    maybe = mutate(EXPORTER, (states, 'STATES = ["keyCache"]\nif input("both"):\n    STATES.append("valueCache")'))
    assert judged(tmp_path, maybe).verdict is Verdict.UNRESOLVED


CHANGE = (
    "import collections, functools, itertools",
    "for layer in model.layers:",
    "    layer.n = 0",
    "first = model.layers[0]",
    "def change(layer):",
    "    first.n += 1",
    "    return layer",
)
CALLED_FOR_EACH = (
    "list(map(change, model.layers))",
    "list(map(lambda layer, i: change(layer), model.layers, range(LAYERS)))",
    "collections.deque(map(change, model.layers), maxlen=0)",
    "for _ in map(change, model.layers):\n        pass",
    "list(filter(change, model.layers))",
    "sorted(model.layers, key=change)",
    "max(model.layers, key=lambda layer: change(layer) and 1)",
    "list(itertools.starmap(change, zip(model.layers)))",
    "functools.reduce(lambda total, layer: change(layer), model.layers)",
    "functools.reduce(lambda total, layer: change(layer), model.layers, 0)",
    "[change(layer) for layer in model.layers]",
    "all(change(layer) for layer in model.layers)",
)


@pytest.mark.parametrize("line", CALLED_FOR_EACH)
def test_a_function_that_is_called_for_each_element_is_called_more_than_once(tmp_path: Path, line: str) -> None:
    judgement = judged(tmp_path, made(*CHANGE, line, edits=(COUNTED,)))
    assert judgement.verdict is not Verdict.ELIGIBLE


@pytest.mark.parametrize("line", ["max([model], key=count)", "sorted([model], key=count)", "[model].sort(key=count)"])
def test_a_key_is_called_once_for_an_item(tmp_path: Path, line: str) -> None:
    count = ("def count(m):", "    m.n += 1", "    return 1", "model.n = 0", line)
    cut = (NORM, "        if self.n > 1:\n            x = x[:, -1:]\n" + NORM)
    assert judged(tmp_path, made(*count, edits=(cut,))).says() == "eligible"
