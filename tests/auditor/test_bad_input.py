# ruff: noqa: E501  (one case a line reads better than a folded one)
"""Files that do not parse, hang or explode: each is reported with its reason, and the rest goes on."""

from __future__ import annotations

import os
import sys
import warnings
from pathlib import Path

import pytest

from rules.facts import FileStatus, Scan
from rules.verdict import judge
from tests.auditor.edits import PROGRAM, before
from tests.auditor.support import EXPORTER, file_of, graph_of, mutate, scan_apart, scan_text, write

SECONDS = 10
"""What one bad file may cost, in CPU time."""


def timed(root: Path, files: dict[str, str | bytes]) -> Scan:
    """Scan `files` beside a good script, which has to come out as ever, within the time."""
    write(root, {**files, "good.py": EXPORTER})
    result = scan_apart(root, SECONDS)
    assert judge(graph_of(result, "good.py").facts).says() == "eligible"
    return result


WORD = b"from coreai_torch import TorchConverter\n"

UNREADABLE: dict[str, tuple[bytes, str]] = {
    "a syntax error": (WORD + b"def f(:\n", "line 2"),
    "an indentation error": (WORD + b"if True:\nx = 1\n", "line 3"),
    "Python 2": (WORD + b"print 'x'\n", "line 2"),
    "an open bracket": (WORD + b"x = (1,\n", "line 2"),
    "an open string": (WORD + b"x = '''abc\n", "line 2"),
    "not UTF-8": (WORD + b"x = '\xe9'\n", "UTF-8"),
    "UTF-16": (WORD.decode().encode("utf-16"), "not a text file"),
    "a zero byte": (WORD + b"x = 1\0\n", "null"),
    "an unknown encoding": (b"# -*- coding: klingon -*-\n" + WORD, "klingon"),
    "10,000 parentheses": (WORD + b"x = " + b"(" * 10_000 + b"1" + b")" * 10_000 + b"\n", "nest"),
    "10,000 brackets": (WORD + b"x = " + b"[" * 10_000 + b"]" * 10_000 + b"\n", "nest"),
    "100 blocks": (WORD + b"".join(b" " * n + b"if 1:\n" for n in range(100)) + b" " * 100 + b"pass\n", ""),
    "40 MB": (WORD + b"x = 1\n" * 7_000_000, "larger than"),
    "a merge conflict": (WORD + b"<<<<<<< HEAD\nx = 1\n=======\nx = 2\n>>>>>>> b\n", "line 2"),
}


@pytest.mark.parametrize("name", sorted(UNREADABLE))
def test_a_file_that_cannot_be_read(tmp_path: Path, name: str) -> None:
    content, part = UNREADABLE[name]
    found = file_of(timed(tmp_path, {"bad.py": content}), "bad.py")
    assert found.status is FileStatus.ERROR
    assert part in found.reason, found.reason
    assert "internal" not in found.reason
    assert "evaluator failed" not in found.reason


IMPORTS = {
    "import": "import bad\n",
    "from": "from bad import size\n",
    "from a package": "from kit.bad import size\n",
    "the module of a package": "from kit import bad\n",
    "star": "from bad import *\n",
}


@pytest.mark.parametrize(
    "content", [b"size = 1\0\n", b"size = = 1\n", b"size = '\xe9'\n"], ids=["null", "syntax", "bytes"]
)
@pytest.mark.parametrize("name", sorted(IMPORTS))
def test_a_module_that_cannot_be_read_leaves_the_script_that_imports_it(
    tmp_path: Path, name: str, content: bytes
) -> None:
    files = {"bad.py": content, "kit/bad.py": content, "kit/__init__.py": b""}
    found = scan_text(tmp_path, {"export.py": IMPORTS[name] + EXPORTER, **files})
    assert judge(graph_of(found).facts).says() == "eligible"
    assert file_of(found, "export.py").status is FileStatus.EXPORTS


def test_a_cited_module_that_cannot_be_read_is_named_with_the_reason(tmp_path: Path) -> None:
    text = "import bad\n" + EXPORTER.replace('{1: Dim("tokens", min=1, max=64)}', "bad.rows()")
    reason = graph_of(scan_text(tmp_path, {"export.py": text, "bad.py": b"\0"})).facts.query.reason
    assert "`bad` (`bad.py` could not be read: null bytes: not a text file)" in reason


READABLE: dict[str, bytes] = {
    "a byte order mark": b"\xef\xbb\xbf" + EXPORTER.encode(),
    "a declared encoding": b"# -*- coding: latin-1 -*-\n# \xe9\n" + EXPORTER.encode(),
    "CRLF": EXPORTER.replace("\n", "\r\n").encode(),
    "CR": EXPORTER.replace("\n", "\r").encode(),
    "no newline at the end": EXPORTER.rstrip("\n").encode(),
    "form feeds": EXPORTER.replace("\n\n\nclass", "\n\x0c\n\nclass").encode(),
    "a shebang": b"#!/usr/bin/env python3\n" + EXPORTER.encode(),
    "continuation lines": EXPORTER.replace("tokens = 1", "tokens = \\\n        1").encode(),
    "comments in other scripts": EXPORTER.replace(
        "import argparse", "import argparse  # \u6a21\u578b \U0001f600", 1
    ).encode(),
}


@pytest.mark.parametrize("name", sorted(READABLE))
def test_a_file_that_is_unusual_and_fine(tmp_path: Path, name: str) -> None:
    assert judge(graph_of(scan_text(tmp_path, {"export.py": READABLE[name]})).facts).says() == "eligible"


NESTED = {
    "10,000 attributes": "x = a" + ".b" * 10_000,
    "10,000 calls": "x = f" + "()" * 10_000,
    "10,000 subscripts": "x = f" + "[0]" * 10_000,
    "10,000 additions": "x = " + " + ".join(["1"] * 10_000),
    "10,000 strings": "x = " + " + ".join(["'a'"] * 10_000),
    "10,000 powers": "x = " + " ** ".join(["1"] * 10_000),
    "10,000 minus signs": "x = " + "-" * 10_000 + "1",
    "10,000 nots": "x = " + "not " * 10_000 + "1",
    "10,000 comparisons": "x = " + " < ".join(["1"] * 10_000),
    "10,000 elifs": "if a == 0:\n    pass\n" + "".join(f"elif a == {n}:\n    pass\n" for n in range(10_000)),
    "3,000 conditionals": "x = " + "1 if a else " * 3_000 + "2",
    "10,000 lambdas": "x = " + "lambda: " * 10_000 + "1",
    "10,000 chained methods": "x = s" + ".strip()" * 10_000,
    "a line of 2 MB": "x = '" + "a" * 2_000_000 + "'",
    "50,000 statements": "x = 1\n" * 50_000,
    "50,000 elements": "x = [" + "1, " * 50_000 + "]",
}


@pytest.mark.parametrize("name", sorted(NESTED))
def test_deep_nesting(tmp_path: Path, name: str) -> None:
    """Refused with a reason, or evaluated: either way the file is in the report and the others are as ever."""
    script = "from coreai_torch import TorchConverter\na = s = f = 'x'\n" + NESTED[name] + "\n"
    found = file_of(timed(tmp_path, {"bad.py": script}), "bad.py")
    assert found.status in (FileStatus.ERROR, FileStatus.NO_EXPORT)
    assert found.reason
    assert "evaluator failed" not in found.reason


ENDLESS = {
    "recursion": "def f(n):\n    return f(n + 1)\ntokens = f(0)",
    "mutual recursion": "def f(n):\n    return g(n)\ndef g(n):\n    return f(n)\ntokens = f(0)",
    "recursion in a property": "class A:\n    @property\n    def w(self):\n        return self.w\ntokens = A().w",
    "recursion in getattr": "class A:\n    def __getattr__(self, n):\n        return getattr(self, n + 'x')\ntokens = A().w",
    "recursion in init": "class A:\n    def __init__(self):\n        self.a = A()\ntokens = len([A()])",
    "while True": "n = 0\nwhile True:\n    n += 1\ntokens = n",
    "while True, nothing": "while True:\n    pass",
    "a while that never ends": "n = 1\nwhile n:\n    n += 1\ntokens = n",
    "a list that grows under its loop": "x = [1]\nfor i in x:\n    x.append(i)\ntokens = len(x)",
    "an endless generator": "def g():\n    while True:\n        yield 1\ntokens = len(list(g()))",
    "itertools.count": "import itertools\ntokens = len(list(itertools.count()))",
    "itertools.cycle": "import itertools\nfor i in itertools.cycle([1]):\n    tokens = i",
    "iter with a sentinel": "for i in iter(int, 1):\n    tokens = i",
    "exponential recursion": "def f(n):\n    return f(n - 1) + f(n - 1) if n else 1\ntokens = f(60)",
    "exponential forks": (
        "import os\nbits = []\n"
        + "".join(
            f"if os.environ.get('B{i}'):\n    b{i} = 1\nelse:\n    b{i} = 2\nbits.append(b{i})\n" for i in range(60)
        )
        + "tokens = sum(bits)"
    ),
    "forks over models": (
        "import os\n"
        + "".join(f"if os.environ.get('B{i}'):\n    model.b{i} = nn.Linear({i + 1}, 2)\n" for i in range(60))
    ),
    "forks in a recursion": (
        "import os\ndef f(n):\n    if n == 0:\n        return 1\n    if os.environ.get(str(n)):\n        return f(n - 1)\n"
        "    return f(n - 1) + 1\ntokens = f(40)"
    ),
    "nested unknown loops": "import os\nn = 0\n"
    + "".join("    " * d + f"for i{d} in os.listdir('.'):\n" for d in range(12))
    + "    " * 12
    + "n += 1\ntokens = n",
    "nested known loops": "n = 0\n"
    + "".join("    " * d + f"for i{d} in range(50):\n" for d in range(6))
    + "    " * 6
    + "n += 1\ntokens = n",
    "a product of comprehensions": "tokens = len([1 for a in range(10 ** 4) for b in range(10 ** 4) for c in range(9)])",
    "a long range": "tokens = sum(range(10 ** 12))",
    "a list of a long range": "tokens = len(list(range(10 ** 10)))",
    "a long list": "tokens = len([0] * 10 ** 10)",
    "a long string": "tokens = len('a' * 10 ** 11)",
    "a long tuple": "tokens = len((1, 2) * 10 ** 10)",
    "a wide format": "tokens = len(f'{1:10000000000}')",
    "a wide percent": "tokens = len('%10000000000d' % 1)",
    "a wide ljust": "tokens = len('a'.ljust(10 ** 10))",
    "a big power": "tokens = 10 ** 10 ** 9",
    "a big power of three": "tokens = pow(3, 10 ** 9)",
    "a big shift": "tokens = 1 << 10 ** 11",
    "a big factorial": "import math\ntokens = math.factorial(10 ** 7)",
    "digits": "tokens = len(str(7 ** 10 ** 6))",
    "doubled strings": "s = 'ab'\nfor _ in range(80):\n    s = s + s\ntokens = len(s)",
    "doubled lists": "x = [1]\nfor _ in range(80):\n    x = x + x\ntokens = len(x)",
    "doubled in place": "x = [1]\nfor _ in range(80):\n    x.extend(x)\ntokens = len(x)",
    "a tree of pairs": "x = 1\nfor _ in range(80):\n    x = (x, x)\ntokens = len(str(x))",
    "equal trees of pairs": "x = y = 1\nfor _ in range(60):\n    x, y = (x, x), (y, y)\ntokens = 1 if x == y else 2",
    "a deep list": "x = []\nfor _ in range(100000):\n    x = [x]\ntokens = len(str(x))",
    "a list in itself": "x = [1]\nx.append(x)\ny = [1]\ny.append(y)\ntokens = 1 if x == y else len(f'{x}')",
    "a dict in itself": "import copy\nd = {}\nd['d'] = d\ntokens = len(copy.deepcopy(d)) + len(str(d))",
    "a replace that grows": "s = 'a'\nfor _ in range(60):\n    s = s.replace('a', 'aa')\ntokens = len(s)",
    "a join that grows": "s = 'ab'\nfor _ in range(60):\n    s = s.join([s, s, s])\ntokens = len(s)",
    "a slow pattern": "import re\ntokens = 1 if re.match('(a+)+$', 'a' * 40 + 'b') else 2",
    "a slow substitution": "import re\ntokens = len(re.sub('(x+x+)+y', '', 'x' * 40))",
    "a class of itself": "class A:\n    pass\nA.__bases__ = (A,)\ntokens = len(A.__mro__)",
    "a decorator of itself": "def d(f):\n    return d(f)\n@d\ndef g():\n    pass\ntokens = g()",
    "a module that imports itself": "import export\ntokens = export.tokens",
    "a million attributes": "class A:\n    pass\na = A()\nfor i in range(10 ** 6):\n    setattr(a, f'x{i}', i)\ntokens = len(vars(a))",
    "a million keys": "d = {}\nfor i in range(10 ** 6):\n    d[i] = i\ntokens = len(d)",
    "a million layers": "model.layers = nn.ModuleList([Layer() for _ in range(10 ** 6)])",
    "layers in layers": "for _ in range(3000):\n    model.head = nn.Sequential(model.head)",
}


ELSEWHERE = frozenset(
    {
        "while True, nothing",
        "forks over models",
        "a million layers",
        "layers in layers",
        "recursion in init",
        "a class of itself",
    }
)
"""Those that do not decide the query's width, or raise where they would."""


@pytest.mark.parametrize("name", sorted(ENDLESS))
def test_what_never_ends_or_explodes(tmp_path: Path, name: str) -> None:
    """The query's width is then not known, or the run ends before the export: never a guess, never a hang."""
    code = "".join(f"    {line}\n" for line in ENDLESS[name].splitlines())
    width = '    inputs["input_ids"] = torch.zeros((1, tokens))\n    dynamic["input_ids"] = None\n'
    if name in ELSEWHERE:
        width = ""
    result = timed(tmp_path, {"export.py": mutate(EXPORTER, before(PROGRAM, code, width))})
    found = file_of(result, "export.py")
    assert "evaluator failed" not in found.reason
    assert found.status is FileStatus.EXPORTS or found.reason
    if name not in ELSEWHERE:
        assert [g.facts.query.value for g in result.graphs if g.script == "export.py"] in ([], [None], [None, None])


def test_links(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    write(outside, {"secret.py": EXPORTER})
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "loop.py").symlink_to("loop.py")
    (tree / "a.py").symlink_to("b.py")
    (tree / "b.py").symlink_to("a.py")
    (tree / "round").symlink_to(".")
    (tree / "gone.py").symlink_to("nowhere.py")
    (tree / "out.py").symlink_to(outside / "secret.py")
    (tree / "folder").symlink_to(outside)
    result = timed(tree, {})
    for name in ("loop.py", "a.py", "b.py", "gone.py", "out.py"):
        found = file_of(result, name)
        assert found.status is FileStatus.ERROR, name
        assert found.reason
    assert {g.script for g in result.graphs} == {"good.py"}
    assert any("round" in w for w in result.warnings)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes on this system")
def test_a_pipe_and_a_folder_named_like_scripts(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.py")
    (tmp_path / "folder.py").mkdir()
    assert file_of(timed(tmp_path, {}), "pipe.py").status is FileStatus.ERROR


def test_all_of_them_together(tmp_path: Path) -> None:
    files: dict[str, str | bytes] = {f"bad_{n}.py": content for n, (content, _) in enumerate(UNREADABLE.values())}
    result = timed(tmp_path, files)
    assert sum(f.status is FileStatus.ERROR for f in result.files) == len(UNREADABLE)


# -- recipes ----------------------------------------------------------------------------------------------------

RECIPES: dict[str, tuple[str, str]] = {
    "a missing script": ('[m]\nscript = "exprot.py"\n', "did you mean"),
    "not TOML": ("[m\n", "not TOML"),
    "two matches": ('[m]\nscript = "twin.py"\n', "2 folders"),
    "a script and a command": ('[m]\nscript = "export.py"\ncommand = "x"\n', "keep one"),
    "steps that are no list": ("[m]\nsteps = 3\n", "steps"),
    "a script outside": ('[m]\nscript = "../../etc/passwd"\n', "no script"),
    "an absolute script": ('[m]\nscript = "/etc/passwd"\n', "no script"),
}


@pytest.mark.parametrize("name", sorted(RECIPES))
def test_a_recipe_that_cannot_be_used(tmp_path: Path, name: str) -> None:
    text, part = RECIPES[name]
    files = {"models/m/recipe.toml": text, "a/twin.py": "", "b/twin.py": "", "export.py": EXPORTER}
    result = timed(tmp_path, dict(files))
    (warning,) = [w for w in result.warnings if "models/m/recipe.toml" in w]
    assert part in warning


UNRESOLVED = {
    "a script that exports nothing": '[m]\nscript = "nothing.py"\n',
    "a script that does not parse": '[m]\nscript = "broken.py"\n',
    "arguments that the script refuses": '[m]\nscript = "export.py"\nargs = ["--sttaic"]\n',
    "a command of no library": '[m]\ncommand = ["some.exporter", "--x"]\n',
    "neither": "[m]\nbundle = 'x.aimodel'\n",
}


@pytest.mark.parametrize("name", sorted(UNRESOLVED))
def test_a_recipe_of_which_nothing_is_known_is_unresolved_with_the_reason(tmp_path: Path, name: str) -> None:
    files: dict[str, str | bytes] = {
        "models/m/recipe.toml": UNRESOLVED[name],
        "nothing.py": "print(1)\n",
        "broken.py": "def f(:\n",
        "export.py": EXPORTER,
    }
    (graph,) = [g for g in scan_text(tmp_path, files).graphs if g.invocation.recipe]
    judgement = judge(graph.facts)
    assert judgement.verdict == "unresolved"
    assert judgement.reasons[0].message


ITERATORS = {
    "an object that is its own iterator": "def __iter__(self): return self\n    def __next__(self): return 1",
    "iterators that make each other": "def __iter__(self): return Again()\n    def __next__(self): return 1",
    "one that answers to every name": "def __getattr__(self, name): return Again()\n    def __call__(self): return self",
}


@pytest.mark.parametrize("name", sorted(ITERATORS))
def test_a_loop_over_an_iterator_of_the_script(tmp_path: Path, name: str) -> None:
    loop = f"class Again:\n    {ITERATORS[name]}\n\nwidth = 8\nfor one in Again():\n    width = one\n"
    script = mutate(EXPORTER, ("class Layer(nn.Module)", loop + "\n\nclass Layer(nn.Module)"))
    script = mutate(
        script, ("if args.static else 8", "if args.static else width"), ('{1: Dim("tokens", min=1, max=64)}', "None")
    )
    found = graph_of(timed(tmp_path, {"bad.py": script}), "bad.py")
    assert judge(found.facts).says() in ("unresolved by unknown-query", "unresolved by fixed-window"), found.facts.query


def test_what_python_warns_of_in_the_audited_code_is_neither_told_nor_an_error(tmp_path: Path) -> None:
    """Escapes that Python does not know, an identity test with a literal, `~True`: under `-W error`, as here."""
    odd = 'DIGITS = "\\d" + f"\\d{1}"\nSAME = "x" is "x"\nFLAGS = ~True\n'
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = scan_text(tmp_path, {"export.py": mutate(EXPORTER, ("import torch\n", f"import torch\n{odd}"))})
        assert warnings.filters[0][0] == "error"
    assert judge(graph_of(result).facts).says() == "eligible"


def test_a_file_that_does_not_parse_says_as_which_python(tmp_path: Path) -> None:
    """It may be written in a newer one than spec-audit runs on."""
    found = file_of(timed(tmp_path, {"bad.py": WORD + b"def f(:\n"}), "bad.py")
    assert found.reason.startswith(f"does not parse as Python {sys.version_info[0]}.{sys.version_info[1]} at line 2: ")
