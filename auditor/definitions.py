"""Which definitions may wait until their name is looked up: those that read nothing, when made, that changes later.

A definition that nobody looks up is never parsed, which is most of what a scan saves. But the defaults of a function,
the bases of a class and what stands in its body are evaluated where they stand: `n = 3`, `def f(w=n)`, `n = 9`.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Iterator, Mapping

PLAIN_PACKAGES = frozenset({"torch", "typing", "abc", "enum", "collections", "transformers", "numpy", "argparse"})
"""Packages whose classes do nothing of the script's when somebody derives from one."""

Bound = Mapping[str, list[int]]
"""For each module-level name the numbers of the statements that bind or mutate it."""


def waiting(groups: list[list[ast.stmt]], binders: Bound, text: str) -> list[bool]:
    """Whether each group of statements may wait. `text` is the file."""
    if "__init_subclass__" in text:
        return [False] * len(groups)
    changed = _set_from_inside(groups) if "global " in text else frozenset()
    fixed: dict[str, int] = {}
    for name, numbers in binders.items():
        if len(numbers) == 1 and name not in changed and _is_fixed(groups[numbers[0]]):
            fixed[name] = numbers[0]
    return [_may_wait(group, n, binders, fixed, groups) for n, group in enumerate(groups)]


def _set_from_inside(groups: list[list[ast.stmt]]) -> frozenset[str]:
    nodes = (n for group in groups for s in group for n in ast.walk(s) if isinstance(n, ast.Global))
    return frozenset(name for n in nodes for name in n.names)


def _is_fixed(group: list[ast.stmt]) -> bool:
    """Whether the names that the statements bind stay what they are: imports, definitions and literals."""
    return all(
        isinstance(n, (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Try))
        or (isinstance(n, (ast.Assign, ast.AnnAssign)) and n.value is not None and _is_literal(n.value))
        for n in group
    )


def _is_literal(node: ast.expr) -> bool:
    match node:
        case ast.Constant():
            return True
        case ast.UnaryOp(operand=inner):
            return _is_literal(inner)
        case ast.Tuple(elts=items):
            return all(map(_is_literal, items))
    return False


def _may_wait(
    group: list[ast.stmt], number: int, binders: Bound, fixed: Mapping[str, int], groups: list[list[ast.stmt]]
) -> bool:
    for node in group:
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)) or node.decorator_list:
            return False
        if len(binders[node.name]) > 1:
            return False
        if isinstance(node, ast.ClassDef) and not all(_is_plain_base(b, fixed, groups) for b in node.bases):
            return False
        for read in _read_at_once(node):
            if not all(_is_steady(name, number, binders, fixed) for name in _names(read)):
                return False
            if isinstance(node, ast.ClassDef) and read in node.bases:
                continue
            if any(name in fixed and not _is_plain(groups[fixed[name]]) for name in _owners(read)):
                return False
    return True


def _is_steady(name: str | None, number: int, binders: Bound, fixed: Mapping[str, int]) -> bool:
    """Whether a name is the same where the definition stands and whenever somebody looks; None is no mere name."""
    return name is not None and (name not in binders or (name in fixed and fixed[name] < number))


def _is_plain_base(base: ast.expr, fixed: Mapping[str, int], groups: list[list[ast.stmt]]) -> bool:
    """Whether deriving from a class runs nothing: one of a library, or of this file (where none counts its heirs)."""
    root: ast.expr = base
    while isinstance(root, (ast.Attribute, ast.Subscript)):
        root = root.value
    if not isinstance(root, ast.Name):
        return False
    if root.id not in fixed:
        return True  # a builtin, or not steady anyway
    for node in groups[fixed[root.id]]:
        if isinstance(node, ast.ImportFrom) and (node.level or (node.module or "").split(".")[0] not in PLAIN_PACKAGES):
            return False
    return True


def _is_plain(group: list[ast.stmt]) -> bool:
    """Whether the statements import from packages that nobody changes; a class of the script may be changed."""
    names: list[str | None] = []
    for node in group:
        if not isinstance(node, (ast.Import, ast.ImportFrom)):
            return False
        names += [node.module] if isinstance(node, ast.ImportFrom) else [n.name for n in node.names]
    return all((name or "").split(".")[0] in PLAIN_PACKAGES | sys.stdlib_module_names for name in names)


def _owners(node: ast.expr) -> Iterator[str]:
    """The names of which an expression reads attributes."""
    for inner in ast.walk(node):
        if isinstance(inner, (ast.Attribute, ast.Subscript)) and isinstance(inner.value, ast.Name):
            yield inner.value.id


def _read_at_once(node: ast.stmt) -> Iterator[ast.expr]:
    """What is evaluated when the definition is made."""
    match node:
        case ast.FunctionDef(args=args) | ast.AsyncFunctionDef(args=args):
            yield from args.defaults
            yield from (d for d in args.kw_defaults if d is not None)
        case ast.ClassDef(bases=bases, keywords=keywords, body=body):
            yield from bases
            yield from (k.value for k in keywords)
            for inner in body:
                yield from _read_in_class(inner)


def _read_in_class(node: ast.stmt) -> Iterator[ast.expr]:
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            yield from node.decorator_list
            yield from _read_at_once(node)
        case ast.Assign(value=value) | ast.Expr(value=value):
            yield value
        case ast.AnnAssign(value=value):
            if value is not None:
                yield value
        case ast.Pass():
            return
        case _:
            yield ast.Yield()  # a loop or a branch in a class body: no mere name


def _names(node: ast.expr) -> Iterable[str | None]:
    """The names that an expression of names and literals reads; None for anything else in it."""
    match node:
        case ast.Constant():
            return ()
        case ast.Name(id=name):
            return (name,)
        case ast.Attribute(value=value):
            return _names(value)
        case ast.Subscript(value=value, slice=part):
            return (*_names(value), *_names(part))
        case ast.UnaryOp(operand=value):
            return _names(value)
        case ast.BinOp(left=left, right=right):
            return (*_names(left), *_names(right))
        case ast.Tuple(elts=items) | ast.List(elts=items) | ast.Set(elts=items):
            return [n for i in items for n in _names(i)]
        case ast.Dict(keys=keys, values=values):
            return [n for i in (*keys, *values) if i is not None for n in _names(i)]
        case ast.Lambda(args=args):
            return [n for d in (*args.defaults, *args.kw_defaults) if d is not None for n in _names(d)]
    return (None,)
