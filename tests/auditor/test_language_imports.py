# ruff: noqa: E501  (one snippet a line reads better than a folded one)
"""Constants and functions of other files: each tree is scanned and run, and both must agree."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.auditor.support import EXPORTER, judged, told_by_python, told_by_the_scan, write

Case = tuple[str, dict[str, str]]

CASES: dict[str, Case] = {
    "a sibling": ("from names import W\nWIDTH = W", {"names.py": "W = 6"}),
    "a module": ("import names\nWIDTH = names.W", {"names.py": "W = 6"}),
    "another name": ("import names as n\nfrom names import W as V\nWIDTH = n.W + V", {"names.py": "W = 6"}),
    "re-exported": (
        "from a import W\nWIDTH = W",
        {"a.py": "from b import W", "b.py": "from c import W", "c.py": "W = 7"},
    ),
    "a star": ("from names import *\nWIDTH = W", {"names.py": "W = 6\n_HIDDEN = 1"}),
    "a star with __all__": ("W = 2\nfrom names import *\nWIDTH = W + V", {"names.py": "__all__ = ['V']\nW = 6\nV = 3"}),
    "a package": ("from pkg import W\nWIDTH = W", {"pkg/__init__.py": "from .names import W", "pkg/names.py": "W = 8"}),
    "a module of a package": (
        "import pkg.names\nWIDTH = pkg.names.W",
        {"pkg/__init__.py": "", "pkg/names.py": "W = 8"},
    ),
    "a module of a package, by from": (
        "from pkg import names\nWIDTH = names.W",
        {"pkg/__init__.py": "", "pkg/names.py": "W = 8"},
    ),
    "a parent": (
        "from pkg.sub.m import W\nWIDTH = W",
        {
            "pkg/__init__.py": "",
            "pkg/names.py": "W = 9",
            "pkg/sub/__init__.py": "",
            "pkg/sub/m.py": "from ..names import W",
        },
    ),
    "a package without init": ("from pkg.names import W\nWIDTH = W", {"pkg/names.py": "W = 8"}),
    "computed": ("from names import W\nWIDTH = W", {"names.py": "B = 2\nW = sum(B * i for i in range(3))"}),
    "mutated by another module": (
        "import change\nfrom names import STATES as S\nSTATES = S",
        {"names.py": "STATES = ['k']", "change.py": "import names\nnames.STATES.append('v')"},
    ),
    "set by another module": (
        "import change, names\nWIDTH = names.W",
        {"names.py": "W = 3", "change.py": "import names\nnames.W = 9"},
    ),
    "bound before it was set": (
        "from names import W\nimport names\nnames.W = 9\nWIDTH = W",
        {"names.py": "W = 3"},
    ),
    "a circle": (
        "import a\nWIDTH = a.f()",
        {"a.py": "import b\ndef f(): return b.g() + 1\nW = 4", "b.py": "import a\ndef g(): return a.W"},
    ),
    "inside a function": ("def f():\n    from names import W\n    return W\nWIDTH = f()", {"names.py": "W = 6"}),
    "sys.path": (
        "import sys\nsys.path.insert(0, 'tools')\nfrom names import W\nWIDTH = W",
        {"tools/names.py": "W = 6"},
    ),
    "sys.path by __file__": (
        "import os, sys\nsys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), 'tools'))\nfrom names import W\nWIDTH = W",
        {"tools/names.py": "W = 6"},
    ),
    "sys.path by Path": (
        "import sys\nfrom pathlib import Path\nsys.path.append(str(Path(__file__).resolve().parent / 'tools'))\nimport names\nWIDTH = names.W",
        {"tools/names.py": "W = 6"},
    ),
    "sys.path by a constant": (
        "import sys\nfrom pathlib import Path\nHERE = Path(__file__).parent\nfor d in ('lib', 'tools'):\n    sys.path.insert(0, str(HERE / d))\nfrom names import W\nWIDTH = W",
        {"tools/names.py": "W = 6", "lib/other.py": ""},
    ),
    "importlib": ("import importlib\nWIDTH = importlib.import_module('names').W", {"names.py": "W = 6"}),
    "importlib with a built name": (
        "import importlib\nkind = 'dense'\nWIDTH = importlib.import_module(f'models.{kind}').W",
        {"models/__init__.py": "", "models/dense.py": "W = 6", "models/moe.py": "W = 9"},
    ),
    "importlib by path": (
        "import importlib.util\nfrom pathlib import Path\n"
        "spec = importlib.util.spec_from_file_location('n', Path(__file__).parent / 'tools' / 'names.py')\n"
        "n = importlib.util.module_from_spec(spec)\nspec.loader.exec_module(n)\nWIDTH = n.W",
        {"tools/names.py": "W = 6"},
    ),
    "dunder import": ("WIDTH = __import__('names').W", {"names.py": "W = 6"}),
    "getattr of a module": ("import names\nWIDTH = getattr(names, 'W' + '2')", {"names.py": "W2 = 6"}),
    "a function": (
        "from tools import width\nWIDTH = width(2)",
        {"tools.py": "BASE = 4\ndef width(n): return BASE * n"},
    ),
    "a class": (
        "from tools import Small\nWIDTH = Small().w",
        {
            "tools.py": "from base import Base\nclass Small(Base):\n    n = 3",
            "base.py": "class Base:\n    n = 1\n    @property\n    def w(self): return self.n * 2",
        },
    ),
    "a main guard that is not run": (
        "from names import W\nWIDTH = W",
        {"names.py": "W = 6\nif __name__ == '__main__':\n    W = 1"},
    ),
    "a fallback": (
        "try:\n    from fast_names import W\nexcept ImportError:\n    from names import W\nWIDTH = W",
        {"names.py": "W = 6"},
    ),
    "a fallback that is not needed": (
        "try:\n    from fast_names import W\nexcept ImportError:\n    from names import W\nWIDTH = W",
        {"names.py": "W = 6", "fast_names.py": "W = 2"},
    ),
    "module getattr": ("import names\nWIDTH = names.anything", {"names.py": "def __getattr__(name): return len(name)"}),
    "the module's own name": ("import names\nNAME = names.N", {"names.py": "N = __name__"}),
    "runpy": ("import runpy\nWIDTH = runpy.run_path('names.py')['W']", {"names.py": "W = 6"}),
}


RARE = frozenset({"a fallback", "runpy", "module getattr", "dunder import"})
"""It may stay unknown (whether a package is installed is not known), and must not be wrong."""


@pytest.mark.parametrize("name", sorted(CASES))
def test_agrees_with_python(tmp_path: Path, name: str) -> None:
    snippet, files = CASES[name]
    write(tmp_path, files)
    ran, read = told_by_python(tmp_path, snippet), told_by_the_scan(tmp_path, snippet, (), files)
    assert read.agrees(ran), (read, ran)
    if name not in RARE:
        assert read == ran


MOVED = "from models.plain import STATES, Model\n"
"""What an export script imports from a module that has neither any more."""


def _moved(root: Path, **models: str) -> str:
    """The verdict of the exporter whose states and model come from a library that moved them; `models` are its files."""
    body = EXPORTER[EXPORTER.index("class Layer") : EXPORTER.index("def export(")]
    head = "import torch\nfrom torch import nn\nVOCAB, HIDDEN, HEADS, LAYERS, CONTEXT = 128, 32, 4, 2, 512\n"
    names = {"MODEL": head + body, "STATES": 'STATES = ["keyCache", "valueCache"]\n', "OTHER": 'STATES = ["x", "y"]\n'}
    files = {"models/__init__.py": "", "models/plain.py": "Q = 1\n"}
    files |= {f"models/{n}.py": "".join(names[w] for w in words.split()) for n, words in models.items()}
    script = EXPORTER.replace(body, "").replace('STATES = ["keyCache", "valueCache"]\n', "")
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text, "utf-8")
    return judged(root, MOVED + script).says()


def test_names_that_are_imported_together_have_moved_together(tmp_path: Path) -> None:
    assert _moved(tmp_path, a="OTHER", b="STATES MODEL", c="OTHER") == "eligible"


def test_a_name_that_several_modules_have_is_none_of_theirs(tmp_path: Path) -> None:
    assert _moved(tmp_path / "apart", a="OTHER", b="STATES", c="MODEL") == "unresolved by unknown-kind"
    assert _moved(tmp_path / "twice", a="STATES MODEL", b="STATES MODEL") == "unresolved by unknown-kind"
