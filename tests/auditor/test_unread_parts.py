"""What can be told of a graph although parts of its model were not read: by what the script itself does with them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from auditor.sameness import congruent
from auditor.values import Native
from rules.facts import Fact, Graph, Logits, Role
from rules.verdict import judge
from tests.auditor.edits import HEAD
from tests.auditor.support import CORE_ML, EXPORTER, default_graphs, graph_of, judged, mutate, scan_text

# -- one row of what nobody has read -----------------------------------------------------------------------------------

OUTSIDE = ("import argparse\n", "import argparse\nimport outside\n")
BUILD = (
    "        self.norm = nn.LayerNorm(HIDDEN)\n",
    "        self.norm = outside.Norm(HIDDEN)\n        self.other = None\n",
)
UNREAD = "        x = outside.norm(x)\n"
LAST = {
    "a head of the script": "        x = outside.norm(x)\n        logits = outside.head(x[:, -1:, :])\n",
    "a head without a row axis": "        x = outside.norm(x)\n        logits = outside.head(x[:, -1])\n",
    "a method of the row": "        x = outside.norm(x)\n        logits = outside.head(x[:, -1:]).float()\n",
    "a part of the row": "        x = outside.norm(x)\n        logits = outside.head(x[:, -1:, :])[:, 0]\n",
}
NOT_TOLD = {
    "the whole goes on as well": "        x = outside.norm(x)\n        logits = outside.head(x[:, -1:], x)\n",
    "a method of the whole": "        x = outside.norm(x)\n        logits = x.add(x[:, -1:])\n",
    "a row of the batch": "        x = outside.norm(x)\n        logits = outside.head(x[-1:])\n",
    "two rows": "        x = outside.norm(x)\n        logits = outside.head(x[:, -2:])\n",
    "all but one row": "        x = outside.norm(x)\n        logits = outside.head(x[:, :-1])\n",
    "a width": "        x = outside.norm(x)\n        logits = outside.head(x[:, :, -1:])\n",
    "in a list with the whole": "        x = outside.norm(x)\n        logits = outside.head([x, x[:, -1:]])\n",
    "by keywords of the whole": "        x = outside.norm(x)\n        logits = outside.head(x[:, -1:], residual=x)\n",
    "nothing is cut": "        x = outside.norm(x)\n        logits = outside.head(x)\n",
}


def _logits(root: Path, *edits: tuple[str, str]) -> Fact[Logits]:
    return graph_of(scan_text(root, {"export.py": mutate(EXPORTER, OUTSIDE, *edits)})).facts.logits


@pytest.mark.parametrize("name", sorted(LAST))
def test_one_row_of_what_nobody_read_is_one_row(tmp_path: Path, name: str) -> None:
    fact = _logits(tmp_path, (HEAD, LAST[name]))
    assert fact.value is Logits.LAST, fact
    assert any(place.note == "one row is left here" for place in fact.evidence)


@pytest.mark.parametrize("name", sorted(NOT_TOLD))
def test_where_more_than_one_row_goes_on_nothing_is_told(tmp_path: Path, name: str) -> None:
    fact = _logits(tmp_path, (HEAD, NOT_TOLD[name]))
    assert fact.value is None, fact


def test_an_output_that_is_not_said_to_be_logits_is_not_told(tmp_path: Path) -> None:
    fact = _logits(tmp_path, (HEAD, LAST["a head of the script"]), ('output_names=["logits"]', 'output_names=["y"]'))
    assert fact.value is None, fact


# -- a head that nobody has read, which an annotation says is linear ---------------------------------------------------


def _annotated(root: Path, said: str, use: str, top: str = "") -> Fact[Logits]:
    """The logits of a model that is given its head by the caller, who takes it from a package that is not there."""
    return _logits(
        root,
        (
            "class Model(nn.Module):\n    def __init__(self):\n",
            top + f"class Model(nn.Module):\n    def __init__({said}):\n",
        ),
        ("        self.head = nn.Linear(HIDDEN, VOCAB)\n", "        self.head = head\n"),
        ("    model = Model().eval()\n", "    model = Model(head=outside.load().head).eval()\n"),
        (HEAD, f"        logits = {use}\n"),
    )


LINEAR = "self, head: nn.Linear"


@pytest.mark.parametrize("said", [LINEAR, "self, head: torch.nn.Linear", "self, *, head: nn.Linear"])
@pytest.mark.parametrize("use", ["self.head(x)[:, 0]", "self.head(x)[:, 0, :]", "self.head(x)[:, rows - 1]"])
def test_a_row_of_what_is_said_to_be_linear_is_one_row(tmp_path: Path, said: str, use: str) -> None:
    fact = _annotated(tmp_path, said, use)
    assert fact.value is Logits.LAST, fact


OWN = """\
class Linear(nn.Module):
    def forward(self, x):
        return outside.apply(x)


"""
NOT_LINEAR = {
    "nothing is said": ("self, head", "self.head(x)[:, 0]", ""),
    "another kind of module is said": ("self, head: nn.Module", "self.head(x)[:, 0]", ""),
    "a class of the script's own": ("self, head: Linear", "self.head(x)[:, 0]", OWN),
    "what is said is no class": ("self, head: outside.Linear", "self.head(x)[:, 0]", ""),
    "a number of the vocabulary": (LINEAR, "self.head(x)[:, :, 0]", ""),
    "a row of the batch": (LINEAR, "self.head(x)[0]", ""),
    "a row of the batch, and all rows": (LINEAR, "self.head(x)[0, :]", ""),
    "two rows": (LINEAR, "self.head(x)[:, :2]", ""),
    "rows along the last axis": (LINEAR, "self.head(x.transpose(1, 2))[:, 0]", ""),
    "the whole goes on as well": (LINEAR, "self.head(x)[:, 0] + self.head(x).mean(1)", ""),
    "more goes in": (LINEAR, "self.head(x, x)[:, 0]", ""),
    "no row is taken: what is said keeps none": (LINEAR, "self.head(x)", ""),
}


@pytest.mark.parametrize("name", sorted(NOT_LINEAR))
def test_what_is_said_tells_of_a_row_that_is_taken_and_no_more(tmp_path: Path, name: str) -> None:
    fact = _annotated(tmp_path, *NOT_LINEAR[name])
    assert fact.value is None, fact


# -- weights that nobody has read --------------------------------------------------------------------------------------

WEIGHTS = {
    "a linear layer": "        logits = nn.functional.linear(x, self.weight)\n",
    "a scale": "        logits = self.head(x * self.weight)\n",
}


@pytest.mark.parametrize("name", sorted(WEIGHTS))
def test_weights_that_nobody_read_keep_the_rows(tmp_path: Path, name: str) -> None:
    weight = "        self.weight = nn.Parameter(outside.load().weight.detach())\n"
    built = (
        "        self.head = nn.Linear(HIDDEN, VOCAB)\n",
        "        self.head = nn.Linear(HIDDEN, VOCAB)\n" + weight,
    )
    assert _logits(tmp_path, built, (HEAD, WEIGHTS[name])).value is Logits.ALL
    cut = WEIGHTS[name].replace("(x", "(x[:, -1:]")
    assert _logits(tmp_path, built, (HEAD, cut)).value is Logits.LAST


def test_a_tensor_that_is_no_parameter_may_have_any_shape(tmp_path: Path) -> None:
    assert (
        _logits(tmp_path, (HEAD, "        logits = nn.functional.linear(outside.more(x), outside.load())\n")).value
        is None
    )
    assert _logits(tmp_path, (HEAD, "        logits = self.head(x) * outside.load()\n")).value is None


# -- dicts of modules --------------------------------------------------------------------------------------------------

PARTS = (
    (
        "        self.norm = nn.LayerNorm(HIDDEN)\n",
        "        self.parts = nn.ModuleDict(dict(norm=nn.LayerNorm(HIDDEN)))\n",
    ),
    ("        x = self.norm(x)\n", "        x = self.parts.norm(x)\n"),
)
CUT = """\
class Cut(nn.Module):
    def forward(self, x):
        return x[:, -1:]


class Model(nn.Module):
"""


def test_an_entry_of_a_dict_of_modules_is_an_attribute_too(tmp_path: Path) -> None:
    assert judged(tmp_path, mutate(EXPORTER, *PARTS)).says() == "eligible"


@pytest.mark.parametrize("way", ["self.parts.norm = Cut()", "self.parts['norm'] = Cut()"])
@pytest.mark.parametrize("use", ["self.parts.norm(x)", "self.parts['norm'](x)", "[*self.parts.values()][0](x)"])
def test_an_entry_that_is_replaced_is_replaced_in_both_ways(tmp_path: Path, way: str, use: str) -> None:
    head = "        self.head = nn.Linear(HIDDEN, VOCAB)\n"
    edits = (("self.parts.norm(x)", use), (head, f"{head}        {way}\n"), ("class Model(nn.Module):\n", CUT))
    script = mutate(mutate(EXPORTER, *PARTS), *edits)
    assert judged(tmp_path, script).says() == "out by last-token-only"


# -- layouts -----------------------------------------------------------------------------------------------------------

SWITCH = """\
        if int(open("layout").read()):
            logits = logits.unsqueeze(1)
        else:
            logits = {}
"""


@pytest.mark.parametrize(
    ("other", "logits"),
    [("logits.unsqueeze(2)", Logits.ALL), ("logits[:, -1:].unsqueeze(2)", None)],
)
def test_logits_of_two_layouts_have_the_rows_that_both_have(tmp_path: Path, other: str, logits: Logits | None) -> None:
    result = scan_text(tmp_path, {"export.py": mutate(EXPORTER, (HEAD, HEAD + SWITCH.format(other)))})
    assert graph_of(result).facts.logits.value is logits


# -- remainders --------------------------------------------------------------------------------------------------------

COUNT = (
    ("HEADS, LAYERS, CONTEXT = 128, 32, 4, 2, 512", "HEADS, CONTEXT = 128, 32, 4, 512"),
    ("class Layer(nn.Module):\n", "LAYERS = int(open('layers').read())\n\n\nclass Layer(nn.Module):\n"),
    ("for i, layer in enumerate(self.layers):", "for i in range(len(self.layers)):"),
)
SLOT = "            x = layer(x, position_ids, key_cache[i], value_cache[i])\n"
BY_LAYER = "            x = self.layers[i](x, position_ids, key_cache[i % 2], value_cache[i % 2])\n"
WRITE = "        key_cache[:, :, start:end] = k\n"
ROUND = "        for row in range(rows):\n            key_cache[:, :, {}] = k[:, :, row]\n"


def test_a_layers_number_that_wraps_is_no_ring(tmp_path: Path) -> None:
    judgement = judged(tmp_path, mutate(EXPORTER, *COUNT, (SLOT, BY_LAYER)))
    assert "ring-cache" not in {f.rule for f in judgement.reasons}, judgement.reasons


@pytest.mark.parametrize("slot", ["(start + row) % 64", "start % 64", "row % 64"])
def test_a_position_that_wraps_is_a_ring(tmp_path: Path, slot: str) -> None:
    layer = SLOT.replace("layer(x", "self.layers[i](x")
    judgement = judged(tmp_path, mutate(EXPORTER, *COUNT, (SLOT, layer), (WRITE, ROUND.format(slot))))
    assert "ring-cache" in {f.rule for f in judgement.reasons}, judgement.reasons


# -- graphs that take each other's outputs -----------------------------------------------------------------------------

TRANSDUCER = """\
import torch
from coreai_torch import TorchConverter
import outside

model = outside.load()


def save(module, inputs, input_names, output_names, name):
    program = torch.export.export(module, tuple(inputs))
    converter = TorchConverter()
    converter.add_exported_program(program, input_names=input_names, output_names=output_names)
    converter.to_coreai().save_asset(f"out/{name}.aimodel")


class Step(torch.nn.Module):
    def __init__(self, model):
        super().__init__()
        self.embedding, self.lstm, self.out = model.embedding, model.lstm, model.out

    def forward(self, input_ids, hidden_state, cell_state):
        y, (hidden, cell) = self.lstm(self.embedding(input_ids), (hidden_state, cell_state))
        return self.out(y), hidden, cell


state = torch.zeros(2, 1, 64)
STEP = ["decoder_output", "new_hidden_state", "new_cell_state"]
JOINT = ["decoder_hidden_states", "encoder_hidden_states"]
save(Step(model), [torch.zeros((1, 1), dtype=torch.int32), state, state.clone()],
     ["input_ids", "hidden_state", "cell_state"], STEP, "step")
save(model.joint, [torch.zeros(1, 1, 64), torch.zeros(1, 1, 64)], JOINT, ["logits"], "joint")
"""


def _step(root: Path, script: str) -> Graph:
    graphs = default_graphs(scan_text(root, {"export.py": script}))
    return next(g for g in graphs if g.bundle.endswith("step.aimodel"))


def test_an_output_that_another_graph_takes_is_no_logits(tmp_path: Path) -> None:
    facts = _step(tmp_path, TRANSDUCER).facts
    assert facts.logits.value is Logits.NONE, facts.logits
    assert {s.name: s.role for s in facts.states.value or ()} == {
        "hidden_state": Role.RECURRENT,
        "cell_state": Role.RECURRENT,
    }
    assert [f.rule for f in judge(facts).reasons] == ["hybrid-state", "no-logits", "static-query"]


@pytest.mark.parametrize(
    "edit",
    [
        ('JOINT = ["decoder_hidden_states"', 'JOINT = ["audio_hidden_states"'),
        ('STEP = ["decoder_output"', 'STEP = ["decoder_logits"'),
        ('STEP = ["decoder_output"', 'STEP = ["output"'),
    ],
    ids=["no other graph takes it", "it is said to be logits", "the name says nothing"],
)
def test_an_output_that_no_other_graph_takes_may_be_logits(tmp_path: Path, edit: tuple[str, str]) -> None:
    assert _step(tmp_path, mutate(TRANSDUCER, edit)).facts.logits.value is None


def test_a_script_that_exports_one_graph_hands_nothing_on(tmp_path: Path) -> None:
    alone = TRANSDUCER[: TRANSDUCER.index("save(model.joint")]
    assert _step(tmp_path, alone).facts.logits.value is None


# -- what is of one kind, or one thing ---------------------------------------------------------------------------------


def test_a_function_of_pytorch_is_the_same_under_other_conditions() -> None:
    """Layers that are made under a condition hold copies that go by its flag."""
    silu = Native("silu", lambda it, args, site: args.pos[0])
    flagged = replace(silu, flags=frozenset({"--model"}))
    assert congruent(silu, flagged)
    assert not congruent(silu, Native("silu", lambda it, args, site: args.pos[0]))


WRAPPED = (
    (
        "model = Model().eval()\n",
        """\
class Wrapper(nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, input_ids, causal_mask):
        return self.inner(input_ids, causal_mask)


inner = Model().eval()
model = Wrapper(inner)
""",
    ),
    ("shape=model.keyCache.shape", "shape=inner.keyCache.shape"),
    ("shape=model.valueCache.shape", "shape=inner.valueCache.shape"),
    ('name="keyCache"', 'name="inner.keyCache"'),
)


VALUES = '        ct.StateType(ct.TensorType(shape=inner.valueCache.shape, dtype=np.float16), name="valueCache"),\n'


@pytest.mark.parametrize(
    ("edit", "states"),
    [
        (
            ('name="valueCache"', 'name="inner.valueCache"'),
            {"inner.keyCache": Role.KV_KEY, "inner.valueCache": Role.KV_VALUE},
        ),
        ((VALUES, ""), {"inner.keyCache": Role.KV_KEY, "valueCache": Role.UNKNOWN}),
    ],
    ids=["both", "one"],
)
def test_a_state_by_its_qualified_name_is_the_buffer(
    tmp_path: Path, edit: tuple[str, str], states: dict[str, Role]
) -> None:
    facts = graph_of(scan_text(tmp_path, {"export.py": mutate(mutate(CORE_ML, *WRAPPED), edit)})).facts
    assert {s.name: s.role for s in facts.states.value or ()} == states
