"""Operators, comparisons and truth on values. Nothing here changes anything: all functions are pure."""

from __future__ import annotations

from auditor.operators.arithmetic import BINARY, UNARY, binary, opposite, over, unary
from auditor.operators.comparisons import COMPARE, asked, compare, contains, identical
from auditor.operators.results import depends_on_query, derived, is_flexible, pattern, unknown_from
from auditor.operators.truths import truth

__all__ = [
    "BINARY",
    "COMPARE",
    "UNARY",
    "asked",
    "binary",
    "compare",
    "contains",
    "depends_on_query",
    "derived",
    "identical",
    "is_flexible",
    "opposite",
    "over",
    "pattern",
    "truth",
    "unary",
    "unknown_from",
]
