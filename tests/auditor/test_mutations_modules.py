"""A model that is changed after it was built: replaced parts, hooks, patched classes, calls that nobody can read."""

from __future__ import annotations

from pathlib import Path

import pytest

from rules.audit import audit
from rules.verdict import Verdict, judge
from tests.auditor.edits import (
    EXPORT,
    LAST,
    STATIC,
    UNKNOWN_KIND,
    UNKNOWN_LOGITS,
    UNKNOWN_QUERY,
    UNKNOWN_STATES,
    after_norm,
    before,
    built,
    check_broken,
    check_harmless,
    may,
    top,
)
from tests.auditor.support import EXPORTER, default_graphs, graph_of, judged, mutate, scan_text

_PARTS = """\
class LastHead(nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, x):
        return self.inner(x[:, -1:])


plain_forward = Model.forward


def last_forward(self, *args, **kwargs):
    return plain_forward(self, *args, **kwargs)[:, -1:]


class Last(Model):
    forward = last_forward
"""

CHANGES = {
    "an attribute": "model.head = LastHead(model.head)",
    "setattr": 'setattr(model, "head", LastHead(model.head))',
    "_modules": 'model._modules["head"] = LastHead(model.head)',
    "add_module": 'model.add_module("head", LastHead(model.head))',
    "a sequence": "model.norm = nn.Sequential(model.norm, LastHead(nn.Identity()))",
    "appended to a sequence": ("model.norm = nn.Sequential(model.norm)\nmodel.norm.append(LastHead(nn.Identity()))"),
    "an assigned forward of the class": "Model.forward = last_forward",
    "setattr on the class": 'setattr(Model, "forward", last_forward)',
    "a bound forward": "import types\nmodel.forward = types.MethodType(last_forward, model)",
    "a partial forward": "import functools\nmodel.forward = functools.partial(last_forward, model)",
    "a lambda as forward": "inner = model.forward\nmodel.forward = lambda *a, **k: inner(*a, **k)[:, -1:]",
    "a forward of a part": "norm = model.norm.forward\nmodel.norm.forward = lambda x: norm(x)[:, -1:]",
    "a forward of a library class": (
        "norm = nn.LayerNorm.forward\nnn.LayerNorm.forward = lambda self, x: norm(self, x)[:, -1:]"
    ),
    "the class": "model.__class__ = Last",
    "a forward hook": "model.norm.register_forward_hook(lambda m, args, out: out[:, -1:])",
    "a forward hook on the model": "model.register_forward_hook(lambda m, args, out: out[:, -1:])",
    "a pre-hook": "model.head.register_forward_pre_hook(lambda m, args: (args[0][:, -1:],))",
    "a pre-hook by name": (
        "def keep_last(module, args):\n    return (args[0][:, -1:],)\n\nmodel.head.register_forward_pre_hook(keep_last)"
    ),
    "a walk over the children": (
        'for name, child in list(model.named_children()):\n    if name == "head":\n'
        "        setattr(model, name, LastHead(child))"
    ),
    "a walk over the modules": (
        "for module in model.modules():\n    if isinstance(module, nn.LayerNorm):\n"
        "        plain = module.forward\n        module.forward = lambda x: plain(x)[:, -1:]"
    ),
    "a wrapper": "model = LastHead(model) if False else Last()",
    "a layer appended": (
        "class Cut(nn.Module):\n    def forward(self, x, *rest):\n        return x[:, -1:]\n\n"
        "model.layers.append(Cut())"
    ),
    "a layer put in place": (
        "class Cut(nn.Module):\n    def forward(self, x, *rest):\n        return x[:, -1:]\n\nmodel.layers[-1] = Cut()"
    ),
    "a new list": (
        "class Cut(nn.Module):\n    def forward(self, x, *rest):\n        return x[:, -1:]\n\n"
        "model.layers = nn.ModuleList([*model.layers, Cut()])"
    ),
}

LOST = may(LAST, UNKNOWN_LOGITS)

UNREAD = {
    "a function": "import missing_package\nmissing_package.patch(model)",
    "a function that gives it back": "import missing_package\nmodel = missing_package.rewrite(model)",
    "a function on a part": "import missing_package\nmissing_package.patch(model.head)",
    "a function on the layers": "import missing_package\nmissing_package.fuse(model.layers)",
    "a name imported": "from missing_package.patching import patch\npatch(model, last=True)",
    "a method of an unknown object": "import missing_package\nmissing_package.Patcher().apply(model)",
    "held by an unknown object": "import missing_package\nmissing_package.Patcher(model).apply()",
    "apply": "import missing_package\nmodel.apply(missing_package.rewrite)",
    "in a loop": "import missing_package\nfor layer in model.layers:\n    missing_package.patch(layer)",
    "in a list": "import missing_package\nmissing_package.patch_all([model])",
    "by keyword": "import missing_package\nmissing_package.patch(module=model)",
    "a closure": "import missing_package\nmissing_package.run(lambda: setattr(model, 'head', None))",
    "an unknown part": "import missing_package\nmodel.head = missing_package.Head(model.head)",
    "an unknown part of an unknown name": 'import os\nsetattr(model, os.environ["PART"], LastHead(model.head))',
    "an unknown class": "import missing_package\nmodel = missing_package.Model()",
    "a part in a branch that is not known": (
        'import os\nif os.environ.get("LAST"):\n    model.head = LastHead(model.head)'
    ),
    "a part in a loop that is not known": 'import os\nfor _ in os.listdir("."):\n    model.head = LastHead(model.head)',
    "a part after an exception": (
        "import missing_package\ntry:\n    missing_package.check()\n"
        "except RuntimeError:\n    model.head = LastHead(model.head)"
    ),
    "code as text": 'exec(open("patch.py").read())',
    "an unknown loader": "import missing_package\nmodel = missing_package.load_into(model)",
}

UNSURE = may(UNKNOWN_LOGITS, UNKNOWN_QUERY, UNKNOWN_STATES, UNKNOWN_KIND)

INSIDE = {
    "a function": "import missing_package; x = missing_package.select(x)",
    "a function of the rows": "import missing_package; x = x[:, missing_package.start() :]",
    "a mask": "import missing_package; x = x[missing_package.mask(x)]",
    "a boolean mask": "x = x[:, (position_ids[0, -rows:] >= 0)]",
    "an unknown reshape": "import missing_package; x = x.view(missing_package.shape(x))",
}

KEPT = {
    "compile": "model = torch.compile(model)",
    "half": "model = model.half()",
    "to": 'model.to("cpu", torch.float16)',
    "a state dict": 'model.load_state_dict(torch.load("w.pt"))',
    "a state dict that is not strict": 'model.load_state_dict(torch.load("w.pt"), strict=False)',
    "no gradients": "for p in model.parameters():\n    p.requires_grad_(False)",
    "quantize_": "from torchao.quantization import quantize_, int4_weight_only\nquantize_(model, int4_weight_only())",
    "a parametrised weight": (
        "class Scaled(nn.Module):\n    def forward(self, weight):\n        return weight * 2.0\n\n\n"
        'torch.nn.utils.parametrize.register_parametrization(model.head, "weight", Scaled())'
    ),
    "dynamic quantisation": "model = torch.ao.quantization.quantize_dynamic(model, {nn.Linear})",
    "palettised": (
        "from coreai_opt.palettization.kmeans import KMeansPalettizer\n"
        "palettizer = KMeansPalettizer(model, None)\nmodel = palettizer.prepare()\nmodel = palettizer.finalize()"
    ),
    "reading it": "print(sum(p.numel() for p in model.parameters()))",
    "saving it": 'torch.save(model.state_dict(), "copy.pt")',
    "its size by a call that cannot be read": "import missing_package\nmissing_package.log(len(model.layers))",
    "tying": "model.head.weight = model.embed.weight",
    "an init": "nn.init.normal_(model.head.weight)",
    "a dropped layer": "del model.layers[1]",
    "fewer layers": "model.layers = model.layers[:1]",
    "the same head again": "head = model.head\nmodel.head = head",
    "a linear layer in place": (
        "old = model.head\nmodel.head = nn.Linear(old.in_features, old.out_features, bias=False)"
    ),
    "deepcopy": "import copy\nmodel = copy.deepcopy(model)",
    "a branch between equals": 'import os\nif os.environ.get("HALF"):\n    model = model.half()',
    "a forward hook that looks": "model.norm.register_forward_hook(lambda m, args, out: None)",
}


@pytest.mark.parametrize("name", sorted(CHANGES))
def test_a_change_of_the_model_that_leaves_one_row(tmp_path: Path, name: str) -> None:
    check_broken(tmp_path, ((top(_PARTS), built(CHANGES[name])), LOST))


@pytest.mark.parametrize("name", sorted(UNREAD))
def test_what_cannot_be_read_taints_the_model(tmp_path: Path, name: str) -> None:
    check_broken(tmp_path, ((top(_PARTS), built(UNREAD[name])), UNSURE | LOST))


@pytest.mark.parametrize("name", sorted(INSIDE))
def test_what_cannot_be_read_inside_forward(tmp_path: Path, name: str) -> None:
    check_broken(tmp_path, ((after_norm(INSIDE[name]),), UNSURE))


@pytest.mark.parametrize("name", sorted(KEPT))
def test_what_keeps_the_model(tmp_path: Path, name: str) -> None:
    check_harmless(tmp_path, (built(KEPT[name]),))


def test_two_exports_of_which_one_is_pinned(tmp_path: Path) -> None:
    script = mutate(EXPORTER, ("    export(args)\n", "    export(args)\n    args.static = True\n    export(args)\n"))
    assert [judge(g.facts).says() for g in default_graphs(scan_text(tmp_path, {"export.py": script}))] == [
        "eligible",
        STATIC,
    ]


LAST_ROW = "class LastRow(nn.Module):\n    def forward(self, x):\n        return x[:, -1:]\n\n\n"
TAILS = {
    "a list": (
        "class Tail(nn.ModuleList):\n    def __init__(self, short):\n        if short:\n"
        "            super().__init__([LastRow()])\n        else:\n            super().__init__([nn.Identity()])\n"
        "    def forward(self, x):\n        for part in self:\n            x = part(x)\n        return x\n"
    ),
    "a sequence": (
        "class Tail(nn.Sequential):\n    def __init__(self, short):\n        if short:\n"
        "            super().__init__(nn.Identity(), LastRow())\n"
        "        else:\n            super().__init__(nn.Identity())\n"
    ),
    "a sequence of the other order": (
        "class Tail(nn.Sequential):\n    def __init__(self, short):\n        if not short:\n"
        "            super().__init__(nn.Identity())\n        else:\n            super().__init__(LastRow())\n"
    ),
    "a dict": (
        "class Tail(nn.ModuleDict):\n    def __init__(self, short):\n        if short:\n"
        "            super().__init__({'tail': LastRow()})\n"
        "        else:\n            super().__init__({'tail': nn.Identity()})\n"
        "    def forward(self, x):\n        return self['tail'](x)\n"
    ),
}


@pytest.mark.parametrize("name", sorted(TAILS))
def test_parts_that_the_environment_chooses(tmp_path: Path, name: str) -> None:
    """What a container of modules holds after either of two ways is one of both."""
    script = mutate(
        EXPORTER,
        before(EXPORT, f"import os\n\n\n{LAST_ROW}{TAILS[name]}\n\n"),
        ("        self.norm = ", "        self.tail = Tail(os.environ.get('SHORT') == '1')\n        self.norm = "),
        after_norm("x = self.tail(x)"),
    )
    says = judged(tmp_path, script).says()
    assert says == UNKNOWN_LOGITS
    fixed = mutate(script, ("os.environ.get('SHORT') == '1'", "False"))
    assert judged(tmp_path, fixed).says() == "eligible"


def test_a_model_that_the_environment_chooses_is_not_eligible(tmp_path: Path) -> None:
    code = 'import os\nmodel = Last() if os.environ.get("LAST") else model'
    script = mutate(EXPORTER, top(_PARTS), built(code))
    (model,) = audit(scan_text(tmp_path, {"export.py": script})).models
    assert model.verdict is not Verdict.ELIGIBLE


@pytest.mark.parametrize(
    "statement", ["import patches", "from patches import *", "from patches import done", "import patches as p"]
)
def test_a_module_that_patches_the_model_when_it_is_imported(tmp_path: Path, statement: str) -> None:
    model, main = EXPORTER.split("def export(args):", 1)
    patches = (
        "import models\nplain = models.Model.forward\ndone = True\n\n\n"
        "def last(self, *args, **kwargs):\n    return plain(self, *args, **kwargs)[:, -1:]\n\n\n"
        "models.Model.forward = last\n"
    )
    script = (
        "import argparse\nimport torch\nfrom torch.export import Dim\nfrom coreai_torch import TorchConverter\n"
        f"from models import CONTEXT, HEADS, HIDDEN, LAYERS, STATES, Model\n{statement}\n\n\ndef export(args):{main}"
    )
    files = {"export.py": script, "models.py": model, "patches.py": patches}
    assert judge(graph_of(scan_text(tmp_path / "patched", files)).facts).says() == LAST
    del files["patches.py"]
    files["export.py"] = script.replace(statement, "")
    assert judge(graph_of(scan_text(tmp_path / "plain", files)).facts).says() == "eligible"
