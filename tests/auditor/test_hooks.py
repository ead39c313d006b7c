"""Exporters that are generic over model classes: names and shapes in a base, `forward` below it, the call elsewhere."""

from __future__ import annotations

from pathlib import Path

from auditor.hooks import generic_exporters
from auditor.modules import index
from auditor.sources import Sources
from rules.facts import FileStatus, Graph
from rules.verdict import judge
from tests.auditor.support import mutate, scan_text, write

BASE = """\
import torch
from torch import nn
from torch.export import Dim


class Base(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config
        self.build(config)

    @classmethod
    def state_names(cls):
        return {"main": ("keyCache", "valueCache")}

    def inputs(self, config):
        cache = torch.zeros(config.layers, 1, config.heads, 64, config.width)
        return {
            "input_ids": torch.zeros((1, 8), dtype=torch.int32),
            "position_ids": torch.zeros((1, 16), dtype=torch.int32),
            "key_cache": cache,
            "value_cache": cache.clone(),
        }

    def dynamic(self, config):
        return {
            "input_ids": {1: Dim("tokens", max=config.context)},
            "position_ids": {1: Dim("seen", max=config.context)},
            "key_cache": {3: Dim("k", max=config.context)},
            "value_cache": {3: Dim("v", max=config.context)},
        }


class PhoneBase(Base):
    def dynamic(self, config):
        return {n: None for n in ("input_ids", "position_ids", "key_cache", "value_cache")}
"""

DESK = """\
import torch
from torch import nn
from base import Base


class Desk(Base):
    def build(self, config):
        self.embed = nn.Embedding(config.vocab_size, config.hidden)
        self.scale = config.hidden**0.5
        self.head = nn.Linear(config.hidden, config.vocab_size)

    def forward(self, input_ids, position_ids, key_cache, value_cache):
        x = self.embed(input_ids) * torch.tensor(self.scale)
        end = position_ids.shape[1]
        start = end - input_ids.shape[1]
        key_cache[0, :, :, start:end] = x.unsqueeze(1)
        value_cache[0, :, :, start:end] = x.unsqueeze(1)
        return self.head(x)
"""

EXPORT = """\
import torch
from coreai_torch import TorchConverter
from base import Base, PhoneBase


def convert(model, program):
    converter = TorchConverter()
    converter.add_exported_program(
        program,
        input_names=["input_ids", "position_ids"],
        output_names=["logits"],
        state_names=model.state_names()["main"],
    )
    return converter.to_coreai()


def export_desk(model: Base, config, path) -> None:
    program = torch.export.export(model, (), model.inputs(config), dynamic_shapes=model.dynamic(config))
    convert(model, program)  # TorchConverter, desk


def export_phone(model: PhoneBase, config, path) -> None:
    program = torch.export.export(model, (), model.inputs(config), dynamic_shapes=model.dynamic(config))
    convert(model, program)  # TorchConverter
"""

PHONE = mutate(DESK, ("import Base", "import PhoneBase"), ("class Desk(Base)", "class Phone(PhoneBase)"))
FILES = {"base.py": BASE, "models/desk.py": DESK, "models/phone.py": PHONE, "export.py": EXPORT}


def by_script(graphs: tuple[Graph, ...]) -> dict[str, str]:
    return {g.script: judge(g.facts).says() for g in graphs}


def test_a_graph_for_each_class_in_the_file_of_the_class(tmp_path: Path) -> None:
    result = scan_text(tmp_path, FILES)
    found = by_script(result.graphs)
    assert found["models/desk.py"] == "eligible"
    # the phone's class goes to the exporter that names the nearest base, which fixes all shapes
    assert found["models/phone.py"].startswith("unresolved")
    assert "fixed-window" in found["models/phone.py"]
    assert [g.line for g in result.graphs if g.script == "models/desk.py"] == [6]
    assert {f.path: f.status for f in result.files}["models/desk.py"] is FileStatus.EXPORTS


def test_the_head_is_judged_in_the_class(tmp_path: Path) -> None:
    last = mutate(DESK, ("self.head(x)", "self.head(x[:, -1:])"))
    result = scan_text(tmp_path, {**FILES, "models/desk.py": last})
    assert "last-token-only" in by_script(result.graphs)["models/desk.py"]


def test_classes_of_tests_and_of_other_families_are_left_out(tmp_path: Path) -> None:
    other = "from torch import nn\n\n\nclass Tower(nn.Module):\n    pass\n"
    write(tmp_path, {**FILES, "tests/test_desk.py": mutate(DESK, ("class Desk", "class Small")), "tower.py": other})
    sources = Sources(tmp_path)
    found = generic_exporters([index(sources.read("export.py"))], ["TorchConverter"], sources)
    assert [(h.function, h.parameter, [c.name for c in h.classes]) for h in found] == [
        ("export_desk", "model", ["Desk"]),
        ("export_phone", "model", ["Phone"]),
    ]


def test_what_is_traced_is_the_module_as_it_was(tmp_path: Path) -> None:
    """A switch that is thrown after the trace is not in the program."""
    switched = mutate(
        DESK,
        ("        return self.head(x)", "        return x[:, 0] if self.prefill else self.head(x)"),
        ("    def build(self, config):", "    prefill = False\n\n    def build(self, config):"),
    )
    call = "    convert(model, program)  # TorchConverter, desk"
    late = mutate(EXPORT, (call, "    model.prefill = True\n" + call))
    line = "def export_desk(model: Base, config, path) -> None:\n"
    early = mutate(EXPORT, (line, line + "    model.prefill = True\n"))
    files = {**FILES, "models/desk.py": switched}
    assert by_script(scan_text(tmp_path / "late", {**files, "export.py": late}).graphs)["models/desk.py"] == "eligible"
    found = by_script(scan_text(tmp_path / "early", {**files, "export.py": early}).graphs)["models/desk.py"]
    assert found != "eligible"
