"""The shared nodes of the parser: the tree means the same, and LibCST is left as it was."""

from __future__ import annotations

from pathlib import Path

import libcst as cst
import pytest

from auditor.parsing import parsed

SOURCES = sorted((Path(__file__).parents[2] / "auditor").glob("*.py"))[::6]


@pytest.mark.parametrize("path", SOURCES, ids=lambda p: p.name)
def test_the_tree_is_the_one_that_libcst_makes(path: Path) -> None:
    text = path.read_text()
    tree = parsed(text)
    assert tree.code == text
    assert tree.deep_equals(cst.parse_module(text))


def test_equal_blanks_are_one_node_and_names_are_not() -> None:
    first, second = (s.body[0].value for s in parsed("f(a, b)\nf(a, b)\n").body)  # type: ignore[union-attr, index]
    assert first.args[0].comma is second.args[0].comma
    assert first.args[0].value is not second.args[0].value


@pytest.mark.parametrize("text", ["f(a, b)\n", "f(a,\n"])
def test_libcst_has_its_own_classes_again_after_a_parse(text: str) -> None:
    before = cst.SimpleWhitespace, cst.Newline, cst.TrailingWhitespace, cst.Comma, cst.Dot
    try:
        parsed(text)
    except cst.ParserSyntaxError:
        assert text.endswith(",\n")
    assert (cst.SimpleWhitespace, cst.Newline, cst.TrailingWhitespace, cst.Comma, cst.Dot) == before


@pytest.mark.parametrize("text", ["f(a, b)\n", "f(a,\n"])
def test_nodes_check_themselves_again_after_a_parse(text: str) -> None:
    try:
        parsed(text)
    except cst.ParserSyntaxError:
        assert text.endswith(",\n")
    with pytest.raises(cst.CSTValidationError, match="empty name"):
        cst.Name("")
