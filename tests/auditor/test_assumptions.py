"""Conditions that nobody knows: the same one has the same answer for as long as a world lasts, and no longer."""

from __future__ import annotations

from pathlib import Path

import pytest

from auditor.assumptions import Assumptions
from auditor.joins import union
from auditor.operators import compare, unary
from auditor.values import Const, Unknown
from rules.verdict import Verdict
from tests.auditor.support import EXPORTER, indented, judged, mutate

TWO_KINDS = """\
import json
CONFIG = json.load(open("config.json"))
LAYERS, KINDS, WIDE, NAMES = CONFIG["num_hidden_layers"], CONFIG["kinds"], CONFIG["wide"], {"w": "wide", "n": "narrow"}


class Narrow(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate = nn.Linear(HIDDEN, HIDDEN)

    def forward(self, x, scale):
        return x + self.gate(x) * scale


class Either(nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.kind = kind
        self.wide = kind == "wide"
        self.gate = nn.Linear(HIDDEN, HIDDEN)
        MAKE

    def forward(self, x, position_ids=None, key_cache=None, value_cache=None, scale=None):
        TAKE


class Layer(nn.Module):
"""
MAKE = "if self.wide:\n            self.mixer = Layer()\n        else:\n            self.mixer = Narrow()"
TAKE = (
    "if self.wide:\n            return self.mixer(x, position_ids, key_cache, value_cache)\n"
    "        return self.mixer(x, scale)"
)
CALL = "            x = layer(x, position_ids, key_cache[i], value_cache[i])\n"
CALLS = """\
            if layer.wide:
                x = layer(x, position_ids, key_cache[i], value_cache[i])
            else:
                x = layer(x, scale=2.0)
"""
EDITS = (
    ("HEADS, LAYERS, CONTEXT = 128, 32, 4, 2, 512", "HEADS, CONTEXT = 128, 32, 4, 512"),
    ("nn.ModuleList([Layer() for _ in range(LAYERS)])", "nn.ModuleList([Either(KINDS[i]) for i in range(LAYERS)])"),
)


def two_kinds(calls: str = CALLS, make: str = MAKE, take: str = TAKE, *edits: tuple[str, str]) -> str:
    """The exporter with layers of two kinds, of which only a checkpoint knows which is where."""
    top = mutate(TWO_KINDS, ("MAKE", make), ("TAKE", take))
    return mutate(EXPORTER, ("class Layer(nn.Module):\n", top), (CALL, calls), *EDITS, *edits)


def named(text: str) -> str:
    return text.replace(".wide:", '.kind == "wide":')


SAME_ANSWER = {
    "a flag": two_kinds(),
    "a comparison": two_kinds(named(CALLS), named(MAKE), named(TAKE)),
    "a comparison of one of a few": two_kinds(
        named(CALLS), named(MAKE), named(TAKE), ("Either(KINDS[i])", "Either(NAMES[KINDS[i]])")
    ),
    "its opposite": two_kinds(
        take="if not self.wide:\n            return self.mixer(x, scale)\n"
        "        return self.mixer(x, position_ids, key_cache, value_cache)"
    ),
    "another constant": two_kinds(
        named(CALLS),
        'if kind == "wide":\n            self.mixer = Layer()\n        elif kind == "narrow":\n'
        "            self.mixer = Narrow()\n        else:\n            raise ValueError(kind)",
        'if self.kind == "narrow":\n            return self.mixer(x, 2.0)\n'
        "        return self.mixer(x, position_ids, key_cache, value_cache)",
        ("Either(KINDS[i])", "Either(NAMES[KINDS[i]])"),
    ),
    "what only one kind has": two_kinds(
        make="if self.wide:\n            self.mixer = Layer()\n        else:\n            self.local = Narrow()",
        take="if self.wide:\n            return self.mixer(x, position_ids, key_cache, value_cache)\n"
        "        return self.local(x, scale)",
    ),
    "an early return": two_kinds(
        take="if self.wide:\n            return self.mixer(x, position_ids, key_cache, value_cache)\n"
        "        assert not self.wide\n        return x if self.wide else self.mixer(x, scale)"
    ),
}


@pytest.mark.parametrize("name", sorted(SAME_ANSWER))
def test_the_same_condition_has_the_same_answer(tmp_path: Path, name: str) -> None:
    judgement = judged(tmp_path, SAME_ANSWER[name])
    assert judgement.says() == "eligible", [f.message for f in judgement.reasons]


def inside(*lines: str) -> str:
    """These lines in the arm of a wide layer."""
    kept = CALLS.splitlines(keepends=True)
    return "".join([*kept[:2], *(f"                {line}\n" for line in lines), *kept[2:]])


def behind(*lines: str) -> str:
    return CALLS + indented(lines, 12)


TOGETHER = (
    "        self.norm = nn.LayerNorm(HIDDEN)\n",
    "        self.layers, self.others = nn.ModuleList(), nn.ModuleList()\n        for i in range(LAYERS):\n"
    "            kind = KINDS[i]\n            self.layers.append(Either(kind))\n"
    "            self.others.append(Either(kind))\n"
    "        for a, b in zip(self.layers, self.others):\n            b.wide = a.wide\n"
    "        self.norm = nn.LayerNorm(HIDDEN)\n",
)
HEAD = "        logits = self.head(x)\n"
CUT = "x = x[:, -1:]"
OTHER_ANSWER = {
    "another element in an inner loop": two_kinds(
        inside("for other in self.layers:", "    if not other.wide:", f"        {CUT}")
    ),
    "another element by its number": two_kinds(inside("if not self.layers[i - 1].wide:", f"    {CUT}")),
    "another element got before": two_kinds(
        mutate(
            CALLS,
            ("            if layer.wide:\n", "            other = self.layers[i - 1]\n            if layer.wide:\n"),
            (
                "            else:\n",
                f"                if not other.wide:\n                    {CUT}\n            else:\n",
            ),
        )
    ),
    "the part of another element": two_kinds(
        inside("for other in self.layers:", "    if layer.wide:", "        x = other.local(x)"),
        make="if self.wide:\n            self.local = nn.Identity()\n        else:\n"
        "            self.local = lambda x: x[:, -1:]\n        self.mixer = Layer() if self.wide else Narrow()",
    ),
    "set in between": two_kinds(inside("layer.wide = CONFIG['again'][i]", "if not layer.wide:", f"    {CUT}")),
    "changed by code that nobody read": two_kinds(
        CALLS,
        MAKE,
        TAKE,
        (
            HEAD,
            "        if ROWS.whole:\n            ROWS.shorten()\n            if not ROWS.whole:\n"
            "                x = x[:, -1:]\n" + HEAD,
        ),
        ("import argparse\n", "import argparse\nimport rowkit\nROWS = rowkit.make()\n"),
    ),
    "another element of a list made together": two_kinds(
        inside("for other in self.others:", "    if not other.wide:", f"        {CUT}"),
        MAKE,
        TAKE,
        TOGETHER,
    ),
    "another element of such a list, in the inner loop": two_kinds(
        inside("for other in self.others:", "    if layer.wide:", "        if not other.wide:", f"            {CUT}"),
        MAKE,
        TAKE,
        TOGETHER,
    ),
    "another element of such a list, by its number": two_kinds(
        inside("if not self.others[i - 1].wide:", f"    {CUT}"), MAKE, TAKE, TOGETHER
    ),
    "the same kind again, in the same round": two_kinds(behind("if layer.wide:", f"    {CUT}")),
    "the other kind, in the same round": two_kinds(behind("if not layer.wide:", f"    {CUT}")),
    "the other kind, after a continue": two_kinds(
        "            if layer.wide:\n                x = layer(x, position_ids, key_cache[i], value_cache[i])\n"
        f"                continue\n            {CUT}\n"
    ),
    "the element of the round before": two_kinds(
        "            if i > 0:\n                if before.wide:\n                    if not layer.wide:\n"
        f"                        {CUT}\n            before = layer\n" + CALLS
    ),
    "its part": two_kinds(
        "            if i > 0:\n                if before.wide:\n                    if not layer.inner.wide:\n"
        f"                        {CUT}\n            before = layer.inner\n" + CALLS,
        MAKE + "\n        self.inner = Narrow()\n        self.inner.wide = self.wide",
    ),
    "it in an attribute": two_kinds(
        "            if i > 0:\n                if self.before.wide:\n                    if not layer.wide:\n"
        f"                        {CUT}\n            self.before = layer\n" + CALLS
    ),
    "it in a list": two_kinds(
        "            if i > 0:\n                if seen[-1].wide:\n                    if not layer.wide:\n"
        f"                        {CUT}\n            seen = [layer]\n" + CALLS
    ),
    "it deep in an object": two_kinds(
        "            if i > 0:\n                if self.box.inner.kept.wide:\n                    if not layer.wide:\n"
        f"                        {CUT}\n            self.box.inner.kept = layer\n" + CALLS,
        MAKE,
        TAKE,
        (
            "        self.norm = nn.LayerNorm(HIDDEN)\n",
            "        self.norm = nn.LayerNorm(HIDDEN)\n        self.box = nn.Module()\n"
            "        self.box.inner = nn.Module()\n",
        ),
    ),
    "it by its number": two_kinds(
        "            one = self.layers[i]\n            if i > 0:\n                if before.wide:\n"
        f"                    if not one.wide:\n                        {CUT}\n            before = one\n" + CALLS
    ),
    "the last element of a loop before": two_kinds(
        CALLS,
        MAKE,
        TAKE,
        (
            HEAD,
            "        for other in self.layers:\n            if layer.wide:\n                if not other.wide:\n"
            f"                    {CUT}\n" + HEAD,
        ),
    ),
    "the last element of a loop before, asked outside": two_kinds(
        CALLS,
        MAKE,
        TAKE,
        (
            HEAD,
            "        if layer.wide:\n            for other in self.layers:\n                if not other.wide:\n"
            f"                    {CUT}\n" + HEAD,
        ),
    ),
    "the element of the round before, bound in a branch": two_kinds(
        "            if i > 0:\n                if before.wide:\n                    if not layer.wide:\n"
        f"                        {CUT}\n            if i % 2 == 0:\n                before = layer\n" + CALLS
    ),
    "the last element of a loop before, and others by number": two_kinds(
        CALLS,
        MAKE,
        TAKE,
        (
            HEAD,
            "        n = 0\n        while n < LAYERS:\n            if layer.wide:\n"
            f"                if not self.layers[n].wide:\n                    {CUT}\n            n += 1\n" + HEAD,
        ),
    ),
    "an element kept under a name": two_kinds(
        CALLS,
        MAKE,
        TAKE,
        (
            "        self.norm = nn.LayerNorm(HIDDEN)\n",
            "        self.norm = nn.LayerNorm(HIDDEN)\n        self.first = self.layers[0]\n",
        ),
        (
            HEAD,
            "        for other in self.layers:\n            if self.first.wide:\n                if not other.wide:\n"
            f"                    {CUT}\n" + HEAD,
        ),
    ),
    "an element kept in an object": two_kinds(
        CALLS,
        MAKE,
        TAKE,
        (
            "        self.norm = nn.LayerNorm(HIDDEN)\n",
            "        self.norm = nn.LayerNorm(HIDDEN)\n        self.box = nn.Module()\n"
            "        self.box.inner = nn.Module()\n        self.box.inner.first = self.layers[0]\n",
        ),
        (
            HEAD,
            "        for other in self.layers:\n            if self.box.inner.first.wide:\n"
            f"                if not other.wide:\n                    {CUT}\n" + HEAD,
        ),
    ),
    "an element given to a function": two_kinds(
        CALLS,
        MAKE,
        TAKE,
        (
            "class Model(nn.Module):\n",
            "def after(first, layers, x):\n    for other in layers:\n"
            "        if first.wide:\n            if not other.wide:\n                x = x[:, -1:]\n    return x\n\n\n"
            "class Model(nn.Module):\n",
        ),
        (HEAD, "        x = after(self.layers[0], self.layers, x)\n" + HEAD),
    ),
    "pairs of neighbours": two_kinds(
        CALLS,
        MAKE,
        TAKE,
        (
            HEAD,
            "        for one, other in zip(self.layers, self.layers[1:]):\n            if one.wide:\n"
            f"                if not other.wide:\n                    {CUT}\n" + HEAD,
        ),
    ),
    "the answer swapped": two_kinds(
        '            kind = "a" if layer.wide else "b"\n'
        '            if kind == "a":\n                kind = "b"\n            else:\n                kind = "a"\n'
        f'            if kind == "a":\n                if not layer.wide:\n                    {CUT}\n' + CALLS
    ),
    "the answer swapped, of one of a few": two_kinds(
        "            kind = layer.kind\n"
        '            if kind == "wide":\n                kind = "narrow"\n'
        '            else:\n                kind = "wide"\n'
        f'            if kind == "wide":\n                if layer.kind == "narrow":\n                    {CUT}\n'
        + CALLS,
        MAKE,
        TAKE,
        ("Either(KINDS[i])", "Either(NAMES[KINDS[i]])"),
    ),
    "after the function that returned early": two_kinds(
        CALLS,
        MAKE,
        TAKE,
        (
            "class Model(nn.Module):\n",
            "def early(x):\n    if WIDE:\n        return x\n    return x + 1\n\n\nclass Model(nn.Module):\n",
        ),
        (HEAD, "        x = early(x)\n        if WIDE:\n            x = x[:, -1:]\n" + HEAD),
    ),
    "after a round that raised": two_kinds(
        CALLS,
        MAKE,
        TAKE,
        (
            HEAD,
            "        try:\n            if WIDE:\n                raise ValueError\n        except ValueError:\n"
            "            x = x + 1\n        if WIDE:\n            x = x[:, -1:]\n" + HEAD,
        ),
    ),
    "after an unrolled loop": two_kinds(
        CALLS,
        MAKE,
        TAKE,
        (
            HEAD,
            "        for n in range(3):\n            if WIDE:\n                continue\n            x = x + n\n"
            "        if WIDE:\n            x = x[:, -1:]\n" + HEAD,
        ),
    ),
    "after one arm has called what nobody can read": two_kinds(
        CALLS,
        MAKE,
        TAKE,
        ("import json\n", "import json\nimport elsewhere\n"),
        (
            HEAD,
            "        if KINDS:\n            raise ValueError\n"
            "        if WIDE:\n            elsewhere.count()\n        else:\n            x = x + 1\n"
            "        if WIDE:\n            x = x[:, -1:]\n" + HEAD,
        ),
    ),
}


@pytest.mark.parametrize("name", sorted(OTHER_ANSWER))
def test_the_answer_of_one_world_is_not_taken_for_another(tmp_path: Path, name: str) -> None:
    assert judged(tmp_path, OTHER_ANSWER[name]).verdict is not Verdict.ELIGIBLE


# -- what is taken from an answer --------------------------------------------------------------------------------------


def test_one_constant_excludes_the_others() -> None:
    kind, known = Unknown("?", "kind"), Assumptions()
    known.assume(compare("==", kind, Const("a")), True)
    assert known.answer(compare("==", kind, Const("b"))) is False
    assert known.answer(compare("!=", kind, Const("a"))) is False
    assert known.answer(unary("not", compare("==", kind, Const("a")))) is False
    assert known.answer(compare("==", Unknown("?", "kind"), Const("a"))) is None


def test_that_it_is_not_one_constant_says_nothing_of_the_others() -> None:
    kind, known = Unknown("?", "kind"), Assumptions()
    known.assume(compare("==", kind, Const("a")), False)
    assert known.answer(compare("==", kind, Const("b"))) is None
    assert known.answer(kind) is None


def test_constants_of_two_types_are_two_questions() -> None:
    kind, known = Unknown("?", "kind"), Assumptions()
    known.assume(compare("==", kind, Const(1)), False)
    assert known.answer(compare("==", kind, Const(True))) is None


def test_a_value_of_a_branch_is_found_by_its_condition() -> None:
    test, a, b = Unknown("?", "flag", "bool"), Const("a"), Const("b")
    value = union([a, b])
    value.guard = (test, a, b)  # type: ignore[attr-defined]
    known = Assumptions()
    assert known.chosen(value) is value
    known.assume(test, False)
    assert known.chosen(value) is b
    known.cut(0)
    assert known.chosen(value) is value


def test_the_value_tells_the_branch_that_made_it() -> None:
    test, kind = Unknown("?", "flag", "bool"), union([Const("a"), Const("b")])
    kind.guard = (test, Const("a"), Const("b"))  # type: ignore[attr-defined]
    known = Assumptions()
    known.assume(compare("==", kind, Const("b")), True)
    assert known.answer(test) is False


def test_unread_code_ends_every_assumption() -> None:
    outer, test = Assumptions(), Unknown("?", "flag", "bool")
    outer.assume(test, True)
    inner = outer.inside(())
    inner.assume(test, True)
    inner.forget()
    assert inner.answer(test) is None
    assert outer.answer(test) is None


def test_what_was_forgotten_in_one_scope_does_not_keep_the_answers_of_the_next() -> None:
    known, first, second = Assumptions(), Unknown("?", "first", "bool"), Unknown("?", "second", "bool")
    known.assume(first, True)
    length = len(known.made)
    known.assume(second, True)
    known.forget()
    known.cut(length)
    known.assume(second, False)
    known.cut(length)
    assert known.answer(second) is None
    assert known.answer(first) is None


def test_an_element_reached_in_two_ways_may_be_two() -> None:
    element, test = Unknown("?", "layer"), Unknown("?", "flag", "bool")
    scope = Assumptions().inside([element])
    scope.assume(test, True)
    scope.hand_out((element,), 1)
    assert scope.answer(test) is None
    scope.assume(test, True)
    assert scope.answer(test) is None
