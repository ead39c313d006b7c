"""Scripts whose option says which graph, or which step: what the steps without an export say, and what decides."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from auditor.request import ScanRequest
from auditor.runs import Run
from auditor.scan import examiner_of
from rules.facts import InvocationKind
from rules.fixes import judge_graph
from tests.auditor.support import EXPORTER, graph_of, mutate, scan_text, write

STATIC = '    parser.add_argument("--static", action="store_true")\n'
RUN = "    export(args)\n"
HEAD = ("import argparse\n", "import argparse\nimport weights\n")


def stepped(step: str, tokens: str = "1 if args.static else 8") -> str:
    """A script with a required choice: one value exports the decoder, the other does `step`."""
    option = '    parser.add_argument("--step", choices=["decoder", "other"], required=True)\n'
    return mutate(
        EXPORTER,
        HEAD,
        (STATIC, STATIC + option),
        (RUN, f'    if args.step == "decoder":\n        export(args)\n    else:\n        {step}\n'),
        ("1 if args.static else 8", tokens),
    )


def steps(root: Path, script: str) -> list[tuple[tuple[str, ...], str]]:
    return [(g.invocation.argv, g.graph) for g in scan_text(root, {"export.py": script}).graphs]


@pytest.mark.parametrize("step", ["weights.write()", "pass"])
def test_a_step_that_comes_to_its_end_exports_nothing(tmp_path: Path, step: str) -> None:
    assert (("--step", "other"), "*") not in steps(tmp_path, stepped(step))
    assert (("--step", "decoder"), "main") in steps(tmp_path, stepped(step))


def test_a_step_that_fails_may_have_exported(tmp_path: Path) -> None:
    script = stepped("try:\n            raise ValueError\n        except KeyError:\n            pass")
    assert (("--step", "other"), "*") in steps(tmp_path, script)


def test_what_no_step_exports_is_not_dropped(tmp_path: Path) -> None:
    script = mutate(stepped("weights.write()"), ("        export(args)\n", "        weights.write_all()\n"))
    assert [graph for _, graph in steps(tmp_path, script)] == ["*", "*"]


def test_an_option_that_chooses_the_graph_does_not_decide_its_query(tmp_path: Path) -> None:
    script = mutate(stepped("pass", "1"), ('None if args.static else {1: Dim("tokens", min=1, max=64)}', "None"))
    graph = next(g for g in scan_text(tmp_path, {"export.py": script}).graphs)
    (reason,) = judge_graph(graph).judgement.findings
    assert reason.rule == "static-query"
    assert "no flag decides it" in reason.message


def test_an_option_that_chooses_between_decoders_does(tmp_path: Path) -> None:
    """Under the option another call exports the same model with a dynamic query."""
    pinned = "def pinned(args):\n" + mutate(
        EXPORTER.split("def export(args):\n")[1].split("\n\nif __name__")[0],
        ("1 if args.static else 8", "1"),
        ('None if args.static else {1: Dim("tokens", min=1, max=64)}', "None"),
    )
    script = mutate(
        EXPORTER,
        ("def export(args):\n", f"{pinned}\n\ndef export(args):\n"),
        (STATIC, STATIC + '    parser.add_argument("--many", action="store_true")\n'),
        (RUN, "    if args.many:\n        export(args)\n    else:\n        pinned(args)\n"),
    )
    (reason,) = judge_graph(graph_of(scan_text(tmp_path, {"export.py": script}))).judgement.findings
    assert reason.rule == "static-query"
    assert "`--many` decides it" in reason.message


# -- libraries that export by themselves -------------------------------------------------------------------------------

DELEGATES = """\
from exporters.coreml import export
from exporters.coreml.models import GPT2CoreMLConfig
from transformers import AutoTokenizer, GPT2LMHeadModel

model = GPT2LMHeadModel.from_pretrained("gpt2", torchscript=True)
export(AutoTokenizer.from_pretrained("gpt2"), model, GPT2CoreMLConfig(model.config)).save("gpt2.mlpackage")
"""
LIBRARY = """\
import coremltools as ct
import torch


def export(tokenizer, model, config):
    ids = torch.zeros(1, 64, dtype=torch.int32)
    return ct.convert(torch.jit.trace(model, ids), inputs=[ct.TensorType(name="input_ids", shape=ids.shape)])
"""


def test_a_library_that_exports_is_named(tmp_path: Path) -> None:
    graph = graph_of(scan_text(tmp_path, {"export.py": DELEGATES}))
    judgement = judge_graph(graph).judgement
    assert judgement.verdict == "unresolved"
    assert "`exporters.coreml.export` exports" in judgement.reasons[0].message
    assert "--library" in judgement.reasons[0].message
    assert graph.line == 6


def test_with_its_source_it_is_followed(tmp_path: Path) -> None:
    library = tmp_path / "library"
    (library / "exporters/coreml").mkdir(parents=True)
    (library / "exporters/__init__.py").write_text("")
    (library / "exporters/coreml/__init__.py").write_text(LIBRARY)
    root = tmp_path / "root"
    root.mkdir()
    graph = graph_of(scan_text(root, {"export.py": DELEGATES}, libraries=(library,)))
    assert judge_graph(graph).judgement.says() == "out by not-a-decoder"
    assert graph.bundle == "gpt2.mlpackage"


CALLS = {
    "the package": "from coreai_models.export import export_model\nexport_model('some/model')",
    "the pipeline": (
        "from coreai_models.export.pipeline import ExportConfig, export_model\n"
        "print(export_model(ExportConfig(hf_model_id='some/model', variant='iOS')))"
    ),
    "a module": "import coreai_models.export as exporting\nexporting.export_model('some/model')",
    "a module of the package": "from coreai_models import export\nexport.export_model('some/model')",
    "in a function": "def go():\n    from coreai_models.export import export_model\n    export_model('m')\ngo()",
    "its command": "import sys\nfrom coreai_models.llm.export import main\nsys.argv[1:] = ['some/model']\nmain()",
}


@pytest.mark.parametrize("name", sorted(CALLS))
def test_a_call_of_the_models_library_is_named(tmp_path: Path, name: str) -> None:
    judgement = judge_graph(graph_of(scan_text(tmp_path, {"export.py": CALLS[name] + "\n"}))).judgement
    assert judgement.verdict == "unresolved"
    assert re.search(r"`coreai_models\.[a-z.]+\.(export_model|main)` exports", judgement.reasons[0].message)


@pytest.mark.parametrize("name", ["the package", "a module", "in a function"])
def test_a_call_of_the_models_library_is_followed_into_its_source(tmp_path: Path, name: str) -> None:
    source = mutate(EXPORTER, ("def export(args):\n", "def export_model(name):\n")).replace("args.static", "False")
    source = source.split('if __name__ == "__main__":')[0]
    library = write(tmp_path / "library", {"coreai_models/__init__.py": "", "coreai_models/export/__init__.py": source})
    result = scan_text(tmp_path / "root", {"export.py": CALLS[name] + "\n"}, libraries=(library,))
    assert judge_graph(graph_of(result)).judgement.says() == "eligible"


@pytest.mark.parametrize("line", ["from coreai_models.export import ExportConfig", "import coreai_models.export"])
def test_a_file_that_only_imports_from_the_models_library_exports_nothing(tmp_path: Path, line: str) -> None:
    assert not scan_text(tmp_path, {"export.py": f"{line}\nprint('nothing')\n"}).graphs


RECIPES = {
    "a function": "from optimum.exporters.executorch import main_export\nmain_export('some/model', recipe=RECIPE)",
    "a class": (
        "from optimum.executorch import ExecuTorchModelForCausalLM\n"
        "ExecuTorchModelForCausalLM.from_pretrained('some/model', export=True, recipe=RECIPE)"
    ),
}


@pytest.mark.parametrize("name", sorted(RECIPES))
@pytest.mark.parametrize("recipe", ["'coreml'", "sys.argv[1] or 'coreml'", "'coreml' + sys.argv[1]"])
def test_a_recipe_for_core_ml_exports(tmp_path: Path, name: str, recipe: str) -> None:
    script = f"import sys\n{RECIPES[name]}\n".replace("RECIPE", recipe)
    judgement = judge_graph(graph_of(scan_text(tmp_path, {"export.py": script}))).judgement
    assert judgement.verdict == "unresolved"
    assert "`optimum." in judgement.reasons[0].message


@pytest.mark.parametrize("name", sorted(RECIPES))
def test_a_recipe_for_other_devices_exports_nothing_for_apple(tmp_path: Path, name: str) -> None:
    assert not scan_text(tmp_path, {"export.py": RECIPES[name].replace("RECIPE", "'xnnpack'")}).graphs


def test_the_line_of_a_run_that_ends_in_another_file_is_none_of_the_script(tmp_path: Path) -> None:
    helper = "\n" * 30 + "import missing\n\n\ndef write():\n    missing.go()\n"
    script = "import coremltools as ct\nfrom helper import write\n\nwrite()\nprint(ct.convert)\n"
    graph = graph_of(scan_text(tmp_path, {"export.py": script, "helper.py": helper}))
    assert graph.line == 1
    assert [(p.path, p.line) for p in graph.facts.kind.evidence] == [("helper.py", 31)]


# -- scripts that only open what others made ---------------------------------------------------------------------------

CHAT = """\
import coremltools as ct
import elsewhere

model = ct.models.MLModel("model.mlpackage")
stop = elsewhere.tokenizer.convert_tokens_to_ids("<end>")
print(model.predict({"input_ids": [[stop]]}))
"""


def test_a_tokenizer_that_converts_tokens_makes_no_graph(tmp_path: Path) -> None:
    assert not scan_text(tmp_path, {"chat.py": CHAT}).graphs


@pytest.mark.parametrize(
    "line",
    ["elsewhere.image.convert('RGB')", 'elsewhere.image.convert( "L", palette=3)', "  # see convert_to_coreml.py"],
)
def test_an_image_that_is_converted_and_a_comment_make_no_graph(tmp_path: Path, line: str) -> None:
    assert not scan_text(tmp_path, {"chat.py": CHAT + line + "\n"}).graphs


@pytest.mark.parametrize(
    "line",
    [
        'ct.convert(elsewhere.model, convert_to="mlprogram")',
        "elsewhere.run(convert_to='x')",
        'elsewhere.run("RGB"); ct.convert("saved_model")',
        "elsewhere.image.convert('RGB'); ct.convert(elsewhere.model)  # an image",
    ],
)
def test_a_conversion_beside_it_does(tmp_path: Path, line: str) -> None:
    assert scan_text(tmp_path, {"chat.py": CHAT + line + "\n"}).graphs


ENDLESS = """\
import argparse
import coremltools as ct

parser = argparse.ArgumentParser()
parser.add_argument("--one", action="store_true")
parser.add_argument("--two", action="store_true")
args = parser.parse_args()


def turn(n):
    return sum(turn(n - 1) for _ in range(9)) if n else 0


turn(9)
print(ct.convert)
"""


def test_a_run_that_uses_up_its_budget_is_not_tried_with_every_option(tmp_path: Path) -> None:
    found = examiner_of(ScanRequest(write(tmp_path, {"export.py": ENDLESS}), (tmp_path,)))
    run = Run("export.py", (), InvocationKind.DEFAULT)
    outcome = found.group([run])[0]
    assert [g.graph.graph for g in outcome.graphs] == ["*"]
    assert list(found.evaluations.results) == [("export.py", ())]


PINNED = (
    ("1 if args.static else 8", "1"),
    ('None if args.static else {1: Dim("tokens", min=1, max=64)}', "None"),
)
CACHE_BY_THE_CALLER = (
    (
        "        rows = input_ids",
        "        key_cache, value_cache = key_cache.clone(), value_cache.clone()\n        rows = input_ids",
    ),
    ("        return logits\n", "        return logits, key_cache, value_cache\n"),
    ('["logits"], state_names=STATES', '["logits", "newKeyCache", "newValueCache"]'),
)


def test_an_option_that_chooses_the_graph_does_not_decide_the_query_of_what_no_option_mends(tmp_path: Path) -> None:
    script = mutate(stepped("pass", "1"), PINNED[1], *CACHE_BY_THE_CALLER)
    graph = next(g for g in scan_text(tmp_path, {"export.py": script}).graphs)
    found = judge_graph(graph).judgement.findings
    assert [r.rule for r in found] == ["kv-as-io", "static-query"]
    assert "no flag decides it" in found[1].message


@pytest.mark.parametrize(
    "run",
    [
        "    if not args.check:\n        export(args)\n",
        "    if args.check:\n        raise SystemExit(0)\n    export(args)\n",
        "    if args.check:\n        sys.exit(1)\n    else:\n        export(args)\n",
    ],
)
@pytest.mark.parametrize("more", [(), CACHE_BY_THE_CALLER], ids=["alone", "with another reason"])
def test_a_switch_that_exports_nothing_does_not_decide_the_query(
    tmp_path: Path, run: str, more: tuple[tuple[str, str], ...]
) -> None:
    switch = (STATIC, '    parser.add_argument("--check", action="store_true")\n')
    imports = ("import argparse\n", "import argparse\nimport sys\n")
    script = mutate(EXPORTER, imports, switch, (RUN, run), *PINNED, *more)
    graph = graph_of(scan_text(tmp_path, {"export.py": script}))
    assert graph.facts.query.flags == frozenset()
    assert "no flag decides it" in judge_graph(graph).judgement.findings[-1].message


@pytest.mark.parametrize("more", [(), CACHE_BY_THE_CALLER], ids=["alone", "with another reason"])
def test_a_switch_that_pins_the_query_does(tmp_path: Path, more: tuple[tuple[str, str], ...]) -> None:
    """Also where dropping it is no fix, since something else stands in the way."""
    graphs = scan_text(tmp_path, {"export.py": mutate(EXPORTER, *more)}).graphs
    pinned = next(g for g in graphs if g.invocation.argv == ("--static",))
    assert pinned.facts.query.flags == {"--static"}
    assert "`--static` decides it" in judge_graph(pinned).judgement.findings[-1].message


NUMBERS = (
    STATIC,
    '    parser.add_argument("--rows", type=int, default=1)\n'
    '    parser.add_argument("--slots", type=int, default=64)\n',
)
ROWS = (
    ("1 if args.static else 8", "args.rows"),
    ('None if args.static else {1: Dim("tokens", min=1, max=64)}', "None"),
    (RUN, "    if args.slots <= 512:\n        export(args)\n"),
)


@pytest.mark.parametrize("more", [(), CACHE_BY_THE_CALLER], ids=["alone", "with another reason"])
def test_of_two_numbers_the_one_that_is_the_width_decides(tmp_path: Path, more: tuple[tuple[str, str], ...]) -> None:
    graph = graph_of(scan_text(tmp_path, {"export.py": mutate(EXPORTER, NUMBERS, *ROWS, *more)}))
    assert graph.facts.query.flags == {"--rows"}
    assert "`--rows` decides it" in judge_graph(graph).judgement.findings[-1].message
    assert graph.changes == ()  # one row more is a trial: no fix


def test_a_variant_names_what_makes_a_difference_to_it_and_no_more(tmp_path: Path) -> None:
    """Both switches pin it; the third exports nothing. Two switches away from the default line, nothing is proposed."""
    switches = "".join(f'    parser.add_argument("--{n}", action="store_true")\n' for n in ("one", "check"))
    script = mutate(
        EXPORTER,
        (STATIC, STATIC + switches),
        ("1 if args.static else 8", "1 if args.static or args.one else 8"),
        ("None if args.static else {1: D", "None if args.static or args.one else {1: D"),
        (RUN, "    if not args.check:\n        export(args)\n"),
    )
    graphs = scan_text(tmp_path, {"export.py": script}).graphs
    pinned = next(g for g in graphs if g.invocation.argv == ("--static",))
    assert pinned.facts.query.flags == {"--static"}
    assert [c.flag for c in pinned.changes] == ["--static"]
