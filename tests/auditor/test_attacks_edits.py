"""What is done to a model, a program or settings after they were made, by ways that no attribute of theirs shows."""

from __future__ import annotations

from pathlib import Path

import pytest

from rules.verdict import Verdict
from tests.auditor.decoder_project import CONFIG, CORE_AI, CORE_ML, EXECUTORCH, MODEL
from tests.auditor.edits import Edit
from tests.auditor.support import indented, judged, mutate

IMPORT = "from model import Decoder\n"
MADE = "    model = Decoder(cfg).eval()\n"
EXPORT = "    ep = torch.export.export(model, args=(), kwargs=sample_inputs(cfg), dynamic_shapes=dynamic_shapes(cfg))\n"
SETTINGS = "    cfg = ModelConfig(context=args.context)\n"
DECOMPOSED = "    ep = ep.run_decompositions()\n"
CONVERTED = "    program = converter.to_coreai()\n"
TRACED = "    traced = torch.jit.trace(model, example)\n"
CALL = "    mlmodel = ct.convert(\n        traced,\n        inputs=["
INPUTS = "        ],\n        outputs=["
TARGET = "        minimum_deployment_target=ct.target.iOS18,\n"
SAVED = "    mlmodel.save(path)\n"
LOWERED = "    et = edge.to_executorch()\n"
PROPERTY = "    @property\n    def head_dim"
KEEP_ONE = "\n\ndef last(x, w, b=None):\n    return torch.nn.functional.linear(x[:, -1:], w, b)\n\n"


def _judged(root: Path, base: str, edits: tuple[Edit, ...], settings: tuple[Edit, ...] = ()) -> Verdict:
    files = {"config.py": mutate(CONFIG, *settings), "model.py": MODEL}
    return judged(root, mutate(base, *edits), **files).verdict


def _before(anchor: str, *lines: str) -> Edit:
    return anchor, indented(lines, 4) + anchor


def _after(anchor: str, *lines: str) -> Edit:
    return anchor, anchor + indented(lines, 4)


def _top(code: str) -> Edit:
    return IMPORT, IMPORT + code


MODE = """
from torch.overrides import TorchFunctionMode


class Last(TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))

"""
CORE_AI_EDITS: dict[str, tuple[Edit, ...]] = {
    "a hook of all modules": (
        _after(MADE, "torch.nn.modules.module.register_module_forward_hook(last)"),
        _top("\n\ndef last(module, args, output):\n    return output[:, -1:]\n\n"),
    ),
    "a table of decompositions": (
        _top(KEEP_ONE),
        (
            DECOMPOSED,
            "    table = torch.export.default_decompositions()\n"
            "    table[torch.ops.aten.linear.default] = last\n    ep = ep.run_decompositions(table)\n",
        ),
    ),
    "a dict of decompositions": (
        _top(KEEP_ONE),
        (DECOMPOSED, "    ep = ep.run_decompositions({torch.ops.aten.linear.default: last})\n"),
    ),
    "a mode of functions": (_top(MODE), (EXPORT, "    with Last():\n    " + EXPORT)),
    "a mode of functions on a stack": (
        _top(MODE),
        _before(EXPORT, "import contextlib", "stack = contextlib.ExitStack()", "stack.enter_context(Last())"),
    ),
    "a converter is given code": (_top(KEEP_ONE), _before(CONVERTED, "converter.add_rewrite('linear', last)")),
    "settings go through an unread call": (
        _after(SETTINGS, "from exportkit import apply_overrides", "apply_overrides(cfg, args)"),
    ),
    "another method is traced": (_after(MADE, "model = torch.jit.trace_module(model, {'last': (torch.zeros(1),)})"),),
}


@pytest.mark.parametrize("name", sorted(CORE_AI_EDITS))
def test_what_goes_on_beside_the_model(tmp_path: Path, name: str) -> None:
    assert _judged(tmp_path, CORE_AI, CORE_AI_EDITS[name]) is not Verdict.ELIGIBLE


TIMED = """

class Timed:
    def __enter__(self):
        return self

    def __exit__(self, *e):
        pass

"""
HARMLESS: dict[str, tuple[Edit, ...]] = {
    "decompositions are left out": (
        (
            DECOMPOSED,
            "    table = torch.export.default_decompositions()\n"
            "    del table[torch.ops.aten.scaled_dot_product_attention.default]\n"
            "    ep = ep.run_decompositions(table)\n",
        ),
    ),
    "decompositions of PyTorch": (
        (
            DECOMPOSED,
            "    from torch._decomp import get_decompositions\n"
            "    ep = ep.run_decompositions(get_decompositions([torch.ops.aten.silu.default]))\n",
        ),
    ),
    "a manager of the script": (
        _top(TIMED),
        (EXPORT, "    with Timed():\n    " + EXPORT),
    ),
    "settings are logged by an unread call": (_after(SETTINGS, "from exportkit import log", "log(cfg)"),),
    "a converter is given words": (_before(CONVERTED, "converter.set_target('iOS', version=26)"),),
}


@pytest.mark.parametrize("name", sorted(HARMLESS))
def test_what_leaves_the_graph_alone(tmp_path: Path, name: str) -> None:
    assert _judged(tmp_path, CORE_AI, HARMLESS[name]) is Verdict.ELIGIBLE


POST_INIT = {
    "past a frozen class": "object.__setattr__(self, 'logits_to_keep', 1)",
    "under a name that is not known": (
        "for name in __import__('names').ALL:\n            object.__setattr__(self, name, 1)"
    ),
}


@pytest.mark.parametrize("name", sorted(POST_INIT))
def test_settings_that_set_themselves(tmp_path: Path, name: str) -> None:
    body = f"    def __post_init__(self):\n        {POST_INIT[name]}\n\n{PROPERTY}"
    assert _judged(tmp_path, CORE_AI, (), ((PROPERTY, body),)) is not Verdict.ELIGIBLE
    same = body.replace("'logits_to_keep', 1", "'context', 512")
    if same != body:
        assert _judged(tmp_path, CORE_AI, (), ((PROPERTY, same),)) is Verdict.ELIGIBLE


BELOW = """
class {0}(ModelConfig):
    {1}

"""
SETTINGS_OF = {
    "a field that there is not": (
        "",
        "try:\n    cfg = ModelConfig(keep=1)\nexcept TypeError:\n    cfg = ModelConfig(logits_to_keep={0})",
    ),
    "a property below": (
        BELOW.format("Own", "logits_to_keep = property(lambda self: {0}, lambda self, value: None)"),
        "cfg = Own()",
    ),
    "entries that a mock sets": (
        "from unittest import mock\n\nGIVEN = {{'logits_to_keep': 2}}\n",
        "with mock.patch.dict(GIVEN, {{'logits_to_keep': {0}}}):\n    cfg = ModelConfig(**GIVEN)",
    ),
    "entries that a mock has put back": (
        "from unittest import mock\n\nGIVEN = {{'logits_to_keep': {0}}}\n",
        "with mock.patch.dict(GIVEN, logits_to_keep=2):\n    pass\ncfg = ModelConfig(**GIVEN)",
    ),
    "entries that a mock clears": (
        "from unittest import mock\n\nGIVEN = {{'logits_to_keep': 2}}\n",
        "with mock.patch.dict(GIVEN, {{}}, clear=True):\n    cfg = ModelConfig(**{{'logits_to_keep': {0}, **GIVEN}})",
    ),
    "a class below that is no dataclass": (
        BELOW.format("Own", "logits_to_keep = 2"),
        "cfg = Own(logits_to_keep={0})",
    ),
}


@pytest.mark.parametrize("name", sorted(SETTINGS_OF))
def test_settings_as_python_makes_them(tmp_path: Path, name: str) -> None:
    top, code = SETTINGS_OF[name]
    for keep, verdict in ((1, Verdict.OUT), (0, Verdict.ELIGIBLE)):
        edits = (*((_top(top.format(keep)),) if top else ()), (SETTINGS, indented(code.format(keep), 4)))
        assert _judged(tmp_path, CORE_AI, edits) is verdict


def test_a_default_of_a_class_below_that_is_no_dataclass(tmp_path: Path) -> None:
    """The `__init__` of the base sets the attribute, whatever the class says."""
    made = (SETTINGS, SETTINGS.replace("ModelConfig(", "Own("))
    for below, default, verdict in ((0, "1", Verdict.OUT), (1, "0", Verdict.ELIGIBLE)):
        own = _top(BELOW.format("Own", f"logits_to_keep = {below}"))
        config = ("logits_to_keep: int = 0", f"logits_to_keep: int = {default}")
        assert _judged(tmp_path, CORE_AI, (own, made), (config,)) is verdict


HOOKED = "handle = model.register_forward_hook(lambda module, args, logits: logits[:, -1:])"
TAKEN_OFF = {
    "it stays": ((HOOKED,), False),
    "it is removed": ((HOOKED, "handle.remove()"), True),
    "another one is removed": ((HOOKED.replace("handle", "kept"), HOOKED, "handle.remove()"), False),
    "it is there while a block runs": ((f"with {HOOKED.removeprefix('handle = ')}:", "    pass"), True),
    "it may be removed": ((HOOKED, "if args.context > 2048:", "    handle.remove()"), False),
}


@pytest.mark.parametrize("name", sorted(TAKEN_OFF))
def test_a_hook_that_is_taken_off(tmp_path: Path, name: str) -> None:
    lines, harmless = TAKEN_OFF[name]
    verdict = _judged(tmp_path, CORE_AI, (_after(MADE, *lines),))
    assert (verdict is Verdict.ELIGIBLE) is harmless


def test_a_model_is_compiled_by_a_function_of_the_script(tmp_path: Path) -> None:
    given = "model = torch.compile(model, backend={0})"
    last = _top("def last(graph, inputs):\n    return lambda *a: [y[:, -1:] for y in graph(*a)]\n")
    assert _judged(tmp_path, CORE_AI, (last, _after(MADE, given.format("last")))) is not Verdict.ELIGIBLE
    assert _judged(tmp_path, CORE_AI, (_after(MADE, given.format("'eager'")),)) is Verdict.ELIGIBLE


REGISTRY = "from coremltools.converters.mil.frontend.torch.torch_op_registry import _TORCH_OPS_REGISTRY"
LOWERING = """

def last(context, node):
    x = mb.slice_by_index(x=context[node.inputs[0]], begin=[0, -1, 0], end=[0, 0, 0])
    context.add(mb.linear(x=x, weight=context[node.inputs[1]]), node.name)

"""
CORE_ML_EDITS: dict[str, tuple[Edit, ...]] = {
    "an output is deleted from the protobuf": (
        _before(
            SAVED,
            "spec = mlmodel.get_spec()",
            "del spec.description.output[:]",
            "mlmodel = ct.models.MLModel(spec, weights_dir=mlmodel.weights_dir)",
        ),
    ),
    "the outputs of the program are set": (
        _before(
            SAVED,
            'block = mlmodel._mil_program.functions["main"]',
            'block.set_outputs([block.find_ops(op_type="reduce_argmax")[0].outputs[0]])',
            "mlmodel = ct.convert(mlmodel._mil_program)",
        ),
    ),
    "operations are put into an intermediate program": (
        (TARGET, "        convert_to='milinternal',\n"),
        _before(
            SAVED,
            "from coremltools.converters.mil import Builder as mb",
            'with mlmodel.functions["main"] as block:',
            "    block.set_outputs([mb.slice_by_index(x=block.outputs[0], begin=[0, -1, 0], end=[0, 0, 0])])",
            "mlmodel = ct.convert(mlmodel)",
        ),
    ),
    "operations are put into it, and nothing else": (
        (TARGET, "        convert_to='milinternal',\n"),
        _before(
            SAVED,
            "from coremltools.converters.mil import Builder as mb",
            'with mlmodel.functions["main"]:',
            "    mb.const(val=0)",
        ),
    ),
    "lowerings are put into the registry": (
        _top("from coremltools.converters.mil import Builder as mb\n" + LOWERING),
        _before(TRACED, REGISTRY, '_TORCH_OPS_REGISTRY.name_to_func_mapping.update({"linear": last})'),
    ),
    "the shape of an input is set after it was made": (
        (CALL, "    inputs = ["),
        (
            INPUTS,
            "    ]\n    for i in inputs:\n        i.shape.shape = tuple(1 for _ in i.shape.shape)\n"
            "    mlmodel = ct.convert(\n        traced,\n        inputs=inputs,\n        outputs=[",
        ),
    ),
    "a classifier": ((TARGET, TARGET + "        classifier_config=ct.ClassifierConfig(['a', 'b']),\n"),),
}


@pytest.mark.parametrize("name", sorted(CORE_ML_EDITS))
def test_a_core_ml_model_is_edited(tmp_path: Path, name: str) -> None:
    assert _judged(tmp_path, CORE_ML, CORE_ML_EDITS[name]) is not Verdict.ELIGIBLE


CORE_ML_HARMLESS: dict[str, tuple[Edit, ...]] = {
    "the program is printed": (_before(SAVED, "print(mlmodel._mil_program)"),),
    "operations are counted": (
        _before(SAVED, 'print(len(mlmodel._mil_program.functions["main"].find_ops(op_type="matmul")))'),
    ),
    "an intermediate program is converted further": (
        (TARGET, "        convert_to='milinternal',\n"),
        _before(SAVED, "mlmodel = ct.convert(mlmodel)"),
    ),
    "a lowering of an operator of the script's own": (
        _top("from coremltools.converters.mil import Builder as mb\n" + LOWERING.replace("slice_by_index", "relu")),
        _before(TRACED, REGISTRY, '_TORCH_OPS_REGISTRY.name_to_func_mapping.update({"linear": last})'),
    ),
    "shapes of inputs are read": (
        (CALL, "    inputs = ["),
        (
            INPUTS,
            "    ]\n    print([i.shape.shape for i in inputs])\n"
            "    mlmodel = ct.convert(\n        traced,\n        inputs=inputs,\n        outputs=[",
        ),
    ),
    "no classifier": ((TARGET, TARGET + "        classifier_config=None,\n"),),
}


@pytest.mark.parametrize("name", sorted(CORE_ML_HARMLESS))
def test_a_core_ml_model_is_read(tmp_path: Path, name: str) -> None:
    assert _judged(tmp_path, CORE_ML, CORE_ML_HARMLESS[name]) is Verdict.ELIGIBLE


def test_a_pass_over_a_program_that_was_lowered(tmp_path: Path) -> None:
    own = "from executorch.exir.pass_base import ExportPass\n\n\nclass Own(ExportPass):\n    pass\n\n\n"
    edits = (("class Stateful", own + "class Stateful"), _before(LOWERED, "edge = edge.transform([Own()])"))
    assert _judged(tmp_path, EXECUTORCH, edits) is not Verdict.ELIGIBLE
    theirs = (_before(LOWERED, "from executorch.exir.passes import Fuse", "edge = edge.transform([Fuse()])"),)
    assert _judged(tmp_path, EXECUTORCH, theirs) is Verdict.ELIGIBLE
