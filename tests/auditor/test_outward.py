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
    "another module's function that knows": "from tools import patch_library\ndone = patch_library()",
    "a function that imports what it changes": "import tools\ndone = tools.patch_library()",
    "an import by a call": "more = importlib.import_module('more')",
}
"""Each leaves one row to the head of a model that the library defines and the script exports."""

TOOLS = f"""\
def apply_elsewhere(model, forward):
    model.forward = forward


{LAST}

def patch_library():
    import library
    library.Model.forward = last
"""

PATCHING = f"import library\n\n{LAST}\nlibrary.Model.forward = last\n"
REACHED = {
    "a module that only imports": ("import first", {"first.py": "import patching\n"}),
    "two of them": ("import first", {"first.py": "from second import X\n", "second.py": "import patching\nX = 1\n"}),
    "an import in a block": (
        "import first",
        {"first.py": "try:\n    import patching\nexcept ImportError:\n    pass\n"},
    ),
    "the package of a module": ("from kit.part import X", {"kit/__init__.py": PATCHING, "kit/part.py": "X = 1\n"}),
    "the package of a package": (
        "from kit.inner.part import X",
        {"kit/__init__.py": PATCHING, "kit/inner/__init__.py": "", "kit/inner/part.py": "X = 1\n"},
    ),
    "a package that imports its module": (
        "from kit import part",
        {"kit/__init__.py": "from . import changes\n", "kit/changes.py": PATCHING, "kit/part.py": "X = 1\n"},
    ),
    "a package that imports from its module": (
        "from kit.part import X",
        {"kit/__init__.py": "from .changes import last\n", "kit/changes.py": PATCHING, "kit/part.py": "X = 1\n"},
    ),
    "modules that import each other": (
        "import first",
        {"first.py": "import second\n", "second.py": "import first\nimport patching\n"},
    ),
}
NOT_REACHED = {
    "an import in a function": ("import first", {"first.py": "def later():\n    import patching\n"}),
    "an import for the checker": (
        "import first",
        {"first.py": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import patching\n"},
    ),
    "an import in the main block": ("import first", {"first.py": "if __name__ == '__main__':\n    import patching\n"}),
    "another module of the package": ("from kit.part import X", {"kit/changes.py": PATCHING, "kit/part.py": "X = 1\n"}),
}

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
        "tools.py": TOOLS,
        "more.py": f"import library\n\n{LAST}\nlibrary.Model.forward = last\n",
        "main.py": MAIN,
    }
    graphs = scan_text(root, files).graphs
    return [judge(graph.facts).says() for graph in graphs if graph.script == "main.py" and not graph.invocation.argv]


def reached(root: Path, start: str, files: dict[str, str]) -> list[str]:
    main = MAIN.replace("import patches", start)
    graphs = scan_text(root, {"library.py": LIBRARY, "patching.py": PATCHING, "main.py": main, **files}).graphs
    return [judge(graph.facts).says() for graph in graphs if graph.script == "main.py" and not graph.invocation.argv]


@pytest.mark.parametrize("name", sorted(REACHED))
def test_what_an_import_reaches_by_others(tmp_path: Path, name: str) -> None:
    assert reached(tmp_path, *REACHED[name]) == ["out by last-token-only"]


@pytest.mark.parametrize("name", sorted(NOT_REACHED))
def test_what_an_import_does_not_reach(tmp_path: Path, name: str) -> None:
    assert reached(tmp_path, *NOT_REACHED[name]) == ["eligible"]


@pytest.mark.parametrize("name", sorted(CHANGES))
def test_a_model_that_an_import_changes(tmp_path: Path, name: str) -> None:
    assert verdicts(tmp_path, CHANGES[name]) == ["out by last-token-only"]


def test_a_change_where_an_import_may_fail_is_not_passed_over(tmp_path: Path) -> None:
    changes = "try:\n    import no_such_module\nexcept ImportError:\n    library.Model.forward = last"
    assert verdicts(tmp_path, changes) == ["unresolved by unknown-logits"]


@pytest.mark.parametrize("name", sorted(QUIET))
def test_a_module_that_changes_nothing_elsewhere(tmp_path: Path, name: str) -> None:
    assert verdicts(tmp_path, QUIET[name]) == ["eligible"]
