"""What a module changes of another one as it is imported, however the statement is spelled that does it."""

from __future__ import annotations

from pathlib import Path

import pytest

from rules.verdict import judge
from tests.auditor.support import EXPORTER, scan_text

LIBRARY, _, SCRIPT = EXPORTER.partition('if __name__ == "__main__":')
MAIN = f'import argparse\nimport patches\nfrom library import *\n\nif __name__ == "__main__":{SCRIPT}'
BODY = """\
    x = self.embed(input_ids)
    for i, layer in enumerate(self.layers):
        x = layer(x, position_ids, key_cache[i], value_cache[i])
    return self.head(self.norm(x[:, -1:]))
"""
LAST = f"def last(self, input_ids, position_ids, key_cache, value_cache):\n{BODY}"
PATCHES = f"""\
import contextlib
import importlib
import library

{LAST}

def apply(model, forward=last):
    model.forward = forward
    return forward


def patching(model):
    def patch(function):
        model.forward = function
        return function
    return patch


class Patcher:
    def __init__(self, model=None):
        if model is not None:
            model.forward = last

    def go(self):
        library.Model.forward = last


"""

CHANGES = {
    "a call": "apply(library.Model)",
    "a write": "library.Model.forward = last",
    "an annotated write": "library.Model.forward: object = last",
    "a write in a branch": "if True:\n    library.Model.forward = last",
    "a write in a case": "match 1:\n    case 1:\n        library.Model.forward = last",
    "an assigned call": "done = apply(library.Model)",
    "one of two values": "_, done = 1, apply(library.Model)",
    "an added call": "n = 0\nn += 1 if apply(library.Model) else 0",
    "a call with an alternative": "apply(library.Model) or None",
    "a comprehension": "[apply(one) for one in [library.Model]]",
    "a value of a table": "table = {'a': apply(library.Model)}",
    "an assertion": "assert apply(library.Model)",
    "a condition": "if apply(library.Model):\n    pass",
    "what a loop goes over": "for _ in [apply(library.Model)]:\n    pass",
    "what a block is given": "with contextlib.nullcontext(apply(library.Model)):\n    pass",
    "a lambda that is called": "done = (lambda one: apply(one))(library.Model)",
    "a function that is handed on": "done = list(map(apply, [library.Model]))",
    "a decorator": "@patching(library.Model)\n" + LAST.replace("last", "forward", 1),
    "a default": "def f(x=apply(library.Model)):\n    pass",
    "a write in a class": "class Patched:\n    library.Model.forward = last",
    "a call in a class": "class Patched:\n    done = apply(library.Model)",
    "a constructor": "patcher = Patcher(library.Model)",
    "a method": "patcher = Patcher()\ndone = patcher.go()",
    "setattr as a value": "done = setattr(library.Model, 'forward', last)",
    "another module's function": "from tools import apply_elsewhere\ndone = apply_elsewhere(library.Model, last)",
    "an import by a call": "more = importlib.import_module('more')",
}
"""Each leaves one row to the head of a model that the library defines and the script exports."""

QUIET = {
    "nothing": "",
    "a call for a value": "import math\nwidth = math.sqrt(16)\nnames = dict(a=len('ab'))",
    "a call of its own for a value": "def double(n):\n    return 2 * n\nwidth = double(4)",
    "an object of its own that is changed": "patcher = Patcher()\npatcher.width = 3\nsame = [patcher]",
    "what a function would do": "def later():\n    return apply(library.Model)",
    "what the file does when it is run": "if __name__ == '__main__':\n    done = apply(library.Model)",
    "the same forward": "done = apply(library.Model, library.Model.forward)",
}


def verdicts(root: Path, changes: str) -> list[str]:
    files = {
        "library.py": LIBRARY,
        "patches.py": f"{PATCHES}{changes}\n",
        "tools.py": "def apply_elsewhere(model, forward):\n    model.forward = forward\n",
        "more.py": f"import library\n\n{LAST}\nlibrary.Model.forward = last\n",
        "main.py": MAIN,
    }
    graphs = scan_text(root, files).graphs
    return [judge(graph.facts).says() for graph in graphs if graph.script == "main.py" and not graph.invocation.argv]


@pytest.mark.parametrize("name", sorted(CHANGES))
def test_a_model_that_an_import_changes(tmp_path: Path, name: str) -> None:
    assert verdicts(tmp_path, CHANGES[name]) == ["out by last-token-only"]


def test_a_change_where_an_import_may_fail_is_not_passed_over(tmp_path: Path) -> None:
    changes = "try:\n    import no_such_module\nexcept ImportError:\n    library.Model.forward = last"
    assert verdicts(tmp_path, changes) == ["unresolved by unknown-logits"]


@pytest.mark.parametrize("name", sorted(QUIET))
def test_a_module_that_changes_nothing_elsewhere(tmp_path: Path, name: str) -> None:
    assert verdicts(tmp_path, QUIET[name]) == ["eligible"]
