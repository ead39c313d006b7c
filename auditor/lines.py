"""The lines of nodes, found when they are cited.

LibCST keeps no positions: they come from writing the tree out again, which for a long function costs more than its
parse. What is cited is a node here and there, met in a statement of one line or a few. That statement is written out
alone, and its own first line is looked up in the text, where most lines occur once. Only when that does not say is the
whole top-level statement written.
"""

from __future__ import annotations

from functools import cache

import libcst as cst
from libcst.metadata import PositionProvider
from libcst.metadata.position_provider import NEWLINE_RE, PositionProvidingCodegenState


class Lines:
    """The lines (from 1) of the nodes of a top-level statement: `text`, whose first line is `first` in its file."""

    def __init__(self, module: cst.Module, text: str, first: int) -> None:
        self._module, self._text, self._first = module, text, first
        self._known: dict[int, int] = {}
        self._once: dict[str, int] | None = None
        self._whole = False

    def of(self, node: object, within: cst.CSTNode | None) -> int:
        """The line of `node`, the first of all when it is not a node of the statement."""
        if id(node) not in self._known and within is not None and not self._whole:
            self._known |= self._inside(within)
        if id(node) not in self._known and not self._whole:
            self._known, self._whole = _Written(self._module, self._module, self._first).lines, True
        return self._known.get(id(node), self._first)

    def _inside(self, statement: cst.CSTNode) -> dict[int, int]:
        """The lines of the nodes of an inner statement; none when its first line occurs more than once."""
        written = _Written(self._module, statement, 0)
        above = len(getattr(statement, "leading_lines", ()))
        start = self._line_that_is(NEWLINE_RE.split("".join(written.tokens))[above].strip())
        return {key: line - above + start for key, line in written.lines.items()} if start is not None else {}

    def _line_that_is(self, text: str) -> int | None:
        if self._once is None:
            lines = [line.strip() for line in NEWLINE_RE.split(self._text)]
            self._once = {line: number for number, line in enumerate(lines, self._first)}
            seen: set[str] = set()
            for line in lines:
                if line in seen:
                    self._once.pop(line, None)
                seen.add(line)
        return self._once.get(text)


class _Written(PositionProvidingCodegenState):
    """LibCST's walk that gives positions, which here keeps the first line of each node and what is written."""

    def __init__(self, module: cst.Module, node: cst.CSTNode, first: int) -> None:
        super().__init__(module.default_indent, module.default_newline, PositionProvider())
        self.line = first
        self.starts: list[int] = []
        self.lines: dict[int, int] = {}
        node._codegen(self)

    def add_indent_tokens(self) -> None:
        pass

    def add_token(self, value: str) -> None:
        self.tokens.append(value)
        if "\n" in value or "\r" in value:
            self.line += len(NEWLINE_RE.findall(value))

    def before_codegen(self, node: cst.CSTNode) -> None:
        self.starts.append(self.line)

    def after_codegen(self, node: cst.CSTNode) -> None:
        start = self.starts.pop()
        if _cited(type(node)):
            self.lines.setdefault(id(node), start)

    def record_syntactic_position(  # type: ignore[override]  # LibCST's is a generator, four times slower
        self, node: cst.CSTNode, *, start_node: cst.CSTNode | None = None, end_node: cst.CSTNode | None = None
    ) -> _Start:
        return _Start(self, node, start_node)


class _Start:
    """The line of a node whose first token is not the first thing that it writes (parentheses, comments before it)."""

    __slots__ = ("line", "node", "start_node", "state")

    def __init__(self, state: _Written, node: cst.CSTNode, start_node: cst.CSTNode | None) -> None:
        self.state, self.node, self.start_node = state, node, start_node

    def __enter__(self) -> None:
        self.line = self.state.line

    def __exit__(self, *_error: object) -> None:
        lines = self.state.lines
        lines[id(self.node)] = self.line if self.start_node is None else lines.get(id(self.start_node), self.line)


_CITED = (
    cst.BaseExpression,
    cst.BaseStatement,
    cst.BaseSmallStatement,
    cst.BaseElement,
    cst.Param,
    cst.Decorator,
    cst.WithItem,
    cst.BaseSlice,
)


@cache
def _cited(kind: type) -> bool:
    """Asked once for each kind of node: the classes of LibCST are abstract, and `isinstance` is slow on those."""
    return issubclass(kind, _CITED)
