"""Context managers that end an exception: what comes after the point where it was raised may not have run."""

from __future__ import annotations

from pathlib import Path

import pytest

from rules.verdict import Verdict
from tests.auditor.edits import HEAD, after, before
from tests.auditor.support import EXPORTER, judged, mutate

PARTS = """\
FLAG = json.load(open("config.json"))["flag"]


class Scale(nn.Module):
    def forward(self, x):
        return x * 2.0


{}"""
IMPORTS = ("import argparse\n", "import argparse\nimport contextlib\nimport json\n")
PART = after("        self.norm = nn.LayerNorm(HIDDEN)\n", "        self.part = Scale() if FLAG else None\n")


def within(manager: str, inside: str = "") -> tuple[str, str]:
    """The part is called inside a manager, and rows are cut where that did not succeed."""
    return HEAD, (
        f"        done = False\n        with {manager}:\n{inside}"
        "            x = self.part(x)\n            done = True\n"
        f"        if not done:\n            x = x[:, -1:]\n{HEAD}"
    )


def own(leave: str) -> str:
    return (
        "class Quiet:\n    def __enter__(self):\n        return self\n\n"
        f"    def __exit__(self, kind, error, trace):\n        {leave}"
    )


def generator(handler: str) -> str:
    return (
        "@contextlib.contextmanager\ndef quiet():\n    try:\n        yield\n"
        f"    except TypeError as error:\n        {handler}"
    )


SWALLOWS = {
    "suppress": ("", within("contextlib.suppress(TypeError)")),
    "suppress on a stack": (
        "",
        within(
            "contextlib.ExitStack() as stack",
            "            stack.enter_context(contextlib.suppress(TypeError))\n",
        ),
    ),
    "an exit that says True": (own("return True"), within("Quiet()")),
    "an exit that tells by the kind": (own("return kind is TypeError"), within("Quiet()")),
    "an exit that may say True": (own("if kind:\n            return True\n        return None"), within("Quiet()")),
    "a generator": (generator("print(error)"), within("quiet()")),
    "a generator that may raise it again": (
        generator("if FLAG:\n            raise\n        print(error)"),
        within("quiet()"),
    ),
}
PASSES = {
    "another kind": ("", within("contextlib.suppress(KeyError)")),
    "an exit that says nothing": (own("print(kind)"), within("Quiet()")),
    "an exit that says False": (own("return False"), within("Quiet()")),
    "a generator that raises it again": (generator("print(error)\n        raise"), within("quiet()")),
    "a generator that raises another": (generator("raise ValueError from error"), within("quiet()")),
    "a stack without such a manager": ("", within("contextlib.ExitStack()")),
    "a stack for something else": (
        "",
        within("contextlib.ExitStack() as stack", "            stack.enter_context(torch.no_grad())\n"),
    ),
}


def _verdict(root: Path, definition: str, use: tuple[str, str]) -> Verdict:
    return judged(
        root,
        mutate(EXPORTER, IMPORTS, before("class Layer(nn.Module):\n", PARTS.format(definition) + "\n\n\n"), PART, use),
    ).verdict


@pytest.mark.parametrize("name", sorted(SWALLOWS))
def test_what_follows_may_not_have_run(tmp_path: Path, name: str) -> None:
    assert _verdict(tmp_path, *SWALLOWS[name]) is not Verdict.ELIGIBLE


@pytest.mark.parametrize("name", sorted(PASSES))
def test_an_exception_that_nobody_ends_ends_the_export(tmp_path: Path, name: str) -> None:
    assert _verdict(tmp_path, *PASSES[name]) is Verdict.ELIGIBLE
