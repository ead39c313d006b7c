"""Names of a loop: what a round reads before it binds it, what is counted, and what is filled and read by nothing."""

from __future__ import annotations

import libcst as cst
import pytest

from auditor.loop_names import LoopNames, loop_names
from auditor.modules import index
from auditor.sources import SourceFile
from tests.auditor.support import indented

FILLED = {
    "a list": "out = []\nfor x in xs:\n    out.append(x)\nreturn out",
    "a list made by a call": "out = list()\nfor x in xs:\n    out.append(x)\nreturn out",
    "a list with a type": "out: list[int] = []\nfor x in xs:\n    out.append(x)\nreturn out",
    "a set": "out = set()\nfor x in xs:\n    out.add(x)\nreturn out",
    "a dict": "out = {}\nfor x in xs:\n    out[f(x)] = x\nreturn out",
    "on each of two ways": "out = []\nfor x in xs:\n    if x:\n        out.append(1)\n    else:\n        out.append(2)",
    "in a loop inside": "out = []\nfor y in ys:\n    for x in xs:\n        out.append(x)\nreturn out",
    "made anew in a loop outside": "for y in ys:\n    out = []\n    for x in xs:\n        out.append(x)\n",
    "read after the loop": "out = []\nfor x in xs:\n    out.append(x)\nfor o in out:\n    print(o)",
    "another object's attribute of the name": "out = []\nfor x in xs:\n    out.append(x.out)",
    "a keyword of the name": "out = []\nfor x in xs:\n    out.append(f(out=x))",
}

READ = {
    "its length": "out = []\nfor x in xs:\n    out.append(len(out))",
    "an item": "out = {}\nfor x in xs:\n    out[x] = out.get(x, 0)",
    "a test": "out = []\nfor x in xs:\n    if x not in out:\n        out.append(x)",
    "as an index of itself": "out = {}\nfor x in xs:\n    out[len(out)] = x",
    "what it is filled with": "out = []\nfor x in xs:\n    out.extend(out)",
    "an alias before": "out = []\nother = out\nfor x in xs:\n    out.append(other[-1])",
    "an alias in a loop outside": (
        "out = []\nother = None\nfor y in ys:\n    for x in xs:\n        out.append(other)\n    other = out"
    ),
    "handed to a function": "out = []\nkeep(out)\nfor x in xs:\n    out.append(x)",
    "yielded": "out = []\nfor x in xs:\n    out.append(x)\n    yield out",
    "returned from inside": "out = []\nfor x in xs:\n    out.append(x)\n    if x:\n        return out",
    "an inner function": "def last():\n    return out[-1]\nout = []\nfor x in xs:\n    out.append(last())",
    "a lambda": "out = []\nlast = lambda: out[-1]\nfor x in xs:\n    out.append(last())",
    "a comprehension": "out = []\nfor x in xs:\n    out.append([o for o in out])",
    "a format": "out = []\nfor x in xs:\n    out.append(f'{out}')",
    "a parameter": "for x in xs:\n    given.append(x)",
    "a global": "global out\nout = []\nfor x in xs:\n    out.append(f(x))",
    "not empty at first": "out = [0]\nfor x in xs:\n    out.append(x)",
    "not made here": "out = make()\nfor x in xs:\n    out.append(x)",
    "two writes by key": "out = {}\nfor x in xs:\n    out[x] = 1\n    out['w'] = 2",
    "a method that may read": "out = []\nfor x in xs:\n    out.insert(0, x)",
    "what a method gives": "out = {}\nfor x in xs:\n    y = out.setdefault(x, [])",
    "the condition of a while": "out = []\nwhile len(out) < n():\n    out.append(1)",
    "made in the loop from itself": "out = []\nfor x in xs:\n    out = [*out, x]",
}


def names(body: str, header: str = "def f(xs, ys, given):") -> LoopNames:
    """Of the innermost loop of a function."""
    function = cst.parse_module(header + "\n" + indented(body, 4)).body[0]
    assert isinstance(function, cst.FunctionDef)
    return loop_names(_innermost(function), function)


def _innermost(node: cst.CSTNode) -> cst.For | cst.While:
    inner = [_innermost(c) for c in node.children if _loops(c)]
    if inner:
        return inner[0]
    assert isinstance(node, (cst.For, cst.While))
    return node


def _loops(node: cst.CSTNode) -> bool:
    return isinstance(node, (cst.For, cst.While)) or any(map(_loops, node.children))


@pytest.mark.parametrize("body", FILLED.values(), ids=FILLED)
def test_a_container_that_nothing_reads_before_the_loop_ends_is_filled(body: str) -> None:
    assert names(body).filled == {"out"}


@pytest.mark.parametrize("body", READ.values(), ids=READ)
def test_a_container_that_something_may_read_is_not(body: str) -> None:
    assert names(body).filled == frozenset()


CARRIED = {
    "read": ("for x in xs:\n    use(a)", {"use", "a"}),
    "read, then bound": ("for x in xs:\n    use(a)\n    a = x", {"use", "a"}),
    "bound, then read": ("for x in xs:\n    a = x\n    b: int = a\n    import c\n    del b, c", set()),
    "the loop's own": ("for i, (a, *b) in xs:\n    i, a", set()),
    "an attribute of another object": ("for o.x in xs:\n    o", {"o"}),
    "its own value before": ("for x in xs:\n    a = a + 1", {"a"}),
    "counted": ("for x in xs:\n    a += 1", {"a"}),
    "bound on one way": ("for x in xs:\n    if x:\n        a = 1\n    a", {"a"}),
    "bound on both": ("for x in xs:\n    if x:\n        a = 1\n    else:\n        a = 2\n    a", set()),
    "bound where it may raise": (
        "for x in xs:\n    try:\n        a = 1\n    except E:\n        pass\n    a",
        {"a", "E"},
    ),
    "bound where what is raised may be swallowed": ("for x in xs:\n    with x:\n        a = 1\n    a", {"a"}),
    "by a manager": ("for x in xs:\n    with x as a:\n        a", set()),
    "by a condition": ("while xs:\n    a = 1", {"xs"}),
    "by an inner function": ("def g():\n    return a\nfor x in xs:\n    a = x\n    h()", {"a", "h"}),
    "not by its parameter": ("def g(a):\n    return a\nfor x in xs:\n    a = x\n    h()", {"h"}),
    "not by what it binds": ("def g():\n    a = 1\n    return a\nfor x in xs:\n    a = x\n    h()", {"h"}),
    "by a default": ("for x in xs:\n    a = x\n    h()\n    def g(a=a):\n        return a", {"a", "g", "h"}),
    "by a decorator": ("@a\ndef g():\n    pass\nfor x in xs:\n    a = x\n    h()", {"a", "h"}),
    "by a function inside of it": (
        "def g(b):\n    return lambda b: a\nfor x in xs:\n    a = b = x\n    h()",
        {"a", "h"},
    ),
    "by one that binds it outside": (
        "def g(b):\n    nonlocal a\n    a = b\nfor x in xs:\n    a = x\n    h()",
        {"a", "b", "g", "h"},
    ),
    "by a class": ("class G:\n    b = a\nfor x in xs:\n    a = x\n    h()", {"G", "a", "b", "h"}),
    "by a lambda behind the loop": ("while 1:\n    for x in xs:\n        a = x\n    f = lambda: a", {"a"}),
    "global": ("global a\nfor x in xs:\n    a = x\n    g()", {"a", "g"}),
}


@pytest.mark.parametrize(("body", "expected"), CARRIED.values(), ids=CARRIED)
def test_names_that_a_round_may_read_before_it_binds_them(body: str, expected: set[str]) -> None:
    assert names(body).carried == expected


def test_counters_are_counted_in_the_loop_itself() -> None:
    body = "n = m = k = 0\nm += 1\nfor x in xs:\n    if x:\n        n += 1\n    j -= 2\n    k *= 2\nk += 1"
    assert names(body).counters == {"n", "j"}


def test_a_modules_names_are_read_by_its_functions() -> None:
    text = """
def g():
    a = 1
    return a, b


class C:
    d = e

    def method(self):
        return lambda: f


for x in xs:
    a = b = d = e = f = x
    a
"""
    loop = _innermost(cst.parse_module(text))
    assert loop_names(loop, index(SourceFile("main.py", text, "", "", ""))) == LoopNames(frozenset({"b", "f"}))
