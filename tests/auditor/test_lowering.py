"""What a script adds to coremltools: lowerings of operators that replace its own, and passes over the program."""

from __future__ import annotations

from pathlib import Path

import pytest

from rules.verdict import Verdict
from tests.auditor.support import CORE_ML, judged, mutate

TORCH = "import torch\n"
TRACED = "traced = torch.jit.trace"
OUTPUTS = "    outputs=[ct.TensorType("
REGISTER = """\
from coremltools.converters.mil import Builder as mb
from coremltools.converters.mil.frontend.torch.torch_op_registry import register_torch_op


def last(x):
    return mb.slice_by_index(x=x, begin=[0, -1, 0], end=[1, 0, 0])


@register_torch_op({0})
def {1}(context, node):
    x = context[node.inputs[0]]
    context.add({2}, node.name)


"""
PASS = """\
from coremltools.converters.mil.mil.passes.graph_pass import AbstractGraphPass
from coremltools.converters.mil.mil.passes.pass_registry import register_pass


@register_pass({0})
class LastRow(AbstractGraphPass):
    def apply(self, prog):
        pass


"""


def _verdict(root: Path, before: str = "", pipeline: str = "") -> Verdict:
    edits = [(TORCH, TORCH + before), (TRACED, pipeline + TRACED)]
    if "pipeline =" in pipeline:
        edits.append((OUTPUTS, "    pass_pipeline=pipeline,\n" + OUTPUTS))
    return judged(root, mutate(CORE_ML, *edits)).verdict


REPLACED = {
    "a slice": ("override=True", "linear", "mb.slice_by_index(x=x, begin=[0, -1, 0], end=[1, 0, 0])"),
    "a slice by a helper": ("override=True", "linear", "last(x)"),
    "under an alias": ('torch_alias=["linear"], override=True', "lower", "mb.reduce_mean(x=x, axes=[1])"),
    "a product": ("override=True", "layer_norm", "mb.matmul(x=x, y=x)"),
}


@pytest.mark.parametrize("name", sorted(REPLACED))
def test_a_lowering_that_is_replaced_by_another_thing(tmp_path: Path, name: str) -> None:
    assert _verdict(tmp_path, REGISTER.format(*REPLACED[name])) is Verdict.UNRESOLVED


ALIKE = {
    "one that keeps rows": ("override=True", "linear", "mb.add(x=mb.cast(x=x, dtype='fp32'), y=1.0, name=node.name)"),
    "of the same kind": ("override=True", "layer_norm", "mb.layer_norm(x=x, axes=[-1], name=node.name)"),
    "attention by hand": ("override=True", "scaled_dot_product_attention", "mb.matmul(x=mb.softmax(x=x), y=x)"),
    "of an operator that had none": ("", "my_norm", "mb.slice_by_index(x=x, begin=[0], end=[1])"),
}


@pytest.mark.parametrize("name", sorted(ALIKE))
def test_a_lowering_that_means_the_same(tmp_path: Path, name: str) -> None:
    assert _verdict(tmp_path, REGISTER.format(*ALIKE[name])) is Verdict.ELIGIBLE


OWN = {
    "appended": 'pipeline = ct.PassPipeline.DEFAULT\npipeline.append_pass("mine::last_row")\n',
    "inserted": 'pipeline = ct.PassPipeline()\npipeline.insert_pass(0, pass_name="common::LastRow")\n',
    "inserted by position": 'pipeline = ct.PassPipeline()\npipeline.insert_pass(0, "common::LastRow")\n',
    "into a copy": (
        "import copy\n\npipeline = copy.deepcopy(ct.PassPipeline.DEFAULT)\npipeline.append_pass('mine::last_row')\n"
    ),
    "in a list": 'pipeline = ct.PassPipeline(["common::dead_code_elimination", "mine::last_row"])\n',
    "set": 'pipeline = ct.PassPipeline()\npipeline.passes = ["mine::last_row"]\n',
    "under a name that is not known": (
        "import os\n\npipeline = ct.PassPipeline()\npipeline.append_pass(os.environ['PASS'])\n"
    ),
}


@pytest.mark.parametrize("name", sorted(OWN))
def test_a_pass_of_the_script(tmp_path: Path, name: str) -> None:
    assert _verdict(tmp_path, PASS.format('namespace="common"'), OWN[name]) is Verdict.UNRESOLVED


def test_a_pass_that_replaces_one_of_coremltools(tmp_path: Path) -> None:
    assert _verdict(tmp_path, PASS.format('namespace="common", override=True')) is Verdict.UNRESOLVED


THEIRS = {
    "left out": 'pipeline = ct.PassPipeline.DEFAULT\npipeline.remove_passes({"common::add_fp16_cast"})\n',
    "with options": (
        'pipeline = ct.PassPipeline()\npipeline.set_options("common::const_deduplication", {"const_threshold": 1})\n'
    ),
    "appended": 'pipeline = ct.PassPipeline.CLEANUP\npipeline.append_pass("compression::palettize_weights")\n',
    "a pipeline of few": "pipeline = ct.PassPipeline.EMPTY\n",
}


@pytest.mark.parametrize("name", sorted(THEIRS))
def test_passes_that_coremltools_has(tmp_path: Path, name: str) -> None:
    assert _verdict(tmp_path, PASS.format('namespace="common"'), THEIRS[name]) is Verdict.ELIGIBLE


SETTERS = {
    "by the registry": (
        "from coremltools.converters.mil.frontend.torch.torch_op_registry import _TORCH_OPS_REGISTRY\n\n"
        "_TORCH_OPS_REGISTRY.set_func_by_name(lower, 'linear')\n"
    ),
    "in the registry's table": (
        "from coremltools.converters.mil.frontend.torch.torch_op_registry import _TORCH_OPS_REGISTRY\n\n"
        "_TORCH_OPS_REGISTRY.name_to_func_mapping['linear'] = lower\n"
    ),
    "as an attribute of the module": (
        "from coremltools.converters.mil.frontend.torch import ops\n\nops.linear = lower\n"
    ),
}


@pytest.mark.parametrize("name", sorted(SETTERS))
def test_a_lowering_that_is_put_in_its_place(tmp_path: Path, name: str) -> None:
    lower = REGISTER.format("", "lower", "{0}") + SETTERS[name] + "\n\n"
    assert _verdict(tmp_path, lower.replace("{0}", "last(x)")) is Verdict.UNRESOLVED
    assert _verdict(tmp_path, lower.replace("{0}", "mb.linear(x=x, weight=w)")) is Verdict.ELIGIBLE
