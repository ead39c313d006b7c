"""Exporters that take their model class from a registry, under a key that nobody knows."""

from __future__ import annotations

from pathlib import Path

from auditor.registries import Choices
from auditor.values import Const
from rules.verdict import judge
from tests.auditor.support import EXPORTER, graph_of, mutate, scan_text

TOP, REST = EXPORTER.split("class Model(nn.Module):\n")
CLASS, TAIL = REST.split("def export(args):\n")
BODY = TAIL.split('\n\nif __name__ == "__main__":\n')[0].replace("    model = Model().eval()\n", "")

FAMILIES = ("birch", "cedar", "elm", "fir", "larch", "maple", "oak")
DENSE = TOP + "class {}(nn.Module):\n" + CLASS
LAST = DENSE.replace("logits = self.head(x)", "logits = self.head(x[:, -1:])")

REGISTRY = """\
from dataclasses import dataclass
from functools import lru_cache


@dataclass
class Entry:
    desktop: type | None = None
    phone: type | None = None


@lru_cache(maxsize=1)
def table():
{imports}
    return {{
{entries}
    }}


ALIASES = {{"small_oak": "oak"}}


def entry_of(family):
    known = table()
    family = ALIASES.get(family, family)
    if family not in known:
        raise KeyError(family)
    return known[family]
"""

PIPELINE = """\
import torch
from coreai_torch import TorchConverter
from torch.export import Dim
from transformers import AutoConfig

from registry import entry_of

HIDDEN, HEADS, LAYERS, CONTEXT = 32, 4, 2, 512
STATES = ["keyCache", "valueCache"]


def write(model: torch.nn.Module, args):
{body}


def export_model(args):
    entry = entry_of(AutoConfig.from_pretrained(args.name).model_type)
    if args.device == "phone" and entry.phone is None:
        raise ValueError("not for phones")
    family = entry.desktop if args.device == "desktop" else entry.phone
    if args.device == "desktop":
        model = family()
    else:
        model = family()
    model = model.eval()
    if args.device == "desktop":
        write(model, args)  # TorchConverter is behind both
    else:
        write(model, args)
"""


def files(**changed: str) -> dict[str, str]:
    """A module for each family, with classes for desktops; the pipeline fixes the query's flexibility."""
    out = {f"models/{f}.py": changed.get(f, DENSE).format(f.title()) for f in FAMILIES}
    imports = "".join(f"    from models.{f} import {f.title()}\n" for f in FAMILIES)
    entries = "".join(f'        "{f}": Entry(desktop={f.title()}{changed.get("more_" + f, "")}),\n' for f in FAMILIES)
    out["registry.py"] = REGISTRY.format(imports=imports + changed.get("imports", ""), entries=entries)
    body = mutate(BODY, ("1 if args.static else 8", "8")).replace("None if args.static else ", "")
    out["export.py"] = PIPELINE.format(body=body)
    return out


def said(root: Path, **changed: str) -> dict[str, str]:
    graphs = scan_text(root, files(**changed)).graphs
    return {f"{g.script}:{g.family}": judge(g.facts).says() for g in graphs}


def test_each_entry_has_a_graph_in_the_file_of_its_class(tmp_path: Path) -> None:
    assert said(tmp_path) == {f"models/{f}.py:{f.title()}": "eligible" for f in FAMILIES}


def test_the_line_is_that_of_the_class(tmp_path: Path) -> None:
    for graph in scan_text(tmp_path, files()).graphs:
        lines = files()[graph.script].splitlines()
        assert lines[graph.line - 1] == f"class {graph.family}(nn.Module):"


def test_entries_are_told_apart(tmp_path: Path) -> None:
    found = said(tmp_path, elm=LAST)
    assert found.pop("models/elm.py:Elm") == "out by last-token-only"
    assert set(found.values()) == {"eligible"}


def test_the_class_is_that_of_the_way_that_was_taken(tmp_path: Path) -> None:
    """An entry with a class for each device: the condition that chose the class chooses it again."""
    phone = LAST.replace("class {}(", "class Pocket(")
    made = files(more_oak=", phone=Pocket", imports="    from models.pocket import Pocket\n")
    graphs = scan_text(tmp_path, {**made, "models/pocket.py": phone}).graphs
    found = {g.script: judge(g.facts).says() for g in graphs}
    assert found["models/oak.py"] == "eligible"
    assert found["models/pocket.py"] == "out by last-token-only"


def test_a_registry_of_other_things_is_none() -> None:
    choices = Choices()
    assert choices.choose([Const(1), Const(2)], None) is None  # type: ignore[arg-type]
    assert not choices.met


def test_a_fact_that_a_checkpoint_decides_names_the_key_that_chose_the_class(tmp_path: Path) -> None:
    top = "from transformers import AutoConfig\nCONFIG = AutoConfig.from_pretrained('pine-1b')\n\n\nclass Layer("
    script = mutate(
        EXPORTER,
        ("class Layer(", top),
        ("        x = self.norm(x)\n", "        x = CONFIG.final(x)\n"),
        ("    model = Model().eval()\n", '    model = {"pine": Model, "fir": Model}[CONFIG.model_type]().eval()\n'),
    )
    reason = graph_of(scan_text(tmp_path, {"export.py": script})).facts.logits.reason
    assert reason == "the checkpoint's config.json decides: config.model_type (give it with --checkpoints)"
    alone = mutate(script, ('{"pine": Model, "fir": Model}[CONFIG.model_type]()', "Model()"))
    reason = graph_of(scan_text(tmp_path, {"export.py": alone})).facts.logits.reason
    assert reason == "the checkpoint's config.json decides"
