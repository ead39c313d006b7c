"""What becomes of the unknown: branches, loops of unknown length, calls that nobody can read, missing checkpoints."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rules.facts import Graph, InvocationKind, Scan
from rules.verdict import judge
from tests.auditor.edits import BUILD, LAST, PROGRAM, UNKNOWN_LOGITS, UNKNOWN_ROLE, before, built
from tests.auditor.support import EXPORTER, default_graphs, graph_of, indented, judged, mutate, scan_text

LAYERS = "            x = layer(x, position_ids, key_cache[i], value_cache[i])\n"
LAYER_LIST = "nn.ModuleList([Layer() for _ in range(LAYERS)])"
COUNT = ("HEADS, LAYERS, CONTEXT = 128, 32, 4, 2, 512", "HEADS, CONTEXT = 128, 32, 4, 512")
FROM_FILE = 'import json\nLAYERS = json.load(open("config.json"))["num_hidden_layers"]\n\n\nclass Layer(nn.Module):\n'


def unknown_count(*edits: tuple[str, str]) -> str:
    """The exporter with a layer count that only a checkpoint knows."""
    return mutate(EXPORTER, COUNT, ("class Layer(nn.Module):\n", FROM_FILE), *edits)


# -- loops ------------------------------------------------------------------------------------------------------


def test_a_layer_count_from_a_checkpoint(tmp_path: Path) -> None:
    assert judged(tmp_path, unknown_count()).says() == "eligible"


LOOPS = {
    "appended one by one": (
        LAYER_LIST,
        "nn.ModuleList()\n        for _ in range(LAYERS):\n            self.layers.append(Layer())",
    ),
    "a generator": (LAYER_LIST, "nn.ModuleList(Layer() for _ in range(LAYERS))"),
    "a sequence by star": (LAYER_LIST, "nn.ModuleList([*(Layer() for _ in range(LAYERS))])"),
    "an index loop": (
        "        for i, layer in enumerate(self.layers):\n" + LAYERS,
        "        for i in range(len(self.layers)):\n"
        "            x = self.layers[i](x, position_ids, key_cache[i], value_cache[i])\n",
    ),
    "a while loop": (
        "        for i, layer in enumerate(self.layers):\n" + LAYERS,
        "        i = 0\n        while i < len(self.layers):\n"
        "            x = self.layers[i](x, position_ids, key_cache[i], value_cache[i])\n            i += 1\n",
    ),
    "a slice of the layers": ("enumerate(self.layers)", "enumerate(self.layers[:12])"),
    "collected hidden states": (
        LAYERS,
        LAYERS + "            kept = [x]\n            kept.append(x)\n",
    ),
}


@pytest.mark.parametrize("name", sorted(LOOPS))
def test_loops_of_unknown_length_that_keep_the_shape(tmp_path: Path, name: str) -> None:
    judgement = judged(tmp_path, unknown_count(LOOPS[name]))
    assert judgement.says() == "eligible", [f.message for f in judgement.reasons]


WIDENED = {
    "a slice in each round": (LAYERS, LAYERS + "            x = x[:, -1:]\n"),
    "one row fewer in each round": (LAYERS, LAYERS + "            x = x[:, 1:]\n"),
    "another rank in each round": (LAYERS, LAYERS + "            x = x[None]\n"),
    "a cut in the last round": (
        LAYERS,
        LAYERS + "            if i == len(self.layers) - 1:\n                x = x[:, -1:]\n",
    ),
    "a cut in a round that may not come": (LAYERS, LAYERS + "            if i == 7:\n                x = x[:, -1:]\n"),
    "a call that cannot be read in each round": (
        LAYERS,
        LAYERS + "            import missing_package; x = missing_package.f(x)\n",
    ),
}


@pytest.mark.parametrize("name", sorted(WIDENED))
def test_loops_that_do_not_give_back_what_they_received(tmp_path: Path, name: str) -> None:
    judgement = judged(tmp_path, unknown_count(WIDENED[name]))
    assert judgement.says() in (LAST, UNKNOWN_LOGITS, UNKNOWN_ROLE), [f.message for f in judgement.reasons]


def test_a_convolution_in_some_layers_of_an_unknown_number(tmp_path: Path) -> None:
    """Which layers are convolutions is unknown; that there is a state for them is not."""
    script = unknown_count(('STATES = ["keyCache", "valueCache"]', 'STATES = ["keyCache", "valueCache", "convState"]'))
    assert judged(tmp_path, script).verdict != "eligible"


def test_a_list_of_names_of_unknown_length(tmp_path: Path) -> None:
    names = '[f"{kind}Cache_{i}" for i in range(LAYERS) for kind in ("key", "value")]'
    judgement = judged(tmp_path, unknown_count(("state_names=STATES", f"state_names={names}")))
    assert judgement.says() in ("eligible", "unresolved by unknown-states", "unresolved by unknown-kind")


# -- branches ---------------------------------------------------------------------------------------------------


ENVIRONMENT = 'import os\nlow = os.environ.get("LOW_MEMORY")\n'

JOINED = {
    "both ends are the same": "x = 1\nif low:\n    x = 2\n",
    "a branch that ends the run": "if low:\n    raise SystemExit('not enough memory')\n",
    "a branch that exits": "import sys\nif low:\n    sys.exit(2)\n",
    "a branch that returns": "if low:\n    return\n",
    "a print": "if low:\n    print('low')\nelse:\n    print('fine')\n",
    "a module that keeps its shapes": "if low:\n    model = model.half()\nelse:\n    model = model.float()\n",
    "a try around it": "try:\n    if low:\n        model.half()\nexcept ValueError:\n    raise\n",
    "a conditional": "model = model.half() if low else model\n",
    "an assertion": "assert low, 'LOW_MEMORY is not set'\n",
    "a while": "while low:\n    low = os.environ.get('LOW_MEMORY')\n",
    "nested": (
        "if low:\n    if os.environ.get('A'):\n        model.half()\n"
        "    elif os.environ.get('B'):\n        model.float()\n"
    ),
    "many in a row": "".join(f"if os.environ.get('V{i}'):\n    print({i})\n" for i in range(40)),
}


@pytest.mark.parametrize("name", sorted(JOINED))
def test_unknown_branches_that_change_no_fact(tmp_path: Path, name: str) -> None:
    judgement = judged(tmp_path, mutate(EXPORTER, built(ENVIRONMENT + JOINED[name])))
    assert judgement.says() == "eligible", [f.message for f in judgement.reasons]


def test_an_unknown_branch_inside_forward_that_keeps_the_shape(tmp_path: Path) -> None:
    code = "        import os\n        if os.environ.get('SCALE'):\n            x = x * 2\n"
    script = mutate(EXPORTER, ("        x = self.norm(x)\n", "        x = self.norm(x)\n" + code))
    assert judged(tmp_path, script).says() == "eligible"


def test_an_unknown_branch_inside_forward_that_does_not(tmp_path: Path) -> None:
    code = "        import os\n        if os.environ.get('LAST'):\n            x = x[:, -1:]\n"
    script = mutate(EXPORTER, ("        x = self.norm(x)\n", "        x = self.norm(x)\n" + code))
    assert judged(tmp_path, script).says() == UNKNOWN_LOGITS


def test_the_other_facts_stay_known(tmp_path: Path) -> None:
    code = "    import os\n    if os.environ.get('PIN'):\n        dynamic['input_ids'] = None\n"
    judgement = judged(tmp_path, mutate(EXPORTER, before(PROGRAM, code)))
    assert [f.rule for f in judgement.reasons] == ["unknown-query"]


# -- options ----------------------------------------------------------------------------------------------------

OPTION = '    parser.add_argument("--static", action="store_true")\n'


def _with_option(option: str, tokens: str = "1 if args.static else 8") -> str:
    return mutate(EXPORTER, (OPTION, f"    {option}\n"), ("1 if args.static else 8", tokens))


def test_a_required_choice_without_a_default_forks(tmp_path: Path) -> None:
    option = 'parser.add_argument("--mode", choices=["one", "many"], required=True)'
    script = mutate(
        _with_option(option), ("    export(args)\n", '    args.static = args.mode == "one"\n    export(args)\n')
    )
    result = scan_text(tmp_path, {"export.py": script})
    says = {judge(g.facts).says() for g in result.graphs}
    assert says == {"eligible", "out by static-query"}
    assert all("--mode" in g.facts.flags for g in result.graphs)


def test_what_stands_for_a_default_run_is_no_variant_as_well(tmp_path: Path) -> None:
    option = 'parser.add_argument("--mode", choices=["all", "one", "many"], default="all")'
    script = mutate(
        _with_option(option),
        (
            "    export(args)\n",
            '    if args.mode == "all":\n        raise SystemExit("which one?")\n'
            '    args.static = args.mode == "one"\n    export(args)\n',
        ),
    )
    graphs = scan_text(tmp_path, {"export.py": script}).graphs
    assert [(g.invocation.kind, g.invocation.argv) for g in graphs] == [
        (InvocationKind.DEFAULT, ("--mode", "one")),
        (InvocationKind.DEFAULT, ("--mode", "many")),
    ]


def test_a_required_option_without_a_default_is_an_unknown_of_its_type(tmp_path: Path) -> None:
    option = 'parser.add_argument("--width", type=int, required=True)\n    parser.set_defaults(static=False)'
    script = mutate(
        _with_option(option, "args.width"),
        ('"input_ids": None if args.static else {1: Dim("tokens", min=1, max=64)}', '"input_ids": None'),
    )
    judgement = judged(tmp_path, script)
    assert judgement.says() == "unresolved by unknown-query"
    assert "--width" in graph_of(scan_text(tmp_path, {"export.py": script})).facts.query.flags


def test_a_required_path_does_not_matter(tmp_path: Path) -> None:
    option = 'parser.add_argument("model")\n    parser.add_argument("--static", action="store_true")'
    assert judged(tmp_path, _with_option(option)).says() == "eligible"


# -- checkpoints ------------------------------------------------------------------------------------------------

_CHOSEN = """\
class Last(Model):
    def forward(self, *args, **kwargs):
        return super().forward(*args, **kwargs)[:, -1:]


KINDS = {"dense": Model, "last": Last}


def export(args):
    config = json.loads((Path(args.model) / "config.json").read_text())
"""
CONFIGURED = mutate(
    EXPORTER,
    ("def export(args):\n", _CHOSEN),
    (BUILD, '    model = KINDS[config["model_type"]]().eval()\n'),
    ("import argparse\n", "import argparse\nimport json\nfrom pathlib import Path\n"),
    (OPTION, OPTION + '    parser.add_argument("--model", default="acme/pine-1b")\n'),
)
"""The model's class is what the checkpoint says."""


def _scan(root: Path, script: str, config: object | None) -> Scan:
    if config is None:
        return scan_text(root / "tree", {"export.py": script})
    folder = root / "checkpoints" / "acme" / "pine-1b"
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(config), "utf-8")
    return scan_text(root / "tree", {"export.py": script}, checkpoints=root / "checkpoints")


@pytest.mark.parametrize(("model_type", "says"), [("dense", "eligible"), ("last", LAST)])
def test_a_checkpoint_decides(tmp_path: Path, model_type: str, says: str) -> None:
    graph = graph_of(_scan(tmp_path, CONFIGURED, {"model_type": model_type}))
    assert judge(graph.facts).says() == says
    cited = {p.path for fact in (graph.facts.logits, graph.facts.states) for p in fact.evidence}
    assert any(path.endswith("config.json") for path in cited), cited


def test_without_the_checkpoint_the_key_that_would_decide_is_named(tmp_path: Path) -> None:
    graphs = default_graphs(_scan(tmp_path, CONFIGURED, None))
    reasons = [f for g in graphs for f in judge(g.facts).reasons]
    assert "eligible" not in {judge(g.facts).says() for g in graphs}
    assert any("model_type" in f.message for f in reasons), [f.message for f in reasons]


def test_a_registry_whose_classes_agree_needs_no_checkpoint(tmp_path: Path) -> None:
    """The join over the registry is the answer where all of it answers alike."""
    script = mutate(
        CONFIGURED,
        ('"last": Last', '"other": Other'),
        ("class Last(Model):", "class Other(Model):"),
        ("[:, -1:]\n\n\nKINDS", "\n\n\nKINDS"),
    )
    graphs: list[Graph] = default_graphs(_scan(tmp_path, script, None))
    assert {judge(g.facts).says() for g in graphs} == {"eligible"}


def test_sizes_from_a_checkpoint_do_not_matter(tmp_path: Path) -> None:
    script = mutate(
        EXPORTER,
        (
            "def export(args):\n",
            "def export(args):\n    global HIDDEN\n    import json\n"
            '    HIDDEN = json.load(open("config.json"))["hidden_size"]\n',
        ),
    )
    assert judged(tmp_path, script).says() == "eligible"


# -- bounds -----------------------------------------------------------------------------------------------------


def test_hitting_a_bound_is_a_reason_and_no_guess(tmp_path: Path) -> None:
    code = "total = 0\nfor i in range(10 ** 7):\n    total += i\nif total % 2:\n    dynamic = None"
    judgement = judged(tmp_path, mutate(EXPORTER, before(PROGRAM, indented(code, 4))))
    assert judgement.says() == "unresolved by unknown-query"


# -- exporting functions of modules -------------------------------------------------------------------------------

CALL = 'if __name__ == "__main__":\n'
WORKER = "import argparse\nimport kit\n\nkit.export({}, argparse.Namespace(static={}))\n"


def _kit() -> str:
    """A module that exports the model that it is given, and nothing by itself."""
    script = mutate(EXPORTER, ("def export(args):\n", "def export(model, args):\n"), (BUILD, ""))
    return script[: script.index(CALL)]


def _says(result: Scan, script: str) -> list[str]:
    return [judge(g.facts).says() for g in result.graphs if g.script == script]


def test_an_exporting_function_that_one_script_calls_has_its_arguments(tmp_path: Path) -> None:
    worker = WORKER.format("kit.Model().eval()", "True")
    result = scan_text(tmp_path, {"kit.py": _kit(), "worker.py": worker})
    assert _says(result, "worker.py") == _says(result, "kit.py") == ["out by static-query"]


def test_an_exporting_function_of_a_file_that_does_something_when_it_is_imported(tmp_path: Path) -> None:
    kit = _kit().replace("import argparse\n", "import argparse\nimport sys\nsys.path.insert(0, 'models')\n", 1)
    result = scan_text(tmp_path, {"kit.py": kit, "worker.py": WORKER.format("kit.Model().eval()", "True")})
    assert _says(result, "worker.py") == _says(result, "kit.py") == ["out by static-query"]


def test_an_exporting_function_that_hands_on_to_another_file(tmp_path: Path) -> None:
    kit = "import low\nfrom coreai_torch import TorchConverter\nModel = low.Model\n\n\n"
    kit += "def export(model, args):\n    low.export(model, args)\n"
    worker = WORKER.format("kit.Model().eval()", "True")
    result = scan_text(tmp_path, {"low.py": _kit(), "kit.py": kit, "worker.py": worker})
    for script in ("worker.py", "kit.py", "low.py"):
        assert _says(result, script) == ["out by static-query"], script


def test_an_exporting_function_that_several_call_is_not_judged_as_one_of_them_has_it(tmp_path: Path) -> None:
    one, other = WORKER.format("kit.Model().eval()", "True"), WORKER.format("kit.Model().eval()", "False")
    result = scan_text(tmp_path, {"kit.py": _kit(), "one.py": one, "other.py": other})
    assert _says(result, "one.py") == ["out by static-query"]
    assert _says(result, "other.py") == ["eligible"]
    assert _says(result, "kit.py") not in (["eligible"], ["out by static-query"])


def test_calls_that_keep_a_module_keep_one_that_is_not_known(tmp_path: Path) -> None:
    quantized = (
        "    model = quantizer.Quantizer(model, {}).prepare(example_inputs=(), dynamic_shapes=dynamic)\n" + PROGRAM
    )
    kit = mutate(_kit(), (PROGRAM, quantized), ("import argparse\n", "from coreai_opt.quantization import quantizer\n"))
    (graph,) = scan_text(tmp_path, {"kit.py": kit.replace("None if args.static else {", "{")}).graphs
    assert graph.facts.query.value is not None
    assert graph.facts.query.value.dynamic
    assert graph.facts.logits.value is None
