"""The index of a module: which statement binds or changes which name, and where statements begin and end."""

from __future__ import annotations

import ast

import libcst as cst
import pytest

from auditor.modules import ModuleSource, SyntaxProblem, index
from auditor.sources import SourceFile


def indexed(text: str) -> ModuleSource:
    return index(SourceFile("m.py", text, "", "", ""))


EFFECTS = {
    # statement: (names it binds, names it changes)
    "x = 1": ("x", ""),
    "x: int = 1": ("x", ""),
    "x: int": ("", ""),
    "x = y = z": ("x y", ""),
    "x, (y, *z) = f()": ("x y z", ""),
    "[x, y] = f()": ("x y", ""),
    "x += 1": ("", "x"),
    "x.y = 1": ("", "x"),
    "x.y.z += 1": ("", "x"),
    "x['k'] = 1": ("", "x"),
    "x['k'].y = 1": ("", "x"),
    "x[0], y = f()": ("y", "x"),
    "del x": ("", "x"),
    "del x['k']": ("", "x"),
    "x.append(1)": ("", "x"),
    "x.y.append(1)": ("", "x"),
    "x['k'].append(1)": ("", "x"),
    "x().y().z()": ("", "x"),
    "f(x)": ("", ""),
    "print(x := 1)": ("x", ""),
    "import a.b.c": ("a", ""),
    "import a.b as c, d": ("c d", ""),
    "from a.b import c, d as e": ("c e", ""),
    "def f(x): y = 1": ("f", ""),
    "async def f(): await g()": ("f", ""),
    "class A:\n    x = 1": ("A", ""),
    "@wrap\ndef f(): pass": ("f", ""),
    "if a:\n    x = 1\nelif b:\n    y.z = 1\nelse:\n    w = 2": ("x w", "y"),
    "for i, j in f():\n    x.append(i)\nelse:\n    y = 1": ("i j y", "x"),
    "while a:\n    x = 1": ("x", ""),
    "with f() as x, g() as (y, z):\n    w = 1": ("x y z w", ""),
    "try:\n    import a\nexcept ImportError:\n    a = None\nelse:\n    b = 1\nfinally:\n    c.d = 1": ("a b", "c"),
    "match a:\n    case 1:\n        x = 1\n    case _:\n        y.z = 2": ("x", "y"),
    "pass": ("", ""),
    '"""A docstring."""': ("", ""),
}


@pytest.mark.parametrize("text", EFFECTS)
def test_binds_and_mutates(text: str) -> None:
    (statement,) = indexed(text).statements
    binds, mutates = (frozenset(names.split()) for names in EFFECTS[text])
    assert (statement.binds, statement.mutates) == (binds, mutates)


def test_binders_are_in_order_and_hold_binds_and_changes() -> None:
    source = indexed("x = []\ny = 1\nx.append(2)\nif y:\n    x = 3\n")
    assert source.binders == {"x": [0, 2, 3], "y": [1]}


def test_stars() -> None:
    source = indexed("import a\nfrom b import *\nif a:\n    from c import *\n")
    assert source.stars == (1, 2)
    assert "*" not in source.binders


GROUPS = {
    # text: (first line, number of lines) of each statement
    "x = 1\ny = 2\n": [(1, 1), (2, 1)],
    "x = 1; y = 2; z = 3\nw = 4\n": [(1, 1), (2, 1)],
    "x = (\n    1,\n); y = 2\nz = 3\n": [(1, 3), (4, 1)],
    "x = 1; y = (\n    2\n); z = 3\n": [(1, 3)],
    "# a comment\n\nx = 1\n\n\ny = 2": [(3, 1), (6, 1)],
    "@a\n@b(\n    1\n)\ndef f():\n    pass\n\nx = 1\n": [(1, 6), (8, 1)],
    "@a\nclass A:\n    @b\n    def f(self): pass\n": [(1, 4)],
    "x = 1 + \\\n    2\ny = 3\n": [(1, 2), (3, 1)],
    'x = """\n; y = 2\n"""\nz = 1\n': [(1, 3), (4, 1)],
    "x = 1\r\ny = 2\r\n": [(1, 1), (2, 1)],
    "x = 1\ry = 2\r": [(1, 1), (2, 1)],
    "x = 1\n\x0c\ny = 2\n": [(1, 1), (3, 1)],
    "x = 'a\u2028b'\ny = 2\n": [(1, 1), (2, 1)],
    "x = 'a\x85b\x1c'\ny = (\n    2)\n": [(1, 1), (2, 2)],
    "": [],
    "# nothing\n": [],
}


@pytest.mark.parametrize("text", GROUPS)
def test_statements_have_their_lines(text: str) -> None:
    found = [(s.first, s.text.count("\n") + (not s.text.endswith("\n"))) for s in indexed(text).statements]
    assert found == GROUPS[text]


@pytest.mark.parametrize("text", [*EFFECTS, *GROUPS])
def test_statements_together_are_the_module(text: str) -> None:
    """Each statement parses by itself, and nothing is lost between them: the trees are those of the whole file."""
    parts = [ast.dump(node) for s in indexed(text).statements for node in ast.parse(s.text).body]
    assert parts == [ast.dump(node) for node in ast.parse(text).body]


@pytest.mark.parametrize("text", [*EFFECTS, *GROUPS])
def test_nodes_are_those_of_the_text(text: str) -> None:
    for statement in indexed(text).statements:
        assert "".join(cst.Module([node]).code for node in statement.nodes).strip() == statement.text.strip()


def test_lines_of_nodes() -> None:
    text = "a = 1\n\n\ndef f(x):\n    y = x\n    return (\n        y\n        + 1\n    )\n"
    statement = indexed(text).statements[1]
    (function,) = statement.nodes
    assert isinstance(function, cst.FunctionDef)
    first, last = function.body.body
    assert isinstance(first, cst.SimpleStatementLine)
    assert isinstance(last, cst.SimpleStatementLine)
    returned = last.body[0]
    assert isinstance(returned, cst.Return)
    assert isinstance(returned.value, cst.BinaryOperation)
    lines = [statement.line_of(n) for n in (None, function, first, first.body[0], last, returned.value.right)]
    assert lines == [4, 4, 5, 5, 6, 8]


def test_one_site_for_a_node() -> None:
    (statement,) = indexed("x = f(1)\n").statements
    (line,) = statement.nodes
    assert statement.site(line) is statement.site(line)
    assert statement.site(line) is not statement.site(None)
    assert (statement.site(line).path, statement.site(line).line) == ("m.py", 1)


@pytest.mark.parametrize(
    ("text", "guarded"),
    [
        ("if __name__ == '__main__':\n    main()\n", True),
        ("if '__main__' == __name__: main()\n", True),
        ("if a:\n    main()\n", False),
        ("print(__name__)\n", False),
        ("def f():\n    if __name__ == '__main__':\n        main()\n", False),
    ],
)
def test_main_guard(text: str, guarded: bool) -> None:
    assert any(s.main_guard for s in indexed(text).statements) is guarded


@pytest.mark.parametrize(
    ("text", "waits"),
    [
        ("def f(): pass", True),
        ("async def f(): pass", True),
        ("x = 1", False),
        ("@register\ndef f(): pass", False),
        ("@register\nclass A: pass", False),
        ("if a:\n    def f(): pass", False),
    ],
)
def test_only_definitions_can_wait(text: str, waits: bool) -> None:
    (statement,) = indexed(text).statements
    assert statement.waits is waits


@pytest.mark.parametrize(
    ("text", "waits"),
    [
        ("n = 1\ndef f(w=n): pass", True),
        ("from torch import nn\nclass A(nn.Module): pass", True),
        ("from torch import nn\nclass A(nn.Module):\n    w: int = 3\n    def f(self, a=None): return a", True),
        ("n = 1\ndef f(w=n): pass\nn = 2", False),
        ("def f(w=n): pass\nn = 2", False),
        ("n = 1\ndef f(w=n): pass\ndef g():\n    global n\n    n = 3", False),
        ("c = {}\ndef f(w=c): pass", False),
        ("def f(w=len('ab')): pass", False),
        ("def f(): pass\ndef f(): pass", False),
        ("from models import Base\nclass A(Base): pass", False),
        ("class A:\n    def __init_subclass__(cls): pass\nclass B(A): pass", False),
        ("seen = []\nclass A:\n    seen.append(1)", False),
        ("class A:\n    for i in (1, 2): pass", False),
        ("def f(n=(m := 3)): pass", False),
    ],
)
def test_a_definition_waits_when_what_it_reads_at_once_never_changes(text: str, waits: bool) -> None:
    found = next(s for s in indexed(text).statements if s.text.startswith(("def f", "class A")))
    assert found.waits is waits


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = 1\ny = (\n", "line 2"),
        ("def f(:\n    pass\n", "line 1"),
        ("print 'x'\n", "line 1"),
        ("x = " + "(" * 5000 + ")" * 5000, "does not parse"),
    ],
)
def test_not_python(text: str, message: str) -> None:
    with pytest.raises(SyntaxProblem, match=message):
        indexed(text)
