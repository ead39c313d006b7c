"""A model that is one of several, and what a script does to whichever it is: hooks, and what its class is given."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.auditor.edits import BUILD, LAST, LAYER, UNKNOWN_LOGITS, after, before, check_broken, check_harmless, may

CHOSEN = (
    before(LAYER, "import os\n\n\n"),
    (BUILD, '    model = {"plain": Model, "other": Other}[os.environ["KIND"]]().eval()\n'),
    before("def export(args):\n", "class Other(Model):\n    pass\n\n\n"),
)
HEAD = (
    before(LAYER, "import os\n\n\n"),
    after(BUILD, '    if os.environ.get("BARE"):\n        model.head = nn.Linear(HIDDEN, VOCAB, bias=False)\n'),
)
TO_THE_MODEL = {
    "a hook": "model.register_forward_hook(lambda m, a, out: out[:, -1:])",
    "a hook with keywords": "model.register_forward_hook(lambda m, a, k, out: out[:, -1:], with_kwargs=True)",
    "a hook on a part": "model.norm.register_forward_hook(lambda m, a, out: out[:, -1:])",
    "a hook behind one that looks": (
        "model.register_forward_hook(lambda m, a, out: None)\n"
        "    model.register_forward_hook(lambda m, a, out: out[:, -1:])"
    ),
    "a forward of its class": (
        "whole = type(model).forward\n    type(model).forward = lambda self, *a, **k: whole(self, *a, **k)[:, -1:]"
    ),
    "a forward of its class by setattr": (
        'whole = type(model).forward\n    setattr(type(model), "forward", lambda self, *a: whole(self, *a)[:, -1:])'
    ),
    "no head": "model.head = nn.Identity()",
    "no head, in a function": "def bare(m):\n        m.head = nn.Identity()\n\n    bare(model)",
    "no head, in a loop": "for m in [model]:\n        m.head = nn.Identity()",
    "a hook on each part": (
        "for name, m in model.named_modules():\n        if name == 'norm':\n"
        "            m.register_forward_hook(lambda m, a, out: out[:, -1:])"
    ),
    "a subclass of its class": (
        "class Last(type(model)):\n        def forward(self, *a, **k):\n"
        "            return super().forward(*a, **k)[:, -1:]\n\n    model.__class__ = Last"
    ),
}
TO_THE_HEAD = {
    "a hook": "model.head.register_forward_hook(lambda m, a, out: out[:, -1:])",
    "a pre-hook": "model.head.register_forward_pre_hook(lambda m, a: (a[0][:, -1:],))",
    "a pre-hook of one value": "model.head.register_forward_pre_hook(lambda m, a: a[0][:, -1:])",
    "a hook in one way": (
        'if os.environ.get("LAST"):\n        model.head.register_forward_hook(lambda m, a, out: out[:, -1:])'
    ),
}
HARMLESS = {
    "a hook that looks": "model.register_forward_hook(lambda m, a, out: None)",
    "a hook that prints": "model.head.register_forward_hook(lambda m, a, out: print(out.shape))",
    "a pre-hook that gives the same": "model.head.register_forward_pre_hook(lambda m, a: a)",
    "the name of its class": "print(type(model).__name__)",
}
LOST = may(LAST, UNKNOWN_LOGITS)


@pytest.mark.parametrize("name", TO_THE_MODEL)
def test_one_row_of_a_model_that_is_one_of_two(tmp_path: Path, name: str) -> None:
    first, built, other = CHOSEN
    check_broken(tmp_path, ((first, (built[0], f"{built[1]}    {TO_THE_MODEL[name]}\n"), other), LOST))


@pytest.mark.parametrize("name", TO_THE_HEAD)
def test_one_row_of_a_head_that_is_one_of_two(tmp_path: Path, name: str) -> None:
    first, built = HEAD
    check_broken(tmp_path, ((first, (built[0], f"{built[1]}    {TO_THE_HEAD[name]}\n")), LOST))


@pytest.mark.parametrize("name", HARMLESS)
@pytest.mark.parametrize("edits", [CHOSEN, HEAD], ids=["model", "head"])
def test_what_changes_neither(tmp_path: Path, edits: tuple[tuple[str, str], ...], name: str) -> None:
    first, built, *rest = edits
    check_harmless(tmp_path, (first, (built[0], f"{built[1]}    {HARMLESS[name]}\n"), *rest))
