"""Lines of cited nodes are those of LibCST's own position pass, however they are looked for."""

from __future__ import annotations

from pathlib import Path

import libcst as cst
import pytest
from libcst.metadata import MetadataWrapper, PositionProvider

from auditor.lines import Lines

TRICKY = '''\
def export(model,
           names=("a",
                  "b")):
    """A text with a line that is also code:

    x = 1
    """
    x = 1
    model.eval()
    if x:
        model.eval()  # the same line again
        y = (
            f(x)
        )
    # a comment above
    # and another

    z = g(
        x,
        # between
        y,
    ); w = x
    t = """
    z = g(
    """ + str(
        x
    )
    with (open(x)) as h, \\
         open(y) as i:
        h.read()
    @wrapped
    def inner():
        return [
            a
            for a in t
        ]
    return (z
            + w)
'''
EXAMPLES = sorted((Path(__file__).parents[2] / "examples").rglob("*.py"))


def _inner(statement: cst.CSTNode) -> list[tuple[cst.CSTNode, cst.CSTNode]]:
    """(node, statement it stands in) for every expression of a statement."""
    out: list[tuple[cst.CSTNode, cst.CSTNode]] = []

    def walk(node: cst.CSTNode, within: cst.CSTNode) -> None:
        for child in node.children:
            inside = child if isinstance(child, (cst.SimpleStatementLine, cst.BaseCompoundStatement)) else within
            if isinstance(child, (cst.BaseExpression, cst.Param, cst.BaseStatement)):
                out.append((child, inside))
            walk(child, inside)

    walk(statement, statement)
    return out


@pytest.mark.parametrize(
    "text",
    [TRICKY, *(p.read_text() for p in EXAMPLES)],
    ids=["tricky", *(f"{p.parent.name}-{p.stem}" for p in EXAMPLES)],
)
def test_every_node_has_the_line_that_libcst_gives(text: str) -> None:
    wrapper = MetadataWrapper(cst.parse_module(text), unsafe_skip_copy=True)
    positions = wrapper.resolve(PositionProvider)
    module = wrapper.module
    whole = Lines(module, text, 1)
    for node, within in _inner(module):
        want = positions[node].start.line
        assert Lines(module, text, 1).of(node, within) == want, module.code_for_node(node)
        assert whole.of(node, None) == want


def test_lines_are_counted_from_where_the_statement_stands() -> None:
    module = cst.parse_module(TRICKY)
    for node, within in _inner(module):
        assert Lines(module, TRICKY, 101).of(node, within) == Lines(module, TRICKY, 1).of(node, within) + 100


def test_a_node_that_is_not_in_the_statement_is_found_all_the_same() -> None:
    text = "def f():\n    a = 1\n    b = 2\n"
    module = cst.parse_module(text)
    first, second = module.body[0].body.body  # type: ignore[union-attr]
    lines = Lines(module, text, 1)
    assert lines.of(second.body[0].value, first) == 3
    assert lines.of(first.body[0].value, second) == 2
